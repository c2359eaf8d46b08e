//! A controller that starts anew.

use std::collections::BTreeMap;

use hocket_control::agent::Input;
use hocket_control::directory::HostId;
use hocket_control::message::{Change, PatternFlow, ToHost};
use hocket_control::store::Saved;
use hocket_fabric::controller::{Controller, Log, replay};

use super::desk::{Desk, SECOND, options, server};
use super::disk::Random;
use super::site::{address, stages};

/// A desk with many flows and a job that is live.
fn busy() -> Desk {
    let mut desk = Desk::new(options(), 8);
    let mut random = Random(1);
    let pattern = (0..8).map(|from| PatternFlow {
        src: address(from),
        dst: address((from + 2) % 8),
        bytes: 1 << 20,
    });
    let pattern = pattern.collect();
    desk.agent(0, Input::JobComes { job: 1, pattern });
    desk.agent(0, Input::JobStarts { job: 1 });
    for _ in 0..100 {
        let host = random.below(8) as u32;
        let flow = desk.open(host, random.below(8) as u32, 0);
        if random.one_in(3) {
            desk.agent(host, Input::Close { flow });
        }
    }
    desk.wait(SECOND);
    desk
}

fn choices(desk: &Desk) -> BTreeMap<u64, Option<u32>> {
    let choices = desk.server.policy().choices();
    choices.map(|(flow, choice)| (flow.0, choice)).collect()
}

fn saved(desk: &Desk) -> Saved {
    let mut saved = Saved::default();
    desk.records
        .iter()
        .for_each(|(_, record)| saved.apply(record));
    saved
}

#[test]
fn a_restart_moves_no_flow() {
    let mut desk = busy();
    let before = choices(&desk);
    assert!(before.len() > 40);
    desk.server = server(options(), 2, &saved(&desk), desk.now);
    for host in 0..8 {
        let session = desk.sessions[host as usize].take().unwrap();
        let session = hocket_control::agent::SessionId(session);
        desk.agent(host, Input::Lost { session });
    }
    let told = desk.told.len();
    for host in 0..8 {
        assert!(!desk.server.is_synced());
        desk.connect(host);
    }
    assert!(desk.server.is_synced());
    for (_, message) in &desk.told[told..] {
        let ToHost::Changes { changes, .. } = &**message else {
            continue;
        };
        assert!(!changes.iter().any(|change| matches!(change, Change::Revoke { reason, .. } if *reason != hocket_control::message::Reason::Local)));
    }
    assert_eq!(choices(&desk), before);
    assert_eq!(desk.server.policy().tally().total_moves(), 0);
    assert!(desk.agents.iter().all(|agent| agent.epoch() == 2));
}

#[test]
fn recovery_ends_without_hosts_that_stay_away() {
    let mut desk = busy();
    desk.server = server(options(), 2, &saved(&desk), desk.now);
    desk.sessions.fill(None);
    desk.connect(3);
    desk.wait(14 * SECOND);
    assert!(!desk.server.is_synced());
    desk.wait(2 * SECOND);
    assert!(desk.server.is_synced());
}

#[test]
fn pieces_of_the_log_replay_to_the_same_paths() {
    let mut desk = busy();
    let mut log = Log::default();
    let mut pieces = 0;
    let mut take = |desk: &mut Desk| {
        let piece = desk.server.take_log();
        pieces += usize::from(!piece.events.is_empty());
        log.events
            .extend(Log::decode(&piece.encode()).unwrap().events);
    };
    take(&mut desk);
    for host in 0..8 {
        let flow = desk.open(host, (host + 3) % 8, 0);
        let link = desk.agents[host as usize].path(flow).unwrap().links[0];
        let links = vec![link];
        desk.serve(hocket_control::server::Input::LinksFail {
            links: links.clone(),
        });
        take(&mut desk);
        desk.serve(hocket_control::server::Input::LinksReturn { links });
        desk.agent(host, Input::Close { flow });
    }
    desk.cut(2);
    desk.wait(20 * SECOND);
    take(&mut desk);
    assert!(pieces > 8);
    let policy = desk.server.policy();
    let mut again = Controller::new(stages().fabric().clone(), *policy.options());
    replay(&mut again, &log);
    assert_eq!(again.tally(), policy.tally());
    assert_eq!(again.revision(), policy.revision());
    assert!(again.choices().eq(policy.choices()));
}

#[test]
fn what_no_longer_fits_the_directory_is_dropped() {
    let mut saved = Saved::default();
    let pattern = vec![PatternFlow {
        src: address(0),
        dst: address(99),
        bytes: 1,
    }];
    for (job, leader) in [(1, "host0"), (2, "nobody")] {
        let (leader, pattern) = (leader.to_owned(), pattern.clone());
        let record = hocket_control::store::Record::JobComes {
            job,
            leader,
            pattern,
        };
        saved.apply(&record);
    }
    saved.failed.insert(9_999);
    let mut desk = Desk::new(options(), 0);
    desk.server = server(options(), 2, &saved, desk.now);
    desk.serve(hocket_control::server::Input::Tick);
    let mut now = saved.clone();
    desk.records
        .iter()
        .for_each(|(_, record)| now.apply(record));
    assert_eq!(now, Saved::default());
    assert_eq!(desk.server.unacknowledged(HostId(0)), None);
}

//! A controller that starts anew.

use std::collections::BTreeMap;

use hocket_control::agent::Input;
use hocket_control::directory::HostId;
use hocket_control::message::{Change, PatternFlow, ToHost};
use hocket_control::store::Saved;
use hocket_fabric::controller::{Controller, Log, replay};

use super::connected::{Connected, SECOND, options, server};
use super::disk::Random;
use super::site::{address, stages};

/// A server with many flows and a job that is live.
fn busy() -> Connected {
    let mut connected = Connected::new(options(), 8);
    let mut random = Random(1);
    let pattern = (0..8).map(|from| PatternFlow {
        src: address(from),
        dst: address((from + 2) % 8),
        bytes: 1 << 20,
    });
    let pattern = pattern.collect();
    connected.agent(0, Input::JobComes { job: 1, pattern });
    connected.agent(0, Input::JobStarts { job: 1 });
    for _ in 0..100 {
        let host = random.below(8) as u32;
        let flow = connected.open(host, random.below(8) as u32, 0);
        if random.one_in(3) {
            connected.agent(host, Input::Close { flow });
        }
    }
    connected.wait(SECOND);
    connected
}

fn choices(connected: &Connected) -> BTreeMap<u64, Option<u32>> {
    let choices = connected.server.policy().choices();
    choices.map(|(flow, choice)| (flow.0, choice)).collect()
}

fn saved(connected: &Connected) -> Saved {
    let mut saved = Saved::default();
    connected
        .records
        .iter()
        .for_each(|(_, record)| saved.apply(record));
    saved
}

#[test]
fn a_restart_moves_no_flow() {
    let mut connected = busy();
    let before = choices(&connected);
    assert!(before.len() > 40);
    connected.server = server(options(), 2, &saved(&connected), connected.now);
    for host in 0..8 {
        let session = connected.sessions[host as usize].take().unwrap();
        let session = hocket_control::agent::SessionId(session);
        connected.agent(host, Input::Lost { session });
    }
    let told = connected.told.len();
    for host in 0..8 {
        assert!(!connected.server.is_synced());
        connected.connect(host);
    }
    assert!(connected.server.is_synced());
    for (_, message) in &connected.told[told..] {
        let ToHost::Changes { changes, .. } = &**message else {
            continue;
        };
        assert!(!changes.iter().any(|change| matches!(change, Change::Revoke { reason, .. } if *reason != hocket_control::message::Reason::Local)));
    }
    assert_eq!(choices(&connected), before);
    assert_eq!(connected.server.policy().tally().total_moves(), 0);
    assert!(connected.agents.iter().all(|agent| agent.epoch() == 2));
}

#[test]
fn recovery_ends_without_hosts_that_stay_away() {
    let mut connected = busy();
    connected.server = server(options(), 2, &saved(&connected), connected.now);
    connected.sessions.fill(None);
    connected.connect(3);
    connected.wait(14 * SECOND);
    assert!(!connected.server.is_synced());
    connected.wait(2 * SECOND);
    assert!(connected.server.is_synced());
}

#[test]
fn pieces_of_the_log_replay_to_the_same_paths() {
    let mut connected = busy();
    let mut log = Log::default();
    let mut pieces = 0;
    let mut take = |connected: &mut Connected| {
        let piece = connected.server.take_log();
        pieces += usize::from(!piece.events.is_empty());
        log.events
            .extend(Log::decode(&piece.encode()).unwrap().events);
    };
    take(&mut connected);
    for host in 0..8 {
        let flow = connected.open(host, (host + 3) % 8, 0);
        let link = connected.agents[host as usize].path(flow).unwrap().links[0];
        let links = vec![link];
        connected.serve(hocket_control::server::Input::LinksFail {
            links: links.clone(),
        });
        take(&mut connected);
        connected.serve(hocket_control::server::Input::LinksReturn { links });
        connected.agent(host, Input::Close { flow });
    }
    connected.cut(2);
    connected.wait(20 * SECOND);
    take(&mut connected);
    assert!(pieces > 8);
    let policy = connected.server.policy();
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
    let mut connected = Connected::new(options(), 0);
    connected.server = server(options(), 2, &saved, connected.now);
    connected.serve(hocket_control::server::Input::Tick);
    let mut now = saved.clone();
    connected
        .records
        .iter()
        .for_each(|(_, record)| now.apply(record));
    assert_eq!(now, Saved::default());
    assert_eq!(connected.server.unacknowledged(HostId(0)), None);
}

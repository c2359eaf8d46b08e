//! Jobs whose iterations repeat.

use hocket_control::agent::{Input, Output};
use hocket_control::message::{PatternFlow, Refusal, ToHost};
use hocket_control::server;
use hocket_control::store::Record;

use super::desk::{Desk, SECOND, options};
use super::site::address;

fn ring(step: u32) -> Vec<PatternFlow> {
    let flow = |from: u32| PatternFlow {
        src: address(from),
        dst: address((from + step) % 8),
        bytes: 1 << 20,
    };
    (0..8).map(flow).collect()
}

fn comes(desk: &mut Desk, job: u32) {
    let pattern = ring(2);
    desk.agent(0, Input::JobComes { job, pattern });
    desk.agent(0, Input::Flush);
}

fn live(desk: &mut Desk, job: u32, is_live: bool) {
    let input = match is_live {
        true => Input::JobStarts { job },
        false => Input::JobStops { job },
    };
    desk.agent(0, input);
    desk.agent(0, Input::Flush);
}

#[test]
fn each_host_hears_of_what_it_sends() {
    let mut desk = Desk::new(options(), 8);
    comes(&mut desk, 1);
    live(&mut desk, 1, true);
    for (agent, host) in desk.agents.iter().zip(0..) {
        let patterns: Vec<_> = agent
            .patterns()
            .map(|(key, path)| (key, path.is_some()))
            .collect();
        assert_eq!(patterns, [((1, host), true)]);
    }
    assert_eq!(desk.server.policy().flow_count(), 8);
    live(&mut desk, 1, false);
    assert_eq!(desk.server.policy().flow_count(), 0);
    assert!(
        desk.agents
            .iter()
            .all(|agent| agent.patterns().count() == 0)
    );
    desk.agent(0, Input::JobGoes { job: 1 });
    desk.agent(0, Input::Flush);
    assert_eq!(desk.server.jobs().count(), 0);
    assert_eq!(desk.agents[3].held().count(), 0);
    assert!(matches!(
        desk.records[..],
        [
            (1, Record::JobComes { .. }),
            (2, Record::JobGoes { job: 1 })
        ]
    ));
}

#[test]
fn a_flow_of_a_pattern_is_not_counted_twice() {
    let mut desk = Desk::new(options(), 8);
    comes(&mut desk, 1);
    live(&mut desk, 1, true);
    let flow = desk.open(3, 5, 1);
    assert!(desk.choice(3, flow).is_some());
    assert_eq!(
        (
            desk.server.policy().flow_count(),
            desk.server.flows().count()
        ),
        (8, 0)
    );
    // A second one of the same ends is a flow of its own.
    let other = desk.open(3, 5, 1);
    assert!(desk.choice(3, other).is_some());
    assert_eq!(
        (
            desk.server.policy().flow_count(),
            desk.server.flows().count()
        ),
        (9, 1)
    );
    live(&mut desk, 1, false);
    assert_eq!(desk.server.policy().flow_count(), 1);
    // Its path is kept for the next iteration, also where the host comes back in between.
    let before = desk.choice(3, flow);
    desk.cut(3);
    desk.connect(3);
    assert_eq!(desk.choice(3, flow), before);
    live(&mut desk, 1, true);
    assert_eq!(desk.choice(3, flow), before);
    assert_eq!(desk.server.policy().flow_count(), 9);
    // Without the job both are flows of their own.
    desk.agent(0, Input::JobGoes { job: 1 });
    desk.agent(0, Input::Flush);
    desk.agent(3, Input::Flush);
    assert_eq!(
        (
            desk.server.policy().flow_count(),
            desk.server.flows().count()
        ),
        (2, 2)
    );
}

#[test]
fn a_job_is_taken_once_it_is_stored() {
    let mut desk = Desk::new(options(), 8);
    desk.stores = false;
    let taken = |desk: &Desk| {
        let taken = desk.told.iter().filter_map(|(_, message)| match **message {
            ToHost::Taken { sequence } => Some(sequence),
            _ => None,
        });
        taken.max()
    };
    comes(&mut desk, 1);
    live(&mut desk, 1, true);
    desk.wait(SECOND / 5);
    assert!(taken(&desk).is_none_or(|taken| taken < 2));
    desk.serve(server::Input::Stored { record: 1 });
    desk.wait(SECOND / 5);
    assert_eq!(taken(&desk), Some(3));
}

#[test]
fn operators_are_answered_once_what_they_said_is_stored() {
    let mut desk = Desk::new(options(), 8);
    desk.stores = false;
    let say = |desk: &mut Desk, question| {
        desk.serve(server::Input::LinksFail { links: vec![40] });
        desk.serve(server::Input::Ask { question });
    };
    say(&mut desk, 1);
    // The link has failed from now on, whoever knows.
    assert!(desk.server.has_failed()[40]);
    assert_eq!(desk.answers, []);
    desk.serve(server::Input::Stored { record: 1 });
    assert_eq!(desk.answers, [(1, true)]);
    // Said again it is stored again: this controller may have been deposed since.
    say(&mut desk, 2);
    assert_eq!(desk.records.len(), 2);
    desk.serve(server::Input::Stored { record: 1 });
    assert_eq!(desk.answers, [(1, true)]);
    comes(&mut desk, 1);
    desk.serve(server::Input::Unstored { record: 3 });
    assert_eq!(desk.answers, [(1, true), (2, false)]);
    // What is not stored is not for those who ask later, either; hosts bring back what is forgotten.
    desk.serve(server::Input::Ask { question: 3 });
    desk.wait(SECOND / 5);
    let mut told = desk.told.iter().map(|(_, message)| &**message);
    assert!(told.any(|message| matches!(message, ToHost::Taken { .. })));
    assert_eq!(desk.answers.len(), 2);
    desk.serve(server::Input::Stored { record: 3 });
    assert_eq!(desk.answers[2..], [(3, true)]);
    // Nothing is to be waited for.
    desk.serve(server::Input::Ask { question: 4 });
    assert_eq!(desk.answers[3..], [(4, true)]);
}

#[test]
fn a_job_has_one_leader_that_may_speak_for_it() {
    let mut desk = Desk::new(options(), 8);
    comes(&mut desk, 1);
    let refused = |desk: &Desk, host: u32| {
        let of = |(at, output): &(u32, Output)| match output {
            Output::JobRefused { why, .. } if *at == host => Some(*why),
            _ => None,
        };
        desk.asked.iter().filter_map(of).collect::<Vec<Refusal>>()
    };
    for (host, job) in [(5, 1), (3, 3), (3, 9)] {
        let pattern = ring(1);
        desk.agent(host, Input::JobComes { job, pattern });
        desk.agent(host, Input::Flush);
    }
    assert_eq!(refused(&desk, 5), [Refusal::NotItsJob]);
    assert_eq!(refused(&desk, 3), [Refusal::NotItsJob; 2]);
    // Host 0 may speak for job 3, and the others in its pattern may not.
    let pattern = ring(1);
    desk.agent(0, Input::JobComes { job: 3, pattern });
    desk.agent(0, Input::Flush);
    assert_eq!(refused(&desk, 0), [Refusal::NotItsJob]);
    desk.agent(
        3,
        Input::JobComes {
            job: 0,
            pattern: ring(1),
        },
    );
    assert_eq!(refused(&desk, 3).last(), Some(&Refusal::BadNumber));
    assert_eq!(desk.server.jobs().count(), 1);
    desk.wait(3 * SECOND);
    assert_eq!(desk.server.metrics().resyncs, 0);
}

#[test]
fn paths_are_there_before_an_iteration_begins() {
    let mut options = options();
    options.policy.look_ahead = 4;
    let mut desk = Desk::new(options, 8);
    comes(&mut desk, 1);
    for _ in 0..2 {
        live(&mut desk, 1, true);
        desk.wait(SECOND);
        live(&mut desk, 1, false);
        desk.wait(SECOND);
    }
    desk.serve(server::Input::Prepare);
    let flow = desk.open(3, 5, 1);
    let ahead = desk.choice(3, flow);
    assert!(ahead.is_some());
    assert_eq!(desk.server.policy().flow_count(), 0);
    live(&mut desk, 1, true);
    assert_eq!(desk.choice(3, flow), ahead);
}

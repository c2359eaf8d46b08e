//! Jobs whose iterations repeat.

use hocket_control::agent::{Input, Output};
use hocket_control::message::{PatternFlow, Refusal, ToHost};
use hocket_control::server;
use hocket_control::store::Record;

use super::connected::{Connected, SECOND, options};
use super::site::address;

fn ring(step: u32) -> Vec<PatternFlow> {
    let flow = |from: u32| PatternFlow {
        src: address(from),
        dst: address((from + step) % 8),
        bytes: 1 << 20,
    };
    (0..8).map(flow).collect()
}

fn comes(connected: &mut Connected, job: u32) {
    let pattern = ring(2);
    connected.agent(0, Input::JobComes { job, pattern });
    connected.agent(0, Input::Flush);
}

fn live(connected: &mut Connected, job: u32, is_live: bool) {
    let input = match is_live {
        true => Input::JobStarts { job },
        false => Input::JobStops { job },
    };
    connected.agent(0, input);
    connected.agent(0, Input::Flush);
}

#[test]
fn each_host_hears_of_what_it_sends() {
    let mut connected = Connected::new(options(), 8);
    comes(&mut connected, 1);
    live(&mut connected, 1, true);
    for (agent, host) in connected.agents.iter().zip(0..) {
        let patterns: Vec<_> = agent
            .patterns()
            .map(|(key, path)| (key, path.is_some()))
            .collect();
        assert_eq!(patterns, [((1, host), true)]);
    }
    assert_eq!(connected.server.policy().flow_count(), 8);
    live(&mut connected, 1, false);
    assert_eq!(connected.server.policy().flow_count(), 0);
    assert!(
        connected
            .agents
            .iter()
            .all(|agent| agent.patterns().count() == 0)
    );
    connected.agent(0, Input::JobGoes { job: 1 });
    connected.agent(0, Input::Flush);
    assert_eq!(connected.server.jobs().count(), 0);
    assert_eq!(connected.agents[3].held().count(), 0);
    assert!(matches!(
        connected.records[..],
        [
            (1, Record::JobComes { .. }),
            (2, Record::JobGoes { job: 1 })
        ]
    ));
}

#[test]
fn a_flow_of_a_pattern_is_not_counted_twice() {
    let mut connected = Connected::new(options(), 8);
    comes(&mut connected, 1);
    live(&mut connected, 1, true);
    let flow = connected.open(3, 5, 1);
    assert!(connected.choice(3, flow).is_some());
    assert_eq!(
        (
            connected.server.policy().flow_count(),
            connected.server.flows().count()
        ),
        (8, 0)
    );
    // A second one of the same ends is a flow of its own.
    let other = connected.open(3, 5, 1);
    assert!(connected.choice(3, other).is_some());
    assert_eq!(
        (
            connected.server.policy().flow_count(),
            connected.server.flows().count()
        ),
        (9, 1)
    );
    live(&mut connected, 1, false);
    assert_eq!(connected.server.policy().flow_count(), 1);
    // Its path is kept for the next iteration, also where the host comes back in between.
    let before = connected.choice(3, flow);
    connected.cut(3);
    connected.connect(3);
    assert_eq!(connected.choice(3, flow), before);
    live(&mut connected, 1, true);
    assert_eq!(connected.choice(3, flow), before);
    assert_eq!(connected.server.policy().flow_count(), 9);
    // Without the job both are flows of their own.
    connected.agent(0, Input::JobGoes { job: 1 });
    connected.agent(0, Input::Flush);
    connected.agent(3, Input::Flush);
    assert_eq!(
        (
            connected.server.policy().flow_count(),
            connected.server.flows().count()
        ),
        (2, 2)
    );
}

#[test]
fn a_job_is_taken_once_it_is_stored() {
    let mut connected = Connected::new(options(), 8);
    connected.stores = false;
    let taken = |connected: &Connected| {
        let taken = connected
            .told
            .iter()
            .filter_map(|(_, message)| match **message {
                ToHost::Taken { sequence } => Some(sequence),
                _ => None,
            });
        taken.max()
    };
    comes(&mut connected, 1);
    live(&mut connected, 1, true);
    connected.wait(SECOND / 5);
    assert!(taken(&connected).is_none_or(|taken| taken < 2));
    connected.serve(server::Input::Stored { record: 1 });
    connected.wait(SECOND / 5);
    assert_eq!(taken(&connected), Some(3));
}

#[test]
fn operators_are_answered_once_what_they_said_is_stored() {
    let mut connected = Connected::new(options(), 8);
    connected.stores = false;
    let say = |connected: &mut Connected, question| {
        connected.serve(server::Input::LinksFail { links: vec![40] });
        connected.serve(server::Input::Ask { question });
    };
    say(&mut connected, 1);
    // The link has failed from now on, whoever knows.
    assert!(connected.server.has_failed()[40]);
    assert_eq!(connected.answers, []);
    connected.serve(server::Input::Stored { record: 1 });
    assert_eq!(connected.answers, [(1, true)]);
    // Said again it is stored again: this controller may have been deposed since.
    say(&mut connected, 2);
    assert_eq!(connected.records.len(), 2);
    connected.serve(server::Input::Stored { record: 1 });
    assert_eq!(connected.answers, [(1, true)]);
    comes(&mut connected, 1);
    connected.serve(server::Input::Unstored { record: 3 });
    assert_eq!(connected.answers, [(1, true), (2, false)]);
    // What is not stored is not for those who ask later, either; hosts bring back what is forgotten.
    connected.serve(server::Input::Ask { question: 3 });
    connected.wait(SECOND / 5);
    let mut told = connected.told.iter().map(|(_, message)| &**message);
    assert!(told.any(|message| matches!(message, ToHost::Taken { .. })));
    assert_eq!(connected.answers.len(), 2);
    connected.serve(server::Input::Stored { record: 3 });
    assert_eq!(connected.answers[2..], [(3, true)]);
    // Nothing is to be waited for.
    connected.serve(server::Input::Ask { question: 4 });
    assert_eq!(connected.answers[3..], [(4, true)]);
}

#[test]
fn a_job_has_one_leader_that_may_speak_for_it() {
    let mut connected = Connected::new(options(), 8);
    comes(&mut connected, 1);
    let refused = |connected: &Connected, host: u32| {
        let of = |(at, output): &(u32, Output)| match output {
            Output::JobRefused { why, .. } if *at == host => Some(*why),
            _ => None,
        };
        connected
            .asked
            .iter()
            .filter_map(of)
            .collect::<Vec<Refusal>>()
    };
    for (host, job) in [(5, 1), (3, 3), (3, 9)] {
        let pattern = ring(1);
        connected.agent(host, Input::JobComes { job, pattern });
        connected.agent(host, Input::Flush);
    }
    assert_eq!(refused(&connected, 5), [Refusal::NotItsJob]);
    assert_eq!(refused(&connected, 3), [Refusal::NotItsJob; 2]);
    // Host 0 may speak for job 3, and the others in its pattern may not.
    let pattern = ring(1);
    connected.agent(0, Input::JobComes { job: 3, pattern });
    connected.agent(0, Input::Flush);
    assert_eq!(refused(&connected, 0), [Refusal::NotItsJob]);
    connected.agent(
        3,
        Input::JobComes {
            job: 0,
            pattern: ring(1),
        },
    );
    assert_eq!(refused(&connected, 3).last(), Some(&Refusal::BadNumber));
    assert_eq!(connected.server.jobs().count(), 1);
    connected.wait(3 * SECOND);
    assert_eq!(connected.server.metrics().resyncs, 0);
}

#[test]
fn paths_are_there_before_an_iteration_begins() {
    let mut options = options();
    options.policy.look_ahead = 4;
    let mut connected = Connected::new(options, 8);
    comes(&mut connected, 1);
    for _ in 0..2 {
        live(&mut connected, 1, true);
        connected.wait(SECOND);
        live(&mut connected, 1, false);
        connected.wait(SECOND);
    }
    connected.serve(server::Input::Prepare);
    let flow = connected.open(3, 5, 1);
    let ahead = connected.choice(3, flow);
    assert!(ahead.is_some());
    assert_eq!(connected.server.policy().flow_count(), 0);
    live(&mut connected, 1, true);
    assert_eq!(connected.choice(3, flow), ahead);
}

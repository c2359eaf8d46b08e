//! Hosts come, speak, fall silent and go; paths fail and do badly.

use std::time::Duration;

use hocket_control::agent::{Agent, Input, Options, Output, SessionId, Why};
use hocket_control::directory::HostId;
use hocket_control::message::{FromHost, NewFlow, Reason, Refusal, ToHost};
use hocket_control::server;

use super::connected::{Connected, SECOND, flow, hello, opened, options};

fn whys(connected: &Connected, flow: u64) -> Vec<Why> {
    let whys = connected
        .asked
        .iter()
        .filter_map(|(_, output)| match output {
            Output::Ecmp { flow: of, why } if *of == flow => Some(*why),
            _ => None,
        });
    whys.collect()
}

#[test]
fn a_flow_is_led_while_it_lasts() {
    let mut connected = Connected::new(options(), 8);
    let flow = connected.open(0, 7, 0);
    assert_eq!(connected.choice(0, flow), Some(0));
    assert_eq!(connected.server.policy().flow_count(), 1);
    let path = connected.agents[0].path(flow).unwrap();
    assert_eq!(
        (path.links.len(), path.forth.len(), path.back.len()),
        (2, 1, 1)
    );
    assert_eq!((path.forth[0].ways, path.forth[0].wanted), (4, 0));
    connected.agent(0, Input::Close { flow });
    connected.agent(0, Input::Flush);
    assert_eq!(connected.server.policy().flow_count(), 0);
}

#[test]
fn a_small_flow_and_one_below_its_tor_are_left_alone() {
    let mut connected = Connected::new(options(), 8);
    let opened = NewFlow {
        bytes: 10,
        ..opened(0, 7)
    };
    let (small, outputs) = connected.agents[0].open(connected.now, opened);
    assert_eq!(
        outputs,
        [Output::Ecmp {
            flow: small,
            why: Why::Small
        }]
    );
    let near = connected.open(0, 1, 0);
    assert_eq!(whys(&connected, near), [Why::Revoked(Reason::Local)]);
    assert_eq!(connected.server.flows().count(), 1);
}

#[test]
fn a_fixed_flow_moves_only_where_its_path_fails() {
    // Flows of host 0, others beside them that end, and then many to the same ToRs.
    let crowded = |is_fixed: bool| {
        let mut connected = Connected::new(options(), 8);
        let flows: Vec<u64> = (2..6)
            .map(|dst| connected.open_as(0, dst, 0, is_fixed))
            .collect();
        let before: Vec<_> = flows
            .iter()
            .map(|&flow| connected.choice(0, flow))
            .collect();
        let more: Vec<u64> = (2..6)
            .map(|dst| connected.open_as(1, dst, 0, is_fixed))
            .collect();
        for flow in more {
            connected.agent(1, Input::Close { flow });
            connected.agent(1, Input::Flush);
        }
        for host in 2..8 {
            let others = (0..8).filter(|dst| dst / 2 != host / 2);
            others.for_each(|dst| {
                connected.open_as(host, dst, 0, is_fixed);
            });
        }
        let after: Vec<_> = flows
            .iter()
            .map(|&flow| connected.choice(0, flow))
            .collect();
        (before == after, connected, flows)
    };
    let (have_stayed, mut connected, flows) = crowded(true);
    assert!(have_stayed);
    let path = connected.agents[0].given(flows[0]).unwrap().clone();
    let links = vec![path.links[0]];
    connected.serve(hocket_control::server::Input::LinksFail { links });
    let now = connected.agents[0].given(flows[0]).unwrap();
    assert_ne!(now.choice, path.choice);
    let moves = connected.server.policy().tally();
    assert_eq!(
        moves.moves_for(Reason::Room) + moves.moves_for(Reason::Balance),
        0
    );
    let (_, connected, _) = crowded(false);
    let moves = connected.server.policy().tally();
    assert_ne!(
        moves.moves_for(Reason::Room) + moves.moves_for(Reason::Balance),
        0
    );
}

#[test]
fn no_flow_waits_for_a_controller_that_is_away_or_silent() {
    let options = Options::default();
    let mut agent = Agent::new(options, 0, Duration::ZERO);
    let (flow, outputs) = agent.open(Duration::ZERO, opened(0, 7));
    assert_eq!(
        outputs,
        [Output::Ecmp {
            flow,
            why: Why::Away
        }]
    );
    assert_eq!(agent.handle(Duration::ZERO, Input::Tick), [Output::Connect]);
    let session = SessionId(1);
    let said = agent.handle(Duration::ZERO, Input::Connected { session });
    assert!(
        matches!(&said[..], [Output::Send { message: FromHost::Hello(hello), .. }] if hello.flows.len() == 1)
    );
    let (flow, outputs) = agent.open(Duration::ZERO, opened(0, 7));
    assert_eq!(outputs, []);
    let late = agent.handle(options.patience, Input::Tick);
    assert_eq!(
        late,
        [Output::Ecmp {
            flow,
            why: Why::NoAnswer
        }]
    );
}

#[test]
fn tries_to_connect_are_ever_further_apart() {
    let options = Options::default();
    let mut agent = Agent::new(options, 0, Duration::ZERO);
    let mut tries = Vec::new();
    for tick in 0..40_000 {
        let now = Duration::from_millis(tick);
        if agent.handle(now, Input::Tick) == [Output::Connect] {
            tries.push(now);
            agent.handle(now, Input::Unreachable);
        }
    }
    let pauses: Vec<Duration> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let [least, longest] = options.backoff;
    let slack = Duration::from_millis(1);
    for (pause, doubled) in pauses.iter().zip(0..) {
        let whole = least.saturating_mul(1 << doubled).min(longest);
        assert!(
            whole / 2 <= *pause && *pause <= whole + slack,
            "{doubled}: {pause:?}"
        );
    }
    assert!(pauses.len() > 10);
}

#[test]
fn a_bad_path_is_left_and_taken_again() {
    let mut connected = Connected::new(options(), 8);
    let flow = connected.open(0, 7, 0);
    let measured = |loss_ppm, rtt| Input::Measured {
        flow,
        loss_ppm,
        rtt: Duration::from_micros(rtt),
    };
    connected.agent(0, measured(0, 100));
    connected.agent(0, measured(500, 350));
    assert_eq!(connected.choice(0, flow), Some(0));
    // Slow, then lossy; each time for longer.
    for (bad, hold) in [(measured(0, 500), 10), (measured(2_000, 100), 20)] {
        connected.agent(0, bad);
        assert_eq!(connected.choice(0, flow), None);
        assert_eq!(
            connected.agents[0].given(flow).map(|path| path.choice),
            Some(0)
        );
        connected.wait((hold - 1) * SECOND);
        assert_eq!(connected.choice(0, flow), None);
        connected.wait(2 * SECOND);
        assert_eq!(connected.choice(0, flow), Some(0));
    }
    assert_eq!(whys(&connected, flow), [Why::Worse; 2]);
}

#[test]
fn a_path_that_probes_find_bad_is_left_until_they_find_it_better() {
    let mut connected = Connected::new(options(), 8);
    let flow = connected.open(0, 7, 0);
    let probed = |loss_ppm, rtt: Option<u64>| Input::PathMeasured {
        flow,
        loss_ppm,
        rtt: rtt.map(Duration::from_micros),
    };
    let by_program = |rtt| Input::Measured {
        flow,
        loss_ppm: 0,
        rtt: Duration::from_micros(rtt),
    };
    // The agents' answers take longer than the network's, and that is not held against the path.
    connected.agent(0, by_program(100));
    connected.agent(0, probed(100_000, Some(2_000)));
    assert_eq!(connected.choice(0, flow), Some(0));
    connected.agent(0, probed(1_000_000, None));
    assert_eq!(connected.choice(0, flow), None);
    for _ in 0..30 {
        connected.wait(SECOND);
        connected.agent(0, probed(500_000, Some(2_000)));
        // What the program measures is another way.
        connected.agent(0, by_program(100));
        assert_eq!(connected.choice(0, flow), None);
    }
    connected.agent(0, probed(0, Some(2_000)));
    connected.wait(9 * SECOND);
    assert_eq!(connected.choice(0, flow), None);
    connected.wait(2 * SECOND);
    assert_eq!(connected.choice(0, flow), Some(0));
    connected.agent(0, probed(0, Some(20_001)));
    assert_eq!(whys(&connected, flow), [Why::Worse; 2]);
}

#[test]
fn paths_outlive_the_controller() {
    let mut connected = Connected::new(options(), 8);
    let flow = connected.open(0, 7, 0);
    connected.cut(0);
    connected.agents.iter_mut().for_each(|agent| {
        agent.handle(Duration::from_secs(3_600), Input::Tick);
    });
    assert_eq!(connected.choice(0, flow), Some(0));
}

#[test]
fn a_silent_host_is_gone_after_lease_and_grace() {
    let mut connected = Connected::new(options(), 8);
    let (flow, other) = (connected.open(0, 7, 0), connected.open(5, 0, 0));
    let session = connected.sessions[0].take().unwrap();
    connected.wait(6 * SECOND);
    assert_eq!(connected.closed, [(session, server::Close::Silent)]);
    assert_eq!(connected.server.flows().count(), 2);
    connected.wait(10 * SECOND);
    assert_eq!(connected.server.metrics().lost_hosts, 1);
    let hosts: Vec<HostId> = connected.server.flows().map(|(host, ..)| host).collect();
    assert_eq!(hosts, [HostId(5)]);
    // A new flow to it has no path until it is back, and one that ends before has none then.
    let over = connected.open(4, 0, 0);
    connected.agent(4, Input::Close { flow: over });
    connected.agent(4, Input::Flush);
    let to_it = connected.open(5, 0, 0);
    assert_eq!(whys(&connected, to_it), [Why::Revoked(Reason::UnknownHost)]);
    assert!(connected.choice(5, other).is_some());
    let lost = hocket_control::agent::SessionId(session);
    connected.agent(0, Input::Lost { session: lost });
    connected.connect(0);
    assert!(connected.choice(5, to_it).is_some());
    assert!(connected.choice(0, flow).is_some());
    assert_eq!(connected.server.policy().flow_count(), 3);
}

#[test]
fn what_differs_is_said_again() {
    let mut connected = Connected::new(options(), 8);
    let flow = connected.open(0, 7, 0);
    connected.wait(2 * SECOND);
    assert_eq!(connected.server.metrics().resyncs, 0);
    // The controller takes something that the agent never said.
    let session = connected.sessions[0].unwrap();
    let forged = FromHost::Ends {
        sequence: 3,
        flows: vec![flow],
    };
    connected.say(session, forged);
    assert_eq!(connected.server.flows().count(), 0);
    // The agent's next message has its number and is passed over.
    let next = connected.open(0, 6, 0);
    assert_eq!(connected.server.metrics().duplicates, 1);
    connected.wait(2 * SECOND);
    assert_eq!(connected.server.metrics().resyncs, 1);
    let flows: Vec<u64> = connected
        .server
        .flows()
        .map(|(_, said, _)| said.id)
        .collect();
    assert_eq!(flows, [flow, next]);
    assert!(connected.choice(0, flow).is_some() && connected.choice(0, next).is_some());
}

#[test]
fn a_link_has_failed_when_enough_say_so() {
    let mut connected = Connected::new(options(), 8);
    let flow = connected.open(0, 7, 0);
    let link = connected.agents[0].path(flow).unwrap().links[0];
    let probed = |works| Input::Probed { link, works };
    connected.agent(0, probed(false));
    connected.wait(SECOND);
    assert_eq!(connected.choice(0, flow), Some(0));
    connected.agent(3, probed(false));
    connected.wait(SECOND);
    assert_eq!(connected.choice(0, flow), Some(1));
    // Of three ways that are left the first.
    assert_eq!(connected.agents[0].path(flow).unwrap().forth[0].ways, 3);
    assert_eq!(connected.agents[0].path(flow).unwrap().forth[0].wanted, 0);
    connected.agent(0, probed(true));
    connected.wait(SECOND);
    // It keeps its path, which is now the second of four ways.
    assert_eq!(connected.choice(0, flow), Some(1));
    assert_eq!(connected.agents[0].path(flow).unwrap().forth[0].ways, 4);
    assert_eq!(connected.agents[0].path(flow).unwrap().forth[0].wanted, 1);
    connected.serve(server::Input::LinksFail {
        links: vec![link, 4_000],
    });
    assert!(connected.server.has_failed()[link as usize]);
    assert_eq!(connected.server.metrics().strays, 1);
    connected.serve(server::Input::LinksReturn { links: vec![link] });
    assert!(!connected.server.has_failed()[link as usize]);
}

#[test]
fn an_older_controller_is_refused() {
    let mut agent = Agent::new(Options::default(), 7, Duration::ZERO);
    let session = SessionId(1);
    agent.handle(Duration::ZERO, Input::Connected { session });
    let welcome = |epoch, answers| {
        let terms = Options::default().terms;
        let message = ToHost::Welcome {
            epoch,
            answers,
            revision: 0,
            terms,
        };
        Input::Received {
            session,
            message: message.into(),
        }
    };
    let outputs = agent.handle(Duration::ZERO, welcome(6, 1));
    assert_eq!(outputs, [Output::Disconnect { session }]);
    assert_eq!((agent.epoch(), agent.metrics().stale), (7, 1));
    agent.handle(Duration::ZERO, Input::Connected { session });
    let outputs = agent.handle(Duration::ZERO, welcome(9, 2));
    assert_eq!(outputs, [Output::Remember { epoch: 9 }]);
}

#[test]
fn a_flow_that_was_refused_for_limits_is_announced_again() {
    let options = server::Options {
        most_host_flows: 1,
        ..options()
    };
    let mut connected = Connected::new(options, 8);
    let (first, second) = (connected.open(0, 7, 0), connected.open(0, 6, 0));
    assert_eq!(whys(&connected, second), [Why::Refused(Refusal::TooMany)]);
    connected.agent(0, Input::Close { flow: first });
    connected.wait(12 * SECOND);
    assert!(connected.choice(0, second).is_some());
    assert_eq!(connected.server.metrics().resyncs, 0);
}

#[test]
fn an_announcement_is_one_message_each_way() {
    let mut connected = Connected::new(options(), 8);
    connected.wait(2 * SECOND);
    let session = connected.sessions[0].unwrap();
    connected.heard.clear();
    connected.told.clear();
    let of = |(of, _): &&(u64, FromHost)| *of == session;
    let told = |connected: &Connected| -> Vec<&'static str> {
        let told = connected.told.iter().filter(|(of, _)| *of == session);
        told.map(|(_, message)| match **message {
            ToHost::Changes { .. } => "changes",
            ToHost::Taken { .. } => "taken",
            _ => "other",
        })
        .collect()
    };
    connected.open(0, 7, 0);
    connected.wait(SECOND / 2);
    // What is said in one go is one batch.
    let said: Vec<_> = connected.heard.iter().filter(of).collect();
    assert!(
        matches!(said[..], [(_, FromHost::Starts { .. })]),
        "{said:?}"
    );
    assert_eq!(told(&connected), ["changes", "taken"]);
    connected.wait(SECOND / 2);
    let said: Vec<_> = connected.heard.iter().filter(of).skip(1).collect();
    assert!(
        matches!(
            said[..],
            [
                (_, FromHost::Acknowledged { .. }),
                (_, FromHost::Beat { .. })
            ]
        ),
        "{said:?}"
    );
    assert_eq!(told(&connected), ["changes", "taken", "taken"]);
    assert_eq!(connected.server.unacknowledged(HostId(0)), Some(0));
}

#[test]
fn what_an_acknowledgement_leaves_out_comes_again() {
    let options = options();
    let mut connected = Connected::new(options, 0);
    let session = connected.session(0);
    connected.say(session, FromHost::Hello(hello()));
    for id in 1..=3 {
        let (sequence, flows) = (1 + id, vec![flow(id)]);
        connected.say(session, FromHost::Starts { sequence, flows });
    }
    let revisions = |connected: &Connected| -> Vec<u64> {
        let told = connected
            .told
            .iter()
            .filter_map(|(_, told)| told.revision());
        told.map(|(_, revision)| revision).collect()
    };
    let all = revisions(&connected);
    let [.., first, second, third] = all[..] else {
        panic!("{all:?}")
    };
    connected.told.clear();
    // It may be under way.
    let acknowledged = |revision| FromHost::Acknowledged { epoch: 1, revision };
    connected.say(session, acknowledged(first));
    assert_eq!(revisions(&connected), [0; 0]);
    connected.now += options.resend;
    connected.say(session, acknowledged(first));
    assert_eq!(revisions(&connected), [second, third]);
    // Where nothing is acknowledged, a beat is waited for, and as long again.
    connected.told.clear();
    connected.now += options.terms.beat;
    connected.serve(server::Input::Tick);
    assert_eq!(revisions(&connected), [0; 0]);
    connected.now += options.resend;
    connected.serve(server::Input::Tick);
    assert_eq!(revisions(&connected), [second, third]);
}

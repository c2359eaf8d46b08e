//! Programs at the owner of the agent, with a controller that is played.

use hocket_control::agent::Options;
use hocket_control::message::{Change, FlowName, PatternFlow, Reason, Terms};

use super::*;
use crate::datagrams::Protocol;
use crate::srv6::tests::{HASTY, Recorder, SETTINGS, start};
use crate::srv6::{Done, Settings};

fn agent_owner() -> AgentOwner {
    let (connect, _) = mpsc::unbounded_channel();
    let ports = Ports::new(20_000..=20_999);
    AgentOwner::new(Options::default(), ports, None, false, connect).unwrap()
}

fn open(agent_owner: &AgentOwner, connection: u64) -> u64 {
    let ends = Ends {
        protocol: Protocol::Tcp,
        src: [127, 0, 0, 1].into(),
        dst: [127, 0, 0, 2].into(),
        dport: 80,
    };
    let (flow, _) = agent_owner.open(ends, 1 << 30, 0, Owner::Connection(connection));
    flow
}

/// A controller welcomes the host, and says this.
fn controller(agent_owner: &AgentOwner, changes: Vec<Change>) {
    let (session, _said) = welcome(agent_owner);
    say(agent_owner, session, changes);
}

fn welcome(agent_owner: &AgentOwner) -> (SessionId, mpsc::Receiver<FromHost>) {
    let (session, mut said) = agent_owner.connected();
    let hello = said.try_recv().unwrap().sequence().unwrap();
    let terms = Terms {
        lease: Duration::from_secs(5),
        beat: Duration::from_secs(1),
        least_bytes: 1,
    };
    let welcome = ToHost::Welcome {
        epoch: 1,
        answers: hello,
        revision: 0,
        terms,
    };
    assert!(agent_owner.received(session, vec![welcome]));
    (session, said)
}

/// The first changes after the welcome.
fn say(agent_owner: &AgentOwner, session: SessionId, changes: Vec<Change>) {
    let changes = ToHost::Changes {
        epoch: 1,
        revision: 1,
        changes,
    };
    assert!(agent_owner.received(session, vec![changes]));
}

#[test]
fn a_flow_is_fixed_unless_its_program_watches() {
    let agent_owner = agent_owner();
    let (tell, _news) = mpsc::channel(8);
    let before = open(&agent_owner, 1);
    agent_owner.watch(1, tell);
    let (after, other) = (open(&agent_owner, 1), open(&agent_owner, 2));
    let fixed = agent_owner.view(|agent| {
        let flows = agent.flows().filter(|(.., opened)| opened.is_fixed);
        flows.map(|(id, ..)| id).collect::<Vec<_>>()
    });
    assert_eq!(fixed, [before, other]);
    assert!(!fixed.contains(&after));
}

#[test]
fn rates_are_told_to_programs_that_watch() {
    let agent_owner = agent_owner();
    let (tell, mut news) = mpsc::channel(8);
    agent_owner.watch(1, tell);
    let (watched, other) = (open(&agent_owner, 1), open(&agent_owner, 2));
    let rate = |flow, bytes_per_second| Change::Rate {
        flow: FlowName::Own(flow),
        bytes_per_second,
    };
    controller(&agent_owner, vec![rate(watched, 7_000), rate(other, 8_000)]);
    assert_eq!(news.try_recv(), Ok(Answer::Rate(watched, 7_000)));
    assert!(news.try_recv().is_err());
}

#[test]
fn a_job_is_of_one_program_and_ends_with_it() {
    let agent_owner = agent_owner();
    let (tell, mut news) = mpsc::channel(8);
    let flow = PatternFlow {
        src: [127, 0, 0, 1].into(),
        dst: [127, 0, 0, 2].into(),
        bytes: 1,
    };
    let register =
        |connection, job| agent_owner.register(connection, job, vec![flow], tell.clone());
    let jobs = || agent_owner.view(|agent| agent.jobs().collect::<Vec<_>>());
    register(1, 7).unwrap();
    register(1, 8).unwrap();
    assert_eq!(register(2, 7), Err("job 7 is another program's".to_owned()));
    assert!(agent_owner.tell_job(1, 7, Input::JobStarts { job: 7 }));
    assert!(!agent_owner.tell_job(2, 7, Input::JobStops { job: 7 }));
    assert_eq!(jobs(), [(7, true), (8, false)]);
    let why = hocket_control::message::Refusal::NotItsJob;
    controller(&agent_owner, vec![Change::RefuseJob { job: 8, why }]);
    let refused = "refused: not a job of this host".to_owned();
    assert_eq!(news.try_recv(), Ok(Answer::Job(8, Err(refused))));
    assert!(!agent_owner.tell_job(1, 8, Input::JobGoes { job: 8 }));
    agent_owner.gone(1);
    assert_eq!(jobs(), []);
    register(2, 7).unwrap();
}

/// An owner that leads flows by segments, the kernel, and what becomes of flows.
fn led_hub(settings: &Settings) -> (AgentOwner, Recorder, mpsc::UnboundedReceiver<Done>) {
    let kernel = Recorder::default();
    let (srv6, done) = start(&kernel, settings);
    (agent_owner().with_segments(srv6), kernel, done)
}

fn open_ipv6(agent_owner: &AgentOwner, connection: u64) -> (u64, oneshot::Receiver<Port>) {
    let host: std::net::Ipv6Addr = "::1".parse().unwrap();
    let ends = Ends {
        protocol: Protocol::Tcp,
        src: host.into(),
        dst: host.into(),
        dport: 80,
    };
    agent_owner.open(ends, 1 << 30, 0, Owner::Connection(connection))
}

/// A path by a spine, with its segment.
fn by(flow: u64, spine: u16) -> Change {
    let path = Path {
        choice: spine.into(),
        links: Vec::new(),
        forth: Vec::new(),
        back: Vec::new(),
        segments: vec![segment(spine)],
    };
    Change::Path {
        flow: FlowName::Own(flow),
        ends: None,
        path: path.into(),
        reason: Reason::New,
    }
}

fn segment(spine: u16) -> std::net::Ipv6Addr {
    std::net::Ipv6Addr::new(0xfd00, spine, 0, 0, 0, 0, 0, 1)
}

#[test]
fn a_program_has_its_port_once_the_kernel_writes_the_segments() {
    let (agent_owner, kernel, mut done) = led_hub(&SETTINGS);
    let (session, _said) = welcome(&agent_owner);
    let (flow, mut answer) = open_ipv6(&agent_owner, 1);
    assert!(!agent_owner.view(|agent| agent.flows().any(|(.., opened)| opened.is_fixed)));
    say(&agent_owner, session, vec![by(flow, 3)]);
    let told = done.blocking_recv().unwrap();
    assert!(answer.try_recv().is_err());
    agent_owner.done(told);
    let port = answer.try_recv().unwrap().unwrap();
    let led = kernel.led();
    let (packets, way) = led.first().unwrap();
    assert_eq!(
        (packets.sport, way.segments.as_slice()),
        (port, &[segment(3)][..])
    );
    agent_owner.close(1, flow);
    drop(agent_owner);
    assert!(kernel.led().is_empty());
}

#[test]
fn a_flow_that_is_led_moves_without_its_program() {
    let (agent_owner, kernel, mut done) = led_hub(&SETTINGS);
    let (tell, mut news) = mpsc::channel(8);
    agent_owner.watch(1, tell);
    let (session, _said) = welcome(&agent_owner);
    let (flow, mut answer) = open_ipv6(&agent_owner, 1);
    say(&agent_owner, session, vec![by(flow, 3), by(flow, 4)]);
    // What was asked last is what counts.
    while answer.try_recv().is_err() {
        agent_owner.done(done.blocking_recv().unwrap());
    }
    let led = kernel.led();
    let (_, way) = led.first().unwrap();
    assert_eq!((led.len(), way.segments.as_slice()), (1, &[segment(4)][..]));
    assert!(news.try_recv().is_err());
}

#[test]
fn a_flow_that_the_kernel_does_not_lead_goes_as_switches_hash_it() {
    let (agent_owner, kernel, mut done) = led_hub(&SETTINGS);
    kernel.refuse(true);
    let (session, _said) = welcome(&agent_owner);
    let (flow, mut answer) = open_ipv6(&agent_owner, 1);
    say(&agent_owner, session, vec![by(flow, 3)]);
    agent_owner.done(done.blocking_recv().unwrap());
    let why = "segments: permission denied".to_owned();
    assert_eq!(answer.try_recv().unwrap(), Err(why));
    assert_eq!(agent_owner.segments().unwrap().failed, 1);
    kernel.refuse(false);
}

#[test]
fn a_flow_is_led_once_the_kernel_does_what_it_refused() {
    let (agent_owner, kernel, mut done) = led_hub(&HASTY);
    kernel.refuse(true);
    let (tell, mut news) = mpsc::channel(8);
    agent_owner.watch(1, tell);
    let (session, _said) = welcome(&agent_owner);
    let (flow, mut answer) = open_ipv6(&agent_owner, 1);
    say(&agent_owner, session, vec![by(flow, 3)]);
    agent_owner.done(done.blocking_recv().unwrap());
    assert!(answer.try_recv().unwrap().is_err());
    kernel.refuse(false);
    agent_owner.done(done.blocking_recv().unwrap());
    let port = kernel.led().first().unwrap().0.sport;
    assert_eq!(news.try_recv(), Ok(Answer::Path(flow, Ok(port))));
}

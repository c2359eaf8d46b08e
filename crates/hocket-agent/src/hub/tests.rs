//! Programs at the hub, with a controller that is played.

use hocket_control::agent::Options;
use hocket_control::message::{Change, FlowName, PatternFlow, Terms};

use super::*;
use crate::line::Protocol;

fn hub() -> Hub {
    let (connect, _) = mpsc::unbounded_channel();
    let ports = Ports::new(20_000..=20_999);
    Hub::new(Options::default(), ports, None, false, connect).unwrap()
}

fn open(hub: &Hub, connection: u64) -> u64 {
    let ends = Ends {
        protocol: Protocol::Tcp,
        src: [127, 0, 0, 1].into(),
        dst: [127, 0, 0, 2].into(),
        dport: 80,
    };
    let (flow, _) = hub.open(ends, 1 << 30, 0, Owner::Connection(connection));
    flow
}

/// A controller welcomes the host, and says this.
fn controller(hub: &Hub, changes: Vec<Change>) {
    let (session, mut said) = hub.connected();
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
    let changes = ToHost::Changes {
        epoch: 1,
        revision: 1,
        changes,
    };
    assert!(hub.received(session, vec![welcome, changes]));
}

#[test]
fn a_flow_is_fixed_unless_its_program_watches() {
    let hub = hub();
    let (tell, _news) = mpsc::channel(8);
    let before = open(&hub, 1);
    hub.watch(1, tell);
    let (after, other) = (open(&hub, 1), open(&hub, 2));
    let fixed = hub.view(|agent| {
        let flows = agent.flows().filter(|(.., opened)| opened.is_fixed);
        flows.map(|(id, ..)| id).collect::<Vec<_>>()
    });
    assert_eq!(fixed, [before, other]);
    assert!(!fixed.contains(&after));
}

#[test]
fn rates_are_told_to_programs_that_watch() {
    let hub = hub();
    let (tell, mut news) = mpsc::channel(8);
    hub.watch(1, tell);
    let (watched, other) = (open(&hub, 1), open(&hub, 2));
    let rate = |flow, bytes_per_second| Change::Rate {
        flow: FlowName::Own(flow),
        bytes_per_second,
    };
    controller(&hub, vec![rate(watched, 7_000), rate(other, 8_000)]);
    assert_eq!(news.try_recv(), Ok(Answer::Rate(watched, 7_000)));
    assert!(news.try_recv().is_err());
}

#[test]
fn a_job_is_of_one_program_and_ends_with_it() {
    let hub = hub();
    let (tell, mut news) = mpsc::channel(8);
    let flow = PatternFlow {
        src: [127, 0, 0, 1].into(),
        dst: [127, 0, 0, 2].into(),
        bytes: 1,
    };
    let register = |connection, job| hub.register(connection, job, vec![flow], tell.clone());
    let jobs = || hub.view(|agent| agent.jobs().collect::<Vec<_>>());
    register(1, 7).unwrap();
    register(1, 8).unwrap();
    assert_eq!(register(2, 7), Err("job 7 is another program's".to_owned()));
    assert!(hub.tell_job(1, 7, Input::JobStarts { job: 7 }));
    assert!(!hub.tell_job(2, 7, Input::JobStops { job: 7 }));
    assert_eq!(jobs(), [(7, true), (8, false)]);
    let why = hocket_control::message::Refusal::NotItsJob;
    controller(&hub, vec![Change::RefuseJob { job: 8, why }]);
    let refused = "refused: not a job of this host".to_owned();
    assert_eq!(news.try_recv(), Ok(Answer::Job(8, Err(refused))));
    assert!(!hub.tell_job(1, 8, Input::JobGoes { job: 8 }));
    hub.gone(1);
    assert_eq!(jobs(), []);
    register(2, 7).unwrap();
}

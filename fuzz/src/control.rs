//! Anything said to the controller's service and to an agent, in any order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hocket_control::agent::{self, Agent};
use hocket_control::directory::{Directory, HostEntry, HostId};
use hocket_control::message::{FlowName, FromHost, NewFlow, ToHost};
use hocket_control::server::{self, Output, Server};
use hocket_control::stages::Stages;
use hocket_control::store::Saved;
use hocket_core::id::NpuId;
use hocket_core::routing::Fabric;
use hocket_core::topology::build::Clos;
use hocket_core::units::{Bandwidth, Time};

use super::draw::Draw;
use super::messages::{
    HASH, address, from_host, job_number, links, pattern, pause, record, to_host,
};

/// Says what the bytes mean to a service, to an agent, or to both of them.
pub fn run(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    match draw.below(3) {
        0 => service(&mut draw),
        1 => agent(&mut draw),
        _ => both(&mut draw),
    }
}

const HOSTS: usize = 4;

fn stages() -> Stages {
    let bandwidth = Bandwidth::from_bytes_per_second(1_000_000_000).expect("not 0");
    let clos = Clos {
        spines: 2,
        tors: 2,
        hosts_per_tor: 2,
        host_bandwidth: bandwidth,
        bandwidth,
        latency: Time::ZERO,
    }
    .build();
    let clos = clos.expect("a small network");
    let fabric = Fabric::new(&clos).expect("a Clos");
    Stages::new(fabric, &clos, |_| HASH, true)
}

fn new_service(draw: &mut Draw<'_>, saved: &Saved) -> Server {
    let entry = |host: usize| HostEntry {
        name: format!("host{host}"),
        nics: vec![(address(host as u8), NpuId(host as u32))],
    };
    let hosts = (0..HOSTS).map(entry).collect();
    let jobs = vec![(1, vec!["host0".to_owned(), "host1".to_owned()])];
    let directory = Directory::new(hosts, jobs, draw.yes()).expect("a directory");
    let mut options = server::Options {
        most_unacknowledged: draw.below(64),
        most_host_flows: draw.below(32),
        most_flows: draw.below(64),
        burst: 1 << draw.below(12),
        reporters: draw.below(3),
        recovery: Duration::from_millis(draw.byte().into()),
        keeps_log: draw.yes(),
        ..server::Options::default()
    };
    options.policy.failover = draw.yes();
    options.policy.look_ahead = draw.below(4) as u32;
    options.policy.rate_slack_ppm = draw.yes().then_some(1_000);
    Server::new(stages(), directory, options, 2, saved, Duration::ZERO)
}

fn later(now: Duration, draw: &mut Draw<'_>) -> Duration {
    now.saturating_add(pause(draw))
}

fn service(draw: &mut Draw<'_>) {
    let mut saved = Saved::default();
    (0..draw.below(4)).for_each(|_| saved.apply(&record(draw)));
    let mut server = new_service(draw, &saved);
    let mut now = Duration::ZERO;
    let mut sequences = BTreeMap::new();
    let mut asked = 0;
    while !draw.rest().is_empty() {
        now = later(now, draw);
        let session = server::SessionId(draw.below(6) as u64);
        let input = match draw.below(16) {
            0 | 1 => {
                sequences.remove(&session.0);
                server::Input::Connected {
                    host: HostId(draw.near(HOSTS)),
                    session,
                }
            }
            2 => server::Input::Disconnected { session },
            3 => server::Input::LinksFail { links: links(draw) },
            4 => server::Input::LinksReturn { links: links(draw) },
            5 => server::Input::Stored {
                record: draw.near(8).into(),
            },
            6 => server::Input::Prepare,
            7 => server::Input::Tick,
            8 => {
                asked += 1;
                match asked % 3 {
                    0 => server::Input::Unstored { record: asked },
                    1 => server::Input::Ask { question: asked },
                    _ => server::Input::Tick,
                }
            }
            _ => {
                let sequence: &mut u64 = sequences.entry(session.0).or_default();
                *sequence = near(draw, sequence.saturating_add(1));
                let message = from_host(draw, *sequence);
                server::Input::Received { session, message }
            }
        };
        let outputs = server.handle(now, input);
        check(&server, &outputs);
    }
    let log = server.take_log();
    let mut again = hocket_core::routing::controller::Controller::new(
        server.policy().fabric().clone(),
        *server.policy().options(),
    );
    if server.options().keeps_log {
        hocket_core::routing::controller::replay(&mut again, &log);
        assert_eq!(again.tally(), server.policy().tally());
        assert!(again.choices().eq(server.policy().choices()));
    }
}

/// Limits hold, and the policy has no more flows than hosts announced and jobs have.
fn check(server: &Server, outputs: &[Output]) {
    let own = server.flows().count();
    let patterns: usize = server.jobs().map(|(_, _, count, _)| count).sum();
    assert!(server.policy().flow_count() <= own + patterns);
    assert!(own + patterns <= server.options().most_flows.max(patterns));
    for output in outputs {
        if let Output::Send { message, .. } = output {
            assert!(
                message
                    .revision()
                    .is_none_or(|(epoch, _)| epoch == server.epoch())
            );
        }
    }
}

fn agent(draw: &mut Draw<'_>) {
    let mut agent = Agent::new(
        agent::Options::default(),
        draw.near(4).into(),
        Duration::ZERO,
    );
    let mut now = Duration::ZERO;
    let mut revision = 0;
    while !draw.rest().is_empty() {
        now = later(now, draw);
        let session = agent::SessionId(draw.below(3) as u64);
        let input = match draw.below(8) {
            0 => agent::Input::Connected { session },
            1 => agent::Input::Lost { session },
            2 => agent::Input::Unreachable,
            3 | 4 => {
                revision = near(draw, u64::saturating_add(revision, 1));
                let message = Arc::new(to_host(draw, revision));
                agent::Input::Received { session, message }
            }
            _ => {
                program(draw, &mut agent, now);
                continue;
            }
        };
        agent.handle(now, input);
        let open = agent.flows().filter(|(id, ..)| agent.path(*id).is_some());
        for (id, name, _) in open {
            assert!(
                name.is_some(),
                "flow {id} is led, and the controller does not know it"
            );
            assert_eq!(agent.path(id), agent.given(id));
        }
    }
}

/// A program of a host does something; gives what the agent asks for.
fn program(draw: &mut Draw<'_>, agent: &mut Agent, now: Duration) -> Vec<agent::Output> {
    let flow = draw.near(16).into();
    let job = job_number(draw);
    let input = match draw.below(16) {
        0..4 => {
            let opened = NewFlow {
                job,
                src: address(draw.below(5) as u8),
                dst: address(draw.below(5) as u8),
                bytes: draw.size() << 10 | 1,
                is_fixed: draw.yes(),
            };
            return agent.open(now, opened).1;
        }
        4 => agent::Input::Progress {
            flow,
            left: draw.size(),
        },
        5 => agent::Input::Close { flow },
        6 => agent::Input::JobComes {
            job,
            pattern: pattern(draw),
        },
        7 => agent::Input::JobStarts { job },
        8 => agent::Input::JobStops { job },
        9 => agent::Input::JobGoes { job },
        10 => agent::Input::Probed {
            link: draw.near(16),
            works: draw.yes(),
        },
        11 => agent::Input::Measured {
            flow,
            loss_ppm: draw.near(8).saturating_mul(1_000),
            rtt: pause(draw),
        },
        12 => agent::Input::Flush,
        13 => agent::Input::PathMeasured {
            flow,
            loss_ppm: draw.near(8).saturating_mul(100_000),
            rtt: draw.yes().then(|| pause(draw)),
        },
        _ => agent::Input::Tick,
    };
    agent.handle(now, input)
}

/// A service and an agent of host 0, whose messages are carried in any order, or not at all; then in order.
fn both(draw: &mut Draw<'_>) {
    let mut pair = Pair {
        server: new_service(draw, &Saved::default()),
        agent: Agent::new(agent::Options::default(), 0, Duration::ZERO),
        now: Duration::ZERO,
        session: 0,
        forth: Vec::new(),
        back: Vec::new(),
    };
    while !draw.rest().is_empty() {
        pair.now = later(pair.now, draw);
        match draw.below(8) {
            0 => pair.connect(),
            1 => pair.hear(agent::Input::Tick),
            2 => pair.serve(server::Input::Tick),
            3 if !pair.forth.is_empty() => {
                let message = pair.forth.remove(draw.below(pair.forth.len().min(256)));
                pair.carry_forth(message);
            }
            4 if !pair.back.is_empty() => {
                let message = pair.back.remove(draw.below(pair.back.len().min(256)));
                pair.carry_back(message);
            }
            5 if draw.yes() => {
                pair.forth.pop();
                pair.back.pop();
            }
            _ => {
                let outputs = program(draw, &mut pair.agent, pair.now);
                pair.obey(outputs);
            }
        }
    }
    pair.settle();
}

struct Pair {
    server: Server,
    agent: Agent,
    now: Duration,
    session: u64,
    forth: Vec<(u64, FromHost)>,
    back: Vec<(u64, Arc<ToHost>)>,
}

impl Pair {
    fn connect(&mut self) {
        let lost = agent::SessionId(self.session);
        self.hear(agent::Input::Lost { session: lost });
        self.session += 1;
        let id = server::SessionId(self.session);
        let host = HostId(0);
        self.serve(server::Input::Connected { host, session: id });
        let session = agent::SessionId(self.session);
        self.hear(agent::Input::Connected { session });
    }

    fn hear(&mut self, input: agent::Input) {
        let outputs = self.agent.handle(self.now, input);
        self.obey(outputs);
    }

    fn obey(&mut self, outputs: Vec<agent::Output>) {
        for output in outputs {
            if let agent::Output::Send { session, message } = output {
                self.forth.push((session.0, message));
            }
        }
    }

    fn serve(&mut self, input: server::Input) {
        for output in self.server.handle(self.now, input) {
            match output {
                Output::Send { session, message } => self.back.push((session.0, message)),
                Output::Record { number, .. } => {
                    self.serve(server::Input::Stored { record: number });
                }
                Output::Close { session, .. } => {
                    let session = agent::SessionId(session.0);
                    self.hear(agent::Input::Lost { session });
                }
                Output::Answer { .. } | Output::Audit(_) => {}
            }
        }
    }

    fn carry_forth(&mut self, (session, message): (u64, FromHost)) {
        let session = server::SessionId(session);
        self.serve(server::Input::Received { session, message });
    }

    fn carry_back(&mut self, (session, message): (u64, Arc<ToHost>)) {
        let session = agent::SessionId(session);
        self.hear(agent::Input::Received { session, message });
    }

    /// With a new session and no more faults both have the same flows.
    fn settle(&mut self) {
        self.forth.clear();
        self.back.clear();
        // Whatever it may not say is allowed by then.
        self.now = self.now.saturating_add(Duration::from_secs(3_600));
        self.connect();
        for _ in 0..64 {
            while !self.forth.is_empty() || !self.back.is_empty() {
                let forth: Vec<_> = self.forth.drain(..).collect();
                forth
                    .into_iter()
                    .for_each(|message| self.carry_forth(message));
                let back: Vec<_> = self.back.drain(..).collect();
                back.into_iter()
                    .for_each(|message| self.carry_back(message));
            }
            self.now = self.now.saturating_add(Duration::from_millis(10));
            self.hear(agent::Input::Tick);
        }
        if !self.agent.is_up() {
            // The service may leave nothing unacknowledged, or much too little be said.
            return;
        }
        let theirs: Vec<u64> = self.server.flows().map(|(_, said, _)| said.id).collect();
        let is_own = |(id, name, _): (u64, Option<FlowName>, &NewFlow)| {
            matches!(name, Some(FlowName::Own(_))).then_some(id)
        };
        let ours: Vec<u64> = self.agent.flows().filter_map(is_own).collect();
        assert_eq!(ours, theirs);
    }
}

/// A number that is mostly this one.
fn near(draw: &mut Draw<'_>, number: u64) -> u64 {
    match draw.byte() {
        255 => draw.word(),
        254 => number.saturating_sub(1),
        253 => number.saturating_add(1),
        _ => number,
    }
}

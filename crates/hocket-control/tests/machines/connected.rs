//! A server and agents beside each other: what one says the other hears at once, in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hocket_control::agent::{self, Agent};
use hocket_control::directory::HostId;
use hocket_control::message::{FromHost, Hello, HostFlow, NewFlow, ToHost, VERSION};
use hocket_control::server::{self, Close, Output, Server, SessionId};
use hocket_control::store::{Record, Saved};

use super::site::{address, directory, stages};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) struct Connected {
    pub now: Duration,
    pub server: Server,
    pub agents: Vec<Agent>,
    /// By host: its session.
    pub sessions: Vec<Option<u64>>,
    last: u64,
    to_server: VecDeque<(u64, FromHost)>,
    to_hosts: VecDeque<(u64, Arc<ToHost>)>,
    /// What agents said: session and message.
    pub heard: Vec<(u64, FromHost)>,
    /// What the server told hosts: session and message.
    pub told: Vec<(u64, Arc<ToHost>)>,
    /// What agents asked for: host and output; messages are left out.
    pub asked: Vec<(u32, agent::Output)>,
    pub closed: Vec<(u64, Close)>,
    pub records: Vec<(u64, Record)>,
    /// Answers to questions, and whether all was stored.
    pub answers: Vec<(u64, bool)>,
    /// Whether records are stored at once.
    pub stores: bool,
}

/// What a host says first.
pub(crate) fn hello() -> Hello {
    Hello {
        version: VERSION,
        sequence: 1,
        ..Hello::default()
    }
}

/// A flow of host 0 that it announces itself.
pub(crate) fn flow(id: u64) -> HostFlow {
    HostFlow {
        id,
        opened: opened(0, 7),
        held: None,
    }
}

/// What a program opens from one host to another.
pub(crate) fn opened(src: u32, dst: u32) -> NewFlow {
    NewFlow {
        job: 0,
        src: address(src),
        dst: address(dst),
        bytes: 1 << 30,
        is_fixed: false,
    }
}

pub(crate) fn options() -> server::Options {
    server::Options {
        keeps_log: true,
        ..server::Options::default()
    }
}

pub(crate) fn server(options: server::Options, epoch: u64, saved: &Saved, now: Duration) -> Server {
    Server::new(stages(), directory(), options, epoch, saved, now)
}

/// An agent of a host.
pub(crate) fn agent(host: u32, takes_segments: bool) -> Agent {
    let options = agent::Options {
        seed: host.into(),
        takes_segments,
        ..agent::Options::default()
    };
    Agent::new(options, 0, Duration::ZERO)
}

impl Connected {
    /// A server, and agents of the first so many hosts that are welcomed by it.
    pub(crate) fn new(options: server::Options, hosts: u32) -> Self {
        let server = server(options, 1, &Saved::default(), Duration::ZERO);
        let mut connected = Self::of(server, (0..hosts).map(|host| agent(host, false)).collect());
        (0..hosts).for_each(|host| connected.connect(host));
        connected
    }

    /// A server and agents, which have no sessions yet.
    pub(crate) fn of(server: Server, agents: Vec<Agent>) -> Self {
        Self {
            now: Duration::ZERO,
            server,
            sessions: vec![None; agents.len()],
            agents,
            last: 0,
            to_server: VecDeque::new(),
            to_hosts: VecDeque::new(),
            heard: Vec::new(),
            told: Vec::new(),
            asked: Vec::new(),
            closed: Vec::new(),
            records: Vec::new(),
            answers: Vec::new(),
            stores: true,
        }
    }

    /// A host opens a session.
    pub(crate) fn connect(&mut self, host: u32) {
        let session = self.session(host);
        self.sessions[host as usize] = Some(session);
        let session = agent::SessionId(session);
        self.agent(host, agent::Input::Connected { session });
    }

    /// A session of a host at the server, whose agent knows nothing of it.
    pub(crate) fn session(&mut self, host: u32) -> u64 {
        self.last += 1;
        let session = SessionId(self.last);
        let host = HostId(host);
        self.serve(server::Input::Connected { host, session });
        self.last
    }

    /// A session's connection is gone, as both ends notice.
    pub(crate) fn cut(&mut self, host: u32) {
        if let Some(session) = self.sessions[host as usize].take() {
            let id = SessionId(session);
            self.serve(server::Input::Disconnected { session: id });
            let session = agent::SessionId(session);
            self.agent(host, agent::Input::Lost { session });
        }
    }

    /// Tells an agent something; all is heard that follows from it.
    pub(crate) fn agent(&mut self, host: u32, input: agent::Input) {
        let outputs = self.agents[host as usize].handle(self.now, input);
        self.obey(host, outputs);
        self.settle();
    }

    /// A program opens a flow, which is announced.
    pub(crate) fn open(&mut self, host: u32, dst: u32, job: u32) -> u64 {
        self.open_as(host, dst, job, false)
    }

    /// A program opens a flow that may be fixed, which is announced.
    pub(crate) fn open_as(&mut self, host: u32, dst: u32, job: u32, is_fixed: bool) -> u64 {
        let opened = NewFlow {
            job,
            is_fixed,
            ..opened(host, dst)
        };
        let (flow, outputs) = self.agents[host as usize].open(self.now, opened);
        self.obey(host, outputs);
        self.agent(host, agent::Input::Flush);
        flow
    }

    fn obey(&mut self, host: u32, outputs: Vec<agent::Output>) {
        for output in outputs {
            match output {
                agent::Output::Send { session, message } => {
                    self.heard.push((session.0, message.clone()));
                    self.to_server.push_back((session.0, message));
                }
                agent::Output::Disconnect { session } => {
                    let session = SessionId(session.0);
                    self.sessions[host as usize] = None;
                    self.serve(server::Input::Disconnected { session });
                    self.asked.push((host, output));
                }
                output => self.asked.push((host, output)),
            }
        }
    }

    /// Tells the server something; all is heard that follows from it.
    pub(crate) fn serve(&mut self, input: server::Input) {
        let outputs = self.server.handle(self.now, input);
        for output in outputs {
            match output {
                Output::Send { session, message } => {
                    self.told.push((session.0, message.clone()));
                    self.to_hosts.push_back((session.0, message));
                }
                Output::Close { session, why } => self.closed.push((session.0, why)),
                Output::Record { number, record } => {
                    self.records.push((number, record));
                    if self.stores {
                        self.serve(server::Input::Stored { record: number });
                    }
                }
                Output::Answer {
                    question,
                    is_stored,
                } => self.answers.push((question, is_stored)),
                Output::Audit(_) => {}
            }
        }
        self.settle();
    }

    /// A message comes from a session, whoever made it.
    pub(crate) fn say(&mut self, session: u64, message: FromHost) {
        let session = SessionId(session);
        self.serve(server::Input::Received { session, message });
    }

    fn settle(&mut self) {
        while let Some((session, message)) = self.to_server.pop_front() {
            self.say(session, message);
        }
        while let Some((session, message)) = self.to_hosts.pop_front() {
            let of = self.sessions.iter().position(|&open| open == Some(session));
            let Some(host) = of else { continue };
            let session = agent::SessionId(session);
            self.agent(host as u32, agent::Input::Received { session, message });
        }
    }

    /// Time passes, and all that have a session hear of it, each tenth of a second.
    pub(crate) fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now += SECOND / 10;
            for host in 0..self.agents.len() as u32 {
                if self.sessions[host as usize].is_some() {
                    self.agent(host, agent::Input::Tick);
                }
            }
            self.serve(server::Input::Tick);
        }
    }

    /// The choice that a flow takes.
    pub(crate) fn choice(&self, host: u32, flow: u64) -> Option<u32> {
        Some(self.agents[host as usize].path(flow)?.choice)
    }
}

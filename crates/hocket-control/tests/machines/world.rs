//! Two servers, one of them active, eight hosts, and a network between them that is a queue of its own.
//!
//! A session is a stream that may lose, double and reorder what it carries, which is more than connections
//! do. Who is told of a session that it does not know says so, as TCP does.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hocket_control::agent::{self, Agent};
use hocket_control::directory::{Directory, HostId};
use hocket_control::message::{FromHost, Hello, NewFlow, ToHost};
use hocket_control::server::{self, Server};
use hocket_control::stages::Stages;
use hocket_control::store::{Store, StoreError};

use super::check::Checks;
use super::disk::{Folder, Random, Shared};
use super::faults::{Fault, HOSTS, Millis, SERVERS, What};
use super::programs::Programs;
use super::site::{directory, stages};

/// Machines hear so often that time has passed.
const TICK: Millis = 50;

/// What happens next somewhere.
#[derive(Clone, Debug)]
pub(super) enum Happens {
    Tick(Machine),
    Commit(u32),
    Work(u32),
    Begins(usize),
    Ends(usize),
    Elect,
    Connects {
        host: u32,
        server: u32,
        session: u64,
    },
    /// What came of it.
    Connected {
        host: u32,
        session: u64,
        is_up: bool,
    },
    ToServer(u64, FromHost),
    ToHost(u64, Arc<ToHost>),
    /// An end does not know a session.
    Reset(u64, Machine),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    Host(u32),
    Server(u32),
}

/// A host: its agent while it is up, what it remembers, and its clock.
pub(crate) struct HostBox {
    pub agent: Option<Agent>,
    pub remembered: u64,
    pub(super) life: u64,
    pub(super) skew: [u64; 2],
}

/// A server: the machine while it is active.
pub(crate) struct ServerBox {
    pub server: Option<Server>,
    pub(super) store: Option<Store<Shared>>,
    pub(super) is_down: bool,
    pub(super) skew: [u64; 2],
}

pub(crate) struct World {
    pub now: Millis,
    order: u64,
    queue: BTreeMap<(Millis, u64), Happens>,
    pub random: Random,
    pub hosts: Vec<HostBox>,
    pub servers: Vec<ServerBox>,
    /// Sessions: host, its life, and server.
    sessions: BTreeMap<u64, (u32, u64, u32)>,
    last_session: u64,
    /// Those that reached their server.
    connected: BTreeSet<u64>,
    /// When the last message of a session arrives, by way.
    arrives: BTreeMap<(u64, bool), Millis>,
    last_server: Vec<u32>,
    pub(super) faults: Vec<Fault>,
    pub(super) is_on: Vec<bool>,
    pub(super) folder: Rc<RefCell<Folder>>,
    /// Who has the lock, its epoch, and when it is free.
    pub holder: Option<u32>,
    pub(super) epoch: u64,
    pub(super) free_at: Millis,
    /// What operators said and no active server has heard: link, whether it failed.
    pub(super) said: Vec<(u32, bool)>,
    pub(super) stages: Stages,
    pub(super) directory: Directory,
    pub programs: Programs,
    pub checks: Checks,
    /// Whether servers do not see which epochs hosts have obeyed.
    is_blind: bool,
}

impl World {
    pub(crate) fn new(seed: u64, faults: Vec<Fault>) -> Self {
        let mut random = Random(seed ^ 0x5eed);
        // Up to one percent fast, and begun at another time.
        let mut skew = || [random.below(100_000), 1_000 + random.below(11)];
        let hosts = (0..HOSTS).map(|_| HostBox {
            agent: None,
            remembered: 0,
            life: 0,
            skew: skew(),
        });
        let hosts = hosts.collect();
        let servers = (0..SERVERS).map(|_| ServerBox {
            server: None,
            store: None,
            is_down: false,
            skew: skew(),
        });
        let servers = servers.collect();
        let mut world = Self {
            now: 0,
            order: 0,
            queue: BTreeMap::new(),
            hosts,
            servers,
            sessions: BTreeMap::new(),
            last_session: 0,
            connected: BTreeSet::new(),
            arrives: BTreeMap::new(),
            last_server: vec![0; HOSTS as usize],
            is_on: vec![false; faults.len()],
            folder: Rc::default(),
            holder: None,
            epoch: 0,
            free_at: 0,
            said: Vec::new(),
            stages: stages(),
            directory: directory(),
            programs: Programs::new(seed),
            checks: Checks::default(),
            is_blind: Random(seed ^ 0xb11d).one_in(2),
            random,
            faults,
        };
        for host in 0..HOSTS {
            world.start_host(host);
            let first = world.random.below(TICK);
            world.after(first, Happens::Tick(Machine::Host(host)));
            world.after(10, Happens::Work(host));
        }
        for server in 0..SERVERS {
            world.after(7, Happens::Tick(Machine::Server(server)));
            world.after(9, Happens::Commit(server));
        }
        world.after(0, Happens::Elect);
        for (fault, index) in world.faults.clone().iter().zip(0..) {
            world.at(fault.from, Happens::Begins(index));
            world.at(fault.to, Happens::Ends(index));
        }
        world
    }

    /// Runs up to a time, or until something is wrong.
    pub(crate) fn run(&mut self, until: Millis) -> Result<(), String> {
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > until {
                break;
            }
            let ((now, _), happens) = entry.remove_entry();
            (self.now, self.checks.now) = (now, now);
            self.happen(happens);
            self.checks.verdict(now)?;
        }
        self.now = until;
        Ok(())
    }

    fn at(&mut self, time: Millis, happens: Happens) {
        self.order += 1;
        self.queue.insert((time, self.order), happens);
    }

    pub(super) fn after(&mut self, pause: Millis, happens: Happens) {
        self.at(self.now + pause, happens);
    }

    pub(super) fn clock(&self, skew: [u64; 2]) -> Duration {
        Duration::from_micros(skew[0] + self.now * skew[1])
    }

    fn happen(&mut self, happens: Happens) {
        match happens {
            Happens::Tick(machine) => {
                self.after(TICK, Happens::Tick(machine));
                match machine {
                    Machine::Host(host) => self.tell_host(host, agent::Input::Tick),
                    Machine::Server(server) => {
                        if self.random.one_in(8) {
                            self.tell_server(server, server::Input::Prepare);
                        }
                        self.tell_server(server, server::Input::Tick);
                    }
                }
            }
            Happens::Commit(server) => {
                self.after(20, Happens::Commit(server));
                self.commit(server);
            }
            Happens::Work(host) => self.work(host),
            Happens::Begins(fault) => self.begin(fault),
            Happens::Ends(fault) => self.end(fault),
            Happens::Elect => {
                self.after(20, Happens::Elect);
                self.elect();
            }
            happens => self.arrive(happens),
        }
    }

    /// Something comes out of the network.
    fn arrive(&mut self, happens: Happens) {
        match happens {
            Happens::Connects {
                host,
                server,
                session,
            } => self.connects(host, server, session),
            Happens::Connected {
                host,
                session,
                is_up,
            } => {
                let session = agent::SessionId(session);
                let input = match is_up {
                    true => agent::Input::Connected { session },
                    false => agent::Input::Unreachable,
                };
                self.tell_host(host, input);
            }
            Happens::ToServer(id, message) => {
                let (_, _, server) = self.sessions[&id];
                let session = server::SessionId(id);
                if self.knows_session(server, id) {
                    let message = self.at_server(message);
                    self.checks.heard_by_server(id, &message);
                    self.tell_server(server, server::Input::Received { session, message });
                } else {
                    self.carry(id, false, Happens::Reset(id, Machine::Server(server)));
                }
            }
            Happens::ToHost(id, message) => {
                let (host, life, _) = self.sessions[&id];
                if self.hosts[host as usize].life != life {
                    return self.carry(id, true, Happens::Reset(id, Machine::Host(host)));
                }
                let session = agent::SessionId(id);
                for (job, pattern) in self.checks.heard_by_host(host, id, &message) {
                    if !self.is_stored(job, &pattern) {
                        self.checks
                            .wrong(format!("job {job} is taken and not stored"));
                    }
                }
                self.tell_host(host, agent::Input::Received { session, message });
            }
            Happens::Reset(id, from) => self.reset(id, from),
            _ => {}
        }
    }

    /// What a server hears. In some runs servers do not see which epoch a host has obeyed: hosts are then to know by
    /// themselves.
    fn at_server(&self, message: FromHost) -> FromHost {
        match message {
            FromHost::Hello(hello) if self.is_blind => FromHost::Hello(Hello { epoch: 0, ..hello }),
            message => message,
        }
    }

    fn knows_session(&self, server: u32, id: u64) -> bool {
        self.checks.is_open(id) && self.servers[server as usize].server.is_some()
    }

    fn reset(&mut self, id: u64, from: Machine) {
        let (host, life, server) = self.sessions[&id];
        match from {
            Machine::Server(_) if self.hosts[host as usize].life == life => {
                let session = agent::SessionId(id);
                self.tell_host(host, agent::Input::Lost { session });
            }
            Machine::Host(_) if self.checks.is_open(id) => {
                let session = server::SessionId(id);
                self.checks.closed(id);
                self.tell_server(server, server::Input::Disconnected { session });
            }
            _ => {}
        }
    }

    /// Puts something on its way between the ends of a session.
    pub(super) fn carry(&mut self, id: u64, to_server: bool, happens: Happens) {
        let (host, _, server) = self.sessions[&id];
        let mut copies = 1;
        let mut delay = 1 + self.random.below(3);
        let mut is_late = false;
        for (fault, is_on) in self.faults.iter().zip(&self.is_on) {
            match fault.what {
                _ if !is_on => {}
                What::Parted {
                    host: of,
                    server: and,
                    ways,
                } if (of, and) == (host, server) && ways[usize::from(to_server)] => return,
                What::Lossy {
                    host: of,
                    lost,
                    doubled,
                    late,
                } if of == host => {
                    let drawn = self.random.below(100) as u32;
                    if drawn < lost {
                        return;
                    }
                    copies += usize::from(drawn < lost + doubled);
                    if (self.random.below(100) as u32) < late {
                        delay += self.random.below(60);
                        is_late = true;
                    }
                }
                _ => {}
            }
        }
        let last = self.arrives.entry((id, to_server)).or_default();
        if !is_late {
            // In order, but for what is late or doubled.
            *last = (*last).max(self.now + delay);
            delay = *last - self.now;
        }
        for copy in 0..copies {
            let pause = delay + copy as u64 * self.random.below(30);
            self.after(pause, happens.clone());
        }
    }

    fn connects(&mut self, host: u32, server: u32, session: u64) {
        if !self.connected.insert(session) {
            // Doubled on its way: a connection is made once.
            return;
        }
        let is_up = self.servers[server as usize].server.is_some();
        if is_up {
            self.checks.opened(host, session, server);
            self.tell_server(
                server,
                server::Input::Connected {
                    host: HostId(host),
                    session: server::SessionId(session),
                },
            );
        }
        self.carry(
            session,
            false,
            Happens::Connected {
                host,
                session,
                is_up,
            },
        );
    }

    /// Tells a host's agent something, and does what it says.
    pub(crate) fn tell_host(&mut self, host: u32, input: agent::Input) {
        let clock = self.clock(self.hosts[host as usize].skew);
        let Some(agent) = &mut self.hosts[host as usize].agent else {
            return;
        };
        let outputs = agent.handle(clock, input);
        self.obey_host(host, outputs);
    }

    /// A program of a host opens a flow.
    pub(crate) fn open(&mut self, host: u32, opened: NewFlow) -> Option<u64> {
        let clock = self.clock(self.hosts[host as usize].skew);
        let agent = self.hosts[host as usize].agent.as_mut()?;
        let (id, outputs) = agent.open(clock, opened);
        self.obey_host(host, outputs);
        Some(id)
    }

    fn obey_host(&mut self, host: u32, outputs: Vec<agent::Output>) {
        let is_idle = outputs.is_empty();
        for output in outputs {
            match output {
                agent::Output::Connect => {
                    let server = &mut self.last_server[host as usize];
                    *server = (*server + 1) % SERVERS;
                    let server = *server;
                    self.last_session += 1;
                    let session = self.last_session;
                    let life = self.hosts[host as usize].life;
                    self.sessions.insert(session, (host, life, server));
                    self.carry(
                        session,
                        true,
                        Happens::Connects {
                            host,
                            server,
                            session,
                        },
                    );
                }
                agent::Output::Send { session, message } => {
                    self.checks.said_by_host(host, session.0, &message);
                    self.carry(session.0, true, Happens::ToServer(session.0, message));
                }
                agent::Output::Disconnect { session } => {
                    let reset = Happens::Reset(session.0, Machine::Host(host));
                    self.carry(session.0, true, reset);
                }
                agent::Output::Remember { epoch } => {
                    self.hosts[host as usize].remembered = epoch;
                }
                agent::Output::Steer { .. }
                | agent::Output::Ecmp { .. }
                | agent::Output::Rate { .. } => {}
                agent::Output::JobRefused { job, .. } => self.programs.refused(host, job),
            }
        }
        if let Some(agent) = &self.hosts[host as usize].agent
            && (!is_idle || self.checks.is_welcomed(host, agent))
        {
            self.checks.uses(host, agent);
        }
    }

    /// Tells an active server something, and does what it says.
    pub(super) fn tell_server(&mut self, at: u32, input: server::Input) {
        let clock = self.clock(self.servers[at as usize].skew);
        let Some(server) = &mut self.servers[at as usize].server else {
            return;
        };
        let outputs = server.handle(clock, input);
        for output in outputs {
            match output {
                server::Output::Send { session, message } => {
                    if let Some(server) = &self.servers[at as usize].server {
                        self.checks.said_by_server(session.0, &message, server);
                    }
                    self.carry(session.0, false, Happens::ToHost(session.0, message));
                }
                server::Output::Close { session, .. } => {
                    self.checks.closed(session.0);
                    let reset = Happens::Reset(session.0, Machine::Server(at));
                    self.carry(session.0, false, reset);
                }
                server::Output::Record { number, record } => {
                    if let Some(store) = &mut self.servers[at as usize].store {
                        assert_eq!(store.append(&record), number);
                    }
                }
                server::Output::Answer {
                    question,
                    is_stored: true,
                } => self.answered(question),
                server::Output::Answer { .. } => {}
                server::Output::Audit(server::Audit::Went(host, _)) => {
                    if let Some(server) = &self.servers[at as usize].server {
                        self.checks.lost(host, server);
                    }
                }
                server::Output::Audit(server::Audit::LinksFailed(_)) => {
                    if let Some(server) = &self.servers[at as usize].server {
                        self.checks.links_failed(server);
                    }
                }
                server::Output::Audit(_) => {}
            }
        }
    }

    /// Operators are told that what they said is kept: whoever took over now must know of it.
    fn answered(&mut self, question: u64) {
        if let Some((link, has_failed)) = self.checks.answered(question) {
            let found = self.found();
            if found.is_none_or(|found| found.failed.contains(&link) != has_failed) {
                let why = format!("operators are told that link {link} is kept, and it is not");
                self.checks.wrong(why);
            }
        }
    }

    fn commit(&mut self, at: u32) {
        let Some(store) = &mut self.servers[at as usize].store else {
            return;
        };
        match store.commit() {
            Ok(record) => self.tell_server(at, server::Input::Stored { record }),
            Err(StoreError::Deposed(_)) => self.stop_server(at),
            Err(_) => {}
        }
    }

    fn work(&mut self, host: u32) {
        if self.now < super::faults::BUSY {
            let pause = 20 + self.random.below(120);
            self.after(pause, Happens::Work(host));
            Programs::work(self, host);
        }
    }
}

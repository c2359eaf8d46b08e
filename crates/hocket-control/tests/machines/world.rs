//! Two servers, one of them active, eight hosts, and a network between them that is a queue of its own.
//!
//! A session is a stream that may lose, double and reorder what it carries, which is more than connections
//! do. Who is told of a session that it does not know says so, as TCP does.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hocket_control::agent::{self, Agent};
use hocket_control::directory::{Directory, HostEntry, HostId};
use hocket_control::message::{FromHost, Terms, ToHost};
use hocket_control::server::{self, Server};
use hocket_control::stages::Stages;
use hocket_control::store::{OnDamage, Store, StoreError};
use hocket_core::id::{DeviceId, NpuId};
use hocket_core::routing::Fabric;
use hocket_core::routing::steering::{Algorithm, Fields, Policy, SwitchHash};
use hocket_core::topology::build::{self, Clos};
use hocket_core::units::{Bandwidth, Time};

use super::check::Checks;
use super::disk::{Folder, Random, Shared};
use super::faults::{Fault, HOSTS, Millis, SERVERS, What};
use super::programs::Programs;

pub const BEAT: Duration = Duration::from_millis(500);
/// How long a lock outlives its holder.
const LOCK: Millis = 200;
/// Machines hear so often that time has passed.
const TICK: Millis = 50;

/// What happens next somewhere.
#[derive(Clone, Debug)]
enum Happens {
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
pub enum Machine {
    Host(u32),
    Server(u32),
}

/// A host: its agent while it is up, what it remembers, and its clock.
pub struct HostBox {
    pub agent: Option<Agent>,
    pub remembered: u64,
    life: u64,
    skew: [u64; 2],
}

/// A server: the machine while it is active.
pub struct ServerBox {
    pub server: Option<Server>,
    store: Option<Store<Shared>>,
    is_down: bool,
    skew: [u64; 2],
}

pub struct World {
    pub trace: Option<u32>,
    pub now: Millis,
    order: u64,
    queue: BTreeMap<(Millis, u64), Happens>,
    pub random: Random,
    pub hosts: Vec<HostBox>,
    pub servers: Vec<ServerBox>,
    /// Sessions: host, its life, and server.
    sessions: BTreeMap<u64, (u32, u64, u32)>,
    last_session: u64,
    /// When the last message of a session arrives, by way.
    arrives: BTreeMap<(u64, bool), Millis>,
    last_server: Vec<u32>,
    faults: Vec<Fault>,
    is_on: Vec<bool>,
    folder: Rc<RefCell<Folder>>,
    /// Who has the lock, its epoch, and when it is free.
    pub holder: Option<u32>,
    epoch: u64,
    free_at: Millis,
    /// What operators said and no active server has heard: link, whether it failed.
    said: Vec<(u32, bool)>,
    stages: Stages,
    directory: Directory,
    pub programs: Programs,
    pub checks: Checks,
}

pub fn address(host: u32) -> IpAddr {
    [10, 0, 0, host as u8 + 1].into()
}

/// Options of the servers: beats are short, so that runs are.
pub fn server_options(random: &mut Random) -> server::Options {
    let mut options = server::Options {
        terms: Terms {
            lease: Duration::from_millis(1_200),
            beat: BEAT,
            least_bytes: 1_000,
        },
        grace: Duration::from_millis(400),
        recovery: Duration::from_millis(900),
        resend: Duration::from_millis(100),
        most_host_flows: 24,
        ..server::Options::default()
    };
    options.policy.rate_slack_ppm = random.one_in(3).then_some(100_000);
    options.policy.look_ahead = if random.one_in(3) { 4 } else { 0 };
    options.policy.failover = random.one_in(3);
    options
}

fn agent_options(seed: u64) -> agent::Options {
    agent::Options {
        patience: Duration::from_millis(20),
        resend: Duration::from_millis(100),
        backoff: [Duration::from_millis(10), Duration::from_millis(100)],
        connect: Duration::from_millis(250),
        hold: Duration::from_millis(200),
        retry: Duration::from_millis(300),
        seed,
        ..agent::Options::default()
    }
}

/// Four spines, four ToRs, two hosts at each.
pub fn stages() -> Stages {
    let bandwidth = Bandwidth::from_bytes_per_second(12_500_000_000).unwrap();
    let topology = build::clos(&Clos {
        spines: 4,
        tors: 4,
        hosts_per_tor: 2,
        host_bandwidth: bandwidth,
        fabric_bandwidth: bandwidth,
        latency: Time::ZERO,
    });
    let topology = topology.unwrap();
    let hash = |device: DeviceId| SwitchHash {
        algorithm: Algorithm::Linux(Policy::Custom(Fields::FIVE)),
        seed: device.0,
        offset: 0,
    };
    Stages::new(Fabric::new(&topology).unwrap(), &topology, hash, true)
}

/// Host `i` has NIC `i`; jobs 1 and 2 are of all hosts, and 3 is of host 0 alone.
pub fn directory() -> Directory {
    let name = |host: u32| format!("host{host}");
    let hosts = (0..HOSTS).map(|host| HostEntry {
        name: name(host),
        nics: vec![(address(host), NpuId(host))],
    });
    let all: Vec<String> = (0..HOSTS).map(name).collect();
    let jobs = vec![(1, all.clone()), (2, all), (3, vec![name(0)])];
    Directory::new(hosts.collect(), jobs, false).unwrap()
}

/// The links between switches.
pub fn links(stages: &Stages) -> Vec<u32> {
    let fabric = stages.fabric();
    let mut links = Vec::new();
    for (src, dst) in [(0, 1), (1, 2), (2, 3), (3, 0)] {
        for choice in 0..4 {
            fabric.route(src, dst, choice, &mut links);
        }
    }
    links.sort_unstable();
    links.dedup();
    links.iter().map(|link| link.0).collect()
}

impl World {
    pub fn new(seed: u64, faults: Vec<Fault>) -> Self {
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
            trace: None,
            now: 0,
            order: 0,
            queue: BTreeMap::new(),
            hosts,
            servers,
            sessions: BTreeMap::new(),
            last_session: 0,
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
    pub fn run(&mut self, until: Millis) -> Result<(), String> {
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > until {
                break;
            }
            let ((now, _), happens) = entry.remove_entry();
            self.now = now;
            if let Some(host) = self.trace {
                let of = match &happens {
                    Happens::Tick(_) | Happens::Commit(_) | Happens::Elect | Happens::Work(_) => {
                        None
                    }
                    Happens::Begins(_) | Happens::Ends(_) => Some(host),
                    Happens::Connects { host, .. } | Happens::Connected { host, .. } => Some(*host),
                    Happens::ToServer(id, _) | Happens::ToHost(id, _) | Happens::Reset(id, _) => {
                        Some(self.sessions[id].0)
                    }
                };
                if of == Some(host) {
                    println!("{now} {happens:?}");
                }
            }
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

    fn after(&mut self, pause: Millis, happens: Happens) {
        self.at(self.now + pause, happens);
    }

    fn clock(&self, skew: [u64; 2]) -> Duration {
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
                    self.checks.heard_by_server(server, id, &message);
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
                self.checks.heard_by_host(host, id, &message);
                self.tell_host(host, agent::Input::Received { session, message });
            }
            Happens::Reset(id, from) => self.reset(id, from),
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
    fn carry(&mut self, id: u64, to_server: bool, happens: Happens) {
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
    pub fn tell_host(&mut self, host: u32, input: agent::Input) {
        let clock = self.clock(self.hosts[host as usize].skew);
        let Some(agent) = &mut self.hosts[host as usize].agent else {
            return;
        };
        let outputs = agent.handle(clock, input);
        self.obey_host(host, outputs);
    }

    /// A program of a host opens a flow.
    pub fn open(&mut self, host: u32, opened: agent::Opened) -> Option<u64> {
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
        if let Some(agent) = self.hosts[host as usize]
            .agent
            .as_ref()
            .filter(|_| !is_idle)
        {
            self.checks.uses(host, agent);
        }
    }

    /// Tells an active server something, and does what it says.
    fn tell_server(&mut self, at: u32, input: server::Input) {
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
                server::Output::Audit(_) => {}
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

    /// The lock goes to a server that is up where nobody has it.
    fn elect(&mut self) {
        if self.holder.is_none() && self.now >= self.free_at {
            let first = self.random.below(SERVERS.into()) as u32;
            let up = (0..SERVERS).map(|i| (first + i) % SERVERS).find(|&i| {
                let server = &self.servers[i as usize];
                !server.is_down && server.server.is_none()
            });
            up.into_iter().for_each(|server| self.activate(server));
        }
        if let Some(holder) = self.holder {
            for (link, has_failed) in std::mem::take(&mut self.said) {
                let links = vec![link];
                self.tell_server(
                    holder,
                    match has_failed {
                        true => server::Input::LinksFail { links },
                        false => server::Input::LinksReturn { links },
                    },
                );
            }
        }
    }

    fn activate(&mut self, at: u32) {
        self.epoch += 1;
        let disk = Shared {
            folder: self.folder.clone(),
            writer: at,
        };
        let store = match Store::open(disk, Some(self.epoch), OnDamage::Refuse) {
            Ok(store) => store,
            Err(StoreError::Disk { .. }) => return,
            Err(error) => return self.checks.wrong(format!("the store is lost: {error}")),
        };
        self.checks.recovered(store.saved());
        let clock = self.clock(self.servers[at as usize].skew);
        let mut seeded = Random(self.programs.seed);
        let server = Server::new(
            self.stages.clone(),
            self.directory.clone(),
            server_options(&mut seeded),
            self.epoch,
            store.saved(),
            clock,
        );
        self.holder = Some(at);
        // Operators tell a new controller what is so now, whatever it has stored.
        let mut links = BTreeMap::new();
        for (fault, &is_on) in self.faults.iter().zip(&self.is_on) {
            if let What::LinkDown { link } = fault.what {
                *links.entry(link).or_insert(false) |= is_on;
            }
        }
        self.said = links.into_iter().collect();
        let machine = &mut self.servers[at as usize];
        machine.server = Some(server);
        machine.store = Some(store);
        self.checks.active(at, self.epoch);
    }

    fn stop_server(&mut self, at: u32) {
        let machine = &mut self.servers[at as usize];
        machine.server = None;
        machine.store = None;
        for id in self.checks.close_all(at) {
            self.carry(id, false, Happens::Reset(id, Machine::Server(at)));
        }
    }

    fn start_host(&mut self, host: u32) {
        let machine = &mut self.hosts[host as usize];
        machine.life += 1;
        let seed = self.random.word();
        let clock = self.clock(self.hosts[host as usize].skew);
        let machine = &mut self.hosts[host as usize];
        machine.agent = Some(Agent::new(agent_options(seed), machine.remembered, clock));
    }

    fn begin(&mut self, index: usize) {
        self.is_on[index] = true;
        match self.faults[index].what {
            What::HostDown { host } => {
                self.hosts[host as usize].agent = None;
                self.hosts[host as usize].life += 1;
                self.checks.host_gone(host);
                self.programs.crash(host);
            }
            What::ServerDown { server } => {
                self.stop_server(server);
                self.servers[server as usize].is_down = true;
                self.folder.borrow_mut().crash(server, &mut self.random);
                if self.holder == Some(server) {
                    self.holder = None;
                    self.free_at = self.now + LOCK;
                }
            }
            What::Deposed => self.holder = None,
            What::LinkDown { link } => self.said.push((link, true)),
            What::LinkSeen { link, hosts } => {
                for host in hosts {
                    let works = false;
                    self.tell_host(host, agent::Input::Probed { link, works });
                }
            }
            What::DiskFull { room } => self.folder.borrow_mut().room = Some(room),
            What::DiskBad => self.folder.borrow_mut().loses_syncs = true,
            What::Lossy { .. } | What::Parted { .. } => {}
        }
    }

    fn end(&mut self, index: usize) {
        self.is_on[index] = false;
        match self.faults[index].what {
            What::HostDown { host } => self.start_host(host),
            What::ServerDown { server } => self.servers[server as usize].is_down = false,
            What::Deposed => {
                // Whoever lost the lease finds out.
                for server in 0..SERVERS {
                    if self.holder != Some(server) && self.servers[server as usize].server.is_some()
                    {
                        self.stop_server(server);
                    }
                }
            }
            What::LinkDown { link } => self.said.push((link, false)),
            What::LinkSeen { link, hosts } => {
                for host in hosts {
                    let works = true;
                    self.tell_host(host, agent::Input::Probed { link, works });
                }
            }
            What::DiskFull { .. } => self.folder.borrow_mut().room = None,
            What::DiskBad => self.folder.borrow_mut().loses_syncs = false,
            What::Lossy { .. } | What::Parted { .. } => {}
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

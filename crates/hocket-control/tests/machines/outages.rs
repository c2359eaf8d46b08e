//! Machines start and stop, faults begin and end.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use hocket_control::agent::{self, Agent};
use hocket_control::message::PatternFlow;
use hocket_control::server::{self, Server};
use hocket_control::store::{OnDamage, Saved, Store, StoreError};

use super::disk::{Random, Shared};
use super::faults::{Millis, SERVERS, What};
use super::site::{agent_options, server_options};
use super::world::{Happens, Machine, World};

/// How long a lock outlives its holder.
const LOCK: Millis = 200;

impl World {
    /// The lock goes to a server that is up where nobody has it.
    pub(super) fn elect(&mut self) {
        if self.holder.is_none() && self.now >= self.free_at {
            let first = self.random.below(SERVERS.into()) as u32;
            let up = (0..SERVERS).map(|i| (first + i) % SERVERS).find(|&i| {
                let server = &self.servers[i as usize];
                !server.is_down && server.server.is_none()
            });
            up.into_iter().for_each(|server| self.activate(server));
        }
        if self.holder.is_some() {
            for (link, has_failed) in std::mem::take(&mut self.said) {
                // One that has been deposed and does not know it hears it as well.
                let question = self.checks.operators_say(link, has_failed);
                (0..SERVERS).for_each(|server| self.operate(server, link, has_failed, question));
            }
        }
    }

    /// Operators say something of a link, and wait for the answer.
    fn operate(&mut self, server: u32, link: u32, has_failed: bool, question: u64) {
        let links = vec![link];
        let said = match has_failed {
            true => server::Input::LinksFail { links },
            false => server::Input::LinksReturn { links },
        };
        self.tell_server(server, said);
        self.tell_server(server, server::Input::Ask { question });
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
        self.checks.recovered(store.saved(), &server);
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
        self.checks.active(self.epoch);
    }

    /// Whoever took over now would find a job, whatever was not synced.
    pub(super) fn is_stored(&mut self, job: u32, pattern: &[PatternFlow]) -> bool {
        let found = self.found();
        let job = found.as_ref().and_then(|found| found.jobs.get(&job));
        job.is_some_and(|job| job.pattern == pattern)
    }

    /// What would be found by whoever took over now.
    pub(super) fn found(&mut self) -> Option<Saved> {
        let mut folder = self.folder.borrow().clone();
        folder.heal();
        (0..SERVERS).for_each(|writer| folder.crash(writer, &mut self.random));
        let disk = Shared {
            folder: Rc::new(RefCell::new(folder)),
            writer: SERVERS,
        };
        let store = Store::open(disk, None, OnDamage::Refuse).ok()?;
        Some(store.saved().clone())
    }

    pub(super) fn stop_server(&mut self, at: u32) {
        let machine = &mut self.servers[at as usize];
        machine.server = None;
        machine.store = None;
        for id in self.checks.close_all(at) {
            self.carry(id, false, Happens::Reset(id, Machine::Server(at)));
        }
    }

    pub(super) fn start_host(&mut self, host: u32) {
        let machine = &mut self.hosts[host as usize];
        machine.life += 1;
        let seed = self.random.word();
        let clock = self.clock(self.hosts[host as usize].skew);
        let machine = &mut self.hosts[host as usize];
        machine.agent = Some(Agent::new(agent_options(seed), machine.remembered, clock));
    }

    pub(super) fn begin(&mut self, index: usize) {
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
            What::Cut { host } => {
                for id in self.checks.sessions_of(host) {
                    self.carry(id, false, Happens::Reset(id, Machine::Server(0)));
                    self.carry(id, true, Happens::Reset(id, Machine::Host(host)));
                }
            }
            What::Lossy { .. } | What::Parted { .. } => {}
        }
    }

    pub(super) fn end(&mut self, index: usize) {
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
            What::Cut { .. } | What::Lossy { .. } | What::Parted { .. } => {}
        }
    }
}

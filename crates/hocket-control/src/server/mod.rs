//! The controller's service: sessions of hosts, leases, limits, who may speak for what, and how each host hears of
//! what the policy decides.
//!
//! ```text
//! Input -> Server::handle -> Controller::handle -> changes for hosts -> Output
//! ```
//!
//! A host has one session; a new one ends the one before. What it says counts once and in order, all of it or
//! nothing before its [`Hello`](crate::message::Hello). What it has said of itself and what the controller
//! has of it are compared with each beat.
//!
//! A controller that starts anew recovers: hosts come back with what they have, and nothing moves but what has
//! lost its path, until every host of the directory has come back or the time for it is over. Only then hosts are told that
//! what they were not told is void.

mod delivery;
mod flows;
mod host;
mod jobs;
mod links;
mod flow_numbers;
mod options;
mod output;
mod segments;
mod sync;
mod from_hosts;

pub use options::Options;
pub use output::{Audit, Close, Input, Metrics, Output, SessionId};

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hocket_fabric::controller::{Controller, Event, FlowId, Log};

use crate::directory::{Directory, HostId};
use crate::message::{Change, FlowName, HostFlow};
use crate::stages::Stages;
use crate::store::{Record, Saved};
use host::{Host, Presence};
use jobs::Job;
use links::Links;
use segments::Takers;

/// The service as a machine.
#[derive(Clone, Debug)]
pub struct Server {
    epoch: u64,
    options: Options,
    directory: Directory,
    stages: Stages,
    /// Counts changes of links; and the stages before each, until paths are told again that differ by them.
    stamp: u32,
    before: VecDeque<Stages>,
    takers: Takers,
    policy: Controller,
    links: Links,
    hosts: Vec<Host>,
    sessions: BTreeMap<SessionId, HostId>,
    jobs: BTreeMap<u32, Job>,
    /// Live flows of hosts and flows of patterns.
    flow_count: usize,
    /// When recovery ends at the latest; `None`: it is over. And hosts that have not come back.
    recovering: Option<Duration>,
    missing: usize,
    /// Numbers of the last record made, of the last that is stored, and of the last that hosts need not wait for.
    records: u64,
    stored: u64,
    settled: u64,
    /// Questions, each with the record that it waits for.
    questions: VecDeque<(u64, u64)>,
    log: Log,
    metrics: Metrics,
    now: Duration,
    /// Counts announcements.
    input: u64,
    outbox: BTreeMap<HostId, Vec<Change>>,
    outputs: Vec<Output>,
}

impl Server {
    /// Returns a service that begins now, with an epoch above all others and with what was stored before it.
    pub fn new(
        stages: Stages,
        directory: Directory,
        options: Options,
        epoch: u64,
        saved: &Saved,
        now: Duration,
    ) -> Self {
        let hosts = vec![Host::new(&options, now); directory.len()];
        let mut server = Self {
            epoch,
            policy: Controller::new(stages.fabric().clone(), options.policy),
            links: Links::new(stages.link_count()),
            stamp: 0,
            before: VecDeque::new(),
            takers: Takers::new(stages.have_segments()),
            stages,
            missing: hosts.len(),
            hosts,
            sessions: BTreeMap::new(),
            jobs: BTreeMap::new(),
            flow_count: 0,
            recovering: Some(now.saturating_add(options.recovery)),
            records: 0,
            stored: 0,
            settled: 0,
            questions: VecDeque::new(),
            log: Log::default(),
            metrics: Metrics::default(),
            now,
            input: 0,
            outbox: BTreeMap::new(),
            outputs: Vec::new(),
            directory,
            options,
        };
        server.tell(Event::Recovering);
        server.load(saved);
        server
    }

    /// Takes up what was stored; what no longer fits the directory is dropped from the store too.
    fn load(&mut self, saved: &Saved) {
        for (&id, job) in &saved.jobs {
            let nic = |address| self.directory.at(address).map(|(_, nic)| nic);
            let nics = job
                .pattern
                .iter()
                .map(|flow| Some([nic(flow.src)?, nic(flow.dst)?]));
            match (self.directory.host(&job.leader), nics.collect()) {
                (Some(leader), Some(nics)) => self.add_job(leader, id, job.pattern.clone(), nics),
                _ => self.record(Record::JobGoes { job: id }),
            }
        }
        let (known, unknown) = saved
            .failed
            .iter()
            .partition(|&&link| self.links.is_link(link));
        self.operate(known, true, false);
        let links: Vec<u32> = unknown;
        if !links.is_empty() {
            self.record(Record::LinksReturn { links });
        }
    }

    /// Takes note of something that happened, and says what is to be done, in order. Times must not go back.
    pub fn handle(&mut self, now: Duration, input: Input) -> Vec<Output> {
        self.now = self.now.max(now);
        match input {
            Input::Connected { host, session } => self.connected(host, session),
            Input::Received { session, message } => match self.sessions.get(&session) {
                Some(&host) => self.received(host, message),
                None => self.metrics.strays += 1,
            },
            Input::Disconnected { session } => {
                if let Some(host) = self.sessions.remove(&session) {
                    self.hosts[host.index()].session = None;
                }
            }
            Input::LinksFail { links } => self.operated(links, true),
            Input::LinksReturn { links } => self.operated(links, false),
            Input::Ask { question } => {
                self.questions.push_back((question, self.records));
                self.answer(self.stored, true);
            }
            Input::Stored { record } => {
                self.stored = self.stored.max(record.min(self.records));
                self.settled = self.settled.max(self.stored);
                self.answer(self.stored, true);
            }
            Input::Unstored { record } => {
                self.settled = self.settled.max(record.min(self.records));
                self.answer(record, false);
            }
            Input::Prepare => self.tell(Event::Prepare),
            Input::Tick => self.tick(),
        }
        self.flush();
        std::mem::take(&mut self.outputs)
    }

    /// Returns its epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns whether every host has come back, or the time for it is over.
    pub fn is_synced(&self) -> bool {
        self.recovering.is_none()
    }

    /// Hosts that have not come since the start.
    pub fn missing(&self) -> impl Iterator<Item = HostId> {
        let rows = self.hosts.iter().zip(0..);
        rows.filter(|(row, _)| row.presence == Presence::Unknown)
            .map(|(_, host)| HostId(host))
    }

    /// Returns the policy, to be looked at.
    pub fn policy(&self) -> &Controller {
        &self.policy
    }

    /// Returns which hosts there are.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns how it treats hosts.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns what it has counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the number of open sessions.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Returns whether a host has an open session, and how many messages to it are not acknowledged.
    pub fn unacknowledged(&self, host: HostId) -> Option<usize> {
        let session = self.hosts.get(host.index())?.session.as_ref()?;
        Some(session.window.len())
    }

    /// Live flows that hosts announced, each with its host and the choice that it was told.
    pub fn flows(&self) -> impl Iterator<Item = (HostId, &HostFlow, Option<u32>)> {
        let hosts = self.hosts.iter().zip(0..);
        hosts.flat_map(|(row, host)| {
            let flows = row.flows.values();
            flows.map(move |flow| (HostId(host), &flow.said, flow.told))
        })
    }

    /// Registered jobs, each with the host that registered it, the number of its flows and whether it is live.
    pub fn jobs(&self) -> impl Iterator<Item = (u32, HostId, usize, bool)> {
        let jobs = self.jobs.iter();
        jobs.map(|(&id, job)| (id, job.leader, job.pattern.len(), job.is_live))
    }

    /// Returns the host and the name under which it knows a flow of the policy.
    pub fn name(&self, flow: FlowId) -> (Option<HostId>, FlowName) {
        flow_numbers::parse(flow)
    }

    /// Returns the policy's number of a flow of a host.
    pub fn id(&self, host: HostId, flow: FlowName) -> FlowId {
        flow_numbers::of(host, flow)
    }

    /// Returns the links that have failed, by link.
    pub fn has_failed(&self) -> &[bool] {
        self.links.has_failed()
    }

    /// Returns the events that the policy was told since the last call, where the options keep them. Pieces that are
    /// put together replay as one log.
    pub fn take_log(&mut self) -> Log {
        std::mem::take(&mut self.log)
    }

    /// Answers the questions that wait for no record after this one.
    fn answer(&mut self, record: u64, is_stored: bool) {
        while let Some(&(question, needed)) = self.questions.front()
            && needed <= record
        {
            self.questions.pop_front();
            self.outputs.push(Output::Answer {
                question,
                is_stored,
            });
        }
    }

    fn audit(&mut self, what: Audit) {
        self.outputs.push(Output::Audit(what));
    }
}

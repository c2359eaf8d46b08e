//! The agent of a host: flows of local programs, the paths that the controller gives them, and what they use
//! where it gives none.
//!
//! ```text
//! programs: open, progress, close -> Agent -> Steer, Ecmp, Rate
//! controller: paths, rates           |
//!                                    +-----> what the host has and how it changes
//! ```
//!
//! Nothing waits for the controller: a flow that is not answered in time goes as switches hash it. While
//! the controller is away, flows keep the paths that they had. A path that loses packets, or is much
//! slower than it was, is left for a while, and for as long as probes find it so.

mod flow;
mod from_controller;
mod options;
mod output;
mod patterns;
mod session;

pub use options::{Options, Worst};
pub use output::{Input, Metrics, Output, SessionId, Why};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::message::{
    FlowName, HeldPattern, JOB_IDS, MOST_FLOWS, MOST_JOBS, MOST_LINKS, NewFlow, Path, PatternFlow,
    Refusal, Terms,
};
use flow::{By, Health, Kind, OpenFlow, Using};
use options::Backoff;
use patterns::Patterns;
use session::{Link, Op, Outstanding, Said};

/// A job that a local program registered.
#[derive(Clone, Debug)]
struct LocalJob {
    pattern: Vec<PatternFlow>,
    is_live: bool,
}

/// The agent as a machine.
#[derive(Clone, Debug)]
pub struct Agent {
    options: Options,
    terms: Terms,
    /// The highest epoch that it has obeyed, and the last revision of it that is in effect.
    epoch: u64,
    revision: u64,
    /// Numbered messages that it has heard and not acknowledged.
    unsaid: usize,
    /// The highest revision that it has heard of, though those before it were lost.
    ahead: u64,
    link: Link,
    backoff: Backoff,
    /// Number of the last numbered message.
    sequence: u64,
    said: Said,
    pending: Vec<Op>,
    outstanding: VecDeque<Outstanding>,
    /// Number of the last flow.
    last: u64,
    flows: BTreeMap<u64, OpenFlow>,
    /// When something is to be done about flows.
    timers: BTreeSet<(Duration, u64)>,
    /// Bytes left, of flows that have said so since the last beat.
    moved: BTreeMap<u64, u64>,
    jobs: BTreeMap<u32, LocalJob>,
    patterns: Patterns,
    /// Links that have failed as probes say.
    failed: BTreeSet<u32>,
    metrics: Metrics,
    now: Duration,
    outputs: Vec<Output>,
}

impl Agent {
    /// Returns an agent that begins now. `epoch` is the last that [`Output::Remember`] named before a restart, else 0.
    pub fn new(options: Options, epoch: u64, now: Duration) -> Self {
        let options = Options {
            most_flows: options.most_flows.min(MOST_FLOWS),
            ..options
        };
        Self {
            terms: options.terms,
            epoch,
            revision: 0,
            unsaid: 0,
            ahead: 0,
            link: Link::Away { until: now },
            backoff: Backoff::new(options.seed),
            sequence: 0,
            said: Said::default(),
            pending: Vec::new(),
            outstanding: VecDeque::new(),
            last: 0,
            flows: BTreeMap::new(),
            timers: BTreeSet::new(),
            moved: BTreeMap::new(),
            jobs: BTreeMap::new(),
            patterns: Patterns::default(),
            failed: BTreeSet::new(),
            metrics: Metrics::default(),
            now,
            outputs: Vec::new(),
            options,
        }
    }

    /// A local program opens a flow: gives its number, and what is to be done. The controller hears of it with the
    /// next [`Input::Flush`] or [`Input::Tick`].
    pub fn open(&mut self, now: Duration, opened: NewFlow) -> (u64, Vec<Output>) {
        self.now = self.now.max(now);
        self.last += 1;
        self.metrics.opened += 1;
        let id = self.last;
        let ends = [opened.src, opened.dst];
        let bound = match opened.job {
            0 => None,
            job => self.patterns.bind(job, ends, id),
        };
        let kind = bound.map_or(Kind::Local, |(job, index)| Kind::Pattern(job, index));
        let flow = OpenFlow {
            opened,
            kind,
            given: None,
            is_confirmed: false,
            using: Using::Waiting,
            health: Health::default(),
        };
        self.flows.insert(id, flow);
        if bound.is_none() {
            self.announce(id);
        }
        let is_met = matches!(self.link, Link::Greeting { .. } | Link::Up { .. });
        self.settle(id, (!is_met).then_some(Why::Away));
        if self
            .flows
            .get(&id)
            .is_some_and(|flow| flow.using == Using::Waiting)
        {
            let until = self.now.saturating_add(self.options.patience);
            self.timers.insert((until, id));
        }
        self.tell_rate(id);
        (id, std::mem::take(&mut self.outputs))
    }

    /// Takes note of something that happened, and says what is to be done, in order. Times must not go back.
    pub fn handle(&mut self, now: Duration, input: Input) -> Vec<Output> {
        self.now = self.now.max(now);
        match input {
            Input::Progress { flow, left } => {
                if let Some(known) = self.flows.get_mut(&flow) {
                    known.opened.bytes = left;
                    self.moved.insert(flow, left);
                }
            }
            Input::Close { flow } => self.close(flow),
            Input::JobComes { job, pattern } => self.job_comes(job, pattern),
            Input::JobStarts { job } => self.set_live(job, true),
            Input::JobStops { job } => self.set_live(job, false),
            Input::JobGoes { job } => {
                if self.jobs.remove(&job).is_some() {
                    self.note(Op::JobGoes(job));
                }
            }
            Input::Probed { link, works } => {
                let is_new = match works {
                    true => self.failed.remove(&link),
                    false => self.failed.len() < MOST_LINKS && self.failed.insert(link),
                };
                if is_new {
                    self.note(Op::Link(link, !works));
                }
            }
            Input::Measured {
                flow,
                loss_ppm,
                rtt,
            } => self.measured(flow, By::Program, loss_ppm, Some(rtt)),
            Input::PathMeasured {
                flow,
                loss_ppm,
                rtt,
            } => self.measured(flow, By::Probes, loss_ppm, rtt),
            Input::Flush => self.flush(),
            Input::Connected { session } => match self.link {
                Link::Away { .. } | Link::Connecting { .. } => self.greet(session, self.now),
                _ => self.outputs.push(Output::Disconnect { session }),
            },
            Input::Unreachable => {
                if matches!(self.link, Link::Connecting { .. }) {
                    self.retreat();
                }
            }
            Input::Received { session, message } => {
                if self.session() == Some(session) {
                    self.hear(session, &message);
                }
            }
            Input::Lost { session } => {
                if self.session() == Some(session) {
                    self.retreat();
                }
            }
            Input::Tick => {
                self.wake();
                self.tend();
            }
        }
        std::mem::take(&mut self.outputs)
    }

    fn session(&self) -> Option<SessionId> {
        match self.link {
            Link::Greeting { session, .. } | Link::Up { session, .. } => Some(session),
            Link::Away { .. } | Link::Connecting { .. } => None,
        }
    }

    fn close(&mut self, id: u64) {
        let Some(flow) = self.flows.remove(&id) else {
            return;
        };
        self.moved.remove(&id);
        match flow.kind {
            Kind::Pattern(job, index) => {
                if let Some(entry) = self.patterns.get_mut((job, index)) {
                    entry.flow = None;
                }
            }
            Kind::Announced => self.note(Op::End(id)),
            Kind::Local | Kind::Refused(_) => {}
        }
    }

    /// A job is registered, if all jobs and flows still fit one message.
    fn job_comes(&mut self, job: u32, pattern: Vec<PatternFlow>) {
        let others = self.jobs.iter().filter(|(id, _)| **id != job);
        let (count, flows) = others.fold((1, pattern.len()), |(count, flows), (_, local)| {
            (count + 1, flows + local.pattern.len())
        });
        let why = match () {
            () if job == 0 || job >= JOB_IDS => Refusal::BadNumber,
            () if count > MOST_JOBS || flows > MOST_FLOWS - self.options.most_flows => {
                Refusal::TooMany
            }
            () => {
                let is_live = false;
                self.jobs.insert(job, LocalJob { pattern, is_live });
                return self.note(Op::JobComes(job));
            }
        };
        self.metrics.refused += 1;
        self.outputs.push(Output::JobRefused { job, why });
    }

    fn set_live(&mut self, job: u32, is_live: bool) {
        if let Some(local) = self.jobs.get_mut(&job)
            && local.is_live != is_live
        {
            local.is_live = is_live;
            self.note(Op::JobLive(job, is_live));
        }
    }

    /// The controller is to hear of a flow, if it is one that it hears of.
    fn announce(&mut self, id: u64) {
        let is_full = self.said.flows.len() + self.pending.len() >= self.options.most_flows;
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let why = match () {
            () if flow.opened.bytes < self.terms.least_bytes => Some(Why::Small),
            () if is_full => Some(Why::TooMany),
            () => None,
        };
        flow.given = None;
        flow.kind = if why.is_none() {
            Kind::Announced
        } else {
            Kind::Local
        };
        match why {
            None => self.note(Op::Start(id)),
            Some(why) => self.settle(id, Some(why)),
        }
    }

    /// A flow uses what it should; `why` it has no path, where it has none.
    fn settle(&mut self, id: u64, why: Option<Why>) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let path = match flow.kind {
            Kind::Pattern(job, index) => self
                .patterns
                .get((job, index))
                .and_then(|entry| entry.current()),
            _ => flow.given.as_ref(),
        };
        let Some(wanted) = flow.wanted(path, why) else {
            return;
        };
        if wanted == flow.using {
            return;
        }
        let was_ecmp = matches!(flow.using, Using::Ecmp(_));
        flow.using = wanted.clone();
        match wanted {
            Using::Path(path) => {
                self.metrics.steered += 1;
                self.outputs.push(Output::Steer { flow: id, path });
            }
            Using::Ecmp(why) => {
                self.metrics.unsteered += u64::from(!was_ecmp);
                self.outputs.push(Output::Ecmp { flow: id, why });
            }
            Using::Waiting => {}
        }
    }

    /// A flow has another path than before, or none: how the one before did says nothing of it.
    fn renew(&mut self, id: u64, is_other: bool, why: Option<Why>) {
        if let Some(flow) = self.flows.get_mut(&id).filter(|_| is_other) {
            flow.health = Health::default();
        }
        self.settle(id, why);
    }

    fn measured(&mut self, id: u64, by: By, loss_ppm: u32, rtt: Option<Duration>) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        let takes_it = match flow.using {
            Using::Path(_) => true,
            // What its program measures now is another way.
            Using::Ecmp(Why::Worse) if by == By::Probes => false,
            _ => return,
        };
        if !flow.health.is_bad(&self.options, by, loss_ppm, rtt) {
            return;
        }
        if !takes_it {
            return flow.health.stay_away(&self.options, self.now);
        }
        let until = flow.health.leave(&self.options, self.now);
        self.metrics.worse += 1;
        self.timers.insert((until, id));
        self.settle(id, None);
    }

    /// Does what is due for flows at a time.
    fn wake(&mut self) {
        while let Some(&(at, id)) = self.timers.first() {
            if at > self.now {
                break;
            }
            self.timers.pop_first();
            let Some(flow) = self.flows.get_mut(&id) else {
                continue;
            };
            match flow.health.until {
                Some(until) if until <= self.now => flow.health.until = None,
                // Probes found its path no better.
                Some(until) if flow.using == Using::Ecmp(Why::Worse) => {
                    self.timers.insert((until, id));
                    continue;
                }
                _ => {}
            }
            match (&flow.using, flow.kind) {
                (Using::Waiting, _) => {
                    self.metrics.unanswered += 1;
                    self.settle(id, Some(Why::NoAnswer));
                }
                (_, Kind::Refused(Refusal::TooMany | Refusal::TooFast | Refusal::Full)) => {
                    self.announce(id);
                }
                _ => self.settle(id, None),
            }
        }
    }

    fn tell_rate(&mut self, id: u64) {
        if let Some(Kind::Pattern(job, index)) = self.flows.get(&id).map(|flow| flow.kind) {
            let entry = self.patterns.get((job, index));
            if let Some(bytes_per_second) = entry.and_then(|entry| entry.rate) {
                self.outputs.push(Output::Rate {
                    flow: id,
                    bytes_per_second,
                });
            }
        }
    }

    /// Returns the highest epoch that it has obeyed.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the last revision that is in effect.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns whether a controller has welcomed it.
    pub fn is_up(&self) -> bool {
        matches!(self.link, Link::Up { .. })
    }

    /// Returns what it has counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns what it keeps to.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns the path that an open flow takes; `None` where it goes as switches hash it, or waits.
    pub fn path(&self, flow: u64) -> Option<&Arc<Path>> {
        match &self.flows.get(&flow)?.using {
            Using::Path(path) => Some(path),
            _ => None,
        }
    }

    /// Returns the path that the controller gave an open flow, whether it takes it now or not.
    pub fn given(&self, flow: u64) -> Option<&Arc<Path>> {
        let flow = self.flows.get(&flow)?;
        match flow.kind {
            Kind::Pattern(job, index) => self.patterns.get((job, index))?.current(),
            _ => flow.given.as_ref(),
        }
    }

    /// Open flows, each with its name at the controller where it has one.
    pub fn flows(&self) -> impl Iterator<Item = (u64, Option<FlowName>, &NewFlow)> {
        self.flows.iter().map(|(&id, flow)| {
            let is_known = matches!(flow.kind, Kind::Announced | Kind::Pattern(..));
            (id, is_known.then(|| flow.name(id)), &flow.opened)
        })
    }

    /// Live flows of patterns that this host sends, by job and place, and the path of each.
    pub fn patterns(&self) -> impl Iterator<Item = ((u32, u32), Option<&Arc<Path>>)> {
        self.patterns.live()
    }

    /// Returns the flows of patterns that this host sends and holds paths for, from this iteration or the one before.
    pub fn held(&self) -> impl Iterator<Item = HeldPattern> {
        self.patterns.held().into_iter()
    }

    /// Returns the jobs that local programs registered, and whether each is live.
    pub fn jobs(&self) -> impl Iterator<Item = (u32, bool)> {
        self.jobs.iter().map(|(&job, local)| (job, local.is_live))
    }
}

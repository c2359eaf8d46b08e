//! Moment by moment: what arrives, which jobs go on, and what the controller says.

mod controller_answers;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

use super::control::{Commodities, Controller, Decided};
use super::flows::{Flows, Sent};
use super::network::{Network, Reach};
use super::pattern::{Course, Pattern};
use super::{ClusterError, ClusterOptions, Iteration, Job, Outage, Outcome, Port, Reroute, Router};
use crate::id::narrow;
use crate::progress::{Interrupted, Progress};
use crate::routing::Fabric;
use crate::simulate::flow::UNITS_PER_BYTE;
use crate::topology::Topology;
use crate::units::Time;

/// What happens by itself, at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    /// A transfer has arrived.
    Arrived {
        flow: u32,
        transfer: u32,
        bytes: u64,
        begun: u64,
    },
    /// A job has computed.
    Computed { job: u32 },
    /// Links fail.
    Failed { outage: u32 },
    /// The controller's answer is there.
    Answered { answer: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Computing,
    /// Its flows wait for the controller.
    Asking,
    Communicating,
    Ended,
}

/// Where a job is.
pub(super) struct Progressing<'a> {
    pub(super) job: &'a Job,
    pub(super) state: State,
    /// Its flows are numbered from here, group by group, channel by channel.
    pub(super) first_flow: u32,
    courses: Vec<Course>,
    open_groups: usize,
    pub(super) iteration: Iteration,
    /// As kept last [bytes/s].
    rate: f64,
}

/// An answer under way: who waits for it.
struct Answer {
    decided: Rc<Decided>,
    starting: Vec<u32>,
    decision: usize,
}

pub(super) struct Engine<'a> {
    options: &'a ClusterOptions,
    jobs: Vec<Progressing<'a>>,
    /// By flow.
    place: Vec<(u32, u32)>,
    flows: Flows<'a>,
    controller: Controller<'a>,
    alarms: BinaryHeap<Reverse<(u64, Alarm)>>,
    /// Answers under way, and the number of the first.
    answers: VecDeque<Answer>,
    first_answer: u32,
    now: u64,
    starting: Vec<u32>,
    has_stopped: bool,
    has_failed: bool,
    /// Jobs that have paths for when they communicate together.
    routed: Vec<u32>,
    /// Flows and what they may send from now on.
    ready: Vec<(u32, u32)>,
    freed: Vec<u32>,
    outcome: Outcome,
    open_transfers: u64,
    ended_transfers: u64,
}

impl<'a> Engine<'a> {
    pub(super) fn new(
        topology: &'a Topology,
        fabric: &'a Fabric,
        jobs: &'a [Job],
        options: &'a ClusterOptions,
    ) -> Self {
        let mut flows = Flows::new(Network::new(topology, fabric), jobs.len(), options);
        let mut commodities = Commodities::default();
        let mut place = Vec::new();
        let mut progressing = Vec::with_capacity(jobs.len());
        let mut open_transfers = 0;
        for (number, job) in jobs.iter().enumerate() {
            let first_flow = narrow(place.len());
            commodities.begin_job();
            let (pattern, groups) = job.communication().unzip();
            for (group, ports) in groups.into_iter().flatten().enumerate() {
                let channels = pattern.into_iter();
                let channels =
                    channels.flat_map(|of| of.channels().iter().zip(of.bytes_by_channel()));
                for (&(src, dst), &bytes) in channels {
                    let ends = [src, dst].map(|rank| ports[rank as usize]);
                    let flow = flows.connect(narrow(number), ends[0], ends[1]);
                    if let Reach::Fabric { src, dst } = flows.reach(flow) {
                        commodities.add(flow, [src, dst], ends.map(|port| port.nic), bytes);
                    }
                    place.push((narrow(number), narrow(group)));
                }
            }
            let transfers =
                pattern.map_or(0, Pattern::transfer_count) * groups.map_or(0, <[Vec<Port>]>::len);
            open_transfers += (transfers * job.compute.len()) as u64;
            progressing.push(Progressing::new(narrow(number), job, first_flow));
        }
        Self {
            options,
            jobs: progressing,
            place,
            flows,
            controller: Controller::new(topology, fabric, jobs, commodities, options),
            alarms: BinaryHeap::new(),
            answers: VecDeque::new(),
            first_answer: 0,
            now: 0,
            starting: Vec::new(),
            has_stopped: false,
            has_failed: false,
            routed: Vec::new(),
            ready: Vec::new(),
            freed: Vec::new(),
            outcome: Outcome::default(),
            open_transfers,
            ended_transfers: 0,
        }
    }

    pub(super) fn run(
        mut self,
        router: &mut dyn Router,
        progress: &mut dyn Progress,
    ) -> Result<Outcome, ClusterError> {
        const BETWEEN_REPORTS: usize = 1 << 16;
        for number in 0..narrow(self.jobs.len()) {
            self.expect(number);
        }
        self.controller.check(&self.unended())?;
        match self.options.reroute {
            Reroute::Never => self.decide_once(router)?,
            Reroute::Spray => self.flows.spray(self.controller.fabric(), 0),
            Reroute::Always | Reroute::Steady(_) | Reroute::AtStart => {}
        }
        for number in 0..narrow(self.jobs.len()) {
            self.compute(number, self.jobs[number as usize].job.arrival.as_ps());
        }
        for (outage, Outage { time, .. }) in (0..).zip(&self.options.outages) {
            self.alarm(time.as_ps(), Alarm::Failed { outage });
        }
        let mut work = BETWEEN_REPORTS;
        while let Some(now) = self.next_moment() {
            if now == u64::MAX {
                return Err(ClusterError::TooLong);
            }
            self.now = now;
            work += self.moment(router)?;
            if work > BETWEEN_REPORTS {
                work = 0;
                if !progress.report("run jobs", self.ended_transfers, self.open_transfers) {
                    return Err(Interrupted.into());
                }
            }
        }
        Ok(self.finish())
    }

    fn next_moment(&self) -> Option<u64> {
        let alarm = self.alarms.peek().map(|&Reverse((time, _))| time);
        [alarm, self.flows.next_end()].into_iter().flatten().min()
    }

    /// Everything that happens now, then what follows from it for rates.
    fn moment(&mut self, router: &mut dyn Router) -> Result<usize, ClusterError> {
        let mut work = 1;
        while let Some(sent) = self.flows.pop_sent(self.now) {
            self.sent(sent);
            work += 1;
        }
        while let Some(&Reverse((time, alarm))) = self.alarms.peek() {
            if time > self.now {
                break;
            }
            self.alarms.pop();
            work += 1;
            match alarm {
                Alarm::Arrived { .. } => self.arrived(alarm),
                Alarm::Computed { job } => self.computed(job),
                Alarm::Failed { outage } => self.failed(outage, router)?,
                Alarm::Answered { answer } => self.answered(answer, router)?,
            }
        }
        self.send_ready();
        if !self.starting.is_empty() || self.has_stopped || self.has_failed {
            self.ask(router)?;
            self.send_ready();
        }
        work += std::mem::take(&mut self.controller.routed);
        work += self.flows.share(self.now);
        self.keep_rates();
        Ok(work)
    }

    fn alarm(&mut self, time: u64, alarm: Alarm) {
        self.alarms.push(Reverse((time, alarm)));
    }

    /// A transfer's last byte has left.
    fn sent(&mut self, sent: Sent) {
        let Sent {
            flow,
            transfer,
            bytes,
            begun,
            latency,
        } = sent;
        let arrived = Alarm::Arrived {
            flow,
            transfer,
            bytes,
            begun,
        };
        self.alarm(self.now.saturating_add(latency.as_ps()), arrived);
    }

    /// A transfer is there whole: what waited for it goes on.
    fn arrived(&mut self, alarm: Alarm) {
        let Alarm::Arrived {
            flow,
            transfer,
            bytes,
            begun,
        } = alarm
        else {
            return;
        };
        self.ended_transfers += 1;
        let (number, group) = self.place[flow as usize];
        let progressing = &mut self.jobs[number as usize];
        if self.flows.reach(flow) != Reach::Host {
            progressing.iteration.count(bytes, self.now - begun);
        }
        let Some((pattern, _)) = progressing.job.communication() else {
            return;
        };
        let mut freed = std::mem::take(&mut self.freed);
        let course = &mut progressing.courses[group as usize];
        let is_last = course.end(pattern, transfer, &mut freed);
        self.free(number, group, &freed);
        freed.clear();
        self.freed = freed;
        if is_last {
            let progressing = &mut self.jobs[number as usize];
            progressing.open_groups -= 1;
            if progressing.open_groups == 0 {
                self.stop(number);
            }
        }
    }

    /// Transfers of a group may be sent from now on.
    fn free(&mut self, number: u32, group: u32, transfers: &[u32]) {
        let Progressing {
            job, first_flow, ..
        } = self.jobs[number as usize];
        let Some((pattern, _)) = job.communication() else {
            return;
        };
        let first = first_flow + group * narrow(pattern.channels().len());
        let flow = |&transfer: &u32| (first + pattern.channel_of(transfer), transfer);
        self.ready.extend(transfers.iter().map(flow));
    }

    /// Flows take on what was freed now; what they may send from the same moment on goes in the
    /// plan's order.
    fn send_ready(&mut self) {
        self.ready.sort_unstable();
        for (flow, transfer) in self.ready.drain(..) {
            let (number, _) = self.place[flow as usize];
            if let Some((pattern, _)) = self.jobs[number as usize].job.communication() {
                let bytes = pattern.bytes(transfer);
                self.flows.send(flow, transfer, bytes, self.now);
            }
        }
    }

    /// A job begins to compute at `time`, or has ended.
    fn compute(&mut self, number: u32, time: u64) {
        let progressing = &mut self.jobs[number as usize];
        let index = progressing.iteration.index as usize;
        let Some(lasts) = progressing.job.compute.get(index) else {
            progressing.state = State::Ended;
            return;
        };
        progressing.state = State::Computing;
        progressing.iteration.compute_start = Time::from_ps(time);
        let end = time.saturating_add(lasts.as_ps());
        self.alarm(end, Alarm::Computed { job: number });
    }

    /// A job wants to communicate.
    fn computed(&mut self, number: u32) {
        let progressing = &mut self.jobs[number as usize];
        progressing.iteration.start = Time::from_ps(self.now);
        if progressing.job.communication().is_none() {
            self.stop(number);
        } else if self.asks(number) {
            self.jobs[number as usize].state = State::Asking;
            self.starting.push(number);
        } else {
            self.start(&[number]);
        }
    }

    /// A job has communicated.
    fn stop(&mut self, number: u32) {
        let progressing = &mut self.jobs[number as usize];
        progressing.iteration.end = Time::from_ps(self.now);
        self.outcome.iterations.push(progressing.iteration);
        progressing.iteration = Iteration::new(number, progressing.iteration.index + 1);
        self.has_stopped |= self.asks(number);
        self.expect(number);
        self.compute(number, self.now);
    }

    /// The bytes of a job's next phase are to come.
    fn expect(&mut self, number: u32) {
        let Progressing {
            job, first_flow, ..
        } = self.jobs[number as usize];
        let Some((pattern, groups)) = job.communication() else {
            return;
        };
        let bytes = groups.iter().flat_map(|_| pattern.bytes_by_channel());
        for (flow, &bytes) in (first_flow..).zip(bytes) {
            self.flows.expect(flow, bytes);
        }
    }

    /// Jobs begin to communicate.
    fn start(&mut self, jobs: &[u32]) {
        let mut begin = Vec::new();
        for &number in jobs {
            let progressing = &mut self.jobs[number as usize];
            progressing.state = State::Communicating;
            let Some((pattern, groups)) = progressing.job.communication() else {
                continue;
            };
            progressing.open_groups = groups.len();
            progressing.courses.clear();
            for group in 0..narrow(groups.len()) {
                begin.clear();
                let course = Course::start(pattern, &mut begin);
                self.jobs[number as usize].courses.push(course);
                self.free(number, group, &begin);
            }
        }
    }

    fn keep_rates(&mut self) {
        if !self.options.keep_rates {
            return;
        }
        let now = Time::from_ps(self.now);
        for (job, &units) in self.flows.job_rates.iter().enumerate() {
            let rate = units as f64 / UNITS_PER_BYTE as f64;
            let kept = &mut self.jobs[job].rate;
            if *kept != rate {
                *kept = rate;
                self.outcome.rates.push((now, narrow(job), rate));
            }
        }
    }

    fn finish(mut self) -> Outcome {
        let ends = self
            .outcome
            .iterations
            .iter()
            .map(|iteration| iteration.end);
        self.outcome.time = ends.max().unwrap_or(Time::ZERO);
        self.outcome.paths = self.flows.paths();
        self.outcome.link_bytes = self.flows.link_bytes;
        self.outcome.computed_ahead = self.controller.computed_ahead;
        self.outcome.record = self.controller.record();
        self.outcome
    }
}

impl<'a> Progressing<'a> {
    fn new(number: u32, job: &'a Job, first_flow: u32) -> Self {
        Self {
            job,
            state: State::Computing,
            first_flow,
            courses: Vec::new(),
            open_groups: 0,
            iteration: Iteration::new(number, 0),
            rate: 0.0,
        }
    }

    pub(super) fn is_active(&self) -> bool {
        matches!(self.state, State::Asking | State::Communicating)
    }

    /// When it starts to communicate, if it computes as long as the time before.
    pub(super) fn start_expected(&self) -> Option<u64> {
        let last = (self.iteration.index as usize).checked_sub(1)?;
        let lasts = self.job.compute[last];
        Some((self.iteration.compute_start + lasts).as_ps())
    }
}

//! What jobs did: iterations, decisions of the controller, and what links carried.

use super::{ClusterError, Record};
use crate::id::LinkId;
use crate::routing::LoadBound;
use crate::units::Time;

/// One iteration of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    /// The job.
    pub job: u32,
    /// Number of the iteration within its job, from 0.
    pub index: u32,
    /// Time at which the computation began.
    pub compute_start: Time,
    /// Time at which the first flows were ready to start.
    pub start: Time,
    /// Time at which the last flow arrived: `end - start` is the all-reduce time.
    pub end: Time,
    /// Number of transfers over the fabric.
    pub flows: u64,
    /// Their completion times, from when each began to be sent until its last byte arrived, added up
    /// (picoseconds).
    pub completion_ps: u128,
    /// Their bytes, each over its own completion time, added up [bytes/s].
    pub throughput: f64,
    /// The longest completion time.
    pub slowest: Time,
}

impl Iteration {
    pub(super) fn new(job: u32, index: u32) -> Self {
        Self {
            job,
            index,
            compute_start: Time::ZERO,
            start: Time::ZERO,
            end: Time::ZERO,
            flows: 0,
            completion_ps: 0,
            throughput: 0.0,
            slowest: Time::ZERO,
        }
    }

    fn is_in_order(&self, end: Time) -> bool {
        self.compute_start <= self.start && self.start <= self.end && self.end <= end
    }

    /// A transfer over the fabric has arrived, so many picoseconds after it began to be sent.
    pub(super) fn count(&mut self, bytes: u64, lasted: u64) {
        self.flows += 1;
        self.completion_ps += u128::from(lasted);
        self.throughput += bytes as f64 / (lasted.max(1) as f64 * 1e-12);
        self.slowest = self.slowest.max(Time::from_ps(lasted));
    }
}

/// A decision of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Time of the event that the controller answers.
    pub time: Time,
    /// Number of flows that were given a path.
    pub flows: u32,
    /// Number of flows under way that moved to another path.
    pub moved: u32,
    /// The largest load of a link.
    pub max_link_load: u64,
    /// A load that no assignment can keep every link below, and the ToR that forces it.
    pub load_bound: LoadBound,
    /// `true` if the answer had been computed ahead.
    pub foreseen: bool,
    /// `true` if the event was a failure.
    pub is_repair: bool,
}

/// Which flow between ToRs was on which path when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// When a flow was given a path, in order: the time, its number among the flows between ToRs, in the order of
    /// jobs, groups and channels, and the path.
    pub given: Vec<(Time, u32, u32)>,
    /// Links of each path, from NIC to NIC.
    pub links: Vec<Vec<LinkId>>,
}

/// Outcome of a simulation of jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Time at which the last job ended.
    pub time: Time,
    /// Every iteration, in order of their ends.
    pub iterations: Vec<Iteration>,
    /// Every decision of the controller, in order.
    pub decisions: Vec<Decision>,
    /// Bytes over each link of the topology; each saturates at `u64::MAX`.
    pub link_bytes: Vec<u64>,
    /// Changes of a job's total rate: time, job, and the rate from then on [bytes/s].
    pub rates: Vec<(Time, u32, f64)>,
    /// Assignments computed ahead, whether they were needed or not.
    pub computed_ahead: u64,
    /// What the controller of [`Reroute::Steady`](super::Reroute::Steady) was told and said.
    pub record: Option<Record>,
    /// Paths of flows over time; `None` where they are more than some hundred thousand, or packets take all of them.
    pub paths: Option<Paths>,
}

impl Outcome {
    /// Checks an outcome that was kept, as in a pickle, against the number of its jobs and of the topology's
    /// links. That times are those of the jobs is not checked, as only simulating again could tell.
    ///
    /// # Errors
    /// [`ClusterError::Malformed`].
    pub fn checked(self, jobs: usize, links: usize) -> Result<Self, ClusterError> {
        let faults = [
            (
                self.link_bytes.len() != links,
                "link_bytes has another number of links",
            ),
            (
                self.iterations.iter().any(|row| row.job as usize >= jobs)
                    || self.rates.iter().any(|&(_, job, _)| job as usize >= jobs),
                "a job is not there",
            ),
            (
                self.iterations
                    .iter()
                    .any(|row| !row.is_in_order(self.time)),
                "times of iterations are out of order, or after the end",
            ),
            (
                self.decisions.iter().any(|row| row.moved > row.flows),
                "a decision moved more flows than there are",
            ),
            (
                !self.iterations.is_sorted_by_key(|row| row.end)
                    || !self.decisions.is_sorted_by_key(|row| row.time)
                    || !self.rates.is_sorted_by_key(|&(time, ..)| time),
                "rows are not in the order of their times",
            ),
            (
                self.iterations.iter().any(|row| !is_amount(row.throughput))
                    || self.rates.iter().any(|&(.., rate)| !is_amount(rate)),
                "a rate is not a number of 0 or more",
            ),
            (
                self.paths.iter().any(|paths| !paths.is_sound(links)),
                "a path is not there, or paths are not in the order of their times",
            ),
        ];
        match faults.iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, why)) => Err(ClusterError::Malformed {
                why: (*why).to_owned(),
            }),
            None => Ok(self),
        }
    }
}

impl Paths {
    fn is_sound(&self, links: usize) -> bool {
        self.given.is_sorted_by_key(|&(time, ..)| time)
            && self
                .given
                .iter()
                .all(|&(.., path)| (path as usize) < self.links.len())
            && self.links.iter().flatten().all(|link| link.index() < links)
    }
}

fn is_amount(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

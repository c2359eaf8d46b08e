//! Training jobs that share a fabric: each computes, reduces its gradients, and begins again.
//!
//! ```text
//! Fabric --+
//! Jobs ----+- simulate -> Outcome: iterations, decisions, links
//! Router --+
//! ```
//!
//! A job is groups of ranks (the GPUs that hold the same parameters) that all follow one plan. A pair of
//! ranks, one of which sends to the other, is a flow: it goes from a NIC over its ToR, the spine that the
//! router chose, and another ToR to another NIC, and flows share links max-min fairly. The controller is
//! asked anew whenever a job starts or stops communicating, and moves flows that are under way.
//!
//! # Source
//! Cohen, Yallouz, Schapira, Belkar, Mizrahi: Routing for large ML models, sections 3, 5 and 8. Section 3.2
//! gives paths anew whenever a flow starts or ends; here, as where section 5.3 measures, that is when a job
//! starts or stops to communicate: the steps of an all-reduce between two ranks are one flow to the
//! controller. The fluid model is that of flow fidelity (`simulate::flow`).

mod control;
mod engine;
mod failover;
mod flows;
mod forward;
mod network;
mod pattern;
mod router;

pub use pattern::{Pattern, Rounds};
pub use router::{ByScheme, FlowOrder, Problem, Reroute, Router};

use std::sync::Arc;

use crate::id::{LinkId, NpuId};
use crate::progress::{Interrupted, Progress};
use crate::routing::{Certificate, Fabric, RoutingError};
use crate::topology::Topology;
use crate::units::{Bandwidth, Time};

/// Where a rank's data enters and leaves the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The NIC, an NPU of the topology.
    pub nic: NpuId,
    /// Number of the host; ranks of one host do not need the fabric.
    pub host: u32,
}

/// A training job.
#[derive(Clone, Debug)]
pub struct Job {
    /// What errors call it.
    pub name: String,
    /// When it starts to compute for the first time.
    pub arrival: Time,
    /// How long it computes before each communication phase, by iteration.
    pub compute: Vec<Time>,
    /// What it communicates after that; a job without only computes.
    pub phase: Option<Phase>,
}

/// What a job communicates in an iteration.
#[derive(Clone, Debug)]
pub struct Phase {
    /// What each group does.
    pub pattern: Arc<Pattern>,
    /// The ports of each group's ranks.
    pub groups: Vec<Vec<Port>>,
}

impl Job {
    /// Pattern and groups of a job that communicates.
    fn communication(&self) -> Option<(&Pattern, &[Vec<Port>])> {
        let phase = self.phase.as_ref()?;
        let is_there = phase.pattern.transfer_count() > 0 && !phase.groups.is_empty();
        is_there.then_some((&*phase.pattern, &phase.groups[..]))
    }
}

/// Links that fail while jobs run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When.
    pub time: Time,
    /// Which, such as both ways between two switches, or all links of a switch.
    pub links: Vec<LinkId>,
}

/// The knobs of [`simulate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterOptions {
    /// When flows are given paths.
    pub reroute: Reroute,
    /// Of each flow between ranks of one host, which needs no NIC.
    pub host_rate: Bandwidth,
    /// What the controller takes to answer, where it has not foreseen what happened: a job starts to
    /// communicate that much later, and flows under way move that much later.
    pub answer: Time,
    /// Of how many coming events assignments are computed ahead; 0: none.
    pub look_ahead: u32,
    /// Whether paths are computed ahead for the failure of each link and each switch above the ToRs; only
    /// where a controller gives them.
    pub failover: bool,
    /// What fails.
    pub outages: Vec<Outage>,
    /// Rate control at hosts: no flow is faster than its fair share of what the controller assigned,
    /// plus this many parts per million, (1 + slack) x in section 8; `None`: as fast as links let it.
    /// Nobody tells hosts of [`Reroute::Never`] and [`Reroute::Spray`] a share.
    pub rate_slack_ppm: Option<u32>,
    /// Flows weigh the bytes that they have left in the phase, not 1 each.
    pub by_bytes: bool,
    /// Whether to keep the rate of each job over time (24 bytes a change).
    pub keep_rates: bool,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        let host_rate = Bandwidth::from_bytes_per_second(300_000_000_000);
        Self {
            reroute: Reroute::Always,
            host_rate: host_rate.unwrap_or_else(|| unreachable!("it is not 0")),
            answer: Time::ZERO,
            look_ahead: 0,
            failover: false,
            outages: Vec::new(),
            rate_slack_ppm: None,
            by_bytes: false,
            keep_rates: false,
        }
    }
}

/// One iteration of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    /// The job.
    pub job: u32,
    /// Which of its iterations, from 0.
    pub index: u32,
    /// When it began to compute.
    pub compute_start: Time,
    /// When its first flows were ready to start.
    pub start: Time,
    /// When its last flow arrived: `end - start` is the all-reduce time.
    pub end: Time,
    /// Transfers over the fabric.
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
    fn new(job: u32, index: u32) -> Self {
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

    /// A transfer over the fabric has arrived, so many picoseconds after it began to be sent.
    fn count(&mut self, bytes: u64, lasted: u64) {
        self.flows += 1;
        self.completion_ps += u128::from(lasted);
        self.throughput += bytes as f64 / (lasted.max(1) as f64 * 1e-12);
        self.slowest = self.slowest.max(Time::from_ps(lasted));
    }
}

/// What the controller did at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When what it answers to happened.
    pub time: Time,
    /// Flows that were given a path.
    pub flows: u32,
    /// How many of those that were under way took another.
    pub moved: u32,
    /// The largest load of a link.
    pub max_link_load: u64,
    /// A load that no assignment can keep every link below, and the ToR that forces it.
    pub certificate: Certificate,
    /// Whether it had been computed ahead.
    pub foreseen: bool,
    /// Whether it answers to a failure.
    pub is_repair: bool,
}

/// What jobs did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// When the last job ended.
    pub time: Time,
    /// Every iteration, in order of their ends.
    pub iterations: Vec<Iteration>,
    /// Everything that the controller did.
    pub decisions: Vec<Decision>,
    /// Bytes over each link of the topology; each saturates at `u64::MAX`.
    pub link_bytes: Vec<u64>,
    /// Changes of what a job sends in all: when, which, and the rate since [bytes/s].
    pub rates: Vec<(Time, u32, f64)>,
    /// Assignments computed ahead, whether they were needed or not.
    pub computed_ahead: u64,
}

/// Why a simulation came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The router could not give every flow a path.
    #[error(transparent)]
    Routing(#[from] RoutingError),
    /// Whoever routes gave up.
    #[error("{0}")]
    Router(String),
    /// Failures that leave flows without a path.
    #[error(
        "job '{job}': no path is left {flows}; keep a spine that both ToRs reach, or place it elsewhere"
    )]
    Cut {
        /// Name of the job.
        job: String,
        /// Its flows, in words.
        flows: String,
    },
    /// A failure that takes a NIC of a job away.
    #[error(
        "job '{job}': loses the link of {nic} at {time}, and has no other; let something else fail"
    )]
    Lost {
        /// Name of the job.
        job: String,
        /// Name of the NIC.
        nic: String,
        /// When.
        time: Time,
    },
    /// Longer than time can be told.
    #[error(
        "the jobs take longer than 213 days; make sizes, arrivals or iterations smaller, or bandwidths larger"
    )]
    TooLong,
    /// The simulation was asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Runs jobs on a fabric.
///
/// A job computes from its arrival on, then its groups communicate, and so on for as many iterations as
/// `compute` has; a phase ends when the last transfer of the last group has arrived. Deterministic.
///
/// # Errors
/// [`ClusterError`]: what the router says, [`ClusterError::TooLong`], [`ClusterError::Interrupted`].
///
/// # Panics
/// If a group has fewer ports than the pattern has ranks, or a port's NIC is not joined to a ToR both ways.
///
/// # Complexity
/// O(log flows) a transfer, and what changed rates cost at each moment; the router's own cost each time
/// that a job starts or stops communicating. Memory O(flows x links of a path + iterations).
pub fn simulate(
    topology: &Topology,
    fabric: &Fabric,
    jobs: &[Job],
    router: &mut dyn Router,
    options: &ClusterOptions,
    progress: &mut dyn Progress,
) -> Result<Outcome, ClusterError> {
    engine::Engine::new(topology, fabric, jobs, options).run(router, progress)
}

#[cfg(test)]
mod tests;

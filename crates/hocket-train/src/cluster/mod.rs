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
//! gives paths anew whenever a flow starts or ends. Here, as where section 5.3 measures, that is when a job
//! starts or stops to communicate: the steps of an all-reduce between two ranks are one flow to the
//! controller. The fluid model is that of flow fidelity (`simulate::flow`).

mod control;
mod engine;
mod flows;
mod forward;
mod network;
mod outcome;
mod pattern;
mod router;
mod steered;

pub use outcome::{Decision, Iteration, Outcome, Paths};
pub use pattern::{Pattern, Rounds};
pub use router::{ByScheme, FlowOrder, Problem, Reroute, Router};
pub use steered::Record;

use std::sync::Arc;

use crate::explain::Explain;
use crate::id::{LinkId, NpuId};
use crate::progress::{Interrupted, Progress};
use crate::routing::{Fabric, RoutingError};
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
    /// Name of the job in errors.
    pub name: String,
    /// Time at which the job starts to compute for the first time.
    pub arrival: Time,
    /// Computing time before each communication phase, by iteration.
    pub compute: Vec<Time>,
    /// Communication phase after each computation; a job without one only computes.
    pub phase: Option<Phase>,
}

/// What a job communicates in an iteration.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Transfers of each group.
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
    /// Time at which the links fail.
    pub time: Time,
    /// Links that fail, such as both directions between two switches, or all links of a switch.
    pub links: Vec<LinkId>,
}

/// The knobs of [`simulate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterOptions {
    /// When flows are given paths.
    pub reroute: Reroute,
    /// Bandwidth of each flow between ranks of one host, which needs no NIC.
    pub host_rate: Bandwidth,
    /// What the controller takes to answer, where it has not foreseen what happened: a job starts to
    /// communicate that much later, and flows under way move that much later.
    pub answer: Time,
    /// Number of coming events for which assignments are computed ahead; 0 for none.
    pub look_ahead: u32,
    /// Whether paths are computed ahead for the failure of each link and each switch above the ToRs; only
    /// where a controller gives them.
    pub failover: bool,
    /// Failures during the run.
    pub outages: Vec<Outage>,
    /// Rate control at hosts: no flow is faster than its fair share of what the controller assigned,
    /// plus this many parts per million, (1 + slack) x in section 8; `None`: as fast as links let it.
    /// Nobody tells hosts of [`Reroute::Never`] and [`Reroute::Spray`] a share.
    pub rate_slack_ppm: Option<u32>,
    /// `true` weighs each flow by the bytes that it has left in the phase; `false` gives each the weight 1.
    pub by_bytes: bool,
    /// `true` keeps the rate of each job over time, 24 bytes a change.
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

/// Why a simulation of jobs has no result.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum ClusterError {
    /// The router could not give every flow a path.
    #[explain(from)]
    Routing(RoutingError),
    /// The router gave up, for a reason of its own.
    #[explain(why("{_0}"))]
    Router(String),
    /// Failures that leave flows without a path.
    #[explain(
        origin("job '{job}'"),
        why("no path is left {flows}"),
        remedy("keep a spine that both ToRs reach, or place it elsewhere")
    )]
    Cut {
        /// Name of the job.
        job: String,
        /// Its flows, in words.
        flows: String,
    },
    /// A failure that takes a NIC of a job away.
    #[explain(
        origin("job '{job}'"),
        why("loses the link of {nic} at {time}, and has no other"),
        remedy("let something else fail")
    )]
    Lost {
        /// Name of the job.
        job: String,
        /// Name of the NIC.
        nic: String,
        /// Time of the failure.
        time: Time,
    },
    /// What was kept of a simulation does not fit its jobs and links.
    #[explain(why("{why}"), remedy("simulate the jobs again"))]
    Malformed {
        /// What does not fit.
        why: String,
    },
    /// The simulated time overflows.
    #[explain(
        why("the jobs take longer than 213 days"),
        remedy("make sizes, arrivals or iterations smaller, or bandwidths larger")
    )]
    TooLong,
    /// The simulation was asked to stop.
    #[explain(from)]
    Interrupted(Interrupted),
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
///
/// # Examples
/// A job on two hosts that twice computes for 1 ms and all-reduces 25 MB:
/// ```
/// use std::sync::Arc;
///
/// use hocket_synth::algorithms::{Algorithm, PlanOptions, plan};
/// use hocket_train::cluster::{
///     ByScheme, ClusterOptions, FlowOrder, Job, Pattern, Phase, Port, Rounds, simulate,
/// };
/// use hocket_plan::collective::{Collective, CollectiveKind};
/// use hocket_base::id::NpuId;
/// use hocket_base::progress::Silent;
/// use hocket_fabric::{Fabric, Scheme};
/// use hocket_topology::build::Clos;
/// use hocket_base::units::{Bandwidth, Seed, Time};
///
/// let bandwidth = Bandwidth::from_bytes_per_second(12_500_000_000).unwrap();
/// let clos = Clos {
///     spines: 1,
///     tors: 2,
///     hosts_per_tor: 1,
///     host_bandwidth: bandwidth,
///     bandwidth,
///     latency: Time::ZERO,
/// }.build()?;
/// let all_reduce = Collective::among_all(CollectiveKind::AllReduce, &clos, 25_000_000)?;
/// let ring = PlanOptions { chunks: Some(1), ..PlanOptions::new(Algorithm::Ring) };
/// let ring = plan(&clos, &all_reduce, &ring, &mut Silent)?;
/// let job = Job {
///     name: "two hosts".to_owned(),
///     arrival: Time::ZERO,
///     compute: vec![Time::from_ns(1_000_000); 2],
///     phase: Some(Phase {
///         pattern: Arc::new(Pattern::new(Arc::new(ring), Rounds::Data)),
///         groups: vec![[0, 1].map(|i| Port { nic: NpuId(i), host: i }).to_vec()],
///     }),
/// };
/// let mut router = ByScheme {
///     scheme: Scheme::EdgeColoring,
///     seed: Seed(0),
///     order: FlowOrder::Job,
/// };
/// let (fabric, options) = (Fabric::new(&clos)?, ClusterOptions::default());
/// let outcome = simulate(&clos, &fabric, &[job], &mut router, &options, &mut Silent)?;
/// assert_eq!(outcome.iterations.len(), 2);
/// assert_eq!(outcome.time, Time::from_ns(2 * (1_000_000 + 2_000_000)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

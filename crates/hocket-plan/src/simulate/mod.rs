//! Runs a verified plan in simulated time.

pub mod flow;
mod link;
mod packet;
mod queue;
mod ready;
mod run;
mod way;

pub use flow::FlowOptions;
pub use packet::PacketOptions;
pub use ready::Ready;
pub use run::{LinkUse, Run, RunColumns, Service};

pub use crate::plan::LinkOrder;
pub use crate::topology::{LatencyModel, Switching};

use crate::explain::Explain;
use crate::id::{LinkId, TransferId};
use crate::plan::PlanError;
use crate::progress::{Interrupted, Progress};
use crate::verify::Verified;
use way::Way;

/// The knobs of a simulation at link fidelity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimulateOptions {
    /// Order in which links serve messages; by default the plan's own.
    pub order: Option<LinkOrder>,
    /// How messages cross switches; by default the topology's own.
    pub switching: Option<Switching>,
    /// Whether a link is held during its latency; [`LatencyModel::Overlapped`] by default.
    pub latency: LatencyModel,
    /// `true` keeps every stay on a link in [`Run::services`], 24 bytes each; `false` by default.
    pub keep_services: bool,
    /// How long before its link is done with it a message is across; 0 by default. A shaper that lets a frame go as soon as
    /// its first byte is due is ahead by a frame.
    pub ahead: crate::units::Time,
}

/// Why a simulation has no result.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum SimulateError {
    /// Links that serve in plan order wait for each other.
    #[explain(
        why(
            "{waiting} transfers wait for ever: links serve in plan order, and transfer {first} waits for one that comes later in it"
        ),
        remedy("reorder the plan or serve in ready order")
    )]
    Deadlock {
        /// Number of transfers that never end.
        waiting: usize,
        /// The first of these transfers.
        first: TransferId,
    },
    /// A sprayed plan at link fidelity.
    #[explain(
        field("routing"),
        why("spray splits transfers over paths, and at link fidelity messages are whole"),
        remedy("simulate at flow or packet fidelity, or route balanced")
    )]
    Sprayed,
    /// Packets wait for each other's buffers.
    #[explain(
        why(
            "{waiting} transfers wait for ever, their packets for room in each other's buffers: {cycle}"
        ),
        remedy("give more room, route round it or use link fidelity")
    )]
    Buffers {
        /// Number of transfers that never end.
        waiting: usize,
        /// The links whose buffers wait for each other, as text.
        cycle: String,
    },
    /// The knobs of packet fidelity contradict each other.
    #[explain(field("packets"), why("{why}"))]
    Packets {
        /// What is wrong with the options and what would be right.
        why: String,
    },
    /// The simulated time overflows.
    #[explain(
        why("the run takes longer than 213 days, more than can be told"),
        remedy("make sizes smaller or bandwidths larger")
    )]
    TooLong,
    /// Columns that are not those of a run (from a file).
    #[explain(field("run"), why("{why}"), remedy("simulate the plan again"))]
    Malformed {
        /// What is wrong with the columns, as a sentence.
        why: String,
    },
    /// The simulation was asked to stop.
    #[explain(from)]
    Interrupted(Interrupted),
}

/// Of a plan that planning made itself.
impl From<SimulateError> for PlanError {
    fn from(error: SimulateError) -> Self {
        match error {
            SimulateError::Interrupted(stop) => Self::Interrupted(stop),
            SimulateError::TooLong => Self::TooLong,
            other => Self::Unrunnable(other.parts()),
        }
    }
}

/// Simulates a plan at link fidelity: each link serves one message at a time.
///
/// A transfer is ready when what it waits for has ended. It crosses its route link by link; a link of
/// latency alpha and bandwidth B is occupied by n bytes for n / B and they arrive alpha later. A
/// switch with a bandwidth limit serves what crosses it one message at a time too. Deterministic.
///
/// # Errors
/// [`SimulateError::Deadlock`] ([`LinkOrder::Plan`] only), [`SimulateError::Sprayed`],
/// [`SimulateError::TooLong`], [`SimulateError::Interrupted`].
///
/// # Complexity
/// O(hops) events, each O(log of the spread of pending times); memory 16 bytes a transfer and 16 an
/// event under way.
///
/// # Source
/// The congestion-aware analytical model of ASTRA-sim (Won et al., ISPASS 2023).
///
/// # Examples
/// Two blocks of 1 MB for one NPU: its link takes one after the other.
/// ```
/// use std::sync::Arc;
///
/// use hocket_base::id::NpuId;
/// use hocket_base::progress::Silent;
/// use hocket_base::units::{Bandwidth, Time};
/// use hocket_plan::collective::{Collective, CollectiveKind};
/// use hocket_plan::plan::{Chunks, Op, PlanBuilder, Wait};
/// use hocket_plan::simulate::{SimulateOptions, simulate};
/// use hocket_plan::verify::verify;
/// use hocket_topology::build;
///
/// let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
/// let switch = Arc::new(build::switch(3, gigabyte, Time::ZERO, None)?);
/// let gather = Collective::among_all(CollectiveKind::Gather, &switch, 3_000_000)?;
/// let mut direct = PlanBuilder::new("direct", &gather, Chunks::split(&gather.demands(), 1)?);
/// for npu in 1..3 {
///     direct.send((npu, 1), NpuId(npu), NpuId(0), Op::Copy, Wait::NOTHING);
/// }
/// let verified = verify(Arc::new(direct.finish()), switch, &mut Silent)?;
///
/// let run = simulate(&verified, &SimulateOptions::default(), &mut Silent)?;
/// assert_eq!(run.end, [Time::from_ns(1_000_000), Time::from_ns(2_000_000)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn simulate(
    verified: &Verified,
    options: &SimulateOptions,
    progress: &mut dyn Progress,
) -> Result<Run, SimulateError> {
    if verified.routes().equal().is_some() {
        return Err(SimulateError::Sprayed);
    }
    link::simulate(Way::new(verified), verified, options, progress)
}

/// As [`simulate`], with each link's messages served by the link that `stands_for` it says: of a plan whose
/// transfers all have explicit paths. The use of a link is that of the one that stands for it.
pub fn simulate_folded(
    verified: &Verified,
    options: &SimulateOptions,
    stands_for: &[LinkId],
    progress: &mut dyn Progress,
) -> Result<Run, SimulateError> {
    let way = Way::folded(verified, stands_for);
    let mut run = link::simulate(way, verified, options, progress)?;
    run.links = stands_for
        .iter()
        .map(|link| run.links[link.index()])
        .collect();
    Ok(run)
}

/// Simulates a plan at flow fidelity: every transfer under way is a flow over all links of its route at
/// once, and flows share links, and the limits of switches, max-min fairly.
///
/// A transfer has arrived the sum of its links' latencies after its last byte left. What waits for it
/// starts at that moment, whatever else is on its links: there is no order of service. A link is busy
/// while at least one flow is on it. Deterministic.
///
/// # Errors
/// [`SimulateError::TooLong`], [`SimulateError::Interrupted`].
///
/// # Complexity
/// O(passages of the links whose flows' rates may change, each log of them) a moment at which some start
/// or end; memory 16 bytes a transfer, 24 a flow and link under way.
///
/// # Source
/// Max-min fairness and progressive filling: Bertsekas and Gallager, Data Networks, section 6.5.2.
///
/// # Examples
/// Two blocks of 1 MB for one NPU: they share its link, and arrive together.
/// ```
/// use std::sync::Arc;
///
/// use hocket_base::id::NpuId;
/// use hocket_base::progress::Silent;
/// use hocket_base::units::{Bandwidth, Time};
/// use hocket_plan::collective::{Collective, CollectiveKind};
/// use hocket_plan::plan::{Chunks, Op, PlanBuilder, Wait};
/// use hocket_plan::simulate::{FlowOptions, simulate_flows};
/// use hocket_plan::verify::verify;
/// use hocket_topology::build;
///
/// let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
/// let switch = Arc::new(build::switch(3, gigabyte, Time::ZERO, None)?);
/// let gather = Collective::among_all(CollectiveKind::Gather, &switch, 3_000_000)?;
/// let mut direct = PlanBuilder::new("direct", &gather, Chunks::split(&gather.demands(), 1)?);
/// for npu in 1..3 {
///     direct.send((npu, 1), NpuId(npu), NpuId(0), Op::Copy, Wait::NOTHING);
/// }
/// let verified = verify(Arc::new(direct.finish()), switch, &mut Silent)?;
///
/// let run = simulate_flows(&verified, &FlowOptions::default(), &mut Silent)?;
/// assert_eq!(run.end, [Time::from_ns(2_000_000); 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn simulate_flows(
    verified: &Verified,
    options: &FlowOptions,
    progress: &mut dyn Progress,
) -> Result<Run, SimulateError> {
    flow::simulate(verified, options, progress)
}

/// Simulates a plan at packet fidelity: packets and flits over routers with virtual channels.
///
/// Gives the time that each transfer's first flit started and its last was taken out, and the use of
/// each link. A transfer's stays on a link are those of its flits, joined where they follow each
/// other. Deterministic.
///
/// # Errors
/// [`SimulateError::Packets`] for options that contradict each other, [`SimulateError::Buffers`] where
/// packets wait for each other's buffers in a circle, and those of [`simulate`].
///
/// # Complexity
/// O(1) events a packet that has its link to itself and ends there, otherwise O(1) a flit and link;
/// memory 40 bytes a transfer, and what the network's buffers hold: nothing grows with the bytes,
/// except what [`PacketOptions::keep_services`] keeps, up to 24 bytes a flit and link.
///
/// # Source
/// See the module; its set-up and figures are Laskar et al.'s (table II).
///
/// # Examples
/// Two blocks of 1 MB for one NPU: their packets alternate on its link.
/// ```
/// use std::sync::Arc;
///
/// use hocket_base::id::NpuId;
/// use hocket_base::progress::Silent;
/// use hocket_base::units::{Bandwidth, Time};
/// use hocket_plan::collective::{Collective, CollectiveKind};
/// use hocket_plan::plan::{Chunks, Op, PlanBuilder, Wait};
/// use hocket_plan::simulate::{PacketOptions, simulate_packets};
/// use hocket_plan::verify::verify;
/// use hocket_topology::build;
///
/// let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
/// let switch = Arc::new(build::switch(3, gigabyte, Time::ZERO, None)?);
/// let gather = Collective::among_all(CollectiveKind::Gather, &switch, 3_000_000)?;
/// let mut direct = PlanBuilder::new("direct", &gather, Chunks::split(&gather.demands(), 1)?);
/// for npu in 1..3 {
///     direct.send((npu, 1), NpuId(npu), NpuId(0), Op::Copy, Wait::NOTHING);
/// }
/// let verified = verify(Arc::new(direct.finish()), switch, &mut Silent)?;
///
/// let run = simulate_packets(&verified, &PacketOptions::default(), &mut Silent)?;
/// // Both end within 1 % of the 2 ms that 2 MB take: routers add cycles, and flits are sent whole.
/// assert!(run.end.iter().all(|end| (1_980_000..2_020_000).contains(&(end.as_ps() / 1_000))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn simulate_packets(
    verified: &Verified,
    options: &PacketOptions,
    progress: &mut dyn Progress,
) -> Result<Run, SimulateError> {
    packet::simulate(verified, options, progress)
}

#[cfg(test)]
mod tests;

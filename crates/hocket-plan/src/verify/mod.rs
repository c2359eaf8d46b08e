//! Proves that a plan does what its collective asks, whatever the timing.
//!
//! A plan is replayed once, in an order that its waits allow, on exact sets of contributions (no
//! sampling, no hashing of contents). It is right if and only if
//!
//! - every transfer names what exists, and its path leads from sender to receiver;
//! - the chunks add up to the collective's bytes, and no cycle of waits exists;
//! - nothing is sent before it is held, added twice, added to nothing, or delivered twice;
//! - every NPU ends with exactly the contributions that the postcondition names;
//! - and *every* order that the waits allow gives the same: each send waits for all that was
//!   received into what it sends, and nothing is received over what is still being sent.
//!
//! A transfer reads its source's value while it runs and changes its destination's when it ends.
//! Sums into one place commute. Source and destination are one buffer per NPU, as in an in-place
//! collective; what is right there is right out of place too.

pub mod contribution;
mod forest;
mod layout;
mod offload;
mod ordering;
mod replay;
mod structure;
mod violation;

pub use violation::{Code, VerifyReport, Violation};

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::collective::CollectiveError;
use crate::explain::Explain;
use crate::id::{ChunkId, NpuId, TransferId};
use crate::plan::{LinkOrder, Plan, PlanError, Routes, Routing};
use crate::progress::{Interrupted, MESSAGE, Progress};
use crate::topology::Topology;

/// A plan that [`verify`] proved right on a topology, with the route of every transfer. Nothing else
/// can be simulated, exported or run.
#[derive(Clone, Debug)]
pub struct Verified {
    plan: Arc<Plan>,
    topology: Arc<Topology>,
    routes: Routes,
    reproducible: bool,
}

impl Verified {
    /// Returns the plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Returns the topology that it was proved on.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// Returns the links that each transfer takes.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Returns the same for the plan whose links are meant to serve in another order, which no proof depends on.
    pub fn with_link_order(mut self, order: LinkOrder) -> Self {
        self.plan = Arc::new(Plan::clone(&self.plan).with_link_order(order));
        self
    }

    /// Spreads the plan over equal paths: proved as well, if every transfer stays on the path that it has.
    ///
    /// # Errors
    /// The plan as it is then, not proved, if one takes another path, or several.
    pub fn routed(&self, routing: Routing) -> Result<Self, Arc<Plan>> {
        let own = &self.plan;
        let plan = Arc::new(Plan::clone(own).routed(&self.topology, routing));
        let is_same = plan.path() == own.path() && plan.paths() == own.paths();
        if !is_same || [plan.routing(), own.routing()].contains(&Routing::Spray) {
            return Err(plan);
        }
        Ok(Self {
            plan,
            ..self.clone()
        })
    }

    /// Returns whether sums come out bit by bit the same in every timing, rounding included: every two sums into one
    /// value are ordered by the waits, so that each value is one expression.
    pub fn reproducible(&self) -> bool {
        self.reproducible
    }
}

/// Why there is no [`Verified`] plan.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum VerifyError {
    /// The plan is wrong.
    #[explain(why("{_0}"))]
    Wrong(VerifyReport),
    /// The plan's collective does not fit the topology.
    #[explain(from)]
    Collective(CollectiveError),
    /// The check was asked to stop.
    #[explain(from)]
    Interrupted(Interrupted),
}

/// Of a plan that planning made itself.
impl From<VerifyError> for PlanError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Interrupted(stop) => Self::Interrupted(stop),
            VerifyError::Collective(why) => Self::Collective(why),
            VerifyError::Wrong(report) => Self::Malformed {
                why: report.to_string(),
            },
        }
    }
}

/// Proves a plan right, or lists what is wrong with it.
///
/// # Errors
/// [`VerifyError::Wrong`] with counterexamples; [`VerifyError::Collective`] where the topology lacks
/// a participant; [`VerifyError::Interrupted`].
///
/// # Complexity
/// O(transfers x segments that each touches), see `layout`; memory 24 bytes a transfer and one
/// component's states. Waits that are not direct may cost a search each.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use hocket_plan::collective::{Collective, CollectiveKind};
/// use hocket_base::id::NpuId;
/// use hocket_plan::plan::{Chunks, Op, PlanBuilder, Wait};
/// use hocket_base::progress::Silent;
/// use hocket_topology::build;
/// use hocket_base::units::{Bandwidth, Time};
/// use hocket_plan::verify::{Code, VerifyError, verify};
///
/// let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
/// let line = Arc::new(build::line(3, gigabyte, Time::ZERO)?);
/// let broadcast = Collective::among_all(CollectiveKind::Broadcast, &line, 1_000_000)?;
/// let mut plan = PlanBuilder::new("relay", &broadcast, Chunks::split(&broadcast.demands(), 1)?);
/// plan.send((0, 1), NpuId(0), NpuId(1), Op::Copy, Wait::NOTHING);
/// plan.send((0, 1), NpuId(1), NpuId(2), Op::Copy, Wait::NOTHING); // does not wait for the data
///
/// let Err(VerifyError::Wrong(report)) = verify(Arc::new(plan.finish()), line, &mut Silent) else {
///     panic!("it is wrong");
/// };
/// assert_eq!(report.violations()[0].code, Code::UnorderedRead);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verify(
    plan: Arc<Plan>,
    topology: Arc<Topology>,
    progress: &mut dyn Progress,
) -> Result<Verified, VerifyError> {
    plan.collective().check_on(&topology)?;
    proved(&plan, &topology, progress).map_err(|error| match error {
        VerifyError::Wrong(report) => VerifyError::Wrong(report.naming(&plan, &topology)),
        other => other,
    })
}

/// Does as [`verify`], and names transfers by their numbers alone.
fn proved(
    plan: &Arc<Plan>,
    topology: &Arc<Topology>,
    progress: &mut dyn Progress,
) -> Result<Verified, VerifyError> {
    const STAGE: &str = "verify";
    const BETWEEN_REPORTS: usize = 1 << 18;
    let mut report = VerifyReport::default();
    structure::check_transfers(plan, topology, &mut report);
    structure::check_bytes(plan, &mut report);
    if !report.is_empty() {
        return Err(VerifyError::Wrong(report));
    }
    let Some(order) = structure::wait_order(plan, &mut report) else {
        return Err(VerifyError::Wrong(report));
    };
    let starts = structure::components(plan);
    let (records, offsets) = structure::records(plan, &starts, &order);
    if topology.has_offload() {
        offload::check(plan, topology, &order, &mut report);
        if !report.is_empty() {
            return Err(VerifyError::Wrong(report));
        }
    }
    let mut replay = replay::Replay::new(plan, topology, &order);
    let mut reported = 0;
    for component in 0..starts.len() - 1 {
        let range = offsets[component] as usize..offsets[component + 1] as usize;
        if range.end - reported >= BETWEEN_REPORTS {
            progress.spend(MESSAGE * (range.end - reported) as u64);
            reported = range.end;
            if !progress.report(STAGE, range.end as u64, plan.len() as u64) {
                return Err(Interrupted.into());
            }
        }
        replay.component(starts[component], starts[component + 1], &records[range]);
        if replay.report.is_full() {
            break;
        }
    }
    progress.spend(MESSAGE * (plan.len() - reported) as u64);
    if !replay.report.is_empty() {
        return Err(VerifyError::Wrong(replay.report));
    }
    let reproducible = replay.reproducible;
    drop(replay);
    drop(records);
    match Routes::resolve(plan, topology) {
        Ok(routes) => Ok(Verified {
            plan: Arc::clone(plan),
            topology: Arc::clone(topology),
            routes,
            reproducible,
        }),
        Err(missing) => Err(VerifyError::Wrong(no_route(plan, missing.transfer))),
    }
}

fn no_route(plan: &Plan, transfer: TransferId) -> VerifyReport {
    let i = transfer.index();
    let mut report = VerifyReport::default();
    report.add(|| Violation {
        code: Code::NoRoute,
        transfer: Some(transfer),
        chunk: Some(ChunkId(plan.chunk()[i])),
        npu: Some(NpuId(plan.src()[i])),
        detail: format!(
            "no links lead from NPU {} to NPU {}",
            plan.src()[i],
            plan.dst()[i]
        ),
    });
    report
}

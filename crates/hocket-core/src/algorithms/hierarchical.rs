//! Hierarchical: reduce-scatter along each dimension of a product topology, all-gather back.
//!
//! Each dimension runs the algorithm that suits its building block, among the NPUs that differ only
//! in that dimension and on the piece they own. Slices of the data are pipelined, so that all
//! dimensions work at once.
//!
//! # Source
//! Cho et al.: BlueConnect, MLSys 2019; ASTRA-sim's multi-rail all-reduce, as in Rashidi et al.:
//! Themis, ISCA 2022.

use super::Job;
use super::dimensional::{self, Along};
use crate::collective::pattern::{Pattern, Shape};
use crate::collective::{Collective, CollectiveKind};
use crate::id::NpuId;
use crate::plan::{Plan, PlanError};
use crate::topology::{Dimension, DimensionKind, Topology};

/// Reduce-scatter up the dimensions, all-gather down.
pub(super) fn build(job: &Job<'_>) -> Result<Plan, PlanError> {
    let sides: Vec<Along> = sides(job.topology.dimensions()).map(along).collect();
    dimensional::build(job, job.collective.npus(), &sides, job.chunks)
}

/// Transfers, exactly.
pub(super) fn transfers(dimensions: &[Dimension], kind: CollectiveKind, chunks: u128) -> u128 {
    let sides = sides(dimensions).map(|side| (side.size as usize, shape(side.kind)));
    dimensional::transfers(kind, chunks, sides)
}

/// Why it cannot run, if it cannot.
pub(super) fn refusal(topology: &Topology, collective: &Collective) -> Option<String> {
    let sizes = topology
        .dimensions()
        .iter()
        .map(|side| u64::from(side.size));
    let name = topology.name();
    if topology.dimensions().is_empty() {
        return Some(format!(
            "topology {name:?} states no dimensions; use a product topology (mesh, torus, \
             Ring_Switch, ...) or another algorithm"
        ));
    }
    if sizes.fold(1, u64::saturating_mul) != topology.npu_count() as u64 {
        return Some(format!(
            "the dimensions of topology {name:?} do not make up its {} NPUs; use a whole product",
            topology.npu_count()
        ));
    }
    if !topology.npus().eq(collective.npus().iter().copied()) {
        let last = NpuId::from(topology.npu_count() - 1);
        return Some(format!(
            "it needs all NPUs of topology {name:?} in order, 0 to {last}; leave the participants \
             out or use another algorithm"
        ));
    }
    None
}

/// The dimensions with more than one NPU.
fn sides(dimensions: &[Dimension]) -> impl Iterator<Item = &Dimension> + Clone {
    dimensions.iter().filter(|side| side.size > 1)
}

fn shape(kind: DimensionKind) -> Shape {
    match kind {
        DimensionKind::Ring | DimensionKind::Line => Shape::Ring,
        DimensionKind::FullyConnected => Shape::Direct,
        DimensionKind::Switch => Shape::HalvingDoubling,
    }
}

/// Slices go round a ring dimension in alternate directions, so that all its links are used. A line
/// is a ring out over the even NPUs and back over the odd ones: two hops at most, and every link is
/// used both ways.
fn along(side: &Dimension) -> Along {
    let n = side.size;
    let patterns = match side.kind {
        DimensionKind::Ring => {
            let ring = Pattern::ring((0..n).collect());
            vec![ring.clone(), ring.reversed()]
        }
        DimensionKind::Line => {
            let back = (0..n).rev().filter(|i| i % 2 == 1);
            vec![Pattern::ring((0..n).step_by(2).chain(back).collect())]
        }
        DimensionKind::FullyConnected => vec![Pattern::direct()],
        DimensionKind::Switch => vec![Pattern::halving_doubling()],
    };
    Along {
        size: n as usize,
        patterns,
    }
}

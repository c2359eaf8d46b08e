//! Trees whose inner nodes are switches that sum and multicast: what every NPU sends is summed on its way to the
//! root, and the sum is copied on its way back, piece by piece.
//!
//! # Source
//! Graham et al., Scalable Hierarchical Aggregation Protocol (SHARP), COMHPC 2016; Klenk et al., An In-Network
//! Architecture for Accelerating Shared-Memory Multiprocessor Collectives, ISCA 2020.

mod grow;
mod layout;
mod multimem;
mod tree_shares;
mod tree;

#[cfg(test)]
mod tests;

use super::direct::Direct;
use super::ladder::Ladder;
use super::recipe::{About, Made, On, Recipe, TREE_KINDS};
use super::{Job, Outline};
use crate::collective::{Collective, CollectiveKind, block_start};
use crate::id::NpuId;
use crate::plan::{Chunks, Plan, PlanError};
use crate::progress::Progress;
use crate::topology::{DimensionKind, Offload};
use layout::Layout;
pub(super) use multimem::Multimem;
pub(super) use tree::{Edge, Tree};

/// Up and down trees whose inner nodes are switches.
pub(super) struct InNetwork;

impl Recipe for InNetwork {
    fn about(&self) -> About {
        About::rule(
            "in-network",
            TREE_KINDS,
            "summed and copied by the switches that can, up and down trees, pipelined: every NPU sends once",
        )
        .promises(100)
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        let On {
            topology,
            collective,
        } = *on;
        let kind = collective.kind();
        let mut devices = topology.devices().iter();
        if devices.any(|device| device.offload.is_some_and(|can| serves(&can, kind))) {
            let found = grow::tree(topology, collective);
            return found.is_none().then(|| {
                "the NPUs are not all joined by links both ways; join them, or use greedy"
                    .to_owned()
            });
        }
        let needed = match kind {
            CollectiveKind::AllReduce => "sums and multicasts",
            CollectiveKind::Broadcast | CollectiveKind::AllGather => "multicasts",
            _ => "sums",
        };
        Some(format!(
            "no switch of {:?} {needed}; say in the topology which do (offload), or use an algorithm that needs none",
            topology.name()
        ))
    }

    fn ladder(&self, _: &On<'_>) -> Ladder {
        // Trees over slow links are under way for many slices.
        Ladder::short(1)
            .usually_best(best_chunks)
            .trying([1, 4, 16, 64, 256, 1_024, 4_096])
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        let mut dimensions = outline.dimensions.iter();
        let has_switch = dimensions.any(|it| it.kind == DimensionKind::Switch);
        match outline.dimensions.is_empty() || has_switch {
            // At least: from every NPU but one, or to it.
            true => outline.others(chunks),
            // Refused, once there is a network; till then as large as direct.
            false => Direct.outlined(outline, chunks),
        }
    }

    fn transfers(&self, on: &On<'_>, chunks: u128) -> u128 {
        let slices = usize::try_from(chunks).unwrap_or(usize::MAX);
        let trees = tree_shares::trees(on.topology, on.collective, slices).list;
        let edges = trees.iter().map(|tree| tree.edges.len() as u128).sum();
        transfers_of(on.collective, edges, chunks)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let (topology, collective) = (job.topology, job.collective);
        let trees = tree_shares::trees(topology, collective, job.chunks);
        let chunks = cut(collective, &trees.list, job.chunks)?;
        let plan = job.builder(chunks);
        let plan = Layout::new(topology, collective, &trees, job.chunks).write(plan);
        Ok(plan.into())
    }
}

/// Returns whether a switch can be an inner node of trees for a kind of collective.
fn serves(can: &Offload, kind: CollectiveKind) -> bool {
    match kind {
        CollectiveKind::AllReduce => can.all_reduces || (can.sums && can.multicasts),
        CollectiveKind::Broadcast | CollectiveKind::AllGather => can.all_reduces || can.multicasts,
        _ => can.all_reduces || can.sums,
    }
}

/// Returns whether a kind has a pass up, in which it sums, and one down, in which it copies.
fn passes(kind: CollectiveKind) -> [bool; 2] {
    let copies = matches!(kind, CollectiveKind::Broadcast | CollectiveKind::AllGather);
    [kind.reduces(), copies || kind == CollectiveKind::AllReduce]
}

/// Returns the NPUs whose trees carry a demand each; `None` for the root of the tree itself.
fn owners(collective: &Collective) -> Vec<Option<NpuId>> {
    match (collective.root(), collective.kind()) {
        (_, CollectiveKind::AllReduce) => vec![None],
        (Some(root), _) => vec![Some(collective.npus()[root.index()])],
        (None, _) => collective.npus().iter().copied().map(Some).collect(),
    }
}

/// Returns the plan of trees that are given, each with an equal share of the data.
pub(super) fn along(job: &Job<'_>, list: Vec<Tree>) -> Result<Plan, PlanError> {
    let (topology, collective) = (job.topology, job.collective);
    let trees = tree_shares::evenly(topology, collective, list, job.chunks);
    let chunks = cut(collective, &trees.list, job.chunks)?;
    let plan = job.builder(chunks);
    Ok(Layout::new(topology, collective, &trees, job.chunks).write(plan))
}

/// Returns the number of transfers of a plan over trees that have so many edges in all, exactly.
pub(super) fn transfers_of(collective: &Collective, edges: u128, chunks: u128) -> u128 {
    let passes = passes(collective.kind()).into_iter();
    let each = owners(collective).len() * passes.filter(|&is_made| is_made).count();
    chunks.saturating_mul(edges.saturating_mul(each as u128))
}

/// Returns the chunks by slice, tree and demand; each tree has its share of every demand.
fn cut(collective: &Collective, trees: &[Tree], slices: usize) -> Result<Chunks, PlanError> {
    let demands = collective.demands();
    let mut parts = Vec::with_capacity(demands.len());
    for demand in &demands {
        let bytes = tree_shares::bytes(trees, demand.bytes);
        if let Some(&least) = bytes.iter().min().filter(|&&least| least < slices as u64) {
            return Err(PlanError::TooManyChunks {
                what: format!("the smallest share of {} trees", trees.len()),
                bytes: least,
                chunks: slices,
            });
        }
        parts.push(bytes);
    }
    let mut chunks = Chunks::with_capacity(slices * trees.len() * demands.len());
    for slice in 0..slices {
        for tree in 0..trees.len() {
            for (demand, bytes) in (0..).zip(&parts) {
                let [start, end] = [slice, slice + 1].map(|i| block_start(bytes[tree], i, slices));
                chunks.push(demand, end - start);
            }
        }
    }
    Ok(chunks)
}

/// Slices by default, where there are bytes for them.
const MOST_CHUNKS: usize = 64;

/// Returns the slices by default: none of a tree's share smaller than a packet.
fn best_chunks(on: &On<'_>) -> usize {
    const PACKET: u64 = 4 << 10;
    let trees = tree_shares::trees(on.topology, on.collective, MOST_CHUNKS).list;
    let demands = on.collective.demands();
    let least = demands
        .iter()
        .flat_map(|demand| tree_shares::bytes(&trees, demand.bytes))
        .min();
    let most = usize::try_from(least.unwrap_or(1) / PACKET);
    most.map_or(MOST_CHUNKS, |most| most.clamp(1, MOST_CHUNKS))
}

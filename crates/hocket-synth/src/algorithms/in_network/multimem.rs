//! Sums and multicasts as GPUs ask NVSwitches for them: a rank reads the sum of its part of all ranks' data, its own included, and
//! multicasts it.
//!
//! So each rank sends 1/n more than in-network, whose root leaves its own data where they are. Every switch has its share of
//! the data in slices, and the ranks sum one after the other: at each switch others first, so that few slices make all ranks
//! sum.
//!
//! # Source
//! NVIDIA, PTX ISA 8.1 and later: `multimem.ld_reduce`, `multimem.st`.

use std::cmp::Reverse;

use super::layout::Layout;
use super::tree::{Edge, Tree};
use super::tree_shares::{self, Trees};
use super::{InNetwork, cut, serves, transfers_of};
use crate::algorithms::ladder::Ladder;
use crate::algorithms::recipe::{About, Made, On, Recipe};
use crate::algorithms::{Job, Outline};
use crate::collective::{Collective, CollectiveKind};
use crate::id::{DeviceId, LinkId, NpuId};
use crate::plan::PlanError;
use crate::progress::Progress;
use crate::topology::{Link, Topology};

/// Stars around switches, each rank the root in turn.
pub(crate) struct Multimem;

impl Recipe for Multimem {
    fn about(&self) -> About {
        About::rule(
            "multimem",
            &[CollectiveKind::AllReduce],
            "as GPUs use NVSwitches: each rank reads the sum of its part from a switch and multicasts it, pipelined",
        )
        .promises(95)
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        stars(on.topology, on.collective).is_empty().then(|| {
            format!(
                "no switch of {:?} that sums and multicasts is linked to every NPU both ways; use in-network, or an algorithm that needs none",
                on.topology.name()
            )
        })
    }

    // With as many slices as ranks each rank sums an equal part.
    fn ladder(&self, on: &On<'_>) -> Ladder {
        let mut rungs = vec![1, 4, 16, 64, 256, 1_024, 4_096, on.npus()];
        rungs.sort_unstable();
        rungs.dedup();
        Ladder::short(1).usually(on.npus()).trying(rungs)
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        InNetwork.outlined(outline, chunks) // no more than of multimem
    }

    fn transfers(&self, on: &On<'_>, chunks: u128) -> u128 {
        let slices = usize::try_from(chunks).unwrap_or(usize::MAX);
        let trees = trees(on.topology, on.collective, slices).list;
        let edges: u128 = trees.iter().map(|tree| tree.edges.len() as u128).sum();
        let own = chunks.saturating_mul(trees.len() as u128);
        transfers_of(on.collective, edges, chunks).saturating_add(own)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let (topology, collective) = (job.topology, job.collective);
        let trees = trees(topology, collective, job.chunks);
        let chunks = cut(collective, &trees.list, job.chunks)?;
        let plan = job.builder(chunks);
        let plan = Layout::new(topology, collective, &trees, job.chunks).write(plan);
        Ok(plan.into())
    }
}

/// Returns a tree for each switch that every participant is linked to both ways, by the fastest link of each way.
fn stars(topology: &Topology, collective: &Collective) -> Vec<Tree> {
    let devices = (0_u32..).zip(topology.devices());
    let able = devices.filter(|(_, device)| {
        let offload = device.offload;
        offload.is_some_and(|can| serves(&can, CollectiveKind::AllReduce))
    });
    able.filter_map(|(id, _)| star(topology, collective, DeviceId(id)))
        .collect()
}

fn star(topology: &Topology, collective: &Collective, switch: DeviceId) -> Option<Tree> {
    let fastest = |from: DeviceId, to: DeviceId| -> Option<LinkId> {
        let links = topology.links_from_to(from, to).iter().copied();
        links.max_by_key(|&id| (topology.link(id).bandwidth, Reverse(id)))
    };
    let edge = |npu: &NpuId| {
        let npu = npu.device();
        let ways = [vec![fastest(npu, switch)?], vec![fastest(switch, npu)?]];
        let ends = [npu, switch];
        Some(Edge { ends, ways })
    };
    let npus = collective.npus().iter();
    let turns: Vec<DeviceId> = npus.clone().map(|npu| npu.device()).collect();
    Some(Tree {
        edges: npus.map(edge).collect::<Option<_>>()?,
        root: turns[0],
        share: 0.0,
        turns,
    })
}

/// Returns the stars with their shares of the data, each of whose slices another rank sums. Slow switches are left out
/// if the others take less time.
fn trees(topology: &Topology, collective: &Collective, slices: usize) -> Trees {
    let mut list = stars(topology, collective);
    let slowness = |tree: &Tree| {
        let ways = tree.edges.iter().flat_map(|edge| &edge.ways);
        let links: Vec<&Link> = ways.flatten().map(|&id| topology.link(id)).collect();
        let rate = links.iter().map(|link| link.bandwidth).min();
        (Reverse(rate), links.iter().map(|link| link.latency).max())
    };
    list.sort_by_key(slowness);
    let ends = (1..=list.len()).rev();
    let ends =
        ends.filter(|&end| end == list.len() || slowness(&list[end - 1]) < slowness(&list[end]));
    let some = ends.map(|end| {
        let mut some = list[..end].to_vec();
        // The ranks that begin at one switch go on where those of the switch before it end.
        for (plane, tree) in some.iter_mut().enumerate() {
            let ranks = tree.turns.len();
            tree.turns.rotate_left(plane * ranks.div_ceil(end) % ranks);
            tree.root = tree.turns[0];
        }
        tree_shares::shared(topology, collective, some, slices)
    });
    let best = some.min_by(|a, b| a.time(slices).total_cmp(&b.time(slices)));
    best.expect("there are stars, as refusal has found")
}

//! Hierarchical: reduce-scatter along each dimension of a product topology, all-gather back.
//!
//! A network that states its nodes, all alike, is a grid too: the NPUs of a node are one dimension, those
//! with the same place in all nodes the other. So is a Clos or fat tree with as many NPUs at
//! every ToR, which count for nodes. Both dimensions are taken as behind one switch.
//!
//! Each dimension runs the algorithm that suits its building block, among the NPUs that differ only
//! in that dimension and on the piece they own. Slices of the data are pipelined, so that all
//! dimensions work at once.
//!
//! # Source
//! Cho et al.: BlueConnect, MLSys 2019; ASTRA-sim's multi-rail all-reduce, as in Rashidi et al.:
//! Themis, ISCA 2022.

use super::dimensional::{self, Along};
use super::ladder::Ladder;
use super::recipe::{About, Made, On, PASSES, Recipe, Scheduler};
use super::{Job, Outline, schedule};
use crate::collective::pattern::{Pattern, Shape};
use crate::collective::{Collective, CollectiveKind};
use crate::id::{NpuId, narrow};
use crate::multirail::{Policy, fixed_order};
use crate::plan::PlanError;
use crate::progress::Progress;
use crate::routing::Fabric;
use crate::topology::{Dimension, DimensionKind, Topology};

/// Reduce-scatter up the dimensions, all-gather down.
pub(super) struct Hierarchical;

impl Recipe for Hierarchical {
    fn about(&self) -> About {
        About::rule(
            "hierarchical",
            PASSES,
            "dimension by dimension of a product topology, each with the algorithm that suits it",
        )
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        let On {
            topology,
            collective,
        } = *on;
        if let (false, Some((odd, npus))) = (topology.groups().is_empty(), uneven(topology)) {
            return Some(format!(
                "nodes of topology {:?} are unlike: the first has {} NPUs, node {odd} {npus}; give all as \
                 many (--groups), or use multi-ring or greedy",
                topology.name(),
                topology.groups()[0].len(),
            ));
        }
        let by_dimensions = topology.groups().is_empty() && !topology.dimensions().is_empty();
        if !by_dimensions && !grid(topology).is_empty() {
            return refusal_of_some(topology, collective);
        }
        match topology.dimensions().is_empty() {
            true => Some(no_nodes(topology)),
            false => product_refusal(topology, collective),
        }
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::short(on.blocks()).usually(4)
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        transfers(&sides(outline.dimensions), outline.kind, chunks)
    }

    fn transfers(&self, on: &On<'_>, chunks: u128) -> u128 {
        transfers(&grid(on.topology), on.collective.kind(), chunks)
    }

    fn scheduler(&self) -> Option<Scheduler> {
        Some(|problem, _, _| schedule::of_lanes(problem, fixed_order, Policy::Fifo))
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let sides: Vec<Along> = grid(job.topology).into_iter().map(along).collect();
        let nodes = job.topology.groups().concat();
        let npus = match nodes.is_empty() {
            true => job.collective.npus(),
            false => &nodes,
        };
        dimensional::build(job, npus, &sides, job.chunks).map(Made::from)
    }
}

/// Returns the number of transfers over a grid, exactly.
pub(super) fn transfers(sides: &[Side], kind: CollectiveKind, chunks: u128) -> u128 {
    let sides = sides
        .iter()
        .map(|side| (side.size as usize, shape(side.kind)));
    dimensional::transfers(kind, chunks, sides)
}

/// One dimension of the grid of NPUs, with more than one NPU along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side {
    size: u32,
    kind: DimensionKind,
}

/// Returns the dimensions of a product with more than one NPU.
pub(super) fn sides(dimensions: &[Dimension]) -> Vec<Side> {
    let long = dimensions.iter().filter(|it| it.size > 1);
    long.map(|it| Side {
        size: it.size,
        kind: it.kind,
    })
    .collect()
}

/// Returns the grid that the NPUs of a topology form: its nodes, its dimensions, or the ToRs of a Clos; empty where
/// there is none.
pub(super) fn grid(topology: &Topology) -> Vec<Side> {
    if !topology.groups().is_empty() {
        return by_groups(topology).unwrap_or_default();
    }
    if topology.dimensions().is_empty() {
        by_tors(topology).unwrap_or_default()
    } else {
        sides(topology.dimensions())
    }
}

/// Returns the NPUs of a node, and nodes, where all nodes have as many.
fn by_groups(topology: &Topology) -> Option<Vec<Side>> {
    let groups = topology.groups();
    let size = groups.first()?.len();
    let joined = |group: &Vec<NpuId>| {
        let pairs = group.iter().flat_map(|a| group.iter().map(move |b| (a, b)));
        let mut pairs = pairs.filter(|(a, b)| a != b);
        pairs.all(|(a, b)| !topology.links_from_to(a.device(), b.device()).is_empty())
    };
    let kind = match groups.iter().all(joined) {
        true => DimensionKind::FullyConnected,
        false => DimensionKind::Switch,
    };
    let inside = Side {
        size: narrow(size),
        kind,
    };
    let between = Side {
        size: narrow(groups.len()),
        kind: DimensionKind::Switch,
    };
    let sides = [inside, between].into_iter().filter(|side| side.size > 1);
    let even = groups.iter().all(|group| group.len() == size);
    even.then(|| sides.collect())
}

/// Returns the NPUs of a ToR, and ToRs, where NPUs are numbered ToR by ToR and all ToRs have as many.
fn by_tors(topology: &Topology) -> Option<Vec<Side>> {
    let fabric = Fabric::new(topology).ok()?;
    let tors: Option<Vec<u32>> = topology.npus().map(|npu| fabric.tor_of(npu)).collect();
    let tors = tors?;
    let each = tors.chunk_by(|a, b| a == b).next()?.len();
    let mut runs: Vec<u32> = tors.chunks(each).map(|run| run[0]).collect();
    let even = tors.len() % each == 0
        && tors
            .chunks(each)
            .all(|run| run.iter().all(|tor| tor == &run[0]));
    let count = narrow(runs.len());
    runs.sort_unstable();
    runs.dedup();
    let is_grid = even && narrow(runs.len()) == count;
    let kind = DimensionKind::Switch;
    let both = [narrow(each), count].map(|size| Side { size, kind });
    is_grid.then(|| both.into_iter().filter(|side| side.size > 1).collect())
}

/// Returns the first node of another size than node 0, and its NPUs.
fn uneven(topology: &Topology) -> Option<(usize, usize)> {
    let mut sizes = topology.groups().iter().map(Vec::len).enumerate();
    let (_, size) = sizes.next()?;
    sizes.find(|&(_, other)| other != size)
}

/// That it is not known which NPUs form a node.
pub(super) fn no_nodes(topology: &Topology) -> String {
    format!(
        "topology {:?} states no dimensions and no nodes; use a product topology (mesh, torus, \
         Ring_Switch, ...), say by groups which NPUs form a node (--groups \"0-3 4-7\"), or use another \
         algorithm",
        topology.name()
    )
}

/// Returns why an algorithm along the dimensions of a product cannot run, if it cannot.
pub(super) fn product_refusal(topology: &Topology, collective: &Collective) -> Option<String> {
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
    refusal_of_some(topology, collective)
}

pub(super) fn refusal_of_some(topology: &Topology, collective: &Collective) -> Option<String> {
    if topology.npus().eq(collective.npus().iter().copied()) {
        return None;
    }
    let last = NpuId::from(topology.npu_count() - 1);
    Some(format!(
        "it needs all NPUs of topology {:?} in order, 0 to {last}; leave the participants \
         out or use another algorithm",
        topology.name()
    ))
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
fn along(side: Side) -> Along {
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
    Along::new(n as usize, patterns)
}

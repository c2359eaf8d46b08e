//! Spanning trees that use a network fully: what a broadcast from every root can come to, and trees that reach it.
//!
//! An all-gather of one byte a root needs, for every set of devices, that what is held outside gets in over the
//! links that lead in. The worst set gives the rate (`rate`); by Edmonds' theorem trees reach it where as much
//! bandwidth enters as leaves every switch. They are found in steps, a file each:
//!
//! | file | what it does |
//! | --- | --- |
//! | `graph` | devices and links as nodes and arcs; logical arcs remember the links that they take |
//! | `rate` | the best rate, exactly, and the cut that proves it |
//! | `scale` | how many trees a root has, and how many of them each link can carry |
//! | `cuts` | sets that are known to matter, and the search for one that a step has broken |
//! | `returns` | arcs back to the only root, left out |
//! | `split` | switches are removed: arcs in and out are joined to arcs between NPUs |
//! | `grow` | trees grow over the arcs, all at once, level by level |
//! | `grow::repair` | the last missing NPUs of trees, by exchanging arcs between two trees |
//! | `shallow` | the trees less deep, in time, by exchanges of paths (`arc_paths`) that meet |
//! | `undirected` | trees of an all-reduce that sum and copy at once, as many as the worst partition allows |
//! | `both_ways` | links with those that lead back, for these trees, and switches removed |
//! | `union` | such trees, found by exchanges of edges |
//! | `union::shallow` | the same less deep |
//! | `reroute` | trees of an all-reduce over the links that are least full, where the worst partition allows more |
//! | `timetable` | when each arc of each tree is used, so that the rate is kept |
//! | `plan` | trees and timetables as a plan |
//! | `witness` | checks trees against the network itself, and by nothing of the above |
//!
//! Nothing is asked in advance whether a step is safe, as published constructions do with a maximum flow for each
//! step: trees that span within the capacities are their own proof. Only where growth is stuck are flows computed;
//! they give the set that was broken, and all starts over with that set known.
//!
//! # Source
//! Edmonds, Edge-disjoint branchings, 1973; Bang-Jensen, Frank, Jackson, Preserving and increasing local
//! edge-connectivity in mixed graphs, 1995 (splitting off); Zhao et al., ForestColl: efficient collective
//! communications on heterogeneous network fabrics, 2024.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

mod graph;
mod rate;
mod cuts;
mod returns;
mod scale;
mod split;
mod grow;
mod arc_paths;
mod shallow;
mod both_ways;
mod union;
mod undirected;
mod reroute;
mod timetable;
mod plan;
mod witness;

pub use plan::Passes;
pub use plan::RowOrder;
pub use rate::Rate;
pub use rate::best as best_rate;
pub use reroute::{Wanted, reroute};
pub use undirected::{Partition, Undirected};
pub use undirected::{pack_undirected, seconds_of_partition};
pub use witness::PackingFault;

// Of the crates below: `crate::id` and so on.
use hocket_base::{explain, id, progress, units};
use hocket_plan::{bound, collective};
use hocket_topology as topology;

use std::ops::RangeInclusive;

use crate::bound::network::ArcNetwork;
use crate::bound::{saturating_bandwidth, show_devices, show_parts};
use crate::id::{DeviceId, LinkId, NpuId};
use crate::progress::{Interrupted, Progress};
use crate::topology::Topology;
use graph::Graph;
use scale::Scale;

/// Trees of one way: all spread from their roots to all ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Whether they lead over links from their ends to their starts: data is summed along them, towards the roots.
    pub turned: bool,
    /// The rate that no packing exceeds.
    pub rate: Rate,
    /// Trees of a root of weight 1.
    pub trees_a_weight: u64,
    /// What all trees together reach of the rate, in millionths, rounded down.
    pub reached_ppm: u64,
    /// The trees, by root.
    pub set: TreeSet,
}

/// Spanning trees of the participants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeSet {
    /// The trees.
    pub trees: Vec<Tree>,
    /// The links of each way that trees take.
    pub ways: Vec<Vec<LinkId>>,
}

/// A spanning tree of the participants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Where it starts.
    pub root: NpuId,
    /// Its arcs, each after the one that leads to its start.
    pub arcs: Vec<TreeArc>,
}

/// An arc of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeArc {
    /// Where it starts.
    pub src: NpuId,
    /// Where it ends.
    pub dst: NpuId,
    /// Position in [`TreeSet::ways`].
    pub way: u32,
    /// Position of the arc of the same tree that leads to `src`; [`TreeArc::ROOT`] at the root.
    pub parent: u32,
}

impl TreeArc {
    /// `parent` of an arc that starts at the root.
    pub const ROOT: u32 = u32::MAX;
}

/// Why there is no packing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPacking {
    /// Somebody cannot be reached, or the numbers of the network are too large to be exact.
    NoRate,
    /// No number of trees that was tried fits.
    Stuck,
    /// Planning was asked to stop.
    Interrupted,
}

impl TreeSet {
    /// Returns the number of arcs from a root to the furthest end.
    pub fn height(&self) -> usize {
        let of = |tree: &Tree| {
            let mut depths: Vec<usize> = Vec::with_capacity(tree.arcs.len());
            for arc in &tree.arcs {
                depths.push(match arc.parent {
                    TreeArc::ROOT => 1,
                    parent => depths[parent as usize] + 1,
                });
            }
            depths.into_iter().max().unwrap_or(0)
        };
        self.trees.iter().map(of).max().unwrap_or(0)
    }
}

impl Packing {
    /// Returns how many seconds a byte of each root of weight 1 takes at the rate that is reached.
    pub fn seconds_a_byte(&self) -> f64 {
        let share = self.reached_ppm.max(1) as f64 / 1e6;
        self.rate.weight as f64 / (self.rate.bandwidth as f64 * share)
    }

    /// One line: how many trees there are, and what they reach of what the worst cut lets through.
    pub fn describe(&self, topology: &Topology) -> String {
        let roots = self.rate.weight;
        format!(
            "{} over {} per root, up to {} deep, at {} of what the cut {} lets through: {} for {}",
            if self.turned { "sums" } else { "copies" },
            counted(self.trees_a_weight.into(), "tree"),
            self.set.height(),
            percent(self.reached_ppm),
            show_devices(topology, &self.cut(topology)),
            saturating_bandwidth(self.rate.bandwidth),
            counted(roots, "root"),
        )
    }

    /// Returns the devices that the worst cut is around: the side with fewer. A switch with a limit is where its inputs
    /// are.
    pub fn cut(&self, topology: &Topology) -> Vec<DeviceId> {
        let devices = (0..topology.device_count()).map(DeviceId::from);
        let (inside, outside): (Vec<DeviceId>, Vec<DeviceId>) =
            devices.partition(|device| self.rate.cut[device.index()]);
        match inside.len() <= outside.len() {
            true => inside,
            false => outside,
        }
    }
}

impl Undirected {
    /// One line: how many trees there are, and what they reach of what the worst partition lets through.
    pub fn describe(&self, topology: &Topology) -> String {
        format!(
            "sums and copies at once over {}, up to {} deep, at {} of what the partition {} lets through: {}",
            counted(self.copies.trees.len() as u128, "tree"),
            self.copies.height().max(self.sums.height()),
            percent(self.reached_ppm),
            show_parts(topology, &self.partition.parts),
            saturating_bandwidth(self.partition.bandwidth),
        )
    }
}

fn counted(count: u128, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn percent(ppm: u64) -> String {
    format!("{} %", ppm as f64 / 10_000.0)
}

impl From<Interrupted> for NoPacking {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}

/// What of a rate is tried where no trees reach it, in per cent: with a little room, they are easier to find.
const ROOMY: [u64; 4] = [98, 97, 94, 90];
/// How often a rate is lowered by a fifth where no trees reach it so either.
const MOST_LOWERED: u32 = 24;

/// Packs trees from roots with weights to all `ends`.
///
/// Roots of weight w have w times as many trees as those of weight 1, the number of which is among `counts`. Devices
/// that are no ends only pass on. Where more enters a switch than leaves it, or less, no trees may reach the rate; the same holds
/// where every link is full. It is then lowered until some do.
///
/// # Errors
/// [`NoPacking`].
pub fn pack(
    network: &ArcNetwork,
    ends: &[NpuId],
    weights: &[(NpuId, u64)],
    counts: RangeInclusive<u64>,
    progress: &mut dyn Progress,
) -> Result<Packing, NoPacking> {
    let rate = rate::best(network, ends, weights, progress)?.ok_or(NoPacking::NoRate)?;
    let graph = Graph::new(network, ends);
    let mut scale =
        scale::choose(&graph, weights, &rate, counts.clone(), progress)?.ok_or(NoPacking::Stuck)?;
    let supply = scale.supply(&graph, weights);
    let costs = costs(network);
    let mut found = trees_of(&graph, &scale, &supply, &costs, progress)?;
    for percent in ROOMY {
        if found.is_some() {
            break;
        }
        let roomy = scale::roomy(&graph, weights, &rate, counts.clone(), percent);
        if let Some(roomy) = roomy {
            let supply = roomy.supply(&graph, weights);
            found = trees_of(&graph, &roomy, &supply, &costs, progress)?;
            if found.is_some() {
                scale = roomy;
            }
        }
    }
    for _ in 0..MOST_LOWERED {
        if found.is_some() {
            break;
        }
        scale = scale.slower(&graph, weights);
        found = trees_of(&graph, &scale, &supply, &costs, progress)?;
    }
    let mut set = found.ok_or(NoPacking::Stuck)?;
    let ends_of = graph::ends_of_links(network);
    set.ways
        .iter_mut()
        .for_each(|way| graph::remove_loops(way, &ends_of));
    Ok(Packing {
        turned: network.is_turned(),
        reached_ppm: scale.reached_ppm(&rate),
        rate,
        trees_a_weight: scale.trees,
        set,
    })
}

fn trees_of(
    graph: &Graph,
    scale: &Scale,
    supply: &[i64],
    costs: &[u64],
    progress: &mut dyn Progress,
) -> Result<Option<TreeSet>, NoPacking> {
    let graph = graph.clone().with_units(&scale.units);
    let plain = trees_over(&graph, supply, costs, progress)?;
    let mut onward = graph.clone();
    let other = match returns::leave_out(&mut onward, supply, costs, progress)? {
        true => trees_over(&onward, supply, costs, progress)?,
        false => None,
    };
    let both = [plain, other].into_iter().flatten();
    Ok(both.min_by_key(|(_, last)| *last).map(|(set, _)| set))
}

/// Trees, and when the first piece is everywhere.
fn trees_over(
    graph: &Graph,
    supply: &[i64],
    costs: &[u64],
    progress: &mut dyn Progress,
) -> Result<Option<(TreeSet, u64)>, NoPacking> {
    let Some(logical) = split::off(graph, supply, progress)? else {
        return Ok(None);
    };
    let forest = grow::forest(&logical, supply, progress)?;
    Ok(forest.map(|forest| shallow::trees(graph, &logical, &forest, costs)))
}

/// Returns how long a piece takes over each arc: its latency, and the mean latency once more in place of the time that
/// its bytes take and that it waits for its turn, which are not known yet.
fn costs(network: &ArcNetwork) -> Vec<u64> {
    let latencies = network.arcs().iter().map(|arc| arc.latency);
    let mean = latencies.clone().sum::<u64>() / network.arcs().len().max(1) as u64;
    latencies.map(|latency| latency + mean + 1).collect()
}

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
//! | `split` | switches are removed: arcs in and out are joined to arcs between NPUs |
//! | `grow` | trees grow over the arcs, all at once, level by level |
//! | `repair` | the last missing NPUs of trees, by exchanging arcs between two trees |
//! | `timetable` | when each arc of each tree is used, so that the rate is kept |
//! | `plan` | trees and timetables as a plan |
//! | `certificate` | checks trees against the network itself, and by nothing of the above |
//!
//! Nothing is asked in advance whether a step is safe, as published constructions do with a maximum flow for each
//! step: trees that span within the capacities are their own proof. Only where growth is stuck are flows computed;
//! they give the set that was broken, and all starts over with that set known.
//!
//! # Source
//! Edmonds, Edge-disjoint branchings, 1973; Bang-Jensen, Frank, Jackson, Preserving and increasing local
//! edge-connectivity in mixed graphs, 1995 (splitting off); Zhao et al., ForestColl: efficient collective
//! communications on heterogeneous network fabrics, 2024.

#[cfg(test)]
mod tests;

mod certificate;
mod cuts;
mod graph;
mod grow;
mod plan;
mod rate;
mod repair;
mod scale;
mod split;
mod timetable;

pub use certificate::Fault;
pub(crate) use plan::Passes;
pub use rate::Rate;

use crate::bound::network::Network;
use crate::id::{LinkId, NpuId};
use crate::progress::{Interrupted, Progress};
use graph::Graph;

/// Trees of one way: all spread from their roots to all ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// The rate that no packing exceeds.
    pub rate: Rate,
    /// Trees of a root of weight 1.
    pub trees_a_weight: u64,
    /// What all trees together reach of the rate, in millionths, rounded down.
    pub reached_ppm: u64,
    /// The trees, by root.
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
    /// Position in [`Packing::ways`].
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

impl From<Interrupted> for NoPacking {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}

/// Packs trees from roots with weights to all `ends`.
///
/// Roots of weight w have w times as many trees as those of weight 1. Devices that are no ends only pass on.
///
/// # Errors
/// [`NoPacking`].
pub(crate) fn pack(
    network: &Network,
    ends: &[NpuId],
    weights: &[(NpuId, u64)],
    progress: &mut dyn Progress,
) -> Result<Packing, NoPacking> {
    let rate = rate::best(network, ends, weights, progress)?.ok_or(NoPacking::NoRate)?;
    let graph = Graph::new(network, ends);
    let scale = scale::choose(&graph, weights, &rate, progress)?.ok_or(NoPacking::Stuck)?;
    let supply = scale.supply(&graph, weights);
    let graph = graph.with_units(&scale.units);
    let logical = split::off(&graph, &supply, progress)?.ok_or(NoPacking::Stuck)?;
    let forest = grow::forest(&logical, &supply, progress)?.ok_or(NoPacking::Stuck)?;
    let (trees, ways) = forest.trees(&logical);
    Ok(Packing {
        reached_ppm: scale.reached_ppm(&rate),
        rate,
        trees_a_weight: scale.trees,
        trees,
        ways,
    })
}

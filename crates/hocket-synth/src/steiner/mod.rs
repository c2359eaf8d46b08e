//! Steiner trees for the demands of one group or of several at once: NPUs that take no part forward, copy and sum.
//!
//! A demand is summed along trees into roots, copied along trees from them, or both at once. Its trees span who holds
//! and who wants it, and may lead over any other NPU. The trees of all demands share the links. What makes a plan of them
//! is in a file each:
//!
//! | file | what it does |
//! | --- | --- |
//! | `grow` | one tree, by the prices of links |
//! | `pack` | the trees of all demands, taken out and grown anew while prices rise |
//! | `stars` | trees of groups behind a switch |
//! | `shares` | how many bytes each of all trees that were found carries |
//! | `jobs` | trees cut into pieces: who sends what to whom, after what |
//! | `list` | when each piece is sent: every link serves the most urgent piece that waits |
//! | `bundles` | shards of neighbours that travel together |
//! | `layers` | switches by how many are passed on the way to them |
//! | `wide` | spanning trees of large networks in which every NPU takes part |
//!
//! [`crate::select::steiner`] chooses among packings and numbers of pieces, and [`crate::select::trees`] among those of `wide`.
//!
//! # Source
//! Takahashi, Matsuyama, An approximate solution for the Steiner problem in graphs, 1980 (`grow`). Garg, Koenemann, Faster and
//! simpler algorithms for multicommodity flow and other fractional packing problems, 1998 (prices). Graham, Bounds on
//! multiprocessing timing anomalies, 1969 (`list`).

mod bundles;
mod grow;
mod layers;
mod wide;
mod jobs;
mod list;
mod pack;
mod shares;
mod stars;
mod stream;

#[cfg(test)]
mod tests;

pub(crate) use bundles::{Bundle, bundles};
pub(crate) use jobs::{Along, Jobs};
pub(crate) use layers::Layers;
pub(crate) use list::{Listed, Timing, Urgency};
pub(crate) use pack::{Known, Packer, Packing};
pub(crate) use wide::{WideTree, WideWish, pack as pack_wide};

pub use crate::bound::Relays;
use crate::collective::Collective;
use crate::id::narrow;

/// A demand that needs trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commodity {
    /// Position among the demands of the collective.
    pub demand: u32,
    pub bytes: u64,
    /// Who holds what is summed, or the only holder of what is copied; ascending.
    pub holders: Vec<u32>,
    /// Who wants it; ascending.
    pub wanted: Vec<u32>,
}

impl Commodity {
    /// Returns the demands of a collective that need trees.
    ///
    /// # Errors
    /// The first demand whose bytes several NPUs hold alike.
    pub(crate) fn all(collective: &Collective) -> Result<Vec<Self>, u32> {
        let npus = collective.npus();
        let mut found = Vec::new();
        for (position, demand) in (0..).zip(collective.demands()) {
            let ids = |set: &crate::collective::NpuSet| {
                let mut ids: Vec<u32> = set.members(npus).iter().map(|npu| npu.0).collect();
                ids.sort_unstable();
                ids
            };
            let (holders, wanted) = (ids(&demand.holders), ids(&demand.wanted));
            if holders.len() > 1 && !demand.reduced {
                return Err(position);
            }
            if holders.len() > 1 || holders != wanted {
                found.push(Self {
                    demand: position,
                    bytes: demand.bytes,
                    holders,
                    wanted,
                });
            }
        }
        Ok(found)
    }

    /// Returns the root of all its trees; `None` if they may have any.
    fn root(&self) -> Option<u32> {
        match (&self.holders[..], &self.wanted[..]) {
            ([one], _) | (_, [one]) => Some(*one),
            _ => None,
        }
    }

    /// Returns whether it is summed.
    fn is_summed(&self) -> bool {
        self.holders.len() > 1
    }

    /// Returns whether it is copied from a root.
    fn is_copied(&self, root: u32) -> bool {
        self.wanted != [root]
    }

    /// Returns whether an NPU holds or wants it.
    fn has(&self, npu: u32) -> bool {
        self.holders.binary_search(&npu).is_ok() || self.wanted.binary_search(&npu).is_ok()
    }

    /// Returns whether one NPU holds it and one other wants it.
    pub(crate) fn is_of_one_for_one(&self) -> bool {
        self.holders.len() == 1 && self.wanted.len() == 1
    }

    /// Returns the NPUs that hold or want it, ascending.
    fn all_ends(&self) -> Vec<u32> {
        let mut ends = [&self.holders[..], &self.wanted].concat();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// Returns the number of NPUs that hold or want it.
    pub(crate) fn ends(&self) -> usize {
        let others = self.wanted.iter();
        let others = others.filter(|npu| self.holders.binary_search(npu).is_err());
        self.holders.len() + others.count()
    }
}

/// A tree of one commodity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub commodity: u32,
    pub root: u32,
    /// Along which it is summed, each after the one that leads to its start; data flow against them.
    pub sums: Vec<Hop>,
    /// Along which it is copied, each after the one that leads to its start. If the commodity is summed and `sums` is
    /// empty, it is summed along these, over the links that lead back.
    pub copies: Vec<Hop>,
}

/// A part of a tree from one NPU to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    /// The NPU nearer to the root.
    pub near: u32,
    /// The NPU farther from the root.
    pub far: u32,
    /// The arcs between them, that nearest to the root first.
    pub arcs: Vec<u32>,
}

/// Where an arc has none that leads back.
pub(crate) const NONE: u32 = u32::MAX;

/// For each arc one that leads back, of the same bandwidth if there is one; [`NONE`] where there is none. The inside of a switch
/// leads both ways.
pub(crate) fn twins(network: &crate::bound::network::ArcNetwork) -> Vec<u32> {
    let arcs = network.arcs();
    let mut left: std::collections::HashMap<(u32, u32), Vec<u32>> =
        std::collections::HashMap::new();
    let ends = |arc: &crate::bound::network::Arc| {
        (
            network.device_of(arc.src as usize).0,
            network.device_of(arc.dst as usize).0,
        )
    };
    for (number, arc) in (0..narrow(arcs.len())).zip(arcs) {
        left.entry(ends(arc)).or_default().push(number);
    }
    let mut found = vec![NONE; arcs.len()];
    for exact in [true, false] {
        for number in 0..narrow(arcs.len()) {
            let arc = &arcs[number as usize];
            if found[number as usize] != NONE {
                continue;
            }
            if arc.internal {
                found[number as usize] = number;
                continue;
            }
            let (src, dst) = ends(arc);
            let Some(back) = left.get_mut(&(dst, src)) else {
                continue;
            };
            let fits = |other: &u32| {
                let other = &arcs[*other as usize];
                !exact || (other.capacity, other.latency) == (arc.capacity, arc.latency)
            };
            if let Some(at) = back.iter().position(fits) {
                found[number as usize] = back.remove(at);
            }
        }
    }
    found
}

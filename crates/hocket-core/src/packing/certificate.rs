//! Checks trees against the network itself.

use std::collections::HashMap;

use super::{Packing, TreeArc};
use crate::id::{LinkId, NpuId};
use crate::topology::Topology;

/// What is wrong with a packing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A tree does not lead from its root to every end, exactly once.
    Span {
        /// Which tree.
        tree: usize,
    },
    /// A way does not lead over links from one end of its arc to the other.
    Way {
        /// Which way.
        way: usize,
    },
    /// The cut does not have the bandwidth and weight that the rate says.
    Cut,
    /// A root has not as many trees as its weight asks for.
    Trees {
        /// Which root.
        root: NpuId,
    },
    /// Links carry more than the rate that is said to be reached allows.
    Rate {
        /// What they allow, in millionths of the best rate.
        ppm: u64,
    },
}

impl Packing {
    /// Checks all of it by looking at the network alone: that each tree spans, that ways lead over links that are
    /// there, that the cut is one, and what rate the fullest link allows.
    ///
    /// # Errors
    /// The first [`Fault`].
    pub fn check(
        &self,
        topology: &Topology,
        ends: &[NpuId],
        weights: &[(NpuId, u64)],
    ) -> Result<(), Fault> {
        self.check_cut(topology, ends, weights)?;
        for (tree, it) in self.trees.iter().enumerate() {
            let mut has: HashMap<NpuId, u32> = HashMap::from([(it.root, TreeArc::ROOT)]);
            for (i, arc) in (0..).zip(&it.arcs) {
                if has.get(&arc.src) != Some(&arc.parent) || has.insert(arc.dst, i).is_some() {
                    return Err(Fault::Span { tree });
                }
                self.check_way(topology, arc)?;
            }
            if has.len() != ends.len() || !ends.iter().all(|end| has.contains_key(end)) {
                return Err(Fault::Span { tree });
            }
        }
        for &(root, weight) in weights {
            let trees = self.trees.iter().filter(|tree| tree.root == root).count() as u64;
            if trees != weight * self.trees_a_weight {
                return Err(Fault::Trees { root });
            }
        }
        match self.allowed_ppm(topology) {
            ppm if ppm < self.reached_ppm => Err(Fault::Rate { ppm }),
            _ => Ok(()),
        }
    }

    fn check_way(&self, topology: &Topology, arc: &TreeArc) -> Result<(), Fault> {
        let mut at = arc.src.device();
        let way = arc.way as usize;
        for &link in &self.ways[way] {
            let link = topology.link(link);
            if link.src != at {
                return Err(Fault::Way { way });
            }
            at = link.dst;
        }
        (at == arc.dst.device())
            .then_some(())
            .ok_or(Fault::Way { way })
    }

    /// That no more than the bandwidth of the rate leads into the cut: over links, or through a switch with a limit
    /// whose inside the cut divides.
    fn check_cut(
        &self,
        topology: &Topology,
        ends: &[NpuId],
        weights: &[(NpuId, u64)],
    ) -> Result<(), Fault> {
        let cut = &self.rate.cut;
        let mut exit: Vec<usize> = (0..topology.device_count()).collect();
        let mut next = exit.len();
        let mut bandwidth = 0;
        for (i, device) in topology.devices().iter().enumerate() {
            if let (Some(limit), false) = (device.limit, topology.is_npu(i.into())) {
                exit[i] = next;
                next += 1;
                if !cut[i] && cut[exit[i]] {
                    bandwidth += u128::from(limit.bytes_per_second());
                }
            }
        }
        for link in topology.links() {
            if !cut[exit[link.src.index()]] && cut[link.dst.index()] {
                bandwidth += u128::from(link.bandwidth.bytes_per_second());
            }
        }
        let outside = weights.iter().filter(|(npu, _)| !cut[npu.index()]);
        let weight = outside.map(|&(_, weight)| u128::from(weight)).sum();
        let reaches = ends.iter().any(|end| cut[end.index()]);
        let agrees = (self.rate.bandwidth, self.rate.weight) == (bandwidth, weight);
        (agrees && reaches).then_some(()).ok_or(Fault::Cut)
    }

    /// The rate that the fullest link, or switch with a limit, leaves to each tree, times the trees of a weight, over
    /// the best rate: in millionths, rounded down.
    fn allowed_ppm(&self, topology: &Topology) -> u64 {
        let mut uses: HashMap<LinkId, u128> = HashMap::new();
        let mut through: HashMap<usize, u128> = HashMap::new();
        for arc in self.trees.iter().flat_map(|tree| &tree.arcs) {
            let way = &self.ways[arc.way as usize];
            for &link in way {
                *uses.entry(link).or_insert(0) += 1;
            }
            for &link in &way[1..] {
                *through.entry(topology.link(link).src.index()).or_insert(0) += 1;
            }
        }
        let links = uses.into_iter();
        let links = links.map(|(link, uses)| (topology.link(link).bandwidth, uses));
        let switches = through.into_iter().filter_map(|(device, uses)| {
            let limit = topology.devices()[device].limit?;
            Some((limit, uses))
        });
        let ppm = |(bandwidth, uses): (crate::units::Bandwidth, u128)| {
            let rate = u128::from(bandwidth.bytes_per_second()) * u128::from(self.trees_a_weight);
            rate * self.rate.weight * 1_000_000 / (uses * self.rate.bandwidth)
        };
        links.chain(switches).map(ppm).min().unwrap_or(0) as u64
    }
}

//! Checks trees against the network itself.

use std::collections::{HashMap, HashSet};

use super::{Packing, TreeArc, TreeSet, Undirected};
use crate::explain::Explain;
use crate::id::{DeviceId, LinkId, NpuId};
use crate::topology::{Link, Topology};
use crate::units::Bandwidth;

/// What is wrong with a packing.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
#[doc(alias = "Fault")]
pub enum PackingFault {
    /// A tree does not lead from its root to every end, exactly once.
    #[explain(why("tree {tree} does not span"))]
    Span {
        /// Which tree.
        tree: usize,
    },
    /// A way does not lead over links from one end of its arc to the other.
    #[explain(why("way {way} does not lead over links from one end to the other"))]
    Way {
        /// Which way.
        way: usize,
    },
    /// The cut does not have the bandwidth and weight that the rate says.
    #[explain(why("the cut is not what the rate says"))]
    Cut,
    /// A root has not as many trees as its weight asks for.
    #[explain(why("{root} has not the trees of its weight"))]
    Trees {
        /// Which root.
        root: NpuId,
    },
    /// Links carry more than the rate that is said to be reached allows.
    #[explain(why("links allow {ppm} millionths of the rate only"))]
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
    /// The first [`PackingFault`].
    pub fn check(
        &self,
        topology: &Topology,
        ends: &[NpuId],
        weights: &[(NpuId, u64)],
    ) -> Result<(), PackingFault> {
        self.check_cut(topology, ends, weights)?;
        self.set.check_spans(topology, ends, self.turned)?;
        for &(root, weight) in weights {
            let trees = self
                .set
                .trees
                .iter()
                .filter(|tree| tree.root == root)
                .count() as u64;
            if trees != weight * self.trees_a_weight {
                return Err(PackingFault::Trees { root });
            }
        }
        match self.allowed_ppm(topology) {
            ppm if ppm < self.reached_ppm => Err(PackingFault::Rate { ppm }),
            _ => Ok(()),
        }
    }

    /// That no more than the bandwidth of the rate leads into the cut: over links, or through a switch with a limit
    /// whose inside the cut divides.
    fn check_cut(
        &self,
        topology: &Topology,
        ends: &[NpuId],
        weights: &[(NpuId, u64)],
    ) -> Result<(), PackingFault> {
        let cut = &self.rate.cut;
        let mut exit: Vec<usize> = (0..topology.device_count()).collect();
        let mut next = exit.len();
        let mut bandwidth = 0;
        for (i, device) in topology.devices().iter().enumerate() {
            if let (Some(limit), false) = (device.limit, topology.is_npu(i.into())) {
                exit[i] = next;
                next += 1;
                let (enters, leaves) = match self.turned {
                    true => (exit[i], i),
                    false => (i, exit[i]),
                };
                if !cut[enters] && cut[leaves] {
                    bandwidth += u128::from(limit.bytes_per_second());
                }
            }
        }
        for link in topology.links() {
            let ends = (exit[link.src.index()], link.dst.index());
            let (start, end) = match self.turned {
                true => (ends.1, ends.0),
                false => ends,
            };
            if !cut[start] && cut[end] {
                bandwidth += u128::from(link.bandwidth.bytes_per_second());
            }
        }
        let outside = weights.iter().filter(|(npu, _)| !cut[npu.index()]);
        let weight = outside.map(|&(_, weight)| u128::from(weight)).sum();
        let reaches = ends.iter().any(|end| cut[end.index()]);
        let agrees = (self.rate.bandwidth, self.rate.weight) == (bandwidth, weight);
        (agrees && reaches).then_some(()).ok_or(PackingFault::Cut)
    }

    /// Returns the rate that the fullest link, or switch with a limit, leaves to each tree, times the trees of a
    /// weight, over the best rate: in millionths, rounded down.
    fn allowed_ppm(&self, topology: &Topology) -> u64 {
        let ppm = |(bandwidth, uses): (Bandwidth, u128)| {
            let rate = u128::from(bandwidth.bytes_per_second()) * u128::from(self.trees_a_weight);
            rate * self.rate.weight * 1_000_000 / (uses * self.rate.bandwidth)
        };
        let used = uses(topology, &[(&self.set, self.turned)]);
        u64::try_from(used.into_iter().map(ppm).min().unwrap_or(0)).unwrap_or(u64::MAX)
    }
}

impl Undirected {
    /// Checks all of it by looking at the network alone, as [`Packing::check`]; that what is summed at
    /// a root is copied from there, and that sums and copies together leave every link the rate that is said to be reached.
    ///
    /// # Errors
    /// The first [`PackingFault`].
    pub fn check(&self, topology: &Topology, ends: &[NpuId]) -> Result<(), PackingFault> {
        self.check_partition(topology, ends)?;
        self.sums.check_spans(topology, ends, true)?;
        self.copies.check_spans(topology, ends, false)?;
        let trees = self.copies.trees.len();
        let root = |set: &TreeSet, tree: usize| set.trees.get(tree).map(|tree| tree.root);
        if let Some(tree) = (0..trees.max(self.sums.trees.len()))
            .find(|&tree| root(&self.sums, tree) != root(&self.copies, tree))
        {
            return Err(PackingFault::Span { tree });
        }
        // Bandwidth / uses x trees, over bandwidth of the partition / 2 / (parts - 1).
        let scale = 2_000_000 * trees as u128 * (self.partition.parts.len() as u128 - 1);
        let ppm = |(bandwidth, uses): (Bandwidth, u128)| {
            let rate = scale.saturating_mul(bandwidth.bytes_per_second().into());
            rate / uses.saturating_mul(self.partition.bandwidth)
        };
        let used = uses(topology, &[(&self.sums, true), (&self.copies, false)]);
        match u64::try_from(used.into_iter().map(ppm).min().unwrap_or(0)).unwrap_or(u64::MAX) {
            ppm if ppm < self.reached_ppm => Err(PackingFault::Rate { ppm }),
            _ => Ok(()),
        }
    }

    /// That every NPU takes part and is in one of the parts, that no switch can sum or multicast, and that no more
    /// bandwidth leads into the parts than is said.
    fn check_partition(&self, topology: &Topology, ends: &[NpuId]) -> Result<(), PackingFault> {
        let parts = &self.partition.parts;
        let mut times = vec![0; topology.npu_count()];
        let mut bandwidth = 0;
        for part in parts {
            let inside: HashSet<DeviceId> = part.iter().copied().collect();
            for npu in inside.iter().filter(|device| topology.is_npu(**device)) {
                times[npu.index()] += 1;
            }
            let links = topology.links().iter();
            let entering =
                links.filter(|link| !inside.contains(&link.src) && inside.contains(&link.dst));
            let capacity = |link: &Link| u128::from(link.bandwidth.bytes_per_second());
            bandwidth += entering.map(capacity).sum::<u128>();
        }
        let all: HashSet<NpuId> = ends.iter().copied().collect();
        let is_all = all.len() == topology.npu_count() && times.iter().all(|&times| times == 1);
        let devices = 0..topology.device_count();
        let able = devices
            .filter(|&device| topology.can_end(device.into()))
            .count();
        let is_exact = able == topology.npu_count() && bandwidth == self.partition.bandwidth;
        (is_all && is_exact && parts.len() > 1)
            .then_some(())
            .ok_or(PackingFault::Cut)
    }
}

impl TreeSet {
    fn check_spans(
        &self,
        topology: &Topology,
        ends: &[NpuId],
        turned: bool,
    ) -> Result<(), PackingFault> {
        for (tree, it) in self.trees.iter().enumerate() {
            let mut has: HashMap<NpuId, u32> = HashMap::from([(it.root, TreeArc::ROOT)]);
            for (i, arc) in (0..).zip(&it.arcs) {
                if has.get(&arc.src) != Some(&arc.parent) || has.insert(arc.dst, i).is_some() {
                    return Err(PackingFault::Span { tree });
                }
                self.check_way(topology, arc, turned)?;
            }
            if has.len() != ends.len() || !ends.iter().all(|end| has.contains_key(end)) {
                return Err(PackingFault::Span { tree });
            }
        }
        Ok(())
    }

    fn check_way(
        &self,
        topology: &Topology,
        arc: &TreeArc,
        turned: bool,
    ) -> Result<(), PackingFault> {
        let mut at = arc.src.device();
        let way = arc.way as usize;
        for &link in &self.ways[way] {
            let (start, end) = ends_of(topology, link, turned);
            if start != at {
                return Err(PackingFault::Way { way });
            }
            at = end;
        }
        (at == arc.dst.device())
            .then_some(())
            .ok_or(PackingFault::Way { way })
    }
}

/// From where to where trees take a link.
fn ends_of(topology: &Topology, link: LinkId, turned: bool) -> (DeviceId, DeviceId) {
    let link = topology.link(link);
    match turned {
        true => (link.dst, link.src),
        false => (link.src, link.dst),
    }
}

/// Returns the bandwidth of each link, and each switch with a limit, that trees use, and how often they do.
fn uses(topology: &Topology, sets: &[(&TreeSet, bool)]) -> Vec<(Bandwidth, u128)> {
    let mut uses: HashMap<LinkId, u128> = HashMap::new();
    let mut through: HashMap<usize, u128> = HashMap::new();
    for &(set, turned) in sets {
        for arc in set.trees.iter().flat_map(|tree| &tree.arcs) {
            let way = &set.ways[arc.way as usize];
            for &link in way {
                *uses.entry(link).or_insert(0) += 1;
            }
            for &link in &way[1..] {
                let (start, _) = ends_of(topology, link, turned);
                *through.entry(start.index()).or_insert(0) += 1;
            }
        }
    }
    let links = uses.into_iter();
    let links = links.map(|(link, uses)| (topology.link(link).bandwidth, uses));
    let switches = through.into_iter().filter_map(|(device, uses)| {
        let limit = topology.devices()[device].limit?;
        Some((limit, uses))
    });
    links.chain(switches).collect()
}

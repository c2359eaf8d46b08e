//! The network that chunks are matched to: NPUs joined by edges, switches unwound.

use super::unwind::{self, Unwinding};
use crate::graph::{Lists, dead_ends};
use crate::id::{LinkId, NpuId};
use crate::topology::{LatencyModel, Switching, Topology};
use crate::units::Bandwidth;

/// A way from one NPU to another that one chunk takes at a time: a link, or links through switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Where it starts.
    pub src: NpuId,
    /// Where it ends.
    pub dst: NpuId,
}

/// What a chunk of one size costs on an edge, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timing {
    /// From its start until it is there.
    pub delay: u64,
    /// From its start until the next may start; never more than `delay`.
    pub occupied: u64,
}

/// NPUs and edges, with the links of the topology that each edge takes.
#[derive(Clone, Debug)]
#[doc(alias = "Network")]
pub struct UnwoundNetwork {
    npus: usize,
    edges: Vec<Edge>,
    paths: Lists<LinkId>,
    /// How many edges share each link, and each device's own limit.
    link_share: Vec<u64>,
    device_share: Vec<u64>,
    out: Lists<u32>,
    into: Lists<u32>,
    /// Number of the node that each NPU belongs to; empty where there are not several nodes of several NPUs.
    node_of: Vec<u32>,
}

impl UnwoundNetwork {
    /// Every link between NPUs is an edge; every fabric of switches is unwound.
    ///
    /// `unwinding` holds one entry for all fabrics, or one for each dimension of a product.
    ///
    /// # Complexity
    /// O(links), and one search of its fabric for each unwound edge.
    pub fn new(topology: &Topology, unwinding: &[Unwinding]) -> Self {
        let mut edges = Vec::new();
        let mut paths = Lists::default();
        let mut link_share = vec![0; topology.links().len()];
        let mut device_share = vec![0; topology.device_count()];
        for (i, link) in topology.links().iter().enumerate() {
            if topology.is_npu(link.src) && topology.is_npu(link.dst) {
                edges.push(Edge {
                    src: NpuId(link.src.0),
                    dst: NpuId(link.dst.0),
                });
                paths.push(&[LinkId::from(i)]);
                link_share[i] = 1;
            }
        }
        unwind::unwind(topology, unwinding, &mut link_share, |edge, path| {
            edges.push(edge);
            paths.push(path);
            for &link in &path[1..] {
                device_share[topology.link(link).src.index()] += 1;
            }
        });
        let npus = topology.npu_count();
        let groups = topology.groups();
        let mut node_of = Vec::new();
        if groups.len() > 1 && groups.iter().any(|group| group.len() > 1) {
            node_of.resize(npus, 0);
            for (node, group) in (0..).zip(groups) {
                group.iter().for_each(|npu| node_of[npu.index()] = node);
            }
        }
        Self {
            out: ends_of(&edges, npus, |edge| edge.src),
            into: ends_of(&edges, npus, |edge| edge.dst),
            npus,
            edges,
            paths,
            link_share,
            device_share,
            node_of,
        }
    }

    /// Returns the same network without edges that lead to dead ends: whether they are there, plans are the same.
    pub(super) fn without_dead_ends(mut self, participants: &[NpuId]) -> Self {
        let mut kept = vec![false; self.npus];
        participants.iter().for_each(|npu| kept[npu.index()] = true);
        let dead = dead_ends(
            &kept,
            self.edges.iter().map(|edge| (edge.src.0, edge.dst.0)),
        );
        if !dead.contains(&true) {
            return self;
        }
        let (edges, all) = (
            std::mem::take(&mut self.edges),
            std::mem::take(&mut self.paths),
        );
        for (edge, path) in edges.into_iter().zip(all.iter()) {
            if !dead[edge.src.index()] && !dead[edge.dst.index()] {
                self.edges.push(edge);
                self.paths.push(path);
            }
        }
        self.out = ends_of(&self.edges, self.npus, |edge| edge.src);
        self.into = ends_of(&self.edges, self.npus, |edge| edge.dst);
        self
    }

    /// Returns how many nodes the topology states, each a group of NPUs; 0 where that tells nothing.
    pub(super) fn nodes(&self) -> usize {
        self.node_of
            .iter()
            .max()
            .map_or(0, |&last| last as usize + 1)
    }

    /// By NPU, the number of its node; empty where there are 0.
    pub(super) fn node_of(&self) -> &[u32] {
        &self.node_of
    }

    /// Returns the same network, every edge turned round.
    pub(super) fn mirrored(&self) -> Self {
        let mut mirrored = self.clone();
        for edge in &mut mirrored.edges {
            std::mem::swap(&mut edge.src, &mut edge.dst);
        }
        std::mem::swap(&mut mirrored.out, &mut mirrored.into);
        mirrored
    }

    /// Returns how many NPUs.
    pub fn npus(&self) -> usize {
        self.npus
    }

    /// Returns every edge.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the links that an edge takes, in order.
    pub fn path(&self, edge: u32) -> &[LinkId] {
        self.paths.get(edge as usize)
    }

    /// Returns the edges that start at an NPU.
    pub fn out_edges(&self, npu: usize) -> &[u32] {
        self.out.get(npu)
    }

    /// Returns the edges that end at an NPU.
    pub fn in_edges(&self, npu: usize) -> &[u32] {
        self.into.get(npu)
    }

    /// Returns what a chunk of `bytes` costs on each edge.
    ///
    /// A link, or a switch's own limit, that k edges share gives each 1/k of its bandwidth. Stored and
    /// forwarded, a chunk is sent whole on every link of its path and passes every limit whole; cut
    /// through, the slowest of them alone counts.
    ///
    /// # Source
    /// TACOS, section IV-D: degree-d unwinding leaves each edge 1/d of the bandwidth.
    pub fn timings(&self, topology: &Topology, bytes: u64, latency: LatencyModel) -> Vec<Timing> {
        let time = |path| {
            let (mut sum, mut alpha, mut widest, mut occupied) = (0u64, 0u64, 0u64, 0u64);
            for (bandwidth, share, delay) in self.stages(topology, path) {
                let sent = bandwidth.transmission(bytes).as_ps().saturating_mul(share);
                alpha = alpha.saturating_add(delay);
                sum = sum.saturating_add(sent);
                widest = widest.max(sent);
                occupied = occupied.max(match latency {
                    LatencyModel::Overlapped => sent,
                    LatencyModel::Occupying => sent.saturating_add(delay.saturating_mul(share)),
                });
            }
            let delay = match topology.switching() {
                Switching::StoreAndForward => alpha.saturating_add(sum),
                Switching::CutThrough => alpha.saturating_add(widest),
            };
            Timing {
                delay: delay.max(occupied).max(1),
                occupied: occupied.max(1),
            }
        };
        self.paths.iter().map(time).collect()
    }

    /// Returns what serves a chunk on a path, one after the other: the bandwidth, how many edges share it, and the
    /// latency after it, in picoseconds.
    fn stages<'a>(
        &'a self,
        topology: &'a Topology,
        path: &'a [LinkId],
    ) -> impl Iterator<Item = (Bandwidth, u64, u64)> + 'a {
        path.iter().flat_map(|&id| {
            let link = topology.link(id);
            let limit = topology.device(link.src).limit;
            let limit = limit.filter(|_| !topology.is_npu(link.src));
            let limit = limit.map(|limit| (limit, self.device_share[link.src.index()], 0));
            let share = self.link_share[id.index()];
            let link = (link.bandwidth, share, link.latency.as_ps());
            limit.into_iter().chain([link])
        })
    }
}

/// Edges by the NPU at one of their ends.
fn ends_of(edges: &[Edge], npus: usize, end: fn(&Edge) -> NpuId) -> Lists<u32> {
    let ends = edges.iter().map(move |edge| end(edge).index());
    Lists::grouped(npus, ends.zip(0u32..))
}

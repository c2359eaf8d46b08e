//! NCCL's rings, double binary trees and sums in switches, over the channels of its graphs.
//!
//! A channel is a ring that goes one way, with an equal share of the data. On several nodes there is one for each
//! port of a node; on one node as many as there are cycles that share no bandwidth, so that behind a switch there is
//! one, as all of NCCL's channels have the same order there. NCCL finds its channels by a search of its own and
//! duplicates them; what they carry together is the same.
//!
//! # Source
//! NVIDIA NCCL 2.x, `src/graph/search.cc`, `rings.cc`, `trees.cc` and `connect.cc`; Hu et al., Demystifying NCCL,
//! 2025.

mod channels;
mod cycles;
mod design;
mod given;
mod nvls;
mod ring;
mod tree;

pub use design::{Design, LeftOut, Nic, design_channels};
pub use given::{GivenChannel, Joint, Leg, plan_channels, plan_heads};
pub(super) use nvls::NcclNvls;
pub(super) use ring::NcclRing;
pub(super) use tree::NcclTree;

use super::hierarchical;
use super::in_network::{Edge, Tree};
use super::recipe::On;
use crate::id::{DeviceId, LinkId, NpuId};
use crate::topology::Topology;
use crate::topology::shortest::RouteTree;
use channels::NcclChannel;

/// NPUs of a node at most: `NCCL_TOPO_MAX_NODES` of NCCL 2.30, `src/include/graph.h`.
pub(super) const LARGEST_NODE: usize = 640;

/// Returns why an algorithm of NCCL cannot run, if it cannot.
fn refusal(on: &On<'_>) -> Option<String> {
    let some = hierarchical::refusal_of_some(on.topology, on.collective);
    some.or_else(|| too_large(on.topology))
}

/// Returns why a node is too large for NCCL, if one is.
fn too_large(topology: &Topology) -> Option<String> {
    let groups = topology.groups().iter().map(Vec::len).max();
    let largest = groups.unwrap_or(topology.npu_count());
    (largest > LARGEST_NODE).then(|| {
        format!(
            "NCCL has nodes of at most {LARGEST_NODE} NPUs, not {largest}; say by groups which NPUs form one, or use \
             another algorithm"
        )
    })
}

/// The edge of a tree between two NPUs, by the ways that single messages take.
struct Roads<'a> {
    topology: &'a Topology,
    bytes: u64,
    known: Vec<Option<RouteTree>>,
}

impl<'a> Roads<'a> {
    fn new(topology: &'a Topology, bytes: u64) -> Self {
        Self {
            topology,
            bytes,
            known: vec![None; topology.npu_count()],
        }
    }

    fn way(&mut self, src: NpuId, dst: NpuId) -> Vec<LinkId> {
        let (topology, bytes) = (self.topology, self.bytes);
        let known = &mut self.known[dst.index()];
        let tree = known.get_or_insert_with(|| RouteTree::to(topology, dst.device(), bytes, None));
        let path = tree.path(topology, src.device());
        path.expect("participants reach one another, as was checked")
    }

    fn edge(&mut self, a: NpuId, b: NpuId) -> Edge {
        Edge {
            ends: [a.device(), b.device()],
            ways: [self.way(a, b), self.way(b, a)],
        }
    }

    /// Returns the edge from an NPU of a channel to the next, on the channel's own links and back beside them.
    fn step(&mut self, channel: &NcclChannel, a: NpuId, b: NpuId) -> Edge {
        let mut edge = self.edge(a, b);
        if let Some(links) = channel.paths.get(&(a, b)) {
            edge.ways[0].clone_from(links);
            let beside = links.iter().rev().map(|&id| {
                let link = self.topology.link(id);
                self.topology
                    .links_from_to(link.dst, link.src)
                    .first()
                    .copied()
            });
            if let Some(back) = beside.collect() {
                edge.ways[1] = back;
            }
        }
        edge
    }

    /// Returns the edges of a channel from its first NPU to its last.
    fn chain(&mut self, channel: &NcclChannel) -> Vec<Edge> {
        let pairs = channel.order.windows(2);
        pairs
            .map(|pair| self.step(channel, pair[0], pair[1]))
            .collect()
    }
}

/// Returns a tree of such edges.
fn rooted(edges: Vec<Edge>, root: DeviceId) -> Tree {
    Tree {
        edges,
        root,
        share: 1.0,
        turns: Vec::new(),
    }
}

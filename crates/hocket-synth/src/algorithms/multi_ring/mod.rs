//! Multi-ring: several rings over the nodes of a network, one for each way out of a node, both ways round.
//!
//! What NCCL does with several network interfaces (NICs) in a node: ring k leaves and enters each node by its
//! k-th interface, and within the node passes all NPUs along their fastest links. Each ring takes an equal
//! share of the data. Unlike NCCL's, rings run in both directions, and consecutive nodes are passed in turned
//! order, so that on rails a ring enters the next node on the rail that it left by.
//!
//! # Source
//! NVIDIA NCCL 2.x, `src/graph/search.cc` and `rings.cc` (how channels are searched for and joined);
//! Patarasu, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009 (each ring).

mod node;
mod ring_paths;

use std::collections::HashMap;

use super::dimensional::{self, Along, PathOf};
use super::hierarchical;
use super::ladder::Ladder;
use super::recipe::{About, Made, On, PASSES, Recipe};
use super::{Job, Outline};
use crate::collective::pattern::{Pattern, Shape};
use crate::id::{DeviceId, LinkId, NpuId, narrow};
use crate::plan::PlanError;
use crate::progress::Progress;
use crate::topology::Topology;
use node::NodeDevices;
use ring_paths::RingPaths;

/// Rings at most, in each direction, as NCCL has 32 channels at most.
const MAX_RINGS: usize = 16;

/// All rings abreast, each way.
pub(super) struct MultiRing;

impl Recipe for MultiRing {
    fn about(&self) -> About {
        About::rule(
            "multi-ring",
            PASSES,
            "rings over the nodes, one for each way out of a node and both ways round, as NCCL's channels",
        )
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        let On {
            topology,
            collective,
        } = *on;
        if topology.groups().is_empty() {
            return Some(format!(
                "topology {:?} states no nodes; say by groups which NPUs form one (--groups \"0-3 4-7\"), or use another algorithm",
                topology.name()
            ));
        }
        hierarchical::refusal_of_some(topology, collective)
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::short(lanes(on.topology) * on.blocks())
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.flat(chunks.saturating_mul(2), Shape::Ring) // or several times that
    }

    fn transfers(&self, on: &On<'_>, chunks: u128) -> u128 {
        let lanes = (lanes(on.topology) as u128).saturating_mul(chunks);
        on.outline().flat(lanes, Shape::Ring)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let npus = job.collective.npus();
        let rings = Nodes::new(job.topology, job.collective.size()).rings();
        let mut patterns = Vec::new();
        let mut paths = Vec::new();
        for ring in rings {
            let pattern = Pattern::ring(ranks(job, &ring.order()));
            patterns.extend([pattern.clone(), pattern.reversed()]);
            paths.extend([ring.there, ring.back]);
        }
        let lanes = patterns.len() * job.chunks;
        let side = Along::new(npus.len(), patterns).on_paths(paths);
        dimensional::build(job, npus, &[side], lanes).map(Made::from)
    }
}

/// Returns the ranks of NPUs in a collective.
pub(super) fn ranks(job: &Job<'_>, order: &[NpuId]) -> Vec<u32> {
    let mut rank = vec![0u32; job.topology.npu_count()];
    for (i, npu) in job.collective.npus().iter().enumerate() {
        rank[npu.index()] = narrow(i);
    }
    order.iter().map(|npu| rank[npu.index()]).collect()
}

/// Returns the number of rings, both directions counted.
pub(super) fn lanes(topology: &Topology) -> usize {
    2 * ports(topology)
        .iter()
        .map(Vec::len)
        .max()
        .unwrap_or(0)
        .clamp(1, MAX_RINGS)
}

/// A cycle over all NPUs, and the links that it takes between nodes, each way.
pub(super) struct Ring {
    /// The NPUs of each node, in the order in which the ring passes them; those of every other node begin with
    /// the one that is the farthest from the ring's port.
    pub nodes: Vec<Vec<NpuId>>,
    pub there: PathOf,
    pub back: PathOf,
}

impl Ring {
    /// Returns all NPUs, in order.
    pub(crate) fn order(&self) -> Vec<NpuId> {
        self.nodes.concat()
    }

    /// Returns the NPUs of a node, those near the ring's port first.
    pub(crate) fn inward(&self, node: usize) -> Vec<NpuId> {
        let mut npus = self.nodes[node].clone();
        if is_turned(node) {
            npus.reverse();
        }
        npus
    }
}

/// Returns whether a ring passes a node from the far end, so that it enters the next one on the rail that it left by.
fn is_turned(node: usize) -> bool {
    node % 2 == 1
}

/// Returns the switches by which each node is left, by number: not of the node, with a way to another one.
fn ports(topology: &Topology) -> Vec<Vec<DeviceId>> {
    let groups = topology.groups();
    groups
        .iter()
        .map(|group| NodeDevices::of(topology, group).ports(topology, group))
        .collect()
}

/// The nodes of a network, and the ways between them that are used already.
pub(super) struct Nodes<'a> {
    topology: &'a Topology,
    insides: Vec<NodeDevices>,
    ports: Vec<Vec<DeviceId>>,
    ways: RingPaths<'a>,
}

impl<'a> Nodes<'a> {
    /// For a collective of so many bytes.
    pub(crate) fn new(topology: &'a Topology, size: u64) -> Self {
        let bytes = size / (lanes(topology) * topology.npu_count()) as u64;
        let groups = topology.groups().iter();
        Self {
            topology,
            insides: groups
                .map(|group| NodeDevices::of(topology, group))
                .collect(),
            ports: ports(topology),
            ways: RingPaths::new(topology, bytes.max(1)),
        }
    }

    fn port(&self, node: usize, k: usize) -> Option<DeviceId> {
        let ports = &self.ports[node];
        (!ports.is_empty()).then(|| ports[k % ports.len()])
    }

    /// Returns the links from an NPU of a node to one of another, out and in by the `k`-th ports; `None` where there
    /// are none such.
    pub(crate) fn between(
        &mut self,
        k: usize,
        (from, src): (usize, NpuId),
        (to, dst): (usize, NpuId),
    ) -> Option<Vec<LinkId>> {
        let (out, into) = (self.port(from, k)?, self.port(to, k)?);
        let (here, there) = (&self.insides[from], &self.insides[to]);
        self.ways.between((src, here, out), (dst, there, into))
    }

    /// Returns an order of a node's NPUs along its fastest and least used links, for a ring that goes one way.
    pub(crate) fn order(&mut self, node: usize, ends: (NpuId, NpuId)) -> Vec<NpuId> {
        let group = &self.topology.groups()[node];
        self.insides[node].order(&mut self.ways, group, ends, false)
    }

    /// Returns a ring for each port of a node.
    pub(crate) fn rings(&mut self) -> Vec<Ring> {
        (0..lanes(self.topology) / 2)
            .map(|k| self.ring(k))
            .collect()
    }

    fn ring(&mut self, k: usize) -> Ring {
        let mut nodes: Vec<Vec<NpuId>> = Vec::new();
        for (node, group) in self.topology.groups().iter().enumerate() {
            let gates = (self.port(node, k), self.port(node, k + 1));
            let inside = &self.insides[node];
            let (mut first, mut last) = inside.ends(&self.ways, group, gates, k);
            if is_turned(node) {
                (first, last) = (last, first);
            }
            nodes.push(inside.order(&mut self.ways, group, (first, last), true));
        }
        let (mut there, mut back) = (HashMap::new(), HashMap::new());
        let count = nodes.len();
        for node in (0..count).filter(|_| count > 1) {
            let next = (node + 1) % count;
            let (src, dst) = (nodes[node][nodes[node].len() - 1], nodes[next][0]);
            if let Some(links) = self.between(k, (node, src), (next, dst)) {
                there.insert((src, dst), links);
            }
            if let Some(links) = self.between(k, (next, dst), (node, src)) {
                back.insert((dst, src), links);
            }
        }
        Ring { nodes, there, back }
    }
}

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

mod inside;
mod ways;

use std::collections::HashMap;

use super::Job;
use super::dimensional::{self, Along, PathOf};
use super::hierarchical;
use crate::collective::pattern::Pattern;
use crate::collective::{Collective, CollectiveKind};
use crate::id::{DeviceId, NpuId};
use crate::plan::{Plan, PlanError};
use crate::topology::Topology;
use inside::Inside;
use ways::Ways;

/// Rings at most, in each direction, as NCCL has 32 channels at most.
const MAX_RINGS: usize = 16;

/// All rings abreast, each way.
pub(super) fn build(job: &Job<'_>) -> Result<Plan, PlanError> {
    let npus = job.collective.npus();
    let rings = rings(job.topology, job.collective.size());
    let mut rank = vec![0u32; job.topology.npu_count()];
    for (i, npu) in npus.iter().enumerate() {
        rank[npu.index()] = i as u32;
    }
    let mut patterns = Vec::new();
    let mut paths = Vec::new();
    for ring in rings {
        let cycle = ring.order.iter().map(|npu| rank[npu.index()]).collect();
        let pattern = Pattern::ring(cycle);
        patterns.extend([pattern.clone(), pattern.reversed()]);
        paths.extend([ring.there, ring.back]);
    }
    let lanes = patterns.len() * job.chunks;
    let side = Along::new(npus.len(), patterns).on_paths(paths);
    dimensional::build(job, npus, &[side], lanes)
}

/// How many rings there are, both directions counted.
pub(super) fn lanes(topology: &Topology) -> usize {
    2 * ports(topology)
        .iter()
        .map(Vec::len)
        .max()
        .unwrap_or(0)
        .clamp(1, MAX_RINGS)
}

/// Transfers, exactly.
pub(super) fn transfers(kind: CollectiveKind, npus: usize, lanes: u128) -> u128 {
    let shape = crate::collective::pattern::Shape::Ring;
    dimensional::transfers(kind, lanes, [(npus, shape)].into_iter())
}

/// Why it cannot run, if it cannot.
pub(super) fn refusal(topology: &Topology, collective: &Collective) -> Option<String> {
    if topology.groups().is_empty() {
        return Some(format!(
            "topology {:?} states no nodes; say by groups which NPUs form one (--groups \"0-3 4-7\"), or use another algorithm",
            topology.name()
        ));
    }
    hierarchical::refusal_of_some(topology, collective)
}

/// A cycle over all NPUs, and the links that it takes between nodes, each way.
struct Ring {
    order: Vec<NpuId>,
    there: PathOf,
    back: PathOf,
}

/// The switches by which each node is left, by number: not of the node, with a way to another one.
fn ports(topology: &Topology) -> Vec<Vec<DeviceId>> {
    let groups = topology.groups();
    groups
        .iter()
        .map(|group| Inside::of(topology, group).ports(topology, group))
        .collect()
}

fn rings(topology: &Topology, size: u64) -> Vec<Ring> {
    let groups = topology.groups();
    let ports = ports(topology);
    let count = lanes(topology) / 2;
    let bytes = size / (2 * count * topology.npu_count()) as u64;
    let mut ways = Ways::new(topology, bytes.max(1));
    let insides: Vec<Inside> = groups.iter().map(|g| Inside::of(topology, g)).collect();
    let mut rings = Vec::with_capacity(count);
    for k in 0..count {
        let port = |node: usize| {
            let ports = &ports[node];
            (!ports.is_empty()).then(|| ports[k % ports.len()])
        };
        let mut ends = Vec::with_capacity(groups.len());
        let mut order = Vec::with_capacity(topology.npu_count());
        for (node, group) in groups.iter().enumerate() {
            let next = ports[node].get((k + 1) % ports[node].len().max(1)).copied();
            let (mut first, mut last) = insides[node].ends(&ways, group, (port(node), next), k);
            if node % 2 == 1 {
                (first, last) = (last, first);
            }
            order.extend(insides[node].order(&mut ways, group, first, last));
            ends.push((first, last));
        }
        let mut there = HashMap::new();
        let mut back = HashMap::new();
        let nodes = groups.len();
        for node in (0..nodes).filter(|_| nodes > 1) {
            let next = (node + 1) % nodes;
            let (src, dst) = (ends[node].1, ends[next].0);
            let (out, into) = (port(node), port(next));
            if let (Some(out), Some(into)) = (out, into) {
                let (here, other) = (&insides[node], &insides[next]);
                if let Some(links) = ways.between((src, here, out), (dst, other, into)) {
                    there.insert((src, dst), links);
                }
                if let Some(links) = ways.between((dst, other, into), (src, here, out)) {
                    back.insert((dst, src), links);
                }
            }
        }
        rings.push(Ring { order, there, back });
    }
    rings
}

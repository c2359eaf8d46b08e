//! NCCL's NVLS: in each node the switch sums what all NPUs send and passes the sum to one of them, which sends it back
//! to be multicast. Every NPU is that one for a share of the data. Over several nodes those of equal place form two
//! binary trees (NVLSTree).
//!
//! In NCCL the sum includes what the NPU itself sent to the switch, and the result comes back to it from there; here
//! neither leaves the NPU, which saves one part in n of what its link carries.

use std::collections::BTreeMap;

use super::channels::is_spread;
use super::tree::doubled;
use super::{LARGEST_NODE, Roads, rooted};
use crate::algorithms::in_network::{self, Edge, Tree};
use crate::algorithms::ladder::Ladder;
use crate::algorithms::recipe::{About, Made, On, PASSES, Recipe};
use crate::algorithms::{Job, Outline};
use crate::collective::{Collective, CollectiveKind};
use crate::id::{DeviceId, NpuId};
use crate::plan::PlanError;
use crate::progress::Progress;
use crate::topology::Topology;

/// Trees at most in a node.
const MOST: usize = 512;

/// Up and down all trees, piece by piece.
pub(in crate::algorithms) struct NcclNvls;

impl Recipe for NcclNvls {
    fn about(&self) -> About {
        About::rule(
            "nccl-nvls",
            PASSES,
            "NCCL's NVLS: summed and multicast by the switches of each node, trees between nodes",
        )
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        super::refusal(on).or_else(|| refusal(on.topology, on.collective))
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::pipelined(count(on.topology, on.collective.kind()))
    }

    // One tree in a lone node, two trees at least over several.
    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        let is_spread = outline.npus as usize > LARGEST_NODE;
        outline.others(chunks.saturating_mul(if is_spread { 4 } else { 1 }))
    }

    fn transfers(&self, on: &On<'_>, chunks: u128) -> u128 {
        let edges = edges(on.topology, on.collective.kind(), None);
        in_network::transfers_of(on.collective, edges, chunks)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        in_network::along(job, trees(job.topology, job.collective.kind())).map(Made::from)
    }
}

/// Returns why it cannot run, if it cannot.
fn refusal(topology: &Topology, collective: &Collective) -> Option<String> {
    let kind = collective.kind();
    if is_spread(topology) && kind != CollectiveKind::AllReduce {
        return Some(format!(
            "over several nodes it does all-reduce, not {kind}; use nccl-ring"
        ));
    }
    let nodes = nodes(topology);
    if nodes.iter().any(|node| node.len() == 1) {
        return Some(
            "a node with one NPU has nothing that a switch could sum; use nccl-ring".to_owned(),
        );
    }
    let switches: Vec<Vec<DeviceId>> = nodes.iter().map(|node| switches(topology, node)).collect();
    if switches.iter().any(Vec::is_empty) {
        return Some(format!(
            "no switch that sums and multicasts joins all NPUs of each node of {:?}; say in the topology which do \
             (offload), or use nccl-ring",
            topology.name()
        ));
    }
    if let Some((switch, [one, other])) = shared(&switches) {
        return Some(format!(
            "switch {:?} sums for nodes {one} and {other}, and NCCL sums in each node by itself; make one node of \
             what it joins (--groups), or use nccl-ring",
            topology.device(switch).name
        ));
    }
    let even = nodes
        .iter()
        .zip(&switches)
        .all(|(node, those)| node.len() == nodes[0].len() && those.len() == switches[0].len());
    (!even).then(|| "its nodes are not alike; use nccl-ring".to_owned())
}

/// Returns the first switch that joins all NPUs of several nodes, and two of them: their stars would form a cycle with
/// what joins the nodes.
fn shared(switches: &[Vec<DeviceId>]) -> Option<(DeviceId, [usize; 2])> {
    let mut node_of: BTreeMap<DeviceId, usize> = BTreeMap::new();
    for (node, those) in switches.iter().enumerate() {
        for &switch in those {
            if let Some(before) = node_of.insert(switch, node) {
                return Some((switch, [before, node]));
            }
        }
    }
    None
}

/// Returns the number of trees.
fn count(topology: &Topology, kind: CollectiveKind) -> usize {
    let node = &nodes(topology)[0];
    let switches = switches(topology, node).len().max(1);
    if kind != CollectiveKind::AllReduce {
        return switches;
    }
    ways(topology) * heads(node.len(), switches)
}

/// Returns how many trees each head is in.
fn ways(topology: &Topology) -> usize {
    if is_spread(topology) { 2 } else { 1 }
}

/// Returns the number of edges all trees have, of so many heads or as many as: without making them, as they may be
/// many.
pub(super) fn edges(topology: &Topology, kind: CollectiveKind, heads: Option<usize>) -> u128 {
    let nodes = topology.groups().len().max(1);
    let trees = match heads {
        Some(heads) if kind == CollectiveKind::AllReduce => ways(topology) * heads,
        _ => count(topology, kind),
    };
    trees as u128 * (topology.npu_count() + nodes - 1) as u128
}

/// Returns how often an NPU and a switch are paired so that each is in as many pairs as its like.
fn heads(npus: usize, switches: usize) -> usize {
    let both = npus / gcd(npus, switches) * switches;
    if both <= MOST {
        both
    } else {
        npus.max(switches)
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the NPUs of each node; all of a network that states none.
pub(super) fn nodes(topology: &Topology) -> Vec<Vec<NpuId>> {
    match topology.groups().is_empty() {
        true => vec![topology.npus().collect()],
        false => topology.groups().to_vec(),
    }
}

/// Returns the switches with links from and to all NPUs of a node that sum and multicast.
fn switches(topology: &Topology, node: &[NpuId]) -> Vec<DeviceId> {
    let joins = |device: DeviceId| {
        node.iter().all(|npu| {
            !topology.links_from_to(npu.device(), device).is_empty()
                && !topology.links_from_to(device, npu.device()).is_empty()
        })
    };
    let can = |device: DeviceId| {
        let offload = topology.offload(device);
        offload.is_some_and(|it| it.all_reduces || (it.sums && it.multicasts))
    };
    let first = topology.out_links(node[0].device()).iter();
    let mut found: Vec<DeviceId> = first.map(|&link| topology.link(link).dst).collect();
    found.sort_unstable();
    found.dedup();
    found.retain(|&device| !topology.is_npu(device) && can(device) && joins(device));
    found
}

/// Returns all trees: every NPU is a head, as often as every switch.
fn trees(topology: &Topology, kind: CollectiveKind) -> Vec<Tree> {
    let nodes = nodes(topology);
    let count = heads(nodes[0].len(), switches(topology, &nodes[0]).len());
    let heads = (0..count).map(|k| nodes.iter().map(|node| node[k % node.len()]).collect());
    trees_of(topology, kind, &heads.collect::<Vec<Vec<NpuId>>>())
}

/// Returns the trees of heads that are given, each a list with the head of every node.
pub(super) fn trees_of(
    topology: &Topology,
    kind: CollectiveKind,
    heads: &[Vec<NpuId>],
) -> Vec<Tree> {
    let nodes = nodes(topology);
    let switches: Vec<Vec<DeviceId>> = nodes.iter().map(|it| switches(topology, it)).collect();
    let star = |node: usize, k: usize| {
        let switch = switches[node][k % switches[node].len()];
        let edge = move |npu: &NpuId| {
            let one = |from, to| vec![topology.links_from_to(from, to)[0]];
            let (npu, switch) = (npu.device(), switch);
            Edge {
                ends: [npu, switch],
                ways: [one(npu, switch), one(switch, npu)],
            }
        };
        nodes[node].iter().map(edge)
    };
    if kind != CollectiveKind::AllReduce {
        let stars = 0..switches[0].len();
        return stars
            .map(|k| rooted(star(0, k).collect(), switches[0][k]))
            .collect();
    }
    let mut roads = Roads::new(topology, 0);
    let mut found = Vec::new();
    for (k, heads) in heads.iter().enumerate() {
        let families = doubled(nodes.len()).into_iter();
        for family in families.take(ways(topology)) {
            let mut edges: Vec<Edge> = (0..nodes.len()).flat_map(|node| star(node, k)).collect();
            let between = family.iter().enumerate();
            edges.extend(between.filter_map(|(node, parent)| {
                parent.map(|parent| roads.edge(heads[node], heads[parent]))
            }));
            let root = family.iter().position(Option::is_none).unwrap_or(0);
            found.push(rooted(edges, heads[root].device()));
        }
    }
    found
}

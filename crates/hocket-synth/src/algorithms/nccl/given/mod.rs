//! Plans along channels that are given: what a file of NCCL's graphs says, not what a search finds.
//!
//! In each node a channel has an order of its own. A ring enters at the first NPU and leaves at the last; a tree is
//! a chain in that order, and the nodes are joined in two binary trees. Between nodes a message takes the NICs that
//! the channel names, as a file says for each channel which of a node's NICs are its ends.
//!
//! # Source
//! NVIDIA NCCL 2.30.7, `src/graph/connect.cc` (`ncclTopoPreset`, `connectRings`, `connectTrees`), `trees.cc`
//! (`ncclGetBtree`: which child a node is) and `search.cc` (`ncclTopoGetNetDev`: whose NIC is used).

use super::tree::doubled;
use super::{Roads, nvls, rooted};
use crate::algorithms::dimensional::{self, Along, PathOf};
use crate::algorithms::hierarchical::refusal_of_some;
use crate::algorithms::in_network::{self, Edge, Tree};
use crate::algorithms::multi_ring::ranks;
use crate::algorithms::{Algorithm, Job, PlanOptions};
use crate::collective::Collective;
use crate::collective::pattern::{Pattern, Shape};
use crate::id::{DeviceId, LinkId, NpuId};
use crate::plan::{Plan, PlanBuilder, PlanError};
use crate::topology::Topology;
use crate::topology::shortest::RouteTree;

/// How the parts of a channel in several nodes are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// The last NPU of a node to the first of the next one.
    Ring,
    /// Parent and second child at the first NPU of a node, first child at the second NPU.
    BalancedTree,
    /// Parent at the first NPU of a node, both children at the second.
    SplitTree,
    /// Parent and children at the first NPU of a node.
    Tree,
}

/// What a channel does in one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    /// The NPUs of the node in order.
    pub npus: Vec<NpuId>,
    /// The devices that stand for the NICs of its first NPU, and of all others; `None`: whichever is nearest.
    pub nics: [Option<DeviceId>; 2],
}

impl Leg {
    /// Returns the NIC by which an NPU of the node exchanges data with other nodes.
    fn nic(&self, npu: NpuId) -> Option<DeviceId> {
        self.nics[usize::from(self.npus[0] != npu)]
    }
}

/// Bytes of an all-reduce by which channels are compared, so many that latencies hardly count.
const MESSAGE: u64 = 1 << 30;

/// A channel: its part in each node, in the order of the nodes.
pub type GivenChannel = Vec<Leg>;

/// Makes a plan along channels that each carry an equal share.
///
/// `chunks` are the slices of each channel's share, pipelined.
///
/// # Errors
/// [`PlanError::NotApplicable`] for channels that do not each pass every NPU of the topology once, node by node, for
/// a collective among some NPUs only or of another kind, or where no link leads on; [`PlanError::TooLarge`] and
/// [`PlanError::TooManyChunks`] as [`super::super::plan`].
pub fn plan_channels(
    topology: &Topology,
    collective: &Collective,
    joint: Joint,
    channels: &[GivenChannel],
    chunks: usize,
    memory_limit: u64,
) -> Result<Plan, PlanError> {
    let algorithm = match joint {
        Joint::Ring => Algorithm::NcclRing,
        _ => Algorithm::NcclTree,
    };
    check(topology, collective, algorithm, channels)?;
    let npus = collective.npus().len();
    let lanes = channels.len() as u128 * chunks as u128;
    let is_chain = joint == Joint::Ring && collective.kind().is_rooted();
    let transfers = match joint {
        Joint::Ring if !is_chain => {
            dimensional::transfers(collective.kind(), lanes, [(npus, Shape::Ring)].into_iter())
        }
        Joint::Ring => lanes * (npus as u128 - 1),
        _ => 4 * lanes * (npus as u128 - 1),
    };
    PlanBuilder::check_size(transfers, memory_limit)?;
    let job = Job {
        topology,
        collective,
        options: &PlanOptions::new(algorithm),
        chunks,
        transfers: transfers as usize,
    };
    match joint {
        Joint::Ring => rings(&job, channels),
        _ => trees(&job, joint, channels),
    }
}

/// Makes the plan of NCCL's sums in switches whose heads in each node are given, each node's alike in number.
///
/// # Errors
/// As [`plan_channels`]; [`PlanError::NotApplicable`] where no switch of a node sums and multicasts.
pub fn plan_heads(
    topology: &Topology,
    collective: &Collective,
    heads: &[Vec<NpuId>],
    chunks: usize,
    memory_limit: u64,
) -> Result<Plan, PlanError> {
    let algorithm = Algorithm::NcclNvls;
    super::super::check_applicable(topology, collective, algorithm)?;
    let nodes = nvls::nodes(topology);
    let are_of_nodes = |heads: &Vec<NpuId>| {
        heads.len() == nodes.len() && heads.iter().zip(&nodes).all(|(it, node)| node.contains(it))
    };
    if heads.is_empty() || !heads.iter().all(are_of_nodes) {
        return Err(algorithm.refused(
            "a head is not an NPU of its node; give one of each node in the order of nodes",
        ));
    }
    let edges = nvls::edges(topology, collective.kind(), Some(heads.len()));
    let transfers = in_network::transfers_of(collective, edges, chunks as u128);
    PlanBuilder::check_size(transfers, memory_limit)?;
    let trees = nvls::trees_of(topology, collective.kind(), heads);
    let job = Job {
        topology,
        collective,
        options: &PlanOptions::new(algorithm),
        chunks,
        transfers: transfers as usize,
    };
    in_network::along(&job, trees)
}

/// Whether every channel passes each NPU once, and the collective is one that they do.
fn check(
    topology: &Topology,
    collective: &Collective,
    algorithm: Algorithm,
    channels: &[GivenChannel],
) -> Result<(), PlanError> {
    collective.check_on(topology)?;
    if !algorithm.supports(collective.kind()) {
        return Err(algorithm.refused(algorithm.unsupported(collective.kind())));
    }
    if let Some(why) = refusal_of_some(topology, collective) {
        return Err(algorithm.refused(why));
    }
    if channels.is_empty() {
        return Err(algorithm.refused("there are no channels; give one or more"));
    }
    for (number, channel) in channels.iter().enumerate() {
        let mut is_passed = vec![false; topology.npu_count()];
        for npu in channel.iter().flat_map(|leg| &leg.npus) {
            let slot = is_passed.get_mut(npu.index());
            if slot.is_none_or(|passed| std::mem::replace(passed, true)) {
                let why =
                    format!("channel {number} passes NPU {npu} twice, or there is no such NPU");
                return Err(algorithm.refused(why));
            }
        }
        let nodes = channel.iter();
        let is_empty = nodes.clone().any(|leg| leg.npus.is_empty());
        if is_empty || !is_passed.iter().all(|&it| it) || channel.len() != channels[0].len() {
            let why = format!("channel {number} does not pass every NPU of every node");
            return Err(algorithm.refused(why));
        }
        let nics = nodes.flat_map(|leg| leg.nics.into_iter().flatten());
        for nic in nics {
            if nic.index() >= topology.device_count() || topology.is_npu(nic) {
                let why = format!("channel {number}: device {nic} is no NIC");
                return Err(algorithm.refused(why));
            }
        }
    }
    Ok(())
}

/// Returns what links let channels carry together as rings, in bytes per second: every channel as much as the one that
/// carries least.
pub(super) fn carried(topology: &Topology, channels: &[GivenChannel]) -> u64 {
    let mut roads = Roads::new(topology, MESSAGE / topology.npu_count() as u64);
    let mut passed = vec![0_u64; topology.links().len()];
    for channel in channels {
        for (node, leg) in channel.iter().enumerate() {
            let next = &channel[(node + 1) % channel.len()];
            let ends = (leg.npus[leg.npus.len() - 1], next.npus[0]);
            let inside = leg.npus.windows(2);
            let mut links: Vec<LinkId> = inside
                .flat_map(|pair| roads.way(pair[0], pair[1]))
                .collect();
            links.extend(match channel.len() {
                1 => roads.way(ends.0, ends.1),
                _ => match between(&mut roads, (leg, ends.0), (next, ends.1)) {
                    Ok(links) => links,
                    Err(_) => return 0,
                },
            });
            links.iter().for_each(|link| passed[link.index()] += 1);
        }
    }
    let rates = topology.links().iter().zip(passed);
    let shares = rates
        .filter(|(_, passed)| *passed > 0)
        .map(|(link, passed)| link.bandwidth.bytes_per_second() / passed);
    let least = shares.min().unwrap_or(u64::MAX);
    least.saturating_mul(channels.len() as u64)
}

/// Returns the links from an NPU of a node to one of another, by their NICs.
fn between(
    roads: &mut Roads<'_>,
    (from, src): (&Leg, NpuId),
    (to, dst): (&Leg, NpuId),
) -> Result<Vec<LinkId>, String> {
    let stops = [
        Some(src.device()),
        from.nic(src),
        to.nic(dst),
        Some(dst.device()),
    ];
    let stops: Vec<DeviceId> = stops.into_iter().flatten().collect();
    let topology = roads.topology;
    let name = |device: DeviceId| topology.device(device).name.clone();
    let mut links = Vec::new();
    for pair in stops.windows(2) {
        // From NIC to NIC the shortest way: a message does not take a faster NIC that is not the channel's.
        let is_outside = pair.iter().all(|&stop| !topology.is_npu(stop));
        let bytes = if is_outside { 0 } else { roads.bytes };
        let tree = RouteTree::to(topology, pair[1], bytes, None);
        let Some(way) = tree.path(topology, pair[0]) else {
            return Err(format!(
                "no links lead from {} to {}; join them, or leave the NIC out",
                name(pair[0]),
                name(pair[1])
            ));
        };
        links.extend(way);
    }
    let mut passed: Vec<DeviceId> = links.iter().map(|&id| topology.link(id).dst).collect();
    passed.push(src.device());
    passed.sort_unstable();
    let twice = passed.windows(2).find(|pair| pair[0] == pair[1]);
    match twice {
        // By way of NICs that are not on the way the message would come back to where it was.
        Some(_) => Ok(roads.way(src, dst)),
        None => Ok(links),
    }
}

fn rings(job: &Job<'_>, channels: &[GivenChannel]) -> Result<Plan, PlanError> {
    let size = job.collective.size();
    let mut roads = Roads::new(job.topology, size);
    let mut orders = Vec::new();
    let mut paths = Vec::new();
    for channel in channels {
        let mut path = PathOf::new();
        let count = channel.len();
        for node in (0..count).filter(|_| count > 1) {
            let (here, next) = (&channel[node], &channel[(node + 1) % count]);
            let ends = (here.npus[here.npus.len() - 1], next.npus[0]);
            let links = between(&mut roads, (here, ends.0), (next, ends.1));
            path.insert(ends, links.map_err(|why| job.algorithm().refused(why))?);
        }
        orders.push(channel.iter().flat_map(|leg| leg.npus.clone()).collect());
        paths.push(path);
    }
    if job.collective.kind().is_rooted() {
        let chains = orders.into_iter().zip(paths);
        let chains = chains.map(|(order, paths)| {
            super::ring::rooted_chain(job, super::NcclChannel { order, paths }, &mut roads)
        });
        return in_network::along(job, chains.collect());
    }
    let lanes = channels.len() * job.chunks;
    let patterns = orders.iter();
    let patterns = patterns.map(|order: &Vec<NpuId>| Pattern::ring(ranks(job, order)));
    let npus = job.collective.npus();
    let side = Along::new(npus.len(), patterns.collect()).on_paths(paths);
    dimensional::build(job, npus, &[side], lanes)
}

fn trees(job: &Job<'_>, joint: Joint, channels: &[GivenChannel]) -> Result<Plan, PlanError> {
    let mut roads = Roads::new(job.topology, job.collective.size());
    let mut found: Vec<Tree> = Vec::new();
    for channel in channels {
        let nodes = channel.len();
        let families = doubled(nodes).into_iter().enumerate();
        for (family, parents) in families.take(if nodes > 1 { 2 } else { 1 }) {
            let mut edges: Vec<Edge> = Vec::new();
            for leg in channel {
                let pairs = leg.npus.windows(2);
                edges.extend(pairs.map(|pair| roads.edge(pair[0], pair[1])));
            }
            let mut root = channel[0].npus[0];
            for (node, parent) in parents.iter().enumerate() {
                let (leg, head) = (&channel[node], channel[node].npus[0]);
                let Some(parent) = *parent else {
                    root = head;
                    continue;
                };
                let above = &channel[parent];
                let is_first = is_first_child((node, parent), family, nodes);
                let end = above.npus[seat(joint, is_first).min(above.npus.len() - 1)];
                let up = between(&mut roads, (leg, head), (above, end));
                let down = between(&mut roads, (above, end), (leg, head));
                edges.push(Edge {
                    ends: [head.device(), end.device()],
                    ways: [up, down]
                        .map(|way| way.map_err(|why| job.algorithm().refused(why)))
                        .into_iter()
                        .collect::<Result<Vec<_>, _>>()?
                        .try_into()
                        .expect("two ways"),
                });
            }
            found.push(rooted(edges, root.device()));
        }
    }
    in_network::along(job, found)
}

/// At which NPU of a node a child is joined.
fn seat(joint: Joint, is_first: bool) -> usize {
    match joint {
        Joint::Ring | Joint::Tree => 0,
        Joint::BalancedTree => usize::from(is_first),
        Joint::SplitTree => 1,
    }
}

/// Returns whether a node is the first child of its parent, in the first tree or the second: there positions are
/// mirrored, or moved by one where there is an odd number of nodes.
fn is_first_child((node, parent): (usize, usize), family: usize, nodes: usize) -> bool {
    let place = |node: usize| match (family, nodes % 2) {
        (0, _) => node,
        (_, 0) => nodes - 1 - node,
        _ => (node + nodes - 1) % nodes,
    };
    place(node) < place(parent)
}

#[cfg(test)]
mod tests;

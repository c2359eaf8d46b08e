//! Trees whose inner nodes are switches that sum and multicast: what every NPU sends is summed on its way to the
//! root, and the sum is copied on its way back, piece by piece.
//!
//! # Source
//! Graham et al., Scalable Hierarchical Aggregation Protocol (SHARP), COMHPC 2016; Klenk et al., An In-Network
//! Architecture for Accelerating Shared-Memory Multiprocessor Collectives, ISCA 2020.

mod grow;
mod share;

use super::Job;
use crate::collective::{Collective, CollectiveKind, block_start};
use std::collections::VecDeque;

use crate::id::{ChunkId, DeviceId, LinkId, NpuId, TransferId};
use crate::plan::{Chunks, Op, Plan, PlanBuilder, PlanError, Transfer, Wait};
use crate::topology::{Offload, Topology};

/// An edge of a tree: a way there and a way back between two devices at which transfers end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Edge {
    ends: [DeviceId; 2],
    /// Links from the first end to the second, and back.
    ways: [Vec<LinkId>; 2],
}

/// A tree over all participants, and its share of the data.
#[derive(Clone, Debug)]
struct Tree {
    edges: Vec<Edge>,
    /// Where sums of an all-reduce are complete.
    root: DeviceId,
    share: f64,
}

/// One device of a tree, seen from a root.
#[derive(Clone, Copy, Debug)]
struct Step {
    device: DeviceId,
    parent: DeviceId,
    edge: usize,
    /// Which of the edge's ways leads to the parent.
    up: usize,
}

/// Why there is no such plan, if there is none.
pub(super) fn refusal(topology: &Topology, collective: &Collective) -> Option<String> {
    let kind = collective.kind();
    let mut devices = topology.devices().iter();
    if devices.any(|device| device.offload.is_some_and(|can| serves(&can, kind))) {
        let found = grow::tree(topology, collective);
        return found.is_none().then(|| {
            "the NPUs are not all joined by links both ways; join them, or use greedy".to_owned()
        });
    }
    let needed = match kind {
        CollectiveKind::AllReduce => "sums and multicasts",
        CollectiveKind::Broadcast | CollectiveKind::AllGather => "multicasts",
        _ => "sums",
    };
    Some(format!(
        "no switch of {:?} {needed}; say in the topology which do (offload), or use an algorithm that needs none",
        topology.name()
    ))
}

/// Whether a switch can be an inner node of trees for a kind of collective.
fn serves(can: &Offload, kind: CollectiveKind) -> bool {
    match kind {
        CollectiveKind::AllReduce => can.all_reduces || (can.sums && can.multicasts),
        CollectiveKind::Broadcast | CollectiveKind::AllGather => can.all_reduces || can.multicasts,
        _ => can.all_reduces || can.sums,
    }
}

/// How many transfers a plan has.
pub(super) fn transfers(topology: &Topology, collective: &Collective, chunks: u128) -> u128 {
    let trees = share::trees(topology, collective);
    let edges: usize = trees.iter().map(|tree| tree.edges.len()).sum();
    let passes = passes(collective.kind())
        .into_iter()
        .filter(|&is_made| is_made);
    chunks.saturating_mul((edges * owners(collective).len() * passes.count()) as u128)
}

/// Whether a kind has a pass up, in which it sums, and one down, in which it copies.
fn passes(kind: CollectiveKind) -> [bool; 2] {
    let copies = matches!(kind, CollectiveKind::Broadcast | CollectiveKind::AllGather);
    [kind.reduces(), copies || kind == CollectiveKind::AllReduce]
}

/// The NPUs whose trees carry a demand each; `None` for the root of the tree itself.
fn owners(collective: &Collective) -> Vec<Option<NpuId>> {
    match (collective.root(), collective.kind()) {
        (_, CollectiveKind::AllReduce) => vec![None],
        (Some(root), _) => vec![Some(collective.npus()[root.index()])],
        (None, _) => collective.npus().iter().copied().map(Some).collect(),
    }
}

/// Every slice of every tree's share goes up, is summed, and goes down again, as soon as it can.
pub(super) fn build(job: &Job<'_>) -> Result<Plan, PlanError> {
    let collective = job.collective;
    let trees = share::trees(job.topology, collective);
    let owners = owners(collective);
    let chunks = cut(collective, &trees, job.chunks)?;
    let mut plan = job.builder(chunks.clone());
    let paths: Vec<Vec<[u32; 2]>> = trees
        .iter()
        .map(|tree| {
            let edges = tree.edges.iter();
            edges
                .map(|edge| [plan.path(&edge.ways[0]), plan.path(&edge.ways[1])])
                .collect()
        })
        .collect();
    let ways: Vec<Vec<(DeviceId, Vec<Step>)>> = trees
        .iter()
        .map(|tree| {
            let root = |owner: &Option<NpuId>| owner.map_or(tree.root, NpuId::device);
            let roots = owners.iter().map(root);
            roots.map(|root| (root, tree.steps(root))).collect()
        })
        .collect();
    let mut arrivals = vec![Vec::new(); job.topology.device_count()];
    let mut sent: Vec<Vec<VecDeque<TransferId>>> = ways
        .iter()
        .zip(&trees)
        .flat_map(|(roots, tree)| {
            roots
                .iter()
                .map(|_| vec![VecDeque::new(); tree.edges.len()])
        })
        .collect();
    let mut chunk = 0;
    for _ in 0..job.chunks {
        let mut sent = sent.iter_mut();
        for ((tree, paths), ways) in trees.iter().zip(&paths).zip(&ways) {
            for ((root, steps), sent) in ways.iter().zip(&mut sent) {
                let mut pass = Pass {
                    topology: job.topology,
                    bytes: chunks.bytes_of(chunk, 1),
                    plan: &mut plan,
                    tree,
                    paths,
                    steps,
                    chunk: ChunkId(chunk),
                    arrivals: &mut arrivals,
                    sent,
                };
                let [up, down] = passes(collective.kind());
                if up {
                    pass.up();
                }
                if down {
                    pass.down(*root);
                }
                arrivals[root.index()].clear();
                chunk += 1;
            }
        }
    }
    Ok(plan.finish())
}

/// One chunk on its way through a tree.
struct Pass<'a> {
    topology: &'a Topology,
    /// Of the chunk.
    bytes: u64,
    plan: &'a mut PlanBuilder,
    tree: &'a Tree,
    paths: &'a [[u32; 2]],
    steps: &'a [Step],
    chunk: ChunkId,
    /// By device, the transfers that have brought the chunk there and are not waited for yet.
    arrivals: &'a mut [Vec<Wait>],
    /// By edge, the latest transfers of this tree that have nothing to wait for at their sender.
    sent: &'a mut [VecDeque<TransferId>],
}

impl Pass<'_> {
    /// Sums towards the root, the farthest first.
    fn up(&mut self) {
        for step in self.steps.iter().rev() {
            let wait = self.take(step.device);
            self.send(step, Op::Reduce, wait);
        }
    }

    /// Copies from the root, the nearest first.
    fn down(&mut self, root: DeviceId) {
        let mut waits = vec![(root, self.take(root))];
        for step in self.steps {
            // Steps are nearest first, so that the latest parents are at the end.
            let parent = waits.iter().rfind(|(device, _)| *device == step.parent);
            let wait = parent.map_or(Wait::NOTHING, |&(_, wait)| wait);
            self.send(step, Op::Copy, wait);
            let wait = self.take(step.device);
            waits.push((step.device, wait));
        }
    }

    fn take(&mut self, device: DeviceId) -> Wait {
        let wait = self.plan.all_of(&self.arrivals[device.index()]);
        self.arrivals[device.index()].clear();
        wait
    }

    /// Sends up where it is a sum, else down. What has nothing to wait for waits until few before it are under
    /// way, so that links which share their bandwidth carry the first chunks first.
    fn send(&mut self, step: &Step, op: Op, wait: Wait) {
        let (src, dst, way) = match op {
            Op::Reduce => (step.device, step.parent, step.up),
            Op::Copy => (step.parent, step.device, 1 - step.up),
        };
        let is_first = wait == Wait::NOTHING;
        let wait = if is_first {
            self.turn(step.edge, way)
        } else {
            wait
        };
        let id = self.plan.push(Transfer {
            chunk: self.chunk,
            count: 1,
            src: NpuId(src.0),
            dst: NpuId(dst.0),
            op,
            wait,
            path: Some(self.paths[step.edge][way]),
        });
        if is_first {
            self.sent[step.edge].push_back(id);
        }
        self.arrivals[dst.index()].push(Wait::on(id));
    }

    /// The transfer of the tree over an edge that must have ended before the next: two are under way, and as many
    /// more as the latency has room for.
    fn turn(&mut self, edge: usize, way: usize) -> Wait {
        let links = self.tree.edges[edge].ways[way]
            .iter()
            .map(|&id| self.topology.link(id));
        let sending = links
            .clone()
            .map(|link| link.bandwidth.transmission(self.bytes).as_ps());
        let latency: u64 = links.map(|link| link.latency.as_ps()).sum();
        let room = 2 + latency.div_ceil(sending.max().unwrap_or(1).max(1)) as usize;
        let sent = &mut self.sent[edge];
        let last = sent.len().checked_sub(room).and_then(|extra| {
            sent.drain(..extra);
            sent.front().copied()
        });
        last.map_or(Wait::NOTHING, Wait::on)
    }
}

/// Chunks by slice, tree and demand; each tree has its share of every demand.
fn cut(collective: &Collective, trees: &[Tree], slices: usize) -> Result<Chunks, PlanError> {
    let demands = collective.demands();
    let mut parts = Vec::with_capacity(demands.len());
    for demand in &demands {
        let bytes = share::bytes(trees, demand.bytes);
        if let Some(&least) = bytes.iter().min().filter(|&&least| least < slices as u64) {
            return Err(PlanError::TooManyChunks {
                what: format!("the smallest share of {} trees", trees.len()),
                bytes: least,
                chunks: slices,
            });
        }
        parts.push(bytes);
    }
    let mut chunks = Chunks::with_capacity(slices * trees.len() * demands.len());
    for slice in 0..slices {
        for tree in 0..trees.len() {
            for (demand, bytes) in (0..).zip(&parts) {
                let [start, end] = [slice, slice + 1].map(|i| block_start(bytes[tree], i, slices));
                chunks.push(demand, end - start);
            }
        }
    }
    Ok(chunks)
}

/// The most slices of use: none of a tree's share smaller than a packet.
pub(super) fn most_chunks(topology: &Topology, collective: &Collective) -> usize {
    const PACKET: u64 = 4 << 10;
    let trees = share::trees(topology, collective);
    let demands = collective.demands();
    let least = demands
        .iter()
        .flat_map(|demand| share::bytes(&trees, demand.bytes))
        .min();
    usize::try_from(least.unwrap_or(1) / PACKET)
        .unwrap_or(usize::MAX)
        .max(1)
}

impl Tree {
    /// Every device but the root, each after its parent.
    fn steps(&self, root: DeviceId) -> Vec<Step> {
        let mut left: Vec<usize> = (0..self.edges.len()).collect();
        let mut steps: Vec<Step> = Vec::with_capacity(left.len());
        let mut parent = root;
        let mut next = 0;
        loop {
            left.retain(|&edge| {
                let ends = self.edges[edge].ends;
                let Some(near) = ends.iter().position(|&end| end == parent) else {
                    return true;
                };
                steps.push(Step {
                    device: ends[1 - near],
                    parent,
                    edge,
                    up: 1 - near,
                });
                false
            });
            let Some(step) = steps.get(next) else {
                return steps;
            };
            parent = step.device;
            next += 1;
        }
    }

    /// How many edges the farthest device is from a root.
    fn height(&self, root: DeviceId) -> usize {
        let mut depth = std::collections::HashMap::from([(root, 0)]);
        let mut most = 0;
        for step in self.steps(root) {
            let below = depth[&step.parent] + 1;
            depth.insert(step.device, below);
            most = most.max(below);
        }
        most
    }
}

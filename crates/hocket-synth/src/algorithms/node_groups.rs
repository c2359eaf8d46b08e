//! Broadcast and reduce by nodes: each NPU of a node has a part of the data, sends it to its like in the other nodes,
//! all NICs at once, and gives it to its own node.
//!
//! A piece of a part goes from the root to an NPU of its node, from there to one other node, which passes it on to all
//! others, and in each node to all NPUs. The last pieces go from the root's node to all others at once: while the
//! others pass on what came before, its links are free. A reduce is made by turning a broadcast round in time.
//!
//! # Source
//! Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009, for pipelines in
//! which everybody sends as much as it gets. The split over the NICs of a node is that of BlueConnect (Cho et al.,
//! MLSys 2019). How many pieces go to all at once follows from the bound `nodes` ([`crate::bound`]).

use super::ladder::Ladder;
use super::recipe::{About, Made, On, Recipe};
use super::{Job, Outline};
use crate::collective::{Collective, CollectiveKind};
use crate::id::NpuId;
use crate::plan::{Chunks, Op, Plan, PlanError, Wait};
use crate::progress::Progress;
use crate::select::reversed_in_time;
use crate::topology::Topology;
use crate::topology::shortest::RouteTree;
use crate::units::Time;

/// A broadcast step by step; a reduce is one turned round.
pub(super) struct NodeGroups;

impl Recipe for NodeGroups {
    fn about(&self) -> About {
        About::rule("node-groups", &[CollectiveKind::Broadcast, CollectiveKind::Reduce], "parts of the data over all NICs of a node at once, passed on by every node: for small data").promises(80)
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        let On {
            topology,
            collective,
        } = *on;
        let nodes = nodes(topology, collective);
        if topology.groups().is_empty() {
            return Some(format!(
                "topology {:?} states no nodes; say by groups which NPUs form one (--groups \"0-3 4-7\"), or use another \
                 algorithm",
                topology.name()
            ));
        }
        if nodes.len() < 2 {
            return Some("all participants are in one node; use another algorithm".to_owned());
        }
        let size = nodes[0].len();
        nodes.iter().any(|node| node.len() != size).then(|| {
            let sizes: Vec<String> = nodes.iter().map(|node| node.len().to_string()).collect();
            format!(
                "the nodes have {} participants; it needs as many in each",
                sizes.join(", ")
            )
        })
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::pipelined(parts(on))
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.others(chunks)
    }

    fn transfers(&self, on: &On<'_>, chunks: u128) -> u128 {
        on.outline()
            .others(chunks.saturating_mul(parts(on) as u128))
    }

    fn plan(&self, job: &Job<'_>, progress: &mut dyn Progress) -> Result<Made, PlanError> {
        let asked = job.collective;
        if asked.kind() == CollectiveKind::Broadcast {
            return broadcast(job).map(Made::from);
        }
        let npus = asked.npus().to_vec();
        let copies = Collective::new(CollectiveKind::Broadcast, npus, asked.size(), asked.root())?;
        let copies = broadcast(&Job {
            collective: &copies,
            ..*job
        })?;
        reversed_in_time(copies, asked, job.topology, progress).map(Made::from)
    }
}

/// Pieces of all parts, in the order of the steps that they take.
fn broadcast(job: &Job<'_>) -> Result<Plan, PlanError> {
    let nodes = nodes(job.topology, job.collective);
    let parts = nodes[0].len();
    let chunks = Chunks::split(&job.collective.demands(), parts * job.chunks)?;
    let mut plan = job.builder(chunks);
    let hops = hops(job, &nodes);
    let npus = job.topology.npu_count();
    let mut came = vec![Wait::NOTHING; parts * job.chunks * npus];
    for Hop { chunk, from, to } in hops {
        let first = chunk as usize * npus;
        let wait = came[first + from.index()];
        let id = plan.send((chunk, 1), from, to, Op::Copy, wait);
        came[first + to.index()] = Wait::on(id);
    }
    Ok(plan.finish())
}

/// Into how many parts the data is cut: one for each NPU of a node.
fn parts(on: &On<'_>) -> usize {
    nodes(on.topology, on.collective)
        .first()
        .map_or(1, Vec::len)
}

/// Returns the participants of each node, the root's node first.
fn nodes(topology: &Topology, collective: &Collective) -> Vec<Vec<NpuId>> {
    let mut takes_part = vec![false; topology.npu_count()];
    for npu in collective.npus() {
        takes_part[npu.index()] = true;
    }
    let of = |group: &Vec<NpuId>| -> Vec<NpuId> {
        let npus = group.iter().copied();
        npus.filter(|npu| takes_part[npu.index()]).collect()
    };
    let mut nodes: Vec<Vec<NpuId>> = topology.groups().iter().map(of).collect();
    nodes.retain(|node| !node.is_empty());
    let root = root(collective);
    if let Some(own) = nodes.iter().position(|node| node.contains(&root)) {
        nodes[..=own].rotate_right(1);
    }
    nodes
}

fn root(collective: &Collective) -> NpuId {
    collective.npus()[collective.root().map_or(0, |root| root.index())]
}

/// A piece on its way from one NPU to another, away from the root.
struct Hop {
    chunk: u32,
    from: NpuId,
    to: NpuId,
}

/// Returns what all pieces do, step by step: into the root's node, to other nodes, on to further ones, and within each.
fn hops(job: &Job<'_>, nodes: &[Vec<NpuId>]) -> Vec<Hop> {
    let root = root(job.collective);
    let (parts, others) = (nodes[0].len(), nodes.len() - 1);
    let relayed = job.chunks - at_once(job, nodes);
    let mut steps: [Vec<Hop>; 4] = Default::default();
    let pieces = (0..job.chunks).flat_map(|piece| (0..parts).map(move |part| (piece, part)));
    for (chunk, (piece, part)) in (0..).zip(pieces) {
        let mut add = |step: usize, from: NpuId, to: NpuId| {
            if from != to && to != root {
                steps[step].push(Hop { chunk, from, to });
            }
        };
        let own = nodes[0][part];
        add(0, root, own);
        let relay = (piece < relayed).then(|| 1 + (piece + part) % others);
        if let Some(relay) = relay {
            add(1, own, nodes[relay][part]);
        }
        for other in (1..=others).filter(|&other| Some(other) != relay) {
            match relay {
                Some(relay) => add(2, nodes[relay][part], nodes[other][part]),
                None => add(1, own, nodes[other][part]),
            }
        }
        for node in nodes {
            for &npu in node.iter().filter(|&&npu| npu != node[part]) {
                add(3, node[part], npu);
            }
        }
    }
    steps.into_iter().flatten().collect()
}

/// Returns how many pieces of each part go from the root's node to all others at once.
///
/// Of pieces that are passed on, the last is everywhere two latencies after it left. So the node can send to all n - 1
/// others what takes it a latency: with t for all of the data once, a share of latency / ((n - 1) t).
fn at_once(job: &Job<'_>, nodes: &[Vec<NpuId>]) -> usize {
    let others = nodes.len() - 1;
    if others == 1 {
        return job.chunks;
    }
    let part = (job.collective.size() / nodes[0].len() as u64).max(1);
    let mut busy = vec![0u128; job.topology.links().len()];
    let mut latency = Time::MAX;
    for (&from, &to) in nodes[0].iter().zip(&nodes[1]) {
        let ways = RouteTree::to(job.topology, to.device(), part, None);
        let path = ways.path(job.topology, from.device()).unwrap_or_default();
        let delays = path.iter().map(|&link| job.topology.link(link).latency);
        latency = latency.min(delays.sum());
        for link in path {
            let time = job.topology.link(link).bandwidth.transmission(part);
            busy[link.index()] += u128::from(time.as_ps());
        }
    }
    let all = busy.into_iter().max().unwrap_or(0).max(1) * others as u128;
    let pieces = job.chunks as u128;
    let share = (pieces * u128::from(latency.as_ps()) + all / 2) / all;
    share.min(pieces) as usize
}

//! Which trees there are and how much of the data takes each, so that no link has more to do than it must.

use std::collections::{HashMap, HashSet};

use microlp::{ComparisonOp, OptimizationDirection, Problem};

use super::grow::Grower;
use super::{Tree, owners, passes};
use crate::collective::Collective;
use crate::id::{DeviceId, NpuId};
use crate::topology::Topology;

/// Most trees that are grown, and how many in a row bring nothing new before the search ends.
const MOST: usize = 64;
const PATIENCE: usize = 12;
/// A tree with less than this share of what an equal one has is left out.
const LEAST: f64 = 0.01;

/// The trees of a collective, and their shares; one tree where there are fewer bytes than trees.
pub(super) fn trees(topology: &Topology, collective: &Collective) -> Vec<Tree> {
    let mut found: Vec<Tree> = Vec::new();
    let mut known = HashSet::new();
    let mut idle = 0;
    for tree in Grower::new(topology, collective).take(MOST) {
        if known.insert(tree.edges.clone()) {
            found.push(tree);
            idle = 0;
        } else {
            idle += 1;
            if idle == PATIENCE {
                break;
            }
        }
    }
    let demands = collective.demands();
    let least = demands.iter().map(|demand| demand.bytes).min().unwrap_or(0);
    set_shares(topology, collective, &mut found);
    found.retain(|tree| tree.share * known.len() as f64 >= LEAST);
    while let Some(crowded) = lightest_at_a_crowded_switch(topology, &found) {
        found.remove(crowded);
        set_shares(topology, collective, &mut found);
    }
    if bytes(&found, least).contains(&0) {
        found.sort_by(|a, b| b.share.total_cmp(&a.share));
        found.truncate(1);
    }
    let sum: f64 = found.iter().map(|tree| tree.share).sum();
    for tree in &mut found {
        tree.share /= sum;
    }
    found
}

/// Bytes of each tree's share, in sum all.
pub(super) fn bytes(trees: &[Tree], all: u64) -> Vec<u64> {
    let sum: f64 = trees.iter().map(|tree| tree.share).sum();
    let mut before = 0.0;
    let mut start = 0;
    let mut parts: Vec<u64> = Vec::with_capacity(trees.len());
    for tree in trees {
        before += tree.share / sum;
        let end = ((all as f64 * before).round() as u64).clamp(start, all);
        parts.push(end - start);
        start = end;
    }
    if let Some(last) = parts.last_mut() {
        *last += all - start;
    }
    parts
}

/// What carries bytes: a link, what crosses a switch, or what ends there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Resource {
    Link(u32),
    Limit(u32),
    Rate(u32),
}

/// The shares with which the resource that is busy longest is busy for the least time.
fn set_shares(topology: &Topology, collective: &Collective, trees: &mut [Tree]) {
    let mut rows: Vec<(Resource, Vec<(usize, f64)>)> = Vec::new();
    let mut row_of: HashMap<Resource, usize> = HashMap::new();
    for (number, tree) in trees.iter().enumerate() {
        let mut loads: Vec<(Resource, f64)> =
            loads(topology, collective, tree).into_iter().collect();
        loads.sort_by_key(|&(resource, _)| resource);
        for (resource, load) in loads {
            let row = *row_of.entry(resource).or_insert_with(|| {
                rows.push((resource, Vec::new()));
                rows.len() - 1
            });
            rows[row].1.push((number, load));
        }
    }
    let bandwidth = |resource: Resource| -> f64 {
        let device = |id: u32| topology.device(DeviceId(id));
        let rate = match resource {
            Resource::Link(link) => Some(topology.links()[link as usize].bandwidth),
            Resource::Limit(id) => device(id).limit,
            Resource::Rate(id) => device(id).offload.and_then(|can| can.rate),
        };
        rate.map_or(f64::INFINITY, |rate| rate.bytes_per_second() as f64)
    };
    let unit = rows
        .iter()
        .map(|&(resource, _)| bandwidth(resource))
        .fold(0.0, f64::max);
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let time = problem.add_var(1.0, (0.0, f64::INFINITY));
    let shares: Vec<_> = trees
        .iter()
        .map(|_| problem.add_var(0.0, (0.0, 1.0)))
        .collect();
    let mut seen = HashSet::new();
    for (resource, row) in &rows {
        let rate = bandwidth(*resource) / unit;
        let same: Vec<(usize, u64)> = row
            .iter()
            .map(|&(tree, load)| (tree, load.to_bits()))
            .collect();
        if !seen.insert((rate.to_bits(), same)) {
            continue; // as another says
        }
        let loads = row.iter().map(|&(tree, load)| (shares[tree], load));
        let row: Vec<_> = loads.chain([(time, -rate)]).collect();
        problem.add_constraint(row, ComparisonOp::Le, 0.0);
    }
    let all: Vec<_> = shares.iter().map(|&share| (share, 1.0)).collect();
    problem.add_constraint(all, ComparisonOp::Eq, 1.0);
    let even = 1.0 / trees.len() as f64;
    let solved = problem
        .solve()
        .ok()
        .and_then(|found| found.into_solution().ok());
    for (tree, share) in trees.iter_mut().zip(&shares) {
        tree.share = solved
            .as_ref()
            .map_or(even, |solution| solution.var_value(*share));
    }
}

/// For each byte that a tree carries, the bytes that a link carries, that cross a switch, and that end at one.
fn loads(topology: &Topology, collective: &Collective, tree: &Tree) -> HashMap<Resource, f64> {
    let [ups, downs] = passes(collective.kind());
    let owners = owners(collective);
    let part = 1.0 / owners.len() as f64;
    let mut loads: HashMap<Resource, f64> = HashMap::new();
    for owner in owners {
        let root = owner.map_or(tree.root, NpuId::device);
        for step in tree.steps(root) {
            let ways = &tree.edges[step.edge].ways;
            let used = [
                (ups, step.up, step.parent),
                (downs, 1 - step.up, step.device),
            ];
            for (_, way, end) in used.into_iter().filter(|&(is_used, _, _)| is_used) {
                for link in &ways[way] {
                    *loads.entry(Resource::Link(link.0)).or_default() += part;
                    let device = topology.link(*link).dst;
                    if topology.device(device).limit.is_some() {
                        *loads.entry(Resource::Limit(device.0)).or_default() += part;
                    }
                }
                if topology.offload(end).is_some_and(|can| can.rate.is_some()) {
                    *loads.entry(Resource::Rate(end.0)).or_default() += part;
                }
            }
        }
    }
    loads
}

/// Of the trees that share a switch with no room for all of them, the one with the least share.
fn lightest_at_a_crowded_switch(topology: &Topology, trees: &[Tree]) -> Option<usize> {
    let mut around: HashMap<DeviceId, HashMap<Vec<DeviceId>, usize>> = HashMap::new();
    for (number, tree) in trees.iter().enumerate() {
        let mut beside: HashMap<DeviceId, Vec<DeviceId>> = HashMap::new();
        for [a, b] in tree.edges.iter().map(|edge| edge.ends) {
            beside.entry(a).or_default().push(b);
            beside.entry(b).or_default().push(a);
        }
        for (device, mut others) in beside {
            if topology
                .offload(device)
                .is_some_and(|can| can.trees.is_some())
            {
                others.sort_unstable();
                let lightest = around
                    .entry(device)
                    .or_default()
                    .entry(others)
                    .or_insert(number);
                if trees[number].share < trees[*lightest].share {
                    *lightest = number;
                }
            }
        }
    }
    let most = |device: &DeviceId| topology.offload(*device).and_then(|can| can.trees);
    let crowded = around
        .iter()
        .filter(|(device, sets)| most(device).is_some_and(|most| sets.len() > most as usize));
    let crowd = crowded.min_by_key(|(device, _)| **device)?;
    let lightest = crowd.1.values().copied();
    lightest.min_by(|&a, &b| trees[a].share.total_cmp(&trees[b].share).then(b.cmp(&a)))
}

//! Which trees there are and how much of the data takes each, so that no link has more to do than it must.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use microlp::{ComparisonOp, OptimizationDirection, Problem};

use super::grow::Grower;
use super::layout::RootedTree;
use super::tree::{Step, Tree};
use super::{owners, passes};
use crate::collective::Collective;
use crate::id::{DeviceId, NpuId};
use crate::topology::Topology;
use crate::units::whole;

/// Most trees that are grown, and how many in a row bring nothing new before the search ends.
const MOST: usize = 64;
const PATIENCE: usize = 12;
/// A tree with less than this share of what an equal one has is left out.
const LEAST: f64 = 0.01;

/// Trees with their shares of the data.
#[derive(Clone, Debug)]
pub(super) struct Trees {
    pub list: Vec<Tree>,
    /// How long the busiest link is busy with one slice of all trees [ps].
    pub period: f64,
    /// For how many periods the first slice is under way.
    fill: u64,
}

/// Returns the trees of a collective that is cut into so many slices: all that are no higher than some height, which is
/// chosen so that the last slice comes soonest. One tree where there are fewer bytes than trees.
pub(super) fn trees(topology: &Topology, collective: &Collective, slices: usize) -> Trees {
    let mut grown: Vec<(u64, Tree)> = Vec::new();
    let mut known = HashSet::new();
    let mut idle = 0;
    let mut grower = Grower::new(topology, collective);
    for _ in 0..MOST {
        let Some(tree) = grower.next() else { break };
        if known.insert(tree.edges.clone()) {
            grown.push((fill(topology, collective, &tree, f64::INFINITY), tree));
            idle = 0;
        } else {
            // So that links that are slow by comparison come to their share soon.
            grower.double(&tree);
            idle += 1;
            if idle == PATIENCE {
                break;
            }
        }
    }
    let heights: BTreeSet<u64> = grown.iter().map(|(height, _)| *height).collect();
    let up_to = |most: u64| {
        let low = grown.iter().filter(|(height, _)| *height <= most);
        let low = low.map(|(_, tree)| tree.clone()).collect();
        shared(topology, collective, low, slices)
    };
    let all = heights.into_iter().rev().map(up_to);
    let best = all.min_by(|a, b| a.time(slices).total_cmp(&b.time(slices)));
    best.expect("participants are joined, as refusal has found")
}

impl Trees {
    /// About how long all slices take [ps].
    pub(super) fn time(&self, slices: usize) -> f64 {
        self.period * (slices as f64 + self.fill as f64)
    }
}

/// Returns the shares of some trees, without those that are left hardly any data or for which a switch has no room.
pub(super) fn shared(
    topology: &Topology,
    collective: &Collective,
    mut found: Vec<Tree>,
    slices: usize,
) -> Trees {
    set_shares(topology, collective, &mut found);
    let count = found.len() as f64;
    found.retain(|tree| tree.share * count >= LEAST);
    while let Some(crowded) = lightest_at_a_crowded_switch(topology, &found) {
        found.remove(crowded);
        set_shares(topology, collective, &mut found);
    }
    let demands = collective.demands();
    let least = demands.iter().map(|demand| demand.bytes).min().unwrap_or(0);
    if bytes(&found, least).contains(&0) {
        found.sort_by(|a, b| b.share.total_cmp(&a.share));
        found.truncate(1);
    }
    let sum: f64 = found.iter().map(|tree| tree.share).sum();
    for tree in &mut found {
        tree.share /= sum;
    }
    timed(topology, collective, found, slices)
}

/// Returns the trees that are given, each with an equal share.
pub(super) fn evenly(
    topology: &Topology,
    collective: &Collective,
    mut list: Vec<Tree>,
    slices: usize,
) -> Trees {
    let share = 1.0 / list.len() as f64;
    for tree in &mut list {
        tree.share = share;
    }
    timed(topology, collective, list, slices)
}

/// Returns the trees whose shares are set, with the time that a slice takes.
pub(super) fn timed(
    topology: &Topology,
    collective: &Collective,
    found: Vec<Tree>,
    slices: usize,
) -> Trees {
    let busy = busy(topology, collective, &found);
    let period = (busy * collective.size() as f64 / slices as f64 * 1e12).max(1.0);
    let fill = found
        .iter()
        .map(|tree| fill(topology, collective, tree, period));
    Trees {
        fill: fill.max().unwrap_or(0),
        list: found,
        period,
    }
}

/// For how many periods of so many picoseconds a slice of a tree is under way, seen from the first owner.
fn fill(topology: &Topology, collective: &Collective, tree: &Tree, period: f64) -> u64 {
    let owner = owners(collective)[0];
    let root = owner.map_or(tree.root, NpuId::device);
    RootedTree::new(topology, (tree, root), passes(collective.kind()), period).end
}

/// Returns the bytes of each tree's share, in sum all.
pub(super) fn bytes(trees: &[Tree], all: u64) -> Vec<u64> {
    let sum: f64 = trees.iter().map(|tree| tree.share).sum();
    let mut before = 0.0;
    let mut start = 0;
    let mut parts: Vec<u64> = Vec::with_capacity(trees.len());
    for tree in trees {
        before += tree.share / sum;
        let end = whole((all as f64 * before).round()).clamp(start, all);
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

/// Sets the shares with which the resource that is busy longest is busy for the least time.
fn set_shares(topology: &Topology, collective: &Collective, trees: &mut [Tree]) {
    let rows = rows(topology, collective, trees);
    let bandwidth = |resource| bandwidth(topology, resource);
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
        let share = solved
            .as_ref()
            .map_or(even, |solution| solution.var_value(*share));
        tree.share = share.max(0.0);
    }
}

/// Returns how long the resource that is busy longest is busy, for each byte of data, in seconds.
fn busy(topology: &Topology, collective: &Collective, trees: &[Tree]) -> f64 {
    let rows = rows(topology, collective, trees);
    let busy = |(resource, row): &(Resource, Vec<(usize, f64)>)| {
        let bytes = row.iter().map(|&(tree, load)| trees[tree].share * load);
        bytes.sum::<f64>() / bandwidth(topology, *resource)
    };
    rows.iter().map(busy).fold(0.0, f64::max)
}

/// Returns what each resource carries for a byte of each tree that loads it.
fn rows(
    topology: &Topology,
    collective: &Collective,
    trees: &[Tree],
) -> Vec<(Resource, Vec<(usize, f64)>)> {
    let mut rows: BTreeMap<Resource, Vec<(usize, f64)>> = BTreeMap::new();
    for (number, tree) in trees.iter().enumerate() {
        for (resource, load) in loads(topology, collective, tree) {
            rows.entry(resource).or_default().push((number, load));
        }
    }
    rows.into_iter().collect()
}

fn bandwidth(topology: &Topology, resource: Resource) -> f64 {
    let device = |id: u32| topology.device(DeviceId(id));
    let rate = match resource {
        Resource::Link(link) => Some(topology.links()[link as usize].bandwidth),
        Resource::Limit(id) => device(id).limit,
        Resource::Rate(id) => device(id).offload.and_then(|can| can.rate),
    };
    rate.map_or(f64::INFINITY, |rate| rate.bytes_per_second() as f64)
}

/// For each byte that a tree carries, the bytes that a link carries, that cross a switch, and that end at one; the mean
/// of all roots that it has in turn.
fn loads(topology: &Topology, collective: &Collective, tree: &Tree) -> BTreeMap<Resource, f64> {
    let [ups, downs] = passes(collective.kind());
    let owners = owners(collective);
    let root = match owners[..] {
        [Some(owner)] => owner.device(),
        _ => tree.root,
    };
    let turns = match tree.turns.is_empty() {
        true => std::slice::from_ref(&root),
        false => &tree.turns[..],
    };
    let steps = turns.iter().flat_map(|&root| {
        let steps = tree.steps(root);
        let below = match owners.len() > 1 {
            true => shares_below(&owners, &steps),
            false => vec![0.0; steps.len()],
        };
        steps.into_iter().zip(below)
    });
    let mut loads: BTreeMap<Resource, f64> = BTreeMap::new();
    for (step, below) in steps {
        // What is summed goes up to owners above the step and down to those below it; copies go the other way.
        let share = |sums: f64, copies: f64| {
            (f64::from(u8::from(ups)) * sums + f64::from(u8::from(downs)) * copies)
                / turns.len() as f64
        };
        let up = share(1.0 - below, below);
        let down = share(below, 1.0 - below);
        for (part, way, end) in [(up, step.up, step.parent), (down, 1 - step.up, step.device)] {
            if part <= 0.0 {
                continue;
            }
            for link in &tree.edges[step.edge].ways[way] {
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
    loads
}

/// By step, which share of the owners is at it or below it.
fn shares_below(owners: &[Option<NpuId>], steps: &[Step]) -> Vec<f64> {
    let owners: HashSet<DeviceId> = owners.iter().flatten().map(|npu| npu.device()).collect();
    let mut counts = vec![0usize; steps.len()];
    for (i, step) in steps.iter().enumerate().rev() {
        counts[i] += usize::from(owners.contains(&step.device));
        if let Some(before) = step.before {
            counts[before] += counts[i];
        }
    }
    let share = |count: usize| count as f64 / owners.len() as f64;
    counts.into_iter().map(share).collect()
}

/// Of the trees that share a switch with no room for all of them, the one with the least share.
fn lightest_at_a_crowded_switch(topology: &Topology, trees: &[Tree]) -> Option<usize> {
    let mut around: HashMap<DeviceId, HashMap<Vec<DeviceId>, usize>> = HashMap::new();
    for (number, tree) in trees.iter().enumerate() {
        let mut beside: BTreeMap<DeviceId, Vec<DeviceId>> = BTreeMap::new();
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

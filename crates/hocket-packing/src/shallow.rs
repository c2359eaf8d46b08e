//! Trees made lower, so that their first piece is everywhere sooner: in time, since a hop between boxes takes longer
//! than one inside.
//!
//! A node of a tree may hang from a neighbour that the first piece reaches earlier: over a way with room, or over the
//! first part of a way that meets its own, at a switch or at its end. The tree that had that way goes on by the node's
//! former one. No link carries more trees than it may.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::arc_paths::{ArcPaths, straight};
use super::graph::Graph;
use super::grow::{Forest, NONE};
use super::{Tree, TreeArc, TreeSet};
use crate::id::{NpuId, narrow};
use crate::units::Seed;
use hocket_base::graph::{Lists, ShortestPaths};

/// Rounds over all nodes of all trees.
const MOST_ROUNDS: usize = 12;
/// Arcs times trees, beyond which nothing is tried.
const MOST_WORK: usize = 4_000_000;
/// Nodes and ways that are looked at, beyond which trees are lowered no more.
const MOST_STEPS: u64 = 20_000_000;
/// The same, beyond which trees of one root are shaken no more: exchanges that gain nothing lead to others that do.
const MOST_SHAKEN: u64 = 3_000_000;
/// How many such exchanges are made at a time.
const SHAKES: usize = 3;
/// Rounds without gain after which they end as well, for each node of each tree: of few nodes there are few exchanges.
const PATIENCE: usize = 64;
/// How finely the time to a node is counted: in this many parts of the latest of all.
const FINENESS: u64 = 1 << 12;

/// Returns the trees of a forest, lowered as long as that helps: over the arcs of `graph`, which the ways of `logical`
/// are made of. `costs` says how long each of these arcs takes.
pub(super) fn trees(
    graph: &Graph,
    logical: &Graph,
    forest: &Forest,
    costs: &[u64],
) -> (TreeSet, u64) {
    let mut hanging = Hanging::new(graph, logical, forest, costs);
    if graph.arcs.len().saturating_mul(forest.roots.len()) <= MOST_WORK {
        hanging.note_least();
        hanging.make_shallow();
        if forest.roots.windows(2).all(|pair| pair[0] == pair[1]) {
            hanging.shake();
        }
    }
    (hanging.trees(), hanging.height().0)
}

/// A tree by what its nodes hang from.
#[derive(Clone, Debug)]
struct Hung {
    root: u32,
    /// Of each node the way that leads to it; [`NONE`] at the root and at nodes that are in no tree.
    way: Vec<u32>,
    below: Vec<Vec<u32>>,
    /// When the first piece is at each node.
    time: Vec<u64>,
}

struct Hanging<'a> {
    graph: &'a Graph,
    costs: &'a [u64],
    /// The arcs that lead to each node.
    into: Lists<u32>,
    ways: ArcPaths,
    trees: Vec<Hung>,
    /// How many trees more each arc can carry.
    left: Vec<i64>,
    /// For each node the trees, and their nodes, whose ways pass it or end there.
    passing: Vec<Vec<(u32, u32)>>,
    paths: ShortestPaths<u64, u32>,
    /// By root, when the first piece may be at each node at best.
    least: HashMap<u32, Vec<u64>>,
    /// The unit of what is compared.
    unit: u64,
    steps: u64,
}

/// An exchange of the first parts of two ways that meet.
#[derive(Clone, Debug)]
struct Crossing {
    gain: i128,
    other: (u32, u32),
    own_way: Vec<u32>,
    other_way: Vec<u32>,
}

impl<'a> Hanging<'a> {
    fn new(graph: &'a Graph, logical: &Graph, forest: &Forest, costs: &'a [u64]) -> Self {
        let mut ways = ArcPaths::default();
        let mut numbers = vec![NONE; logical.arcs.len()];
        let mut left: Vec<i64> = graph.arcs.iter().map(|arc| arc.units).collect();
        let mut passing = vec![Vec::new(); graph.nodes()];
        let mut trees = Vec::with_capacity(forest.roots.len());
        for (tree, (&root, into)) in (0..).zip(forest.roots.iter().zip(&forest.into)) {
            let mut way = vec![NONE; into.len()];
            for (node, &arc) in (0..).zip(into).filter(|(_, arc)| **arc != NONE) {
                let number = &mut numbers[arc as usize];
                if *number == NONE {
                    let arcs = logical.ways.arcs(logical.arcs[arc as usize].way);
                    *number = ways.number(straight(&graph.arcs, arcs), costs);
                }
                way[node as usize] = *number;
                for &arc in &ways.arcs[*number as usize] {
                    left[arc as usize] -= 1;
                    passing[graph.arcs[arc as usize].dst as usize].push((tree, node));
                }
            }
            trees.push(Hung {
                root,
                below: vec![Vec::new(); into.len()],
                time: vec![0; into.len()],
                way,
            });
        }
        let heads = graph.arcs.iter().map(|arc| arc.dst as usize).zip(0u32..);
        let mut hanging = Self {
            graph,
            costs,
            into: Lists::grouped(graph.nodes(), heads),
            ways,
            trees,
            left,
            passing,
            paths: ShortestPaths::new(u64::MAX, NONE),
            least: HashMap::new(),
            unit: 1,
            steps: 0,
        };
        for tree in 0..hanging.trees.len() {
            hanging.hang_up(tree);
        }
        let times = hanging.trees.iter().flat_map(|tree| &tree.time);
        hanging.unit = (times.max().copied().unwrap_or(0) / FINENESS).max(1);
        hanging
    }

    /// Notes who is below whom in a tree, and when the first piece is where.
    fn hang_up(&mut self, tree: usize) {
        let nodes = narrow(self.graph.nodes());
        for node in 0..nodes {
            if self.trees[tree].way[node as usize] != NONE {
                let above = self.above(tree, node);
                self.trees[tree].below[above as usize].push(node);
            }
        }
        let root = self.trees[tree].root;
        for node in self.subtree(tree, root) {
            self.set_time(tree, node);
        }
    }

    fn set_time(&mut self, tree: usize, node: u32) {
        let way = self.trees[tree].way[node as usize];
        if way != NONE {
            let above = self.above(tree, node);
            let its = &mut self.trees[tree];
            its.time[node as usize] = its.time[above as usize] + self.ways.costs[way as usize];
        }
    }

    fn way(&self, tree: usize, node: u32) -> &[u32] {
        &self.ways.arcs[self.trees[tree].way[node as usize] as usize]
    }

    fn above(&self, tree: usize, node: u32) -> u32 {
        self.graph.arcs[self.way(tree, node)[0] as usize].src
    }

    /// Returns a node of a tree and all below it, each after the one above.
    fn subtree(&self, tree: usize, node: u32) -> Vec<u32> {
        let mut all = vec![node];
        let mut next = 0;
        while let Some(&node) = all.get(next) {
            all.extend(&self.trees[tree].below[node as usize]);
            next += 1;
        }
        all
    }

    fn is_below(&self, tree: usize, mut node: u32, other: u32) -> bool {
        while node != other {
            if node == self.trees[tree].root {
                return false;
            }
            node = self.above(tree, node);
        }
        true
    }

    fn note_least(&mut self) {
        for root in self.trees.iter().map(|tree| tree.root) {
            let its = || self.graph.times(root, self.costs);
            self.least.entry(root).or_insert_with(its);
        }
    }

    /// When the first piece is everywhere, and how high all trees are together.
    fn height(&self) -> (u64, i128) {
        let times = self.trees.iter().flat_map(|tree| &tree.time);
        let all = times.clone().map(|&time| self.weight(time)).sum();
        (times.copied().max().unwrap_or(0), all)
    }

    /// Returns what it costs that a node has the first piece at a time: far more where that is late.
    fn weight(&self, time: u64) -> i128 {
        i128::from(time / self.unit).pow(4)
    }

    /// Makes a few exchanges at random in the highest trees and lowers all again, many times; keeps what is not higher.
    fn shake(&mut self) {
        let mut seed = Seed(1);
        let ends = self.graph.ends();
        let root = self.trees.first().map(|tree| &self.least[&tree.root]);
        let best = ends.iter().filter_map(|&end| Some(root?[end as usize]));
        let best = best.max().unwrap_or(0);
        let patience = PATIENCE * self.trees.len() * ends.len();
        let mut idle = 0;
        while self.steps < MOST_SHAKEN && idle < patience && self.height().0 > best {
            let (last, all) = self.height();
            let kept = (self.trees.clone(), self.left.clone(), self.passing.clone());
            let highest = (0..self.trees.len()).filter(|&tree| {
                let times = &self.trees[tree].time;
                times.contains(&last)
            });
            let highest: Vec<usize> = highest.collect();
            for _ in 0..SHAKES {
                let tree = highest[seed.below(highest.len())];
                let node = ends[seed.below(ends.len())];
                self.steps += 1;
                if self.trees[tree].way[node as usize] != NONE
                    && let Some(crossing) = self.best_crossing(tree, node, Some(&mut seed))
                {
                    self.cross((tree, node), crossing);
                }
            }
            self.make_shallow();
            let now = self.height();
            idle = if now < (last, all) { 0 } else { idle + 1 };
            if now > (last, all) {
                (self.trees, self.left, self.passing) = kept;
            }
        }
    }

    fn make_shallow(&mut self) {
        for _ in 0..MOST_ROUNDS {
            let mut order: Vec<(Reverse<u64>, u32, u32)> = Vec::new();
            for (number, tree) in (0..).zip(&self.trees) {
                let nodes = (0..).zip(&tree.way).filter(|(_, way)| **way != NONE);
                order.extend(
                    nodes.map(|(node, _)| (Reverse(tree.time[node as usize]), number, node)),
                );
            }
            order.sort_unstable();
            let mut is_better = false;
            for (_, tree, node) in order {
                if self.steps > MOST_STEPS {
                    return;
                }
                is_better |= self.lift(tree as usize, node);
            }
            if !is_better {
                break;
            }
        }
    }

    /// Hangs a node of a tree where the first piece is earlier; returns whether it does now.
    fn lift(&mut self, tree: usize, node: u32) -> bool {
        let its = &self.trees[tree];
        if its.time[node as usize] <= self.least[&its.root][node as usize] {
            return false;
        }
        if let Some(way) = self.free_way(tree, node) {
            self.hang(tree, node, way);
            return true;
        }
        let Some(crossing) = self.best_crossing(tree, node, None) else {
            return false;
        };
        self.cross((tree, node), crossing);
        true
    }

    fn cross(&mut self, (tree, node): (usize, u32), crossing: Crossing) {
        let (other, below) = crossing.other;
        self.hang(tree, node, crossing.own_way);
        self.hang(other as usize, below, crossing.other_way);
    }

    /// Returns the quickest way to a node over arcs with room, from anywhere in the tree that is not below it; `None`
    /// where it is no quicker than what there is.
    fn free_way(&mut self, tree: usize, node: u32) -> Option<Vec<u32>> {
        let latest = self.trees[tree].time[node as usize];
        let own = self.trees[tree].way[node as usize];
        let (arcs, costs) = (&self.graph.arcs, self.costs);
        let own = &self.ways.arcs[own as usize];
        let (left, into, graph) = (&self.left, &self.into, self.graph);
        // Backwards from the node, to where the way may start.
        self.paths.run(
            graph.nodes(),
            [(node, 0)],
            |at| {
                let is_start = at != node && graph.is_end(at);
                let arcs_into = into.get(at as usize).iter();
                let arcs_into = arcs_into.take(if is_start { 0 } else { usize::MAX });
                arcs_into.map(|&arc| (arcs[arc as usize].src, arc))
            },
            |cost, arc, _| {
                let has_room = left[arc as usize] > 0 || own.contains(&arc);
                let cost = cost + costs[arc as usize];
                (has_room && cost < latest).then_some((cost, arc))
            },
        );
        self.steps += self.paths.settled().len() as u64;
        let starts = self.paths.settled().iter().copied();
        let starts = starts.filter(|&at| at != node && graph.is_end(at));
        let times = &self.trees[tree].time;
        let starts = starts.map(|at| (times[at as usize] + self.paths.costs()[at as usize], at));
        let (_, mut at) = starts
            .filter(|&(time, at)| time < latest && !self.is_below(tree, at, node))
            .min()?;
        let mut way = Vec::new();
        while at != node {
            let arc = self.paths.via(at);
            way.push(arc);
            at = arcs[arc as usize].dst;
        }
        Some(way)
    }

    /// Returns the exchange for a node that gains most; with a seed, any that is possible.
    fn best_crossing(
        &mut self,
        tree: usize,
        node: u32,
        mut seed: Option<&mut Seed>,
    ) -> Option<Crossing> {
        let latest = match seed {
            Some(_) => u64::MAX,
            None => self.trees[tree].time[node as usize],
        };
        let own = self.way(tree, node).to_vec();
        let mut rest: u64 = self.ways.costs[self.trees[tree].way[node as usize] as usize];
        let own_start = self.above(tree, node);
        let own_below = self.subtree(tree, node);
        let mut best: Option<Crossing> = None;
        let mut steps = 0;
        for (i, &arc) in own.iter().enumerate() {
            let meeting = self.graph.arcs[arc as usize].dst;
            rest -= self.costs[arc as usize];
            let before = self.ways.costs[self.trees[tree].way[node as usize] as usize] - rest;
            for &(other, end) in &self.passing[meeting as usize] {
                steps += 1;
                let other_tree = other as usize;
                // From an end, a way does not go on.
                if meeting == node && end != node {
                    continue;
                }
                let its = self.way(other_tree, end);
                let start = self.graph.arcs[its[0] as usize].src;
                if self.trees[tree].time[start as usize] + rest >= latest {
                    continue;
                }
                let arcs = &self.graph.arcs;
                let cut = its
                    .iter()
                    .position(|&arc| arcs[arc as usize].dst == meeting);
                let Some(cut) = cut else { continue };
                let to_cut: u64 = its[..=cut].iter().map(|&a| self.costs[a as usize]).sum();
                let time = self.trees[tree].time[start as usize] + to_cut + rest;
                if time >= latest || self.is_below(tree, start, node) {
                    continue;
                }
                // A node below the other end cannot feed it. In the same tree neither of both is below the other then.
                if self.is_below(other_tree, own_start, end) {
                    continue;
                }
                let after: u64 =
                    self.ways.costs[self.trees[other_tree].way[end as usize] as usize] - to_cut;
                let other_time = self.trees[other_tree].time[own_start as usize] + before + after;
                let gain = match &mut seed {
                    Some(seed) => seed.next_u64().into(),
                    None => {
                        let others = self.subtree(other_tree, end);
                        let lost = self.change(other_tree, &others, other_time);
                        -self.change(tree, &own_below, time) - lost
                    }
                };
                steps += own_below.len() as u64;
                if gain > best.as_ref().map_or(0, |best| best.gain) {
                    best = Some(Crossing {
                        gain,
                        other: (other, end),
                        own_way: straight(arcs, [&its[..=cut], &own[i + 1..]].concat()),
                        other_way: straight(arcs, [&own[..=i], &its[cut + 1..]].concat()),
                    });
                }
            }
        }
        self.steps += steps;
        best
    }

    /// By how much a tree becomes higher if the first of some nodes, which are all from it on, has the piece at a time.
    fn change(&self, tree: usize, nodes: &[u32], time: u64) -> i128 {
        let times = &self.trees[tree].time;
        let before = times[nodes[0] as usize];
        let of = |&node: &u32| {
            let its = times[node as usize];
            self.weight(its - before + time) - self.weight(its)
        };
        nodes.iter().map(of).sum()
    }

    /// Hangs a node from another way.
    fn hang(&mut self, tree: usize, node: u32, way: Vec<u32>) {
        let own = self.way(tree, node).to_vec();
        let mark = (narrow(tree), node);
        for &arc in &own {
            self.left[arc as usize] += 1;
            let at = self.graph.arcs[arc as usize].dst;
            let passing = &mut self.passing[at as usize];
            if let Some(place) = passing.iter().position(|&it| it == mark) {
                passing.remove(place);
            }
        }
        for &arc in &way {
            self.left[arc as usize] -= 1;
            self.passing[self.graph.arcs[arc as usize].dst as usize].push(mark);
        }
        let above = self.above(tree, node);
        let number = self.ways.number(way, self.costs);
        let its = &mut self.trees[tree];
        its.below[above as usize].retain(|&it| it != node);
        its.way[node as usize] = number;
        let above = self.above(tree, node);
        self.trees[tree].below[above as usize].push(node);
        for node in self.subtree(tree, node) {
            self.set_time(tree, node);
        }
    }
    /// Returns the trees with their arcs in order, and the links of the ways that they take.
    fn trees(&self) -> TreeSet {
        let mut ways = Vec::new();
        let mut numbers = vec![NONE; self.ways.arcs.len()];
        let trees = self.trees.iter().map(|tree| {
            let mut arcs: Vec<TreeArc> = Vec::new();
            let mut next = 0;
            let mut at = (tree.root, TreeArc::ROOT);
            loop {
                for &node in &tree.below[at.0 as usize] {
                    let way = tree.way[node as usize];
                    let number = &mut numbers[way as usize];
                    if *number == NONE {
                        *number = narrow(ways.len());
                        let taken = self.ways.arcs[way as usize].iter();
                        ways.push(taken.filter_map(|&arc| self.graph.ways.link(arc)).collect());
                    }
                    arcs.push(TreeArc {
                        src: NpuId(at.0),
                        dst: NpuId(node),
                        way: *number,
                        parent: at.1,
                    });
                }
                let Some(arc) = arcs.get(next) else { break };
                at = (arc.dst.0, narrow(next));
                next += 1;
            }
            Tree {
                root: NpuId(tree.root),
                arcs,
            }
        });
        let trees = trees.collect();
        TreeSet { trees, ways }
    }
}

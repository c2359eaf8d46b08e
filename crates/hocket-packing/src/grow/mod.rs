//! Trees grown over arcs between ends: all at once, level by level.

mod repair;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hocket_base::graph::{FlowNetwork, Lists, UNLIMITED};

use crate::NoPacking;
use crate::cuts::{Backward, Pool};
use crate::graph::{Arc, Graph};
use crate::id::{fit, narrow};
use crate::progress::{Interrupted, Progress};
use repair::repair;

/// Starts over at most so often, each time with sets that were broken before.
const MOST_RESTARTS: usize = 40;

/// Trees over the arcs of a graph, one unit each.
#[derive(Clone, Debug)]
pub(super) struct Forest {
    pub roots: Vec<u32>,
    /// For each tree and node the arc that leads to it; [`NONE`] at the root, at nodes that are no ends, and
    /// where none does yet.
    pub into: Vec<Vec<u32>>,
    /// How many more trees each arc can carry.
    pub left: Vec<i64>,
}

pub(super) const NONE: u32 = u32::MAX;

/// Grows the trees; `None` where nothing of what is tried leads to the end.
pub(super) fn forest(
    graph: &Graph,
    supply: &[i64],
    progress: &mut dyn Progress,
) -> Result<Option<Forest>, NoPacking> {
    let ends = graph.ends();
    let sets = Backward::new(graph.nodes(), &graph.arcs, supply, &ends).tight();
    let mut pool = Pool::new(sets);
    for round in 0..MOST_RESTARTS as u64 {
        if !progress.report("trees: growing", round, MOST_RESTARTS as u64) {
            return Err(Interrupted.into());
        }
        let mut growth = Growth::new(graph, supply, &pool);
        growth.run();
        let missing = growth.missing(ends.len());
        let mut forest = growth.forest();
        if missing == 0 {
            return Ok(Some(forest));
        }
        let all = ends.len() as u64 * fit::<u64, _>(supply.iter().sum::<i64>());
        if missing * 5 < all && repair(graph, &ends, &mut forest) {
            return Ok(Some(forest));
        }
        let mut is_new = false;
        for set in growth.broken(graph, &ends) {
            is_new |= pool.add(set);
        }
        if !is_new {
            break;
        }
    }
    match ends.len() <= MOST_ENDS_BY_FLOWS {
        true => Ok(Some(by_flows(graph, supply, progress)?)),
        false => Ok(None),
    }
}

/// Ends up to which each arc is asked for by a flow, where nothing else led to the end.
const MOST_ENDS_BY_FLOWS: usize = 128;

/// Grows the trees by arcs that are known to be safe: a flow for each.
///
/// An arc from u to v is safe for as many trees of a batch as a flow to v from u and from all other batches is
/// larger than those batches need.
///
/// # Source
/// Berczi, Frank, Packing arborescences, 2009; ForestColl, section 5.3.
fn by_flows(
    graph: &Graph,
    supply: &[i64],
    progress: &mut dyn Progress,
) -> Result<Forest, NoPacking> {
    let mut growth = Growth::new(graph, supply, &Pool::default());
    growth.heap.clear();
    let mut at = 0;
    while at < growth.batches.len() {
        let total = growth.batches.len() as u64;
        if !progress.report("trees: growing", at as u64, total) {
            return Err(Interrupted.into());
        }
        while growth.batches[at].size < growth.size {
            let mut arcs: Vec<u32> = (0..narrow(graph.arcs.len())).collect();
            let batch = &growth.batches[at];
            arcs.retain(|&arc| {
                let it = graph.arcs[arc as usize];
                growth.left[arc as usize] > 0
                    && batch.has[it.src as usize]
                    && !batch.has[it.dst as usize]
            });
            arcs.sort_by_key(|&arc| (batch.level[graph.arcs[arc as usize].src as usize], arc));
            let mut safe = arcs
                .into_iter()
                .map(|arc| (arc, growth.safe(graph, at, arc)));
            let Some((arc, trees)) = safe.find(|&(_, trees)| trees > 0) else {
                return Err(NoPacking::Stuck);
            };
            if trees < growth.batches[at].trees {
                growth.divide(at, trees);
            }
            let level = growth.batches[at].level[graph.arcs[arc as usize].src as usize];
            growth.add(at, arc, level + 1);
        }
        at += 1;
    }
    Ok(growth.forest())
}

/// Equal trees of one root, as long as they grow alike.
#[derive(Clone, Debug)]
struct Batch {
    root: u32,
    trees: i64,
    into: Vec<u32>,
    has: Vec<bool>,
    size: usize,
    level: Vec<u32>,
    /// The next arc out of each node that is looked at.
    next: Vec<u32>,
    /// The sets of the pool that hold one of its nodes, as bits.
    met: Vec<u64>,
}

struct Growth<'a> {
    arcs: Vec<Arc>,
    /// Arcs out of each node.
    out: Lists<u32>,
    left: Vec<i64>,
    /// The sets that each arc enters, of those of the pool.
    entered: Lists<u32>,
    /// The sets that hold each node, as bits.
    holding: Vec<Vec<u64>>,
    slack: Vec<i64>,
    batches: Vec<Batch>,
    heap: BinaryHeap<Reverse<(u32, u32, u32)>>,
    supply: &'a [i64],
    size: usize,
}

impl<'a> Growth<'a> {
    fn new(graph: &Graph, supply: &'a [i64], pool: &Pool) -> Self {
        let nodes = graph.nodes();
        let arcs = graph.arcs.clone();
        let mut order: Vec<u32> = (0..narrow(arcs.len())).collect();
        order.sort_by_key(|&arc| (arcs[arc as usize].src, arcs[arc as usize].dst, arc));
        let out = Lists::grouped(
            nodes,
            order
                .iter()
                .map(|&arc| (arcs[arc as usize].src as usize, arc)),
        );
        let sets = pool.sets();
        let entered: Vec<(usize, u32)> = arcs
            .iter()
            .enumerate()
            .flat_map(|(i, arc)| {
                let enters = move |set: &Vec<bool>| !set[arc.src as usize] && set[arc.dst as usize];
                let sets = (0..).zip(sets).filter(move |(_, set)| enters(set));
                sets.map(move |(set, _)| (i, set))
            })
            .collect();
        let holding = |node: usize| {
            let mut bits = vec![0; sets.len().div_ceil(64)];
            for (i, _) in sets.iter().enumerate().filter(|(_, set)| set[node]) {
                bits[i / 64] |= 1u64 << (i % 64);
            }
            bits
        };
        let mut growth = Self {
            out,
            left: arcs.iter().map(|arc| arc.units).collect(),
            entered: Lists::grouped(arcs.len(), entered.into_iter()),
            holding: (0..nodes).map(holding).collect(),
            slack: pool.slacks(&arcs, supply),
            arcs,
            batches: Vec::new(),
            heap: BinaryHeap::new(),
            supply,
            size: graph.ends().len(),
        };
        growth.plant();
        growth
    }

    fn plant(&mut self) {
        let nodes = self.supply.len();
        for (root, &trees) in (0..).zip(self.supply).filter(|(_, trees)| **trees > 0) {
            let mut has = vec![false; nodes];
            has[root as usize] = true;
            self.heap
                .push(Reverse((0, narrow(self.batches.len()), root)));
            self.batches.push(Batch {
                root,
                trees,
                into: vec![NONE; nodes],
                has,
                size: 1,
                level: vec![0; nodes],
                next: vec![0; nodes],
                met: self.holding[root as usize].clone(),
            });
        }
    }

    fn run(&mut self) {
        while let Some(Reverse((level, batch, node))) = self.heap.pop() {
            let b = batch as usize;
            if self.batches[b].size == self.size {
                continue;
            }
            let Some((arc, trees)) = self.next_arc(b, node) else {
                continue;
            };
            if trees < self.batches[b].trees {
                self.divide(b, trees);
            }
            self.add(b, arc, level + 1);
            self.heap.push(Reverse((level, batch, node)));
            let dst = self.arcs[arc as usize].dst;
            self.heap.push(Reverse((level + 1, batch, dst)));
        }
    }

    /// Returns the next arc out of a node that a batch can take, and how many of its trees can.
    fn next_arc(&mut self, batch: usize, node: u32) -> Option<(u32, i64)> {
        let out = self.out.get(node as usize);
        let state = &mut self.batches[batch];
        let degree = out.len();
        let first = out.partition_point(|&arc| self.arcs[arc as usize].dst < state.root);
        while (state.next[node as usize] as usize) < degree {
            let at = (first + state.next[node as usize] as usize) % degree;
            let arc = out[at];
            let dst = self.arcs[arc as usize].dst as usize;
            let mut trees = state.trees.min(self.left[arc as usize]);
            if !state.has[dst] && trees > 0 {
                for &set in self.entered.get(arc as usize) {
                    if state.met[set as usize / 64] >> (set % 64) & 1 == 1 {
                        trees = trees.min(self.slack[set as usize]);
                    }
                }
                if trees > 0 {
                    return Some((arc, trees));
                }
            }
            state.next[node as usize] += 1;
        }
        None
    }

    /// Keeps so many trees in a batch; the others become one of their own, with all that they have.
    fn divide(&mut self, batch: usize, trees: i64) {
        let mut rest = self.batches[batch].clone();
        rest.trees -= trees;
        self.batches[batch].trees = trees;
        let id = narrow(self.batches.len());
        for node in (0..rest.has.len()).filter(|&node| rest.has[node]) {
            if (rest.next[node] as usize) < self.out.get(node).len() {
                self.heap
                    .push(Reverse((rest.level[node], id, narrow(node))));
            }
        }
        self.batches.push(rest);
    }

    /// Returns how many trees of a batch may take an arc, so that every batch can still get everywhere.
    fn safe(&self, graph: &Graph, batch: usize, arc: u32) -> i64 {
        let nodes = graph.nodes();
        let Arc { src, dst, .. } = graph.arcs[arc as usize];
        let most = self.left[arc as usize].min(self.batches[batch].trees);
        let others = self.batches.iter().enumerate();
        let others: Vec<&Batch> = others
            .filter(|&(i, other)| i != batch && other.size < self.size)
            .map(|(_, other)| other)
            .collect();
        let (mut flows, total) = self.open_flows(nodes, &others);
        flows.set_drain(src, UNLIMITED);
        let wanted = total + i128::from(most);
        let found = flows.flow(&[(dst, UNLIMITED)], wanted);
        fit((found - total).max(0))
    }

    /// Flows backwards to batches, each of which takes as much as it has trees, and how much all take.
    fn open_flows(&self, nodes: usize, open: &[&Batch]) -> (FlowNetwork, i128) {
        let mut arcs: Vec<(u32, u32, i128)> = Vec::new();
        for (arc, &left) in self
            .arcs
            .iter()
            .zip(&self.left)
            .filter(|(_, left)| **left > 0)
        {
            arcs.push((arc.dst, arc.src, left.into()));
        }
        for (i, batch) in (narrow(nodes)..).zip(open) {
            let held = (0..narrow(nodes)).filter(|&node| batch.has[node as usize]);
            arcs.extend(held.map(|node| (node, i, 1i128 << 60)));
        }
        let mut flows = FlowNetwork::new(nodes + open.len(), arcs);
        let mut total = 0;
        for (i, batch) in (narrow(nodes)..).zip(open) {
            flows.set_drain(i, batch.trees.into());
            total += i128::from(batch.trees);
        }
        (flows, total)
    }

    fn add(&mut self, batch: usize, arc: u32, level: u32) {
        let state = &mut self.batches[batch];
        let dst = self.arcs[arc as usize].dst as usize;
        self.left[arc as usize] -= state.trees;
        for &set in self.entered.get(arc as usize) {
            if state.met[set as usize / 64] >> (set % 64) & 1 == 1 {
                self.slack[set as usize] -= state.trees;
            }
        }
        state.into[dst] = arc;
        state.has[dst] = true;
        state.size += 1;
        state.level[dst] = level;
        for (met, holding) in state.met.iter_mut().zip(&self.holding[dst]) {
            *met |= holding;
        }
    }

    /// Returns how many pairs of a tree and an end are missing.
    fn missing(&self, ends: usize) -> u64 {
        let missing = |batch: &Batch| fit::<u64, _>(batch.trees) * (ends - batch.size) as u64;
        self.batches.iter().map(missing).sum()
    }

    fn forest(&self) -> Forest {
        let mut forest = Forest {
            roots: Vec::new(),
            into: Vec::new(),
            left: self.left.clone(),
        };
        let mut order: Vec<&Batch> = self.batches.iter().collect();
        order.sort_by_key(|batch| batch.root);
        for batch in order {
            for _ in 0..batch.trees {
                forest.roots.push(batch.root);
                forest.into.push(batch.into.clone());
            }
        }
        forest
    }

    /// Sets that unfinished batches cannot all enter any more.
    fn broken(&self, graph: &Graph, ends: &[u32]) -> Vec<Vec<bool>> {
        let nodes = graph.nodes();
        let open: Vec<&Batch> = self
            .batches
            .iter()
            .filter(|batch| batch.size < self.size)
            .collect();
        let (mut flows, total) = self.open_flows(nodes, &open);
        let mut sets: Vec<Vec<bool>> = Vec::new();
        for &end in ends {
            if flows.flow(&[(end, UNLIMITED)], total) < total {
                let set: Vec<bool> = (0..nodes).map(|node| flows.is_near(node)).collect();
                if !sets.contains(&set) {
                    sets.push(set);
                }
            }
        }
        sets
    }
}

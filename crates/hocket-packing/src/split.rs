//! Switches removed: arcs into one and out of it are joined to arcs between its neighbours.
//!
//! Splitting off at a node with as much capacity in as out keeps what every end can get, if the right arcs are
//! joined. Which these are is not asked: arcs are joined so that known sets keep enough, and at the end one search
//! says whether others do. A set that does not joins the pool, and all starts over.

use std::collections::HashMap;

use super::NoPacking;
use super::cuts::{Backward, Pool, completed};
use super::graph::{Arc, Graph};
use crate::id::narrow;
use crate::progress::{Interrupted, Progress};

/// How capacity is handed out.
#[derive(Clone, Copy, Debug)]
struct Manner {
    /// Units that are joined at a time.
    quantum: i64,
    /// Whether those that a tight set holds together count as one, so that arcs are spread over groups.
    by_group: bool,
}

const MANNERS: [(Manner, usize); 4] = [
    (
        Manner {
            quantum: 1,
            by_group: true,
        },
        6,
    ),
    (
        Manner {
            quantum: 8,
            by_group: false,
        },
        6,
    ),
    (
        Manner {
            quantum: i64::MAX,
            by_group: true,
        },
        12,
    ),
    (
        Manner {
            quantum: i64::MAX,
            by_group: false,
        },
        30,
    ),
];
/// Pairs of arcs that are compared at most to join single units at a switch: beyond, more go at a time.
const MOST_JOINS: i64 = 1 << 18;

/// Returns the graph without any node that is no end; `None` where no way of joining kept every end's share.
pub(super) fn off(
    graph: &Graph,
    supply: &[i64],
    progress: &mut dyn Progress,
) -> Result<Option<Graph>, NoPacking> {
    let ends = graph.ends();
    let mut pool = Pool::new(Backward::new(graph.nodes(), &graph.arcs, supply, &ends).tight());
    if ends.len() == graph.nodes() {
        return Ok(Some(graph.clone()));
    }
    for (manner, tries) in MANNERS {
        for _ in 0..tries {
            let joined = Splitting::new(graph, supply, &pool, manner).run(progress)?;
            let mut flows = Backward::new(joined.nodes(), &joined.arcs, supply, &ends);
            let Some(broken) = flows.violated(progress)? else {
                return Ok(Some(joined));
            };
            if !pool.add(completed(graph, &broken)) {
                break;
            }
        }
    }
    match graph.nodes() <= MOST_NODES_BY_FLOWS {
        true => by_flows(graph, supply, progress),
        false => Ok(None),
    }
}

/// Nodes up to which each join is tried by flows where nothing else led to the end.
const MOST_NODES_BY_FLOWS: usize = 200;

/// Joins as much of each pair of arcs as leaves every end its share, by flows for each pair.
fn by_flows(
    graph: &Graph,
    supply: &[i64],
    progress: &mut dyn Progress,
) -> Result<Option<Graph>, NoPacking> {
    let ends = graph.ends();
    let mut graph = graph.clone();
    let shortage =
        |graph: &Graph| Backward::new(graph.nodes(), &graph.arcs, supply, &ends).shortage();
    let nodes = narrow(graph.nodes());
    let removed: Vec<u32> = (0..nodes).filter(|&node| !graph.is_end(node)).collect();
    for (done, &node) in removed.iter().enumerate() {
        if !progress.report("trees: switches", done as u64, removed.len() as u64) {
            return Err(Interrupted.into());
        }
        let all = 0..graph.arcs.len();
        let into: Vec<usize> = all
            .clone()
            .filter(|&arc| graph.arcs[arc].dst == node)
            .collect();
        let out: Vec<usize> = all.filter(|&arc| graph.arcs[arc].src == node).collect();
        for &from in &into {
            for &to in &out {
                let (first, second) = (graph.arcs[from], graph.arcs[to]);
                let most = first.units.min(second.units);
                if most == 0 || first.src == second.dst {
                    continue;
                }
                let way = graph.ways.join(first.way, second.way);
                let (src, dst) = (first.src, second.dst);
                graph.arcs[from].units -= most;
                graph.arcs[to].units -= most;
                graph.arcs.push(Arc {
                    src,
                    dst,
                    units: most,
                    way,
                });
                let too_much = shortage(&graph).min(most);
                let made = graph.arcs.len() - 1;
                graph.arcs[made].units -= too_much;
                graph.arcs[from].units += too_much;
                graph.arcs[to].units += too_much;
            }
        }
        let is_kept = |arc: &Arc| arc.units > 0 && arc.src != node && arc.dst != node;
        graph.arcs.retain(is_kept);
    }
    Ok((shortage(&graph) == 0).then_some(graph))
}

/// Units from each node or group to each, zero where nothing was added.
struct Units {
    rows: Vec<Vec<i64>>,
    width: usize,
}

impl Units {
    fn new(from: usize, to: usize) -> Self {
        Self {
            rows: vec![Vec::new(); from],
            width: to,
        }
    }

    fn get(&self, from: u32, to: u32) -> i64 {
        let row = &self.rows[from as usize];
        row.get(to as usize).copied().unwrap_or(0)
    }

    fn add(&mut self, from: u32, to: u32, amount: i64) {
        let row = &mut self.rows[from as usize];
        row.resize(self.width, 0);
        row[to as usize] += amount;
    }
}

struct Splitting<'a> {
    graph: Graph,
    pool: &'a Pool,
    slack: Vec<i64>,
    manner: Manner,
    out: Vec<Vec<u32>>,
    into: Vec<Vec<u32>>,
    /// The group of each node, by the sets of the pool that hold it.
    group: Vec<u32>,
    /// Units from each node to each group, and from each group to each.
    to_group: Units,
    between: Units,
    /// Units from each node to each.
    direct: Units,
}

impl<'a> Splitting<'a> {
    fn new(graph: &Graph, supply: &[i64], pool: &'a Pool, manner: Manner) -> Self {
        let nodes = graph.nodes();
        let (mut out, mut into) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
        for (i, arc) in (0..).zip(&graph.arcs) {
            out[arc.src as usize].push(i);
            into[arc.dst as usize].push(i);
        }
        let group: Vec<u32> = if manner.by_group {
            groups(nodes, pool.sets(), supply)
        } else {
            (0..narrow(nodes)).collect()
        };
        let count = group.iter().max().map_or(0, |&last| last as usize + 1);
        Self {
            slack: pool.slacks(&graph.arcs, supply),
            group,
            graph: graph.clone(),
            pool,
            manner,
            out,
            into,
            to_group: Units::new(nodes, count),
            between: Units::new(count, count),
            direct: Units::new(nodes, nodes),
        }
    }

    fn run(mut self, progress: &mut dyn Progress) -> Result<Graph, Interrupted> {
        let nodes = 0..narrow(self.graph.nodes());
        let mut left: Vec<u32> = nodes.filter(|&node| !self.graph.is_end(node)).collect();
        let total = left.len() as u64;
        left.sort_by_key(|&node| (self.neighbours(node), node));
        for (done, node) in (0..).zip(left) {
            if !progress.report("trees: switches", done, total) {
                return Err(Interrupted);
            }
            self.remove(node);
        }
        self.graph.arcs.retain(|arc| arc.units > 0);
        Ok(self.graph)
    }

    fn neighbours(&self, node: u32) -> usize {
        let arcs = &self.graph.arcs;
        let into = self.into[node as usize]
            .iter()
            .map(|&arc| arcs[arc as usize].src);
        let out = self.out[node as usize]
            .iter()
            .map(|&arc| arcs[arc as usize].dst);
        let mut all: Vec<u32> = into.chain(out).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    }

    fn remove(&mut self, node: u32) {
        let is_left = |arcs: &[Arc], list: &[u32]| -> Vec<u32> {
            let left = list.iter().copied();
            left.filter(|&arc| arcs[arc as usize].units > 0).collect()
        };
        let into = is_left(&self.graph.arcs, &self.into[node as usize]);
        let out = is_left(&self.graph.arcs, &self.out[node as usize]);
        let is_plain = self.neighbours(node) <= 2;
        let units: i64 = into
            .iter()
            .map(|&arc| self.graph.arcs[arc as usize].units)
            .sum();
        let joins = units.saturating_mul(out.len() as i64);
        let quantum = match is_plain {
            true => i64::MAX,
            false => self.manner.quantum.max(joins / MOST_JOINS),
        };
        let mut made: HashMap<(u32, u32), u32> = HashMap::new();
        loop {
            let mut moved = false;
            for &from in &into {
                moved |= self.join_one(node, from, &out, quantum, &mut made);
            }
            if !moved {
                break;
            }
        }
        for arc in into.into_iter().chain(out) {
            self.graph.arcs[arc as usize].units = 0;
        }
    }

    /// Joins some of an arc into a node to the best arc out of it; whether there was one.
    fn join_one(
        &mut self,
        node: u32,
        from: u32,
        out: &[u32],
        quantum: i64,
        made: &mut HashMap<(u32, u32), u32>,
    ) -> bool {
        let Arc { src, units, .. } = self.graph.arcs[from as usize];
        if units == 0 {
            return false;
        }
        let mut refused: Vec<u32> = Vec::new();
        loop {
            let candidates = out.iter().copied().filter(|&to| {
                let arc = self.graph.arcs[to as usize];
                arc.units > 0 && arc.dst != src && !refused.contains(&to)
            });
            let Some(to) = candidates.min_by_key(|&to| self.preference(src, to)) else {
                return false;
            };
            let dst = self.graph.arcs[to as usize].dst;
            let most = units.min(self.graph.arcs[to as usize].units).min(quantum);
            let amount = self.allowed(node, src, dst).min(most);
            if amount > 0 {
                self.join(node, (from, to), amount, made);
                return true;
            }
            refused.push(to);
        }
    }

    fn preference(&self, src: u32, to: u32) -> (i64, i64, i64, u32) {
        let dst = self.graph.arcs[to as usize].dst;
        let groups = (self.group[src as usize], self.group[dst as usize]);
        let nodes = narrow(self.graph.nodes());
        (
            self.to_group.get(src, groups.1),
            self.between.get(groups.0, groups.1),
            self.direct.get(src, dst),
            (dst + nodes - src) % nodes,
        )
    }

    /// Returns how many units may go past a node before a known set gets too little.
    fn allowed(&self, node: u32, src: u32, dst: u32) -> i64 {
        let sets = self.pool.sets().iter().zip(&self.slack);
        let loses = |set: &[bool]| {
            let [at, from, to] = [node, src, dst].map(|node| set[node as usize]);
            from == to && at != from
        };
        let slacks = sets.filter(|(set, _)| loses(set)).map(|(_, &slack)| slack);
        slacks.min().unwrap_or(i64::MAX)
    }

    fn join(
        &mut self,
        node: u32,
        (from, to): (u32, u32),
        amount: i64,
        made: &mut HashMap<(u32, u32), u32>,
    ) {
        let (first, second) = (self.graph.arcs[from as usize], self.graph.arcs[to as usize]);
        let (src, dst) = (first.src, second.dst);
        self.graph.arcs[from as usize].units -= amount;
        self.graph.arcs[to as usize].units -= amount;
        for (set, slack) in self.pool.sets().iter().zip(&mut self.slack) {
            let [at, from, to] = [node, src, dst].map(|node| set[node as usize]);
            if from == to && at != from {
                *slack -= amount;
            }
        }
        let groups = (self.group[src as usize], self.group[dst as usize]);
        self.to_group.add(src, groups.1, amount);
        self.between.add(groups.0, groups.1, amount);
        self.direct.add(src, dst, amount);
        if let Some(&arc) = made.get(&(from, to)) {
            self.graph.arcs[arc as usize].units += amount;
            return;
        }
        let arc = narrow(self.graph.arcs.len());
        let way = self.graph.ways.join(first.way, second.way);
        self.graph.arcs.push(Arc {
            src,
            dst,
            units: amount,
            way,
        });
        self.out[src as usize].push(arc);
        self.into[dst as usize].push(arc);
        made.insert((from, to), arc);
    }
}

/// Returns the nodes that are in the same sets, by number. Those in no set are a group each, or one with the only root:
/// what it sends then goes to many of the sets.
fn groups(nodes: usize, sets: &[Vec<bool>], supply: &[i64]) -> Vec<u32> {
    let has_one_root = supply.iter().filter(|trees| **trees > 0).count() == 1;
    let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
    let mut count = 0;
    let mut next = || {
        count += 1;
        count - 1
    };
    let of = |node: usize| {
        let holding = (0u32..).zip(sets).filter(|(_, set)| set[node]);
        let holding: Vec<u32> = holding.map(|(i, _)| i).collect();
        if holding.is_empty() && !has_one_root {
            return next();
        }
        *known.entry(holding).or_insert_with(&mut next)
    };
    (0..nodes).map(of).collect()
}

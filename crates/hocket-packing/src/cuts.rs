//! Sets of nodes that less may enter than must: the search for one, and those that are known to matter.

use std::collections::{HashSet, VecDeque};

use super::graph::{Arc, Graph};
use crate::id::fit;
use crate::progress::{Interrupted, Progress};
use hocket_base::graph::{FlowNetwork, Lists, UNLIMITED};

/// Flows from the ends backwards to the roots.
pub(super) struct Backward {
    flows: FlowNetwork,
    supply: Vec<i64>,
    total: i128,
    order: Vec<u32>,
}

impl Backward {
    /// Of arcs among `nodes`; each root has `supply` to send to each of `ends`.
    pub(crate) fn new(nodes: usize, arcs: &[Arc], supply: &[i64], ends: &[u32]) -> Self {
        let turned = arcs
            .iter()
            .map(|arc| (arc.dst, arc.src, i128::from(arc.units)));
        let mut backward = Self {
            flows: FlowNetwork::new(nodes, turned),
            supply: supply.to_vec(),
            total: supply.iter().map(|&each| i128::from(each)).sum(),
            order: visiting_order(nodes, arcs, ends),
        };
        backward.reset();
        backward
    }

    fn reset(&mut self) {
        for (node, &supply) in (0..).zip(&self.supply) {
            self.flows.set_drain(node, supply.into());
        }
    }

    /// Returns a set that less may enter than must, where there is one.
    ///
    /// Targets that were served become sources for the next: sets that they are outside of are settled.
    pub(crate) fn violated(
        &mut self,
        progress: &mut dyn Progress,
    ) -> Result<Option<Vec<bool>>, Interrupted> {
        self.reset();
        for i in 0..self.order.len() {
            progress.spend(self.flows.node_count() as u64);
            if i % 16 == 0 && !progress.report("trees: cuts", i as u64, self.order.len() as u64) {
                return Err(Interrupted);
            }
            let node = self.order[i];
            if self.flows.flow(&[(node, UNLIMITED)], self.total) < self.total {
                return Ok(Some(self.near()));
            }
            self.flows.set_drain(node, UNLIMITED);
        }
        Ok(None)
    }

    /// For each end the least set around it that as much enters as must, and no more; not those of one node.
    pub(crate) fn tight(&mut self) -> Vec<Vec<bool>> {
        self.reset();
        let mut seen = HashSet::new();
        let mut sets = Vec::new();
        for i in 0..self.order.len() {
            let node = self.order[i];
            let found = self.flows.flow(&[(node, UNLIMITED)], UNLIMITED);
            let size = self.flows.near_nodes().len();
            if found == self.total && size > 1 && size < self.flows.node_count() {
                let set = self.near();
                if seen.insert(set.clone()) {
                    sets.push(set);
                }
            }
        }
        sets
    }

    /// Returns how much less some end can get than it must, at most.
    pub(crate) fn shortage(&mut self) -> i64 {
        self.reset();
        let mut most = 0;
        for i in 0..self.order.len() {
            let node = self.order[i];
            let found = self.flows.flow(&[(node, UNLIMITED)], self.total);
            most = most.max(self.total - found);
        }
        fit(most)
    }

    fn near(&self) -> Vec<bool> {
        (0..self.flows.node_count())
            .map(|node| self.flows.is_near(node))
            .collect()
    }
}

/// Ends, near ones one after another.
fn visiting_order(nodes: usize, arcs: &[Arc], ends: &[u32]) -> Vec<u32> {
    let heads = |arcs: &[Arc]| {
        let heads: Vec<(usize, u32)> = arcs.iter().map(|arc| (arc.src as usize, arc.dst)).collect();
        Lists::grouped(nodes, heads.into_iter())
    };
    let out = heads(arcs);
    let mut wanted = vec![false; nodes];
    ends.iter().for_each(|&end| wanted[end as usize] = true);
    let mut seen = vec![false; nodes];
    let mut order = Vec::with_capacity(ends.len());
    for &start in ends {
        let mut queue = VecDeque::from([start]);
        if std::mem::replace(&mut seen[start as usize], true) {
            continue;
        }
        while let Some(node) = queue.pop_front() {
            if wanted[node as usize] {
                order.push(node);
            }
            for &next in out.get(node as usize) {
                if !std::mem::replace(&mut seen[next as usize], true) {
                    queue.push_back(next);
                }
            }
        }
    }
    order
}

/// Sets that steps must not break, by node.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    sets: Vec<Vec<bool>>,
}

impl Pool {
    pub(crate) fn new(sets: Vec<Vec<bool>>) -> Self {
        Self { sets }
    }

    pub(crate) fn sets(&self) -> &[Vec<bool>] {
        &self.sets
    }

    /// Adds a set; whether it is new.
    pub(crate) fn add(&mut self, set: Vec<bool>) -> bool {
        let is_new = !self.sets.contains(&set);
        if is_new {
            self.sets.push(set);
        }
        is_new
    }

    /// Returns how much more enters each set than must.
    pub(crate) fn slacks(&self, arcs: &[Arc], supply: &[i64]) -> Vec<i64> {
        let slack = |set: &Vec<bool>| -> i64 {
            let enters = |arc: &&Arc| !set[arc.src as usize] && set[arc.dst as usize];
            let entering: i64 = arcs.iter().filter(enters).map(|arc| arc.units).sum();
            let outside = supply.iter().zip(set).filter(|(_, inside)| !**inside);
            entering - outside.map(|(supply, _)| supply).sum::<i64>()
        };
        self.sets.iter().map(slack).collect()
    }
}

/// The set with the same ends inside that least enters, of all that there are.
pub(super) fn completed(graph: &Graph, ends_inside: &[bool]) -> Vec<bool> {
    let turned = graph.arcs.iter();
    let turned = turned.map(|arc| (arc.dst, arc.src, i128::from(arc.units)));
    let mut flows = FlowNetwork::new(graph.nodes(), turned);
    let mut supplies = Vec::new();
    for end in graph.ends() {
        match ends_inside[end as usize] {
            true => supplies.push((end, UNLIMITED)),
            false => flows.set_drain(end, UNLIMITED),
        }
    }
    flows.flow(&supplies, UNLIMITED);
    (0..graph.nodes()).map(|node| flows.is_near(node)).collect()
}

//! Trees made lower by exchanging arcs between two of them, so that their first piece is everywhere sooner.
//!
//! A node of a tree may hang from a neighbour that is nearer to the root: over an arc with room, or over one that leads
//! to the same node in another tree, which takes this tree's arc in exchange.

use super::graph::Graph;
use super::grow::{Forest, NONE};
use crate::graph::Lists;

/// Rounds over all nodes of all trees.
const MOST_ROUNDS: usize = 8;
/// Arcs times trees, beyond which nothing is tried.
const MOST_WORK: usize = 4_000_000;

/// Lowers the trees, as long as that helps.
pub(super) fn lower(graph: &Graph, forest: &mut Forest) {
    if graph.arcs.len().saturating_mul(forest.roots.len()) > MOST_WORK {
        return;
    }
    let heads = graph.arcs.iter().map(|arc| arc.dst as usize).zip(0u32..);
    let mut lowering = Lowering {
        graph,
        into: Lists::grouped(graph.nodes(), heads),
        users: vec![Vec::new(); graph.arcs.len()],
        depths: Vec::with_capacity(forest.roots.len()),
        forest,
    };
    for tree in 0..lowering.forest.roots.len() {
        for &arc in lowering.forest.into[tree]
            .iter()
            .filter(|&&arc| arc != NONE)
        {
            lowering.users[arc as usize].push(tree as u32);
        }
        lowering.depths.push(lowering.measured(tree));
    }
    for _ in 0..MOST_ROUNDS {
        if !lowering.round() {
            break;
        }
    }
}

struct Lowering<'a> {
    graph: &'a Graph,
    forest: &'a mut Forest,
    /// The arcs that lead to each node.
    into: Lists<u32>,
    /// The trees that use each arc.
    users: Vec<Vec<u32>>,
    /// By tree and node; `NONE` of nodes that are in no tree.
    depths: Vec<Vec<u32>>,
}

impl Lowering<'_> {
    fn round(&mut self) -> bool {
        let mut is_better = false;
        for tree in 0..self.forest.roots.len() {
            let in_tree = |&node: &u32| self.forest.into[tree][node as usize] != NONE;
            let mut nodes: Vec<u32> = (0..self.graph.nodes() as u32).filter(in_tree).collect();
            nodes.sort_by_key(|&node| std::cmp::Reverse(self.depths[tree][node as usize]));
            for node in nodes {
                if self.depths[tree][node as usize] > 1 {
                    is_better |= self.raise(tree, node);
                }
            }
        }
        is_better
    }

    /// Lets one node of one tree hang nearer to the root; whether it does now.
    fn raise(&mut self, tree: usize, node: u32) -> bool {
        let own = self.forest.into[tree][node as usize];
        let from = |arc: u32| self.graph.arcs[arc as usize].src;
        for i in 0..self.into.get(node as usize).len() {
            let arc = self.into.get(node as usize)[i];
            let above = self.depths[tree][from(arc) as usize];
            // Such a node is never below this one.
            if above == NONE || above + 1 >= self.depths[tree][node as usize] {
                continue;
            }
            if self.forest.left[arc as usize] > 0 {
                self.forest.left[arc as usize] -= 1;
                self.forest.left[own as usize] += 1;
                self.hang(tree, node, arc);
                return true;
            }
            let before = self.height(tree);
            self.hang(tree, node, arc);
            let gain = before - self.height(tree);
            for j in 0..self.users[arc as usize].len() {
                let other = self.users[arc as usize][j] as usize;
                if other != tree && self.takes(other, node, own, gain) {
                    return true;
                }
            }
            self.hang(tree, node, own);
        }
        false
    }

    /// Hangs a node of a tree from another arc, if it becomes higher by less than what is gained; whether it did.
    fn takes(&mut self, tree: usize, node: u32, arc: u32, gain: u64) -> bool {
        let mut at = self.graph.arcs[arc as usize].src;
        if self.depths[tree][at as usize] == NONE {
            return false;
        }
        loop {
            if at == node {
                return false;
            }
            match self.forest.into[tree][at as usize] {
                NONE => break,
                up => at = self.graph.arcs[up as usize].src,
            }
        }
        let (before, own) = (self.height(tree), self.forest.into[tree][node as usize]);
        self.hang(tree, node, arc);
        let is_worth_it = self.height(tree) < before + gain;
        if !is_worth_it {
            self.hang(tree, node, own);
        }
        is_worth_it
    }

    fn hang(&mut self, tree: usize, node: u32, arc: u32) {
        let own = std::mem::replace(&mut self.forest.into[tree][node as usize], arc);
        self.users[own as usize].retain(|&user| user != tree as u32);
        self.users[arc as usize].push(tree as u32);
        self.depths[tree] = self.measured(tree);
    }

    /// What a tree is to have little of: depth, and far more so of what is deepest.
    fn height(&self, tree: usize) -> u64 {
        let depths = self.depths[tree].iter().filter(|&&depth| depth != NONE);
        depths.map(|&depth| u64::from(depth).pow(3)).sum()
    }

    fn measured(&self, tree: usize) -> Vec<u32> {
        let into = &self.forest.into[tree];
        let mut depths = vec![NONE; into.len()];
        depths[self.forest.roots[tree] as usize] = 0;
        let mut path = Vec::new();
        for node in 0..into.len() as u32 {
            let mut at = node;
            while depths[at as usize] == NONE && into[at as usize] != NONE {
                path.push(at);
                at = self.graph.arcs[into[at as usize] as usize].src;
            }
            let mut depth = depths[at as usize];
            while let Some(at) = path.pop() {
                depth += 1;
                depths[at as usize] = depth;
            }
        }
        depths
    }
}

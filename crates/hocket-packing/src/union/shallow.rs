//! Undirected spanning trees made lower by exchanges of two edges, so that less time passes before the first piece
//! of a plan is everywhere.

use super::Edges;
use crate::id::narrow;

const NONE: u32 = u32::MAX;
/// Rounds over all nodes of all trees.
const MOST_ROUNDS: usize = 30;
/// Nodes times edges of all trees, beyond which nothing is tried.
const MOST_WORK: usize = 40_000_000;

/// A tree hung up at its root.
#[derive(Clone, Debug)]
struct Hung {
    root: u32,
    /// Of each node, the edge to its parent; `NONE` at the root.
    parent: Vec<u32>,
    depth: Vec<u32>,
}

/// Hangs nodes from neighbours that are nearer to the root: over an edge that has a unit left, or that another tree
/// gives in exchange, if both together become lower by that.
///
/// `left` has the units of each edge that no tree has; each tree is given by its edges and gets a root in its middle.
pub(super) fn make_shallow(edges: &Edges, trees: &mut [Vec<u32>], left: &mut [u64]) {
    let arcs: usize = trees.iter().map(Vec::len).sum();
    if arcs.saturating_mul(edges.nodes) > MOST_WORK {
        return;
    }
    let of_nodes = edges.of_nodes();
    let mut hung: Vec<Hung> = trees.iter().map(|tree| Hung::new(edges, tree)).collect();
    // Which trees have each edge.
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); edges.ends.len()];
    for (tree, its) in (0..).zip(trees.iter()) {
        its.iter().for_each(|&edge| users[edge as usize].push(tree));
    }
    for _ in 0..MOST_ROUNDS {
        let mut is_better = false;
        for tree in 0..hung.len() {
            is_better |= hung[tree].move_root(edges);
            let mut nodes: Vec<u32> = (0..narrow(edges.nodes)).collect();
            nodes.sort_by_key(|&node| std::cmp::Reverse(hung[tree].depth[node as usize]));
            for node in nodes {
                is_better |= lift(edges, &of_nodes, &mut hung, &mut users, left, (tree, node));
            }
        }
        if !is_better {
            break;
        }
    }
    for (tree, hung) in trees.iter_mut().zip(&hung) {
        *tree = hung.edges();
    }
}

/// Hangs one node of one tree nearer to the root; returns whether it does now.
fn lift(
    edges: &Edges,
    of_nodes: &[Vec<u32>],
    hung: &mut [Hung],
    users: &mut [Vec<u32>],
    left: &mut [u64],
    (tree, node): (usize, u32),
) -> bool {
    let own = hung[tree].parent[node as usize];
    if own == NONE {
        return false;
    }
    for &edge in &of_nodes[node as usize] {
        let above = edges.other(edge, node);
        let depth = &hung[tree].depth;
        // Such a node is never below this one.
        if depth[above as usize] + 1 >= depth[node as usize] {
            continue;
        }
        let raised = hung[tree].with_parent(edges, node, edge);
        if left[edge as usize] > 0 {
            left[edge as usize] -= 1;
            left[own as usize] += 1;
            hung[tree] = raised;
            exchange(users, narrow(tree), (own, edge));
            return true;
        }
        let gain = hung[tree].height() - raised.height();
        let other = users[edge as usize].iter().copied().find_map(|other| {
            if users[own as usize].contains(&other) {
                return None;
            }
            let its = &hung[other as usize];
            let changed = its.exchanged(edges, (edge, own))?;
            (changed.height() < its.height() + gain).then_some((other, changed))
        });
        if let Some((other, changed)) = other {
            hung[tree] = raised;
            hung[other as usize] = changed;
            exchange(users, narrow(tree), (own, edge));
            exchange(users, other, (edge, own));
            return true;
        }
    }
    false
}

fn exchange(users: &mut [Vec<u32>], tree: u32, (gone, new): (u32, u32)) {
    users[gone as usize].retain(|&it| it != tree);
    users[new as usize].push(tree);
}

impl Hung {
    fn new(edges: &Edges, tree: &[u32]) -> Self {
        let mut near: Vec<Vec<u32>> = vec![Vec::new(); edges.nodes];
        for &edge in tree {
            let ends = edges.ends[edge as usize];
            ends.iter().for_each(|&end| near[end as usize].push(edge));
        }
        let first = Self::at(edges, &near, 0);
        let end = first.deepest();
        let across = Self::at(edges, &near, end);
        Self::at(edges, &near, across.half_way(edges))
    }

    fn at(edges: &Edges, near: &[Vec<u32>], root: u32) -> Self {
        let mut hung = Self {
            root,
            parent: vec![NONE; edges.nodes],
            depth: vec![0; edges.nodes],
        };
        let mut stack = vec![root];
        while let Some(node) = stack.pop() {
            for &edge in &near[node as usize] {
                if edge != hung.parent[node as usize] {
                    let next = edges.other(edge, node);
                    hung.parent[next as usize] = edge;
                    hung.depth[next as usize] = hung.depth[node as usize] + 1;
                    stack.push(next);
                }
            }
        }
        hung
    }

    fn edges(&self) -> Vec<u32> {
        let parents = self.parent.iter().copied();
        let mut edges: Vec<u32> = parents.filter(|&edge| edge != NONE).collect();
        edges.sort_unstable();
        edges
    }

    fn deepest(&self) -> u32 {
        let nodes = 0..narrow(self.depth.len());
        nodes
            .max_by_key(|&node| self.depth[node as usize])
            .unwrap_or(0)
    }

    /// Returns the node half way from the root to the deepest.
    fn half_way(&self, edges: &Edges) -> u32 {
        let mut node = self.deepest();
        for _ in 0..self.depth[node as usize] / 2 {
            node = edges.other(self.parent[node as usize], node);
        }
        node
    }

    /// Returns what a tree is to have little of: depth, and far more so of what is deepest.
    fn height(&self) -> i64 {
        let cubes = self.depth.iter().map(|&depth| i64::from(depth).pow(3));
        cubes.sum()
    }

    /// Hangs it up in its middle; whether it is lower by that.
    fn move_root(&mut self, edges: &Edges) -> bool {
        let moved = Self::new(edges, &self.edges());
        let is_lower = moved.height() < self.height();
        if is_lower {
            *self = moved;
        }
        is_lower
    }

    /// Returns the same, a node with all below it at another neighbour.
    fn with_parent(&self, edges: &Edges, node: u32, edge: u32) -> Self {
        let mut changed = self.clone();
        changed.parent[node as usize] = edge;
        changed.measure(edges);
        changed
    }

    /// Returns the same with an edge in place of another; `None` where it would be no tree.
    fn exchanged(&self, edges: &Edges, (gone, new): (u32, u32)) -> Option<Self> {
        let [a, b] = edges.ends[gone as usize];
        let below = if self.parent[a as usize] == gone {
            a
        } else {
            b
        };
        let [a, b] = edges.ends[new as usize];
        let (inside, outside) = match (
            self.is_below(edges, a, below),
            self.is_below(edges, b, below),
        ) {
            (true, false) => (a, b),
            (false, true) => (b, a),
            _ => return None,
        };
        debug_assert!(outside != inside);
        // What was cut off hangs from the new edge: its parents turn round up to where it was cut.
        let mut changed = self.clone();
        let (mut node, mut edge) = (inside, new);
        loop {
            let before = std::mem::replace(&mut changed.parent[node as usize], edge);
            if node == below {
                break;
            }
            node = edges.other(before, node);
            edge = before;
        }
        changed.measure(edges);
        Some(changed)
    }

    fn is_below(&self, edges: &Edges, mut node: u32, above: u32) -> bool {
        while node != above {
            if node == self.root {
                return false;
            }
            node = edges.other(self.parent[node as usize], node);
        }
        true
    }

    /// Computes the depths anew.
    fn measure(&mut self, edges: &Edges) {
        self.depth.fill(NONE);
        self.depth[self.root as usize] = 0;
        let mut path = Vec::new();
        for node in 0..narrow(self.depth.len()) {
            let mut at = node;
            while self.depth[at as usize] == NONE {
                path.push(at);
                at = edges.other(self.parent[at as usize], at);
            }
            let mut depth = self.depth[at as usize];
            while let Some(at) = path.pop() {
                depth += 1;
                self.depth[at as usize] = depth;
            }
        }
    }
}

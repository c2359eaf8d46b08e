//! Spanning trees of an undirected graph that share no unit of an edge.
//!
//! Trees first grow level by level from the middle of the graph. What is missing then is found by exchanges: an
//! edge that would close a cycle in one tree takes the place of an edge of that cycle, which goes to another tree.
//!
//! # Source
//! Edmonds, Minimum partition of a matroid into independent subsets, 1965; Roskind, Tarjan, A note on finding
//! minimum-cost edge-disjoint spanning trees, 1985.

mod shallow;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::id::narrow;
use crate::progress::{Interrupted, Paced};
use shallow::make_shallow;

const NONE: u32 = u32::MAX;

/// Edges of an undirected graph, each for so many trees.
#[derive(Clone, Debug)]
pub(super) struct Edges {
    pub nodes: usize,
    pub ends: Vec<[u32; 2]>,
    pub units: Vec<u64>,
}

impl Edges {
    pub(crate) fn other(&self, edge: u32, node: u32) -> u32 {
        let [a, b] = self.ends[edge as usize];
        a ^ b ^ node
    }

    /// Returns the edges of each node.
    pub(crate) fn of_nodes(&self) -> Vec<Vec<u32>> {
        let mut of = vec![Vec::new(); self.nodes];
        for (edge, ends) in (0..).zip(&self.ends) {
            ends.iter().for_each(|&end| of[end as usize].push(edge));
        }
        of
    }
}

/// Returns the edges of so many spanning trees; `None` where there are not so many.
pub(super) fn trees(
    edges: &Edges,
    count: usize,
    watch: &mut Paced,
) -> Result<Option<Vec<Vec<u32>>>, Interrupted> {
    let mut union = Union::new(edges, count);
    union.grow();
    let wanted = count * (edges.nodes - 1);
    let mut edge = 0;
    while union.size < wanted {
        // What an exchange cannot bring in now, none can later.
        if edge == edges.ends.len() {
            return Ok(None);
        }
        watch.count(edges.ends.len() as u64, union.size as u64, wanted as u64)?;
        if union.left[edge] == 0 || !union.exchange(narrow(edge)) {
            edge += 1;
        }
    }
    let trees = union.near.iter().map(|near| {
        let of = near.iter().flatten().map(|&(_, edge)| edge);
        let mut of: Vec<u32> = of.collect();
        of.sort_unstable();
        of.dedup();
        of
    });
    let mut trees: Vec<Vec<u32>> = trees.collect();
    make_shallow(edges, &mut trees, &mut union.left);
    Ok(Some(trees))
}

/// Forests that grow to trees.
struct Union<'a> {
    edges: &'a Edges,
    of_nodes: Vec<Vec<u32>>,
    /// By forest and node: neighbours, and the edges that lead to them.
    near: Vec<Vec<Vec<(u32, u32)>>>,
    /// Units of each edge that no forest has.
    left: Vec<u64>,
    /// Edges of all forests.
    size: usize,
}

/// An edge that looks for a place.
#[derive(Clone, Copy)]
struct Seeker {
    edge: u32,
    /// The forest that it leaves; `NONE` of a unit that is in none.
    from: u32,
    /// Who takes its place there.
    follower: u32,
}

impl<'a> Union<'a> {
    fn new(edges: &'a Edges, count: usize) -> Self {
        Self {
            of_nodes: edges.of_nodes(),
            near: vec![vec![Vec::new(); edges.nodes]; count],
            left: edges.units.clone(),
            size: 0,
            edges,
        }
    }

    fn insert(&mut self, forest: u32, edge: u32) {
        let [a, b] = self.edges.ends[edge as usize];
        let near = &mut self.near[forest as usize];
        near[a as usize].push((b, edge));
        near[b as usize].push((a, edge));
    }

    fn remove(&mut self, forest: u32, edge: u32) {
        let near = &mut self.near[forest as usize];
        for end in self.edges.ends[edge as usize] {
            near[end as usize].retain(|&(_, it)| it != edge);
        }
    }

    /// Level by level, an edge of each forest at a time, from the nodes that have the least way to all others.
    fn grow(&mut self) {
        let roots = self.middle_first();
        let count = self.near.len();
        let mut has = vec![vec![false; self.edges.nodes]; count];
        let mut heap = BinaryHeap::new();
        for forest in 0..count {
            let root = roots[forest % roots.len()];
            has[forest][root as usize] = true;
            heap.push(Reverse((0u32, narrow(forest), narrow(forest), root)));
        }
        let mut turn = narrow(count);
        while let Some(Reverse((depth, _, forest, node))) = heap.pop() {
            let has = &mut has[forest as usize];
            let open = self.of_nodes[node as usize].iter().copied();
            let open = open.filter(|&edge| {
                self.left[edge as usize] > 0 && !has[self.edges.other(edge, node) as usize]
            });
            // The one that others need least.
            let Some(edge) = open.max_by_key(|&edge| (self.left[edge as usize], Reverse(edge)))
            else {
                continue;
            };
            let next = self.edges.other(edge, node);
            has[next as usize] = true;
            self.left[edge as usize] -= 1;
            self.size += 1;
            self.insert(forest, edge);
            heap.push(Reverse((depth, turn, forest, node)));
            heap.push(Reverse((depth + 1, turn + 1, forest, next)));
            turn += 2;
        }
    }

    /// Returns the nodes by how far the furthest other is, the nearest first.
    fn middle_first(&self) -> Vec<u32> {
        let nodes = self.edges.nodes;
        let furthest = |start: u32| {
            let mut depth = vec![NONE; nodes];
            depth[start as usize] = 0;
            let mut queue = VecDeque::from([start]);
            let mut last = 0;
            while let Some(node) = queue.pop_front() {
                last = depth[node as usize];
                for &edge in &self.of_nodes[node as usize] {
                    let next = self.edges.other(edge, node) as usize;
                    if depth[next] == NONE {
                        depth[next] = last + 1;
                        queue.push_back(narrow(next));
                    }
                }
            }
            last
        };
        let mut order: Vec<u32> = (0..narrow(nodes)).collect();
        order.sort_by_cached_key(|&node| furthest(node));
        order
    }

    /// Brings a unit of an edge in, by a shortest chain of exchanges; whether that was possible.
    fn exchange(&mut self, edge: u32) -> bool {
        let count = narrow(self.near.len());
        let all = self.edges.ends.len();
        let mut seen = vec![false; all * count as usize];
        let mut queue = vec![Seeker {
            edge,
            from: NONE,
            follower: NONE,
        }];
        let mut next = 0;
        while let Some(&seeker) = queue.get(next) {
            for forest in (0..count).filter(|&forest| forest != seeker.from) {
                let Some(cycle) = self.path(forest, self.edges.ends[seeker.edge as usize]) else {
                    self.follow(&queue, narrow(next), forest);
                    self.left[edge as usize] -= 1;
                    self.size += 1;
                    return true;
                };
                for other in cycle {
                    let seen = &mut seen[forest as usize * all + other as usize];
                    if !std::mem::replace(seen, true) {
                        queue.push(Seeker {
                            edge: other,
                            from: forest,
                            follower: narrow(next),
                        });
                    }
                }
            }
            next += 1;
        }
        false
    }

    /// Moves a seeker to a forest, its follower to where it was, and so on.
    fn follow(&mut self, queue: &[Seeker], mut at: u32, mut forest: u32) {
        loop {
            let seeker = queue[at as usize];
            if seeker.from != NONE {
                self.remove(seeker.from, seeker.edge);
            }
            self.insert(forest, seeker.edge);
            if seeker.from == NONE {
                return;
            }
            (at, forest) = (seeker.follower, seeker.from);
        }
    }

    /// Returns the edges between two nodes in a forest; `None` where they are not connected.
    fn path(&self, forest: u32, [start, end]: [u32; 2]) -> Option<Vec<u32>> {
        let near = &self.near[forest as usize];
        let mut came = vec![(NONE, NONE); self.edges.nodes];
        came[start as usize].0 = start;
        let mut stack = vec![start];
        while let Some(node) = stack.pop() {
            if node == end {
                let mut path = Vec::new();
                let mut at = end;
                while at != start {
                    let (before, edge) = came[at as usize];
                    path.push(edge);
                    at = before;
                }
                return Some(path);
            }
            for &(next, edge) in &near[node as usize] {
                if came[next as usize].0 == NONE {
                    came[next as usize] = (node, edge);
                    stack.push(next);
                }
            }
        }
        None
    }
}

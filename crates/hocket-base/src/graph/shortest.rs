//! Shortest paths from some nodes to all, or to the first that is sought.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A search for shortest paths. Its buffers are kept for the next one, and only what a search reached is
/// reset, so that one that stops early is cheap on a graph of any size.
///
/// `C` is the cost of a path, which arcs never make less. `V` says how a node was reached (the last arc,
/// usually) and breaks ties: among paths of equal cost the least `V` wins. `()` keeps nothing, [`FirstFound`]
/// the first path found. Nodes are settled by rising cost, those of equal cost by number.
///
/// ```
/// use hocket_base::graph::{Lists, ShortestPaths};
///
/// // 0 -> 1 -> 2 is shorter than 0 -> 2.
/// let arcs = [(0, 1, 2u64), (1, 2, 2), (0, 2, 5)];
/// let out = Lists::grouped(3, arcs.iter().zip(0u32..).map(|(arc, i)| (arc.0, i)));
/// let mut paths = ShortestPaths::new(u64::MAX, u32::MAX);
/// paths.run(
///     3,
///     [(0, 0)],
///     |node| out.get(node as usize).iter().map(|&i| (arcs[i as usize].1, i)),
///     |cost, i, _| Some((cost + arcs[i as usize].2, i)),
/// );
/// assert_eq!(paths.costs(), [0, 2, 4]);
/// assert_eq!(paths.via(2), 1);
/// ```
///
/// # Complexity
/// O((nodes reached + their arcs) log nodes).
///
/// # Source
/// Dijkstra, A note on two problems in connexion with graphs, 1959; Johnson, Efficient algorithms for shortest
/// paths in sparse networks, 1977, for the heap.
#[derive(Clone, Debug)]
pub struct ShortestPaths<C, V = ()> {
    unreached: (C, V),
    costs: Vec<C>,
    vias: Vec<V>,
    /// Nodes whose cost is final, nearest first. Others that were reached are still in the queue.
    settled: Vec<u32>,
    queue: Queue<C>,
}

impl<C: Copy + Ord, V: Copy + Ord> ShortestPaths<C, V> {
    /// No search yet. `far` is the cost of a node that cannot be reached, more than that of any path; `via` is
    /// how such a node, and one that a path starts at, was reached.
    pub fn new(far: C, via: V) -> Self {
        Self {
            unreached: (far, via),
            costs: Vec::new(),
            vias: Vec::new(),
            settled: Vec::new(),
            queue: Queue::new(far),
        }
    }

    /// Searches all of a graph from `sources`, each with the cost of starting there. `arcs` gives the arcs of a
    /// node, each with the node at its end; `extend` the cost of a path that goes on over an arc and what to
    /// keep of it, or `None` for an arc that may not be taken. Its arguments are the cost so far, the arc, and
    /// the cost of the best path known to the arc's end: where that is no more than the cost so far, the answer
    /// does not matter, which saves working it out.
    pub fn run<A, I: IntoIterator<Item = (u32, A)>>(
        &mut self,
        nodes: usize,
        sources: impl IntoIterator<Item = (u32, C)>,
        arcs: impl FnMut(u32) -> I,
        extend: impl FnMut(C, A, C) -> Option<(C, V)>,
    ) {
        self.until(nodes, sources, arcs, extend, |_, _| false);
    }

    /// As [`run`](Self::run), but stops at the first node for which `is_end`, and gives it. The costs of nodes
    /// that are farther are not final then. `is_end` sees each node, with its cost, when that is settled.
    pub fn until<A, I: IntoIterator<Item = (u32, A)>>(
        &mut self,
        nodes: usize,
        sources: impl IntoIterator<Item = (u32, C)>,
        mut arcs: impl FnMut(u32) -> I,
        mut extend: impl FnMut(C, A, C) -> Option<(C, V)>,
        mut is_end: impl FnMut(u32, C) -> bool,
    ) -> Option<u32> {
        self.reset(nodes);
        for (node, cost) in sources {
            if cost < self.costs[node as usize] {
                self.reach(node, cost, self.unreached.1);
            }
        }
        while let Some((cost, node)) = self.queue.pop() {
            if cost > self.costs[node as usize] {
                continue;
            }
            self.settled.push(node);
            if is_end(node, cost) {
                return Some(node);
            }
            for (end, arc) in arcs(node) {
                let known = self.costs[end as usize];
                let Some((found, via)) = extend(cost, arc, known) else {
                    continue;
                };
                if found < known {
                    self.reach(end, found, via);
                } else if via < self.vias[end as usize] && found == known && cost < known {
                    self.vias[end as usize] = via;
                }
            }
        }
        None
    }

    fn reset(&mut self, nodes: usize) {
        let (far, via) = self.unreached;
        if 4 * (self.settled.len() + self.queue.len()) > self.costs.len() {
            self.costs.fill(far);
            self.vias.fill(via);
        } else {
            for node in self.settled.iter().copied().chain(self.queue.nodes()) {
                self.costs[node as usize] = far;
                self.vias[node as usize] = via;
            }
        }
        self.settled.clear();
        self.costs.resize(nodes, far);
        self.vias.resize(nodes, via);
        self.queue.clear();
    }

    /// Notes a shorter path to a node.
    #[inline]
    fn reach(&mut self, node: u32, cost: C, via: V) {
        self.costs[node as usize] = cost;
        self.vias[node as usize] = via;
        self.queue.push(cost, node);
    }

    /// Cost of the shortest path to every node.
    pub fn costs(&self) -> &[C] {
        &self.costs
    }

    /// Returns the nodes that were settled, by rising cost.
    pub fn settled(&self) -> &[u32] {
        &self.settled
    }

    /// Returns how a node was reached.
    #[inline]
    pub fn via(&self, node: u32) -> V {
        self.vias[node as usize]
    }

    /// Returns the cost of every node, and how each was reached.
    pub fn into_parts(self) -> (Vec<C>, Vec<V>) {
        (self.costs, self.vias)
    }
}

/// Nodes that were reached and not settled. They are taken by rising cost, those of equal cost by number.
///
/// Where all arcs cost the same, as in most networks, only two costs are waiting at any time. So the nodes of
/// the two least costs lie in lists, and a heap has the rest: breadth-first search is then as cheap as with a
/// queue of its own.
#[derive(Clone, Debug)]
struct Queue<C> {
    /// Nodes at the least cost, by number, of which the first `taken` are taken.
    now: Vec<u32>,
    taken: usize,
    now_cost: C,
    /// Nodes at one cost that is more than `now_cost`, in any order.
    next: Vec<u32>,
    next_cost: C,
    /// Everything else, at any cost from `now_cost` on.
    rest: BinaryHeap<Reverse<(C, u32)>>,
    far: C,
}

impl<C: Copy + Ord> Queue<C> {
    fn new(far: C) -> Self {
        Self {
            now: Vec::new(),
            taken: 0,
            now_cost: far,
            next: Vec::new(),
            next_cost: far,
            rest: BinaryHeap::new(),
            far,
        }
    }

    /// Adds a node at a cost that is no less than that of the node taken last.
    #[inline]
    fn push(&mut self, cost: C, node: u32) {
        if cost == self.next_cost {
            self.next.push(node);
        } else if self.next.is_empty() && (cost > self.now_cost || self.taken == self.now.len()) {
            self.next_cost = cost;
            self.next.push(node);
        } else {
            self.rest.push(Reverse((cost, node)));
        }
    }

    /// Takes the node of least cost, and of those the one of least number.
    #[inline]
    fn pop(&mut self) -> Option<(C, u32)> {
        let least = self.rest.peek().map(|&Reverse(entry)| entry);
        if self.taken == self.now.len() {
            if self.next.is_empty() || least.is_some_and(|(cost, _)| cost < self.next_cost) {
                return self.rest.pop().map(|Reverse(entry)| entry);
            }
            self.now.clear();
            std::mem::swap(&mut self.now, &mut self.next);
            self.now.sort_unstable();
            self.now_cost = std::mem::replace(&mut self.next_cost, self.far);
            self.taken = 0;
        }
        let first = (self.now_cost, self.now[self.taken]);
        if least.is_some_and(|entry| entry < first) {
            return self.rest.pop().map(|Reverse(entry)| entry);
        }
        self.taken += 1;
        Some(first)
    }

    /// Returns the nodes that were not taken.
    fn nodes(&self) -> impl Iterator<Item = u32> {
        let listed = self.now[self.taken..].iter().chain(&self.next).copied();
        listed.chain(self.rest.iter().map(|Reverse((_, node))| *node))
    }

    fn len(&self) -> usize {
        self.now.len() - self.taken + self.next.len() + self.rest.len()
    }

    fn clear(&mut self) {
        self.now.clear();
        self.taken = 0;
        self.now_cost = self.far;
        self.next.clear();
        self.next_cost = self.far;
        self.rest.clear();
    }
}

/// What compares equal to all others of its kind: among paths of equal cost the first found is kept.
#[derive(Clone, Copy, Debug)]
pub struct FirstFound<T>(pub T);

impl<T> PartialEq for FirstFound<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for FirstFound<T> {}

impl<T> PartialOrd for FirstFound<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for FirstFound<T> {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Lists;
    use crate::id::narrow;
    use crate::units::Seed;

    const FAR: u64 = u64::MAX;
    const NONE: u32 = u32::MAX;

    struct Graph {
        nodes: usize,
        arcs: Vec<(u32, u32, u64)>,
        out: Lists<u32>,
    }

    impl Graph {
        fn random(seed: &mut Seed) -> Self {
            let nodes = 1 + seed.below(9);
            let mut node = || narrow(seed.below(nodes));
            let ends: Vec<(u32, u32)> = (0..24).map(|_| (node(), node())).collect();
            let count = seed.below(24);
            let arcs = ends[..count].iter();
            let arcs: Vec<_> = arcs
                .map(|&(src, dst)| (src, dst, seed.below(4) as u64))
                .collect();
            let starts = arcs.iter().zip(0..).map(|(arc, i)| (arc.0 as usize, i));
            Self {
                nodes,
                out: Lists::grouped(nodes, starts),
                arcs,
            }
        }

        fn search<V: Copy + Ord>(
            &self,
            paths: &mut ShortestPaths<u64, V>,
            sources: &[(u32, u64)],
            via: impl Fn(u32) -> V,
            is_end: impl FnMut(u32, u64) -> bool,
        ) -> Option<u32> {
            let arc = |&i: &u32| (self.arcs[i as usize].1, i);
            paths.until(
                self.nodes,
                sources.iter().copied(),
                |node| self.out.get(node as usize).iter().map(arc),
                |cost, i, _| Some((cost + self.arcs[i as usize].2, via(i))),
                is_end,
            )
        }

        /// Bellman and Ford: every arc, as often as there are nodes.
        fn slow(&self, sources: &[(u32, u64)]) -> Vec<u64> {
            let mut far = vec![FAR; self.nodes];
            for &(node, cost) in sources {
                far[node as usize] = far[node as usize].min(cost);
            }
            for _ in 0..self.nodes {
                for &(src, dst, length) in &self.arcs {
                    let found = far[src as usize].saturating_add(length);
                    far[dst as usize] = far[dst as usize].min(found);
                }
            }
            far
        }
    }

    #[test]
    fn costs_are_those_of_bellman_and_ford_search_after_search() {
        let mut seed = Seed(5);
        let mut paths = ShortestPaths::new(FAR, ());
        for _ in 0..500 {
            let graph = Graph::random(&mut seed);
            let mut source = || (narrow(seed.below(graph.nodes)), seed.below(3) as u64);
            let sources = [source(), source()];
            graph.search(&mut paths, &sources, |_| (), |_, _| false);
            assert_eq!(paths.costs(), graph.slow(&sources));
        }
    }

    #[test]
    fn ties_go_to_the_least_arc_or_to_the_first_found() {
        let mut seed = Seed(6);
        for _ in 0..500 {
            let mut graph = Graph::random(&mut seed);
            graph.arcs.iter_mut().for_each(|arc| arc.2 += 1);
            let far = graph.slow(&[(0, 0)]);
            let is_last = |&i: &u32, node: u32| {
                let (src, dst, length) = graph.arcs[i as usize];
                let src = far[src as usize];
                dst == node && src < FAR && src + length == far[node as usize]
            };
            let all = || 0..narrow(graph.arcs.len());
            let mut least = ShortestPaths::new(FAR, NONE);
            graph.search(&mut least, &[(0, 0)], |i| i, |_, _| false);
            let mut first = ShortestPaths::new(FAR, FirstFound(NONE));
            graph.search(&mut first, &[(0, 0)], FirstFound, |_, _| false);
            for node in 1..narrow(graph.nodes) {
                let lowest = all().find(|i| is_last(i, node));
                assert_eq!(least.via(node), lowest.unwrap_or(NONE));
                // Found first: from the node that is settled first, then by the order of its arcs.
                let order = |&i: &u32| {
                    let src = graph.arcs[i as usize].0;
                    (far[src as usize], src, i)
                };
                let earliest = all().filter(|i| is_last(i, node)).min_by_key(order);
                assert_eq!(first.via(node).0, earliest.unwrap_or(NONE));
            }
        }
    }

    #[test]
    fn it_stops_at_the_nearest_that_is_sought_and_settles_by_cost_then_number() {
        let mut seed = Seed(7);
        let mut paths = ShortestPaths::new(FAR, ());
        for _ in 0..500 {
            let graph = Graph::random(&mut seed);
            let far = graph.slow(&[(0, 0)]);
            let sought: Vec<bool> = (0..graph.nodes).map(|_| seed.below(3) == 0).collect();
            let mut settled = Vec::new();
            let end = graph.search(
                &mut paths,
                &[(0, 0)],
                |_| (),
                |node, cost| {
                    settled.push((cost, node));
                    sought[node as usize]
                },
            );
            let reached = (0..graph.nodes).filter(|&node| far[node] < FAR);
            let nearest = reached.filter(|&node| sought[node]).map(|node| far[node]);
            assert_eq!(end.map(|node| far[node as usize]), nearest.min());
            assert!(
                settled
                    .iter()
                    .all(|&(cost, node)| far[node as usize] == cost)
            );
            assert!(settled.is_sorted_by_key(|&(cost, _)| cost));
        }
    }

    #[test]
    fn arcs_may_be_refused() {
        let mut paths = ShortestPaths::new(FAR, ());
        let arcs = |node: u32| [((node + 1) % 5, 1)];
        let within = |cost, length, _| (cost + length < 3).then_some((cost + length, ()));
        paths.run(5, [(0, 0)], arcs, within);
        assert_eq!(paths.costs(), [0, 1, 2, FAR, FAR]);
    }
}

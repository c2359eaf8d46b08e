//! Flows of least cost, way by way: each next one is the cheapest that is left.

use super::{Lists, ShortestPaths};
use crate::id::narrow;

const FAR: u64 = u64::MAX;
const NO_EDGE: u32 = u32::MAX;

/// A network on which a flow grows from one node to a set of others, each time by as much as its cheapest way carries.
///
/// Whatever amount has flowed by then, no flow of that amount costs less.
///
/// ```
/// use hocket_base::graph::CheapestWays;
///
/// // 0 -> 1 -> 3 is cheap and narrow, 0 -> 2 -> 3 takes the rest.
/// let arcs = [(0, 1, 5, 1), (1, 3, 2, 1), (0, 2, 3, 4), (2, 3, 9, 4)];
/// let mut ways = CheapestWays::new(4, arcs);
/// ways.restart();
/// let mut grow = || ways.grow(0, |node| node == 3, u64::MAX);
/// assert_eq!([grow(), grow(), grow()], [Some((2, 2)), Some((3, 8)), None]);
/// ```
///
/// # Complexity
/// A search for a shortest path, as far as the nearest end, for each way.
///
/// # Source
/// Busacker, Gowen, A procedure for determining a family of minimum-cost network flow patterns, 1960; Edmonds, Karp,
/// Theoretical improvements in algorithmic efficiency for network flow problems, 1972, for the potentials.
#[derive(Clone, Debug)]
pub struct CheapestWays {
    out: Lists<u32>,
    /// Edge 2 i is arc i, edge 2 i + 1 the way back over it.
    heads: Vec<u32>,
    costs: Vec<u64>,
    base: Vec<u64>,
    left: Vec<u64>,
    /// By node, and last for all ends together.
    potentials: Vec<u64>,
    paths: ShortestPaths<u64, u32>,
}

impl CheapestWays {
    /// Returns a network of arcs (from, to, capacity, cost for each unit), parallel ones allowed. An arc of cost
    /// `u64::MAX` is of no use.
    ///
    /// # Panics
    /// If an arc ends at no node, or there are 2^31 arcs or more.
    pub fn new(
        nodes: usize,
        arcs: impl IntoIterator<Item = (u32, u32, u64, u64), IntoIter: Clone>,
    ) -> Self {
        let arcs = arcs.into_iter();
        let ends = arcs.clone().flat_map(|(src, dst, ..)| [src, dst]);
        let out = Lists::grouped(nodes, ends.map(|node| node as usize).zip(0u32..));
        let heads = arcs.clone().flat_map(|(src, dst, ..)| [dst, src]).collect();
        let base: Vec<u64> = arcs
            .clone()
            .flat_map(|(_, _, capacity, _)| [capacity, 0])
            .collect();
        Self {
            out,
            heads,
            costs: arcs.flat_map(|(_, _, _, cost)| [cost, cost]).collect(),
            left: base.clone(),
            base,
            potentials: vec![0; nodes + 1],
            paths: ShortestPaths::new(FAR, NO_EDGE),
        }
    }

    /// Takes all flow back.
    pub fn restart(&mut self) {
        self.left.copy_from_slice(&self.base);
        self.potentials.fill(0);
    }

    /// Sends more flow from a node to any that `is_end`, over the cheapest way that is left: how much, and what each
    /// unit of it costs. `None` where that is `too_much` or more, or where there is no way. Since the last
    /// [`restart`](Self::restart), ends and start must be the same.
    pub fn grow(
        &mut self,
        from: u32,
        is_end: impl Fn(u32) -> bool,
        too_much: u64,
    ) -> Option<(u64, u64)> {
        let Self {
            out,
            heads,
            costs,
            left,
            potentials,
            paths,
            ..
        } = self;
        let end = narrow(out.len());
        // No edge with room is cheaper than the potentials of its ends say.
        let levels = &potentials[..];
        let lowered = |cost: u64, node: u32, next: u32| {
            let up = cost.saturating_add(levels[node as usize]);
            up.saturating_sub(levels[next as usize]).min(FAR - 1)
        };
        let (tips, prices, room) = (&heads[..], &costs[..], &left[..]);
        let edges = |node: u32| {
            let edges: &[u32] = if node == end {
                &[]
            } else {
                out.get(node as usize)
            };
            let usable =
                move |&&edge: &&u32| room[edge as usize] > 0 && prices[edge as usize] < FAR;
            let arcs = edges.iter().filter(usable);
            let arcs = arcs.map(move |&edge| (tips[edge as usize], (node, edge)));
            let over = (node != end && is_end(node)).then_some((end, (node, NO_EDGE - 1)));
            arcs.chain(over)
        };
        let found = paths.until(
            end as usize + 1,
            [(from, 0)],
            edges,
            |so_far, (node, edge), _| {
                if edge == NO_EDGE - 1 {
                    return Some((so_far.saturating_add(lowered(0, node, end)), node));
                }
                let (cost, next) = (prices[edge as usize], tips[edge as usize]);
                let more = if edge % 2 == 0 {
                    lowered(cost, node, next)
                } else {
                    lowered(0, node, next).saturating_sub(cost)
                };
                Some((so_far.saturating_add(more).min(FAR - 1), edge))
            },
            |node, _| node == end,
        );
        let length = paths.costs()[found? as usize];
        let cost = potentials[end as usize].saturating_add(length);
        if cost >= too_much {
            return None;
        }
        for (potential, &reached) in potentials.iter_mut().zip(paths.costs()) {
            *potential = potential.saturating_add(reached.min(length));
        }
        let mut way = Vec::new();
        let mut node = paths.via(end);
        while node != from {
            let edge = paths.via(node);
            way.push(edge as usize);
            node = heads[(edge ^ 1) as usize];
        }
        let amount = way.iter().map(|&edge| left[edge]).min().unwrap_or(0);
        for edge in way {
            left[edge] -= amount;
            left[edge ^ 1] += amount;
        }
        Some((amount, cost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    /// Returns the least cost of a flow of each amount, a unit at a time, over cheapest paths by Bellman and Ford.
    fn least_costs(nodes: usize, arcs: &[(u32, u32, u64, u64)], to: u32) -> Vec<u64> {
        let mut edges: Vec<(usize, usize, i64, i64)> = Vec::new();
        for &(src, dst, room, cost) in arcs {
            edges.push((src as usize, dst as usize, room as i64, cost as i64));
            edges.push((dst as usize, src as usize, 0, -(cost as i64)));
        }
        let mut total = 0;
        let mut costs = vec![0];
        loop {
            let mut far = vec![(i64::MAX / 2, usize::MAX); nodes];
            far[0].0 = 0;
            for _ in 0..nodes {
                for (i, &(src, dst, room, cost)) in edges.iter().enumerate() {
                    if room > 0 && far[src].0 < i64::MAX / 2 && far[src].0 + cost < far[dst].0 {
                        far[dst] = (far[src].0 + cost, i);
                    }
                }
            }
            if far[to as usize].0 >= i64::MAX / 2 {
                return costs;
            }
            total += far[to as usize].0;
            costs.push(total.unsigned_abs());
            let mut node = to as usize;
            while node != 0 {
                let edge = far[node].1;
                edges[edge].2 -= 1;
                edges[edge ^ 1].2 += 1;
                node = edges[edge].0;
            }
        }
    }

    #[test]
    fn no_flow_of_the_amount_costs_less() {
        let mut seed = Seed(3);
        for _ in 0..2_000 {
            let nodes = 2 + seed.below(5);
            let arcs: Vec<(u32, u32, u64, u64)> = (0..seed.below(14))
                .map(|_| {
                    let end = |seed: &mut Seed| narrow(seed.below(nodes));
                    let (src, dst) = (end(&mut seed), end(&mut seed));
                    (src, dst, seed.below(4) as u64, seed.below(6) as u64)
                })
                .filter(|arc| arc.0 != arc.1)
                .collect();
            let to = narrow(nodes) - 1;
            let least = least_costs(nodes, &arcs, to);
            let mut ways = CheapestWays::new(nodes, arcs.iter().copied());
            for _ in 0..2 {
                ways.restart();
                let (mut amount, mut cost, mut dearest) = (0, 0, 0);
                while let Some((more, each)) = ways.grow(0, |node| node == to, u64::MAX) {
                    assert!(more > 0 && each >= dearest);
                    dearest = each;
                    for _ in 0..more {
                        amount += 1;
                        cost += each;
                        assert_eq!(cost, least[amount], "{arcs:?}");
                    }
                }
                assert_eq!(amount + 1, least.len(), "{arcs:?}");
            }
        }
    }

    #[test]
    fn ways_that_cost_too_much_are_left_and_ends_are_any_of_several() {
        let arcs = [(0, 1, 5, 1), (1, 3, 2, 1), (0, 2, 3, 4), (2, 3, 9, 4)];
        let mut ways = CheapestWays::new(4, arcs);
        ways.restart();
        assert_eq!(ways.grow(0, |node| node == 3, 8), Some((2, 2)));
        assert_eq!(ways.grow(0, |node| node == 3, 8), None);
        ways.restart();
        let mut either = || ways.grow(0, |node| node == 3 || node == 2, u64::MAX);
        assert_eq!(either(), Some((2, 2)));
        assert_eq!(either(), Some((3, 4)));
        assert_eq!(either(), None);
        assert_eq!(CheapestWays::new(2, []).grow(0, |node| node == 1, 9), None);
    }
}

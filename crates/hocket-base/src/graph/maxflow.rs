//! Maximum flows, many of them on one network, each local where it can be.

use super::Counts;
use crate::id::narrow;

/// More than any flow whose numbers are small enough, see [`FlowNetwork::new`].
pub const UNLIMITED: i128 = i128::MAX / 4;

/// A network on which one flow after another is computed, from nodes with a supply to nodes with a
/// drain.
///
/// Every search starts at the supplies and ends at the first level that has a drain, and only what a
/// flow touched is reset before the next: a flow that stays near its source is cheap on any network.
/// One that does not after 24 phases goes on with wide paths first.
///
/// ```
/// use hocket_base::graph::{FlowNetwork, UNLIMITED};
///
/// // 0 -> 1 -> 3 and 0 -> 2 -> 3; both paths are narrow at one end.
/// let arcs = [(0, 1, 5), (1, 3, 2), (0, 2, 3), (2, 3, 9)];
/// let mut network = FlowNetwork::new(4, arcs);
/// network.set_drain(3, UNLIMITED);
/// assert_eq!(network.flow(&[(0, UNLIMITED)], UNLIMITED), 5);
/// // The least cut: 0 and 1 on one side, 2 and 3 on the other.
/// assert!(network.is_near(1) && !network.is_near(2));
/// ```
///
/// # Complexity
/// O(nodes^2 arcs) for a flow, and in practice a few passes over the arcs that it comes near.
///
/// # Source
/// Dinic, Algorithm for solution of a problem of maximum flow in networks with power estimation,
/// 1970; Edmonds, Karp, Theoretical improvements in algorithmic efficiency for network flow
/// problems, 1972, for the wide paths (scaling).
#[derive(Clone, Debug)]
pub struct FlowNetwork {
    /// Edges of node v are `first[v]..first[v + 1]`.
    first: Vec<u32>,
    head: Vec<u32>,
    /// Position of the same edge seen from its head.
    twin: Vec<u32>,
    base: Vec<i128>,
    residual: Vec<i128>,
    drains: Vec<i128>,
    drain: Vec<i128>,
    touched_edges: Vec<u32>,
    touched_drains: Vec<u32>,
    level: Vec<u32>,
    next: Vec<u32>,
    visited: Vec<u32>,
    path: Vec<u32>,
    /// The widest edge.
    widest: i128,
    /// Edges and drains with less left than this are not used for now.
    least: i128,
}

const UNSEEN: u32 = u32::MAX;
/// Phases of shortest paths before wide paths are preferred.
const PATIENCE: usize = 24;

impl FlowNetwork {
    /// Returns a network of arcs (from, to, capacity), parallel ones allowed; no drains yet.
    ///
    /// Capacities are not negative. All that are summed (every capacity, and every finite supply, drain and
    /// limit) must be below 2^120, and an endless supply or drain [`UNLIMITED`].
    ///
    /// # Panics
    /// If an arc ends at no node, or there are 2^31 arcs or more.
    pub fn new(
        nodes: usize,
        arcs: impl IntoIterator<Item = (u32, u32, i128), IntoIter: Clone>,
    ) -> Self {
        let arcs = arcs.into_iter();
        let mut degrees = Counts::new(nodes);
        for (src, dst, _) in arcs.clone() {
            degrees.add(src as usize);
            degrees.add(dst as usize);
        }
        let mut slots = degrees.into_slots();
        let edges = slots.len();
        let (mut head, mut twin, mut base) = (vec![0; edges], vec![0; edges], vec![0; edges]);
        for (src, dst, capacity) in arcs {
            let (there, back) = (slots.take(src as usize), slots.take(dst as usize));
            (head[there], head[back]) = (dst, src);
            (twin[there], twin[back]) = (narrow(back), narrow(there));
            base[there] = capacity;
        }
        let first = slots.into_offsets();
        Self {
            widest: base.iter().copied().max().unwrap_or(0),
            residual: base.clone(),
            next: first[..nodes].to_vec(),
            first,
            head,
            twin,
            base,
            drains: vec![0; nodes],
            drain: vec![0; nodes],
            touched_edges: Vec::new(),
            touched_drains: Vec::new(),
            level: vec![UNSEEN; nodes],
            visited: Vec::new(),
            path: Vec::new(),
            least: 1,
        }
    }

    /// Returns the number of nodes.
    pub fn node_count(&self) -> usize {
        self.drains.len()
    }

    /// Sets what a node can take up, of all flows to come.
    pub fn set_drain(&mut self, node: u32, amount: i128) {
        self.drains[node as usize] = amount;
        self.drain[node as usize] = amount;
    }

    /// Returns the greatest flow from the supplies given to the drains, but no more than `limit`.
    pub fn flow(&mut self, supplies: &[(u32, i128)], limit: i128) -> i128 {
        self.reset();
        self.least = 1;
        let mut supplies = supplies.to_vec();
        let mut total = 0;
        let mut phases = 0;
        while total < limit {
            if !self.find_levels(&supplies) {
                if self.least == 1 {
                    break;
                }
                self.least = (self.least / 16).max(1);
                continue;
            }
            for (node, left) in &mut supplies {
                let pushed = self.push(*node, (*left).min(limit - total));
                *left -= pushed;
                total += pushed;
            }
            phases += 1;
            if phases == PATIENCE {
                self.least = self.widest.max(1);
            }
        }
        total
    }

    /// After a flow that did not reach its limit: whether a node is on the supplies' side of the
    /// least cut, the one nearest the supplies.
    pub fn is_near(&self, node: usize) -> bool {
        self.level[node] != UNSEEN
    }

    /// Returns the nodes of that side.
    pub fn near_nodes(&self) -> &[u32] {
        &self.visited
    }

    fn reset(&mut self) {
        for edge in self.touched_edges.drain(..) {
            let (edge, twin) = (edge as usize, self.twin[edge as usize] as usize);
            self.residual[edge] = self.base[edge];
            self.residual[twin] = self.base[twin];
        }
        for node in self.touched_drains.drain(..) {
            self.drain[node as usize] = self.drains[node as usize];
        }
    }

    /// Levels by breadth-first search; whether a drain was found.
    fn find_levels(&mut self, supplies: &[(u32, i128)]) -> bool {
        for node in self.visited.drain(..) {
            self.level[node as usize] = UNSEEN;
        }
        for &(node, left) in supplies {
            if left > 0 && self.level[node as usize] == UNSEEN {
                self.see(node, 0);
            }
        }
        let mut last = UNSEEN;
        let mut at = 0;
        while at < self.visited.len() {
            let node = self.visited[at] as usize;
            at += 1;
            let level = self.level[node];
            if self.drain[node] >= self.least {
                last = level;
            }
            if level >= last {
                continue;
            }
            for edge in self.first[node]..self.first[node + 1] {
                let head = self.head[edge as usize];
                if self.residual[edge as usize] >= self.least && self.level[head as usize] == UNSEEN
                {
                    self.see(head, level + 1);
                }
            }
        }
        last != UNSEEN
    }

    fn see(&mut self, node: u32, level: u32) {
        self.level[node as usize] = level;
        self.next[node as usize] = self.first[node as usize];
        self.visited.push(node);
    }

    /// Pushes up to `amount` from a node along rising levels.
    fn push(&mut self, start: u32, amount: i128) -> i128 {
        let mut total = 0;
        let mut node = start as usize;
        self.path.clear();
        while total < amount {
            if self.drain[node] >= self.least {
                total += self.augment(node, amount - total);
                node = self
                    .path
                    .last()
                    .map_or(start, |&edge| self.head[edge as usize])
                    as usize;
                continue;
            }
            match self.advance(node) {
                Some(edge) => {
                    self.path.push(edge);
                    node = self.head[edge as usize] as usize;
                }
                None => {
                    let Some(edge) = self.path.pop() else { break };
                    node = self.head[self.twin[edge as usize] as usize] as usize;
                    self.next[node] += 1;
                }
            }
        }
        total
    }

    /// Returns the next edge of a node that leads a level on.
    fn advance(&mut self, node: usize) -> Option<u32> {
        while self.next[node] < self.first[node + 1] {
            let edge = self.next[node] as usize;
            let level = self.level[self.head[edge] as usize];
            if self.residual[edge] >= self.least && level != UNSEEN && level == self.level[node] + 1
            {
                return Some(self.next[node]);
            }
            self.next[node] += 1;
        }
        None
    }

    /// Sends what fits along the path into a node's drain; shortens the path to before its first
    /// full edge.
    fn augment(&mut self, node: usize, most: i128) -> i128 {
        let tightest = self
            .path
            .iter()
            .map(|&edge| self.residual[edge as usize])
            .min();
        let amount = most
            .min(self.drain[node])
            .min(tightest.unwrap_or(UNLIMITED));
        self.drain[node] -= amount;
        self.touched_drains.push(narrow(node));
        let mut keep = self.path.len();
        for (i, &edge) in self.path.iter().enumerate().rev() {
            self.residual[edge as usize] -= amount;
            self.residual[self.twin[edge as usize] as usize] += amount;
            if self.residual[edge as usize] == 0 {
                keep = i;
            }
        }
        self.touched_edges.extend_from_slice(&self.path);
        self.path.truncate(keep);
        amount
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    /// Ford and Fulkerson on a matrix, one augmenting path after another.
    fn naive(mut capacity: Vec<Vec<u64>>, source: usize, sink: usize) -> u64 {
        fn augment(
            c: &mut [Vec<u64>],
            seen: &mut [bool],
            at: usize,
            sink: usize,
            most: u64,
        ) -> u64 {
            if at == sink {
                return most;
            }
            seen[at] = true;
            for next in 0..c.len() {
                if !seen[next] && c[at][next] > 0 {
                    let pushed = augment(c, seen, next, sink, most.min(c[at][next]));
                    if pushed > 0 {
                        c[at][next] -= pushed;
                        c[next][at] += pushed;
                        return pushed;
                    }
                }
            }
            0
        }
        let mut total = 0;
        loop {
            let mut seen = vec![false; capacity.len()];
            match augment(&mut capacity, &mut seen, source, sink, u64::MAX) {
                0 => return total,
                pushed => total += pushed,
            }
        }
    }

    #[test]
    fn flows_and_cuts_agree_with_augmenting_paths() {
        let mut seed = Seed(3);
        for _ in 0..300 {
            let n = 2 + seed.below(8);
            let mut capacity = vec![vec![0; n]; n];
            let mut arcs = Vec::new();
            for _ in 0..seed.below(4 * n) {
                let (a, b) = (seed.below(n), seed.below(n));
                let amount = seed.below(10) as u64;
                capacity[a][b] += amount;
                arcs.push((narrow(a), narrow(b), i128::from(amount)));
            }
            let mut flows = FlowNetwork::new(n, arcs);
            // One network for all pairs: a flow leaves no trace.
            for source in 0..n {
                for sink in (0..n).filter(|&sink| sink != source) {
                    flows.set_drain(narrow(sink), UNLIMITED);
                    let found = flows.flow(&[(narrow(source), UNLIMITED)], UNLIMITED);
                    assert_eq!(found, i128::from(naive(capacity.clone(), source, sink)));
                    assert_eq!(leaving(&capacity, |node| flows.is_near(node)), found);
                    flows.set_drain(narrow(sink), 0);
                }
            }
        }
    }

    /// Checks that capacity for more than one phase is used by wide paths.
    #[test]
    fn long_searches_agree_too() {
        let mut seed = Seed(4);
        for _ in 0..20 {
            let n = 60;
            let mut capacity = vec![vec![0; n]; n];
            let mut arcs = Vec::new();
            // A long band, so that there are many levels and many phases.
            for (a, row) in capacity.iter_mut().enumerate() {
                for b in (a + 1..n.min(a + 5)).chain(a.saturating_sub(4)..a) {
                    let amount = 1 + (seed.next_u64() >> (40 + seed.below(20)));
                    row[b] += amount;
                    arcs.push((narrow(a), narrow(b), i128::from(amount)));
                }
            }
            let mut flows = FlowNetwork::new(n, arcs);
            flows.set_drain(59, UNLIMITED);
            let found = flows.flow(&[(0, UNLIMITED)], UNLIMITED);
            assert_eq!(found, leaving(&capacity, |node| flows.is_near(node)));
            assert!(flows.is_near(0) && !flows.is_near(59));
        }
    }

    /// Supplies and drains of several nodes are those of one source and one sink beside them.
    #[test]
    fn several_supplies_and_drains_are_as_a_source_and_a_sink() {
        let mut seed = Seed(8);
        for _ in 0..300 {
            let n = 2 + seed.below(6);
            let mut capacity = vec![vec![0; n + 2]; n + 2];
            let mut arcs = Vec::new();
            for _ in 0..3 * n {
                let (a, b, amount) = (seed.below(n), seed.below(n), seed.below(10) as u64);
                capacity[a][b] += amount;
                arcs.push((narrow(a), narrow(b), i128::from(amount)));
            }
            let mut flows = FlowNetwork::new(n, arcs);
            let mut supplies = Vec::new();
            let (source, sink) = (n, n + 1);
            let bounds: Vec<[u64; 2]> = (0..n)
                .map(|_| [seed.below(9) as u64, seed.below(9) as u64])
                .collect();
            for (node, &[supply, drain]) in bounds.iter().enumerate() {
                capacity[source][node] = supply;
                capacity[node][sink] = drain;
                supplies.push((narrow(node), i128::from(supply)));
                flows.set_drain(narrow(node), i128::from(drain));
            }
            let most = i128::from(naive(capacity, source, sink));
            assert_eq!(flows.flow(&supplies, UNLIMITED), most);
            assert_eq!(flows.flow(&supplies, most / 2), most / 2);
        }
    }

    /// Capacity from the nodes on one side to the others.
    fn leaving(capacity: &[Vec<u64>], near: impl Fn(usize) -> bool) -> i128 {
        let n = capacity.len();
        let crossing = (0..n).flat_map(|a| (0..n).map(move |b| (a, b)));
        let crossing = crossing.filter(|&(a, b)| near(a) && !near(b));
        crossing.map(|(a, b)| i128::from(capacity[a][b])).sum()
    }
}

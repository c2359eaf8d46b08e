//! Maximum flows, many of them on one network, each local where it can be.

use super::network::Network;

/// More than any flow of a network that [`FlowNetwork::fits`].
pub(super) const UNLIMITED: i128 = i128::MAX / 4;

/// A network on which one flow after another is computed, from nodes with a supply to nodes with a
/// drain.
///
/// Every search starts at the supplies and ends at the first level that has a drain, and only what a
/// flow touched is reset before the next: a flow that stays near its source is cheap on any network.
/// One that does not after [`PATIENCE`] phases goes on with wide paths first.
///
/// # Source
/// Dinic, Algorithm for solution of a problem of maximum flow in networks with power estimation,
/// 1970; Edmonds, Karp, Theoretical improvements in algorithmic efficiency for network flow
/// problems, 1972, for the wide paths (scaling).
pub(super) struct FlowNetwork {
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
const PATIENCE: usize = 24;

impl FlowNetwork {
    /// A network's arcs with their capacity times `scale` (divided by `unit`); no drains yet.
    pub fn new(network: &Network, unit: u64, scale: u128) -> Self {
        let nodes = network.node_count();
        let mut first = vec![0u32; nodes + 1];
        for arc in network.arcs() {
            first[arc.src as usize + 1] += 1;
            first[arc.dst as usize + 1] += 1;
        }
        for i in 0..nodes {
            first[i + 1] += first[i];
        }
        let mut slot = first.clone();
        let mut take = |node: u32| {
            slot[node as usize] += 1;
            slot[node as usize] - 1
        };
        let edges = first[nodes] as usize;
        let (mut head, mut twin, mut base) = (vec![0; edges], vec![0; edges], vec![0; edges]);
        for arc in network.arcs() {
            let (there, back) = (take(arc.src), take(arc.dst));
            (head[there as usize], head[back as usize]) = (arc.dst, arc.src);
            (twin[there as usize], twin[back as usize]) = (back, there);
            base[there as usize] = (u128::from(arc.capacity / unit) * scale) as i128;
        }
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

    /// Whether flows of `total` times a bandwidth, and of `total` times every capacity, can be summed
    /// without overflow.
    pub fn fits(network: &Network, unit: u64, total: u128) -> bool {
        let capacities = network
            .arcs()
            .iter()
            .map(|arc| u128::from(arc.capacity / unit));
        let most = capacities.sum::<u128>().checked_mul(total);
        most.is_some_and(|most| most < 1 << 120)
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.drains.len()
    }

    /// Sets what a node can take up.
    pub fn set_drain(&mut self, node: u32, amount: i128) {
        self.drains[node as usize] = amount;
        self.drain[node as usize] = amount;
    }

    /// The greatest flow from the supplies given to the drains, but no more than `limit`.
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

    /// The nodes of that side.
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

    /// The next edge of a node that leads a level on.
    fn advance(&mut self, node: usize) -> Option<u32> {
        while self.next[node] < self.first[node + 1] {
            let edge = self.next[node] as usize;
            let level = self.level[self.head[edge] as usize];
            if self.residual[edge] >= self.least && level != UNSEEN && level == self.level[node] + 1
            {
                return Some(edge as u32);
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
        self.touched_drains.push(node as u32);
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
    use crate::bound::Fidelity;
    use crate::id::DeviceId;
    use crate::topology::TopologyBuilder;
    use crate::units::{Bandwidth, Seed, Time};

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
            let mut builder = TopologyBuilder::new("random");
            builder.npus(n);
            let mut capacity = vec![vec![0; n]; n];
            for _ in 0..seed.below(4 * n) {
                let (a, b) = (seed.below(n), seed.below(n));
                if a != b {
                    let bytes = 1 + seed.below(9) as u64;
                    capacity[a][b] += bytes;
                    let bandwidth = Bandwidth::from_bytes_per_second(bytes).expect("positive");
                    builder.link(DeviceId::from(a), DeviceId::from(b), bandwidth, Time::ZERO);
                }
            }
            let network = Network::new(&builder.finish().expect("valid"), Fidelity::Link);
            let mut flows = FlowNetwork::new(&network, 1, 1);
            // One network for all pairs: a flow leaves no trace.
            for source in 0..n {
                for sink in (0..n).filter(|&sink| sink != source) {
                    flows.set_drain(sink as u32, UNLIMITED);
                    let found = flows.flow(&[(source as u32, UNLIMITED)], UNLIMITED);
                    assert_eq!(found, i128::from(naive(capacity.clone(), source, sink)));
                    let near = |node: usize| flows.is_near(node);
                    let rows = (0..n).filter(|&a| near(a));
                    let leave = |a: usize| {
                        (0..n)
                            .filter(|&b| !near(b))
                            .map(|b| capacity[a][b])
                            .sum::<u64>()
                    };
                    assert_eq!(i128::from(rows.map(leave).sum::<u64>()), found);
                    flows.set_drain(sink as u32, 0);
                }
            }
        }
    }
}

//! Maximum flow from one side of the NPUs to the other, through switches.

use std::collections::{BTreeMap, VecDeque};

use super::super::super::{DeviceKind, Topology};

const SOURCE: usize = 0;
const SINK: usize = 1;

/// Links summed up between NPUs and switches; a limited switch is two nodes joined by its limit.
pub(super) struct SplitFlow {
    npus: usize,
    /// Between NPUs.
    direct: Vec<(usize, usize, u128)>,
    /// From an NPU to a node.
    up: Vec<(usize, usize, u128)>,
    /// From a node to an NPU.
    down: Vec<(usize, usize, u128)>,
    /// Between nodes, from 2 on.
    inner: Vec<(usize, usize, u128)>,
    nodes: usize,
}

impl SplitFlow {
    pub fn new(topology: &Topology) -> Self {
        let npus = topology.npu_count();
        let mut nodes = 2;
        let mut inner = Vec::new();
        let ends: Vec<(usize, usize)> = topology
            .devices()
            .iter()
            .map(|device| match (device.kind, device.limit) {
                (DeviceKind::Npu, _) => (0, 0),
                (DeviceKind::Switch, None) => {
                    nodes += 1;
                    (nodes - 1, nodes - 1)
                }
                (DeviceKind::Switch, Some(limit)) => {
                    nodes += 2;
                    inner.push((nodes - 2, nodes - 1, u128::from(limit.bytes_per_second())));
                    (nodes - 2, nodes - 1)
                }
            })
            .collect();
        let (mut direct, mut up, mut down) = (Vec::new(), Vec::new(), Vec::new());
        for link in topology.links() {
            let (src, dst) = (link.src.index(), link.dst.index());
            let bandwidth = u128::from(link.bandwidth.bytes_per_second());
            match (topology.is_npu(link.src), topology.is_npu(link.dst)) {
                (true, true) => direct.push((src, dst, bandwidth)),
                (true, false) => up.push((src, ends[dst].0, bandwidth)),
                (false, true) => down.push((ends[src].1, dst, bandwidth)),
                (false, false) => inner.push((ends[src].1, ends[dst].0, bandwidth)),
            }
        }
        Self {
            npus,
            direct,
            up,
            down,
            inner,
            nodes,
        }
    }

    /// The lesser of the maximum flows from the `true` side to the `false` one and back.
    pub fn least(&self, side: &[bool]) -> u128 {
        let other: Vec<bool> = side.iter().map(|&on| !on).collect();
        self.from(side).min(self.from(&other))
    }

    fn from(&self, side: &[bool]) -> u128 {
        debug_assert_eq!(side.len(), self.npus);
        let crossing = self
            .direct
            .iter()
            .filter(|(src, dst, _)| side[*src] && !side[*dst]);
        let direct: u128 = crossing.map(|(_, _, bandwidth)| bandwidth).sum();
        if self.nodes == 2 {
            return direct;
        }
        let mut edges: BTreeMap<(usize, usize), u128> = BTreeMap::new();
        let up = self
            .up
            .iter()
            .filter(|(npu, ..)| side[*npu])
            .map(|&(_, node, b)| (SOURCE, node, b));
        let down = self
            .down
            .iter()
            .filter(|(_, npu, _)| !side[*npu])
            .map(|&(node, _, b)| (node, SINK, b));
        for (src, dst, bandwidth) in up.chain(down).chain(self.inner.iter().copied()) {
            *edges.entry((src, dst)).or_default() += bandwidth;
        }
        direct + Residual::new(self.nodes, edges).maximum()
    }
}

/// A residual network.
struct Residual {
    /// End and capacity left; edge `e ^ 1` is the reverse of `e`.
    edges: Vec<(usize, u128)>,
    out: Vec<Vec<usize>>,
}

impl Residual {
    fn new(nodes: usize, capacities: BTreeMap<(usize, usize), u128>) -> Self {
        let mut residual = Self {
            edges: Vec::with_capacity(2 * capacities.len()),
            out: vec![Vec::new(); nodes],
        };
        for ((src, dst), capacity) in capacities {
            residual.out[src].push(residual.edges.len());
            residual.edges.push((dst, capacity));
            residual.out[dst].push(residual.edges.len());
            residual.edges.push((src, 0));
        }
        residual
    }

    /// # Source
    /// Dinic, 1970: shortest augmenting paths, level by level.
    fn maximum(&mut self) -> u128 {
        let mut total = 0;
        loop {
            let level = self.levels();
            if level[SINK] == usize::MAX {
                return total;
            }
            let mut next = vec![0; self.out.len()];
            while let Some(pushed) = self.augment(&level, &mut next) {
                total += pushed;
            }
        }
    }

    fn levels(&self) -> Vec<usize> {
        let mut level = vec![usize::MAX; self.out.len()];
        level[SOURCE] = 0;
        let mut queue = VecDeque::from([SOURCE]);
        while let Some(node) = queue.pop_front() {
            for &edge in &self.out[node] {
                let (end, left) = self.edges[edge];
                if left > 0 && level[end] == usize::MAX {
                    level[end] = level[node] + 1;
                    queue.push_back(end);
                }
            }
        }
        level
    }

    /// Fills one path up the levels; `next` skips edges found dead before.
    fn augment(&mut self, level: &[usize], next: &mut [usize]) -> Option<u128> {
        let mut path: Vec<usize> = Vec::new();
        let mut node = SOURCE;
        while node != SINK {
            match self.out[node].get(next[node]) {
                Some(&edge) => {
                    let (end, left) = self.edges[edge];
                    if left > 0 && level[end] == level[node] + 1 {
                        path.push(edge);
                        node = end;
                    } else {
                        next[node] += 1;
                    }
                }
                None => {
                    let edge = path.pop()?;
                    node = self.edges[edge ^ 1].0;
                    next[node] += 1;
                }
            }
        }
        let pushed = path.iter().map(|&edge| self.edges[edge].1).min()?;
        for edge in path {
            self.edges[edge].1 -= pushed;
            self.edges[edge ^ 1].1 += pushed;
        }
        Some(pushed)
    }
}

//! The cheapest way from one node to another, where what is left to pay is known to be at least so much.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::bound::network::ArcNetwork;
use crate::units::whole;

/// A search whose buffers are kept for the next one.
///
/// # Source
/// Hart, Nilsson, Raphael, A formal basis for the heuristic determination of minimum cost paths, 1968 (A*).
#[derive(Clone, Debug)]
pub(super) struct CheapestPath {
    /// What it costs to get to each node, and over which arc.
    reached: Vec<(u64, u32)>,
    touched: Vec<u32>,
    /// By the cost of the whole way at least; of equals, the one that is farthest on.
    open: BinaryHeap<(Reverse<u64>, u64, Reverse<u32>)>,
    straight: Vec<u32>,
}

const NOT_REACHED: (u64, u32) = (u64::MAX, u32::MAX);

impl CheapestPath {
    /// For networks of so many nodes.
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            reached: vec![NOT_REACHED; nodes],
            touched: Vec::new(),
            open: BinaryHeap::new(),
            straight: Vec::new(),
        }
    }

    /// Puts the arcs of the cheapest way into `way`, or of one that costs no more than the share `slack` over it: the
    /// way that is there, if that is so cheap.
    ///
    /// From each node at least `least` is left to pay, and no arc takes more off that than its price. There is a way.
    pub(crate) fn find(
        &mut self,
        network: &ArcNetwork,
        prices: &[u64],
        least: &[u64],
        slack: f64,
        (src, dst): (u32, u32),
        way: &mut Vec<u32>,
    ) {
        let arcs = network.arcs();
        let enough = |cost: u64| whole((cost as f64 / (1.0 + slack)).ceil());
        let known = match way.is_empty() {
            true => u64::MAX,
            false => way.iter().map(|&arc| prices[arc as usize]).sum(),
        };
        let mut bound = enough(known);
        if way.is_empty() || bound > least[src as usize] {
            let straight = straight(network, prices, least, (src, dst), &mut self.straight);
            if straight < known {
                way.clone_from(&self.straight);
                bound = enough(straight);
            }
        }
        if bound <= least[src as usize] {
            return;
        }
        let mut found = false;
        self.reach(src, 0, u32::MAX, least);
        while let Some((Reverse(_), cost, Reverse(node))) = self.open.pop() {
            if node == dst {
                break;
            }
            if cost > self.reached[node as usize].0 {
                continue;
            }
            for &arc in network.arcs_out(node) {
                let end = arcs[arc as usize].dst;
                let cost = cost + prices[arc as usize];
                let all = cost.saturating_add(least[end as usize]);
                if all < bound && cost < self.reached[end as usize].0 {
                    self.reach(end, cost, arc, least);
                    if end == dst {
                        (bound, found) = (cost, true);
                    }
                }
            }
        }
        if found {
            self.trace(network, (src, dst), way);
        }
        self.open.clear();
        for node in self.touched.drain(..) {
            self.reached[node as usize] = NOT_REACHED;
        }
    }

    /// The arcs by which a node was reached.
    fn trace(&self, network: &ArcNetwork, (src, dst): (u32, u32), way: &mut Vec<u32>) {
        way.clear();
        let mut at = dst;
        while at != src {
            let arc = self.reached[at as usize].1;
            way.push(arc);
            at = network.arcs()[arc as usize].src;
        }
        way.reverse();
    }

    fn reach(&mut self, node: u32, cost: u64, arc: u32, least: &[u64]) {
        if self.reached[node as usize] == NOT_REACHED {
            self.touched.push(node);
        }
        self.reached[node as usize] = (cost, arc);
        self.open
            .push((Reverse(cost + least[node as usize]), cost, Reverse(node)));
    }
}

/// Returns a way each of whose arcs comes nearer by `least`, the cheapest at each node, and its cost.
fn straight(
    network: &ArcNetwork,
    prices: &[u64],
    least: &[u64],
    (src, dst): (u32, u32),
    way: &mut Vec<u32>,
) -> u64 {
    let arcs = network.arcs();
    way.clear();
    let mut cost = 0;
    let mut at = src;
    while at != dst {
        let nearer = network.arcs_out(at).iter().copied();
        let end = |arc: u32| arcs[arc as usize].dst as usize;
        let nearer = nearer.filter(|&arc| least[end(arc)] < least[at as usize]);
        let arc = nearer
            .min_by_key(|&arc| prices[arc as usize] + least[end(arc)])
            .expect("an arc is as cheap as the cheapest way was");
        cost += prices[arc as usize];
        way.push(arc);
        at = arcs[arc as usize].dst;
    }
    cost
}

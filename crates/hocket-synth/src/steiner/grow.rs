//! One tree by the prices of arcs: again and again the cheapest way from the tree to an NPU that is not in it yet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Hop, NONE, Relays};
use crate::bound::network::ArcNetwork;

/// Of which arcs trees are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    /// Data flow from the root.
    Copies,
    /// Data flow to the root.
    Sums,
    /// Data flow both ways.
    Both,
}

/// What arcs cost one more tree, by how full they are.
pub(super) struct Prices<'a> {
    pub capacity: &'a [f64],
    /// For each arc the one that leads back.
    pub twins: &'a [u32],
    /// Bytes that all trees but this send over each arc.
    pub loads: Vec<f64>,
    /// Bytes of this tree.
    pub bytes: f64,
    /// How long the fullest arc takes [s].
    pub fullest: f64,
    /// How steeply prices rise.
    pub power: i32,
    /// By arc, computed when it is asked for; that of one that leads back is apart.
    price: Vec<f64>,
    /// By arc, for what the price was computed; 0 if it has changed.
    known_for: Vec<u64>,
    basis: u64,
    /// Bytes, fullest and power of that.
    of: (f64, f64, i32),
    /// How often the tree uses each arc.
    used: Vec<f64>,
    touched: Vec<u32>,
}

impl<'a> Prices<'a> {
    pub(super) fn new(capacity: &'a [f64], twins: &'a [u32]) -> Self {
        Self {
            capacity,
            twins,
            loads: vec![0.0; capacity.len()],
            bytes: 0.0,
            fullest: 0.0,
            power: 1,
            price: vec![0.0; capacity.len()],
            known_for: vec![0; capacity.len()],
            basis: 0,
            of: (0.0, 0.0, 0),
            used: vec![0.0; capacity.len()],
            touched: Vec::new(),
        }
    }

    /// Begins the prices for a tree that uses no arc yet.
    pub(super) fn begin(&mut self) {
        let of = (self.bytes, self.fullest, self.power);
        if self.of != of {
            self.basis += 1;
            self.of = of;
        }
        self.restart();
    }

    /// Adds the bytes of a tree to an arc.
    pub(super) fn add(&mut self, arc: u32, bytes: f64) {
        self.loads[arc as usize] += bytes;
        self.known_for[arc as usize] = 0;
    }

    fn get(&mut self, arc: u32) -> f64 {
        let arc = arc as usize;
        if self.known_for[arc] != self.basis {
            let bytes = self.loads[arc].max(0.0) + self.bytes * (1.0 + self.used[arc]);
            let full = bytes / (self.capacity[arc] * self.fullest);
            self.price[arc] = (full.powi(self.power) + 1e-9) / self.capacity[arc];
            self.known_for[arc] = self.basis;
        }
        self.price[arc]
    }

    /// Forgets which arcs were used.
    fn restart(&mut self) {
        while let Some(arc) = self.touched.pop() {
            self.used[arc as usize] = 0.0;
            self.known_for[arc as usize] = 0;
        }
    }

    /// Uses an arc: the next use is dearer.
    fn use_once(&mut self, arc: u32, sense: Sense) {
        let back = (sense == Sense::Both).then(|| self.twins[arc as usize]);
        for arc in std::iter::once(arc).chain(back) {
            self.used[arc as usize] += 1.0;
            self.known_for[arc as usize] = 0;
            self.touched.push(arc);
        }
    }

    fn both(&mut self, arc: u32, sense: Sense) -> f64 {
        let own = self.get(arc);
        match sense {
            Sense::Both => own + self.get(self.twins[arc as usize]),
            Sense::Copies | Sense::Sums => own,
        }
    }

    /// Returns what hops cost, each use of an arc dearer than the one before.
    pub(super) fn cost(&mut self, hops: &[Hop], sense: Sense) -> f64 {
        let mut cost = 0.0;
        for &arc in hops.iter().flat_map(|hop| &hop.arcs) {
            cost += self.both(arc, sense);
            self.use_once(arc, sense);
        }
        self.restart();
        cost
    }
}

/// Grows trees; keeps its buffers.
pub(super) struct Grower<'a> {
    /// As it is, and turned round; arcs have the same positions.
    networks: &'a [ArcNetwork; 2],
    relays: Relays,
    /// Whether there are nodes that pass data on but do not branch. A tree may use an arc several times then, each time at
    /// a higher price, so that ways are searched anew.
    is_fresh: bool,
    /// What a second of latency costs, beside the prices.
    latency: Vec<f64>,
    /// By NPU, its node group if only NPUs of groups with an end may relay; empty if all may.
    group: Vec<u32>,
    /// By node group, whether it has an end.
    has_end: Vec<bool>,
    label: Vec<f64>,
    via: Vec<u32>,
    in_tree: Vec<bool>,
    arrival: Vec<f64>,
    is_end: Vec<bool>,
    is_needed: Vec<bool>,
    /// Costs by their bits, which have the order of numbers of at least 0.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    /// Arcs that were looked at since somebody asked.
    pub(super) work: u64,
}

impl<'a> Grower<'a> {
    /// `latency` is what each arc costs beside its price, and `group` the node group of each NPU, if others may not relay.
    pub(super) fn new(
        networks: &'a [ArcNetwork; 2],
        relays: Relays,
        latency: Vec<f64>,
        group: &[u32],
    ) -> Self {
        let nodes = networks[0].node_count();
        Self {
            networks,
            relays,
            is_fresh: relays != Relays::Sum || networks[0].npus().count() < nodes,
            latency,
            has_end: vec![false; nodes],
            group: group.to_vec(),
            label: vec![f64::INFINITY; nodes],
            via: vec![NONE; nodes],
            in_tree: vec![false; nodes],
            arrival: vec![0.0; nodes],
            is_end: vec![false; nodes],
            is_needed: vec![false; nodes],
            queue: BinaryHeap::new(),
            work: 0,
        }
    }

    /// Returns a tree from a root to all `ends`; `None` if no arcs lead to one of them.
    pub(super) fn grow(
        &mut self,
        sense: Sense,
        root: u32,
        ends: &[u32],
        prices: &mut Prices<'_>,
    ) -> Option<Vec<Hop>> {
        let networks = self.networks;
        let network = &networks[usize::from(sense == Sense::Sums)];
        self.is_end.fill(false);
        self.is_needed.fill(false);
        self.in_tree.fill(false);
        for &end in ends {
            self.is_end[end as usize] = true;
            self.is_needed[end as usize] = true;
        }
        self.is_end[root as usize] = true;
        self.is_needed[root as usize] = false;
        self.has_end.fill(false);
        for &end in ends.iter().chain([&root]) {
            if let Some(&group) = self.group.get(end as usize) {
                self.has_end[group as usize] = true;
            }
        }
        let mut left = self.is_needed.iter().filter(|needed| **needed).count();
        self.in_tree[root as usize] = true;
        self.arrival[root as usize] = 0.0;
        self.start(network);
        let mut hops = Vec::new();
        while left > 0 {
            let Some(Reverse((cost, node))) = self.queue.pop() else {
                prices.restart();
                if self.group.is_empty() {
                    return None;
                }
                let group = std::mem::take(&mut self.group); // others have to relay
                let made = self.grow(sense, root, ends, prices);
                if made.is_none() {
                    self.group = group;
                }
                return made;
            };
            let cost = f64::from_bits(cost);
            let v = node as usize;
            if cost > self.label[v] {
                continue;
            }
            if self.is_needed[v] && !self.in_tree[v] {
                left -= self.take(network, sense, node, &mut hops, prices);
                if self.is_fresh {
                    self.start(network);
                }
                continue;
            }
            self.work += network.arcs_out(node).len() as u64;
            for &arc in network.arcs_out(node) {
                let next = network.arcs()[arc as usize].dst;
                let u = next as usize;
                let is_barred = self.in_tree[u]
                    || self.is_far(u)
                    || (sense == Sense::Both && prices.twins[arc as usize] == NONE)
                    || (self.relays == Relays::None && network.is_npu(next) && !self.is_end[u]);
                if is_barred {
                    continue;
                }
                let there = cost + prices.both(arc, sense) + self.latency[arc as usize];
                if there < self.label[u] {
                    self.label[u] = there;
                    self.via[u] = arc;
                    self.queue.push(Reverse((there.to_bits(), next)));
                }
            }
        }
        prices.restart();
        Some(hops)
    }

    /// Returns whether an NPU may not relay because its node group has no end.
    fn is_far(&self, npu: usize) -> bool {
        let group = self.group.get(npu);
        group.is_some_and(|&group| !self.has_end[group as usize])
    }

    /// Returns whether a tree may branch at an NPU; elsewhere data only pass.
    fn may_branch(&self, npu: usize) -> bool {
        self.relays == Relays::Sum || self.is_end[npu]
    }

    /// Begins anew, from all nodes of the tree.
    fn start(&mut self, network: &ArcNetwork) {
        self.queue.clear();
        self.label.fill(f64::INFINITY);
        for npu in network.npus() {
            let v = npu.index();
            if self.in_tree[v] {
                self.label[v] = self.arrival[v];
                self.queue.push(Reverse((self.arrival[v].to_bits(), npu.0)));
            }
        }
    }

    /// Takes the way that leads to a node into the tree; returns how many ends are on it.
    fn take(
        &mut self,
        network: &ArcNetwork,
        sense: Sense,
        node: u32,
        hops: &mut Vec<Hop>,
        prices: &mut Prices<'_>,
    ) -> usize {
        let mut way = Vec::new();
        let mut at = node;
        while !self.in_tree[at as usize] {
            let arc = self.via[at as usize];
            way.push(arc);
            at = network.arcs()[arc as usize].src;
        }
        let (mut near, mut time) = (at, self.arrival[at as usize]);
        let mut arcs = Vec::new();
        let mut found = 0;
        for arc in way.into_iter().rev() {
            arcs.push(arc);
            time += self.latency[arc as usize];
            if self.is_fresh {
                prices.use_once(arc, sense);
            }
            let next = network.arcs()[arc as usize].dst;
            let v = next as usize;
            if !network.is_npu(next) || !self.may_branch(v) {
                continue;
            }
            hops.push(Hop {
                near,
                far: next,
                arcs: std::mem::take(&mut arcs),
            });
            near = next;
            self.in_tree[v] = true;
            self.arrival[v] = time;
            found += usize::from(std::mem::take(&mut self.is_needed[v]));
            self.label[v] = time;
            self.queue.push(Reverse((time.to_bits(), next)));
        }
        found
    }
}

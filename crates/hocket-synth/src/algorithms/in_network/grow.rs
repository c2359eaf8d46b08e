//! One tree over all participants, whose inner nodes sum and multicast: near the cheapest, as links are loaded.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use super::serves;
use super::tree::{Edge, Tree};
use crate::collective::Collective;
use crate::id::{DeviceId, LinkId};
use crate::topology::Topology;

/// Returns the first tree, before any link is loaded; `None` where links do not join the participants both ways.
pub(super) fn tree(topology: &Topology, collective: &Collective) -> Option<Tree> {
    Grower::new(topology, collective).next()
}

/// Grows tree after tree, each over the links that those before have loaded least.
pub(super) struct Grower<'a> {
    topology: &'a Topology,
    collective: &'a Collective,
    is_member: Vec<bool>,
    /// Where trees may branch: participants, and switches that can.
    branches: Vec<bool>,
    /// By link, and by device with a limit or a rate, the trees so far.
    links: Vec<u32>,
    devices: Vec<u32>,
    fastest: f64,
}

/// A way to a device that is not in the tree: what it costs, and its last link.
#[derive(Clone, Copy)]
struct Reached {
    cost: f64,
    over: Option<LinkId>,
}

/// Costs are finite and not negative, so that their bits order as they do.
fn key(cost: f64) -> u64 {
    cost.to_bits()
}

impl<'a> Grower<'a> {
    pub(crate) fn new(topology: &'a Topology, collective: &'a Collective) -> Self {
        let mut is_member = vec![false; topology.device_count()];
        for npu in collective.npus() {
            is_member[npu.index()] = true;
        }
        let kind = collective.kind();
        let devices = topology.devices().iter().zip(&is_member);
        let branches = devices.map(|(device, &is_member)| {
            is_member || device.offload.is_some_and(|can| serves(&can, kind))
        });
        let rates = topology
            .links()
            .iter()
            .map(|link| link.bandwidth.bytes_per_second());
        Self {
            topology,
            collective,
            branches: branches.collect(),
            is_member,
            links: vec![0; topology.links().len()],
            devices: vec![0; topology.device_count()],
            fastest: rates.max().unwrap_or(1) as f64,
        }
    }

    /// Returns what one tree more costs where so many go already: by how much it raises the sum over all links of the
    /// fourth power of (trees / bandwidth), which is least where links are loaded alike.
    fn cost(&self, bandwidth: u64, trees: u32) -> f64 {
        let slowness = self.fastest / bandwidth as f64;
        slowness * (slowness * (f64::from(trees) + 1.0)).powi(3)
    }

    fn link_cost(&self, id: LinkId) -> f64 {
        let bandwidth = self.topology.link(id).bandwidth.bytes_per_second();
        self.cost(bandwidth, self.links[id.index()])
    }

    /// Returns what it costs to pass a device with a limit, or to end at a switch with a rate.
    fn device_cost(&self, id: DeviceId) -> f64 {
        let device = self.topology.device(id);
        let rate = device.offload.and_then(|can| can.rate);
        let least = device.limit.into_iter().chain(rate).min();
        let cost = |rate: crate::units::Bandwidth| {
            self.cost(rate.bytes_per_second(), self.devices[id.index()])
        };
        least.map_or(0.0, cost)
    }

    /// Returns the cheapest link from one device to another.
    fn cheapest(&self, from: DeviceId, to: DeviceId) -> Option<LinkId> {
        let links = self.topology.links_from_to(from, to).iter().copied();
        links.min_by(|&a, &b| self.link_cost(a).total_cmp(&self.link_cost(b)))
    }

    /// The participant nearest to the tree is joined to it, again and again.
    ///
    /// # Source
    /// Takahashi, Matsuyama, An approximate solution for the Steiner problem in graphs, 1980: at most twice the
    /// cheapest.
    fn grow(&mut self) -> Option<Tree> {
        let topology = self.topology;
        let first = self.collective.npus()[0].device();
        let mut reached: Vec<Option<Reached>> = vec![None; topology.device_count()];
        let mut is_in = vec![false; topology.device_count()];
        let mut queue = BinaryHeap::new();
        let mut edges: Vec<Edge> = Vec::new();
        is_in[first.index()] = true;
        let root = Reached {
            cost: 0.0,
            over: None,
        };
        reached[first.index()] = Some(root);
        queue.push((Reverse(key(0.0)), Reverse(first)));
        let mut missing = self.collective.npus().len() - 1;
        while missing > 0 {
            let (Reverse(bits), Reverse(device)) = queue.pop()?;
            let cost = f64::from_bits(bits);
            if reached[device.index()].is_none_or(|it| it.cost < cost) {
                continue;
            }
            if self.is_member[device.index()] && !is_in[device.index()] {
                for joined in self.join(device, &reached, &mut is_in, &mut edges) {
                    missing -= usize::from(self.is_member[joined.index()]);
                    reached[joined.index()] = Some(root);
                    queue.push((Reverse(key(0.0)), Reverse(joined)));
                }
                continue;
            }
            let mut before = None;
            for &id in topology.out_links(device) {
                let to = topology.link(id).dst;
                if is_in[to.index()] || before.replace(to) == Some(to) {
                    continue;
                }
                let (Some(there), Some(back)) =
                    (self.cheapest(device, to), self.cheapest(to, device))
                else {
                    continue;
                };
                let hop = self.link_cost(there) + self.link_cost(back) + self.device_cost(to);
                let cost = cost + hop;
                if reached[to.index()].is_none_or(|it| cost < it.cost) {
                    reached[to.index()] = Some(Reached {
                        cost,
                        over: Some(there),
                    });
                    queue.push((Reverse(key(cost)), Reverse(to)));
                }
            }
        }
        Some(self.finish(edges))
    }

    /// Adds the way from the tree to a device; gives the devices on it at which the tree may branch from now on.
    fn join(
        &self,
        device: DeviceId,
        reached: &[Option<Reached>],
        is_in: &mut [bool],
        edges: &mut Vec<Edge>,
    ) -> Vec<DeviceId> {
        let mut joined = vec![device];
        let mut end = device;
        let mut there = Vec::new();
        let mut at = device;
        while let Some(over) = reached[at.index()].and_then(|it| it.over) {
            there.push(over);
            at = self.topology.link(over).src;
            if self.branches[at.index()] || is_in[at.index()] {
                there.reverse();
                edges.push(self.edge(at, end, std::mem::take(&mut there)));
                if is_in[at.index()] {
                    break;
                }
                joined.push(at);
                end = at;
            }
        }
        for &device in &joined {
            is_in[device.index()] = true;
        }
        joined
    }

    fn edge(&self, from: DeviceId, to: DeviceId, there: Vec<LinkId>) -> Edge {
        let link = |id: &LinkId| self.topology.link(*id);
        let back = there.iter().rev().map(link);
        let back = back
            .filter_map(|hop| self.cheapest(hop.dst, hop.src))
            .collect();
        Edge {
            ends: [from, to],
            ways: [there, back],
        }
    }

    /// Switches at which the tree does not branch are passed; its load is noted, and its root chosen.
    fn finish(&mut self, mut edges: Vec<Edge>) -> Tree {
        let mut degree: HashMap<DeviceId, u32> = HashMap::new();
        for end in edges.iter().flat_map(|edge| edge.ends) {
            *degree.entry(end).or_default() += 1;
        }
        let mut passed: Vec<DeviceId> = degree.keys().copied().collect();
        passed.retain(|&device| !self.is_member[device.index()] && degree[&device] == 2);
        passed.sort_unstable();
        for device in passed {
            let at = |edges: &[Edge]| edges.iter().position(|edge| edge.ends.contains(&device));
            if let Some(first) = at(&edges) {
                let first = edges.swap_remove(first).ending_at(device);
                if let Some(second) = at(&edges) {
                    let second = edges.swap_remove(second).starting_at(device);
                    edges.push(first.then(second));
                }
            }
        }
        for edge in &mut edges {
            if edge.ends[0] > edge.ends[1] {
                *edge = edge.clone().turned();
            }
        }
        edges.sort_unstable_by_key(|edge| edge.ends);
        for link in edges.iter().flat_map(|edge| edge.ways.iter().flatten()) {
            let device = self.topology.link(*link).dst;
            for trees in [
                &mut self.links[link.index()],
                &mut self.devices[device.index()],
            ] {
                *trees = trees.saturating_add(1);
            }
        }
        Tree::new(self.topology, edges)
    }

    /// Counts the load of each link of a tree, and of the devices there, twice from now on.
    pub(crate) fn double(&mut self, tree: &Tree) {
        let links = tree
            .edges
            .iter()
            .flat_map(|edge| edge.ways.iter().flatten());
        let links: BTreeSet<LinkId> = links.copied().collect();
        let devices = links.iter().map(|&link| self.topology.link(link).dst);
        for device in devices.collect::<BTreeSet<DeviceId>>() {
            let trees = &mut self.devices[device.index()];
            *trees = trees.saturating_mul(2);
        }
        for link in links {
            let trees = &mut self.links[link.index()];
            *trees = trees.saturating_mul(2);
        }
    }
}

impl Iterator for Grower<'_> {
    type Item = Tree;

    fn next(&mut self) -> Option<Tree> {
        self.grow()
    }
}

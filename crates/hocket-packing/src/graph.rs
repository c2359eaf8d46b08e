//! Devices and links as nodes and arcs, with capacities in whole trees.

use crate::bound::network::ArcNetwork;
use crate::id::{DeviceId, LinkId, NpuId, narrow};
use hocket_base::graph::{Lists, ShortestPaths};

/// An arc that so many trees may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arc {
    pub src: u32,
    pub dst: u32,
    /// How many trees it can carry; before scaling, its bandwidth in the network's unit.
    pub units: i64,
    /// Position in [`Graph::ways`].
    pub way: u32,
}

/// What an arc takes: a link, the inside of a switch, or one way after another.
#[derive(Clone, Copy, Debug)]
enum Way {
    Link(LinkId),
    Inside,
    Joined(u32, u32),
}

/// Ways, each made of earlier ones, so that joining two costs nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct SwitchPaths {
    ways: Vec<Way>,
}

impl SwitchPaths {
    pub(crate) fn join(&mut self, first: u32, second: u32) -> u32 {
        self.ways.push(Way::Joined(first, second));
        narrow(self.ways.len()) - 1
    }

    /// Returns the arcs of [`Graph::new`] that a way takes, in order: their ways have their numbers.
    pub(crate) fn arcs(&self, way: u32) -> Vec<u32> {
        let mut arcs = Vec::new();
        let mut left = vec![way];
        while let Some(way) = left.pop() {
            match self.ways[way as usize] {
                Way::Joined(first, second) => left.extend([second, first]),
                Way::Link(_) | Way::Inside => arcs.push(way),
            }
        }
        arcs
    }

    /// Returns the link that an arc of [`Graph::new`] is; `None` of the inside of a switch.
    pub(crate) fn link(&self, arc: u32) -> Option<LinkId> {
        match self.ways[arc as usize] {
            Way::Link(link) => Some(link),
            _ => None,
        }
    }
}

/// Nodes and arcs. Nodes that are no ends only pass on.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    is_end: Vec<bool>,
    pub arcs: Vec<Arc>,
    pub ways: SwitchPaths,
}

impl Graph {
    /// Returns the links of a network, and the insides of switches that have limits.
    pub(crate) fn new(network: &ArcNetwork, ends: &[NpuId]) -> Self {
        let mut is_end = vec![false; network.node_count()];
        ends.iter().for_each(|npu| is_end[npu.index()] = true);
        let unit = network.unit();
        let mut ways = SwitchPaths::default();
        let mut arcs = Vec::with_capacity(network.arcs().len());
        let mut links = (0..).map(LinkId);
        for arc in network.arcs() {
            ways.ways.push(match arc.internal {
                true => Way::Inside,
                false => Way::Link(links.next().expect("there are as many as links")),
            });
            arcs.push(Arc {
                src: arc.src,
                dst: arc.dst,
                units: (arc.capacity / unit) as i64,
                way: narrow(ways.ways.len()) - 1,
            });
        }
        Self { is_end, arcs, ways }
    }

    /// Returns the same arcs with other units.
    pub(crate) fn with_units(mut self, units: &[i64]) -> Self {
        for (arc, &units) in self.arcs.iter_mut().zip(units) {
            arc.units = units;
        }
        self
    }

    pub(crate) fn nodes(&self) -> usize {
        self.is_end.len()
    }

    pub(crate) fn is_end(&self, node: u32) -> bool {
        self.is_end[node as usize]
    }

    /// When a piece of a root is at each node, alone, over arcs that take so long; [`u64::MAX`] where it never is.
    pub(crate) fn times(&self, root: u32, costs: &[u64]) -> Vec<u64> {
        let arcs = &self.arcs;
        let tails = arcs.iter().map(|arc| arc.src as usize).zip(0u32..);
        let out = Lists::grouped(self.nodes(), tails);
        let mut paths = ShortestPaths::new(u64::MAX, ());
        paths.run(
            self.nodes(),
            [(root, 0)],
            |node| {
                let of = out.get(node as usize).iter();
                of.map(|&arc| (arcs[arc as usize].dst, arc as usize))
            },
            |cost, arc, _| (arcs[arc].units > 0).then_some((cost + costs[arc], ())),
        );
        paths.into_parts().0
    }

    /// The ends, ascending.
    pub(crate) fn ends(&self) -> Vec<u32> {
        let nodes = 0..narrow(self.nodes());
        nodes.filter(|&node| self.is_end(node)).collect()
    }
}

/// From which device to which each link leads.
pub(super) fn ends_of_links(network: &ArcNetwork) -> Vec<(DeviceId, DeviceId)> {
    let arcs = network.arcs().iter().filter(|arc| !arc.internal);
    let device = |node: u32| network.device_of(node as usize);
    arcs.map(|arc| (device(arc.src), device(arc.dst))).collect()
}

/// Leaves out what a way does between two visits of the same device.
pub(super) fn remove_loops(way: &mut Vec<LinkId>, ends_of: &[(DeviceId, DeviceId)]) {
    let mut straight: Vec<LinkId> = Vec::with_capacity(way.len());
    for &link in way.iter() {
        let end = ends_of[link.index()].1;
        let visited = straight.iter().position(|it| ends_of[it.index()].0 == end);
        match visited {
            Some(first) => straight.truncate(first),
            None => straight.push(link),
        }
    }
    *way = straight;
}

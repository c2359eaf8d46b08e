//! The topology as a flow network: a switch with a limit of its own becomes two nodes and an arc.

use std::collections::VecDeque;

use super::{Fidelity, Relays};
use crate::graph::{Lists, ShortestPaths};
use crate::id::{DeviceId, NpuId, narrow};
use crate::topology::{DeviceKind, Topology};
use crate::units::{Bandwidth, gcd};

/// Distance of a node that cannot be reached.
pub(super) const FAR: u64 = u64::MAX;

/// A link, or the inside of a switch that has a limit.
#[derive(Clone, Copy, Debug)]
pub struct Arc {
    /// Node at which it starts.
    pub src: u32,
    /// Node at which it ends.
    pub dst: u32,
    /// Bytes per second.
    pub capacity: u64,
    /// From when a byte enters until it may leave the far end, in picoseconds.
    pub latency: u64,
    /// How much of it the arc's last bytes are still being sent, in picoseconds; see [`Fidelity::Packet`].
    pub sending: u64,
    /// Whether it is the inside of a switch.
    pub internal: bool,
}

impl Arc {
    /// For how much of a run the arc carries nothing, if no byte reaches it sooner than `before` and
    /// all that leaves it is under way for `after` more; `FAR` where it is of no use at all.
    pub fn delay(&self, before: u64, after: u64) -> u64 {
        let way = before.saturating_add(self.latency).saturating_add(after);
        if way >= FAR - 1 {
            return FAR;
        }
        way.saturating_sub(self.sending)
    }
}

/// Arcs, indexed both ways. Node `i` is device `i`; the nodes after the devices are the far halves
/// of switches with a limit.
#[derive(Clone, Debug)]
#[doc(alias = "Network")]
pub struct ArcNetwork {
    npu_count: usize,
    /// By node: whether data can be summed or copied there, at an NPU or a switch that can do so.
    stations: Vec<bool>,
    device_count: usize,
    device_of: Vec<DeviceId>,
    arcs: Vec<Arc>,
    out: Lists<u32>,
    into: Lists<u32>,
    is_turned: bool,
}

impl ArcNetwork {
    /// Builds the graph of a topology; at packet fidelity a link also takes a flit to send.
    pub fn new(topology: &Topology, fidelity: Fidelity) -> Self {
        let flit = |rate: Bandwidth| match fidelity {
            Fidelity::Packet { flit_bytes } => rate.transmission(flit_bytes).as_ps(),
            _ => 0,
        };
        let count = topology.device_count();
        let mut device_of: Vec<DeviceId> = (0..count).map(DeviceId::from).collect();
        let mut exit: Vec<u32> = (0..narrow(count)).collect();
        let mut arcs = Vec::with_capacity(topology.links().len());
        for (i, device) in topology.devices().iter().enumerate() {
            let Some(limit) = device.limit.filter(|_| device.kind == DeviceKind::Switch) else {
                continue;
            };
            exit[i] = narrow(device_of.len());
            device_of.push(DeviceId::from(i));
            arcs.push(Arc {
                src: narrow(i),
                dst: exit[i],
                capacity: limit.bytes_per_second(),
                latency: 0,
                sending: flit(limit),
                internal: true,
            });
        }
        arcs.extend(topology.links().iter().map(|link| {
            let limit = topology.device(link.src).limit;
            let sending = flit(link.bandwidth);
            Arc {
                src: exit[link.src.index()],
                dst: link.dst.0,
                capacity: link.bandwidth.bytes_per_second(),
                // A flit is sent within its latency, and at no more than the limit behind it.
                latency: link.latency.as_ps().max(sending).max(limit.map_or(0, flit)),
                sending,
                internal: false,
            }
        }));
        let stations = device_of.iter().map(|&device| topology.can_end(device));
        let stations = stations.collect();
        Self::index(topology.npu_count(), count, device_of, stations, arcs)
    }

    fn index(
        npu_count: usize,
        device_count: usize,
        device_of: Vec<DeviceId>,
        stations: Vec<bool>,
        arcs: Vec<Arc>,
    ) -> Self {
        let ends = |end: fn(&Arc) -> u32| {
            let ends = arcs.iter().map(move |arc| end(arc) as usize);
            ends.zip(0u32..)
        };
        let out = Lists::grouped(device_of.len(), ends(|arc| arc.src));
        let into = Lists::grouped(device_of.len(), ends(|arc| arc.dst));
        Self {
            npu_count,
            stations,
            device_count,
            device_of,
            arcs,
            out,
            into,
            is_turned: false,
        }
    }

    /// Returns the same network with every arc turned round.
    pub fn reversed(&self) -> Self {
        let mut turned = self.clone();
        turned.is_turned = !self.is_turned;
        for arc in &mut turned.arcs {
            (arc.src, arc.dst) = (arc.dst, arc.src);
        }
        std::mem::swap(&mut turned.out, &mut turned.into);
        turned
    }

    /// Returns the same nodes with other arcs.
    pub fn with_arcs(&self, arcs: Vec<Arc>) -> Self {
        Self::index(
            self.npu_count,
            self.device_count,
            self.device_of.clone(),
            self.stations.clone(),
            arcs,
        )
    }

    /// Returns the network in which NPUs that are not among some do no more than relays may.
    pub(super) fn relaying(mut self, relays: Relays, among: &[NpuId]) -> Self {
        let mut is_relay = vec![true; self.npu_count];
        for npu in among {
            is_relay[npu.index()] = false;
        }
        let is_relay = |node: u32| is_relay.get(node as usize) == Some(&true);
        if relays != Relays::Sum {
            for npu in self.npus().filter(|npu| is_relay(npu.0)) {
                self.stations[npu.index()] = false;
            }
        }
        if relays == Relays::None {
            let is_kept = |arc: &Arc| !is_relay(arc.src) && !is_relay(arc.dst);
            let arcs = self.arcs.iter().copied().filter(is_kept).collect();
            return self.with_arcs(arcs);
        }
        self
    }

    /// Returns the first nodes alone, all of them NPUs, without arcs.
    pub fn within(&self, npus: usize) -> Self {
        Self::index(
            npus,
            npus,
            self.device_of[..npus].to_vec(),
            self.stations[..npus].to_vec(),
            Vec::new(),
        )
    }

    /// Returns whether arcs lead from where links end to where they start.
    pub fn is_turned(&self) -> bool {
        self.is_turned
    }

    /// Returns the number of nodes: devices, and a second node for each switch with a limit.
    pub fn node_count(&self) -> usize {
        self.device_of.len()
    }

    /// Returns the number of devices: nodes from here on are far halves of switches.
    pub fn device_count(&self) -> usize {
        self.device_count
    }

    /// Returns whether a node is an NPU.
    pub fn is_npu(&self, node: u32) -> bool {
        (node as usize) < self.npu_count
    }

    /// Returns every NPU.
    pub fn npus(&self) -> impl Iterator<Item = NpuId> + use<> {
        (0..self.npu_count).map(NpuId::from)
    }

    /// Returns whether data can be summed or copied at a node: at an NPU, or a switch (either half of one with a limit)
    /// that can sum or multicast. What such a switch cannot do, or has no room for, only makes plans slower.
    pub fn is_station(&self, node: u32) -> bool {
        self.stations[node as usize]
    }

    /// Returns every node at which data can be summed or copied.
    pub fn stations(&self) -> impl Iterator<Item = u32> + '_ {
        (0..narrow(self.node_count())).filter(|&node| self.is_station(node))
    }

    /// Returns the device that a node is, or is half of.
    pub fn device_of(&self, node: usize) -> DeviceId {
        self.device_of[node]
    }

    /// Returns all arcs, by number.
    pub fn arcs(&self) -> &[Arc] {
        &self.arcs
    }

    /// Returns the positions of the arcs that leave a node.
    pub fn arcs_out(&self, node: u32) -> &[u32] {
        self.out.get(node as usize)
    }

    /// Returns the positions of the arcs that enter a node.
    pub fn arcs_in(&self, node: u32) -> &[u32] {
        self.into.get(node as usize)
    }

    /// Returns the greatest bandwidth that divides all bandwidths.
    pub fn unit(&self) -> u64 {
        self.arcs
            .iter()
            .fold(0, |unit, arc| gcd(unit, arc.capacity))
            .max(1)
    }

    /// Returns whether at every node as much bandwidth enters as leaves.
    pub fn is_balanced(&self) -> bool {
        let total = |arcs: &[u32]| -> u128 {
            let capacity = |&arc: &u32| u128::from(self.arcs[arc as usize].capacity);
            arcs.iter().map(capacity).sum()
        };
        (0..narrow(self.node_count()))
            .all(|node| total(self.arcs_out(node)) == total(self.arcs_in(node)))
    }

    /// Returns whether every distance is as long as that of the way back, since each arc has one of equal latency the
    /// other way.
    pub fn is_two_way(&self) -> bool {
        let ends = |end: fn(&Arc) -> (u32, u32, u64)| {
            let mut ends: Vec<_> = self.arcs.iter().map(end).collect();
            ends.sort_unstable();
            ends
        };
        ends(|arc| (arc.src, arc.dst, arc.latency)) == ends(|arc| (arc.dst, arc.src, arc.latency))
    }

    /// Returns the nodes in breadth-first order from one; those out of reach are left out.
    pub fn breadth_first(&self, from: u32) -> Vec<u32> {
        let mut seen = vec![false; self.node_count()];
        seen[from as usize] = true;
        let mut queue = VecDeque::from([from]);
        let mut order = Vec::new();
        while let Some(node) = queue.pop_front() {
            order.push(node);
            for &arc in self.arcs_out(node) {
                let next = self.arcs[arc as usize].dst;
                if !std::mem::replace(&mut seen[next as usize], true) {
                    queue.push_back(next);
                }
            }
        }
        order
    }
}

/// Shortest distances from chosen nodes, with buffers kept between searches.
#[derive(Debug)]
pub(super) struct Search {
    paths: ShortestPaths<u64>,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            paths: ShortestPaths::new(FAR, ()),
        }
    }
}

impl Search {
    /// Distances from the nearest of `from` to every node; [`FAR`] where there is no way.
    pub(crate) fn run(
        &mut self,
        network: &ArcNetwork,
        from: impl IntoIterator<Item = u32>,
        length: impl Fn(&Arc) -> u64,
    ) -> &[u64] {
        self.until(network, from, length, |_| false);
        self.distances()
    }

    /// Returns the distances that [`run`](Self::run) found last.
    pub(crate) fn distances(&self) -> &[u64] {
        self.paths.costs()
    }

    /// Returns the nodes that [`run`](Self::run) reached last, nearest first.
    pub(crate) fn nearest_first(&self) -> &[u32] {
        self.paths.settled()
    }

    /// Distances to every node from the nearest of `from`, each of which is that far away itself, over the arcs that
    /// `may` be taken.
    pub(crate) fn onward(
        &mut self,
        network: &ArcNetwork,
        from: impl IntoIterator<Item = (u32, u64)>,
        may: impl Fn(&Arc) -> bool,
    ) -> &[u64] {
        let arc = |&id: &u32| &network.arcs()[id as usize];
        self.paths.until(
            network.node_count(),
            from,
            |node| {
                network
                    .arcs_out(node)
                    .iter()
                    .map(arc)
                    .map(|arc| (arc.dst, arc))
            },
            |so_far, arc, _| {
                let way = so_far.saturating_add(arc.latency).min(FAR - 1);
                may(arc).then_some((way, ()))
            },
            |_, _| false,
        );
        self.distances()
    }

    /// Distance of the nearest node that is `sought`, from the nearest of `from`.
    pub(crate) fn until(
        &mut self,
        network: &ArcNetwork,
        from: impl IntoIterator<Item = u32>,
        length: impl Fn(&Arc) -> u64,
        sought: impl Fn(u32) -> bool,
    ) -> Option<u64> {
        let arc = |&id: &u32| &network.arcs()[id as usize];
        let found = self.paths.until(
            network.node_count(),
            from.into_iter().map(|node| (node, 0)),
            |node| {
                network
                    .arcs_out(node)
                    .iter()
                    .map(arc)
                    .map(|arc| (arc.dst, arc))
            },
            |so_far, arc, _| Some((so_far.saturating_add(length(arc)).min(FAR - 1), ())),
            |node, _| sought(node),
        );
        found.map(|node| self.paths.costs()[node as usize])
    }
}

/// Distance of every node from the nearest place, by latency, at which the way of a byte may begin. At flow fidelity that
/// is where any transfer may, switches that sum or multicast included, as nothing before it counts; otherwise an NPU.
pub(super) fn latency_from_ends(network: &ArcNetwork, fidelity: Fidelity) -> Vec<u64> {
    let is_end = |&node: &u32| network.is_npu(node) || fidelity == Fidelity::Flow;
    let mut search = Search::default();
    let ends = network.stations().filter(is_end);
    search.run(network, ends, |arc| arc.latency).to_vec()
}

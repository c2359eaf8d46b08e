//! The topology as a flow network: a switch with a limit of its own becomes two nodes and an arc.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::Fidelity;
use crate::id::{DeviceId, NpuId};
use crate::topology::{DeviceKind, Topology};
use crate::units::{Bandwidth, gcd};

/// Distance of a node that cannot be reached.
pub(super) const FAR: u64 = u64::MAX;

/// A link, or the inside of a switch that has a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arc {
    pub src: u32,
    pub dst: u32,
    /// Bytes per second.
    pub capacity: u64,
    /// From when a byte enters until it may leave the far end [ps].
    pub latency: u64,
    /// How much of it the arc's last bytes are still being sent [ps]; see [`Fidelity::Packet`].
    pub sending: u64,
    /// Whether it is the inside of a switch.
    pub internal: bool,
}

impl Arc {
    /// For how much of a run the arc carries nothing, if no byte reaches it sooner than `before` and
    /// all that leaves it is under way for `after` more; [`FAR`] where it is of no use at all.
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
pub(super) struct Network {
    npu_count: usize,
    device_count: usize,
    device_of: Vec<DeviceId>,
    arcs: Vec<Arc>,
    out: Index,
    into: Index,
}

#[derive(Clone, Debug)]
struct Index {
    offsets: Vec<u32>,
    arcs: Vec<u32>,
}

impl Network {
    pub fn new(topology: &Topology, fidelity: Fidelity) -> Self {
        let flit = |rate: Bandwidth| match fidelity {
            Fidelity::Packet { flit_bytes } => rate.transmission(flit_bytes).as_ps(),
            _ => 0,
        };
        let count = topology.device_count();
        let mut device_of: Vec<DeviceId> = (0..count).map(DeviceId::from).collect();
        let mut exit: Vec<u32> = (0..count as u32).collect();
        let mut arcs = Vec::with_capacity(topology.links().len());
        for (i, device) in topology.devices().iter().enumerate() {
            let Some(limit) = device.limit.filter(|_| device.kind == DeviceKind::Switch) else {
                continue;
            };
            exit[i] = device_of.len() as u32;
            device_of.push(DeviceId::from(i));
            arcs.push(Arc {
                src: i as u32,
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
        Self::index(topology.npu_count(), count, device_of, arcs)
    }

    fn index(
        npu_count: usize,
        device_count: usize,
        device_of: Vec<DeviceId>,
        arcs: Vec<Arc>,
    ) -> Self {
        let out = Index::new(device_of.len(), arcs.iter().map(|arc| arc.src));
        let into = Index::new(device_of.len(), arcs.iter().map(|arc| arc.dst));
        Self {
            npu_count,
            device_count,
            device_of,
            arcs,
            out,
            into,
        }
    }

    /// The same network with every arc turned round.
    pub fn reversed(&self) -> Self {
        let mut turned = self.clone();
        for arc in &mut turned.arcs {
            (arc.src, arc.dst) = (arc.dst, arc.src);
        }
        std::mem::swap(&mut turned.out, &mut turned.into);
        turned
    }

    pub fn node_count(&self) -> usize {
        self.device_of.len()
    }

    /// How many devices there are: nodes from here on are far halves of switches.
    pub fn device_count(&self) -> usize {
        self.device_count
    }

    /// Whether a node is an NPU.
    pub fn is_npu(&self, node: u32) -> bool {
        (node as usize) < self.npu_count
    }

    /// Every NPU.
    pub fn npus(&self) -> impl Iterator<Item = NpuId> + use<> {
        (0..self.npu_count).map(NpuId::from)
    }

    /// The device that a node is, or is half of.
    pub fn device_of(&self, node: usize) -> DeviceId {
        self.device_of[node]
    }

    pub fn arcs(&self) -> &[Arc] {
        &self.arcs
    }

    /// Positions of the arcs that leave a node.
    pub fn arcs_out(&self, node: u32) -> &[u32] {
        self.out.of(node)
    }

    /// Positions of the arcs that enter a node.
    pub fn arcs_in(&self, node: u32) -> &[u32] {
        self.into.of(node)
    }

    /// The greatest bandwidth that divides all bandwidths.
    pub fn unit(&self) -> u64 {
        self.arcs
            .iter()
            .fold(0, |unit, arc| gcd(unit, arc.capacity))
            .max(1)
    }

    /// Whether at every node as much bandwidth enters as leaves.
    pub fn is_balanced(&self) -> bool {
        let total = |arcs: &[u32]| -> u128 {
            let capacity = |&arc: &u32| u128::from(self.arcs[arc as usize].capacity);
            arcs.iter().map(capacity).sum()
        };
        (0..self.node_count() as u32)
            .all(|node| total(self.arcs_out(node)) == total(self.arcs_in(node)))
    }

    /// Nodes in breadth-first order from one; those out of reach are left out.
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

impl Index {
    fn new(nodes: usize, ends: impl Iterator<Item = u32> + Clone) -> Self {
        let mut offsets = vec![0u32; nodes + 1];
        for end in ends.clone() {
            offsets[end as usize + 1] += 1;
        }
        for i in 0..nodes {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut arcs = vec![0; offsets[nodes] as usize];
        for (arc, end) in ends.enumerate() {
            arcs[next[end as usize] as usize] = arc as u32;
            next[end as usize] += 1;
        }
        Self { offsets, arcs }
    }

    fn of(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.arcs[self.offsets[node] as usize..self.offsets[node + 1] as usize]
    }
}

/// Shortest distances from chosen nodes, with buffers kept between searches.
#[derive(Debug, Default)]
pub(super) struct Search {
    distance: Vec<u64>,
    queue: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Search {
    /// Distances from the nearest of `from` to every node; [`FAR`] where there is no way.
    ///
    /// # Source
    /// Dijkstra, A note on two problems in connexion with graphs, 1959.
    pub fn run(
        &mut self,
        network: &Network,
        from: impl IntoIterator<Item = u32>,
        length: impl Fn(&Arc) -> u64,
    ) -> &[u64] {
        self.until(network, from, length, |_| false);
        &self.distance
    }

    /// Distance of the nearest node that is `sought`, from the nearest of `from`.
    pub fn until(
        &mut self,
        network: &Network,
        from: impl IntoIterator<Item = u32>,
        length: impl Fn(&Arc) -> u64,
        sought: impl Fn(u32) -> bool,
    ) -> Option<u64> {
        self.distance.clear();
        self.distance.resize(network.node_count(), FAR);
        self.queue.clear();
        for node in from {
            self.distance[node as usize] = 0;
            self.queue.push(Reverse((0, node)));
        }
        while let Some(Reverse((so_far, node))) = self.queue.pop() {
            if so_far > self.distance[node as usize] {
                continue;
            }
            if sought(node) {
                return Some(so_far);
            }
            for &id in network.arcs_out(node) {
                let arc = &network.arcs()[id as usize];
                let found = so_far.saturating_add(length(arc)).min(FAR - 1);
                if found < self.distance[arc.dst as usize] {
                    self.distance[arc.dst as usize] = found;
                    self.queue.push(Reverse((found, arc.dst)));
                }
            }
        }
        None
    }
}

/// Distance of every node from the NPU that is nearest by latency: 0 for an NPU.
pub(super) fn latency_from_npus(network: &Network) -> Vec<u64> {
    let npus = network.npus().map(|npu| npu.0);
    let mut search = Search::default();
    search.run(network, npus, |arc| arc.latency).to_vec()
}

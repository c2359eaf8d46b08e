//! A node from inside: its devices, where a ring enters and leaves it, and the order of its NPUs.

use super::ring_paths::RingPaths;
use crate::id::{DeviceId, LinkId, NpuId};
use crate::topology::Topology;
use crate::topology::shortest::RouteTree;
use crate::units::Time;

/// NPUs of a node whose best order is searched for exactly.
const FEW: usize = 10;

/// Returns whether a device is a switch of NPUs of this node only from which several other switches are reached, as a
/// PCIe switch with several NICs.
fn is_fork(topology: &Topology, group: &[NpuId], device: DeviceId) -> bool {
    let next = topology.out_links(device).iter();
    let mut next: Vec<DeviceId> = next.map(|&link| topology.link(link).dst).collect();
    next.dedup();
    let (npus, switches): (Vec<_>, Vec<_>) = next.into_iter().partition(|&it| topology.is_npu(it));
    let is_own = npus.iter().all(|npu| group.contains(&NpuId(npu.0)));
    !topology.is_npu(device) && is_own && switches.len() > 1
}

/// The devices of a node: its NPUs, what lies on the shortest ways between them, and forks next to them.
pub(super) struct NodeDevices {
    is_in: Vec<bool>,
}

impl NodeDevices {
    pub(super) fn of(topology: &Topology, group: &[NpuId]) -> Self {
        let mut is_in = vec![false; topology.device_count()];
        for &npu in group {
            is_in[npu.index()] = true;
        }
        for &dst in group.iter().filter(|_| group.len() > 1) {
            // Without bytes: by latency, then by links.
            let tree = RouteTree::to(topology, dst.device(), 0, None);
            for &src in group {
                let mut device = src.device();
                while let Some(link) = tree.next(device) {
                    device = topology.link(link).dst;
                    is_in[device.index()] |= !topology.is_npu(device);
                }
            }
        }
        for &npu in group {
            for &link in topology.out_links(npu.device()) {
                let device = topology.link(link).dst;
                if is_fork(topology, group, device) {
                    is_in[device.index()] = true;
                }
            }
        }
        Self { is_in }
    }

    pub(super) fn has(&self, device: DeviceId) -> bool {
        self.is_in[device.index()]
    }

    /// Switches that are next to the node and lead to another one, by number.
    pub(super) fn ports(&self, topology: &Topology, group: &[NpuId]) -> Vec<DeviceId> {
        let mut leads_out = vec![false; topology.device_count()];
        let mut is_member = vec![false; topology.npu_count()];
        for npu in group {
            is_member[npu.index()] = true;
        }
        let others = topology.npus().filter(|npu| !is_member[npu.index()]);
        let mut stack: Vec<DeviceId> = others.map(NpuId::device).collect();
        while let Some(device) = stack.pop() {
            for &id in topology.in_links(device) {
                let before = topology.link(id).src;
                if !topology.is_npu(before) && !self.has(before) && !leads_out[before.index()] {
                    leads_out[before.index()] = true;
                    stack.push(before);
                }
            }
        }
        let mut ports = Vec::new();
        for device in (0..topology.device_count()).map(DeviceId::from) {
            let next = topology.out_links(device).iter();
            let next = next.map(|&id| topology.link(id).dst);
            if self.has(device) {
                ports.extend(next.filter(|next| leads_out[next.index()]));
            }
        }
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Where ring `k` enters the node, and where it leaves: the NPUs nearest to its port, or, where one alone
    /// is nearest, that one and the nearest to the next port.
    pub(super) fn ends(
        &self,
        ways: &RingPaths<'_>,
        group: &[NpuId],
        (port, next): (Option<DeviceId>, Option<DeviceId>),
        k: usize,
    ) -> (NpuId, NpuId) {
        let count = group.len();
        let (Some(port), Some(next)) = (port, next) else {
            return (group[k % count], group[(k + 1) % count]);
        };
        // Of the NPUs that are as near, other rings begin with others.
        let near = |port: DeviceId, but: Option<NpuId>| {
            let rest = group
                .iter()
                .enumerate()
                .filter(|&(_, &npu)| Some(npu) != but);
            let cost = |(i, &npu): (usize, &NpuId)| {
                let found = ways.path(npu.device(), port, |device| self.has(device));
                let time = found.map_or(Time::MAX, |((time, ..), _)| time);
                (time, (i + count - 2 * k % count) % count, npu)
            };
            rest.map(cost).min().map(|(time, _, npu)| (time, npu))
        };
        let (time, first) = near(port, None).expect("a group has an NPU");
        let shares = near(port, Some(first)).filter(|&(other, _)| other == time);
        let last = shares.or_else(|| near(next, Some(first)));
        (first, last.map_or(first, |(_, npu)| npu))
    }

    /// Returns an order of the node's NPUs from `first` to `last` along its fastest and least used links, which it then
    /// counts as used that way, or both ways.
    pub(super) fn order(
        &self,
        ways: &mut RingPaths<'_>,
        group: &[NpuId],
        (first, last): (NpuId, NpuId),
        is_both: bool,
    ) -> Vec<NpuId> {
        let mut rest: Vec<NpuId> = group.to_vec();
        let start = rest.iter().position(|&npu| npu == first).expect("a member");
        rest.rotate_left(start);
        rest.retain(|&npu| npu != first && npu != last);
        let mut all = vec![first];
        all.append(&mut rest);
        if last != first {
            all.push(last);
        }
        if all.len() > 3 && all.len() <= FEW {
            all = self.best(ways, &all);
        }
        for pair in all.windows(2) {
            let ends = [(pair[0], pair[1]), (pair[1], pair[0])];
            for (a, b) in ends.into_iter().take(if is_both { 2 } else { 1 }) {
                if let Some(links) = self.way(ways, a, b) {
                    ways.take(&links);
                }
            }
        }
        all
    }

    fn way(&self, ways: &RingPaths<'_>, a: NpuId, b: NpuId) -> Option<Vec<LinkId>> {
        let within = |device: DeviceId| self.has(device) && !ways.topology.is_npu(device);
        let found = ways.path(a.device(), b.device(), within);
        found.map(|(_, links)| links)
    }

    /// Returns the order that takes least, from the first to the last, by dynamic programming over sets.
    ///
    /// # Source
    /// Held, Karp: A dynamic programming approach to sequencing problems, 1962.
    fn best(&self, ways: &RingPaths<'_>, all: &[NpuId]) -> Vec<NpuId> {
        let n = all.len();
        let far = Time::MAX.as_ps() >> 8;
        let mut cost = vec![vec![far; n]; n];
        for (i, &a) in all.iter().enumerate() {
            for (j, &b) in all.iter().enumerate().filter(|&(j, _)| j != i) {
                let within = |device: DeviceId| self.has(device) && !ways.topology.is_npu(device);
                if let Some(((time, ..), links)) = ways.path(a.device(), b.device(), within) {
                    let again = 1 + u64::from(ways.most_used(&links));
                    cost[i][j] = time.as_ps().saturating_mul(again).min(far);
                }
            }
        }
        let middle = n - 2;
        let full = (1usize << middle) - 1;
        let mut least = vec![vec![(u64::MAX, 0); middle]; full + 1];
        for j in 0..middle {
            least[1 << j][j] = (cost[0][j + 1], j);
        }
        for set in 1..=full {
            for j in (0..middle).filter(|j| set >> j & 1 == 1) {
                let so_far = least[set][j].0;
                for next in (0..middle).filter(|next| set >> next & 1 == 0) {
                    let sum = so_far.saturating_add(cost[j + 1][next + 1]);
                    let slot = &mut least[set | 1 << next][next];
                    *slot = (*slot).min((sum, j));
                }
            }
        }
        let end = |j: &usize| (least[full][*j].0.saturating_add(cost[*j + 1][n - 1]), *j);
        let mut j = (0..middle).min_by_key(end).expect("two or more between");
        let mut set = full;
        let mut order = vec![all[n - 1]];
        while set != 0 {
            order.push(all[j + 1]);
            let before = least[set][j].1;
            set &= !(1 << j);
            j = before;
        }
        order.push(all[0]);
        order.reverse();
        order
    }
}

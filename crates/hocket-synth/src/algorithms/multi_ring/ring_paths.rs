//! Paths that a ring takes: the fastest, and of those the least used by the rings before.

use super::node::NodeDevices;
use crate::graph::ShortestPaths;
use crate::id::{DeviceId, LinkId, NpuId};
use crate::topology::Topology;
use crate::units::Time;

const NO_LINK: LinkId = LinkId(u32::MAX);

/// What a path costs, by weight: time, how often its links are used already, links.
type Cost = (Time, u64, u32);
const FAR: Cost = (Time::MAX, u64::MAX, u32::MAX);

/// Finds paths for messages of one size, and counts how often links are used.
pub(super) struct RingPaths<'a> {
    pub(super) topology: &'a Topology,
    bytes: u64,
    uses: Vec<u32>,
}

impl<'a> RingPaths<'a> {
    pub(super) fn new(topology: &'a Topology, bytes: u64) -> Self {
        Self {
            topology,
            bytes,
            uses: vec![0; topology.links().len()],
        }
    }

    /// Returns a path from one device to another over devices that may be passed; the ends always may.
    pub(super) fn path(
        &self,
        src: DeviceId,
        dst: DeviceId,
        may_pass: impl Fn(DeviceId) -> bool,
    ) -> Option<(Cost, Vec<LinkId>)> {
        let topology = self.topology;
        let mut search = ShortestPaths::new(FAR, NO_LINK);
        let arc = |&id: &LinkId| (topology.link(id).dst.0, id);
        let open = |device: u32| {
            let device = DeviceId(device);
            device == src || device == dst || may_pass(device)
        };
        search.until(
            topology.device_count(),
            [(src.0, (Time::ZERO, 0, 0))],
            |device| {
                let links = topology.out_links(DeviceId(device)).iter().map(arc);
                links.filter(|&(next, _)| open(next)).collect::<Vec<_>>()
            },
            |(time, uses, hops), id, _| {
                let link = topology.link(id);
                let length = link.latency + link.bandwidth.transmission(self.bytes);
                let used = u64::from(self.uses[id.index()]);
                Some(((time + length, uses + used, hops + 1), id))
            },
            |device, _| DeviceId(device) == dst,
        );
        let (costs, vias) = search.into_parts();
        let mut links = Vec::new();
        let mut device = dst;
        while device != src {
            let link = vias[device.index()];
            if link == NO_LINK {
                return None;
            }
            links.push(link);
            device = topology.link(link).src;
        }
        links.reverse();
        Some((costs[dst.index()], links))
    }

    /// Counts a use of links.
    pub(super) fn take(&mut self, links: &[LinkId]) {
        for link in links {
            self.uses[link.index()] += 1;
        }
    }

    /// Returns how often the most used of some links is used.
    pub(super) fn most_used(&self, links: &[LinkId]) -> u32 {
        let uses = links.iter().map(|link| self.uses[link.index()]);
        uses.max().unwrap_or(0)
    }

    /// Returns the links from an NPU out of its node by one port, and into another node by another, to an NPU there;
    /// `None` where there is no such path, or it would pass a device twice.
    pub(super) fn between(
        &mut self,
        (src, here, out): (NpuId, &NodeDevices, DeviceId),
        (dst, there, into): (NpuId, &NodeDevices, DeviceId),
    ) -> Option<Vec<LinkId>> {
        let topology = self.topology;
        let (_, mut links) = self.path(src.device(), out, |device| here.has(device))?;
        let between = |device: DeviceId| !topology.is_npu(device);
        links.extend(self.path(out, into, between)?.1);
        links.extend(self.path(into, dst.device(), |device| there.has(device))?.1);
        let mut passed: Vec<DeviceId> = links.iter().map(|&id| topology.link(id).dst).collect();
        passed.push(src.device());
        let count = passed.len();
        passed.sort_unstable();
        passed.dedup();
        if passed.len() < count {
            return None;
        }
        self.take(&links);
        Some(links)
    }
}

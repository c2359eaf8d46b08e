//! Shortest paths by time: what a transfer takes where the plan names no path.

use super::Topology;
use crate::graph::ShortestPaths;
use crate::id::{DeviceId, LinkId};
use crate::units::Time;

/// The shortest way from every device to one destination, for messages of one size.
///
/// Ties go to fewer hops, then to the lowest link id, so that the tree is the same on every run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteTree {
    dst: DeviceId,
    bytes: u64,
    /// The link to take, or [`NO_LINK`].
    next: Vec<LinkId>,
    cost: Vec<Cost>,
}

/// What a way costs: the order of the fields is the order of their weight. Packed, so that a search handles
/// a third less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C, packed(4))]
struct Cost {
    time: Time,
    hops: u32,
}

impl Cost {
    const ZERO: Self = Self {
        time: Time::ZERO,
        hops: 0,
    };
    /// Of no way.
    const FAR: Self = Self {
        time: Time::MAX,
        hops: u32::MAX,
    };
}

const NO_LINK: LinkId = LinkId(u32::MAX);

impl RouteTree {
    /// Searches backwards from `dst` over every link, until `stop` (if given) is reached.
    ///
    /// The length of a link is latency + bytes / bandwidth: a message is stored and forwarded at
    /// every hop.
    ///
    /// # Complexity
    /// O(links log devices).
    pub fn to(topology: &Topology, dst: DeviceId, bytes: u64, stop: Option<DeviceId>) -> Self {
        Self::search(topology, dst, bytes, stop, None)
    }

    /// As [`to`](Self::to), but finds only ways that take less than `limit`.
    pub fn within(
        topology: &Topology,
        dst: DeviceId,
        bytes: u64,
        stop: Option<DeviceId>,
        limit: Time,
    ) -> Self {
        Self::search(topology, dst, bytes, stop, Some(limit))
    }

    /// Ways that take [`Time::MAX`] are ways too: what takes longer than can be told is not out of reach.
    fn search(
        topology: &Topology,
        dst: DeviceId,
        bytes: u64,
        stop: Option<DeviceId>,
        limit: Option<Time>,
    ) -> Self {
        let arc = |&id: &LinkId| (topology.link(id).src.0, id);
        let mut paths = ShortestPaths::new(Cost::FAR, NO_LINK);
        paths.until(
            topology.device_count(),
            [(dst.0, Cost::ZERO)],
            |device| topology.in_links(DeviceId(device)).iter().map(arc),
            |so_far, id, known| {
                // Where each way takes a link more, no settled device is looked at twice.
                if known <= so_far {
                    return None;
                }
                let time = so_far.time + length(topology, id, bytes);
                let cost = Cost {
                    time,
                    hops: so_far.hops + 1,
                };
                limit.is_none_or(|limit| time < limit).then_some((cost, id))
            },
            |device, _| Some(DeviceId(device)) == stop,
        );
        let (cost, next) = paths.into_parts();
        Self {
            dst,
            bytes,
            next,
            cost,
        }
    }

    /// Where every way ends.
    pub fn dst(&self) -> DeviceId {
        self.dst
    }

    /// Returns the link to take at a device; `None` at the destination and where there is no way.
    #[inline]
    pub fn next(&self, device: DeviceId) -> Option<LinkId> {
        Some(self.next[device.index()]).filter(|&link| link != NO_LINK)
    }

    /// Returns the links to take at a device that are as good as any: the same time in as many hops. None at the
    /// destination and where there is no way; the tree must be of a whole search.
    pub fn equal<'a>(
        &'a self,
        topology: &'a Topology,
        device: DeviceId,
    ) -> impl Iterator<Item = LinkId> + 'a {
        let Cost { time, hops } = self.cost[device.index()];
        let is_best = move |&id: &LinkId| {
            let after = self.cost[topology.link(id).dst.index()];
            after.hops.checked_add(1) == Some(hops)
                && after.time + length(topology, id, self.bytes) == time
        };
        topology.out_links(device).iter().copied().filter(is_best)
    }

    /// Returns time of a lone message from a device; `None` where there is no way.
    pub fn time(&self, device: DeviceId) -> Option<Time> {
        (device == self.dst || self.next(device).is_some()).then(|| self.cost[device.index()].time)
    }

    /// Returns the links from a device to the destination; `None` where there is no way.
    pub fn path(&self, topology: &Topology, src: DeviceId) -> Option<Vec<LinkId>> {
        let mut links = Vec::new();
        let mut device = src;
        while device != self.dst {
            let link = self.next(device)?;
            links.push(link);
            device = topology.link(link).dst;
        }
        Some(links)
    }
}

/// Returns what a lone message takes over a link and, at its end, across a switch with a limit.
fn length(topology: &Topology, id: LinkId, bytes: u64) -> Time {
    let link = topology.link(id);
    let crossing = topology.device(link.dst).limit;
    let crossing = crossing.map_or(Time::ZERO, |limit| limit.transmission(bytes));
    link.latency + link.bandwidth.transmission(bytes) + crossing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TopologyBuilder;
    use crate::units::Bandwidth;

    /// Three NPUs in a row, a byte per second: 2^40 bytes take longer than can be told.
    #[test]
    fn what_takes_longer_than_can_be_told_is_reached_all_the_same() {
        let mut builder = TopologyBuilder::new("slow");
        builder.npus(4);
        let slow = Bandwidth::from_bytes_per_second(1).expect("positive");
        for (a, b) in [(0, 1), (1, 2)] {
            builder.both_ways(DeviceId(a), DeviceId(b), slow, Time::from_ns(1));
        }
        let topology = builder.finish().expect("valid");
        let tree = RouteTree::to(&topology, DeviceId(2), 1 << 40, None);
        assert_eq!(tree.time(DeviceId(0)), Some(Time::MAX));
        let path = tree.path(&topology, DeviceId(0)).expect("two links");
        assert_eq!(path.len(), 2);
        assert_eq!(tree.time(DeviceId(3)), None);
        let within = RouteTree::within(&topology, DeviceId(2), 1 << 40, None, Time::MAX);
        assert_eq!(within.path(&topology, DeviceId(0)), None);
    }
}

//! Shortest paths by time: what a transfer takes where the plan names no path.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Topology;
use crate::id::{DeviceId, LinkId};
use crate::units::Time;

/// The shortest way from every device to one destination, for messages of one size.
///
/// Ties go to fewer hops, then to the lowest link id, so that the tree is the same on every run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteTree {
    dst: DeviceId,
    bytes: u64,
    next: Vec<Option<LinkId>>,
    time: Vec<Time>,
    hops: Vec<u32>,
}

impl RouteTree {
    /// Searches backwards from `dst` over every link, until `stop` (if given) is reached.
    ///
    /// The length of a link is latency + bytes / bandwidth: a message is stored and forwarded at
    /// every hop.
    ///
    /// # Complexity
    /// O(links log devices).
    ///
    /// # Source
    /// Dijkstra, A note on two problems in connexion with graphs, 1959.
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
        let count = topology.device_count();
        let mut next: Vec<Option<LinkId>> = vec![None; count];
        let mut time = vec![Time::MAX; count];
        let mut hops = vec![u32::MAX; count];
        let mut settled = vec![false; count];
        let mut queue = BinaryHeap::new();
        time[dst.index()] = Time::ZERO;
        hops[dst.index()] = 0;
        queue.push(Reverse((Time::ZERO, 0u32, dst)));
        while let Some(Reverse((_, _, device))) = queue.pop() {
            if std::mem::replace(&mut settled[device.index()], true) {
                continue;
            }
            if Some(device) == stop {
                break;
            }
            for &id in topology.in_links(device) {
                let link = topology.link(id);
                let source = link.src.index();
                if settled[source] {
                    continue;
                }
                let found = (
                    time[device.index()] + length(topology, id, bytes),
                    hops[device.index()] + 1,
                    Some(id),
                );
                if limit.is_some_and(|limit| found.0 >= limit) {
                    continue;
                }
                let best = (time[source], hops[source], next[source]);
                if next[source].is_none() || found < best {
                    (time[source], hops[source], next[source]) = found;
                    queue.push(Reverse((found.0, found.1, link.src)));
                }
            }
        }
        Self {
            dst,
            bytes,
            next,
            time,
            hops,
        }
    }

    /// Where every way ends.
    pub fn dst(&self) -> DeviceId {
        self.dst
    }

    /// The link to take at a device; `None` at the destination and where there is no way.
    #[inline]
    pub fn next(&self, device: DeviceId) -> Option<LinkId> {
        self.next[device.index()]
    }

    /// The links to take at a device that are as good as any: the same time in as many hops. None at
    /// the destination and where there is no way; the tree must be of a whole search.
    pub fn equal<'a>(
        &'a self,
        topology: &'a Topology,
        device: DeviceId,
    ) -> impl Iterator<Item = LinkId> + 'a {
        let best = (self.time[device.index()], self.hops[device.index()]);
        let is_best = move |&id: &LinkId| {
            let end = topology.link(id).dst.index();
            self.hops[end] < best.1
                && (
                    self.time[end] + length(topology, id, self.bytes),
                    self.hops[end] + 1,
                ) == best
        };
        topology.out_links(device).iter().copied().filter(is_best)
    }

    /// Time of a lone message from a device; `None` where there is no way.
    pub fn time(&self, device: DeviceId) -> Option<Time> {
        (device == self.dst || self.next(device).is_some()).then(|| self.time[device.index()])
    }

    /// The links from a device to the destination; `None` where there is no way.
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

/// What a lone message takes over a link and, at its end, across a switch with a limit.
fn length(topology: &Topology, id: LinkId, bytes: u64) -> Time {
    let link = topology.link(id);
    let crossing = topology.device(link.dst).limit;
    let crossing = crossing.map_or(Time::ZERO, |limit| limit.transmission(bytes));
    link.latency + link.bandwidth.transmission(bytes) + crossing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::TopologyBuilder;
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

//! Trees of a reduce that are those of a broadcast over the links that lead back.

use std::collections::HashMap;

use crate::id::LinkId;
use crate::packing::Packing;
use crate::topology::Topology;

/// For each link the one that leads back with the same bandwidth and latency; `None` where some link has none, or some
/// switch a limit or work of its own.
pub(super) fn twins(topology: &Topology) -> Option<Vec<LinkId>> {
    let is_limited = topology
        .devices()
        .iter()
        .any(|device| device.limit.is_some());
    if is_limited || topology.has_offload() {
        return None;
    }
    let mut found: HashMap<_, Vec<LinkId>> = HashMap::new();
    for (number, link) in topology.links().iter().enumerate().rev() {
        let key = (link.src, link.dst, link.bandwidth, link.latency);
        found.entry(key).or_default().push(LinkId::from(number));
    }
    let links = topology.links().iter();
    links
        .map(|link| {
            let back = (link.dst, link.src, link.bandwidth, link.latency);
            found.get_mut(&back)?.pop()
        })
        .collect()
}

/// Returns the trees that sum over the links that lead back.
pub(super) fn mirrored(copies: &Packing, twins: &[LinkId]) -> Packing {
    let mut sums = copies.clone();
    sums.turned = !copies.turned;
    for way in &mut sums.set.ways {
        for link in way {
            *link = twins[link.index()];
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{TopologyBuilder, build};
    use crate::units::{Bandwidth, Time};

    fn gigabyte() -> Bandwidth {
        Bandwidth::from_bytes_per_second(1_000_000_000).expect("positive")
    }

    #[test]
    fn every_link_has_the_one_that_leads_back() {
        let mesh = build::mesh(&[3, 4], gigabyte(), Time::from_ns(7)).expect("a mesh");
        let found = twins(&mesh).expect("twins");
        for (link, &twin) in mesh.links().iter().zip(&found) {
            let back = mesh.link(twin);
            assert_eq!((back.src, back.dst), (link.dst, link.src));
            assert_eq!(
                (back.bandwidth, back.latency),
                (link.bandwidth, link.latency)
            );
        }
        let mut all: Vec<usize> = found.iter().map(|link| link.index()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..mesh.links().len()).collect::<Vec<_>>());
    }

    #[test]
    fn several_links_between_two_have_a_twin_each() {
        let mut builder = TopologyBuilder::new("two");
        let (a, b) = (builder.npu("a"), builder.npu("b"));
        for (src, dst) in [(a, b), (a, b), (b, a), (b, a)] {
            builder.link(src, dst, gigabyte(), Time::ZERO);
        }
        let found = twins(&builder.finish().expect("a network")).expect("twins");
        let mut all: Vec<usize> = found.iter().map(|link| link.index()).collect();
        assert!(all[..2].iter().all(|&twin| twin >= 2));
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
    }

    #[test]
    fn one_way_unlike_ways_and_limits_have_none() {
        let one_way = build::ring(4, gigabyte(), Time::ZERO, build::RingWays::One).expect("a ring");
        assert_eq!(twins(&one_way), None);
        let limited = build::switch(4, gigabyte(), Time::ZERO, Some(gigabyte())).expect("a switch");
        assert_eq!(twins(&limited), None);
        let mut builder = TopologyBuilder::new("unlike");
        let (a, b) = (builder.npu("a"), builder.npu("b"));
        builder.link(a, b, gigabyte(), Time::ZERO);
        builder.link(b, a, gigabyte(), Time::from_ns(1));
        assert_eq!(twins(&builder.finish().expect("a network")), None);
    }
}

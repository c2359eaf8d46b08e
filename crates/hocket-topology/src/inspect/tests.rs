//! Closed forms, and a brute-force oracle for what has none.

use super::*;
use crate::id::{LinkId, narrow};
use crate::units::Seed;
use crate::{Dimension, DimensionKind, TopologyBuilder, build};

const WIDE: u64 = 1_000;
const LATENCY: Time = Time::from_ns(3);

fn bw(bytes: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(bytes).expect("positive")
}

/// Links across the halves, each way.
fn crossing(topology: &Topology) -> u128 {
    let bisection = topology.inspect().bisection.expect("two NPUs");
    assert_eq!(bisection.is_minimum, topology.npu_count() <= 16);
    assert_eq!(bisection.bytes_per_second % u128::from(WIDE), 0);
    bisection.bytes_per_second / u128::from(WIDE)
}

/// Without its dimensions, so that nothing is read off them.
fn forgotten(topology: &Topology) -> Topology {
    let mut builder = TopologyBuilder::new(topology.name());
    builder.npus(topology.npu_count());
    for i in topology.npu_count()..topology.device_count() {
        builder.switch(format!("sw{i}"), topology.devices()[i].limit);
    }
    for link in topology.links() {
        builder.link(link.src, link.dst, link.bandwidth, link.latency);
    }
    builder.finish().unwrap()
}

#[test]
fn diameters() {
    let cases = [
        (build::mesh(&[4, 5, 2], bw(WIDE), LATENCY), 3 + 4 + 1),
        (build::torus(&[4, 5, 2], bw(WIDE), LATENCY), 2 + 2 + 1),
        (build::torus(&[9, 9], bw(WIDE), LATENCY), 8),
        (build::hypercube(7, bw(WIDE), LATENCY), 7),
        (build::line(70, bw(WIDE), LATENCY), 69),
        (build::switch(70, bw(WIDE), LATENCY, None), 2),
        (build::ring(9, bw(WIDE), LATENCY, build::RingWays::One), 8),
        (build::fat_tree(6, bw(WIDE), LATENCY), 6),
    ];
    for (topology, hops) in cases {
        let topology = topology.unwrap();
        for topology in [forgotten(&topology), topology] {
            let found = topology.inspect();
            assert!(found.connected);
            assert_eq!(found.diameter_hops, Some(hops), "{}", topology.name());
            let latency = Time::from_ns(3 * hops as u64);
            assert_eq!(found.diameter_latency, Some(latency));
        }
    }
}

#[test]
fn latencies_that_differ_are_searched() {
    let dimension = |kind, size, ns| Dimension {
        kind,
        size,
        bandwidth: bw(WIDE),
        latency: Time::from_ns(ns),
        offload: false,
    };
    let dimensions = [
        dimension(DimensionKind::Ring, 5, 1),
        dimension(DimensionKind::Switch, 3, 10),
        dimension(DimensionKind::Line, 4, 100),
    ];
    let topology = build::product(&dimensions).unwrap();
    for topology in [forgotten(&topology), topology] {
        let found = topology.inspect();
        assert_eq!(found.diameter_hops, Some(2 + 2 + 3));
        assert_eq!(found.diameter_latency, Some(Time::from_ns(2 + 20 + 300)));
    }
}

#[test]
fn counts_and_degrees() {
    let topology = build::mesh(&[3, 3], bw(WIDE), LATENCY).unwrap();
    let found = topology.inspect();
    assert_eq!((found.npus, found.switches, found.links), (9, 0, 24));
    assert_eq!(found.out_degree, Range { min: 2, max: 4 });
    assert_eq!(found.in_degree, found.out_degree);
    assert_eq!(found.total_bandwidth, 24_000);
    let (min, max) = (bw(WIDE), bw(WIDE));
    assert_eq!(found.link_bandwidth, Some(Range { min, max }));
}

#[test]
fn unreachable_pairs_are_named() {
    let ring = build::ring(5, bw(WIDE), LATENCY, build::RingWays::One).unwrap();
    let broken = ring.without(&[], &[LinkId(2)]).unwrap();
    let found = broken.inspect();
    assert!(!found.connected);
    assert_eq!(
        found.unreachable,
        Some(("npu0".to_owned(), "npu3".to_owned()))
    );
    assert_eq!((found.diameter_hops, found.diameter_latency), (None, None));
    assert_eq!(found.bisection.map(|b| b.bytes_per_second), Some(0));
}

#[test]
fn small_bisections() {
    let built = |topology: Result<Topology, _>| crossing(&topology.unwrap());
    for n in 3..10 {
        assert_eq!(built(build::line(n, bw(WIDE), LATENCY)), 1);
        assert_eq!(
            built(build::ring(n, bw(WIDE), LATENCY, build::RingWays::Both)),
            2
        );
        assert_eq!(
            built(build::ring(n, bw(WIDE), LATENCY, build::RingWays::One)),
            1
        );
        let (low, high) = (n / 2, n.div_ceil(2));
        assert_eq!(
            built(build::fully_connected(n, bw(WIDE), LATENCY)),
            u128::from(low * high)
        );
        assert_eq!(
            built(build::switch(n, bw(WIDE), LATENCY, None)),
            u128::from(low)
        );
    }
    assert_eq!(
        built(build::switch(8, bw(WIDE), LATENCY, Some(bw(3 * WIDE)))),
        3
    );
    assert_eq!(built(build::mesh(&[4, 3], bw(WIDE), LATENCY)), 3);
    assert_eq!(built(build::torus(&[4, 4], bw(WIDE), LATENCY)), 8);
    assert_eq!(built(build::hypercube(4, bw(WIDE), LATENCY)), 8);
    assert_eq!(built(build::fat_tree(4, bw(WIDE), LATENCY)), 8);
}

#[test]
fn larger_bisections_reach_the_closed_forms() {
    let cases = [
        (
            build::ring(100, bw(WIDE), LATENCY, build::RingWays::Both),
            2,
        ),
        (build::mesh(&[8, 6], bw(WIDE), LATENCY), 6),
        (build::torus(&[6, 10], bw(WIDE), LATENCY), 12),
        (build::torus(&[4, 4, 4], bw(WIDE), LATENCY), 32),
        (build::hypercube(6, bw(WIDE), LATENCY), 32),
        (build::fully_connected(20, bw(WIDE), LATENCY), 100),
        (build::switch(20, bw(WIDE), LATENCY, None), 10),
        (build::fat_tree(6, bw(WIDE), LATENCY), 27),
    ];
    for (topology, links) in cases {
        let topology = topology.unwrap();
        assert_eq!(crossing(&topology), links, "{}", topology.name());
        assert_eq!(
            crossing(&forgotten(&topology)),
            links,
            "{}",
            topology.name()
        );
    }
}

#[test]
fn brute_force_over_devices_agrees() {
    let mut seed = Seed(11);
    for _ in 0..30 {
        let (npus, switches) = (2 + seed.below(5), seed.below(4));
        let mut builder = TopologyBuilder::new("random");
        builder.npus(npus);
        for i in 0..switches {
            builder.switch(format!("sw{i}"), None);
        }
        for _ in 0..20 {
            let (a, b) = (seed.below(npus + switches), seed.below(npus + switches));
            if a != b {
                let bandwidth = bw(1 + seed.next_u64() % 9);
                builder.link(DeviceId::from(a), DeviceId::from(b), bandwidth, LATENCY);
            }
        }
        let topology = builder.finish().unwrap();
        let found = topology.inspect().bisection.expect("two NPUs");
        assert_eq!(found.bytes_per_second, brute_force(&topology));
    }
}

/// The least bandwidth that leaves a set of devices with half the NPUs, over all such sets.
fn brute_force(topology: &Topology) -> u128 {
    let n = narrow(topology.npu_count());
    let inside = |set: u32, device: DeviceId| set >> device.0 & 1 == 1;
    let leaving = |set: u32| {
        let links = topology.links().iter();
        let crossing = links.filter(|link| inside(set, link.src) && !inside(set, link.dst));
        crossing
            .map(|link| u128::from(link.bandwidth.bytes_per_second()))
            .sum()
    };
    (0u32..1 << topology.device_count())
        .filter(|set| {
            let npus = (set & ((1 << n) - 1)).count_ones();
            npus == n / 2 || npus == n.div_ceil(2)
        })
        .map(leaving)
        .min()
        .unwrap_or(0)
}

#[test]
fn detours_are_pairs_that_only_npus_join() {
    let pair = |src, dst| (NpuId(src), NpuId(dst));
    let every: Vec<_> = (0..4)
        .flat_map(|src| (0..4).map(move |dst| pair(src, dst)))
        .collect();
    let ring = build::ring(4, bw(WIDE), LATENCY, build::RingWays::One).unwrap();
    let next = |&(src, dst): &(NpuId, NpuId)| src != dst && (src.0 + 1) % 4 != dst.0;
    let far: Vec<_> = every.iter().copied().filter(next).collect();
    assert_eq!(ring.detours(&every), far);
    let star = build::switch(4, bw(WIDE), LATENCY, None).unwrap();
    assert_eq!(star.detours(&every), []);
}

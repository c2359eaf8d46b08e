//! Switches unwound, and costs in whole slots.

use super::*;
use crate::id::narrow;
use crate::topology::Switching;
use crate::topology::build::Clos;

fn pairs(network: &UnwoundNetwork) -> Vec<(u32, u32)> {
    let mut pairs: Vec<_> = network.edges().iter().map(|e| (e.src.0, e.dst.0)).collect();
    pairs.sort_unstable();
    pairs
}

fn timings(topology: &Topology, unwinding: Unwinding, bytes: u64) -> (UnwoundNetwork, Vec<Timing>) {
    let network = UnwoundNetwork::new(topology, &[unwinding]);
    let timings = network.timings(topology, bytes, LatencyModel::Overlapped);
    (network, timings)
}

/// TACOS, Fig. 10: four NPUs below a switch of 120 GB/s.
#[test]
fn degree_d_gives_each_npu_d_edges_of_a_dth_of_the_bandwidth() {
    let topology = build::switch(4, gb_per_s(120), Time::ZERO, None).expect("a switch");
    let topology = topology.with_switching(Switching::CutThrough);
    let cases = [
        (Unwinding::Degree(1), vec![1], 1),
        (Unwinding::BothWays, vec![1, 3], 2),
        (Unwinding::Degree(2), vec![1, 2], 2),
        (Unwinding::Degree(3), vec![1, 2, 3], 3),
        (Unwinding::Degree(9), vec![1, 2, 3], 3),
        (Unwinding::Max, vec![1, 2, 3], 3),
    ];
    for (unwinding, offsets, degree) in cases {
        let (network, timings) = timings(&topology, unwinding, 120_000);
        let mut expected: Vec<(u32, u32)> = (0..4)
            .flat_map(|npu| offsets.iter().map(move |offset| (npu, (npu + offset) % 4)))
            .collect();
        expected.sort_unstable();
        assert_eq!(pairs(&network), expected, "{unwinding}");
        for timing in timings {
            assert_eq!(
                (timing.delay, timing.occupied),
                (degree * 1_000_000, degree * 1_000_000)
            );
        }
        for npu in 0..4 {
            assert_eq!(network.out_edges(npu).len() as u64, degree);
            assert_eq!(network.in_edges(npu).len() as u64, degree);
        }
    }
}

#[test]
fn stored_and_forwarded_a_chunk_is_sent_on_every_link() {
    let topology = build::switch(4, gb_per_s(100), Time::from_ns(300), None).expect("a switch");
    let topology = topology.with_switching(Switching::StoreAndForward);
    let (_, found) = timings(&topology, Unwinding::Degree(2), 100_000);
    for timing in found {
        assert_eq!((timing.delay, timing.occupied), (4_600_000, 2_000_000));
    }
}

/// A chunk of 100 us on a link and 200 us at the limit, which as many edges share as links do.
#[test]
fn a_switch_with_a_limit_of_its_own_is_passed_like_a_link() {
    for (npus, unwinding, share) in [(2, Unwinding::Degree(1), 2), (4, Unwinding::Degree(2), 8)] {
        let mut builder = TopologyBuilder::new("limited");
        builder.npus(npus);
        let switch = builder.switch("s", Some(gb_per_s(5)));
        for npu in 0..narrow(npus) {
            builder.both_ways(DeviceId(npu), switch, gb_per_s(10), Time::from_ns(300));
        }
        let topology = builder.finish().expect("valid");
        let degree = share / npus as u64;
        for (switching, delay) in [
            (Switching::StoreAndForward, 200 * degree + 200 * share),
            (Switching::CutThrough, 200 * share),
        ] {
            let topology = topology.clone().with_switching(switching);
            let (_, found) = timings(&topology, unwinding, 1_000_000);
            for timing in found {
                assert_eq!(timing.delay, delay * 1_000_000 + 600_000, "{switching:?}");
                assert_eq!(timing.occupied, 200 * share * 1_000_000);
            }
        }
    }
}

#[test]
fn every_plane_has_edges_of_its_own() {
    let mut builder = TopologyBuilder::new("two planes");
    builder.npus(4);
    for plane in 0..2 {
        let switch = builder.switch(format!("plane{plane}"), None);
        for npu in 0..4 {
            builder.both_ways(DeviceId(npu), switch, gb_per_s(100), Time::ZERO);
        }
    }
    let topology = builder.finish().expect("valid");
    let (network, found) = timings(&topology, Unwinding::Degree(1), 100_000);
    let twice: Vec<(u32, u32)> = (0..4).flat_map(|i| [(i, (i + 1) % 4); 2]).collect();
    let mut twice = twice;
    twice.sort_unstable();
    assert_eq!(pairs(&network), twice);
    assert!(found.iter().all(|timing| timing.occupied == 1_000_000));
    let mut links: Vec<_> = (0..8)
        .flat_map(|edge| network.path(edge).to_vec())
        .collect();
    links.sort_unstable();
    links.dedup();
    assert_eq!(links.len(), 16, "no link is shared");
}

/// Two hosts below each ToR, one spine whose links are as fast as one host's.
#[test]
fn edges_share_the_links_between_switches() {
    let clos = Clos {
        spines: 1,
        tors: 2,
        hosts_per_tor: 2,
        host_bandwidth: gb_per_s(100),
        bandwidth: gb_per_s(100),
        latency: Time::ZERO,
    };
    let topology = clos.build().expect("a Clos");
    // All to all: each host's link carries 3, each uplink 2 hosts x 2 others.
    let (network, found) = timings(&topology, Unwinding::Max, 100_000);
    for (edge, timing) in (0..).zip(&found) {
        let share = if network.path(edge).len() == 4 { 4 } else { 3 };
        assert_eq!(
            timing.occupied,
            share * 1_000_000,
            "{:?}",
            network.path(edge)
        );
    }
    // In a circle one edge of each ToR goes up, over two spines as over one.
    let (_, found) = timings(&topology, Unwinding::Degree(1), 100_000);
    assert!(found.iter().all(|timing| timing.occupied == 1_000_000));
}

#[test]
fn slots_are_never_shorter_and_their_timetables_hold() {
    let mut builder = TopologyBuilder::new("uneven");
    builder.npus(4);
    for (a, b, gigabytes, ns) in [(0, 1, 7, 20), (1, 2, 13, 700), (2, 3, 50, 0), (3, 0, 3, 90)] {
        let latency = Time::from_ns(ns);
        builder.both_ways(DeviceId(a), DeviceId(b), gb_per_s(gigabytes), latency);
    }
    let topology = builder.finish().expect("valid");
    for kind in [
        CollectiveKind::AllGather,
        CollectiveKind::ReduceScatter,
        CollectiveKind::AllToAll,
    ] {
        let exact = problem(&topology, kind, 10_007, None);
        for factor in [1, 999, 700_000, 5_000_000] {
            let slotted = exact.discretised(factor).expect("short slots");
            let times = [
                (exact.sum_times(), slotted.sum_times()),
                (exact.copy_times(), slotted.copy_times()),
            ];
            for (exact, slotted) in times {
                for (exact, slotted) in exact.iter().zip(slotted) {
                    assert!(slotted.delay >= exact.delay && slotted.delay < exact.delay + factor);
                    assert!(slotted.occupied >= exact.occupied);
                    assert_eq!(
                        (slotted.delay % factor, slotted.occupied),
                        (0, slotted.delay)
                    );
                }
            }
            let found = greedy(&slotted);
            assert!(slotted.least() >= exact.least() && found.end() >= slotted.least());
            let (sums, copies) = (found.sums.sends.clone(), found.copies.sends.clone());
            let again = exact.timetables(sums, copies).expect("it holds as well");
            assert!(again.end() <= found.end());
        }
    }
}

#[test]
fn slots_that_no_time_is_told_in_are_refused() {
    let topology = undirected(3, &[(0, 1), (1, 2)]);
    let exact = problem(&topology, CollectiveKind::AllGather, 1_000, None);
    assert!(exact.discretised(1 << 50).is_ok());
    for factor in [1 << 62, u64::MAX] {
        let refused = exact.discretised(factor).err();
        assert_eq!(refused, Some(crate::plan::PlanError::TooLong), "{factor}");
    }
}

#[test]
fn what_makes_no_problem_is_refused() {
    let topology = undirected(3, &[(0, 1), (1, 2)]);
    let collective = Collective::among_all(CollectiveKind::AllReduce, &topology, 1_000).unwrap();
    let made = |pieces| {
        let unwinding = [Unwinding::Max];
        let latency = LatencyModel::Overlapped;
        Problem::new(&topology, &collective, pieces, &unwinding, latency, MEMORY)
    };
    let Err(none) = made(0) else {
        panic!("0 chunks");
    };
    let none = none.to_string();
    assert!(none.contains("0 chunks asked for"), "{none}");
}

//! Equal paths against every path there is, and what spreading over them does to plans.

use std::sync::Arc;

use hocket_core::algorithms::{self, Algorithm, PlanOptions};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::id::{DeviceId, LinkId, NpuId, TransferId};
use hocket_core::plan::{Plan, Routing};
use hocket_core::progress::Silent;
use hocket_core::simulate::{FlowOptions, PacketOptions, simulate_flows, simulate_packets};
use hocket_core::topology::equal::EqualPaths;
use hocket_core::topology::{Topology, TopologyBuilder};
use hocket_core::units::{Bandwidth, Seed, Time};
use hocket_core::verify::{Verified, verify};
use proptest::prelude::*;

use super::networks;

/// Up to 5 NPUs and 5 switches, joined both ways at random, most links alike.
fn network() -> impl Strategy<Value = Topology> {
    (2usize..6, 1usize..6, 0usize..10, any::<u64>()).prop_map(|(npus, switches, more, seed)| {
        let mut seed = Seed(seed);
        let kinds = 1 + seed.below(2);
        let mut builder = TopologyBuilder::new("random");
        builder.npus(npus);
        for i in 0..switches {
            let limit = (seed.below(8) == 0).then(|| rate(2));
            builder.switch(format!("switch{i}"), limit);
        }
        let mut join = |a: usize, b: usize, kind: usize| {
            let (a, b) = (DeviceId::from(a), DeviceId::from(b));
            builder.both_ways(a, b, rate(1 + kind as u64), Time::from_ns(100));
        };
        let devices = npus + switches;
        for i in 1..devices {
            join(i, seed.below(i), seed.below(kinds));
        }
        for _ in 0..more {
            let a = seed.below(devices);
            join(
                a,
                (a + 1 + seed.below(devices - 1)) % devices,
                seed.below(kinds),
            );
        }
        builder.finish().expect("a network")
    })
}

fn rate(gigabytes: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(gigabytes * 1_000_000_000).expect("positive")
}

/// Every path without a circle, with its time, by depth-first search.
fn all_paths(topology: &Topology, src: NpuId, dst: NpuId, bytes: u64) -> Vec<(Time, Vec<LinkId>)> {
    let mut found = Vec::new();
    let mut open = vec![(src.device(), Time::ZERO, Vec::new())];
    while let Some((device, time, path)) = open.pop() {
        if device == dst.device() {
            found.push((time, path));
            continue;
        }
        for &id in topology.out_links(device) {
            let link = topology.link(id);
            let is_old = |&other: &LinkId| topology.link(other).src == link.dst;
            if path.iter().any(is_old) || link.dst == device {
                continue;
            }
            let crossing = topology.device(link.dst).limit;
            let crossing = crossing.map_or(Time::ZERO, |limit| limit.transmission(bytes));
            let after = time + link.latency + link.bandwidth.transmission(bytes) + crossing;
            let mut longer = path.clone();
            longer.push(id);
            open.push((link.dst, after, longer));
        }
    }
    found
}

/// The shortest by time, then by hops, that pass no NPU.
fn equal_by_search(topology: &Topology, src: NpuId, dst: NpuId, bytes: u64) -> Vec<Vec<LinkId>> {
    let all = all_paths(topology, src, dst, bytes);
    let best = all.iter().map(|(time, path)| (*time, path.len())).min();
    let is_best = |(time, path): &(Time, Vec<LinkId>)| Some((*time, path.len())) == best;
    let over_switches = |path: &Vec<LinkId>| {
        let between = path[..path.len() - 1].iter();
        between
            .copied()
            .all(|link| !topology.is_npu(topology.link(link).dst))
    };
    let best = all.into_iter().filter(is_best).map(|(_, path)| path);
    let mut best: Vec<Vec<LinkId>> = best.filter(over_switches).collect();
    best.sort_unstable();
    best
}

fn pairs(topology: &Topology) -> Vec<(NpuId, NpuId)> {
    let npus = || topology.npus();
    let all = npus().flat_map(|src| npus().map(move |dst| (src, dst)));
    all.filter(|(src, dst)| src != dst).collect()
}

fn clos(spines: u32, tors: u32, hosts: u32) -> Topology {
    use hocket_core::topology::build::Clos;
    Clos {
        spines,
        tors,
        hosts_per_tor: hosts,
        host_bandwidth: rate(1),
        bandwidth: rate(1),
        latency: Time::from_ns(100),
    }
    .build()
    .expect("a Clos")
}

fn all_to_all(topology: &Topology, size: u64, routing: Routing) -> Plan {
    let collective = Collective::among_all(CollectiveKind::AllToAll, topology, size);
    let options = PlanOptions {
        routing,
        ..PlanOptions::new(Algorithm::Direct)
    };
    algorithms::plan(topology, &collective.expect("one"), &options, &mut Silent)
        .expect("it applies")
}

fn proved(plan: Plan, topology: &Topology) -> Verified {
    let (plan, topology) = (Arc::new(plan), Arc::new(topology.clone()));
    verify(plan, topology, &mut Silent).expect("the plan is right")
}

proptest! {
    #![proptest_config(networks::config())]

    #[test]
    fn equal_paths_are_those_that_a_search_of_all_finds(topology in network(), bytes in 1u64..100_000) {
        let pairs = pairs(&topology);
        let wanted = pairs.iter().map(|&(src, dst)| (src, dst, bytes));
        let equal = EqualPaths::of(&topology, wanted);
        for (src, dst) in pairs {
            let searched = equal_by_search(&topology, src, dst, bytes);
            let found: Vec<Vec<LinkId>> = match equal.between(&topology, src, dst, bytes) {
                None => Vec::new(),
                Some(set) => {
                    let path = |path| equal.links((src, dst), set, path).collect::<Vec<_>>();
                    let mut found: Vec<_> = (0..equal.count(set)).map(path).collect();
                    for (i, links) in found.iter().enumerate() {
                        let hops = 0..=links.len();
                        let by_hop: Vec<_> =
                            hops.map_while(|hop| equal.link((src, dst), set, i, hop)).collect();
                        prop_assert_eq!(&by_hop, links);
                    }
                    found.sort_unstable();
                    found
                }
            };
            if searched.len() < 2 {
                prop_assert!(found.is_empty());
            } else {
                prop_assert!(EqualPaths::may_exist(&topology));
                prop_assert_eq!(found, searched);
            }
        }
    }

    #[test]
    fn every_routing_keeps_transfers_and_takes_shortest_paths(topology in network(), seed in any::<u64>()) {
        let single = all_to_all(&topology, 60_000, Routing::Single);
        for routing in [Routing::Balanced, Routing::Ecmp(Seed(seed))] {
            let plan = all_to_all(&topology, 60_000, routing);
            prop_assert_eq!((plan.src(), plan.dst(), plan.wait()), (single.src(), single.dst(), single.wait()));
            prop_assert_eq!(&plan, &all_to_all(&topology, 60_000, routing));
            prop_assert_eq!(&plan.clone().routed(&topology, Routing::Single), &single);
            prop_assert_eq!(&single.clone().routed(&topology, routing), &plan);
            let (spread, alone) = (proved(plan, &topology), proved(single.clone(), &topology));
            for id in (0..single.len()).map(TransferId::from) {
                let time = |verified: &Verified| {
                    let links = verified.routes().links(verified.plan(), &topology, id);
                    let bytes = verified.plan().bytes(id);
                    links.iter().fold(Time::ZERO, |time, &id| {
                        let link = topology.link(id);
                        let limit = topology.device(link.dst).limit;
                        let limit = limit.map_or(Time::ZERO, |limit| limit.transmission(bytes));
                        time + link.latency + link.bandwidth.transmission(bytes) + limit
                    })
                };
                prop_assert_eq!(time(&spread), time(&alone));
            }
        }
    }

    #[test]
    fn sprayed_bytes_all_arrive(topology in network()) {
        let single = proved(all_to_all(&topology, 60_000, Routing::Single), &topology);
        let sprayed = proved(all_to_all(&topology, 60_000, Routing::Spray), &topology);
        let wanted: u64 = (0..single.plan().len())
            .map(|i| {
                let id = TransferId::from(i);
                single.plan().bytes(id) * single.routes().links(single.plan(), &topology, id).len() as u64
            })
            .sum();
        let flows = simulate_flows(&sprayed, &FlowOptions::default(), &mut Silent).expect("it ends");
        let options = PacketOptions {
            packet_bytes: 1_000,
            flit_bytes: 250,
            ..PacketOptions::default()
        };
        prop_assert_eq!(flows.links.iter().map(|link| link.bytes).sum::<u64>(), wanted);
        if let Ok(packets) = simulate_packets(&sprayed, &options, &mut Silent) {
            prop_assert_eq!(packets.links.iter().map(|link| link.bytes).sum::<u64>(), wanted);
        }
    }
}

/// Bytes over each link from a ToR to a spine, and back.
fn fabric_bytes(verified: &Verified) -> Vec<u64> {
    let topology = verified.topology();
    let run = simulate_flows(verified, &FlowOptions::default(), &mut Silent).expect("it ends");
    let ends = topology.links().iter().zip(&run.links);
    let across = ends.filter(|(link, _)| !topology.is_npu(link.src) && !topology.is_npu(link.dst));
    across.map(|(_, used)| used.bytes).collect()
}

#[test]
fn a_clos_is_used_evenly_by_balanced_and_sprayed_plans() {
    const MESSAGE: u64 = 100_000;
    let topology = clos(4, 4, 4);
    let bytes = |routing| {
        let plan = all_to_all(&topology, 16 * MESSAGE, routing);
        fabric_bytes(&proved(plan, &topology))
    };
    // 12 of 15 messages of each of 4 NPUs leave a ToR, over 4 spines.
    let even = 12 * MESSAGE;
    assert_eq!(bytes(Routing::Spray), [even; 32]);
    let balanced = bytes(Routing::Balanced);
    assert!(
        balanced.iter().all(|each| each.abs_diff(even) <= MESSAGE),
        "{balanced:?}"
    );
    for spine in 0..4 {
        // Links stand ToR by ToR, spine by spine, up before down.
        let up: u64 = balanced.iter().skip(2 * spine).step_by(8).sum();
        assert_eq!(up, 4 * even, "spine {spine}");
    }
    let single = bytes(Routing::Single);
    assert_eq!(single.iter().filter(|&&bytes| bytes == 0).count(), 24);
}

/// Hierarchical goes along the NPUs of a ToR and along the ToRs.
#[test]
fn hierarchical_on_a_clos_uses_its_spines_evenly() {
    for (spines, tors, hosts) in [
        (4, 4, 4),
        (2, 4, 4),
        (4, 8, 8),
        (3, 6, 4),
        (2, 1, 3),
        (2, 5, 1),
    ] {
        let topology = clos(spines, tors, hosts);
        let n = u64::from(tors * hosts);
        let size = 64_000 * n;
        for kind in [
            CollectiveKind::AllReduce,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllGather,
        ] {
            let collective = Collective::among_all(kind, &topology, size).expect("one");
            let options = PlanOptions {
                chunks: Some(8),
                ..PlanOptions::new(Algorithm::Hierarchical)
            };
            let plan = algorithms::plan(&topology, &collective, &options, &mut Silent);
            let verified = proved(plan.expect("it applies"), &topology);
            let bytes = fabric_bytes(&verified);
            let up = |spine: usize| -> u64 {
                bytes
                    .iter()
                    .skip(2 * spine)
                    .step_by(2 * spines as usize)
                    .sum()
            };
            // What an NPU owns after the first dimension goes to the other ToRs, and back.
            let owned = size / u64::from(hosts) * u64::from(tors - 1) / u64::from(tors);
            let passes = if kind == CollectiveKind::AllReduce {
                2
            } else {
                1
            };
            let all: u64 = (0..spines as usize).map(up).sum();
            assert_eq!(all, n * owned * passes, "{kind} on {}", topology.name());
            for spine in 0..spines as usize {
                let even = all / u64::from(spines);
                assert!(up(spine).abs_diff(even) * 20 <= even, "{bytes:?}");
            }
        }
    }
}

#[test]
fn networks_without_equal_paths_are_known_at_once() {
    use hocket_core::topology::build;
    let (rate, latency) = (rate(1), Time::from_ns(1));
    for topology in [
        build::mesh(&[5, 5], rate, latency),
        build::torus(&[4, 4, 4], rate, latency),
        build::switch(9, rate, latency, None),
        build::fully_connected(7, rate, latency),
    ] {
        assert!(!EqualPaths::may_exist(&topology.expect("a network")));
    }
    assert!(EqualPaths::may_exist(&clos(2, 2, 1)));
    assert!(!EqualPaths::may_exist(&clos(1, 3, 2)));
}

#[test]
fn names_of_routings_are_read_back() {
    for name in ["balanced", "single", "spray", "ecmp", "ecmp:7"] {
        assert_eq!(
            name.parse::<Routing>().expect("a routing").to_string(),
            name
        );
    }
    let wrong = "ecmp:x"
        .parse::<Routing>()
        .expect_err("no routing")
        .to_string();
    assert!(
        wrong.contains("ecmp:7") && wrong.contains("balanced"),
        "{wrong}"
    );
}

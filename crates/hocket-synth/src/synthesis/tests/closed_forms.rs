//! Times that are known on networks of a known shape.

use super::*;
use crate::collective::{Demand, NpuSet};
use crate::topology::{Dimension, DimensionKind};

/// One slot: 500 ns and 50,000 bytes at 100 GB/s.
const SLOT: u64 = 1_000_000;
const BYTES: u64 = 50_000;

fn mesh(sizes: &[u32]) -> Topology {
    build::mesh(sizes, gb_per_s(100), Time::from_ns(500)).expect("a mesh")
}

fn torus(sizes: &[u32]) -> Topology {
    build::torus(sizes, gb_per_s(100), Time::from_ns(500)).expect("a torus")
}

fn slots_of(topology: &Topology, kind: CollectiveKind, root: Option<u32>) -> u64 {
    let problem = problem(topology, kind, BYTES, root);
    let end = greedy(&problem).end();
    assert_eq!(end % SLOT, 0);
    assert!(end >= problem.least());
    end / SLOT
}

fn least_slots(topology: &Topology) -> u64 {
    let degree = topology
        .npus()
        .map(|npu| topology.in_links(npu.device()).len());
    let degree = degree.min().expect("an NPU") as u64;
    (topology.npu_count() as u64 - 1).div_ceil(degree)
}

#[test]
fn all_gather_fills_the_links_of_the_worst_npu() {
    let mut networks = vec![
        mesh(&[5, 5]),
        mesh(&[8, 8]),
        mesh(&[10, 10]),
        mesh(&[16, 16]),
        torus(&[4, 4, 4]),
        torus(&[10, 10]),
        torus(&[16, 16]),
    ];
    let latency = Time::from_ns(500);
    networks.extend([2, 3, 4, 5, 8, 9].map(|n| torus(&[n])));
    networks.extend((1..=6).map(|d| build::hypercube(d, gb_per_s(100), latency).expect("a cube")));
    networks.push(build::fully_connected(7, gb_per_s(100), latency).expect("a clique"));
    for topology in networks {
        for kind in [CollectiveKind::AllGather, CollectiveKind::ReduceScatter] {
            let found = slots_of(&topology, kind, None);
            assert_eq!(found, least_slots(&topology), "{} {kind}", topology.name());
        }
    }
}

#[test]
fn a_broadcast_takes_as_long_as_its_root_is_eccentric() {
    let cases = [
        (mesh(&[5, 5]), 0, 8),
        (mesh(&[5, 5]), 12, 4),
        (mesh(&[6, 6]), 1, 9),
        (torus(&[4, 4, 4]), 5, 6),
        (torus(&[9]), 3, 4),
    ];
    for (topology, root, hops) in cases {
        for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
            assert_eq!(
                slots_of(&topology, kind, Some(root)),
                hops,
                "{}",
                topology.name()
            );
        }
    }
}

fn line(size: u32, gigabytes: u64, ns: u64) -> Dimension {
    dimension(DimensionKind::Line, size, gigabytes, ns)
}

fn dimension(kind: DimensionKind, size: u32, gigabytes: u64, ns: u64) -> Dimension {
    Dimension {
        kind,
        size,
        bandwidth: gb_per_s(gigabytes),
        latency: Time::from_ns(ns),
        offload: false,
    }
}

/// A corner gets n x n - 1 chunks over a link that takes `fast` for each and one that takes `slow`.
#[test]
fn heterogeneous_meshes_meet_what_their_corners_allow() {
    for (n, bytes, ns) in [(10, 640_000, 452_200), (16, 250_000, 495_000)] {
        let topology = build::product(&[line(n, 100, 500), line(n, 50, 500)]).expect("a mesh");
        let problem = problem(&topology, CollectiveKind::AllGather, bytes, None);
        let times = greedy(&problem);
        assert_eq!(
            (times.end(), problem.least()),
            (ns * 1_000, ns * 1_000),
            "{n} x {n}"
        );
    }
}

#[test]
fn nodes_below_a_switch_are_as_fast_as_their_uplinks() {
    for nodes in [1, 2, 4, 8, 16] {
        let inside = [
            dimension(DimensionKind::Ring, 2, 200, 0),
            dimension(DimensionKind::FullyConnected, 4, 100, 0),
        ];
        let switch = dimension(DimensionKind::Switch, nodes, 50, 0);
        let dimensions = match nodes {
            1 => inside.to_vec(),
            _ => [&inside[..], &[switch]].concat(),
        };
        let topology = build::product(&dimensions).expect("a product");
        let problem = problem(&topology, CollectiveKind::AllGather, 1_000_000, None);
        let end = greedy(&problem).end();
        assert_eq!(end, 20_000_000 * u64::from(nodes), "{nodes} nodes");
    }
}

/// TACOS, Fig. 22(b): broadcast from NPU 2, reduce to NPU 17, all-gather, all on one 6 x 6 mesh.
#[test]
fn three_tenants_share_a_mesh() {
    let topology = mesh(&[6, 6]);
    let npus: Vec<NpuId> = topology.npus().collect();
    let demand = |reduced, holders, wanted| Demand {
        bytes: BYTES,
        reduced,
        holders,
        wanted,
    };
    let mut demands = vec![
        demand(false, NpuSet::One(NpuId(1)), NpuSet::All),
        demand(true, NpuSet::All, NpuSet::One(NpuId(16))),
    ];
    let gathered = npus
        .iter()
        .map(|&npu| demand(false, NpuSet::One(npu), NpuSet::All));
    demands.extend(gathered);
    let collective = Collective::custom(npus, demands).expect("a collective");
    let (none, latency) = ([Unwinding::Degree(1)], LatencyModel::Occupying);
    let problem = Problem::new(&topology, &collective, 1, &none, latency, MEMORY).expect("it fits");
    let times = greedy(&problem);
    let slots = times.end() as f64 / SLOT as f64;
    assert!((18.0..=18.9).contains(&slots), "{slots} slots");
    let plan = std::sync::Arc::new(problem.plan(GREEDY, &times));
    crate::verify::verify(plan, std::sync::Arc::new(topology), &mut Silent).expect("right");
}

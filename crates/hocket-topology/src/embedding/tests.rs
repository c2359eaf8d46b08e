//! Hamiltonian cycles wherever there is one, and speed that does not depend on luck.

use std::collections::HashSet;

use super::estimate::{Estimator, Shape};
use super::*;
use crate::id::DeviceId;
use crate::units::{Bandwidth, Seed, Time};
use crate::{Dimension, DimensionKind, TopologyBuilder, build};

fn bw(bytes: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(bytes).expect("positive")
}

const WIDE: u64 = 50_000_000_000;
const LATENCY: Time = Time::from_ns(700);

fn all(topology: &Topology) -> Vec<NpuId> {
    topology.npus().collect()
}

fn is_permutation(order: &[NpuId], npus: &[NpuId]) -> bool {
    let set: HashSet<NpuId> = order.iter().copied().collect();
    order.len() == npus.len() && npus.iter().all(|npu| set.contains(npu))
}

/// How many hops of the cycle are not along one link.
fn long_hops(topology: &Topology, order: &[NpuId]) -> usize {
    let ends = order.iter().zip(order.iter().cycle().skip(1));
    ends.filter(|(a, b)| topology.links_between(a.device(), b.device()).is_err())
        .count()
}

/// Messages that the busiest link carries, where all links are alike.
fn load(topology: &Topology, order: &[NpuId]) -> u64 {
    let estimate = Estimator::new(topology, order).estimate(order, Shape::Ring);
    estimate.load.as_ps() / bw(WIDE).transmission(estimate::MESSAGE).as_ps()
}

fn dgx1() -> Topology {
    let mut builder = TopologyBuilder::new("dgx1");
    builder.npus(8);
    let wide = [
        (0, 1),
        (0, 4),
        (1, 3),
        (2, 3),
        (2, 6),
        (4, 5),
        (5, 7),
        (6, 7),
    ];
    let narrow = [
        (0, 2),
        (0, 3),
        (1, 2),
        (1, 5),
        (3, 7),
        (4, 6),
        (4, 7),
        (5, 6),
    ];
    for (pairs, bandwidth) in [(wide, bw(WIDE)), (narrow, bw(WIDE / 2))] {
        for (a, b) in pairs {
            builder.both_ways(DeviceId(a), DeviceId(b), bandwidth, LATENCY);
        }
    }
    builder.finish().unwrap()
}

#[test]
fn dgx1_rings_keep_to_the_double_links() {
    let topology = dgx1();
    let order = ring_order(&topology, &all(&topology));
    let ids: Vec<u32> = order.iter().map(|npu| npu.0).collect();
    let found = ids == [0, 1, 3, 2, 6, 7, 5, 4] || ids == [0, 4, 5, 7, 6, 2, 3, 1];
    assert!(found, "{ids:?}");
}

#[test]
fn meshes_and_tori_have_cycles() {
    for x in 2..=7 {
        for y in 2..=7 {
            let mesh = build::mesh(&[x, y], bw(WIDE), LATENCY).unwrap();
            let torus = build::torus(&[x, y], bw(WIDE), LATENCY).unwrap();
            for (topology, odd) in [(mesh, x * y % 2 == 1), (torus, false)] {
                let order = ring_order(&topology, &all(&topology));
                assert!(is_permutation(&order, &all(&topology)));
                assert_eq!(
                    long_hops(&topology, &order),
                    usize::from(odd),
                    "{}",
                    topology.name()
                );
                assert_eq!(load(&topology, &order), 1, "{}", topology.name());
                assert_eq!(order[0], NpuId(0));
            }
        }
    }
}

#[test]
fn solids_have_cycles() {
    for sizes in [
        [2, 2, 2],
        [2, 3, 3],
        [3, 3, 3],
        [3, 4, 5],
        [3, 5, 3],
        [5, 3, 1],
        [4, 1, 1],
    ] {
        let mesh = build::mesh(&sizes, bw(WIDE), LATENCY).unwrap();
        let torus = build::torus(&sizes, bw(WIDE), LATENCY).unwrap();
        let order = ring_order(&torus, &all(&torus));
        assert!(is_permutation(&order, &all(&torus)));
        assert_eq!(long_hops(&torus, &order), 0, "{sizes:?}");
        let order = ring_order(&mesh, &all(&mesh));
        assert!(is_permutation(&order, &all(&mesh)));
        assert_eq!(load(&mesh, &order), 1, "{sizes:?}");
        if sizes[1] > 1 {
            let odd = sizes.iter().product::<u32>() % 2 == 1;
            assert_eq!(long_hops(&mesh, &order), usize::from(odd), "{sizes:?}");
        }
    }
}

#[test]
fn a_line_goes_there_and_back() {
    let line = build::line(7, bw(WIDE), LATENCY).unwrap();
    let ids: Vec<u32> = ring_order(&line, &all(&line))
        .iter()
        .map(|npu| npu.0)
        .collect();
    assert_eq!(ids, [0, 2, 4, 6, 5, 3, 1]);
}

#[test]
fn mixed_products_use_each_link_once() {
    let kinds = [
        DimensionKind::Ring,
        DimensionKind::Line,
        DimensionKind::FullyConnected,
        DimensionKind::Switch,
    ];
    for a in kinds {
        for b in kinds {
            for sizes in [[4, 3], [3, 5], [2, 6]] {
                let dimension = |kind, size| Dimension {
                    kind,
                    size,
                    bandwidth: bw(WIDE),
                    latency: LATENCY,
                    offload: false,
                };
                let topology =
                    build::product(&[dimension(a, sizes[0]), dimension(b, sizes[1])]).unwrap();
                let order = ring_order(&topology, &all(&topology));
                assert!(is_permutation(&order, &all(&topology)));
                assert_eq!(load(&topology, &order), 1, "{}", topology.name());
            }
        }
    }
}

#[test]
fn broken_meshes_have_cycles_where_the_colours_match() {
    // NPUs 9 and 22 have different colours of the chessboard.
    let whole = build::mesh(&[6, 6], bw(WIDE), LATENCY).unwrap();
    let broken = whole.without(&[DeviceId(9), DeviceId(22)], &[]).unwrap();
    let order = ring_order(&broken, &all(&broken));
    assert!(is_permutation(&order, &all(&broken)));
    assert_eq!(long_hops(&broken, &order), 0);
}

#[test]
fn large_broken_meshes_have_cycles_too() {
    let whole = build::mesh(&[32, 32], bw(WIDE), LATENCY).unwrap();
    for (gone, long) in [
        (vec![100, 501], 0),
        (vec![100], 1),
        (vec![40, 333, 701, 900], 0),
    ] {
        let gone: Vec<DeviceId> = gone.into_iter().map(DeviceId).collect();
        let broken = whole.without(&gone, &[]).unwrap();
        let order = ring_order(&broken, &all(&broken));
        assert!(is_permutation(&order, &all(&broken)));
        assert_eq!(long_hops(&broken, &order), long, "{gone:?}");
        assert_eq!(load(&broken, &order), 1, "{gone:?}");
    }
}

#[test]
fn a_dgx1_with_a_link_down_gets_a_ring_of_direct_links() {
    let whole = dgx1();
    let gone =
        [(0, 1), (1, 0)].map(|(a, b)| whole.links_between(DeviceId(a), DeviceId(b)).unwrap()[0]);
    let broken = whole.without(&[], &gone).unwrap();
    let order = ring_order(&broken, &all(&broken));
    assert!(is_permutation(&order, &all(&broken)));
    assert_eq!(long_hops(&broken, &order), 0);
}

#[test]
fn a_subset_is_ordered_too() {
    let topology = build::ring(12, bw(WIDE), LATENCY, build::RingWays::Both).unwrap();
    let npus: Vec<NpuId> = [7, 1, 10, 4].map(NpuId).to_vec();
    let order = ring_order(&topology, &npus);
    assert!(is_permutation(&order, &npus));
    assert_eq!(load(&topology, &order), 1);
    assert_eq!(order[0], NpuId(7));
}

#[test]
fn chains_start_where_told() {
    let line = build::line(7, bw(WIDE), LATENCY).unwrap();
    let ids = |order: Vec<NpuId>| order.iter().map(|npu| npu.0).collect::<Vec<u32>>();
    assert_eq!(
        ids(chain_order(&line, &all(&line), NpuId(6))),
        [6, 5, 4, 3, 2, 1, 0]
    );
    assert_eq!(ids(chain_order(&line, &all(&line), NpuId(2)))[0], 2);
    let mesh = build::mesh(&[3, 5], bw(WIDE), LATENCY).unwrap();
    for corner in [0, 2, 12, 14].map(NpuId) {
        let order = chain_order(&mesh, &all(&mesh), corner);
        assert!(is_permutation(&order, &all(&mesh)));
        assert_eq!(order[0], corner);
        let joined = |pair: &[NpuId]| {
            mesh.links_between(pair[0].device(), pair[1].device())
                .is_ok()
        };
        assert!(order.windows(2).all(joined));
    }
    let topology = dgx1();
    for first in topology.npus() {
        let order = chain_order(&topology, &all(&topology), first);
        assert!(is_permutation(&order, &all(&topology)));
        assert_eq!(order[0], first);
        assert_eq!(load(&topology, &order), 1);
    }
}

#[test]
fn random_networks_get_an_order() {
    let mut seed = Seed(3);
    for n in [3usize, 5, 8, 20, 60] {
        let mut builder = TopologyBuilder::new("random");
        builder.npus(n);
        for i in 1..n {
            let (a, b) = (DeviceId::from(i), DeviceId::from(seed.below(i)));
            builder.both_ways(a, b, bw(1 + seed.next_u64() % WIDE), LATENCY);
        }
        let topology = builder.finish().unwrap();
        let order = ring_order(&topology, &all(&topology));
        assert!(is_permutation(&order, &all(&topology)));
        assert_eq!(order, ring_order(&topology, &all(&topology)));
    }
}

#[test]
fn nothing_joined_still_gives_an_order() {
    let mut builder = TopologyBuilder::new("apart");
    builder.npus(4);
    let topology = builder.finish().unwrap();
    assert!(is_permutation(
        &ring_order(&topology, &all(&topology)),
        &all(&topology)
    ));
}

/// No ring keeps to the widest pairs (a switch's uplinks are narrower), so merging kicks and takes kicks
/// back many times; every state in between is a cover.
#[test]
fn products_with_a_narrow_switch_get_an_order() {
    let dimension = |kind, size, bandwidth| Dimension {
        kind,
        size,
        bandwidth: bw(bandwidth),
        latency: LATENCY,
        offload: false,
    };
    for sizes in [[2, 8, 4], [2, 5, 3], [3, 4, 4], [2, 2, 8]] {
        let topology = build::product(&[
            dimension(DimensionKind::Ring, sizes[0], 4 * WIDE),
            dimension(DimensionKind::FullyConnected, sizes[1], 2 * WIDE),
            dimension(DimensionKind::Switch, sizes[2], WIDE),
        ])
        .unwrap();
        let order = ring_order(&topology, &all(&topology));
        assert!(is_permutation(&order, &all(&topology)));
    }
}

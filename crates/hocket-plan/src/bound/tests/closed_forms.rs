use super::*;
use crate::id::fit;
use crate::topology::Offload;
use CollectiveKind::*;

/// Picoseconds that 1 GB/s needs for a byte.
const PS: u64 = 1_000;

#[test]
fn the_end_of_a_chain_waits_for_the_first_byte_and_then_for_the_rest() {
    let topology = line(5, Time::from_ns(10));
    let bound = bound_of(&topology, Broadcast, 1_000);
    assert_eq!(bound.time.as_ps(), 4 * 10_000 + 1_000 * PS);
    assert_eq!(component(&bound, "latency").as_ps(), 40_000);
    let text = bound.witness.describe(&topology);
    assert_eq!(
        text,
        "ingress of npu4: 1 kB must enter over 1 GB/s, 40 ns away"
    );
}

#[test]
fn one_block_of_an_all_gather_enters_over_each_link_of_a_full_graph() {
    let topology = fully_connected(5, Time::from_ns(10));
    let bound = bound_of(&topology, AllGather, 5_000);
    assert_eq!(bound.time.as_ps(), 10_000 + 1_000 * PS);
    let bound = bound_of(&topology, AllToAll, 5_000);
    assert_eq!(bound.time.as_ps(), 10_000 + 1_000 * PS);
}

#[test]
fn data_needs_both_links_of_a_switch() {
    let topology = star(4, Time::from_ns(10), None);
    for kind in [AllGather, ReduceScatter, AllToAll] {
        let bound = bound_of(&topology, kind, 4_000);
        assert_eq!(bound.time.as_ps(), 20_000 + 3_000 * PS, "{kind}");
    }
}

#[test]
fn few_bytes_go_to_all_at_once_and_more_by_way_of_others() {
    let n: u64 = 8;
    for kind in [Broadcast, Reduce, AllReduce] {
        let topology = star(fit(n), Time::from_ns(500), None);
        let way = 1_000_000;
        for size in [1, 10, 100] {
            let bound = bound_of(&topology, kind, size);
            let direct = way + (n - 1) * size * PS;
            assert_eq!(
                component(&bound, "fan-out").as_ps(),
                direct,
                "{kind}, {size}"
            );
        }
        for size in [700, 7_000] {
            let bound = bound_of(&topology, kind, size);
            let relayed = 2 * way + size * PS - way / (n - 1);
            let found = component(&bound, "fan-out").as_ps();
            assert!(
                found.abs_diff(relayed) <= 1,
                "{kind}, {size}: {found} {relayed}"
            );
        }
    }
    let topology = star(4, Time::from_ns(500), None);
    let bound = bound_of(&topology, Broadcast, 6_000);
    assert_eq!(
        bound.witness.describe(&topology),
        "fan-out of npu0: 6 kB must leave over 1 GB/s for 3 others, of which a byte serves several no sooner than 2 us"
    );
    for kind in [AllToAll, Gather, Scatter, ReduceScatter] {
        let bound = bound_of(&topology, kind, 6_000);
        let plain = component(&bound, "ingress").max(component(&bound, "egress"));
        assert!(component(&bound, "fan-out") <= plain, "{kind}");
    }
}

/// As many nodes of one NPU, or of several behind a switch of their own, around a switch.
fn nodes(count: usize, npus: usize) -> Topology {
    uneven_nodes(count, npus, 1)
}

/// The same with another rate of the first node, in GB/s.
fn uneven_nodes(count: usize, npus: usize, first: u64) -> Topology {
    let mut builder = TopologyBuilder::new("nodes");
    builder.npus(count * npus);
    let middle = builder.switch("middle", None);
    for node in 0..count {
        let port = builder.switch(format!("port{node}"), None);
        let rate = if node == 0 { first } else { 1 };
        builder.both_ways(port, middle, gb_per_s(rate), Time::from_ns(400));
        for npu in node * npus..(node + 1) * npus {
            builder.both_ways(DeviceId::from(npu), port, gb_per_s(4), Time::from_ns(100));
        }
    }
    let groups = (0..count).map(|node| (node * npus..(node + 1) * npus).map(NpuId::from).collect());
    let topology = builder.finish().expect("valid");
    topology.with_groups(groups.collect()).expect("valid")
}

#[test]
fn nodes_send_on_what_has_come() {
    let way = 1_000_000;
    for (n, npus) in [(2, 1), (4, 1), (4, 3), (8, 2)] {
        for kind in [Broadcast, Reduce, AllReduce] {
            for size in [1, 100, 700, 7_000] {
                let topology = nodes(fit(n), npus);
                let at_once = way + (n - 1) * size * PS;
                let passed_on = ((n - 1) * size * PS + (2 * n - 1) * way) / n;
                let first_out = size * PS + (2 * (n - 1) - 1) * way / (n - 1);
                let is_alone = n == 2 || at_once <= 2 * way;
                let expected = if is_alone {
                    at_once
                } else {
                    passed_on.max(first_out)
                };
                let found = component(&bound_of(&topology, kind, size), "nodes").as_ps();
                assert_eq!(found, expected, "{kind} {n} {npus} {size}");
            }
        }
    }
    let bound = bound_of(&nodes(4, 2), Broadcast, 1_000);
    assert_eq!(
        bound.witness.describe(&nodes(4, 2)),
        "nodes: 1 kB must leave the node of npu0 over 1 GB/s for 3 other nodes, and what leaves it less than 2 us before the \
         end reaches one of them alone"
    );
    let bound = bound_of(&nodes(4, 2), Reduce, 1_000);
    assert_eq!(
        bound.witness.describe(&nodes(4, 2)),
        "nodes: 1 kB must enter the node of npu0 over 1 GB/s from 3 other nodes, and what enters it less than 2 us after the \
         start is of one of them alone"
    );
    // Where the node of the root has links to spare, what others send on is what counts.
    let wide = uneven_nodes(4, 2, 2);
    let bound = bound_of(&wide, Broadcast, 1_000);
    assert_eq!(
        bound.witness.describe(&wide),
        "nodes: 1 kB must get from npu0 to each of 3 other nodes, 1 us away, over 5 GB/s of all nodes together, and others \
         send only what they have"
    );
    let plain = nodes(4, 2).with_groups(Vec::new()).expect("valid");
    assert_eq!(
        component(&bound_of(&plain, Broadcast, 700), "nodes"),
        Time::ZERO
    );
}

#[test]
fn many_npus_may_leave_nodes_without_participants() {
    let topology = nodes(40, 8);
    let npus = (0..288).map(NpuId).collect();
    let most = Collective::new(Broadcast, npus, 700, Some(Rank(0))).expect("valid");
    let options = BoundOptions::default();
    let found = component(&bound(&topology, &most, &options), "cut");
    // 700 B at 1 GB/s, from the root's port over the middle to any other NPU.
    assert_eq!(found.as_ps(), 700 * PS + 1_000_000);
    // A switch that sums is a node of its own.
    let middle = DeviceId::from(topology.npu_count());
    let sums = topology.with_offload(middle, Some(Offload::FULL));
    let found = bound_of(&sums.expect("a switch"), AllReduce, 700);
    assert!(component(&found, "cut").as_ps() >= 700 * PS + 1_000_000);
}

#[test]
fn switches_that_sum_or_multicast_need_two_trips_or_many_bytes() {
    let can = |all_reduces| Offload {
        all_reduces,
        ..Offload::FULL
    };
    let with = |all_reduces| {
        let switch = DeviceId(8);
        let star = star(8, Time::from_ns(500), None);
        star.with_offload(switch, Some(can(all_reduces)))
            .expect("a switch")
    };
    let (n, way) = (8, 1_000_000);
    for size in [1, 100, 700, 7_000] {
        let one = way + (n - 1) * size * PS / 2;
        let two = ((n - 1) * size * PS + (2 * n - 2) * way) / n;
        let expected = if one <= 2 * way { one } else { two };
        let found = component(&bound_of(&with(false), AllReduce, size), "one-trip").as_ps();
        assert!(found.abs_diff(expected) <= 1, "{size}: {found} {expected}");
        for other in [with(true), star(8, Time::from_ns(500), None)] {
            assert_eq!(
                component(&bound_of(&other, AllReduce, size), "one-trip"),
                Time::ZERO
            );
        }
        for kind in [Broadcast, AllGather, Reduce, ReduceScatter] {
            assert_eq!(
                component(&bound_of(&with(false), kind, size), "one-trip"),
                Time::ZERO
            );
        }
    }
    // What one of two switches in a row has summed, the other may multicast.
    let mut builder = TopologyBuilder::new("row");
    builder.npus(4);
    let switches = [0, 1].map(|i| builder.switch(format!("switch{i}"), None));
    builder.both_ways(switches[0], switches[1], gb_per_s(1), Time::ZERO);
    for npu in 0..4 {
        builder.both_ways(
            DeviceId(npu),
            switches[npu as usize / 2],
            gb_per_s(1),
            Time::from_ns(500),
        );
    }
    let mut row = builder.finish().expect("valid");
    for switch in switches {
        row = row
            .with_offload(switch, Some(can(false)))
            .expect("a switch");
    }
    assert_eq!(
        component(&bound_of(&row, AllReduce, 700), "one-trip"),
        Time::ZERO
    );
}

#[test]
fn no_way_is_said() {
    let mut builder = TopologyBuilder::new("apart");
    builder.npus(3);
    builder.both_ways(DeviceId(0), DeviceId(1), gb_per_s(1), Time::ZERO);
    let topology = builder.finish().expect("valid");
    let bound = bound_of(&topology, AllReduce, 1);
    assert_eq!(bound.time, Time::MAX);
    let text = bound.witness.describe(&topology);
    assert_eq!(text, "there is no way from npu2 to npu0");
}

/// Floor of bytes / (1 GB/s x links) in picoseconds.
fn over(bytes: u64, links: u64) -> u64 {
    bytes * PS / links
}

#[test]
fn all_reduce_on_rings_takes_what_the_ring_algorithm_takes() {
    for n in 3..20 {
        let topology = ring(n, Time::ZERO);
        let bound = bound_of(&topology, AllReduce, 1_000 * u64::from(n));
        let expected = over(2 * u64::from(n - 1) * 1_000, 2);
        assert_eq!(bound.time.as_ps(), expected, "{n}");
        assert!(bound.exact_partition && bound.exact_cut);
        assert!(
            matches!(&bound.witness, Witness::Partition { parts, .. } if parts.len() == n as usize)
        );
    }
}

#[test]
fn all_reduce_on_a_one_way_ring_is_never_below_the_bound() {
    let mut seed = Seed(11);
    for _ in 0..50 {
        let (n, latency) = (2 + seed.below(12), seed.below(3_000) as u64);
        let block = 1 + seed.below(100_000) as u64;
        let mut builder = TopologyBuilder::new("one way");
        builder.npus(n);
        for i in 0..n {
            let (src, dst) = (DeviceId::from(i), DeviceId::from((i + 1) % n));
            builder.link(src, dst, gb_per_s(1), Time::from_ps(latency));
        }
        let topology = builder.finish().expect("valid");
        let n = n as u64;
        let ring = 2 * (n - 1) * (latency + over(block, 1));
        let bound = bound_of(&topology, AllReduce, n * block);
        assert!(bound.time.as_ps() <= ring, "{} {ring}", bound.time.as_ps());
        // Without latency the ring is optimal.
        assert!(bound.time.as_ps() >= 2 * (n - 1) * over(block, 1));
        let gather = (n - 1) * (latency + over(block, 1));
        for kind in [AllGather, ReduceScatter] {
            let bound = bound_of(&topology, kind, n * block).time.as_ps();
            assert!(
                bound <= gather && bound >= (n - 1) * over(block, 1),
                "{kind}"
            );
        }
    }
}

#[test]
fn a_full_graph_needs_two_rounds_of_blocks() {
    let topology = fully_connected(6, Time::from_ns(5));
    let bound = bound_of(&topology, AllReduce, 6_000);
    assert_eq!(
        component(&bound, "partition").as_ps(),
        5_000 + 2 * over(1_000, 1)
    );
}

#[test]
fn a_mesh_is_bound_by_its_links_or_its_corners() {
    // 3 x 3: 24 directed links, 8 + 8 receptions; a corner has 2 links.
    let pairs: Vec<(u32, u32)> = (0..9)
        .flat_map(|i| [(i % 3 < 2, i + 1), (i < 6, i + 3)].map(|(is, j)| (is, (i, j))))
        .filter_map(|(is, pair)| is.then_some(pair))
        .collect();
    let topology = undirected(9, &pairs, Time::ZERO);
    let bound = bound_of(&topology, AllReduce, 9_000);
    assert_eq!(bound.time.as_ps(), over(16 * 9_000, 24));
    let gather = bound_of(&topology, AllGather, 9_000);
    assert_eq!(gather.time.as_ps(), over(8_000, 2));
    // All-to-all: rows of 3 and 6 NPUs, 18 blocks of 1 kB, 3 links.
    let exchange = bound_of(&topology, AllToAll, 9_000);
    assert_eq!(component(&exchange, "cut").as_ps(), over(18 * 1_000, 3));
    assert_eq!(
        component(&exchange, "traffic").as_ps(),
        over(9 * 8 * 2 * 1_000, 24)
    );
}

#[test]
fn two_groups_wait_for_the_slow_link() {
    let mut builder = TopologyBuilder::new("4 + 6");
    builder.npus(10);
    for (from, to) in [(0, 4), (4, 10)] {
        for i in from..to {
            for j in from..i {
                builder.both_ways(DeviceId(i), DeviceId(j), gb_per_s(100), Time::ZERO);
            }
        }
    }
    builder.both_ways(DeviceId(0), DeviceId(4), gb_per_s(1), Time::from_ns(30));
    let topology = builder.finish().expect("valid");
    let slow = |bytes: u64| 30_000 + over(bytes, 1);
    let gather = bound_of(&topology, AllGather, 10_000);
    assert_eq!(gather.time.as_ps(), slow(6_000));
    let text = gather.witness.describe(&topology);
    let expected = "cut {npu0, npu1, npu2, npu3}: 6 kB must enter over 1 GB/s";
    assert_eq!(text, expected);
    assert_eq!(
        bound_of(&topology, AllReduce, 10_000).time.as_ps(),
        slow(10_000)
    );
    assert_eq!(
        bound_of(&topology, Broadcast, 10_000).time.as_ps(),
        slow(10_000)
    );
    assert_eq!(
        bound_of(&topology, AllToAll, 10_000).time.as_ps(),
        slow(24_000)
    );
    let scatter = bound_of(&topology, Scatter, 10_000);
    assert_eq!(
        (scatter.time.as_ps(), scatter.exact_cut),
        (slow(6_000), true)
    );
}

#[test]
fn dgx1_all_reduce_uses_every_link() {
    // The hybrid cube mesh of a DGX-1 V100: six NVLinks of 25 GB/s a GPU, some in pairs.
    let mut builder = TopologyBuilder::new("dgx1");
    builder.npus(8);
    let double = [
        (0, 3),
        (0, 4),
        (1, 2),
        (1, 5),
        (2, 3),
        (4, 7),
        (5, 6),
        (6, 7),
    ];
    let single = [
        (0, 1),
        (0, 2),
        (1, 3),
        (2, 6),
        (3, 7),
        (4, 5),
        (4, 6),
        (5, 7),
    ];
    for (pairs, links) in [(double, 2), (single, 1)] {
        for (i, j) in pairs {
            for _ in 0..links {
                builder.both_ways(DeviceId(i), DeviceId(j), gb_per_s(25), Time::ZERO);
            }
        }
    }
    let topology = builder.finish().expect("valid");
    // 14 S over 48 links of 25 GB/s; every GPU has 150 GB/s in.
    let size = 256_000_000;
    let bound = bound_of(&topology, AllReduce, size);
    assert_eq!(bound.time.as_ps(), 14 * size * PS / (48 * 25));
    let bound = bound_of(&topology, AllGather, size);
    assert_eq!(bound.time.as_ps(), 7 * size / 8 * PS / 150);
}

#[test]
fn a_limited_switch_carries_everything_twice_for_an_all_reduce() {
    let topology = star(4, Time::ZERO, Some(gb_per_s(1)));
    let bound = bound_of(&topology, AllReduce, 4_000);
    assert_eq!(bound.time.as_ps(), over(2 * 3 * 4_000, 1));
    let text = bound.witness.describe(&topology);
    assert!(
        text.starts_with("traffic: 24 kB x switches over 1 GB/s"),
        "{text}"
    );
    let bound = bound_of(&topology, AllGather, 4_000);
    assert_eq!(bound.time.as_ps(), over(3 * 4_000, 1));
}

#[test]
fn an_idle_npu_may_help() {
    // Leaves 1 to 4 around NPU 0, which takes no part but may sum and copy: S in, S out.
    let topology = undirected(5, &[(0, 1), (0, 2), (0, 3), (0, 4)], Time::ZERO);
    let leaves = (1..5).map(NpuId).collect();
    let collective = Collective::new(AllReduce, leaves, 4_000, None).expect("valid");
    let with_help = bound(&topology, &collective, &BoundOptions::default());
    assert_eq!(with_help.time.as_ps(), over(4_000, 1));
    // A switch there would have to forward 2 (n - 1) / n x S to every leaf.
    let switched = bound_of(&star(4, Time::ZERO, None), AllReduce, 4_000);
    assert_eq!(switched.time.as_ps(), over(6_000, 1));
}

#[test]
fn an_npu_that_hears_little_holds_up_everything() {
    let mut builder = TopologyBuilder::new("weak");
    builder.npus(4);
    for i in 1..4 {
        builder.link(DeviceId(0), DeviceId(i), gb_per_s(9), Time::ZERO);
        builder.link(DeviceId(i), DeviceId(0), gb_per_s(1), Time::ZERO);
    }
    let topology = builder.finish().expect("valid");
    // What the weak ones send leaves over 1 GB/s each.
    assert_eq!(bound_of(&topology, Reduce, 900).time.as_ps(), over(900, 1));
    assert_eq!(
        bound_of(&topology, Broadcast, 900).time.as_ps(),
        over(900, 9)
    );
}

#[test]
fn limits_lower_the_bound_and_say_so() {
    let topology = ring(8, Time::from_ns(1));
    let options = BoundOptions {
        pair_limit: 2,
        exact_cut_limit: 2,
        exact_partition_limit: 2,
        ..BoundOptions::default()
    };
    for kind in CollectiveKind::NAMED {
        let collective = Collective::among_all(kind, &topology, 8_000).expect("valid");
        let rough = bound(&topology, &collective, &options);
        let exact = bound_of(&topology, kind, 8_000);
        assert!(rough.time <= exact.time, "{kind}");
        assert!(rough.time.as_ps() * 2 >= exact.time.as_ps(), "{kind}");
        assert!(!rough.exact_cut, "{kind}");
    }
}

#[test]
fn a_long_mesh_is_halved_along_its_longer_dimension() {
    let (long, short) = (6, 2);
    let mut builder = TopologyBuilder::new("6 x 2");
    builder.npus(long * short);
    for i in 0..long * short {
        let mut join = |j| {
            builder.both_ways(
                DeviceId::from(i),
                DeviceId::from(j),
                gb_per_s(1),
                Time::ZERO,
            )
        };
        if i % long + 1 < long {
            join(i + 1);
        }
        if i < long {
            join(i + long);
        }
    }
    let along = |size| Dimension {
        kind: crate::topology::DimensionKind::Line,
        size,
        bandwidth: gb_per_s(1),
        latency: Time::ZERO,
        offload: false,
    };
    builder.dimensions(vec![along(6), along(2)]);
    let topology = builder.finish().expect("valid");
    let bound = bound_of(&topology, AllToAll, 12_000);
    assert_eq!(bound.time.as_ps(), over(36_000, 2));
    assert!(!bound.exact_cut);
    let Witness::Cut { npus, .. } = bound.witness else {
        panic!("{:?}", bound.witness);
    };
    assert_eq!(npus, [0, 1, 2, 6, 7, 8].map(NpuId));
}

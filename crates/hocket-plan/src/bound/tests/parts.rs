//! Which components a bound lists, and where numbers are too large.

use super::maxflow::fits;
use super::network::{ArcNetwork, FAR, Search};
use super::*;
use crate::collective::{Demand, NpuSet};
use crate::id::narrow;
use crate::topology::{Dimension, DimensionKind, Offload, build};

/// Names of the components that a bound lists.
fn names(topology: &Topology, kind: CollectiveKind, fidelity: Fidelity) -> Vec<&'static str> {
    let collective = Collective::among_all(kind, topology, 1_000).expect("valid");
    let options = BoundOptions {
        fidelity,
        ..BoundOptions::default()
    };
    let bound = bound(topology, &collective, &options);
    bound.components.iter().map(|(name, _)| *name).collect()
}

fn product(sizes: &[(u32, bool)]) -> Topology {
    let dimensions: Vec<Dimension> = sizes
        .iter()
        .map(|&(size, offload)| Dimension {
            kind: DimensionKind::Switch,
            size,
            bandwidth: gb_per_s(1),
            latency: Time::from_ns(10),
            offload,
        })
        .collect();
    build::product(&dimensions).expect("valid")
}

#[test]
fn a_component_that_says_nothing_is_not_listed() {
    let still = line(2, Time::ZERO);
    let all_gather = CollectiveKind::AllGather;
    assert_eq!(
        names(&still, all_gather, Fidelity::Link),
        ["ingress", "egress", "cut", "traffic", "quickest"]
    );
    let slow = line(2, Time::from_ns(1));
    assert!(names(&slow, all_gather, Fidelity::Link).contains(&"latency"));
}

#[test]
fn only_dimension_fidelity_knows_switches_that_sum() {
    use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
    let (summing, plain) = (product(&[(2, true), (2, false)]), product(&[(2, false)]));
    let dimension = Fidelity::Dimension;
    assert!(names(&summing, AllReduce, Fidelity::Link).contains(&"cut"));
    assert!(names(&plain, AllReduce, dimension).contains(&"cut"));
    let one_that_sums = product(&[(1, true), (2, false)]);
    assert!(names(&one_that_sums, AllReduce, dimension).contains(&"cut"));
    assert_eq!(
        names(&summing, AllReduce, dimension),
        ["latency", "ingress", "egress"]
    );
    assert_eq!(
        names(&summing, AllGather, dimension),
        ["latency", "ingress"]
    );
    assert_eq!(
        names(&summing, ReduceScatter, dimension),
        ["latency", "egress"]
    );
}

#[test]
fn flows_that_would_overflow_do_not_fit() {
    let network = ArcNetwork::new(&line(2, Time::ZERO), Fidelity::Link);
    // Two arcs of 1 GB/s, in units of 1 GB/s.
    let fits_in_giga = |total| fits(&network, GIGA, total);
    assert!(fits_in_giga((1 << 119) - 1));
    assert!(!fits_in_giga(1 << 119));
    assert!(!fits(&network, 1, 1 << 119));
    assert!(!fits(&network, 1, u128::MAX));
}

#[test]
fn a_balanced_network_has_partitions_for_all_reduces_only() {
    let still = line(3, Time::ZERO);
    let listed = |kind| names(&still, kind, Fidelity::Link).contains(&"partition");
    assert!(listed(CollectiveKind::AllReduce));
    assert!(!listed(CollectiveKind::AllGather));
    let collective = Collective::new(
        CollectiveKind::Broadcast,
        still.npus().collect(),
        1_000,
        Some(Rank(0)),
    );
    let bound = bound(
        &still,
        &collective.expect("valid"),
        &BoundOptions::default(),
    );
    assert_eq!(component(&bound, "partition"), Time::ZERO);
}

/// Demands of a copy, or a sum.
fn demand(holders: &[u32], wanted: &[u32], reduced: bool) -> Demand {
    let set = |npus: &[u32]| NpuSet::of(npus.iter().map(|&npu| NpuId(npu)));
    Demand {
        bytes: 1_000,
        holders: set(holders),
        wanted: set(wanted),
        reduced,
    }
}

fn custom(npus: u32, demands: &[Demand]) -> Collective {
    Collective::custom((0..npus).map(NpuId).collect(), demands.to_vec()).expect("valid")
}

#[test]
fn a_root_that_is_not_listed_among_all_makes_no_difference() {
    let mut seed = Seed(5);
    let mut with_partitions = 0;
    for _ in 0..300 {
        let topology = random(&mut seed, 4, true);
        let n = narrow(topology.npu_count());
        let root = narrow(seed.below(n as usize));
        let all: Vec<u32> = (0..n).collect();
        let others: Vec<u32> = (0..n).filter(|&npu| npu != root).collect();
        let bounds = |demand| {
            let collective = custom(n, &[demand]);
            bound(&topology, &collective, &BoundOptions::default())
        };
        // Of cuts with one ratio, which have latencies of their own, any may come first. Prices are sought for what one
        // NPU alone wants, as is so of two if the root is not listed.
        let but_cuts = |bound: &Bound| -> Vec<(&str, Time)> {
            let components = bound.components.iter().copied();
            components
                .filter(|(name, _)| !["cut", "prices"].contains(name))
                .collect()
        };
        let broadcasts = [&all, &others].map(|to| bounds(demand(&[root], to, false)));
        assert_eq!(but_cuts(&broadcasts[0]), but_cuts(&broadcasts[1]));
        with_partitions += usize::from(component(&broadcasts[0], "partition") > Time::ZERO);
        if n > 2 {
            let sums = [&all, &others].map(|from| bounds(demand(from, &[root], true)));
            assert_eq!(but_cuts(&sums[0]), but_cuts(&sums[1]));
        }
    }
    assert!(with_partitions > 20, "{with_partitions}");
}

/// Three NPUs, each with a link to the next and a slower one back.
fn uneven() -> Topology {
    let mut builder = TopologyBuilder::new("uneven");
    builder.npus(3);
    for (from, to, rate) in [(0, 1, 3), (1, 2, 3), (1, 0, 1), (2, 1, 2)] {
        builder.link(DeviceId(from), DeviceId(to), gb_per_s(rate), Time::ZERO);
    }
    builder.finish().expect("valid")
}

#[test]
fn copies_of_several_and_what_has_two_ends_are_not_bound_by_partitions() {
    let topology = uneven();
    let has_partition = |demands: &[Demand]| {
        let bound = bound(&topology, &custom(3, demands), &BoundOptions::default());
        component(&bound, "partition") > Time::ZERO
    };
    assert!(has_partition(&[demand(&[0], &[1, 2], false)]));
    assert!(has_partition(&[demand(&[0, 1, 2], &[0], true)]));
    assert!(has_partition(&[demand(&[0, 1], &[0], true)]));
    assert!(!has_partition(&[demand(&[0], &[1], false)]));
    assert!(!has_partition(&[demand(&[0, 1], &[2], false)]));
}

#[test]
fn what_is_not_searched_is_not_called_exact() {
    let topology = line(4, Time::ZERO);
    let exact = |demands: &[Demand]| {
        let bound = bound(&topology, &custom(4, demands), &BoundOptions::default());
        (bound.exact_cut, bound.exact_partition)
    };
    let everybody = [0, 1, 2, 3];
    assert_eq!(exact(&[demand(&everybody, &everybody, true)]), (true, true));
    // Sums that end elsewhere, copies from two places, two groups of receivers.
    assert!(!exact(&[demand(&[0, 1], &[2, 3], true)]).0);
    assert!(!exact(&[demand(&[0, 1], &[2, 3], false)]).0);
    assert!(!exact(&[demand(&[0], &[1, 2], false), demand(&[3], &[1, 2], false)]).0);
    // NPU 3 may help.
    let npus = (0..3).map(NpuId).collect();
    let some = Collective::new(CollectiveKind::AllReduce, npus, 1_000, None).expect("valid");
    let bound = bound(&topology, &some, &BoundOptions::default());
    assert_eq!((bound.exact_cut, bound.exact_partition), (true, false));
}

/// Two groups of three NPUs at 4 GB/s and one link both ways of 1 GB/s between them; which NPUs are
/// in the first group is given.
fn two_groups(first: [u32; 3]) -> Topology {
    let second: Vec<u32> = (0..6).filter(|npu| !first.contains(npu)).collect();
    let mut builder = TopologyBuilder::new("two groups");
    builder.npus(6);
    for group in [&first[..], &second] {
        for i in 0..3 {
            for j in 0..i {
                let (a, b) = (DeviceId(group[i]), DeviceId(group[j]));
                builder.both_ways(a, b, gb_per_s(4), Time::ZERO);
            }
        }
    }
    let (a, b) = (DeviceId(first[1]), DeviceId(second[1]));
    builder.both_ways(a, b, gb_per_s(1), Time::ZERO);
    builder.finish().expect("valid")
}

#[test]
fn without_a_search_groups_behind_a_slow_link_are_found() {
    for first in [[0, 1, 2], [0, 2, 4], [1, 4, 5], [0, 3, 5]] {
        let topology = two_groups(first);
        let of = |kind| {
            let collective = Collective::among_all(kind, &topology, 6_000).expect("valid");
            let options = BoundOptions {
                exact_cut_limit: 0,
                exact_partition_limit: 0,
                ..BoundOptions::default()
            };
            bound(&topology, &collective, &options)
        };
        // Two parts: two messages of 6 kB over 2 GB/s.
        let all_reduce = of(CollectiveKind::AllReduce);
        assert_eq!(component(&all_reduce, "partition"), Time::from_ns(6_000));
        assert!(!all_reduce.exact_partition);
        // Three NPUs send 1 kB to each of three over 1 GB/s; half of an all-gather passes.
        let all_to_all = of(CollectiveKind::AllToAll);
        assert_eq!(component(&all_to_all, "cut"), Time::from_ns(9_000));
        let all_gather = of(CollectiveKind::AllGather);
        assert_eq!(component(&all_gather, "cut"), Time::from_ns(3_000));
        assert_eq!(component(&all_reduce, "cut"), Time::from_ns(6_000));
    }
}

#[test]
fn distances_are_told_from_what_cannot_be_reached() {
    let mut builder = TopologyBuilder::new("far");
    builder.npus(5);
    let half = Time::from_ps(u64::MAX / 2);
    for from in 0..3 {
        builder.link(DeviceId(from), DeviceId(from + 1), gb_per_s(1), half);
    }
    builder.link(DeviceId(0), DeviceId(2), gb_per_s(1), Time::MAX);
    let network = ArcNetwork::new(&builder.finish().expect("valid"), Fidelity::Link);
    assert_eq!(network.breadth_first(0), [0, 1, 2, 3]);
    assert_eq!(network.breadth_first(3), [3]);
    let mut search = Search::default();
    let distances = search.run(&network, [0], |arc| arc.latency);
    let half = u64::MAX / 2;
    assert_eq!(distances, [0, half, FAR - 1, FAR - 1, FAR]);
    let arc = network.arcs()[0];
    assert_eq!(arc.delay(1, 2), half + 3);
    assert_eq!(
        arc.delay(half, 0),
        FAR,
        "it adds up to all the time there is"
    );
    assert_eq!(arc.delay(FAR, 0), FAR);
    assert_eq!(arc.delay(0, FAR - 1), FAR);
}

#[test]
fn a_sum_of_one_contribution_is_a_copy() {
    let topology = uneven();
    let [sum, copy] = [true, false].map(|reduced| {
        let collective = custom(3, &[demand(&[0], &[1, 2], reduced)]);
        bound(&topology, &collective, &BoundOptions::default())
    });
    assert_eq!(sum, copy);
}

#[test]
fn what_cannot_be_reached_is_found_whatever_the_limits() {
    let topology = undirected(3, &[(0, 1)], Time::ZERO);
    let options = BoundOptions {
        pair_limit: 1,
        ..BoundOptions::default()
    };
    let collective = custom(3, &[demand(&[1], &[2], false)]);
    assert_eq!(bound(&topology, &collective, &options).time, Time::MAX);
}

#[test]
fn a_partition_names_its_parts() {
    // Three pairs of fast NPUs in a triangle of slow links.
    let mut builder = TopologyBuilder::new("three pairs");
    builder.npus(6);
    for (a, b, rate) in [
        (0, 1, 9),
        (2, 3, 9),
        (4, 5, 9),
        (1, 2, 1),
        (3, 4, 1),
        (5, 0, 1),
    ] {
        builder.both_ways(DeviceId(a), DeviceId(b), gb_per_s(rate), Time::ZERO);
    }
    let topology = builder.finish().expect("valid");
    let pairs = bound_of(&topology, CollectiveKind::AllReduce, 6_000);
    assert_eq!(pairs.time, Time::from_ns(4_000));
    assert_eq!(
        pairs.witness.describe(&topology),
        "partition {npu0, npu1}, {npu4, npu5}, {npu2, npu3}: 24 kB must enter its parts over 6 GB/s"
    );
    let ring = bound_of(&ring(4, Time::ZERO), CollectiveKind::AllReduce, 4_000);
    assert_eq!(
        ring.witness.describe(&topology),
        "partition into 4 single NPUs: 24 kB must enter its parts over 8 GB/s"
    );
}

/// NPUs around a switch that sums and multicasts, 4 GB/s a link, and in a ring of 1 GB/s.
fn summing_star_and_ring(npus: u32) -> Topology {
    let mut builder = TopologyBuilder::new("star and ring");
    builder.npus(npus as usize);
    let switch = builder.switch("switch", None);
    for npu in 0..npus {
        builder.both_ways(DeviceId(npu), switch, gb_per_s(4), Time::ZERO);
        let next = DeviceId((npu + 1) % npus);
        builder.both_ways(DeviceId(npu), next, gb_per_s(1), Time::ZERO);
    }
    builder.offload(switch, Some(Offload::FULL));
    builder.finish().expect("valid")
}

#[test]
fn a_switch_that_sums_counts_for_less_than_its_links() {
    for npus in [3, 5, 8] {
        let topology = summing_star_and_ring(npus);
        let bound = bound_of(&topology, CollectiveKind::AllReduce, 1_000_000);
        // 4 GB/s through the switch, and by the ring 2 n links for the 2 (n - 1) messages.
        let messages = 2 * u128::from(npus - 1);
        let links = 4 * messages + 2 * u128::from(npus);
        let expected = messages * 1_000_000 * 1_000 / links;
        assert_eq!(
            u128::from(component(&bound, "partition").as_ps()),
            expected,
            "{npus}"
        );
    }
}

/// Every order of messages among a few NPUs, directly or through what a switch holds until it sends: each message over
/// a link of the switch counts for 1 - 1 / n, and no order in which all hear of all counts for less than 2 (n - 1).
#[test]
fn no_gossip_through_a_switch_counts_for_less_than_without() {
    use std::cmp::Reverse;
    use std::collections::{BinaryHeap, HashMap};
    for n in [2u32, 3] {
        let nodes = n as usize;
        // What each NPU knows, what the switch holds, and whether it has sent that.
        let start: (Vec<u32>, u32, bool) = ((0..n).map(|npu| 1 << npu).collect(), 0, false);
        let all = (1 << n) - 1;
        let mut known = HashMap::from([(start.clone(), 0)]);
        let mut queue = BinaryHeap::from([Reverse((0, start))]);
        let least = loop {
            let Reverse((cost, state)) = queue.pop().expect("all hear of all in the end");
            if known[&state] < cost {
                continue;
            }
            let (knows, held, is_sent) = &state;
            if knows.iter().all(|&it| it == all) {
                break cost;
            }
            let mut next = Vec::new();
            for from in 0..nodes {
                for to in (0..nodes).filter(|&to| to != from) {
                    let mut after = state.clone();
                    after.0[to] |= knows[from];
                    next.push((n, after));
                }
                let held = if *is_sent { 0 } else { *held };
                next.push((n - 1, (knows.clone(), held | knows[from], false)));
                let mut after = (knows.clone(), state.1, true);
                after.0[from] |= state.1;
                next.push((n - 1, after));
            }
            for (more, after) in next {
                let cost = cost + more;
                if known.get(&after).is_none_or(|&before| cost < before) {
                    known.insert(after.clone(), cost);
                    queue.push(Reverse((cost, after)));
                }
            }
        };
        assert_eq!(least, 2 * (n - 1) * n, "{n}");
    }
}

//! Bounds against plans that exist, and against themselves.

use super::*;
use crate::collective::Demand;
use crate::topology::shortest::RouteTree;

/// Time of the plan that does one transfer after another, each alone on its shortest way.
fn one_after_another(topology: &Topology, collective: &Collective) -> Time {
    let npus = collective.npus();
    let send = |from: NpuId, to: NpuId, bytes: u64| {
        let tree = RouteTree::to(topology, to.device(), bytes, None);
        tree.time(from.device()).expect("there is a way")
    };
    let demands = collective.demands();
    let time = |demand: &Demand| -> Time {
        let holders = demand.holders.members(npus);
        let takers = demand.wanted.members(npus);
        // A sum is made at the first who wants it.
        let root = if demand.reduced {
            takers[0]
        } else {
            holders[0]
        };
        let others = |set: &[NpuId]| set.iter().copied().filter(|&npu| npu != root).collect();
        let (sources, sinks): (Vec<NpuId>, Vec<NpuId>) = (others(holders), others(takers));
        let gather: Time = match demand.reduced {
            true => sources
                .iter()
                .map(|&npu| send(npu, root, demand.bytes))
                .sum(),
            false => Time::ZERO,
        };
        gather + sinks.iter().map(|&npu| send(root, npu, demand.bytes)).sum()
    };
    demands
        .iter()
        .filter(|demand| demand.bytes > 0)
        .map(time)
        .sum()
}

#[test]
fn no_bound_is_above_a_plan() {
    let mut seed = Seed(13);
    let (mut finite, mut met) = (0, 0);
    for case in 0..3_000 {
        let topology = random(&mut seed, 6, true);
        let collective = random_collective(&mut seed, &topology);
        let bound = bound(&topology, &collective, &BoundOptions::default());
        if bound.time == Time::MAX {
            continue;
        }
        finite += 1;
        let plan = one_after_another(&topology, &collective);
        let kind = collective.kind();
        assert!(
            bound.time <= plan,
            "case {case}: {kind} {} {plan}",
            bound.time
        );
        met += usize::from(plan.saturating_sub(bound.time) <= Time::from_ps(2));
    }
    assert!(
        finite > 1_000 && met > 20,
        "{met} of {finite} bounds were met"
    );
}

#[test]
fn the_time_is_the_greatest_component_and_has_a_witness() {
    let mut seed = Seed(17);
    for _ in 0..1_000 {
        let topology = random(&mut seed, 6, true);
        let collective = random_collective(&mut seed, &topology);
        let bound = bound(&topology, &collective, &BoundOptions::default());
        let text = bound.witness.describe(&topology);
        if bound.time == Time::MAX {
            assert!(text.starts_with("there is no way from"), "{text}");
            continue;
        }
        let greatest = bound.components.iter().map(|(_, time)| *time).max();
        assert_eq!(greatest, Some(bound.time));
        assert_ne!(bound.witness, Witness::Nothing);
    }
}

#[test]
fn sums_are_copies_on_links_turned_round() {
    let mut seed = Seed(19);
    for case in 0..1_000 {
        let latency = case % 2 == 0;
        let topology = random(&mut seed, 6, latency);
        let mut builder = TopologyBuilder::new("turned");
        builder.npus(topology.npu_count());
        for device in &topology.devices()[topology.npu_count()..] {
            builder.switch(device.name.clone(), device.limit);
        }
        for link in topology.links() {
            builder.link(link.dst, link.src, link.bandwidth, link.latency);
        }
        let turned = builder.finish().expect("valid");
        use CollectiveKind::*;
        for (copy, sum) in [(AllGather, ReduceScatter), (Broadcast, Reduce)] {
            let there = bound_of(&topology, copy, 6_000);
            let back = bound_of(&turned, sum, 6_000);
            assert_eq!(there.time, back.time, "case {case}: {copy} {sum}");
            assert_eq!(there.exact_cut, back.exact_cut);
        }
        // Of cuts with equal bandwidth either may be found first, and their latencies differ.
        if !latency {
            let all_reduce = [&topology, &turned].map(|it| bound_of(it, AllReduce, 6_000).time);
            assert_eq!(all_reduce[0], all_reduce[1], "case {case}");
        }
    }
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    let most = Bandwidth::from_bytes_per_second(u64::MAX).expect("positive");
    let least = Bandwidth::from_bytes_per_second(1).expect("positive");
    for (fast, slow) in [(most, least), (most, most), (least, least)] {
        for latency in [Time::ZERO, Time::MAX] {
            let mut builder = TopologyBuilder::new("extreme");
            builder.npus(5);
            let switch = builder.switch("switch", Some(slow));
            for i in 0..5 {
                builder.both_ways(DeviceId(i), switch, fast, latency);
                builder.both_ways(DeviceId(i), DeviceId((i + 1) % 5), slow, latency);
            }
            let topology = builder.finish().expect("valid");
            for kind in CollectiveKind::NAMED {
                let largest = match kind {
                    CollectiveKind::AllToAll => u64::MAX / 5, // a vector of each NPU
                    _ => u64::MAX,
                };
                for size in [1, largest] {
                    let bound = bound_of(&topology, kind, size);
                    let is_slow = slow == least && size == largest;
                    assert!(!is_slow || bound.time > Time::from_ns(1), "{kind}");
                    assert!(latency == Time::ZERO || bound.time > Time::from_ns(u64::MAX / 2_000));
                }
            }
        }
    }
}

#[test]
fn custom_demands_are_bound_like_the_kinds_they_imitate() {
    let mut seed = Seed(5);
    for case in 0..400 {
        let topology = random(&mut seed, 6, true);
        let named = random_collective(&mut seed, &topology);
        let mut demands = named.demands();
        demands.retain(|demand| demand.bytes > 0);
        let custom = Collective::custom(named.npus().to_vec(), demands).expect("valid");
        let options = BoundOptions::default();
        let named_bound = bound(&topology, &named, &options);
        let custom_bound = bound(&topology, &custom, &options);
        let kind = named.kind();
        // Listed one by one, the two demands of a pair are a scatter and a partition as well.
        if kind != CollectiveKind::AllToAll || named.npus().len() > 2 {
            assert_eq!(
                named_bound.components, custom_bound.components,
                "case {case}: {kind}"
            );
            assert_eq!(named_bound.time, custom_bound.time, "case {case}: {kind}");
        }
    }
}

#[test]
fn more_bytes_never_lower_a_bound() {
    let mut seed = Seed(23);
    for case in 0..500 {
        let topology = random(&mut seed, 5, true);
        for kind in CollectiveKind::NAMED {
            let small = bound_of(&topology, kind, 6_000).time;
            let large = bound_of(&topology, kind, 12_000).time;
            assert!(small <= large, "case {case}: {kind}");
        }
    }
}

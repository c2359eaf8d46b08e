//! The quickest flow, from its definition: bytes that wait, step by step, in copies of the network for every nanosecond.

use super::*;
use crate::graph::{FlowNetwork, UNLIMITED};
use crate::id::{fit, narrow};

const NS: u64 = 1_000;

/// Links of whole GB/s (bytes a nanosecond) and whole nanoseconds.
fn whole(seed: &mut Seed) -> Topology {
    let mut builder = TopologyBuilder::new("whole");
    let npus = 2 + seed.below(4);
    builder.npus(npus);
    let has_switch = seed.below(2) == 0;
    if has_switch {
        let limit = (seed.below(2) == 0).then(|| gb_per_s(1 + seed.below(4) as u64));
        builder.switch("switch", limit);
    }
    let count = npus + usize::from(has_switch);
    for _ in 0..3 * count {
        let (src, dst) = (seed.below(count), seed.below(count));
        if src != dst {
            let latency = Time::from_ps(NS * seed.below(6) as u64);
            let bandwidth = gb_per_s(1 + seed.below(4) as u64);
            builder.link(DeviceId::from(src), DeviceId::from(dst), bandwidth, latency);
        }
    }
    builder.finish().expect("valid")
}

/// The first nanosecond by which so many bytes can have come from one NPU to another; `None` beyond a hundred.
fn first_by(topology: &Topology, from: NpuId, to: NpuId, bytes: i128) -> Option<u64> {
    let count = topology.device_count();
    (0..=100).find(|&end| {
        // Node 2 d + h of step t: where device d takes bytes in (h = 0), and where it sends them on.
        let node = |step: u64, device: usize, half: usize| {
            narrow(fit::<usize, _>(step) * 2 * count + 2 * device + half)
        };
        let mut arcs = Vec::new();
        for step in 0..=end {
            for (i, device) in topology.devices().iter().enumerate() {
                let limit = device.limit.map_or(UNLIMITED, |limit| {
                    i128::from(limit.bytes_per_second() / GIGA)
                });
                arcs.push((node(step, i, 0), node(step, i, 1), limit));
                if step < end {
                    arcs.push((node(step, i, 0), node(step + 1, i, 0), UNLIMITED));
                    arcs.push((node(step, i, 1), node(step + 1, i, 1), UNLIMITED));
                }
            }
            for link in topology.links() {
                let arrives = step + 1 + link.latency.as_ps() / NS;
                // What is sent during a step has arrived after it.
                if arrives <= end {
                    let rate = i128::from(link.bandwidth.bytes_per_second() / GIGA);
                    let at = |step| node(step, link.dst.index(), 0);
                    // It goes on as it comes: the step in which it was sent is not lost at each link.
                    arcs.push((node(step, link.src.index(), 1), at(arrives - 1), rate));
                }
            }
        }
        let mut flow = FlowNetwork::new((fit::<usize, _>(end) + 1) * 2 * count, arcs);
        flow.set_drain(node(end, to.index(), 0), UNLIMITED);
        flow.flow(&[(node(0, from.index(), 0), UNLIMITED)], bytes) >= bytes
    })
}

#[test]
fn no_bytes_come_sooner_and_all_can_by_then() {
    let mut seed = Seed(11);
    let (mut looked_at, mut tighter) = (0, 0);
    for _ in 0..600 {
        let topology = whole(&mut seed);
        let npus: Vec<NpuId> = topology.npus().collect();
        let size = 1 + seed.below(40) as u64;
        let root = npus[seed.below(npus.len())];
        let kind = [CollectiveKind::Broadcast, CollectiveKind::Reduce][seed.below(2)];
        let collective = Collective::new(kind, npus.clone(), size, Some(Rank(root.0)));
        let bound = bound(
            &topology,
            &collective.expect("valid"),
            &BoundOptions::default(),
        );
        if bound.time == Time::MAX {
            continue;
        }
        let others = npus.iter().filter(|&&npu| npu != root);
        let first = others.map(|&npu| match kind {
            CollectiveKind::Broadcast => first_by(&topology, root, npu, size.into()),
            _ => first_by(&topology, npu, root, size.into()),
        });
        let Some(latest) = first.collect::<Option<Vec<u64>>>() else {
            continue;
        };
        let latest = latest.into_iter().max().expect("two NPUs or more");
        let quickest = component(&bound, "quickest");
        assert_eq!(quickest.as_ps().div_ceil(NS), latest, "{kind} of {size}");
        looked_at += 1;
        let plain = component(&bound, "ingress").max(component(&bound, "egress"));
        assert!(quickest >= plain);
        tighter += u32::from(quickest > plain.max(component(&bound, "cut")));
    }
    assert!(looked_at > 200 && tighter > 50, "{looked_at} {tighter}");
}

#[test]
fn a_second_way_that_is_longer_helps_late() {
    // 0 -> 1 in 1 us, and 0 -> 2 -> 1 in 3 us, all of 1 GB/s.
    let mut builder = TopologyBuilder::new("two ways");
    builder.npus(3);
    for (src, dst, latency) in [(0, 1, 1_000), (0, 2, 1_000), (2, 1, 2_000)] {
        builder.link(
            DeviceId(src),
            DeviceId(dst),
            gb_per_s(1),
            Time::from_ns(latency),
        );
    }
    let topology = builder.finish().expect("valid");
    let time = |size: u64| {
        let npus = vec![NpuId(0), NpuId(1)];
        let collective = Collective::new(CollectiveKind::Broadcast, npus, size, Some(Rank(0)));
        bound(
            &topology,
            &collective.expect("valid"),
            &BoundOptions::default(),
        )
    };
    assert_eq!(component(&time(1_500), "quickest"), Time::from_ns(2_500));
    // By 3 us the first way has brought 2 kB, and then both bring 1 kB in half a microsecond.
    assert_eq!(component(&time(3_000), "quickest"), Time::from_ns(3_500));
    let witness = |other: Option<NpuId>, others| Witness::Quickest {
        npu: NpuId(1),
        leaving: other.is_none(),
        bytes: 3_000,
        other,
        others,
        bandwidth: gb_per_s(2),
        latencies: [1_000, 3_000].map(Time::from_ns),
    };
    assert_eq!(
        witness(Some(NpuId(0)), 1).describe(&topology),
        "fastest flow into npu1: 3 kB from npu0 over paths of 2 GB/s together, 1 us to 3 us long"
    );
    assert_eq!(
        witness(None, 2).describe(&topology),
        "fastest flow out of npu1: 3 kB to 2 others over paths of 2 GB/s together, 1 us to 3 us long"
    );
}

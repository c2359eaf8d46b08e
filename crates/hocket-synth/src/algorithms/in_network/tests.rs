//! Closed forms of networks whose best trees are known.

use std::sync::Arc;

use super::*;
use crate::algorithms::{Algorithm, PlanOptions, check_applicable, plan, transfer_count};
use crate::bound::{BoundOptions, bound};
use crate::id::DeviceId;
use crate::progress::Silent;
use crate::simulate::{FlowOptions, SimulateOptions, simulate, simulate_flows};
use crate::topology::Topology;
use crate::topology::{TopologyBuilder, build};
use crate::units::{Bandwidth, Time};
use crate::verify::{Verified, verify};
use CollectiveKind::{AllGather, AllReduce, AllToAll, Broadcast, Reduce, ReduceScatter};

const KINDS: [CollectiveKind; 5] = [AllReduce, ReduceScatter, AllGather, Broadcast, Reduce];
/// As NVSwitches: no multicast of a sum of their own.
const APART: Offload = Offload {
    all_reduces: false,
    ..Offload::FULL
};

fn giga(bytes: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(bytes * 1_000_000_000).unwrap()
}

/// NPUs that are linked to each of some switches, at a bandwidth of its own, without latency.
fn planes(npus: usize, bandwidths: &[u64], offload: Offload) -> Topology {
    let mut builder = TopologyBuilder::new("planes");
    builder.npus(npus);
    for (i, &bandwidth) in bandwidths.iter().enumerate() {
        let plane = builder.switch(format!("plane{i}"), None);
        (0..npus).for_each(|npu| {
            builder.both_ways(DeviceId::from(npu), plane, giga(bandwidth), Time::ZERO);
        });
        builder.offload(plane, Some(offload));
    }
    builder.finish().unwrap()
}

fn proved(topology: &Topology, kind: CollectiveKind, size: u64, chunks: usize) -> Verified {
    let collective = Collective::among_all(kind, topology, size).unwrap();
    let options = PlanOptions {
        chunks: Some(chunks),
        ..PlanOptions::new(Algorithm::InNetwork)
    };
    let made = plan(topology, &collective, &options, &mut Silent).unwrap();
    let transfers = transfer_count(topology, &collective, Algorithm::InNetwork, chunks);
    assert_eq!(made.len() as u128, transfers);
    verify(Arc::new(made), Arc::new(topology.clone()), &mut Silent).unwrap()
}

fn time(verified: &Verified) -> u64 {
    simulate(verified, &SimulateOptions::default(), &mut Silent)
        .unwrap()
        .time
        .as_ps()
}

fn bound_of(topology: &Topology, kind: CollectiveKind, size: u64) -> u64 {
    let collective = Collective::among_all(kind, topology, size).unwrap();
    bound(topology, &collective, &BoundOptions::default(), &mut Silent)
        .unwrap()
        .time
        .as_ps()
}

#[test]
fn a_star_takes_a_slice_more_for_each_trip_after_the_first() {
    const SIZE: u64 = 64_000_000;
    for npus in [2, 3, 8] {
        for (offload, trips) in [(Offload::FULL, 2), (APART, 4)] {
            let star = planes(npus, &[1], offload);
            // Of two NPUs one sends, and the other answers: nothing is to be summed at the switch.
            let trips = if npus == 2 { 4 } else { trips };
            for slices in [1, 4, 64] {
                let found = time(&proved(&star, AllReduce, SIZE, slices));
                let slice = SIZE * 1_000 / slices as u64;
                assert_eq!(
                    found,
                    slice * (slices as u64 + trips - 1),
                    "{npus} {slices}"
                );
            }
            assert_eq!(bound_of(&star, AllReduce, SIZE), SIZE * 1_000);
        }
    }
}

#[test]
fn planes_share_data_as_their_bandwidths_are() {
    const SIZE: u64 = 72_000_000;
    for kind in KINDS {
        let even = planes(4, &[9], APART);
        let uneven = planes(4, &[1, 3, 5], APART);
        let (one, three) = (proved(&even, kind, SIZE, 8), proved(&uneven, kind, SIZE, 8));
        assert_eq!(three.plan().len(), 3 * one.plan().len(), "{kind}");
        assert_eq!(
            bound_of(&even, kind, SIZE),
            bound_of(&uneven, kind, SIZE),
            "{kind}"
        );
        let (one, three) = (time(&one) as f64, time(&three) as f64);
        assert!((three / one - 1.0).abs() < 1e-4, "{kind}: {one} {three}");
    }
}

#[test]
fn every_kind_comes_near_its_bound_on_rails_of_switches_that_sum() {
    const SIZE: u64 = 1 << 28;
    let rails = build::Rail {
        nodes: 3,
        npus: 4,
        spines: 0,
        node_bandwidth: giga(300),
        node_latency: Time::from_ns(350),
        bandwidth: giga(50),
        latency: Time::from_ns(1_300),
    };
    let mut rails = rails.build().unwrap();
    for switch in rails.npu_count()..rails.device_count() {
        let name = &rails.device(DeviceId::from(switch)).name;
        let offload = if name.starts_with("rail") {
            Offload::FULL
        } else {
            APART
        };
        rails = rails
            .with_offload(DeviceId::from(switch), Some(offload))
            .unwrap();
    }
    for kind in KINDS {
        let verified = proved(&rails, kind, SIZE, 64);
        let least = bound_of(&rails, kind, SIZE) as f64;
        let link = time(&verified) as f64 / least;
        assert!((1.0..1.1).contains(&link), "{kind}: {link}");
        let flow = simulate_flows(&verified, &FlowOptions::default(), &mut Silent).unwrap();
        let flow = flow.time.as_ps() as f64 / least;
        assert!((1.0..1.6).contains(&flow), "{kind}: {flow}");
    }
}

#[test]
fn a_rate_and_room_for_few_trees_are_heeded() {
    const SIZE: u64 = 8_000_000;
    // Four NPUs send at 4 GB/s together; what the switch takes in passes at 1 GB/s.
    let slow = Offload {
        rate: Some(giga(1)),
        ..Offload::FULL
    };
    let star = planes(4, &[1], slow);
    let found = time(&proved(&star, AllReduce, SIZE, 8));
    assert!(found > 4 * SIZE * 1_000, "{found}");
    assert!(found < 5 * SIZE * 1_000, "{found}");
    // Two planes, of which one is slow: most data takes the other.
    let mut uneven = planes(4, &[1, 1], Offload::FULL);
    uneven = uneven.with_offload(DeviceId(4), Some(slow)).unwrap();
    let verified = proved(&uneven, AllReduce, SIZE, 8);
    let plan = verified.plan();
    let bytes = |switch: u32| -> u64 {
        let ends = plan.dst().iter().zip(plan.sizes());
        ends.filter(|(dst, _)| **dst == switch)
            .map(|(_, bytes)| bytes)
            .sum()
    };
    assert_eq!((bytes(4), bytes(5)), (4 * SIZE / 5, 4 * 4 * SIZE / 5));
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let refusal = |topology: &Topology, kind| {
        let collective = Collective::among_all(kind, topology, 1_000_000).unwrap();
        let refused = check_applicable(topology, &collective, Algorithm::InNetwork);
        refused.unwrap_err().to_string()
    };
    let plain = build::switch(4, giga(1), Time::ZERO, None).unwrap();
    assert_eq!(
        refusal(&plain, AllReduce),
        "in-network: no switch of \"switch 4\" sums and multicasts; say in the topology which do (offload), or use \
         an algorithm that needs none"
    );
    let sums = Offload {
        multicasts: false,
        ..APART
    };
    let sums = plain.with_offload(DeviceId(4), Some(sums)).unwrap();
    for (kind, word) in [
        (AllReduce, "sums and multicasts"),
        (AllGather, "multicasts"),
    ] {
        let text = refusal(&sums, kind);
        assert!(
            text.contains(&format!("no switch of \"switch 4\" {word};")),
            "{text}"
        );
    }
    assert!(refusal(&sums, AllToAll).contains("not all-to-all; for all-to-all use"));
    let reduce = Collective::among_all(Reduce, &sums, 1_000_000).unwrap();
    assert_eq!(
        check_applicable(&sums, &reduce, Algorithm::InNetwork),
        Ok(())
    );

    // One way only: what comes down cannot go up.
    let mut builder = TopologyBuilder::new("one way");
    builder.npus(3);
    let core = builder.switch("core", None);
    for npu in 0..3 {
        builder.link(DeviceId(npu), DeviceId((npu + 1) % 3), giga(1), Time::ZERO);
        builder.link(DeviceId(npu), core, giga(1), Time::ZERO);
    }
    builder.offload(core, Some(Offload::FULL));
    let text = refusal(&builder.finish().unwrap(), AllReduce);
    assert!(text.contains("not all joined by links both ways"), "{text}");
}

#[test]
fn few_bytes_take_one_tree() {
    let topology = planes(3, &[1, 1, 1, 1], Offload::FULL);
    let verified = proved(&topology, AllReduce, 3, 1);
    assert_eq!(verified.plan().len(), 2 * 3);
    let collective = Collective::among_all(AllReduce, &topology, 3).unwrap();
    let options = PlanOptions {
        chunks: Some(4),
        ..PlanOptions::new(Algorithm::InNetwork)
    };
    let refused = plan(&topology, &collective, &options, &mut Silent);
    assert!(matches!(
        refused,
        Err(PlanError::TooManyChunks {
            bytes: 3,
            chunks: 4,
            ..
        })
    ));
}

/// A tree through the switch is found again and again before one over links that are sixteen times as slow is cheaper.
#[test]
fn slow_links_beside_a_switch_that_sums_carry_their_share() {
    const SIZE: u64 = 1 << 28;
    const NPUS: usize = 6;
    let mut builder = TopologyBuilder::new("star and ring");
    builder.npus(NPUS);
    let core = builder.switch("core", None);
    for npu in 0..NPUS {
        builder.both_ways(DeviceId::from(npu), core, giga(16), Time::ZERO);
        let next = DeviceId::from((npu + 1) % NPUS);
        builder.both_ways(DeviceId::from(npu), next, giga(1), Time::ZERO);
    }
    builder.offload(core, Some(APART));
    let topology = builder.finish().unwrap();
    let found = time(&proved(&topology, AllReduce, SIZE, 1_024));
    let least = bound_of(&topology, AllReduce, SIZE);
    assert!(found < least + least / 50, "{found} {least}");
    // Without the ring it takes SIZE / 16 GB/s.
    assert!(found < SIZE * 1_000 / 16, "{found}");
}

/// Every rank sends all data but for the shares of others' sums, and its own share once more: 1 + 1/n of the bytes.
#[test]
fn multimem_takes_as_many_bytes_as_gpus_move() {
    const SIZE: u64 = 64_000_000;
    for npus in [2, 3, 8] {
        for bandwidths in [vec![1], vec![2, 1]] {
            let star = planes(npus, &bandwidths, APART);
            let rate: u64 = bandwidths.iter().sum();
            let collective = Collective::among_all(AllReduce, &star, SIZE).unwrap();
            let chunks = 256;
            let options = PlanOptions {
                chunks: Some(chunks),
                ..PlanOptions::new(Algorithm::Multimem)
            };
            let made = plan(&star, &collective, &options, &mut Silent).unwrap();
            let transfers = transfer_count(&star, &collective, Algorithm::Multimem, chunks);
            assert_eq!(made.len() as u128, transfers);
            let proved = verify(Arc::new(made), Arc::new(star), &mut Silent).unwrap();
            let exact = (SIZE + SIZE / npus as u64) * 1_000 / rate;
            let found = time(&proved);
            assert!(
                found >= exact - exact / 1_000 && found <= exact + exact / 20,
                "{npus} {bandwidths:?}: {found} {exact}"
            );
        }
    }
}

#[test]
fn multimem_needs_a_switch_that_all_are_at() {
    let refusal = |topology: &Topology, kind| {
        let collective = Collective::among_all(kind, topology, 1_000).unwrap();
        check_applicable(topology, &collective, Algorithm::Multimem)
            .map_err(|error| error.to_string())
    };
    let star = planes(4, &[1], APART);
    assert_eq!(refusal(&star, AllReduce), Ok(()));
    assert!(refusal(&star, AllGather).is_err());
    let ring = build::ring(4, giga(1), Time::ZERO, build::RingWays::Both).unwrap();
    let told = refusal(&ring, AllReduce).unwrap_err();
    assert!(told.contains("is linked to every NPU both ways"), "{told}");
}

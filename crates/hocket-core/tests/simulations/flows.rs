use std::sync::Arc;

use hocket_core::algorithms::{Algorithm, PlanOptions, plan};
use hocket_core::collective::{Collective, CollectiveKind, Demand, NpuSet};
use hocket_core::id::{DeviceId, NpuId, narrow};
use hocket_core::plan::{Chunks, LinkOrder, Op, PlanBuilder, Wait};
use hocket_core::progress::{Progress, Silent};
use hocket_core::simulate::{
    FlowOptions, Run, SimulateError, SimulateOptions, simulate, simulate_flows,
};
use hocket_core::topology::build::{self, RingWays};
use hocket_core::topology::{Topology, TopologyBuilder};
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::{Verified, verify};

fn gigabytes(gb: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(gb * 1_000_000_000).unwrap()
}

/// Links (source, destination, GB/s, ns) between NPUs.
fn network(npus: usize, links: &[(u32, u32, u64, u64)]) -> Arc<Topology> {
    let mut builder = TopologyBuilder::new("by hand");
    builder.npus(npus);
    for &(src, dst, gb, ns) in links {
        let (rate, latency) = (gigabytes(gb), Time::from_ns(ns));
        builder.link(DeviceId(src), DeviceId(dst), rate, latency);
    }
    Arc::new(builder.finish().unwrap())
}

/// Messages (source, destination, bytes), all from the start.
fn messages(topology: &Arc<Topology>, messages: &[(u32, u32, u64)]) -> Verified {
    let demands = messages.iter().map(|&(src, dst, bytes)| Demand {
        bytes,
        reduced: false,
        holders: NpuSet::One(NpuId(src)),
        wanted: NpuSet::One(NpuId(dst)),
    });
    let collective = Collective::custom(topology.npus().collect(), demands.collect()).unwrap();
    let chunks = Chunks::split(&collective.demands(), 1).unwrap();
    let mut builder = PlanBuilder::new("by hand", &collective, chunks);
    for (i, &(src, dst, _)) in messages.iter().enumerate() {
        let chunk = (narrow(i), 1);
        builder.send(chunk, NpuId(src), NpuId(dst), Op::Copy, Wait::NOTHING);
    }
    verify(Arc::new(builder.finish()), topology.clone(), &mut Silent).unwrap()
}

fn run(verified: &Verified) -> Run {
    simulate_flows(verified, &FlowOptions::default(), &mut Silent).unwrap()
}

fn ends(run: &Run) -> Vec<u64> {
    run.end.iter().map(|end| end.as_ps()).collect()
}

#[test]
fn one_flow_takes_latencies_and_its_bytes_at_the_slowest_rate() {
    let chain = network(4, &[(0, 1, 30, 100), (1, 2, 7, 20), (2, 3, 50, 3)]);
    let alone = run(&messages(&chain, &[(0, 3, 1_000_003)]));
    let bytes = gigabytes(7).transmission(1_000_003);
    assert_eq!(alone.time, bytes + Time::from_ns(123));
    for link in &alone.links {
        assert_eq!(
            (link.bytes, link.messages, link.busy),
            (1_000_003, 1, bytes)
        );
    }
    let options = FlowOptions {
        flow_rate: Some(gigabytes(2)),
        ..FlowOptions::default()
    };
    let capped = simulate_flows(
        &messages(&chain, &[(0, 3, 1_000_003)]),
        &options,
        &mut Silent,
    );
    let bytes = gigabytes(2).transmission(1_000_003);
    assert_eq!(capped.unwrap().time, bytes + Time::from_ns(123));
}

#[test]
fn equal_flows_over_one_link_end_together() {
    let link = network(2, &[(0, 1, 10, 50)]);
    for n in [2, 5, 16, 1000] {
        let run = run(&messages(&link, &vec![(0, 1, 1_000_000); n]));
        let end = n as u64 * 100_000_000 + 50_000;
        assert!(run.time.as_ps().abs_diff(end) <= 1);
        assert!(run.end.iter().all(|&end| end == run.time));
        assert_eq!(run.links[0].bytes, n as u64 * 1_000_000);
    }
}

#[test]
fn unequal_flows_over_one_link_end_as_their_shares_grow() {
    let link = network(2, &[(0, 1, 10, 0)]);
    // 10 kB each at half the rate, then 20 kB at all of it.
    let run = run(&messages(&link, &[(0, 1, 10_000), (0, 1, 30_000)]));
    assert_eq!(ends(&run), [2_000_000, 4_000_000]);
    assert_eq!(run.links[0].busy, Time::from_ps(4_000_000));
}

#[test]
fn what_one_bottleneck_leaves_is_for_the_next() {
    // One long flow over links of 12 and 18 GB/s, which two and one others share: 4 GB/s for it and the
    // two, 14 for the other.
    let chain = network(3, &[(0, 1, 12, 0), (1, 2, 18, 0)]);
    let run = run(&messages(
        &chain,
        &[
            (0, 2, 100_000),
            (0, 1, 100_000),
            (0, 1, 100_000),
            (1, 2, 350_000),
        ],
    ));
    assert_eq!(ends(&run), [25_000_000; 4]);
}

#[test]
fn a_limit_of_a_switch_is_shared_too() {
    let mut builder = TopologyBuilder::new("limited");
    builder.npus(4);
    let switch = builder.switch("switch", Some(gigabytes(4)));
    for npu in 0..4 {
        builder.both_ways(DeviceId(npu), switch, gigabytes(10), Time::from_ns(5));
    }
    let topology = Arc::new(builder.finish().unwrap());
    let run = run(&messages(&topology, &[(0, 1, 20_000), (2, 3, 20_000)]));
    assert_eq!(ends(&run), [10_010_000; 2]);
}

#[test]
fn a_ring_takes_what_it_takes_in_whole_messages() {
    for ways in [RingWays::One, RingWays::Both] {
        let ring = build::ring(8, gigabytes(47), Time::from_ns(333), ways).unwrap();
        let ring = Arc::new(ring);
        let collective = Collective::among_all(CollectiveKind::AllReduce, &ring, 12_345_677);
        let options = PlanOptions::new(Algorithm::Ring);
        let plan = plan(&ring, &collective.unwrap(), &options, &mut Silent).unwrap();
        let verified = verify(Arc::new(plan), ring, &mut Silent).unwrap();
        let whole = simulate(&verified, &SimulateOptions::default(), &mut Silent).unwrap();
        assert_eq!(run(&verified), whole);
    }
}

#[test]
fn order_does_not_matter() {
    let link = network(2, &[(0, 1, 10, 50)]);
    let given = [(0, 1, 300), (0, 1, 20), (0, 1, 7_000)];
    let verified = messages(&link, &given);
    let ready = run(&verified);
    let plan = verified
        .plan()
        .as_ref()
        .clone()
        .with_link_order(LinkOrder::Plan);
    assert_eq!(
        run(&verify(Arc::new(plan), link, &mut Silent).unwrap()),
        ready
    );
}

#[test]
fn what_takes_too_long_is_said() {
    let slow = Bandwidth::from_bytes_per_second(1).unwrap();
    let mut builder = TopologyBuilder::new("slow");
    builder.npus(2);
    builder.link(DeviceId(0), DeviceId(1), slow, Time::ZERO);
    let slow = Arc::new(builder.finish().unwrap());
    let error = |bytes| {
        let given = messages(&slow, &[(0, 1, bytes)]);
        simulate_flows(&given, &FlowOptions::default(), &mut Silent).unwrap_err()
    };
    for bytes in [18_446_745, 1 << 63, u64::MAX] {
        assert_eq!(error(bytes), SimulateError::TooLong);
    }
    assert_eq!(run(&messages(&slow, &[(0, 1, 5)])).time.as_seconds(), 5.0);
}

#[test]
fn it_stops_where_it_is_asked_to() {
    struct Stop;
    impl Progress for Stop {
        fn report(&mut self, stage: &str, done: u64, total: u64) -> bool {
            assert_eq!((stage, total), ("simulate flows", 1200));
            assert!(done < total);
            false
        }
    }
    let link = network(2, &[(0, 1, 10, 50)]);
    // Each ends alone, and all that are left get more.
    let given: Vec<_> = (1..=1200).map(|bytes| (0, 1, bytes * 1000)).collect();
    let result = simulate_flows(&messages(&link, &given), &FlowOptions::default(), &mut Stop);
    assert!(matches!(result, Err(SimulateError::Interrupted(_))));
}

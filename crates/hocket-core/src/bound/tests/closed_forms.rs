use super::*;
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

//! NPUs that hang on switches by links of one direction, and sums that nobody who wants them adds to.

use super::*;
use crate::collective::{Demand, NpuSet};
use crate::plan::Plan;
use crate::verify::verify;
use std::sync::Arc;

const UNWINDINGS: [Unwinding; 4] = [
    Unwinding::Degree(1),
    Unwinding::Degree(2),
    Unwinding::BothWays,
    Unwinding::Max,
];

/// NPUs, switches after them, and links one way.
fn directed(npus: usize, switches: usize, links: &[(u32, u32)]) -> Topology {
    let mut builder = TopologyBuilder::new("one way");
    builder.npus(npus);
    for i in 0..switches {
        builder.switch(format!("s{i}"), None);
    }
    for &(a, b) in links {
        builder.link(DeviceId(a), DeviceId(b), gb_per_s(1), Time::from_ns(100));
    }
    builder.finish().expect("valid")
}

fn plans(topology: &Topology, collective: &Collective) -> Vec<Result<Plan, PlanError>> {
    let of = |unwinding| {
        let latency = LatencyModel::Overlapped;
        let made = Problem::new(topology, collective, 1, &[unwinding], latency, MEMORY);
        let made = made.expect("it fits");
        let times = made.greedy(0, 8, &mut Silent);
        [times.map(|times| made.plan(GREEDY, &times)), made.blind(0)]
    };
    UNWINDINGS.into_iter().flat_map(of).collect()
}

fn assert_proved(topology: &Topology, collective: &Collective) {
    for plan in plans(topology, collective) {
        let plan = Arc::new(plan.expect("there is a way"));
        let proof = verify(plan, Arc::new(topology.clone()), &mut Silent);
        assert!(proof.is_ok(), "{:?}", proof.err());
    }
}

fn assert_refused(topology: &Topology, collective: &Collective, why: &str) {
    for plan in plans(topology, collective) {
        let found = plan.expect_err("there is no way").to_string();
        assert!(found.contains(why), "{found}");
    }
}

fn rooted(topology: &Topology, kind: CollectiveKind, root: u32) -> Collective {
    let npus = topology.npus().collect();
    Collective::new(kind, npus, 3_000, Some(Rank(root))).expect("a collective")
}

/// a to s, b to s, s to root.
#[test]
fn what_flows_one_way_through_a_switch_is_gathered_and_summed_but_not_spread() {
    let topology = directed(3, 1, &[(0, 3), (1, 3), (3, 2)]);
    for kind in [CollectiveKind::Gather, CollectiveKind::Reduce] {
        assert_proved(&topology, &rooted(&topology, kind, 2));
    }
    let scatter = rooted(&topology, CollectiveKind::Scatter, 2);
    let why = "NPU 0 needs chunk 0, and there is no way to it from NPU 2, which holds it";
    assert_refused(&topology, &scatter, why);
    let reduce = rooted(&topology, CollectiveKind::Reduce, 1);
    let why = "NPU 0 adds to chunk 0, and there is no way from it to NPU 1, which wants the sum";
    assert_refused(&topology, &reduce, why);
    let turned = directed(3, 1, &[(3, 0), (3, 1), (2, 3)]);
    for kind in [CollectiveKind::Scatter, CollectiveKind::Broadcast] {
        assert_proved(&turned, &rooted(&turned, kind, 2));
    }
}

/// Two switches, joined one way: the NPUs of the first reach all, those of the second each other.
#[test]
fn chains_of_switches_carry_one_way() {
    let both = |npu, switch| [(npu, switch), (switch, npu)];
    let ends = [both(0, 4), both(1, 4), both(2, 5), both(3, 5)].concat();
    let topology = directed(4, 2, &[&ends[..], &[(4, 5)]].concat());
    for root in [0, 1] {
        assert_proved(
            &topology,
            &rooted(&topology, CollectiveKind::Broadcast, root),
        );
    }
    for root in [2, 3] {
        assert_proved(&topology, &rooted(&topology, CollectiveKind::Gather, root));
        let broadcast = rooted(&topology, CollectiveKind::Broadcast, root);
        assert_refused(
            &topology,
            &broadcast,
            "needs chunk 0, and there is no way to it",
        );
    }
}

/// A switch that only takes from some and only gives to others, beside those that do both.
#[test]
fn ends_of_one_direction_share_those_of_both() {
    let mut links = Vec::new();
    links.extend((0..3).map(|npu| (npu, 8)));
    links.extend((3..6).map(|npu| (8, npu)));
    links.extend([(6, 8), (8, 6), (7, 8), (8, 7)]);
    let topology = directed(8, 1, &links);
    for npu in 0..6 {
        // Whoever lacks one direction has another way for it, or none could do anything.
        let (a, b) = if npu < 3 { (6, npu) } else { (npu, 6) };
        links.push((a, b));
    }
    let closed = directed(8, 1, &links);
    for kind in CollectiveKind::NAMED {
        let root = kind.is_rooted().then_some(Rank(4));
        let npus = closed.npus().collect();
        let collective = Collective::new(kind, npus, 8_000, root).expect("a collective");
        assert_proved(&closed, &collective);
    }
    for unwinding in UNWINDINGS {
        let network = UnwoundNetwork::new(&topology, &[unwinding]);
        let degree = |npu: usize| (network.in_edges(npu).len(), network.out_edges(npu).len());
        for npu in 0..3 {
            assert_eq!((degree(npu).0, degree(npu + 3).1), (0, 0), "{unwinding}");
            assert!(degree(npu).1 > 0 && degree(npu + 3).0 > 0, "{unwinding}");
        }
    }
}

fn summed(holders: &[u32], wanted: &[u32], npus: u32) -> Collective {
    let set = |npus: &[u32]| NpuSet::of(npus.iter().map(|&npu| NpuId(npu)));
    let demand = Demand {
        bytes: 1_000,
        reduced: true,
        holders: set(holders),
        wanted: set(wanted),
    };
    Collective::custom((0..npus).map(NpuId).collect(), vec![demand]).expect("a collective")
}

#[test]
fn sums_are_made_where_all_who_add_can_meet() {
    // Neither 0 nor 1 can be reached from the other; 2 and 3 want the sum.
    let topology = directed(4, 0, &[(0, 2), (1, 2), (2, 3)]);
    assert_proved(&topology, &summed(&[0, 1], &[2, 3], 4));
    // It meets at 3, before it gets to 2, where it is made.
    let topology = directed(4, 0, &[(0, 3), (1, 3), (3, 2), (2, 3)]);
    assert_proved(&topology, &summed(&[0, 1], &[2, 3], 4));
    // It meets at 4, which neither adds nor wants.
    let topology = directed(5, 0, &[(0, 4), (1, 4), (4, 2), (4, 3)]);
    assert_proved(&topology, &summed(&[0, 1], &[2, 3], 5));
    // Nobody between: 2 and 3 would each have to sum the same chunk.
    let topology = directed(4, 0, &[(0, 2), (0, 3), (1, 2), (1, 3)]);
    let why = "no NPU can be reached by all 2 that add to it and reach all 2 that want the sum";
    assert_refused(&topology, &summed(&[0, 1], &[2, 3], 4), why);
}

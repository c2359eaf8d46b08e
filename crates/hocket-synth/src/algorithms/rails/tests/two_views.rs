//! A schedule at dimension fidelity and its plan at link fidelity tell the same time.

use super::*;
use crate::multirail::{fixed_order, networks::table_2};
use crate::simulate::{SimulateOptions, simulate};
use crate::topology::{LatencyModel, Switching};
use crate::verify::verify;

/// Proves a plan and simulates it; picoseconds.
fn link_time(plan: Plan, topology: &Topology, latency: LatencyModel) -> u64 {
    let verified = verify(plan.into(), topology.clone().into(), &mut Silent).unwrap();
    let options = SimulateOptions {
        latency,
        ..SimulateOptions::default()
    };
    simulate(&verified, &options, &mut Silent)
        .unwrap()
        .time
        .as_ps()
}

/// How much longer a plan takes at link fidelity than its schedule says, of that.
fn excess(
    algorithm: Algorithm,
    topology: &Topology,
    collective: &Collective,
    chunks: usize,
    latency: LatencyModel,
) -> f64 {
    let schedule = scheduled(algorithm, topology, collective, chunks);
    let plan = plan_of(&schedule, topology, collective, MEMORY).unwrap();
    let counted = transfer_count(topology, collective, algorithm, chunks);
    match algorithm {
        Algorithm::MultirailOptimal => assert!(plan.len() as u128 <= 2 * counted),
        _ => assert_eq!(plan.len() as u128, counted),
    }
    assert_eq!(plan.algorithm(), algorithm.name());
    assert_eq!(plan.link_order(), LinkOrder::Plan);
    let model = Model {
        switching: topology.switching(),
        latency,
    };
    let expected = schedule.simulate(model).finish as f64;
    link_time(plan, topology, latency) as f64 / expected - 1.0
}

/// How much less a plan may take at link fidelity than its schedule says, of that. It never takes
/// more.
///
/// A schedule takes every NPU for the busiest of each step. All are alike on rings, full
/// connections and switches of a power of two; elsewhere some wait less than the schedule thinks.
fn slack(topology: &Topology) -> f64 {
    let has = |odd: fn(&Dimension) -> bool| topology.dimensions().iter().any(odd);
    let stores = topology.switching() == Switching::StoreAndForward;
    // Halves of a group that differ: the rank without a partner sends to one that receives twice,
    // which then has less to do in the next steps. Of seven blocks that the steps of five ranks
    // have, the busiest rank receives five.
    if has(|side| side.kind == Switch && !side.size.is_power_of_two()) {
        return 0.35;
    }
    // Two hops are counted, and the two ends of a line are one hop from where they send.
    if has(|side| side.kind == Line && side.size > 2) {
        return if stores { 0.35 } else { 0.05 };
    }
    ROUNDING
}

/// Bytes and picoseconds are whole in a plan.
const ROUNDING: f64 = 5e-4;

fn any_shape() -> impl Strategy<Value = (DimensionKind, u32)> {
    prop_oneof![
        (prop_oneof![Just(Ring), Just(FullyConnected)], 2u32..7),
        (Just(Switch), prop_oneof![Just(2u32), Just(4), Just(8)]),
    ]
}

fn awkward_shape() -> impl Strategy<Value = (DimensionKind, u32)> {
    prop_oneof![any_shape(), (Just(Line), 2u32..7), (Just(Switch), 3u32..8)]
}

proptest! {
    #![proptest_config(config(80))]

    #[test]
    fn both_views_tell_the_same_time(
        dimensions in prop_oneof![dimensions(any_shape(), 4), dimensions(awkward_shape(), 3)],
        algorithm in multirail_algorithms(),
        kind in kinds(),
        stores in any::<bool>(),
        occupying in any::<bool>(),
        chunks in 1usize..9,
        bytes in 20_000_000u64..80_000_000,
    ) {
        let mut topology = topology(&dimensions);
        if stores {
            topology = topology.with_switching(Switching::StoreAndForward);
        }
        prop_assume!(topology.npu_count() <= 200);
        let collective = Collective::among_all(kind, &topology, bytes).unwrap();
        let latency = if occupying { LatencyModel::Occupying } else { LatencyModel::Overlapped };
        let excess = excess(algorithm, &topology, &collective, chunks, latency);
        let slack = slack(&topology);
        prop_assert!((-slack..ROUNDING).contains(&excess), "{} of -{}", excess, slack);
    }
}

/// Themis's plan and the hierarchical one, in 64 chunks.
fn assert_table_2(bytes: u64, names: &[&str]) {
    for (name, topology) in table_2() {
        if !names.contains(&name) {
            continue;
        }
        let collective = Collective::among_all(AllReduce, &topology, bytes).unwrap();
        let latency = LatencyModel::Overlapped;
        let excess = excess(Algorithm::Themis, &topology, &collective, 64, latency);
        assert!(excess.abs() < 1e-3, "{name} {bytes}: {excess}");
    }
}

/// The hierarchical plan takes what comes first where a schedule keeps an order: the same, but for
/// ties.
fn assert_hierarchical(bytes: u64, names: &[&str]) {
    for (name, topology) in table_2() {
        if !names.contains(&name) {
            continue;
        }
        let collective = Collective::among_all(AllReduce, &topology, bytes).unwrap();
        let options = PlanOptions {
            chunks: Some(64),
            ..PlanOptions::new(Algorithm::Hierarchical)
        };
        let plan = crate::algorithms::plan(&topology, &collective, &options, &mut Silent).unwrap();
        let rails = Rail::of(&topology);
        let lanes = fixed_order(&rails, AllReduce, bytes, 64);
        let schedule = Schedule::new(AllReduce, rails, lanes, Policy::Fifo, Model::default());
        let expected = schedule.timeline.finish as f64;
        let excess = link_time(plan, &topology, LatencyModel::Overlapped) as f64 / expected - 1.0;
        assert!(excess.abs() < 0.02, "{name} {bytes}: {excess}");
    }
}

const TWO_AND_THREE: [&str; 4] = [
    "2D-SW_SW",
    "3D-SW_SW_SW_homo",
    "3D-SW_SW_SW_hetero",
    "3D-FC_Ring_SW",
];

const FOUR: [&str; 2] = ["4D-Ring_SW_SW_SW", "4D-Ring_FC_Ring_SW"];

#[test]
#[ignore = "slow: plans of a million transfers are proved and simulated"]
fn both_views_agree_on_two_and_three_dimensions_of_table_2() {
    assert_table_2(100_000_000, &TWO_AND_THREE);
}

#[test]
#[ignore = "slow: plans of a million transfers are proved and simulated"]
fn both_views_agree_on_four_dimensions_of_table_2() {
    assert_table_2(100_000_000, &FOUR);
    assert_hierarchical(100_000_000, &FOUR);
}

#[test]
#[ignore = "slow: thirty plans of a million transfers and more"]
fn both_views_agree_on_all_of_table_2() {
    for bytes in [250, 1000].map(|mb| mb * 1_000_000) {
        for names in [&TWO_AND_THREE[..], &FOUR] {
            assert_table_2(bytes, names);
            assert_hierarchical(bytes, names);
        }
    }
    assert_hierarchical(100_000_000, &TWO_AND_THREE);
}

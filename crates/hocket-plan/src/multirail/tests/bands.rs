//! The published figures of Themis, and those of ASTRA-sim's congestion-unaware back end.

use super::*;
use crate::topology::LatencyModel;

fn assert_near(what: &str, found: f64, expected: f64, within: f64) {
    assert!(
        (found - expected).abs() <= within,
        "{what}: {found}, not {expected} +- {within}"
    );
}

/// Themis, figures 8 and 11: the means over six networks and five sizes.
#[test]
fn utilization_and_speed_up_are_those_published() {
    let kind = CollectiveKind::AllReduce;
    let mut used = [0.0; 3];
    let mut faster = [0.0; 2];
    let mut fastest: f64 = 0.0;
    for (_, rails) in rails_of_table_2() {
        for bytes in SIZES.map(|mb| mb * 1_000_000) {
            let run = |lanes: &[Lane], policy| {
                simulate(&rails, lanes, PARTS, policy, Model::default()).finish
            };
            let fixed = run(&fixed_order(&rails, kind, bytes, 64), Policy::Fifo);
            let lanes = themis(&rails, kind, bytes, 64);
            let fifo = run(&lanes, Policy::Fifo);
            let smallest = run(&lanes, Policy::SmallestFirst);
            for (sum, time) in used.iter_mut().zip([fixed, fifo, smallest]) {
                *sum += utilization(&rails, bytes, time) / 30.0;
            }
            let times = [fifo, smallest].map(|time| fixed as f64 / time as f64);
            for (sum, times) in faster.iter_mut().zip(times) {
                *sum += times / 30.0;
            }
            fastest = fastest.max(times[1]);
        }
    }
    assert_near("fixed order", used[0], 0.563, 0.015);
    assert_near("Themis, FIFO", used[1], 0.877, 0.04);
    assert_near("Themis", used[2], 0.951, 0.015);
    assert_near("speed-up, FIFO", faster[0], 1.58, 0.08);
    assert_near("speed-up", faster[1], 1.72, 0.06);
    assert_near("greatest speed-up", fastest, 2.70, 0.12);
}

/// ASTRA-sim (commit 518bd51), a chunk at a time on each dimension: nanoseconds for 1 GB and 100
/// MB.
const ASTRA_SIM: [(u64, u64); 6] = [
    (12_859_520, 1_608_960),
    (19_109_504, 2_233_856),
    (9_734_528, 1_296_384),
    (10_089_984, 1_597_316),
    (6_009_536, 701_500),
    (4_009_664, 683_130),
];

#[test]
fn occupying_latency_in_one_part_is_astra_sims_model() {
    let model = Model {
        latency: LatencyModel::Occupying,
        ..Model::default()
    };
    for ((name, mut rails), (large, small)) in rails_of_table_2().into_iter().zip(ASTRA_SIM) {
        // It has no links: a step occupies its dimension for all of its latency, as over one link.
        for rail in &mut rails {
            if rail.kind == DimensionKind::Switch {
                rail.kind = DimensionKind::FullyConnected;
            }
        }
        for (bytes, expected, within) in [(1_000_000_000, large, 1e-3), (100_000_000, small, 3e-3)]
        {
            let lanes = fixed_order(&rails, CollectiveKind::AllReduce, bytes, 64);
            let found = simulate(&rails, &lanes, 1, Policy::Fifo, model).finish as f64 / 1e3;
            let expected = expected as f64;
            assert_near(name, found, expected, within * expected);
        }
    }
}

//! Switches that sum and multicast.

use super::*;
use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
use DimensionKind::Switch;

const GIGABYTE: u64 = 1_000_000_000;

fn switch(size: u32, bandwidth: u64, offload: bool) -> Dimension {
    Dimension {
        offload,
        ..dimension(Switch, size, bandwidth, 350_000)
    }
}

#[test]
fn a_pass_is_one_step_and_all_bytes_cross_once_each_way() {
    let plain = rails(&[switch(16, GIGABYTE, false)]);
    let sums = rails(&[switch(16, GIGABYTE, true)]);
    assert_eq!((plain[0].step_count(), plain[0].share()), (4, 15.0 / 16.0));
    assert_eq!((sums[0].step_count(), sums[0].share()), (1, 1.0));
    assert_eq!(sums[0].fixed_delay(), Time::from_ns(700));
    let bytes = 1_600_000;
    let sent = |rails: &[Rail]| -> f64 {
        let lanes = fixed_order(rails, AllReduce, bytes, 1);
        lanes[0].stages(rails).map(|stage| stage.sent).sum()
    };
    // 2 (P - 1) / P S out of each NPU's one port, against S up and S down.
    assert_eq!(sent(&plain), 2.0 * 15.0 / 16.0 * 1.6e6);
    assert_eq!(sent(&sums), 2.0 * 1.6e6);
}

#[test]
fn all_reduce_goes_up_and_down_at_once() {
    let rails = rails(&[switch(16, GIGABYTE, true)]);
    let run = |kind, chunks| {
        let lanes = fixed_order(&rails, kind, 1_600_000, chunks);
        simulate(&rails, &lanes, 1, Policy::Fifo, Model::default()).finish
    };
    let latency = 700_000;
    // 1.6 MB at 1 GB/s are 1.6 ms; a chunk comes down while the next goes up.
    let whole = 1_600_000_000;
    assert_eq!(run(ReduceScatter, 1), whole + latency);
    assert_eq!(run(AllGather, 1), whole + latency);
    for chunks in [1, 4, 64] {
        let expected = whole + whole / chunks as u64 + 2 * latency;
        assert_eq!(run(AllReduce, chunks), expected, "{chunks}");
    }
}

#[test]
fn themis_sends_less_to_a_rail_that_is_loaded_more() {
    let with = |offload| {
        let rails = rails(&[switch(2, GIGABYTE, offload), switch(2, GIGABYTE, false)]);
        let lanes = themis(&rails, ReduceScatter, 6_400_000, 64);
        let first = lanes.iter().filter(|lane| lane.reduce_scatter[0] == 0);
        first.count()
    };
    assert_eq!(with(false), 32);
    // Before: half of what is held, first or second. Now: all of it, which is twice as much.
    assert!(with(true) < 32, "{}", with(true));
}

//! Themis's orders: its worked example, and Algorithm 1 written straight from the paper.

use proptest::prelude::*;

use super::*;
use crate::id::fit;
use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
use DimensionKind::{FullyConnected, Ring, Switch};

const GIGABYTE: u64 = 1_000_000_000;

/// Sections 3.3 and 4.2, figures 5 and 7: a 4 x 4 network whose first dimension has twice the
/// bandwidth, no latency, 256 MB in four chunks.
fn worked_example() -> Vec<Rail> {
    rails(&[
        dimension(Switch, 4, 2 * GIGABYTE, 0),
        dimension(Switch, 4, GIGABYTE, 0),
    ])
}

/// Bytes of the worked example.
const EXAMPLE: u64 = 256_000_000;

fn firsts(lanes: &[Lane]) -> Vec<u8> {
    lanes.iter().map(|lane| lane.reduce_scatter[0]).collect()
}

#[test]
fn worked_example_goes_the_published_ways() {
    let rails = worked_example();
    let fixed = fixed_order(&rails, AllReduce, EXAMPLE, 4);
    // 64 MB x 3/4 at 2 GB/s are the figure's unit of time.
    let unit = 24e9;
    for lane in &fixed {
        let times: Vec<f64> = lane
            .stages(&rails)
            .map(|stage| stage.occupied_ps(&rails) / unit)
            .collect();
        assert_eq!(times, [1.0, 0.5, 0.5, 1.0]);
        let order: Vec<u8> = lane.rails().collect();
        assert_eq!(order, [0, 1, 1, 0]);
    }
    let lanes = themis(&rails, AllReduce, EXAMPLE, 4);
    assert_eq!(firsts(&lanes), [0, 1, 0, 0]);
    assert_eq!(lanes[1].reduce_scatter, [1, 0]);
    assert_eq!(lanes[1].all_gather, [0, 1]);
    let mut loads = [0.0; 2];
    for stage in lanes.iter().flat_map(|lane| lane.stages(&rails)) {
        loads[usize::from(stage.rail)] += stage.occupied_ps(&rails) / unit;
    }
    assert_eq!(loads, [6.5, 7.0]);
    // In the fixed order the first rail is busy for all of the time: eight units.
    let model = Model::default();
    let finish = simulate(&rails, &fixed, 1, Policy::Fifo, model).finish;
    assert_eq!(finish as f64 / unit, 8.0);
}

#[test]
fn loads_that_hardly_differ_send_chunks_upwards() {
    // Equal dimensions: the loads are alike before the first chunk, and far apart before the
    // second.
    let equal = rails(&[
        dimension(Ring, 4, GIGABYTE, 5),
        dimension(Ring, 4, GIGABYTE, 5),
    ]);
    for kind in [AllReduce, ReduceScatter] {
        assert_eq!(firsts(&themis(&equal, kind, EXAMPLE, 2)), [0, 1]);
    }
    // The last sixteenth: 16 MB x 3/4 / 16 at 2 GB/s are 375 us on the less loaded second rail.
    let threshold = 375_000_000;
    for (ps, first) in [(threshold - 1, 0), (threshold, 1), (threshold + 1, 1)] {
        // One direct step of an all-gather or reduce-scatter is all of A_K.
        let late = rails(&[
            dimension(FullyConnected, 4, GIGABYTE, ps),
            dimension(Switch, 4, 2 * GIGABYTE, 0),
        ]);
        let lanes = themis(&late, ReduceScatter, 16_000_000, 1);
        assert_eq!(firsts(&lanes), [first], "{ps}");
    }
}

#[test]
fn latency_alone_changes_the_first_order() {
    let with = |ns: u64| {
        let rails = rails(&[
            dimension(Ring, 4, GIGABYTE, ns * 1000),
            dimension(Ring, 4, GIGABYTE, 0),
        ]);
        firsts(&themis(&rails, AllReduce, 1_600_000, 1))
    };
    assert_eq!(with(0), [0]);
    // A sixteenth of the chunk takes 37.5 us at 2 GB/s, and A_K is six steps of 7 us.
    assert_eq!(with(6_000), [0]);
    assert_eq!(with(7_000), [1]);
}

#[test]
fn an_all_gather_is_the_mirror_image() {
    for (_, rails) in rails_of_table_2() {
        let of = |kind| themis(&rails, kind, 100_000_000, 64);
        let (sums, copies) = (of(ReduceScatter), of(AllGather));
        for (sum, copy) in sums.iter().zip(&copies) {
            assert!(sum.all_gather.is_empty() && copy.reduce_scatter.is_empty());
            let back: Vec<u8> = copy.all_gather.iter().rev().copied().collect();
            assert_eq!(sum.reduce_scatter, back);
        }
        assert!(sums.iter().any(|lane| lane.reduce_scatter[0] != 0));
        for lane in of(AllReduce) {
            let back: Vec<u8> = lane.all_gather.iter().rev().copied().collect();
            assert_eq!(lane.reduce_scatter, back);
        }
    }
}

/// What Algorithm 1 says of a dimension.
#[derive(Clone, Copy, Debug)]
struct Dim {
    kind: DimensionKind,
    size: u32,
    /// Picoseconds that a byte takes over all links of an NPU.
    per_byte: u64,
    step_ps: u64,
}

impl Dim {
    /// Steps of a reduce-scatter or all-gather: table 1 of the paper.
    fn steps(self) -> u64 {
        match self.kind {
            FullyConnected => 1,
            Switch => u64::from(self.size.ilog2()),
            _ => u64::from(self.size) - 1,
        }
    }

    /// The dimension with these figures, if its links can have them.
    fn dimension(self) -> Dimension {
        let bandwidth = 1_000_000_000_000 / self.per_byte;
        let (links, hops) = match self.kind {
            Ring if self.size > 2 => (2, 1),
            FullyConnected => (u64::from(self.size) - 1, 1),
            Switch => (1, 2),
            _ => (1, 1),
        };
        assert_eq!(bandwidth % links, 0, "{self:?}");
        dimension(self.kind, self.size, bandwidth / links, self.step_ps / hops)
    }
}

/// Algorithm 1 in whole picoseconds, line by line; all orders, and whether loads were ever equal,
/// or as far apart as the threshold.
fn algorithm_1(
    dims: &[Dim],
    kind: CollectiveKind,
    bytes: u64,
    chunks: u64,
) -> (Vec<Vec<u8>>, bool) {
    let passes = if kind == AllReduce { 2 } else { 1 };
    let mut loads: Vec<u64> = dims
        .iter()
        .map(|dim| passes * dim.steps() * dim.step_ps)
        .collect();
    let chunk = bytes / chunks;
    let mut schedule = Vec::new();
    let mut is_tied = false;
    for _ in 0..chunks {
        let (max, min) = (*loads.iter().max().unwrap(), *loads.iter().min().unwrap());
        let least = loads.iter().position(|&load| load == min).unwrap();
        let sent = |bytes: u64, dim: &Dim| bytes / u64::from(dim.size) * u64::from(dim.size - 1);
        let threshold = sent(chunk / 16, &dims[least]) * dims[least].per_byte;
        // Least to most loaded; selection sort, the lower dimension first where loads are equal.
        let mut left: Vec<u8> = (0..fit(dims.len())).collect();
        let mut ascending = Vec::new();
        while !left.is_empty() {
            let load = |i: usize| loads[usize::from(left[i])];
            let least = (0..left.len()).min_by_key(|&i| load(i)).unwrap();
            is_tied |= (0..left.len()).any(|i| i != least && load(i) == load(least));
            ascending.push(left.remove(least));
        }
        is_tied |= max - min == threshold;
        let is_close = max - min < threshold;
        // The baseline order of an all-gather is downwards.
        let rising = if is_close {
            (0..fit(dims.len())).collect()
        } else {
            ascending
        };
        let falling: Vec<u8> = rising.iter().rev().copied().collect();
        // A reduce-scatter holds most before its first dimension, an all-gather after its last.
        let mut held = chunk;
        for k in rising.iter().map(|&k| usize::from(k)) {
            loads[k] += sent(held, &dims[k]) * dims[k].per_byte;
            held /= u64::from(dims[k].size);
        }
        schedule.push(match kind {
            AllReduce => [rising, falling].concat(),
            ReduceScatter => rising,
            _ => falling,
        });
    }
    (schedule, is_tied)
}

fn dims() -> impl Strategy<Value = Vec<Dim>> {
    let size = prop_oneof![
        (
            prop_oneof![Just(Ring), Just(Switch)],
            prop_oneof![Just(2u32), Just(4), Just(8)]
        ),
        (Just(Ring), prop_oneof![Just(3u32), Just(5), Just(6)]),
        (
            Just(FullyConnected),
            prop_oneof![Just(2u32), Just(3), Just(5), Just(6)]
        ),
    ];
    // Bandwidths that any number of links up to five divides.
    let per_byte = prop_oneof![
        Just(10u64),
        Just(20),
        Just(25),
        Just(40),
        Just(50),
        Just(100)
    ];
    let one =
        (size, per_byte, 0u64..4, 0u64..100).prop_map(|((kind, size), per_byte, far, ns)| Dim {
            kind,
            size,
            per_byte,
            step_ps: 2000 * ns * 10u64.pow(fit(far)),
        });
    proptest::collection::vec(one, 1..5)
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn themis_is_algorithm_1(
        dims in dims(),
        kind in prop_oneof![Just(AllReduce), Just(ReduceScatter), Just(AllGather)],
        chunks in 1u64..40,
        units in 1u64..200,
    ) {
        let npus: u64 = dims.iter().map(|dim| u64::from(dim.size)).product();
        let bytes = 16 * npus * units * chunks;
        let (expected, is_tied) = algorithm_1(&dims, kind, bytes, chunks);
        let is_exact = dims.iter().all(|dim| dim.size.is_power_of_two());
        // Where thirds and fifths are rounded, equal loads may come out unequal.
        prop_assume!(is_exact || !is_tied);
        let dimensions: Vec<Dimension> = dims.iter().map(|dim| dim.dimension()).collect();
        let found: Vec<Vec<u8>> = themis(&rails(&dimensions), kind, bytes, fit(chunks))
            .iter()
            .map(|lane| lane.rails().collect())
            .collect();
        prop_assert_eq!(found, expected);
    }
}

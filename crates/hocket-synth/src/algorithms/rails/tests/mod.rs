mod consistent;
mod two_views;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::algorithms::{Algorithm, PlanOptions, schedule, transfer_count};
use crate::multirail::networks::dimension;
use crate::multirail::{Lane, Model, Policy};
use crate::progress::Silent;
use crate::topology::{Dimension, DimensionKind, build};
use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
use DimensionKind::{FullyConnected, Line, Ring, Switch};

/// No limit that a test meets.
const MEMORY: u64 = 1 << 40;

/// So many cases of a property, the same on every run; `PROPTEST_CASES` asks for that many new ones.
fn config(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig::with_cases(cases);
    match std::env::var("PROPTEST_CASES").map(|cases| cases.parse()) {
        Ok(Ok(cases)) => config.cases = cases,
        _ => config.rng_seed = RngSeed::Fixed(1),
    }
    config.failure_persistence = None;
    config
}

fn topology(dimensions: &[Dimension]) -> Topology {
    build::product(dimensions).unwrap()
}

/// A multi-rail algorithm's schedule, after a short search.
fn scheduled(
    algorithm: Algorithm,
    topology: &Topology,
    collective: &Collective,
    chunks: usize,
) -> Schedule {
    let options = PlanOptions {
        chunks: Some(chunks),
        effort: 3_000,
        ..PlanOptions::new(algorithm)
    };
    schedule(topology, collective, &options, &mut Silent).unwrap()
}

/// Dimensions of the kinds and sizes given, with any bandwidth and latency, a few of one NPU.
fn dimensions(
    shapes: impl Strategy<Value = (DimensionKind, u32)>,
    most: usize,
) -> impl Strategy<Value = Vec<Dimension>> {
    let one = (shapes, 1u64..60, 0u64..3000, 0..8);
    let one = one.prop_map(|((kind, size), rate, ns, is_one)| {
        let size = if is_one == 0 { 1 } else { size };
        dimension(kind, size, rate * 1_000_000_000, ns * 500)
    });
    proptest::collection::vec(one, 1..=most).prop_filter("two NPUs or more", |dimensions| {
        dimensions.iter().any(|dimension| dimension.size > 1)
    })
}

fn kinds() -> impl Strategy<Value = CollectiveKind> {
    prop_oneof![Just(AllReduce), Just(ReduceScatter), Just(AllGather)]
}

fn multirail_algorithms() -> impl Strategy<Value = Algorithm> {
    use Algorithm::{MultirailOptimal, Themis, ThemisFifo};
    prop_oneof![Just(ThemisFifo), Just(Themis), Just(MultirailOptimal)]
}

#[test]
fn a_layout_counts_the_transfers_that_templates_make() {
    let shapes = [
        [(Ring, 4), (Switch, 8), (FullyConnected, 3)],
        [(Switch, 3), (Switch, 6), (Ring, 2)],
        [(Line, 5), (Switch, 5), (Switch, 2)],
        [(FullyConnected, 2), (Switch, 7), (Line, 3)],
    ];
    for shape in shapes {
        let dims = shape.map(|(kind, size)| dimension(kind, size, 1_000_000_000, 0));
        let rails = Rail::of(&topology(&dims));
        let orders = [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ];
        let mut all = orders.map(Vec::from).to_vec();
        all.push(Vec::new());
        for reduce_scatter in &all {
            for all_gather in &all {
                let lane = Lane {
                    bytes: 1_000_000,
                    reduce_scatter: reduce_scatter.clone(),
                    all_gather: all_gather.clone(),
                };
                let counted = lane.layout(&rails).1;
                for part in 0..PARTS {
                    let made = Template::new(&rails, &lane, part).transfers(&rails);
                    assert_eq!(made, u128::from(counted), "{shape:?} {lane:?}");
                }
            }
        }
    }
}

#[test]
fn a_plan_is_refused_where_switches_sum() {
    let sums = Dimension {
        offload: true,
        ..dimension(Switch, 4, 1_000_000_000, 0)
    };
    let plain = dimension(Ring, 3, 1_000_000_000, 0);
    let topology = topology(&[plain, sums]);
    let collective = Collective::among_all(AllReduce, &topology, 1_000_000).unwrap();
    let schedule = scheduled(Algorithm::Themis, &topology, &collective, 4);
    let error = plan_of(&schedule, &topology, &collective, MEMORY).unwrap_err();
    assert_eq!(
        error.to_string().split(": ").last().unwrap(),
        "switches of dimension 2 sum, and a plan is of transfers between NPUs; simulate the \
         schedule instead of a plan, or leave offload out"
    );
}

#[test]
fn a_plan_is_refused_where_the_schedule_is_for_something_else() {
    let ring = dimension(Ring, 3, 1_000_000_000, 0);
    let here = topology(&[ring, ring]);
    let there = topology(&[ring, dimension(Switch, 3, 1_000_000_000, 0)]);
    let all_reduce = |topology| Collective::among_all(AllReduce, topology, 1_000_000).unwrap();
    let schedule = scheduled(Algorithm::Themis, &here, &all_reduce(&here), 4);
    let why = |topology, collective| match plan_of(&schedule, topology, &collective, MEMORY) {
        Err(PlanError::NotApplicable { algorithm, why }) => {
            assert_eq!(algorithm, "themis");
            why
        }
        other => panic!("{other:?}"),
    };
    let gather = Collective::among_all(AllGather, &here, 1_000_000).unwrap();
    assert!(why(&here, gather).contains("of all-reduce, not all-gather"));
    assert!(why(&there, all_reduce(&there)).contains("for other dimensions"));
    let longer = Collective::among_all(AllReduce, &here, 1_000_001).unwrap();
    assert!(why(&here, longer).contains("have 1000000 B, the collective 1000001 B"));
    assert!(matches!(
        plan_of(&schedule, &here, &all_reduce(&here), 1),
        Err(PlanError::TooLarge { .. })
    ));
}

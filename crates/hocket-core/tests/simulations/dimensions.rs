//! Use of dimensions against closed forms, activity against a slow oracle.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use hocket_core::algorithms::{self, Algorithm, PlanOptions};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::id::{TransferId, narrow};
use hocket_core::progress::Silent;
use hocket_core::report::{Bins, DimensionReport, activity};
use hocket_core::simulate::{Run, SimulateOptions, simulate};
use hocket_core::topology::{Dimension, DimensionKind, Topology, build};
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::{Verified, verify};

use CollectiveKind::{AllGather, AllReduce, AllToAll, ReduceScatter};
use DimensionKind::{FullyConnected, Line, Ring, Switch};

/// Bytes per second: a byte takes 1,000 ps.
const RATE: u64 = 1_000_000_000;

fn product(sides: &[(DimensionKind, u32, u64, u64)]) -> Arc<Topology> {
    let side = |&(kind, size, rate, latency)| Dimension {
        kind,
        size,
        bandwidth: Bandwidth::from_bytes_per_second(rate).expect("positive"),
        latency: Time::from_ps(latency),
        offload: false,
    };
    let sides: Vec<Dimension> = sides.iter().map(side).collect();
    Arc::new(build::product(&sides).expect("a product"))
}

fn run(
    topology: &Arc<Topology>,
    kind: CollectiveKind,
    size: u64,
    algorithm: Algorithm,
    chunks: usize,
) -> (Run, Verified) {
    let collective = Collective::among_all(kind, topology, size).expect("a collective");
    let options = PlanOptions {
        chunks: Some(chunks),
        ..PlanOptions::new(algorithm)
    };
    let plan = algorithms::plan(topology, &collective, &options, &mut Silent).expect("it applies");
    let verified = verify(Arc::new(plan), Arc::clone(topology), &mut Silent).expect("right");
    let run = simulate(&verified, &SimulateOptions::default(), &mut Silent).expect("it runs");
    (run, verified)
}

fn figures(run: &(Run, Verified)) -> DimensionReport {
    let (run, verified) = run;
    let collective = verified.plan().collective();
    DimensionReport::new(run, collective, verified.topology()).expect("a product")
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

#[test]
fn a_ring_goes_one_way_only() {
    for (n, alpha) in [(2, 0), (3, 0), (5, 0), (5, 7_000), (8, 123_456)] {
        let topology = product(&[(Ring, n, RATE, alpha)]);
        let block = 1000;
        let size = block * u64::from(n);
        let used = figures(&run(&topology, AllReduce, size, Algorithm::Ring, 1));
        // Two NPUs have one link each way, and use it.
        let ways = if n == 2 { 1.0 } else { 2.0 };
        let wire = block as f64 * 1000.0;
        let one = used.dimensions[0];
        assert_eq!((one.kind, one.size), (Ring, n));
        assert!(close(one.bandwidth, ways * RATE as f64));
        assert_eq!(one.bytes, u128::from(2 * size * u64::from(n - 1)));
        assert!(close(one.utilization, wire / (wire + alpha as f64) / ways));
        assert_eq!(one.utilization, used.weighted_utilization);
    }
}

#[test]
fn direct_on_a_full_mesh_is_ideal_but_for_latency() {
    for (kind, passes) in [(AllReduce, 2.0), (ReduceScatter, 1.0), (AllGather, 1.0)] {
        for alpha in [0, 40_000] {
            let topology = product(&[(FullyConnected, 6, RATE, alpha)]);
            let made = run(&topology, kind, 6_000, Algorithm::Direct, 1);
            let used = figures(&made);
            let wire = 1000.0 * 1000.0;
            let one = used.dimensions[0];
            assert!(close(one.utilization, wire / (wire + alpha as f64)));
            assert!(close(used.ideal.expect("balanced"), passes * wire * 1e-12));
            let time = made.0.time.as_seconds();
            assert!(close(used.weighted_utilization, used.ideal.unwrap() / time));
        }
    }
    let topology = product(&[(FullyConnected, 6, RATE, 0)]);
    let other = figures(&run(&topology, AllToAll, 6_000, Algorithm::Direct, 1));
    assert_eq!(other.ideal, None);
    assert!(close(other.weighted_utilization, 1.0));
}

#[test]
fn the_mean_over_the_npus_of_a_line() {
    let topology = product(&[
        (Line, 5, RATE, 0),
        (Switch, 1, 9, 0),
        (Switch, 2, 3 * RATE, 0),
    ]);
    let used = figures(&run(&topology, AllReduce, 1000, Algorithm::Ring, 1));
    assert_eq!(used.dimensions.len(), 2, "a dimension of one NPU is none");
    assert!(close(used.dimensions[0].bandwidth, 1.6 * RATE as f64));
    assert!(close(used.dimensions[1].bandwidth, 3.0 * RATE as f64));
}

/// A stage among P NPUs that hold s bytes has each send (P - 1) / P x s, there and back.
#[test]
fn hierarchical_stages_shrink() {
    let products: [&[(DimensionKind, u32, u64, u64)]; 3] = [
        &[(Switch, 4, RATE, 700), (FullyConnected, 3, 2 * RATE, 500)],
        &[(Ring, 3, 5 * RATE, 20), (Switch, 8, RATE, 700)],
        &[
            (FullyConnected, 5, RATE, 0),
            (Ring, 1, 1, 0),
            (Ring, 4, RATE, 9),
        ],
    ];
    for sides in products {
        let topology = product(sides);
        let npus = topology.npu_count() as u64;
        let size = npus * 4000;
        for (kind, passes) in [(AllReduce, 2), (ReduceScatter, 1), (AllGather, 1)] {
            for chunks in [1, 4] {
                let made = run(&topology, kind, size, Algorithm::Hierarchical, chunks);
                let used = figures(&made);
                let mut left = size;
                let wide = sides.iter().filter(|side| side.1 > 1);
                for (one, &(.., many, _, _)) in used.dimensions.iter().zip(wide) {
                    let many = u64::from(many);
                    let sent = passes * npus * (many - 1) * (left / many);
                    assert_eq!(one.bytes, sent.into(), "{kind} on {}", topology.name());
                    left /= many;
                }
                let time = made.0.time.as_seconds();
                let ideal = used.ideal.expect("balanced");
                assert!(close(used.weighted_utilization, ideal / time));
                let mean: f64 = used
                    .dimensions
                    .iter()
                    .map(|d| d.bandwidth * d.utilization)
                    .sum();
                let weights: f64 = used.dimensions.iter().map(|d| d.bandwidth).sum();
                assert!(close(used.weighted_utilization, mean / weights));
            }
        }
    }
}

#[test]
fn no_dimensions_no_figures() {
    let rate = Bandwidth::from_bytes_per_second(RATE).expect("positive");
    let ring = build::ring(4, rate, Time::ZERO, build::RingWays::One).expect("a ring");
    let (run, verified) = run(&Arc::new(ring), AllReduce, 400, Algorithm::Ring, 1);
    let collective = verified.plan().collective();
    let none = DimensionReport::new(&run, collective, verified.topology());
    let message = none.expect_err("no product").to_string();
    assert!(message.contains("\"one-way ring 4\" is not a whole product"));
    assert!(activity(&run, &verified, Bins::Count(3)).is_err());
}

/// Each bin by itself, each dimension by itself, every transfer's links one by one.
fn slow_activity(run: &Run, verified: &Verified, edges: &[f64]) -> Vec<f64> {
    let topology = verified.topology();
    let of_link = topology.link_dimensions().expect("a product");
    let mut shares = Vec::new();
    for (i, _) in topology
        .dimensions()
        .iter()
        .enumerate()
        .filter(|(_, d)| d.size > 1)
    {
        let passes = |&t: &usize| {
            let links = verified
                .routes()
                .links(verified.plan(), topology, TransferId::from(t));
            links
                .iter()
                .any(|link| of_link[link.index()] == Some(narrow(i)))
        };
        let under_way: Vec<(f64, f64)> = (0..run.start.len())
            .filter(passes)
            .map(|t| (run.start[t].as_ps() as f64, run.end[t].as_ps() as f64))
            .collect();
        let mut points: Vec<f64> = under_way.iter().flat_map(|&(a, b)| [a, b]).collect();
        points.extend(edges);
        points.sort_by(f64::total_cmp);
        for bin in edges.windows(2) {
            let covered = |pair: &[f64]| {
                let inside = bin[0] <= pair[0] && pair[1] <= bin[1];
                inside && under_way.iter().any(|&(a, b)| a <= pair[0] && pair[1] <= b)
            };
            let parts = points.windows(2).filter(|&pair| covered(pair));
            let busy: f64 = parts.map(|pair| pair[1] - pair[0]).sum();
            shares.push(busy / (bin[1] - bin[0]));
        }
    }
    shares
}

fn check_activity(run: &Run, verified: &Verified, bins: Bins) -> Result<(), TestCaseError> {
    let time = run.time.as_ps() as f64;
    let edges: Vec<f64> = match bins {
        Bins::Count(count) => (0..=count)
            .map(|i| time * i as f64 / count as f64)
            .collect(),
        Bins::Period(period) => (0..=bins.count(run.time))
            .map(|i| (i as f64 * period.as_ps() as f64).min(time))
            .collect(),
    };
    let expected = slow_activity(run, verified, &edges);
    let found = activity(run, verified, bins).expect("a product");
    prop_assert_eq!(found.len(), expected.len());
    for (a, b) in found.into_iter().zip(expected) {
        prop_assert!((f64::from(a) - b).abs() < 1e-5, "{} and {}", a, b);
    }
    Ok(())
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::with_cases(64)
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn activity_is_exact(
        sides in prop::collection::vec((0usize..4, 1u32..5, 1u64..4, 0u64..500_000), 1..4),
        algorithm in 0usize..4,
        chunks in 1usize..4,
        bins in 1usize..9,
        period in 50_000u64..3_000_000,
    ) {
        let kinds = [Ring, Line, FullyConnected, Switch];
        let sides: Vec<_> = sides
            .into_iter()
            .map(|(kind, size, rate, latency)| (kinds[kind], size, rate * RATE, latency))
            .collect();
        let npus: u32 = sides.iter().map(|side| side.1).product();
        prop_assume!((2..=24).contains(&npus));
        let all = [Algorithm::Ring, Algorithm::Direct, Algorithm::Hierarchical, Algorithm::Pairwise];
        let algorithm = all[algorithm];
        let kind = if algorithm == Algorithm::Pairwise { AllToAll } else { AllReduce };
        let (run, verified) = run(&product(&sides), kind, 24_000, algorithm, chunks);
        check_activity(&run, &verified, Bins::Count(bins))?;
        check_activity(&run, &verified, Bins::Period(Time::from_ps(period)))?;
    }
}

/// Many senders reach each NPU over several hops, so that routes are trees.
#[test]
fn activity_of_routes_that_are_trees() {
    let topology = product(&[(Ring, 6, RATE, 10), (Line, 4, RATE, 5000)]);
    let (run, verified) = run(&topology, AllGather, 24_000, Algorithm::Direct, 1);
    let trees = |t: u32| {
        matches!(
            verified.routes().route(TransferId(t)),
            hocket_core::plan::Route::Tree(_)
        )
    };
    assert!((0..narrow(run.start.len())).any(trees));
    check_activity(&run, &verified, Bins::Count(7)).expect("exact");
}

#[test]
fn no_bins_no_shares() {
    let topology = product(&[(Ring, 4, RATE, 10)]);
    let (run, verified) = run(&topology, AllGather, 4_000, Algorithm::Ring, 1);
    for bins in [Bins::Count(0), Bins::Period(Time::ZERO)] {
        assert_eq!(activity(&run, &verified, bins), Ok(vec![]));
    }
    let long = Bins::Period(Time::from_ps(u64::MAX));
    assert_eq!(activity(&run, &verified, long), Ok(vec![1.0]));
}

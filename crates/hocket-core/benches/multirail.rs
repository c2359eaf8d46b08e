//! Multi-rail scheduling: Themis's orders, dimension fidelity, the search.

mod common;

use criterion::{Criterion, criterion_group, criterion_main};
use hocket_core::collective::CollectiveKind;
use hocket_core::multirail::{
    EFFORT, Lane, Model, PARTS, Policy, Problem, Rail, optimal, simulate, themis,
};
use hocket_core::progress::Silent;
use hocket_core::topology::DimensionKind::{self, FullyConnected, Ring, Switch};
use hocket_core::topology::{Dimension, build};
use hocket_core::units::{Bandwidth, Time};

const KIND: CollectiveKind = CollectiveKind::AllReduce;
const BYTES: u64 = 1_000_000_000;

/// Rails of Gb/s and nanoseconds of one link.
fn rails(dimensions: &[(DimensionKind, u32, u64, u64)]) -> Vec<Rail> {
    let dimension = |&(kind, size, gbit, ns)| Dimension {
        kind,
        size,
        bandwidth: Bandwidth::from_bytes_per_second(gbit * 125_000_000).expect("positive"),
        latency: Time::from_ns(ns),
        offload: false,
    };
    let dimensions: Vec<Dimension> = dimensions.iter().map(dimension).collect();
    Rail::of(&build::product(&dimensions).expect("a product"))
}

/// 4D-Ring_FC_Ring_SW of Themis, table 2.
fn four() -> Vec<Rail> {
    rails(&[
        (Ring, 4, 1500, 20),
        (FullyConnected, 8, 200, 700),
        (Ring, 4, 600, 700),
        (Switch, 8, 800, 850),
    ])
}

/// 3D-SW_SW_SW_homo of Themis, table 2.
fn three() -> Vec<Rail> {
    rails(&[
        (Switch, 16, 800, 350),
        (Switch, 8, 800, 350),
        (Switch, 8, 800, 850),
    ])
}

/// The share of the bandwidth that is used.
fn utilization(rails: &[Rail], ps: u64) -> f64 {
    let bandwidth: f64 = rails.iter().map(|rail| rail.bandwidth as f64).sum();
    2.0 * BYTES as f64 * (1.0 - 1.0 / 1024.0) / (bandwidth * ps as f64 * 1e-12)
}

fn scheduling(c: &mut Criterion) {
    let mut group = c.benchmark_group("multirail");
    for (name, rails) in [
        ("4D-Ring_FC_Ring_SW", four()),
        ("3D-SW_SW_SW_homo", three()),
    ] {
        let orders = || themis(&rails, KIND, BYTES, 64);
        let lanes = orders();
        assert!(lanes.iter().all(|lane| lane.len() == 2 * rails.len()));
        assert!(lanes.iter().any(|lane| lane.reduce_scatter[0] != 0));
        group.bench_function(format!("themis {name}, 64 chunks"), |b| b.iter(orders));

        let run = |lanes: &[Lane]| {
            simulate(
                &rails,
                lanes,
                PARTS,
                Policy::SmallestFirst,
                Model::default(),
            )
        };
        let used = utilization(&rails, run(&lanes).finish);
        assert!((0.9..1.0).contains(&used), "{name}: {used}");
        group.bench_function(format!("simulate {name}, 64 chunks"), |b| {
            b.iter(|| run(&lanes));
        });
    }
    let problem = Problem {
        kind: KIND,
        rails: four(),
        bytes: BYTES,
        chunks: 64,
        model: Model::default(),
    };
    let search = || optimal(&problem, EFFORT, &mut Silent);
    let used = utilization(&problem.rails, search().timeline.finish);
    assert!((0.98..1.0).contains(&used), "{used}");
    group.sample_size(10);
    group.bench_function("optimal 4D-Ring_FC_Ring_SW, 64 chunks", |b| b.iter(search));
    group.finish();
}

criterion_group!(benches, scheduling);
criterion_main!(benches);

//! Simulation at flow fidelity: transfers per second, on one core.

mod common;

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hocket_core::algorithms::{self, Algorithm, PlanOptions};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::progress::Silent;
use hocket_core::simulate::{FlowOptions, SimulateOptions, simulate, simulate_flows};
use hocket_core::topology::{Topology, build};
use hocket_core::units::Time;
use hocket_core::verify::Verified;

/// Every NPU sends to every other at once: each flow shares links with many.
fn all_to_all(topology: &Arc<Topology>, size: u64) -> Verified {
    let kind = CollectiveKind::AllToAll;
    let collective = Collective::among_all(kind, topology, size).expect("an all-to-all");
    let options = PlanOptions {
        chunks: Some(1),
        ..PlanOptions::new(Algorithm::Direct)
    };
    let plan = algorithms::plan(topology, &collective, &options).expect("it applies");
    common::proved(plan, topology)
}

fn flows(c: &mut Criterion) {
    let mut group = c.benchmark_group("flows");
    group.sample_size(10);

    let ring = common::ring(256);
    let verified = common::proved(common::plan(&ring, Algorithm::Ring, 256 << 20, 1), &ring);
    let run = || simulate_flows(&verified, &FlowOptions::default(), &mut Silent).expect("it runs");
    // Each flow has its link to itself, as each message has.
    let whole = simulate(&verified, &SimulateOptions::default(), &mut Silent).expect("it runs");
    assert_eq!(run(), whole);
    group.throughput(Throughput::Elements(verified.plan().len() as u64));
    group.bench_function("ring of 256", |b| b.iter(run));

    let mesh = build::mesh(&[8, 8], common::gigabytes(25), Time::from_ns(21));
    let mesh = Arc::new(mesh.expect("a mesh"));
    let verified = all_to_all(&mesh, 64 << 20);
    let run = || simulate_flows(&verified, &FlowOptions::default(), &mut Silent).expect("it runs");
    // Over the middle each of 32 NPUs sends to 32, 1 MiB each, by 8 links: they are never idle.
    let middle = common::gigabytes(25).transmission(128 << 20);
    let time = run().time;
    assert!(time > middle && time < middle + Time::from_ns(14 * 21 + 10));
    group.throughput(Throughput::Elements(verified.plan().len() as u64));
    group.bench_function("all-to-all 8x8, 4,032 at once", |b| b.iter(run));
    group.finish();
}

criterion_group!(benches, flows);
criterion_main!(benches);

//! Verification: transfers proved per second, on one core.

mod common;

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hocket_core::algorithms::Algorithm;
use hocket_core::progress::Silent;
use hocket_core::verify::verify;

fn verifying(c: &mut Criterion) {
    let three_switches = common::three_switches();
    let cases = [
        ("ring 64", common::ring(64), Algorithm::Ring, 1),
        ("ring 256", common::ring(256), Algorithm::Ring, 1),
        ("ring 1024", common::ring(1024), Algorithm::Ring, 1),
        (
            "direct 1024 on a ring",
            common::ring(1024),
            Algorithm::Direct,
            1,
        ),
        (
            "hierarchical 16x8x8, 64 chunks",
            three_switches,
            Algorithm::Hierarchical,
            64,
        ),
    ];
    let mut group = c.benchmark_group("verify");
    group.sample_size(10);
    for (name, topology, algorithm, chunks) in cases {
        let plan = Arc::new(common::plan(&topology, algorithm, 1_000_000_000, chunks));
        group.throughput(Throughput::Elements(plan.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                let proof = verify(Arc::clone(&plan), Arc::clone(&topology), &mut Silent);
                proof.expect("the plan is right")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, verifying);
criterion_main!(benches);

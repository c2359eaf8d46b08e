//! Planning: transfers made per second.

mod common;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hocket_core::algorithms::Algorithm;

fn planning(c: &mut Criterion) {
    let cases = [
        (
            "ring 1024",
            common::ring(1024),
            Algorithm::Ring,
            1,
            2_095_104,
        ),
        (
            "hierarchical 16x8x8, 64 chunks",
            common::three_switches(),
            Algorithm::Hierarchical,
            64,
            1_310_720,
        ),
        (
            "hdrm bigraph 32x16, 64 chunks",
            common::bigraph(),
            Algorithm::Hdrm,
            64,
            1_310_720,
        ),
    ];
    let mut group = c.benchmark_group("plan");
    group.sample_size(10);
    for (name, topology, algorithm, chunks, transfers) in cases {
        let make = || common::plan(&topology, algorithm, 1_000_000_000, chunks);
        assert_eq!(make().len(), transfers);
        group.throughput(Throughput::Elements(transfers as u64));
        group.bench_function(name, |b| b.iter(make));
    }
    group.finish();
}

criterion_group!(benches, planning);
criterion_main!(benches);

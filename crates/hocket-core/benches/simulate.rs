//! Simulation at link fidelity: transfers per second, on one core.

mod common;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hocket_core::algorithms::Algorithm;
use hocket_core::progress::Silent;
use hocket_core::simulate::{SimulateOptions, simulate};
use hocket_core::units::Time;

/// 2 (n - 1) (alpha + S / (n B)), where n divides S and S / (n B) is whole.
fn ring_closed_form(n: u64, size: u64) -> Time {
    Time::from_ps(2 * (n - 1) * (500_000 + size / n * 20))
}

fn simulating(c: &mut Criterion) {
    let mut group = c.benchmark_group("simulate");
    group.sample_size(10);
    for n in [64, 256, 1024] {
        let (topology, size) = (common::ring(n), 64 << 20);
        let verified = common::proved(common::plan(&topology, Algorithm::Ring, size, 1), &topology);
        let options = SimulateOptions::default();
        let run = || simulate(&verified, &options, &mut Silent).expect("it runs");
        assert_eq!(run().time, ring_closed_form(n.into(), size));
        group.throughput(Throughput::Elements(verified.plan().len() as u64));
        group.bench_function(format!("ring {n}"), |b| b.iter(run));
    }
    let topology = common::three_switches();
    let plan = common::plan(&topology, Algorithm::Hierarchical, 1_000_000_000, 64);
    let verified = common::proved(plan, &topology);
    group.throughput(Throughput::Elements(verified.plan().len() as u64));
    group.bench_function("hierarchical 16x8x8, 64 chunks", |b| {
        b.iter(|| simulate(&verified, &SimulateOptions::default(), &mut Silent).expect("it runs"));
    });
    group.finish();
}

criterion_group!(benches, simulating);
criterion_main!(benches);

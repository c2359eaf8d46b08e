//! Simulation at packet fidelity: flits over links per second, on one core.

mod common;

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hocket_core::algorithms::{self, Algorithm, PlanOptions};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::id::{NpuId, fit};
use hocket_core::progress::Silent;
use hocket_core::simulate::{PacketOptions, simulate_packets};
use hocket_core::topology::{Topology, build};
use hocket_core::units::Time;
use hocket_core::verify::Verified;

const SIZE: u64 = 16 << 20;
/// Bytes of a slice of tto.
const SLICE: u64 = 98_304;
const FLIT: u64 = 512;

/// 4 x 4 chiplets: 25 GB/s, 21 ns.
fn chiplets() -> Arc<Topology> {
    let mesh = build::mesh(&[4, 4], common::gigabytes(25), Time::from_ns(21));
    Arc::new(mesh.expect("a mesh"))
}

/// An all-reduce of 16 MiB; tto leaves out a corner, where links are few.
fn all_reduce(topology: &Arc<Topology>, algorithm: Algorithm) -> Verified {
    let is_tto = algorithm == Algorithm::Tto;
    let npus = topology.npus().filter(|&npu| !is_tto || npu != NpuId(12));
    let kind = CollectiveKind::AllReduce;
    let collective = Collective::new(kind, npus.collect(), SIZE, None).expect("an all-reduce");
    let chunks = if is_tto { SIZE.div_ceil(SLICE) } else { 1 };
    let options = PlanOptions {
        chunks: Some(fit(chunks)),
        ..PlanOptions::new(algorithm)
    };
    let plan = algorithms::plan(topology, &collective, &options, &mut Silent).expect("it applies");
    common::proved(plan, topology)
}

fn packets(c: &mut Criterion) {
    let mut group = c.benchmark_group("packets");
    group.sample_size(10);
    let topology = chiplets();
    // Cycles of 1 ns; BookSim2 took as many for the ring.
    for (algorithm, cycles) in [
        (Algorithm::Ring, 1_290_509),
        (Algorithm::Tto, 473_195),
        (Algorithm::DoubleBinaryTree, 3_096_908),
    ] {
        let verified = all_reduce(&topology, algorithm);
        let options = PacketOptions::default();
        let run = || simulate_packets(&verified, &options, &mut Silent).expect("it runs");
        let first = run();
        assert_eq!(first.time, Time::from_ns(cycles), "{}", algorithm.name());
        let flits = first.links.iter().map(|link| link.bytes.div_ceil(FLIT));
        group.throughput(Throughput::Elements(flits.sum()));
        let name = format!("{} 4x4, 16 MiB", algorithm.name());
        group.bench_function(name, |b| b.iter(run));
    }
    group.finish();
}

criterion_group!(benches, packets);
criterion_main!(benches);

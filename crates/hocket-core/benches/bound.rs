//! Lower bounds.

mod common;

use criterion::{Criterion, criterion_group, criterion_main};
use hocket_core::bound::{BoundOptions, bound};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::progress::Silent;
use hocket_core::topology::build;
use hocket_core::units::Time;

fn bounding(c: &mut Criterion) {
    let mut group = c.benchmark_group("bound");
    group.sample_size(10);
    let torus = |sizes: &[u32]| build::torus(sizes, common::gigabytes(50), Time::from_ns(500));
    let torus_64 = torus(&[4, 4, 4]).expect("a torus");
    let torus_512 = torus(&[8, 8, 8]).expect("a torus");
    for (name, topology) in [("torus 4x4x4", &torus_64), ("torus 8x8x8", &torus_512)] {
        for kind in [CollectiveKind::AllGather, CollectiveKind::AllReduce] {
            let collective = Collective::among_all(kind, topology, 1 << 30).expect("a collective");
            let compute = || {
                bound(topology, &collective, &BoundOptions::default(), &mut Silent)
                    .expect("nobody stops it")
            };
            assert!(compute().time > Time::ZERO);
            group.bench_function(format!("{kind} on {name}"), |b| b.iter(compute));
        }
    }
    group.finish();
}

criterion_group!(benches, bounding);
criterion_main!(benches);

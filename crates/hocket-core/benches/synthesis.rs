//! Synthesis: sends matched per second.

mod common;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::progress::Silent;
use hocket_core::synthesis::{Problem, Timetables, Unwinding};
use hocket_core::topology::build;
use hocket_core::topology::{Dimension, DimensionKind, LatencyModel, Topology};
use hocket_core::units::Time;

fn dimension(kind: DimensionKind, size: u32, gigabytes: u64) -> Dimension {
    Dimension {
        kind,
        size,
        bandwidth: common::gigabytes(gigabytes),
        latency: Time::from_ns(500),
        offload: false,
    }
}

fn mesh(n: u32) -> Topology {
    build::mesh(&[n, n], common::gigabytes(100), Time::from_ns(500)).expect("a mesh")
}

/// Name, network, kind, pieces, and sends of its timetable; a gathered block or piece is 64 kB.
type Case = (&'static str, Topology, CollectiveKind, usize, usize);

fn cases() -> Vec<Case> {
    use CollectiveKind::{AllGather, AllReduce, AllToAll};
    use DimensionKind::{FullyConnected, Line, Ring, Switch};
    let torus = build::torus(&[16, 16], common::gigabytes(100), Time::from_ns(500));
    let nodes = [(Ring, 2, 200), (FullyConnected, 4, 100), (Switch, 64, 50)];
    let nodes = nodes.map(|(kind, size, rate)| dimension(kind, size, rate));
    let uneven = [dimension(Line, 24, 100), dimension(Line, 24, 50)];
    let product = |dimensions: &[Dimension]| build::product(dimensions).expect("a product");
    vec![
        ("all-gather, mesh 10x10", mesh(10), AllGather, 1, 9_900),
        ("all-gather, mesh 32x32", mesh(32), AllGather, 1, 1_047_552),
        (
            "all-gather, torus 16x16",
            torus.expect("a torus"),
            AllGather,
            1,
            65_280,
        ),
        (
            "all-gather, Ring_FC_SW 2x4x64",
            product(&nodes),
            AllGather,
            1,
            261_632,
        ),
        (
            "all-gather, uneven mesh 24x24",
            product(&uneven),
            AllGather,
            1,
            331_200,
        ),
        ("all-to-all, mesh 8x8", mesh(8), AllToAll, 1, 0),
        (
            "all-reduce, mesh 10x10, 64 pieces",
            mesh(10),
            AllReduce,
            64,
            1_267_200,
        ),
    ]
}

fn synthesis(c: &mut Criterion) {
    let mut group = c.benchmark_group("synthesis");
    group.sample_size(10);
    for (name, topology, kind, pieces, sends) in cases() {
        let bytes = (topology.npu_count() * pieces) as u64 * 64_000;
        let collective = Collective::among_all(kind, &topology, bytes).expect("a collective");
        let (unwinding, latency) = ([Unwinding::Degree(1)], LatencyModel::Occupying);
        let problem = Problem::new(
            &topology,
            &collective,
            pieces,
            &unwinding,
            latency,
            16 << 30,
        );
        let problem = problem.expect("it fits");
        let solve = || -> Timetables { problem.greedy(0, 4, &mut Silent).expect("all reached") };
        let times = solve();
        let found = times.sums.sends.len() + times.copies.sends.len();
        assert_eq!(problem.check(&times), Ok(()), "{name}");
        assert!(times.end() >= problem.least(), "{name}");
        // What is passed on by those who do not want it depends on the ways taken.
        assert!(found == sends || sends == 0, "{name}: {found} sends");
        group.throughput(Throughput::Elements(found as u64));
        group.bench_function(name, |b| b.iter(solve));
    }
    group.finish();
}

criterion_group!(benches, synthesis);
criterion_main!(benches);

//! Path assignment on Clos fabrics: random pairs of ToRs.

mod common;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hocket_core::routing::{Fabric, Flow, Scheme, assign};
use hocket_core::topology::build::{self, Clos};
use hocket_core::units::{Seed, Time};

fn fabric(spines: u32, tors: u32) -> Fabric {
    let parameters = Clos {
        spines,
        tors,
        hosts_per_tor: 1,
        host_bandwidth: common::gigabytes(12),
        fabric_bandwidth: common::gigabytes(12),
        latency: Time::from_ns(500),
    };
    Fabric::new(&build::clos(&parameters).expect("a Clos")).expect("a Clos")
}

fn random(flows: usize, tors: u32) -> Vec<Flow> {
    let mut seed = Seed(1);
    let flow = |_| {
        let src = seed.below(tors as usize) as u32;
        let ahead = 1 + seed.below(tors as usize - 1) as u32;
        Flow::new(src, (src + ahead) % tors)
    };
    (0..flows).map(flow).collect()
}

fn routing(c: &mut Criterion) {
    let mut group = c.benchmark_group("routing");
    for (spines, tors, count) in [(32, 64, 1_500), (32, 64, 10_000), (64, 512, 100_000)] {
        let (fabric, flows) = (fabric(spines, tors), random(count, tors));
        group.throughput(Throughput::Elements(count as u64));
        for (name, scheme) in [
            ("greedy", Scheme::Greedy),
            ("edge-coloring", Scheme::EdgeColoring),
        ] {
            let run = || assign(black_box(&fabric), black_box(&flows), scheme, Seed(0));
            let made = run().expect("every flow has a path");
            let least = made.certificate().load;
            match scheme {
                Scheme::EdgeColoring => assert_eq!(made.max_link_load(), least),
                _ => assert!(made.max_link_load() <= 2 * least),
            }
            let name = format!("{name}, {count} flows on {spines} x {tors}");
            group.bench_function(name, |b| b.iter(run));
        }
    }
    group.finish();
}

criterion_group!(benches, routing);
criterion_main!(benches);

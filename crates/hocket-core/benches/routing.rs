//! Path assignment on Clos fabrics: random pairs of ToRs.

mod common;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hocket_core::id::{LinkId, narrow};
use hocket_core::routing::{Fabric, Flow, Scheme, assign};
use hocket_core::topology::Topology;
use hocket_core::topology::build::{self, Clos};
use hocket_core::units::{Seed, Time};

fn clos(spines: u32, tors: u32) -> Topology {
    let parameters = Clos {
        spines,
        tors,
        hosts_per_tor: 1,
        host_bandwidth: common::gigabytes(12),
        bandwidth: common::gigabytes(12),
        latency: Time::from_ns(500),
    };
    parameters.build().expect("a Clos")
}

fn random(flows: usize, tors: u32) -> Vec<Flow> {
    let mut seed = Seed(1);
    let flow = |_| {
        let src = narrow(seed.below(tors as usize));
        let ahead = 1 + narrow(seed.below(tors as usize - 1));
        Flow::new(src, (src + ahead) % tors)
    };
    (0..flows).map(flow).collect()
}

/// Rings over as many ToRs as there are in a block, of so many flows each.
fn rings(flows: u32, tors: u32, block: u32) -> Vec<Flow> {
    let flow = |i: u32| {
        let (tor, start) = (i % tors, i % tors / block * block);
        Flow::new(tor, start + (tor - start + 1) % block)
    };
    (0..flows).map(flow).collect()
}

fn fat_tree(k: u32) -> Topology {
    build::fat_tree(k, common::gigabytes(12), Time::from_ns(500)).expect("a fat tree")
}

/// The network without every n-th link between its switches.
fn without_every(topology: &Topology, n: usize) -> Topology {
    let between = |&i: &usize| {
        let link = &topology.links()[i];
        !topology.is_npu(link.src) && !topology.is_npu(link.dst)
    };
    let links = (0..topology.links().len()).filter(between);
    let gone: Vec<LinkId> = links.step_by(n).map(LinkId::from).collect();
    topology.without(&[], &gone).expect("a network")
}

fn routing(c: &mut Criterion) {
    let mut group = c.benchmark_group("routing");
    for (spines, tors, count) in [(32, 64, 1_500), (32, 64, 10_000), (64, 512, 100_000)] {
        let fabric = Fabric::new(&clos(spines, tors)).expect("a Clos");
        let flows = random(count, tors);
        group.throughput(Throughput::Elements(count as u64));
        for (name, scheme) in [
            ("greedy", Scheme::Greedy),
            ("edge-coloring", Scheme::EdgeColoring),
        ] {
            let run = || assign(black_box(&fabric), black_box(&flows), scheme, Seed(0));
            let made = run().expect("every flow has a path");
            let least = made.load_bound().load;
            match scheme {
                Scheme::EdgeColoring => assert_eq!(made.max_link_load(), least),
                _ => assert!(made.max_link_load() <= 2 * least),
            }
            let name = format!("{name}, {count} flows on {spines} x {tors}");
            group.bench_function(name, |b| b.iter(run));
        }
    }
    let broken = without_every(&clos(32, 64), 20);
    let cases = [
        ("1500 flows on 32 x 64 less 5 %", broken, random(1_500, 64)),
        (
            "10000 flows on a fat tree of 16",
            fat_tree(16),
            random(10_000, 128),
        ),
        (
            "100000 flows of 16 rings on 64 x 512",
            clos(64, 512),
            rings(100_000, 512, 32),
        ),
    ];
    for (name, topology, flows) in &cases {
        let fabric = Fabric::new(topology).expect("a fabric");
        group.throughput(Throughput::Elements(flows.len() as u64));
        for (scheme_name, scheme) in [
            ("greedy", Scheme::Greedy),
            ("greedy-parallel", Scheme::GreedyParallel),
            ("edge-coloring", Scheme::EdgeColoring),
        ] {
            let run = || assign(black_box(&fabric), black_box(flows), scheme, Seed(0));
            run().expect("every flow has a path");
            group.bench_function(format!("{scheme_name}, {name}"), |b| b.iter(run));
        }
    }
    group.finish();
}

criterion_group!(benches, routing);
criterion_main!(benches);

//! Simulation at flow fidelity: transfers per second, on one core.

mod common;

use std::num::NonZeroU32;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hocket_core::algorithms::{self, Algorithm, PlanOptions};
use hocket_core::collective::{Collective, CollectiveKind, Demand, NpuSet};
use hocket_core::id::{ChunkId, DeviceId, NpuId, narrow};
use hocket_core::plan::{Chunks, Op, PlanBuilder, Transfer, Wait};
use hocket_core::progress::Silent;
use hocket_core::simulate::{FlowOptions, SimulateOptions, simulate, simulate_flows};
use hocket_core::topology::Topology;
use hocket_core::topology::build::{self, Clos};
use hocket_core::units::{Seed, Time};
use hocket_core::verify::Verified;

/// Every NPU sends to every other at once: each flow shares links with many.
fn all_to_all(topology: &Arc<Topology>, size: u64) -> Verified {
    let kind = CollectiveKind::AllToAll;
    let collective = Collective::among_all(kind, topology, size).expect("an all-to-all");
    let options = PlanOptions {
        chunks: Some(1),
        ..PlanOptions::new(Algorithm::Direct)
    };
    let plan = algorithms::plan(topology, &collective, &options, &mut Silent).expect("it applies");
    common::proved(plan, topology)
}

/// Messages of 1 to 10 MB between random NPUs of a Clos of 64 x 128 with 32 below each ToR, by random
/// spines, all at once: each shares links with dozens, and ends at a time of its own.
fn between_random(count: u32) -> Verified {
    let (spines, hosts) = (64, 4096);
    let topology = Clos {
        spines,
        tors: 128,
        hosts_per_tor: 32,
        host_bandwidth: common::gigabytes(25),
        bandwidth: common::gigabytes(25),
        latency: Time::from_ns(500),
    }
    .build();
    let topology = Arc::new(topology.expect("a Clos"));
    let mut seed = Seed(1);
    let draw = |_| {
        let src = seed.below(hosts);
        let dst = (src + 1 + seed.below(hosts - 1)) % hosts;
        let bytes = 1_000_000 + seed.below(9_000_000) as u64;
        (narrow(src), narrow(dst), seed.below(spines as usize), bytes)
    };
    let drawn: Vec<_> = (0..count).map(draw).collect();
    let demands = drawn.iter().map(|&(src, dst, _, bytes)| Demand {
        bytes,
        reduced: false,
        holders: NpuSet::One(NpuId(src)),
        wanted: NpuSet::One(NpuId(dst)),
    });
    let collective = Collective::custom(topology.npus().collect(), demands.collect());
    let collective = collective.expect("a collective");
    let chunks = Chunks::split(&collective.demands(), 1).expect("chunks");
    let mut plan = PlanBuilder::new("random", &collective, chunks);
    for (i, &(src, dst, spine, _)) in drawn.iter().enumerate() {
        let tor = |host| {
            topology
                .device_by_name(&format!("tor{}", host / 32))
                .expect("it")
        };
        let spine = topology
            .device_by_name(&format!("spine{spine}"))
            .expect("it");
        let mut way = vec![DeviceId(src), tor(src), spine, tor(dst), DeviceId(dst)];
        if tor(src) == tor(dst) {
            way.drain(2..4);
        }
        let hops = way.windows(2);
        let links: Vec<_> = hops
            .map(|hop| topology.links_from_to(hop[0], hop[1])[0])
            .collect();
        let path = Some(plan.path(&links));
        plan.push(Transfer {
            chunk: ChunkId(narrow(i)),
            count: 1,
            src: NpuId(src),
            dst: NpuId(dst),
            op: Op::Copy,
            wait: Wait::NOTHING,
            path,
        });
    }
    common::proved(plan.finish(), &topology)
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

    for (count, bits) in [
        (10_000, None),
        (10_000, NonZeroU32::new(10)),
        (100_000, NonZeroU32::new(10)),
    ] {
        let verified = between_random(count);
        let options = FlowOptions {
            rate_bits: bits,
            ..FlowOptions::default()
        };
        let run = || simulate_flows(&verified, &options, &mut Silent).expect("it runs");
        let sent: u64 = verified
            .plan()
            .chunks()
            .offsets()
            .last()
            .copied()
            .expect("bytes");
        assert!(run().links.iter().map(|link| link.bytes).sum::<u64>() > 3 * sent);
        group.throughput(Throughput::Elements(verified.plan().len() as u64));
        let bits = bits.map_or(String::from("all"), |bits| bits.to_string());
        group.bench_function(format!("{count} on a Clos, {bits} bits"), |b| b.iter(run));
    }
    group.finish();
}

criterion_group!(benches, flows);
criterion_main!(benches);

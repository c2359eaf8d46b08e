//! Training jobs that share a Clos: transfers per second, assignments included, on one core.

mod common;

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hocket_core::algorithms::Algorithm;
use hocket_core::cluster::{
    ByScheme, ClusterOptions, FlowOrder, Job, Outcome, Pattern, Phase, Port, Reroute, Rounds,
    simulate,
};
use hocket_core::id::{NpuId, narrow};
use hocket_core::progress::Silent;
use hocket_core::routing::{Ecmp, Fabric, Scheme};
use hocket_core::topology::Topology;
use hocket_core::topology::build::Clos;
use hocket_core::units::{Bandwidth, Seed, Time};

const GPUS: u32 = 8;

/// As many NICs below each ToR as it has spines, 100 Gb/s each.
fn clos(spines: u32, tors: u32) -> Topology {
    let rate = Bandwidth::from_bytes_per_second(12_500_000_000).expect("a rate");
    let topology = Clos {
        spines,
        tors,
        hosts_per_tor: spines,
        host_bandwidth: rate,
        bandwidth: rate,
        latency: Time::ZERO,
    }
    .build();
    topology.expect("a Clos")
}

/// Jobs on random hosts, all alike in hosts: GPU i of each host of a ring is in ring i. Sizes, rings and
/// arrivals are drawn.
fn jobs(count: usize, hosts: u32, iterations: usize, rings: &[usize]) -> Vec<Job> {
    let mut seed = Seed(1);
    let mut free: Vec<u32> = (0..hosts).collect();
    for i in (1..free.len()).rev() {
        free.swap(i, seed.below(i + 1));
    }
    let each = free.len() / count;
    let job = |number: usize| {
        let ranks = rings[seed.below(rings.len())];
        let bytes = 10_000_000 + seed.below(990_000_000) as u64;
        let network = common::ring(narrow(ranks));
        let plan = common::plan(&network, Algorithm::Ring, bytes, 1);
        let port = |host: &u32, gpu: u32| Port {
            nic: NpuId(host * GPUS + gpu),
            host: *host,
        };
        let mine = free[number * each..(number + 1) * each].chunks_exact(ranks);
        let ring = |hosts: &[u32], gpu| hosts.iter().map(|host| port(host, gpu)).collect();
        Job {
            name: number.to_string(),
            arrival: Time::from_ns(seed.below(50_000_000) as u64),
            compute: vec![Time::from_ns(20_000_000 + seed.below(20_000_000) as u64); iterations],
            phase: Some(Phase {
                pattern: Arc::new(Pattern::new(Arc::new(plan), Rounds::Data)),
                groups: mine
                    .flat_map(|hosts| (0..GPUS).map(move |gpu| ring(hosts, gpu)))
                    .collect(),
            }),
        }
    };
    (0..count).map(job).collect()
}

fn run(topology: &Topology, jobs: &[Job], scheme: Scheme, reroute: Reroute) -> Outcome {
    let fabric = Fabric::new(topology).expect("a fabric");
    let mut router = ByScheme {
        scheme,
        seed: Seed(1),
        order: FlowOrder::Job,
    };
    let options = ClusterOptions {
        reroute,
        ..ClusterOptions::default()
    };
    simulate(topology, &fabric, jobs, &mut router, &options, &mut Silent).expect("it runs")
}

fn cluster(c: &mut Criterion) {
    let mut group = c.benchmark_group("cluster");
    group.sample_size(10);
    let sizes = [
        (
            "5 jobs, 10 iterations, 2,048 GPUs",
            clos(32, 64),
            jobs(5, 256, 10, &[2, 4, 8]),
        ),
        (
            "64 jobs, 4,096 hosts",
            clos(64, 512),
            jobs(64, 4096, 1, &[2, 4, 8, 16]),
        ),
    ];
    for (name, topology, jobs) in &sizes {
        for (scheme, reroute) in [
            (Scheme::Greedy, Reroute::Always),
            (Scheme::EdgeColoring, Reroute::Always),
            (Scheme::Ecmp(Ecmp::default()), Reroute::Never),
        ] {
            let outcome = run(topology, jobs, scheme, reroute);
            let transfers: u64 = outcome.iterations.iter().map(|each| each.flows).sum();
            let iterations: usize = jobs.iter().map(|job| job.compute.len()).sum();
            assert_eq!(outcome.iterations.len(), iterations);
            group.throughput(Throughput::Elements(transfers));
            let short = match scheme {
                Scheme::Greedy => "greedy",
                Scheme::EdgeColoring => "edge coloring",
                _ => "ecmp",
            };
            group.bench_function(format!("{name}, {transfers} transfers, {short}"), |b| {
                b.iter(|| run(topology, jobs, scheme, reroute));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, cluster);
criterion_main!(benches);

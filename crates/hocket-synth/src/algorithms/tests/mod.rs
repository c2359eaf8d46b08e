mod bigraph;
mod counts;
mod interpreter;
mod mesh;
mod nccl;
mod nodes;
mod refusals;
mod registry;
mod runs;

use super::*;
use crate::collective::CollectiveKind;
use crate::id::{NpuId, Rank};
use crate::progress::Silent;
use crate::topology::{Dimension, DimensionKind, TopologyBuilder};
use crate::units::{Bandwidth, Time};
use interpreter::judge;

use CollectiveKind::{
    AllGather, AllReduce, AllToAll, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
};

fn gigabyte() -> Bandwidth {
    Bandwidth::from_bytes_per_second(1_000_000_000).unwrap()
}

fn latency() -> Time {
    Time::from_ns(10)
}

fn full_mesh(n: usize) -> TopologyBuilder {
    let mut builder = TopologyBuilder::new("full");
    builder.npus(n);
    for i in 0..n {
        for j in 0..i {
            builder.both_ways(
                NpuId::from(i).device(),
                NpuId::from(j).device(),
                gigabyte(),
                latency(),
            );
        }
    }
    builder
}

fn fully_connected(n: usize) -> Topology {
    full_mesh(n).finish().unwrap()
}

fn star(n: usize) -> Topology {
    let mut builder = TopologyBuilder::new("star");
    builder.npus(n);
    let hub = builder.switch("hub", None);
    for i in 0..n {
        builder.both_ways(NpuId::from(i).device(), hub, gigabyte(), latency());
    }
    builder.finish().unwrap()
}

fn line(n: usize) -> Topology {
    let mut builder = TopologyBuilder::new("line");
    builder.npus(n);
    for i in 1..n {
        let (a, b) = (NpuId::from(i - 1), NpuId::from(i));
        builder.both_ways(a.device(), b.device(), gigabyte(), latency());
    }
    builder.finish().unwrap()
}

/// A cycle of one-way links.
fn one_way_ring(n: usize) -> Topology {
    let mut builder = TopologyBuilder::new("one-way ring");
    builder.npus(n);
    for i in 0..n {
        let (a, b) = (NpuId::from(i), NpuId::from((i + 1) % n));
        builder.link(a.device(), b.device(), gigabyte(), latency());
    }
    builder.finish().unwrap()
}

/// The dimensions given, all NPUs behind one switch: plans look at the dimensions only.
fn product(dimensions: &[(DimensionKind, u32)]) -> Topology {
    let n: u32 = dimensions.iter().map(|&(_, size)| size).product();
    let mut builder = TopologyBuilder::new("product");
    builder.npus(n as usize);
    let hub = builder.switch("hub", None);
    for i in 0..n {
        builder.both_ways(NpuId(i).device(), hub, gigabyte(), latency());
    }
    let dimension = |&(kind, size)| Dimension {
        kind,
        size,
        bandwidth: gigabyte(),
        latency: latency(),
        offload: false,
    };
    builder.dimensions(dimensions.iter().map(dimension).collect());
    builder.finish().unwrap()
}

fn options(algorithm: Algorithm, chunks: usize) -> PlanOptions {
    PlanOptions {
        chunks: Some(chunks),
        ..PlanOptions::new(algorithm)
    }
}

/// A plan that the judge has passed, and its transfers' steps.
fn judged(
    topology: &Topology,
    collective: &Collective,
    algorithm: Algorithm,
    chunks: usize,
) -> (Plan, Vec<usize>) {
    let plan = plan(
        topology,
        collective,
        &options(algorithm, chunks),
        &mut Silent,
    )
    .unwrap_or_else(|error| panic!("{algorithm}, {}: {error}", collective.kind()));
    let steps = judge(&plan);
    let expected = transfer_count(topology, collective, algorithm, chunks);
    let made = plan.len() as u128;
    match algorithm {
        // Some may pass on what they do not want.
        Algorithm::Greedy | Algorithm::Blind | Algorithm::Steiner => {
            assert!(made >= expected, "{made} of {expected}");
        }
        // Smaller blocks are cut into fewer pieces.
        Algorithm::Flows => {
            let least = transfer_count(topology, collective, algorithm, 1);
            assert!(made >= least, "{made} of {least}");
        }
        // A root may have several.
        Algorithm::Trees | Algorithm::Symmetric => {
            assert_eq!(made % expected, 0, "{made} of {expected}")
        }
        _ => assert_eq!(made, expected, "{algorithm}"),
    }
    (plan, steps)
}

fn among_all(kind: CollectiveKind, topology: &Topology, size: u64) -> Collective {
    Collective::among_all(kind, topology, size).unwrap()
}

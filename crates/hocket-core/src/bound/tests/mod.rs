//! Closed forms, and brute force on small networks.

mod closed_forms;

use super::*;
use crate::collective::CollectiveKind;
use crate::id::{DeviceId, NpuId, Rank};
use crate::topology::TopologyBuilder;
use crate::units::Bandwidth;

const GIGA: u64 = 1_000_000_000;

fn gb_per_s(giga: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(giga * GIGA).expect("positive")
}

/// NPUs and links both ways, each of 1 GB/s and the latency given.
fn undirected(npus: usize, pairs: &[(u32, u32)], latency: Time) -> Topology {
    let mut builder = TopologyBuilder::new("test");
    builder.npus(npus);
    for &(a, b) in pairs {
        builder.both_ways(DeviceId(a), DeviceId(b), gb_per_s(1), latency);
    }
    builder.finish().expect("valid")
}

fn ring(npus: u32, latency: Time) -> Topology {
    let pairs: Vec<(u32, u32)> = (0..npus).map(|i| (i, (i + 1) % npus)).collect();
    undirected(npus as usize, &pairs, latency)
}

fn line(npus: u32, latency: Time) -> Topology {
    let pairs: Vec<(u32, u32)> = (1..npus).map(|i| (i - 1, i)).collect();
    undirected(npus as usize, &pairs, latency)
}

fn fully_connected(npus: u32, latency: Time) -> Topology {
    let pairs: Vec<(u32, u32)> = (0..npus)
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .collect();
    undirected(npus as usize, &pairs, latency)
}

/// NPUs around one switch, 1 GB/s a link each way.
fn star(npus: usize, latency: Time, limit: Option<Bandwidth>) -> Topology {
    let mut builder = TopologyBuilder::new("star");
    builder.npus(npus);
    let switch = builder.switch("switch", limit);
    for i in 0..npus {
        builder.both_ways(DeviceId::from(i), switch, gb_per_s(1), latency);
    }
    builder.finish().expect("valid")
}

fn bound_of(topology: &Topology, kind: CollectiveKind, size: u64) -> Bound {
    let collective = Collective::among_all(kind, topology, size).expect("valid");
    bound(topology, &collective, &BoundOptions::default())
}

fn component(bound: &Bound, name: &str) -> Time {
    let found = bound.components.iter().find(|(own, _)| *own == name);
    found.expect("known component").1
}

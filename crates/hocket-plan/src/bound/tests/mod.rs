//! Closed forms, and brute force on small networks.

mod brute_force;
mod closed_forms;
mod definition;
mod parts;
mod properties;
mod quickest;
mod stopped;

use super::*;
use crate::collective::CollectiveKind;
use crate::id::{DeviceId, NpuId, Rank, narrow};
use crate::progress::Silent;
use crate::topology::TopologyBuilder;
use crate::units::{Bandwidth, Seed};

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

/// The bound, which nobody stops.
fn bound(topology: &Topology, collective: &Collective, options: &BoundOptions) -> Bound {
    super::bound(topology, collective, options, &mut Silent).expect("nobody stops it")
}

fn component(bound: &Bound, name: &str) -> Time {
    let found = bound.components.iter().find(|(own, _)| *own == name);
    found.map_or(Time::ZERO, |(_, time)| *time)
}

/// A small random network: directed links of 1 to 4 GB/s, switches with and without limits.
fn random(seed: &mut Seed, most_npus: usize, latency: bool) -> Topology {
    let mut builder = TopologyBuilder::new("random");
    let npus = 2 + seed.below(most_npus - 1);
    let switches = seed.below(3);
    builder.npus(npus);
    for i in 0..switches {
        let limit = (seed.below(2) == 0).then(|| gb_per_s(1 + seed.below(4) as u64));
        builder.switch(format!("switch{i}"), limit);
    }
    let count = npus + switches;
    for _ in 0..2 * count + seed.below(2 * count) {
        let (src, dst) = (seed.below(count), seed.below(count));
        if src == dst {
            continue;
        }
        let (src, dst) = (DeviceId::from(src), DeviceId::from(dst));
        let latency = Time::from_ns(if latency { seed.below(2_000) as u64 } else { 0 });
        let bandwidth = gb_per_s(1 + seed.below(4) as u64);
        if seed.below(3) == 0 {
            builder.link(src, dst, bandwidth, latency);
        } else {
            builder.both_ways(src, dst, bandwidth, latency);
        }
    }
    builder.finish().expect("valid")
}

/// A random collective among some of the NPUs.
fn random_collective(seed: &mut Seed, topology: &Topology) -> Collective {
    let mut npus: Vec<NpuId> = topology.npus().collect();
    while npus.len() > 2 && seed.below(4) == 0 {
        npus.remove(seed.below(npus.len()));
    }
    let kind = CollectiveKind::NAMED[seed.below(8)];
    let root = kind
        .is_rooted()
        .then(|| Rank(narrow(seed.below(npus.len()))));
    let size = 1 + seed.below(10_000) as u64;
    Collective::new(kind, npus, size, root).expect("valid")
}

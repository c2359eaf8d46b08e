//! Closed forms, slow and obvious oracles, and what unwinding and slots promise.

mod closed_forms;
mod network;
mod one_way;
mod oracle;
mod same;

use super::*;
use crate::collective::{Collective, CollectiveKind};
use crate::id::{DeviceId, NpuId, Rank};
use crate::plan::PlanError;
use crate::progress::Silent;
use crate::topology::TopologyBuilder;
use crate::topology::build;
use crate::units::{Bandwidth, Seed, Time};

const MEMORY: u64 = 1 << 32;

fn gb_per_s(giga: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(giga * 1_000_000_000).expect("positive")
}

/// A collective among all NPUs, of `bytes` for each of its blocks, cut no further; links held
/// during their latency.
fn problem(topology: &Topology, kind: CollectiveKind, bytes: u64, root: Option<u32>) -> Problem {
    let npus: Vec<NpuId> = topology.npus().collect();
    let blocks = match kind {
        CollectiveKind::Broadcast | CollectiveKind::Reduce => 1,
        _ => npus.len() as u64,
    };
    let collective = Collective::new(kind, npus, blocks * bytes, root.map(Rank));
    let collective = collective.expect("a collective");
    let degree = [Unwinding::Degree(1)];
    let latency = LatencyModel::Occupying;
    Problem::new(topology, &collective, 1, &degree, latency, MEMORY).expect("it fits")
}

fn greedy(problem: &Problem) -> Timetables {
    let times = problem.greedy(0, 64, &mut Silent).expect("all are reached");
    assert_eq!(problem.check(&times), Ok(()));
    times
}

/// NPUs and links both ways, a chunk of 1,000 bytes takes 1 us on each.
fn undirected(npus: usize, pairs: &[(u32, u32)]) -> Topology {
    let mut builder = TopologyBuilder::new("test");
    builder.npus(npus);
    for &(a, b) in pairs {
        builder.both_ways(DeviceId(a), DeviceId(b), gb_per_s(1), Time::ZERO);
    }
    builder.finish().expect("valid")
}

//! Networks and plans that several benches share.

#![allow(dead_code, reason = "each bench uses some of it")]

use std::sync::Arc;

use hocket_core::algorithms::{self, Algorithm, PlanOptions};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::plan::Plan;
use hocket_core::progress::Silent;
use hocket_core::topology::build::{self, RingWays};
use hocket_core::topology::{Dimension, DimensionKind, Topology};
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::{Verified, verify};

/// `gb` x 10^9 bytes per second.
pub(crate) fn gigabytes(gb: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(gb * 1_000_000_000).expect("positive")
}

/// A one-way ring of 50 GB/s links, 500 ns.
pub(crate) fn ring(n: u32) -> Arc<Topology> {
    let ring = build::ring(n, gigabytes(50), Time::from_ns(500), RingWays::One);
    Arc::new(ring.expect("a ring"))
}

/// 16 x 8 x 8 NPUs, a switch along each dimension: 100 GB/s, 700, 700 and 1700 ns.
pub(crate) fn three_switches() -> Arc<Topology> {
    let dimension = |(size, ns)| Dimension {
        kind: DimensionKind::Switch,
        size,
        bandwidth: gigabytes(100),
        latency: Time::from_ns(ns),
        offload: false,
    };
    let dimensions = [(16, 700), (8, 700), (8, 1700)].map(dimension);
    Arc::new(build::product(&dimensions).expect("a product"))
}

/// Two sides of 32 switches of 16 NPUs: 50 GB/s, 500 ns.
pub(crate) fn bigraph() -> Arc<Topology> {
    let bigraph = build::bigraph(32, 16, gigabytes(50), Time::from_ns(500));
    Arc::new(bigraph.expect("a BiGraph"))
}

/// An all-reduce among all NPUs.
pub(crate) fn all_reduce(topology: &Topology, size: u64) -> Collective {
    Collective::among_all(CollectiveKind::AllReduce, topology, size).expect("an all-reduce")
}

/// Its plan.
pub(crate) fn plan(topology: &Topology, algorithm: Algorithm, size: u64, chunks: usize) -> Plan {
    let options = PlanOptions {
        chunks: Some(chunks),
        ..PlanOptions::new(algorithm)
    };
    algorithms::plan(topology, &all_reduce(topology, size), &options, &mut Silent)
        .expect("it applies")
}

/// The plan, proved.
pub(crate) fn proved(plan: Plan, topology: &Arc<Topology>) -> Verified {
    verify(Arc::new(plan), Arc::clone(topology), &mut Silent).expect("the plan is right")
}

//! From a topology to a simulated time, in one call.

use std::sync::Arc;

use hocket_core::algorithms::{self, Algorithm, PlanOptions};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::id::Rank;
use hocket_core::plan::Plan;
use hocket_core::progress::Silent;
use hocket_core::simulate::{SimulateOptions, simulate};
use hocket_core::topology::Topology;
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::verify;

/// The two numbers of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Bytes per second.
    pub rate: u64,
    /// Picoseconds.
    pub alpha: u64,
}

impl Link {
    /// As builders take it.
    pub(crate) fn bandwidth(self) -> Bandwidth {
        Bandwidth::from_bytes_per_second(self.rate).expect("positive")
    }

    /// As builders take it.
    pub(crate) fn latency(self) -> Time {
        Time::from_ps(self.alpha)
    }

    /// Picoseconds that `bytes` occupy it: the one rounding, up, of a closed form.
    pub(crate) fn beta(self, bytes: u64) -> u64 {
        let ps = (u128::from(bytes) * 1_000_000_000_000).div_ceil(u128::from(self.rate));
        u64::try_from(ps).expect("short")
    }
}

/// Picoseconds that an algorithm takes, proved first.
pub(crate) fn time_of(
    topology: &Arc<Topology>,
    kind: CollectiveKind,
    size: u64,
    algorithm: Algorithm,
    chunks: usize,
    options: &SimulateOptions,
) -> u64 {
    let root = kind.is_rooted().then_some(Rank(0));
    time_from(root, topology, kind, size, algorithm, chunks, options)
}

/// As [`time_of`], from a root.
pub(crate) fn time_from(
    root: Option<Rank>,
    topology: &Arc<Topology>,
    kind: CollectiveKind,
    size: u64,
    algorithm: Algorithm,
    chunks: usize,
    options: &SimulateOptions,
) -> u64 {
    let npus = topology.npus().collect();
    let collective = Collective::new(kind, npus, size, root).expect("a collective");
    let plan_options = PlanOptions {
        chunks: Some(chunks),
        ..PlanOptions::new(algorithm)
    };
    let plan =
        algorithms::plan(topology, &collective, &plan_options, &mut Silent).expect("it applies");
    time_of_plan(plan, topology, options)
}

/// Picoseconds that a plan takes, proved first.
pub(crate) fn time_of_plan(plan: Plan, topology: &Arc<Topology>, options: &SimulateOptions) -> u64 {
    let verified = match verify(Arc::new(plan), Arc::clone(topology), &mut Silent) {
        Ok(verified) => verified,
        Err(error) => panic!("on {}: {error}", topology.name()),
    };
    let run = simulate(&verified, options, &mut Silent).expect("it runs");
    run.time.as_ps()
}

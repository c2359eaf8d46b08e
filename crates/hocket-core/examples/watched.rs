//! Watches a search for a plan and stops it early.
//!
//! Run it with `cargo run --release --example watched`; it prints `watched.txt`.

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use hocket_core::algorithms::{Algorithm, PlanOptions, plan};
use hocket_core::bound::{BoundOptions, bound};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::id::{DeviceId, narrow};
use hocket_core::plan::PlanError;
use hocket_core::progress::{Progress, Silent};
use hocket_core::topology::{Topology, TopologyBuilder, TopologyError};
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::verify;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout())
}

/// Notes every report and stops the work at the last of so many. A program would look at a clock here, or at a
/// flag that a signal sets.
struct Stopwatch {
    reports: usize,
    seen: Vec<(&'static str, u64, u64)>,
}

impl Stopwatch {
    fn after(reports: usize) -> Self {
        Self {
            reports,
            seen: Vec::new(),
        }
    }
}

impl Progress for Stopwatch {
    fn report(&mut self, stage: &'static str, done: u64, total: u64) -> bool {
        self.seen.push((stage, done, total));
        self.seen.len() < self.reports
    }
}

/// The example; it prints to `out`.
pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let topology = Arc::new(uneven_ring()?);
    let all_reduce = Collective::among_all(CollectiveKind::AllReduce, &topology, 12_000_000)?;
    let options = PlanOptions {
        chunks: Some(8),
        ..PlanOptions::new(Algorithm::Greedy)
    };

    // A search that has a plan returns the best so far when it is stopped.
    let mut watch = Stopwatch::after(3);
    let plan = plan(&topology, &all_reduce, &options, &mut watch)?;
    for (stage, done, total) in &watch.seen {
        writeln!(out, "{stage}: {done} of {total}")?;
    }
    let transfers = plan.len();
    verify(Arc::new(plan), Arc::clone(&topology), &mut Silent)?;
    writeln!(
        out,
        "stopped: a plan of {transfers} transfers, proved right"
    )?;

    // A call that has nothing yet returns an error of its own.
    let ring = PlanOptions::new(Algorithm::Ring);
    match hocket_core::algorithms::plan(&topology, &all_reduce, &ring, &mut Stopwatch::after(1)) {
        Err(PlanError::Interrupted(stop)) => writeln!(out, "ring: {stop}")?,
        other => return Err(format!("not stopped: {other:?}").into()),
    }

    // Small networks are bounded before there is anything to report.
    let options = BoundOptions::default();
    let bound = bound(&topology, &all_reduce, &options, &mut Stopwatch::after(1))?;
    writeln!(out, "bound: {}", bound.time)?;
    Ok(())
}

/// Six NPUs in a circle whose links have three speeds, and one link across.
fn uneven_ring() -> Result<Topology, TopologyError> {
    let speeds = [10, 25, 50].map(|giga| Bandwidth::from_bytes_per_second(giga * 1_000_000_000));
    let mut builder = TopologyBuilder::new("uneven ring");
    builder.npus(6);
    for (i, bandwidth) in speeds.into_iter().flatten().cycle().take(7).enumerate() {
        let i = narrow(i);
        let (src, dst) = if i < 6 { (i, (i + 1) % 6) } else { (0, 3) };
        builder.both_ways(DeviceId(src), DeviceId(dst), bandwidth, Time::from_ns(500));
    }
    builder.finish()
}

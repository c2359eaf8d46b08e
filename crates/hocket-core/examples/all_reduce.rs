//! Plans an all-reduce by several algorithms, proves and simulates each plan, and compares it with the lower bound.
//!
//! Run it with `cargo run --release --example all_reduce`; it prints `all_reduce.txt`.

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use hocket_core::algorithms::{Algorithm, PlanOptions, plan};
use hocket_core::bound::{BoundOptions, bound};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::plan::PlanError;
use hocket_core::progress::Silent;
use hocket_core::report::Report;
use hocket_core::simulate::{SimulateOptions, simulate};
use hocket_core::topology::build;
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::verify;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout())
}

/// The example; it prints to `out`.
pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let bandwidth = Bandwidth::from_bytes_per_second(50_000_000_000).ok_or("a bandwidth of 0")?;
    let topology = Arc::new(build::torus(&[4, 4], bandwidth, Time::from_ns(500))?);
    let all_reduce = Collective::among_all(CollectiveKind::AllReduce, &topology, 64 << 20)?;

    let bound = bound(
        &topology,
        &all_reduce,
        &BoundOptions::default(),
        &mut Silent,
    )?;
    let reason = bound.witness.describe(&topology);
    writeln!(out, "no plan takes less than {}: {reason}", bound.time)?;

    for algorithm in [
        Algorithm::Ring,
        Algorithm::HalvingDoubling,
        Algorithm::Hdrm, // needs a BiGraph: it does not apply
        Algorithm::Themis,
        Algorithm::Trees,
        Algorithm::Symmetric,
        Algorithm::Greedy,
    ] {
        let options = PlanOptions::new(algorithm);
        let plan = match plan(&topology, &all_reduce, &options, &mut Silent) {
            Ok(plan) => plan,
            Err(PlanError::NotApplicable { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let transfers = plan.len();
        let verified = verify(Arc::new(plan), Arc::clone(&topology), &mut Silent)?;
        let run = simulate(&verified, &SimulateOptions::default(), &mut Silent)?;
        let report = Report::new(&run, &all_reduce, &topology);
        writeln!(
            out,
            "{:<18} {transfers:>6} transfers {:>9.1} us {:>6.1} GB/s busbw, {:>5.1} % above the bound",
            algorithm.name(),
            report.time.as_seconds() * 1e6,
            report.rates.busbw / 1e9,
            report.gap(bound.time) * 100.0,
        )?;
    }
    Ok(())
}

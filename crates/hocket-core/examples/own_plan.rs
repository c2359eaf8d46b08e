//! Writes a plan by hand. The first draft has an error, and the proof names it with a counterexample.
//!
//! Run it with `cargo run --example own_plan`; it prints `own_plan.txt`.

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::id::NpuId;
use hocket_core::plan::{Chunks, Op, Plan, PlanBuilder, PlanError, Wait};
use hocket_core::progress::Silent;
use hocket_core::simulate::{SimulateOptions, simulate};
use hocket_core::topology::build;
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::verify;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout())
}

/// The example; it prints to `out`.
pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    // npu0 - npu1 - npu2, and 1 MB that npu0 broadcasts.
    let bandwidth = Bandwidth::from_bytes_per_second(10_000_000_000).ok_or("a bandwidth of 0")?;
    let line = Arc::new(build::line(3, bandwidth, Time::from_ns(700))?);
    let broadcast = Collective::among_all(CollectiveKind::Broadcast, &line, 1_000_000)?;

    let draft = relay(&broadcast, false)?;
    match verify(Arc::new(draft), Arc::clone(&line), &mut Silent) {
        Ok(_) => return Err("the draft was taken for right".into()),
        Err(error) => writeln!(out, "draft: {error}")?,
    }

    let plan = relay(&broadcast, true)?;
    let verified = verify(Arc::new(plan), line, &mut Silent)?;
    let run = simulate(&verified, &SimulateOptions::default(), &mut Silent)?;
    writeln!(out, "mended: proved right, takes {}", run.time)?;
    Ok(())
}

/// Halves of the data go down the line one after the other. If `waits`, NPU 1 passes a half on when it has it;
/// otherwise at once, which is wrong.
fn relay(broadcast: &Collective, waits: bool) -> Result<Plan, PlanError> {
    let halves = Chunks::split(&broadcast.demands(), 2)?;
    let mut plan = PlanBuilder::new("relay", broadcast, halves);
    for half in 0..2 {
        let chunk = (half, 1);
        let first = plan.send(chunk, NpuId(0), NpuId(1), Op::Copy, Wait::NOTHING);
        let ready = if waits {
            Wait::on(first)
        } else {
            Wait::NOTHING
        };
        plan.send(chunk, NpuId(1), NpuId(2), Op::Copy, ready);
    }
    Ok(plan.finish())
}

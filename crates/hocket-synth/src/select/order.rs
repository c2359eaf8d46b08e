//! The order in which links serve a plan, by what comes out of simulation.

use std::sync::Arc;

use crate::plan::{LinkOrder, Plan, PlanError};
use crate::progress::Progress;
use crate::simulate::{Run, SimulateOptions, simulate};
use crate::topology::{LatencyModel, Topology};
use crate::verify::{Verified, verify};

/// Proves a plan once and simulates it in both orders; with the better one, and its run. A plan that ends within so many
/// seconds in its own order is not tried in the other.
///
/// # Errors
/// As [`super::Candidate::ending`].
pub(super) fn in_best_order(
    plan: Plan,
    topology: &Arc<Topology>,
    latency: LatencyModel,
    enough: f64,
    progress: &mut dyn Progress,
) -> Result<(Verified, Run), PlanError> {
    let proof = verify(Arc::new(plan), Arc::clone(topology), progress)?;
    let planned = run(&proof, LinkOrder::Plan, latency, progress)?;
    let proof = proof.with_link_order(LinkOrder::Plan);
    if planned.time.as_seconds() <= enough {
        return Ok((proof, planned));
    }
    or_when_ready((proof, planned), latency, progress)
}

/// Returns a proved plan and its run, or the same with links that serve what is ready first, if that ends
/// sooner.
///
/// # Errors
/// As [`super::Candidate::ending`].
pub(super) fn or_when_ready(
    (proof, planned): (Verified, Run),
    latency: LatencyModel,
    progress: &mut dyn Progress,
) -> Result<(Verified, Run), PlanError> {
    let ready = run(&proof, LinkOrder::Ready, latency, progress)?;
    Ok(match ready.time < planned.time {
        true => (proof.with_link_order(LinkOrder::Ready), ready),
        false => (proof, planned),
    })
}

/// Proves a plan and simulates it in its own order; with its run.
///
/// # Errors
/// As [`super::Candidate::ending`].
pub(super) fn as_planned(
    plan: Plan,
    topology: &Arc<Topology>,
    latency: LatencyModel,
    progress: &mut dyn Progress,
) -> Result<(Verified, Run), PlanError> {
    let order = plan.link_order();
    let proof = verify(Arc::new(plan), Arc::clone(topology), progress)?;
    let run = run(&proof, order, latency, progress)?;
    Ok((proof, run))
}

fn run(
    proof: &Verified,
    order: LinkOrder,
    latency: LatencyModel,
    progress: &mut dyn Progress,
) -> Result<Run, PlanError> {
    let options = SimulateOptions {
        order: Some(order),
        latency,
        ..SimulateOptions::default()
    };
    Ok(simulate(proof, &options, progress)?)
}

//! A reduce that is a broadcast turned round in time.

use std::cmp::Reverse;
use std::sync::Arc;

use super::order::in_best_order;
use crate::collective::Collective;
use crate::id::TransferId;
use crate::plan::{Op, Plan, PlanBuilder, PlanError, Transfer, Wait};
use crate::progress::Progress;
use crate::simulate::{Run, SimulateOptions, simulate};
use crate::topology::{LatencyModel, Topology};
use crate::verify::{Verified, verify};

/// Makes a reduce of a broadcast from the same root: what was copied last is summed first.
///
/// Where links are alike both ways and each message passes one link, the reduce takes as long as the broadcast, if each
/// link serves in the order turned round. Where messages pass several links, one that overtook another on a later link
/// may wait on an earlier one here, and the reduce may take longer. Links may also serve whatever comes first; the
/// quicker of the two is the result.
///
/// # Errors
/// As [`super::Candidate::ending`].
pub(crate) fn reversed_in_time(
    copies: Plan,
    sums: &Collective,
    topology: &Topology,
    progress: &mut dyn Progress,
) -> Result<Plan, PlanError> {
    let topology = Arc::new(topology.clone());
    let proof = verify(Arc::new(copies), topology, progress)?;
    let run = simulate(&proof, &SimulateOptions::default(), progress)?;
    let (proof, _) = reversed_proof((&proof, &run), sums, LatencyModel::default(), progress)?;
    Ok(Plan::clone(proof.plan()))
}

/// Returns the same of a proved broadcast and its run; with the run of the reduce.
///
/// # Errors
/// As [`super::Candidate::ending`].
pub(super) fn reversed_proof(
    (proof, run): (&Verified, &Run),
    sums: &Collective,
    latency: LatencyModel,
    progress: &mut dyn Progress,
) -> Result<(Verified, Run), PlanError> {
    let topology = proof.topology();
    let copies = proof.plan();
    let mut order: Vec<TransferId> = (0..copies.len()).map(TransferId::from).collect();
    order.sort_by_key(|id| Reverse((run.end[id.index()], run.start[id.index()], id.0)));
    let npus = topology.npu_count();
    let mut came = vec![Wait::NOTHING; copies.chunks().len() * npus];
    let mut plan = PlanBuilder::new(copies.algorithm(), sums, copies.chunks().clone());
    plan.reserve(copies.len());
    for id in order {
        let Transfer {
            chunk,
            count,
            src,
            dst,
            ..
        } = copies.transfer(id);
        let chunks = chunk.index()..chunk.index() + count as usize;
        let before: Vec<Wait> = chunks
            .clone()
            .map(|chunk| came[chunk * npus + dst.index()])
            .collect();
        let wait = plan.all_of(&before);
        let sum = Wait::on(plan.send((chunk.0, count), dst, src, Op::Reduce, wait));
        for chunk in chunks {
            let slot = &mut came[chunk * npus + src.index()];
            *slot = plan.all_of(&[*slot, sum]);
        }
    }
    in_best_order(plan.finish(), topology, latency, 0.0, progress)
}

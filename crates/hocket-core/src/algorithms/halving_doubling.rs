//! Halving-doubling: ceil(log2 n) steps a pass, each with another partner, for any number of NPUs.

use super::Job;
use super::dimensional::{self, Along};
use crate::collective::pattern::Pattern;
use crate::id::NpuId;
use crate::plan::{Plan, PlanError};

/// Between the halves of the ranks, then of each half, and so on; back again for an all-gather.
pub(super) fn build(job: &Job<'_>) -> Result<Plan, PlanError> {
    among(job, job.collective.npus())
}

/// The same among the participants in an order of its own.
pub(super) fn among(job: &Job<'_>, npus: &[NpuId]) -> Result<Plan, PlanError> {
    let side = Along::new(npus.len(), vec![Pattern::halving_doubling()]);
    dimensional::build(job, npus, &[side], job.chunks)
}

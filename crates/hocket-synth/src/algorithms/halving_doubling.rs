//! Halving-doubling: ceil(log2 n) steps a pass, each with another partner, for any number of NPUs.

use super::dimensional::{self, Along};
use super::ladder::Ladder;
use super::recipe::{About, Made, On, PASSES, Recipe};
use super::{Job, Outline};
use crate::collective::pattern::{Pattern, Shape};
use crate::id::NpuId;
use crate::plan::{Plan, PlanError};
use crate::progress::Progress;

/// Between the halves of the ranks, then of each half, and so on; back again for an all-gather.
pub(super) struct HalvingDoubling;

impl Recipe for HalvingDoubling {
    fn about(&self) -> About {
        About::rule(
            "halving-doubling",
            PASSES,
            "halves of ever smaller groups exchange ranges: log2(n) steps a pass, any n",
        )
    }

    fn refusal(&self, _: &On<'_>) -> Option<String> {
        None
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::short(on.blocks())
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.flat(chunks, Shape::HalvingDoubling)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        among(job, job.collective.npus()).map(Made::from)
    }
}

/// Returns the same among the participants in an order of its own.
pub(super) fn among(job: &Job<'_>, npus: &[NpuId]) -> Result<Plan, PlanError> {
    let side = Along::new(npus.len(), vec![Pattern::halving_doubling()]);
    dimensional::build(job, npus, &[side], job.chunks)
}

//! Trees of one NPU, shifted to all others, where every NPU sees the same network; see [`crate::symmetry`].

use std::sync::Arc;

use super::ladder::Ladder;
use super::recipe::{About, Construction, Made, On, Origin, PASSES, Recipe};
use super::{Job, Outline};
use crate::plan::PlanError;
use crate::progress::Progress;
use crate::symmetry::{SYMMETRIC, SymmetricOptions, plan, refusal};

/// The whole plan, of all shifts.
pub(super) struct Symmetric;

impl Recipe for Symmetric {
    fn about(&self) -> About {
        About::rule(
            SYMMETRIC,
            PASSES,
            "trees of one NPU, shifted to all others, where every NPU sees the same network",
        )
        .made_by(Origin::Routes)
        .promises(95)
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        refusal(on.topology, on.collective)
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::short(on.blocks())
    }

    // At the least: an NPU may have several trees.
    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.least(chunks)
    }

    fn plan(&self, job: &Job<'_>, progress: &mut dyn Progress) -> Result<Made, PlanError> {
        let topology = job.on().shared();
        let given = SymmetricOptions {
            pieces: job.asked_chunks(),
            memory_limit: job.options.memory_limit,
            latency: job.options.latency,
            ..SymmetricOptions::for_whole(&topology)
        };
        let made = plan(&topology, job.collective, &given, progress)?;
        let whole = made.shifted().expand(given.memory_limit)?;
        Ok(Made {
            run: made.whole_run().map(Arc::new),
            construction: Some(Construction::Trees {
                passes: Box::new(made.passes),
                pieces: made.pieces,
                time: made.run.time,
            }),
            ..whole.into()
        })
    }
}

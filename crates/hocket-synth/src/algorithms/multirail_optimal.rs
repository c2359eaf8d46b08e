//! The best schedule of dimensions that a linear program and a search find.

use super::ladder::Ladder;
use super::recipe::{About, Made, On, Recipe, Scheduler};
use super::themis::Themis;
use super::{Job, Outline, schedule};
use crate::multirail::optimal;
use crate::plan::PlanError;
use crate::progress::Progress;

/// Orders, sizes and all-gathers as the search leaves them.
pub(super) struct MultirailOptimal;

impl Recipe for MultirailOptimal {
    fn about(&self) -> About {
        About {
            name: "multirail-optimal",
            summary: "orders and sizes of chunks from a linear program and a search: never worse than themis",
            ..Themis.about()
        }
        // It searches for longest and gains least over another.
        .promises(0)
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        Themis.refusal(on)
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Themis.ladder(on)
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        Themis.outlined(outline, chunks)
    }

    fn scheduler(&self) -> Option<Scheduler> {
        Some(|problem, effort, progress| optimal(&problem, effort, progress))
    }

    fn plan(&self, job: &Job<'_>, progress: &mut dyn Progress) -> Result<Made, PlanError> {
        schedule::planned(job, progress)
    }
}

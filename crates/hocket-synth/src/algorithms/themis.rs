//! Themis: each chunk goes first through the dimension of a product that has least to do.
//!
//! # Source
//! Rashidi et al.: Themis, ISCA 2022.

use super::ladder::Ladder;
use super::recipe::{About, Made, On, Origin, PASSES, Recipe, Scheduler};
use super::{Job, Outline, hierarchical, rails, schedule};
use crate::multirail::{PARTS, Policy, themis};
use crate::plan::PlanError;
use crate::progress::Progress;

/// Dimensions serve first come, first served.
pub(super) struct ThemisFifo;

impl Recipe for ThemisFifo {
    fn about(&self) -> About {
        About {
            name: "themis-fifo",
            summary: "each chunk goes first through the dimension with least to do; first come, first served",
            ..Themis.about()
        }
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
        Some(|problem, _, _| schedule::of_lanes(problem, themis, Policy::Fifo))
    }

    fn plan(&self, job: &Job<'_>, progress: &mut dyn Progress) -> Result<Made, PlanError> {
        schedule::planned(job, progress)
    }
}

/// Dimensions serve the smallest chunk first.
pub(super) struct Themis;

impl Recipe for Themis {
    fn about(&self) -> About {
        About::rule(
            "themis",
            PASSES,
            "each chunk goes first through the dimension with least to do; smallest chunk first",
        )
        .made_by(Origin::Schedule)
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        rails::refusal(on.topology, on.collective)
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder {
            most_transfers: 8_000_000,
            ..Ladder::short(PARTS * on.blocks())
        }
        .usually(64)
        .trying([4, 16, 64])
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        let lanes = chunks.saturating_mul(PARTS as u128);
        hierarchical::transfers(
            &hierarchical::sides(outline.dimensions),
            outline.kind,
            lanes,
        )
    }

    fn scheduler(&self) -> Option<Scheduler> {
        Some(|problem, _, _| schedule::of_lanes(problem, themis, Policy::SmallestFirst))
    }

    fn plan(&self, job: &Job<'_>, progress: &mut dyn Progress) -> Result<Made, PlanError> {
        schedule::planned(job, progress)
    }
}

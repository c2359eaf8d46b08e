//! Packed trees, of which a simulation chooses; see [`crate::select::trees`].

use super::ladder::Ladder;
use super::recipe::{About, Construction, Made, Need, On, Origin, Recipe, TREE_KINDS};
use super::{Job, Outline};
use crate::collective::{Collective, CollectiveKind};
use crate::plan::PlanError;
use crate::progress::Progress;
use crate::select::{TREES, TreeOptions, least_trees, trees};

/// Trees that use the worst cut of a network fully.
pub(super) struct Trees;

impl Recipe for Trees {
    fn about(&self) -> About {
        About {
            is_general: true,
            ..About::rule(
                TREES,
                TREE_KINDS,
                "spanning trees packed until the worst cut of the network is full, for large data; any topology",
            )
        }
        .made_by(Origin::Routes)
        .promises(90)
    }

    fn refusal(&self, _: &On<'_>) -> Option<String> {
        None
    }

    fn need(&self, collective: &Collective) -> Need {
        Need::of_data(collective)
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::short(on.blocks())
    }

    // At the least: a root may have several trees, and all may share some, or neighbours one.
    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        let passes = if outline.kind == CollectiveKind::AllReduce {
            2
        } else {
            1
        };
        match least_trees(outline.kind, outline.npus.into()) {
            Some(trees) => outline.others(chunks.saturating_mul(passes * u128::from(trees))),
            None => outline.least(chunks),
        }
    }

    fn plan(&self, job: &Job<'_>, progress: &mut dyn Progress) -> Result<Made, PlanError> {
        let given = TreeOptions {
            pieces: job.asked_chunks(),
            memory_limit: job.options.memory_limit,
            latency: job.options.latency,
        };
        let topology = job.on().shared();
        let made = trees(&topology, job.collective, &given, progress)?;
        let pieces = made.pieces;
        let construction = match made.passes {
            Some(passes) => Construction::Trees {
                passes: Box::new(passes),
                pieces,
                time: made.run.time,
            },
            None => Construction::Flows { pieces },
        };
        Ok(Made::proved(job, made.proof, Some(made.run), construction))
    }
}

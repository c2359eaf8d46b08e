//! Steiner trees, of which a simulation chooses; see [`crate::select::steiner`].

use super::ladder::Ladder;
use super::recipe::{
    About, Construction, Made, Need, On, Origin, Recipe, SearchOption, TREE_KINDS,
};
use super::{Job, Outline};
use crate::collective::{Collective, CollectiveKind};
use crate::plan::PlanError;
use crate::progress::Progress;
use crate::select::{STEINER, SteinerOptions, steiner, steiner_refusal};

/// Trees of groups, over NPUs that take no part.
pub(super) struct Steiner;

impl Recipe for Steiner {
    fn about(&self) -> About {
        About {
            uses: &[SearchOption::Relays],
            does_custom: true,
            is_general: true,
            ..About::rule(
                STEINER,
                TREE_KINDS,
                "trees of one group or of several at once, which other NPUs forward, copy and sum; any topology",
            )
        }
        .made_by(Origin::Routes)
        .promises(88)
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        steiner_refusal(on.topology, on.collective)
    }

    fn need(&self, collective: &Collective) -> Need {
        Need::of_data(collective)
    }

    fn ladder(&self, _: &On<'_>) -> Ladder {
        Ladder::short(1)
    }

    // A group of millions is refused before there is a network.
    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.least(chunks)
    }

    // At the least, of one tree a demand: others pass data on.
    fn transfers(&self, on: &On<'_>, chunks: u128) -> u128 {
        let outline = on.outline();
        match outline.kind {
            CollectiveKind::AllReduce => outline.others(chunks).saturating_mul(2),
            _ => outline.least(chunks),
        }
    }

    fn plan(&self, job: &Job<'_>, progress: &mut dyn Progress) -> Result<Made, PlanError> {
        let given = SteinerOptions {
            pieces: job.asked_chunks(),
            memory_limit: job.options.memory_limit,
            latency: job.options.latency,
            relays: job.options.relays,
        };
        let topology = job.on().shared();
        let made = steiner(&topology, job.collective, &given, progress)?;
        let construction = Construction::Flows {
            pieces: made.pieces,
        };
        Ok(Made::proved(job, made.proof, Some(made.run), construction))
    }
}

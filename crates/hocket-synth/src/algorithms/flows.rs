//! Blocks routed over several ways, as a simulation chooses; see [`crate::select::flows`].

use super::ladder::Ladder;
use super::recipe::{About, Construction, Made, Need, On, Origin, Recipe};
use super::{Job, Outline};
use crate::collective::{Collective, CollectiveKind};
use crate::plan::PlanError;
use crate::progress::Progress;
use crate::select::{FLOWS, flows, flows_refusal};
use crate::topology::LatencyModel;

/// Blocks routed so that the busiest link has least to do.
pub(super) struct Flows;

impl Recipe for Flows {
    fn about(&self) -> About {
        About {
            does_custom: true,
            is_general: true,
            ..About::rule(
                FLOWS,
                &[CollectiveKind::AllToAll, CollectiveKind::Scatter, CollectiveKind::Gather],
                "blocks routed over several ways until the busiest link has least to do; any topology",
            )
        }
        .made_by(Origin::Routes)
        .promises(89)
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        flows_refusal(on.collective)
    }

    fn need(&self, collective: &Collective) -> Need {
        Need::of_data(collective)
    }

    fn ladder(&self, _: &On<'_>) -> Ladder {
        Ladder::short(1)
    }

    // At the least: blocks are passed on.
    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.least(chunks)
    }

    fn plan(&self, job: &Job<'_>, progress: &mut dyn Progress) -> Result<Made, PlanError> {
        let topology = job.on().shared();
        let (pieces, limit) = (job.options.chunks, job.options.memory_limit);
        let made = flows(&topology, job.collective, pieces, limit, progress)?;
        let construction = Construction::Flows {
            pieces: made.pieces,
        };
        let is_timed = job.options.latency == LatencyModel::default();
        let run = is_timed.then_some(made.run);
        Ok(Made::proved(job, made.proof, run, construction))
    }
}

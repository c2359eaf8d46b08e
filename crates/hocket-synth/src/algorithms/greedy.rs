//! Plans for any demands on any network, in which no two chunks are on a link at once; see [`crate::select`].

use super::ladder::{Ladder, is_single};
use super::recipe::{About, Construction, Made, Need, On, Origin, Recipe, SearchOption};
use super::{Job, Outline};
use crate::collective::{Collective, CollectiveKind};
use crate::plan::{PlanError, Routing};
use crate::progress::Progress;
use crate::select::{Candidates, Method};
use crate::synthesis::{GREEDY, SynthesisOptions};
use crate::topology::equal::EqualPaths;

/// Chunks matched to links over time.
pub(super) struct Greedy;

impl Recipe for Greedy {
    fn about(&self) -> About {
        About {
            uses: &[
                SearchOption::Seed,
                SearchOption::Unwind,
                SearchOption::Trials,
            ],
            is_general: true,
            ..searched(
                GREEDY,
                "chunks matched to links over time, for any topology: no two on a link at once",
            )
        }
        .promises(75)
    }

    fn refusal(&self, _: &On<'_>) -> Option<String> {
        None
    }

    fn need(&self, collective: &Collective) -> Need {
        Need::of_data(collective)
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        let ladder = Ladder {
            most_transfers: 500_000,
            ..Ladder::short(on.blocks())
        };
        match is_single(on.collective.kind()) {
            true => ladder.usually(16).trying([1, 4, 16, 64, 256, 1_024]),
            false => ladder.trying([1, 4, 16]),
        }
    }

    // At the least: chunks are passed on by who does not want them.
    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.least(chunks)
    }

    fn plan(&self, job: &Job<'_>, progress: &mut dyn Progress) -> Result<Made, PlanError> {
        by(Method::Greedy, job, progress)
    }
}

/// Every chunk by a shortest way.
pub(super) struct Blind;

impl Recipe for Blind {
    fn about(&self) -> About {
        About {
            uses: &[SearchOption::Seed, SearchOption::Unwind],
            is_compared: false,
            ..searched(
                "blind",
                "every chunk by the shortest way as if alone on the network: a baseline",
            )
        }
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        Greedy.refusal(on)
    }

    fn need(&self, collective: &Collective) -> Need {
        Greedy.need(collective)
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Greedy.ladder(on)
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        Greedy.outlined(outline, chunks)
    }

    fn plan(&self, job: &Job<'_>, progress: &mut dyn Progress) -> Result<Made, PlanError> {
        by(Method::Blind, job, progress)
    }
}

/// Of an algorithm that searches for a plan of any demands.
pub(super) const fn searched(name: &'static str, summary: &'static str) -> About {
    About {
        does_custom: true,
        ..About::rule(name, &CollectiveKind::NAMED, summary).made_by(Origin::Synthesis)
    }
}

fn by(method: Method, job: &Job<'_>, progress: &mut dyn Progress) -> Result<Made, PlanError> {
    let asked = job.options;
    let options = SynthesisOptions {
        unwinding: asked.unwinding.clone(),
        latency: asked.latency,
        seed: asked.seed,
        trials: asked.trials,
        memory_limit: asked.memory_limit,
    };
    let (topology, chunks) = (job.on().shared(), job.chunks);
    let found = Candidates::find(
        &topology,
        job.collective,
        chunks,
        method,
        &options,
        progress,
    )?;
    progress.searched();
    let found = found.quickest(progress)?;
    let is_spread = asked.routing != Routing::Single && EqualPaths::may_exist(&topology);
    let spread = match is_spread {
        true => Some(Box::new(found.clone().routed(asked.routing, progress)?)),
        false => None,
    };
    let chosen = spread.as_deref().unwrap_or(&found);
    Ok(Made {
        plan: chosen.plan().clone(),
        proof: chosen.proof().cloned(),
        run: chosen.run().cloned(),
        construction: Some(Construction::Synthesis {
            found: Box::new(found),
            spread,
        }),
    })
}

//! Pairwise all-to-all: in step s, rank i sends to rank i + s, once its step s - 1 is over.
//!
//! # Source
//! Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, 2005.

use super::ladder::Ladder;
use super::recipe::{About, Made, On, Recipe};
use super::{Job, Outline};
use crate::collective::CollectiveKind;
use crate::id::narrow;
use crate::plan::{Chunks, Op, PlanError, Wait};
use crate::progress::Progress;

/// One partner at a time, n - 1 steps.
pub(super) struct Pairwise;

impl Recipe for Pairwise {
    fn about(&self) -> About {
        About::rule(
            "pairwise",
            &[CollectiveKind::AllToAll],
            "one partner at a time, n-1 steps: never two senders to one NPU",
        )
    }

    fn refusal(&self, _: &On<'_>) -> Option<String> {
        None
    }

    fn ladder(&self, _: &On<'_>) -> Ladder {
        Ladder::short(1)
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.least(chunks)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let (npus, n) = (job.collective.npus(), job.collective.npus().len());
        let chunks = Chunks::split_part_major(&job.collective.demands(), job.chunks)?;
        let mut plan = job.builder(chunks);
        // What rank i sent in the step before, by slice and rank.
        let mut sent = vec![Wait::NOTHING; job.chunks * n];
        for step in 1..n {
            for slice in 0..job.chunks {
                let before = sent[slice * n..][..n].to_vec();
                for i in 0..n {
                    let j = (i + step) % n;
                    let chunk = narrow((slice * n + i) * n + j);
                    let wait = plan.all_of(&[before[i], before[(i + n - (step - 1)) % n]]);
                    let id = plan.send((chunk, 1), npus[i], npus[j], Op::Copy, wait);
                    sent[slice * n + i] = Wait::on(id);
                }
            }
        }
        Ok(plan.finish().into())
    }
}

//! Direct: every NPU sends to every other (or the root to all, or all to the root) at once.

use super::dimensional::{self, Along};
use super::ladder::Ladder;
use super::recipe::{About, Made, Need, On, Recipe};
use super::{Job, Outline};
use crate::collective::pattern::{Pattern, Shape};
use crate::collective::{Collective, CollectiveKind};
use crate::id::narrow;
use crate::plan::{Chunks, Op, Plan, PlanError, Wait};
use crate::progress::Progress;

/// All-reduce, reduce-scatter and all-gather in one step a pass; the other kinds in one step.
pub(super) struct Direct;

impl Recipe for Direct {
    fn about(&self) -> About {
        About::rule(
            "direct",
            &CollectiveKind::NAMED,
            "every NPU sends to every other (or root to all) at once: one step a pass",
        )
    }

    fn refusal(&self, _: &On<'_>) -> Option<String> {
        None
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::short(on.blocks())
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        match outline.kind {
            CollectiveKind::AllToAll => outline.least(chunks),
            kind if kind.is_rooted() => outline.others(chunks),
            _ => outline.flat(chunks, Shape::Direct),
        }
    }

    fn need(&self, collective: &Collective) -> Need {
        Need::of_data(collective)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        match job.collective.kind() {
            CollectiveKind::AllToAll => all_to_all(job),
            kind if kind.is_rooted() => rooted(job),
            _ => {
                let npus = job.collective.npus();
                let side = Along::new(npus.len(), vec![Pattern::direct()]);
                dimensional::build(job, npus, &[side], job.chunks)
            }
        }
        .map(Made::from)
    }
}

fn all_to_all(job: &Job<'_>) -> Result<Plan, PlanError> {
    let (npus, n) = (job.collective.npus(), job.collective.npus().len());
    let chunks = Chunks::split_part_major(&job.collective.demands(), job.chunks)?;
    let mut plan = job.builder(chunks);
    for step in 1..n {
        for slice in 0..job.chunks {
            for i in 0..n {
                let j = (i + step) % n;
                let chunk = narrow((slice * n + i) * n + j);
                plan.send((chunk, 1), npus[i], npus[j], Op::Copy, Wait::NOTHING);
            }
        }
    }
    Ok(plan.finish())
}

fn rooted(job: &Job<'_>) -> Result<Plan, PlanError> {
    let (npus, n) = (job.collective.npus(), job.collective.npus().len());
    let demands = job.collective.demands();
    let chunks = Chunks::split_part_major(&demands, job.chunks)?;
    let mut plan = job.builder(chunks);
    let root = job.root();
    let kind = job.collective.kind();
    let op = if kind.reduces() { Op::Reduce } else { Op::Copy };
    for slice in 0..job.chunks {
        for step in 1..n {
            let rank = (root + step) % n;
            let demand = if demands.len() == 1 { 0 } else { rank };
            let chunk = narrow(slice * demands.len() + demand);
            let (src, dst) = match kind {
                CollectiveKind::Broadcast | CollectiveKind::Scatter => (root, rank),
                _ => (rank, root),
            };
            plan.send((chunk, 1), npus[src], npus[dst], op, Wait::NOTHING);
        }
    }
    Ok(plan.finish())
}

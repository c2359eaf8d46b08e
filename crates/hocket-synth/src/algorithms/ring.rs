//! Ring: every block goes once round a cycle of the NPUs, to be summed, and once more to be copied.
//!
//! n - 1 steps for reduce-scatter or all-gather, 2 (n - 1) for all-reduce. The cycle is the best
//! embedding found in the topology.
//!
//! # Source
//! Patarasu, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009.

use std::collections::HashMap;

use super::dimensional::{self, Along};
use super::ladder::Ladder;
use super::recipe::{About, Made, On, PASSES, Recipe};
use super::{Job, Outline};
use crate::collective::pattern::{Pattern, Shape};
use crate::id::NpuId;
use crate::plan::{Plan, PlanError};
use crate::progress::Progress;
use crate::topology::embedding::ring_order;

/// One way round.
pub(super) struct Ring;

impl Recipe for Ring {
    fn about(&self) -> About {
        About::rule(
            "ring",
            PASSES,
            "blocks go round one cycle of the NPUs: least traffic, n-1 steps a pass",
        )
    }

    fn refusal(&self, _: &On<'_>) -> Option<String> {
        None
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::short(on.blocks())
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.flat(chunks, Shape::Ring)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        build_ways(job, 1).map(Made::from)
    }
}

/// Half of every block one way round, half the other.
pub(super) struct BidirectionalRing;

impl Recipe for BidirectionalRing {
    fn about(&self) -> About {
        About::rule(
            "bidirectional-ring",
            PASSES,
            "a ring each way, half of every block on each: both directions of its links at work",
        )
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        (on.npus() == 2)
            .then(|| "on 2 NPUs both directions are the same links; use ring".to_owned())
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        Ladder::short(2 * on.blocks())
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.flat(2 * chunks, Shape::Ring)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        build_ways(job, 2).map(Made::from)
    }
}

fn build_ways(job: &Job<'_>, ways: usize) -> Result<Plan, PlanError> {
    let npus = job.collective.npus();
    let rank: HashMap<NpuId, u32> = npus.iter().copied().zip(0..).collect();
    let order = ring_order(job.topology, npus);
    let forward = Pattern::ring(order.iter().map(|npu| rank[npu]).collect());
    let patterns = match ways {
        1 => vec![forward],
        _ => vec![forward.clone(), forward.reversed()],
    };
    let side = Along::new(npus.len(), patterns);
    dimensional::build(job, npus, &[side], ways * job.chunks)
}

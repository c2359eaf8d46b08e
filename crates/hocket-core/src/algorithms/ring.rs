//! Ring: every block goes once round a cycle of the NPUs, to be summed, and once more to be copied.
//!
//! n - 1 steps for reduce-scatter or all-gather, 2 (n - 1) for all-reduce. The cycle is the best
//! embedding found in the topology.
//!
//! # Source
//! Patarasu, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009.

use std::collections::HashMap;

use super::Job;
use super::dimensional::{self, Along};
use crate::collective::pattern::Pattern;
use crate::id::NpuId;
use crate::plan::{Plan, PlanError};
use crate::topology::embedding::ring_order;

/// One way round.
pub(super) fn build(job: &Job<'_>) -> Result<Plan, PlanError> {
    build_ways(job, 1)
}

/// Half of every block one way round, half the other.
pub(super) fn build_bidirectional(job: &Job<'_>) -> Result<Plan, PlanError> {
    build_ways(job, 2)
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

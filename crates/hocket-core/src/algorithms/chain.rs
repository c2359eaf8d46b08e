//! Chain: from NPU to NPU along a path through all of them, chunk after chunk.
//!
//! With k chunks, n - 1 hops and a chunk's hop time t, (n + k - 2) t.

use super::Job;
use crate::collective::CollectiveKind;
use crate::id::NpuId;
use crate::plan::{Chunks, Op, Plan, PlanError, Wait};
use crate::topology::embedding::chain_order;

/// Down the chain from the root (broadcast) or up to it (reduce).
pub(super) fn build(job: &Job<'_>) -> Result<Plan, PlanError> {
    let npus = job.collective.npus();
    let chunks = Chunks::split(&job.collective.demands(), job.chunks)?;
    let mut plan = job.builder(chunks);
    let mut order = chain_order(job.topology, npus, npus[job.root()]);
    let op = match job.collective.kind() {
        CollectiveKind::Reduce => {
            order.reverse();
            Op::Reduce
        }
        _ => Op::Copy,
    };
    let hops: Vec<(NpuId, NpuId)> = order.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let mut latest = vec![Wait::NOTHING; hops.len()];
    for tick in 0..hops.len() + job.chunks - 1 {
        // The farthest hop first, so that each finds its predecessor's transfer of the tick before.
        let hops_now = tick.saturating_sub(job.chunks - 1)..(tick + 1).min(hops.len());
        for hop in hops_now.rev() {
            let (src, dst) = hops[hop];
            let wait = match hop {
                0 => Wait::NOTHING,
                _ => latest[hop - 1],
            };
            let id = plan.send(((tick - hop) as u32, 1), src, dst, op, wait);
            latest[hop] = Wait::on(id);
        }
    }
    Ok(plan.finish())
}

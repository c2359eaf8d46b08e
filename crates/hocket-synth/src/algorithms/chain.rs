//! Chain: from NPU to NPU along a path through all of them, chunk after chunk.
//!
//! With k chunks, n - 1 hops and a chunk's hop time t, (n + k - 2) t.

use super::ladder::Ladder;
use super::recipe::{About, Made, On, Recipe};
use super::{Job, Outline};
use crate::collective::CollectiveKind;
use crate::id::{NpuId, narrow};
use crate::plan::{Chunks, Op, PlanError, Wait};
use crate::progress::Progress;
use crate::topology::embedding::chain_order;

/// Down the chain from the root (broadcast) or up to it (reduce).
pub(super) struct Chain;

impl Recipe for Chain {
    fn about(&self) -> About {
        About::rule(
            "chain",
            &[CollectiveKind::Broadcast, CollectiveKind::Reduce],
            "from NPU to NPU along a path, pipelined: for large data",
        )
    }

    fn refusal(&self, _: &On<'_>) -> Option<String> {
        None
    }

    fn ladder(&self, _: &On<'_>) -> Ladder {
        Ladder::pipelined(1)
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.others(chunks)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
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
                let id = plan.send((narrow(tick - hop), 1), src, dst, op, wait);
                latest[hop] = Wait::on(id);
            }
        }
        Ok(plan.finish().into())
    }
}

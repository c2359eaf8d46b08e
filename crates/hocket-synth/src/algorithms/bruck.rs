//! Bruck's all-to-all: a block goes as far as its way to its receiver has bits, NPU by NPU, and everybody passes on in
//! one step all blocks that have a bit in common: ceil(log2 n) steps, for any number of NPUs.
//!
//! A block for the NPU `d` further on is sent on by 2^s in step s, for each bit s of `d`. So everybody sends about half
//! of all blocks in each step, to one other: few latencies for log2(n) / 2 times the bytes of an all-to-all that sends
//! each block at once.
//!
//! # Complexity
//! Transfers of a slice: n times the bits of all distances 1 to n - 1.
//!
//! # Source
//! Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all communications in multiport
//! message-passing systems, IEEE Transactions on Parallel and Distributed Systems 8, 1997. Blocks keep their places
//! here, where the original shifts them before the first step and after the last.

use super::ladder::Ladder;
use super::recipe::{About, Made, On, Recipe};
use super::{Job, Outline};
use crate::collective::CollectiveKind;
use crate::id::narrow;
use crate::plan::{Chunks, Op, PlanError, Wait};
use crate::progress::Progress;

/// All blocks with a bit of their distance in common, in one step.
pub(super) struct Bruck;

impl Recipe for Bruck {
    fn about(&self) -> About {
        About::rule(
            "bruck",
            &[CollectiveKind::AllToAll],
            "blocks by the bits of their distance, passed on by others: ceil(log2 n) steps, for small data",
        )
    }

    fn refusal(&self, _: &On<'_>) -> Option<String> {
        None
    }

    fn ladder(&self, _: &On<'_>) -> Ladder {
        Ladder::short(1)
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        let npus = u128::from(outline.npus);
        // How many of 0..n have a bit: half of the whole runs of twice the bit, and what is left beyond a half.
        let with = |bit: u128| npus / (2 * bit) * bit + (npus % (2 * bit)).saturating_sub(bit);
        let steps = (0..u64::BITS).map(|step| 1u128 << step);
        let hops: u128 = steps.take_while(|&bit| bit < npus).map(with).sum();
        chunks.saturating_mul(npus.saturating_mul(hops))
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let (npus, n) = (job.collective.npus(), job.collective.npus().len());
        let chunks = Chunks::split_part_major(&job.collective.demands(), job.chunks)?;
        let mut plan = job.builder(chunks);
        for slice in 0..job.chunks {
            // All that each rank sent and got in the step before.
            let mut before = vec![Wait::NOTHING; n];
            for bit in (0..usize::BITS)
                .map(|step| 1 << step)
                .take_while(|&bit| bit < n)
            {
                let mut now = vec![Vec::new(); n];
                for at in 0..n {
                    let to = (at + bit) % n;
                    for distance in (bit..n).filter(|distance| distance & bit != 0) {
                        let first = (at + n - distance % bit) % n;
                        let last = (first + distance) % n;
                        let chunk = narrow((slice * n + first) * n + last);
                        let id = plan.send((chunk, 1), npus[at], npus[to], Op::Copy, before[at]);
                        now[at].push(Wait::on(id));
                        now[to].push(Wait::on(id));
                    }
                }
                before = now.iter().map(|waits| plan.all_of(waits)).collect();
            }
        }
        Ok(plan.finish().into())
    }
}

//! Double binary tree: half of the data is reduced to and broadcast from the root of one binary
//! tree, half of another. An NPU is an inner node of one of them at most.
//!
//! # Source
//! Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan,
//! Parallel Computing 35, 2009. Both trees are searched in order here (no processor stands apart as
//! the root), and no colouring of edges in two is kept: an NPU may get from both trees at once.

use super::ladder::Ladder;
use super::recipe::{About, Made, On, Recipe};
use super::{Job, Outline};
use crate::collective::CollectiveKind;
use crate::id::{NpuId, narrow};
use crate::plan::{Chunks, Op, PlanBuilder, PlanError, Wait};
use crate::progress::Progress;
use crate::topology::embedding::ring_order;

/// Every chunk goes up its tree, then down again.
pub(super) struct DoubleBinaryTree;

impl Recipe for DoubleBinaryTree {
    fn about(&self) -> About {
        About::rule(
            "double-binary-tree",
            &[CollectiveKind::AllReduce],
            "half of the data up and down each of two binary trees, pipelined: few steps",
        )
    }

    fn refusal(&self, _: &On<'_>) -> Option<String> {
        None
    }

    fn ladder(&self, _: &On<'_>) -> Ladder {
        Ladder::pipelined(2)
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.others(chunks.saturating_mul(4))
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let npus = job.collective.npus();
        let n = npus.len();
        let chunks = Chunks::split(&job.collective.demands(), 2 * job.chunks)?;
        let mut plan = job.builder(chunks);
        let order = ring_order(job.topology, npus);
        let other = (0..n).map(|position| match n % 2 {
            0 => order[n - 1 - position],
            _ => order[(position + n - 1) % n],
        });
        let other: Vec<NpuId> = other.collect();
        let families = families(n);
        let mut trees = [(order, 0), (other, job.chunks)].map(|(npus, first)| Tree {
            npus,
            first,
            families: &families,
            up: vec![Wait::NOTHING; n],
            down: vec![Wait::NOTHING; n],
        });
        let steps = 2 * families.len();
        for tick in 0..steps + job.chunks - 1 {
            // The last step first, so that each finds what the step before it did in the last tick.
            let steps_now = tick.saturating_sub(job.chunks - 1)..(tick + 1).min(steps);
            for step in steps_now.rev() {
                for tree in &mut trees {
                    tree.step(&mut plan, step, tick - step);
                }
            }
        }
        Ok(plan.finish().into())
    }
}

/// A parent's position in the order, and its children's.
struct Family {
    parent: usize,
    children: Vec<usize>,
}

/// Returns the families of an in-order binary tree over positions 0 to n-1, by the parent's depth.
///
/// Even positions are leaves. So mirrored (n even) or shifted by one (n odd), inner nodes become
/// leaves.
fn families(n: usize) -> Vec<Vec<Family>> {
    let mut levels = Vec::new();
    let mut parts = vec![(0, n)];
    while parts.iter().any(|&(lo, hi)| hi - lo > 1) {
        let mut level = Vec::new();
        let mut halves = Vec::new();
        for (lo, hi) in parts {
            if hi - lo < 2 {
                continue;
            }
            let parent = middle(lo, hi);
            let mut sides = vec![(lo, parent), (parent + 1, hi)];
            sides.retain(|(lo, hi)| lo < hi);
            let children = sides.iter().map(|&(lo, hi)| middle(lo, hi)).collect();
            level.push(Family { parent, children });
            halves.extend(sides);
        }
        levels.push(level);
        parts = halves;
    }
    levels
}

/// Root of positions `lo..hi`, where `lo` is even: the middle one of the odd positions, if any.
fn middle(lo: usize, hi: usize) -> usize {
    match (hi - lo) / 2 {
        0 => lo,
        odd => lo + 2 * (odd / 2) + 1,
    }
}

struct Tree<'a> {
    npus: Vec<NpuId>,
    /// Its first chunk.
    first: usize,
    families: &'a [Vec<Family>],
    /// What each position has last got from its children, all of them.
    up: Vec<Wait>,
    /// What each position has last got from its parent.
    down: Vec<Wait>,
}

impl Tree<'_> {
    /// Step `step` of chunk `chunk`: up from the deepest families, then down from the root's.
    fn step(&mut self, plan: &mut PlanBuilder, step: usize, chunk: usize) {
        let depth = self.families.len();
        let range = (narrow(self.first + chunk), 1);
        let families = self.families;
        if step < depth {
            for Family { parent, children } in &families[depth - 1 - step] {
                let arrivals: Vec<Wait> = children
                    .iter()
                    .map(|&child| {
                        let (src, dst) = (self.npus[child], self.npus[*parent]);
                        Wait::on(plan.send(range, src, dst, Op::Reduce, self.up[child]))
                    })
                    .collect();
                self.up[*parent] = plan.all_of(&arrivals);
            }
            return;
        }
        for Family { parent, children } in &families[step - depth] {
            let wait = match step - depth {
                0 => self.up[*parent],
                _ => self.down[*parent],
            };
            for &child in children {
                let (src, dst) = (self.npus[*parent], self.npus[child]);
                self.down[child] = Wait::on(plan.send(range, src, dst, Op::Copy, wait));
            }
        }
    }
}

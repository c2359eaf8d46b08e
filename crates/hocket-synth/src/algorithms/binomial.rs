//! Binomial tree: the ranks are cut into halves again and again. Whoever holds the data for a part
//! serves the half it is not in. ceil(log2 n) steps.

use super::ladder::Ladder;
use super::recipe::{About, Made, On, Recipe};
use super::{Job, Outline};
use crate::collective::CollectiveKind;
use crate::id::narrow;
use crate::plan::{Chunks, Op, PlanBuilder, PlanError, Wait};
use crate::progress::Progress;

/// From the root down (broadcast, scatter) or up to it (reduce, gather).
pub(super) struct Binomial;

impl Recipe for Binomial {
    fn about(&self) -> About {
        About::rule(
            "binomial",
            &[
                CollectiveKind::Broadcast,
                CollectiveKind::Reduce,
                CollectiveKind::Gather,
                CollectiveKind::Scatter,
            ],
            "the holders double in number each step: log2(n) steps",
        )
    }

    fn refusal(&self, _: &On<'_>) -> Option<String> {
        None
    }

    fn ladder(&self, _: &On<'_>) -> Ladder {
        Ladder::short(1)
    }

    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        outline.others(chunks)
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let demands = job.collective.demands();
        let chunks = Chunks::split_part_major(&demands, job.chunks)?;
        let tree = Tree {
            levels: levels(job.collective.npus().len(), job.root()),
            per_part: demands.len(),
        };
        let mut plan = job.builder(chunks);
        match job.collective.kind() {
            CollectiveKind::Broadcast | CollectiveKind::Scatter => tree.down(job, &mut plan),
            _ => tree.up(job, &mut plan),
        }
        Ok(plan.finish().into())
    }
}

/// `holder` serves ranks `lo..hi` through `partner`, one of them.
struct Edge {
    holder: usize,
    partner: usize,
    lo: usize,
    hi: usize,
}

struct Tree {
    /// Edges by distance from the root.
    levels: Vec<Vec<Edge>>,
    /// 1: everybody's data is the same; n: every rank has its own.
    per_part: usize,
}

impl Tree {
    fn range(&self, slice: usize, edge: &Edge) -> (u32, u32) {
        match self.per_part {
            1 => (narrow(slice), 1),
            n => (narrow(slice * n + edge.lo), narrow(edge.hi - edge.lo)),
        }
    }

    fn down(&self, job: &Job<'_>, plan: &mut PlanBuilder) {
        let npus = job.collective.npus();
        let mut got = vec![Wait::NOTHING; job.chunks * npus.len()];
        for level in &self.levels {
            for slice in 0..job.chunks {
                let got = &mut got[slice * npus.len()..][..npus.len()];
                for edge in level {
                    let (src, dst) = (npus[edge.holder], npus[edge.partner]);
                    let range = self.range(slice, edge);
                    let id = plan.send(range, src, dst, Op::Copy, got[edge.holder]);
                    got[edge.partner] = Wait::on(id);
                }
            }
        }
    }

    fn up(&self, job: &Job<'_>, plan: &mut PlanBuilder) {
        let npus = job.collective.npus();
        let op = match job.collective.kind() {
            CollectiveKind::Reduce => Op::Reduce,
            _ => Op::Copy,
        };
        let mut got = vec![Wait::NOTHING; job.chunks * npus.len()];
        for level in self.levels.iter().rev() {
            for slice in 0..job.chunks {
                let got = &mut got[slice * npus.len()..][..npus.len()];
                for edge in level {
                    let (src, dst) = (npus[edge.partner], npus[edge.holder]);
                    let range = self.range(slice, edge);
                    let id = plan.send(range, src, dst, op, got[edge.partner]);
                    if edge.holder != job.root() {
                        got[edge.holder] = plan.all_of(&[got[edge.holder], Wait::on(id)]);
                    }
                }
            }
        }
    }
}

fn levels(n: usize, root: usize) -> Vec<Vec<Edge>> {
    let mut levels = Vec::new();
    let mut parts = vec![(0, n, root)];
    while parts.iter().any(|&(lo, hi, _)| hi - lo > 1) {
        let mut edges = Vec::new();
        let mut halves = Vec::new();
        for (lo, hi, holder) in parts {
            if hi - lo < 2 {
                continue;
            }
            let mid = lo + (hi - lo).div_ceil(2);
            let ((own_lo, own_hi), (lo, hi)) = if holder < mid {
                ((lo, mid), (mid, hi))
            } else {
                ((mid, hi), (lo, mid))
            };
            let partner = lo;
            edges.push(Edge {
                holder,
                partner,
                lo,
                hi,
            });
            halves.push((own_lo, own_hi, holder));
            halves.push((lo, hi, partner));
        }
        levels.push(edges);
        parts = halves;
    }
    levels
}

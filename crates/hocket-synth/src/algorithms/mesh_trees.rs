//! Trees that share no link: a part of every chunk goes up each, then down; chunks follow each other.
//!
//! A pass takes H + C - 1 steps for C chunks and trees of height H.
//!
//! # Source
//! Laskar et al.: Enhancing collective communication in MCM accelerators for deep learning training,
//! section V.

use super::Job;
use super::follow::{Follow, only};
use super::ladder::Ladder;
use super::recipe::On;
use crate::collective::Collective;
use crate::id::{NpuId, fit, narrow};
use crate::plan::{Chunks, Plan, PlanError, Wait};
use crate::units::whole;

/// Bytes of a packet, below which a part of a chunk is not cut: each would be one of its own.
const PACKET: u64 = 8_192;
/// Transfers that the default number of chunks stays within.
const MAX_TRANSFERS: u64 = 2_000_000;

/// When a chunk's way down may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Down {
    /// When the last chunk of its tree is summed; published is when all trees' are, which takes as many steps.
    AfterAll,
    /// When it is summed itself.
    AtOnce,
}

/// An edge of a tree; its depth is the child's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) parent: NpuId,
    pub(super) child: NpuId,
    pub(super) depth: usize,
}

/// A tree, edges by depth.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) root: NpuId,
    pub(super) edges: Vec<Edge>,
}

/// Trees, no two of which use a link in the same pass.
#[derive(Clone, Debug)]
pub(super) struct Trees {
    pub(super) trees: Vec<Tree>,
    /// Of the highest.
    pub(super) height: usize,
    /// An NPU without data, which passes on what comes through it.
    pub(super) without_data: Option<NpuId>,
}

/// Returns a part of every chunk up and down each tree.
pub(super) fn build(job: &Job<'_>, trees: &Trees, down: Down) -> Result<Plan, PlanError> {
    let &Trees {
        ref trees,
        height,
        without_data,
    } = trees;
    let chunks = Chunks::split(&job.collective.demands(), trees.len() * job.chunks)?;
    let mut plan = Follow::new(job, chunks);
    let part = |chunk: usize, tree: usize| narrow(trees.len() * chunk + tree);
    // An edge of depth d is crossed in step height - d + chunk of the way up, d - 1 + chunk of the way down.
    for step in 0..height + job.chunks - 1 {
        for (t, tree) in trees.iter().enumerate() {
            for edge in &tree.edges {
                if let Some(chunk) = chunk_in(step, height - edge.depth, job.chunks) {
                    // One without data keeps what comes, for want of anything to add it to.
                    let part = only(part(chunk, t));
                    match Some(edge.parent) == without_data {
                        true => plan.copy(part, edge.child, edge.parent, Wait::NOTHING),
                        false => plan.reduce(part, edge.child, edge.parent),
                    }
                }
            }
        }
    }
    let last = job.chunks - 1;
    let summed: Vec<Wait> = trees
        .iter()
        .enumerate()
        .map(|(t, tree)| match down {
            Down::AfterAll => plan.came(part(last, t), tree.root),
            Down::AtOnce => Wait::NOTHING,
        })
        .collect();
    for step in 0..height + job.chunks - 1 {
        for (t, tree) in trees.iter().enumerate() {
            for edge in &tree.edges {
                if let Some(chunk) = chunk_in(step, edge.depth - 1, job.chunks) {
                    let also = match edge.parent == tree.root {
                        true => summed[t],
                        false => Wait::NOTHING,
                    };
                    plan.copy(only(part(chunk, t)), edge.parent, edge.child, also);
                }
            }
        }
    }
    Ok(plan.finish())
}

/// Returns the chunk that crosses an edge in a step, if the first one does in step `first`.
fn chunk_in(step: usize, first: usize, chunks: usize) -> Option<usize> {
    step.checked_sub(first).filter(|&chunk| chunk < chunks)
}

/// Returns the number of chunks that takes least time, no part of a chunk being smaller than a packet.
///
/// A step of b bytes holds the slowest link for alpha + b / bandwidth. With T trees, and S steps that one chunk takes
/// before the next way begins, C chunks take (S + C - 1) (alpha + D / (T C bandwidth)). This is least at
/// C = sqrt((S - 1) D / (T alpha bandwidth)).
pub(super) fn best_chunks(on: &On<'_>, trees: usize, steps: usize) -> usize {
    let On {
        topology,
        collective,
    } = *on;
    if steps < 2 {
        return 1;
    }
    let part = collective.size() / trees as u64;
    let links = topology.links().iter();
    let alpha = links.clone().map(|link| link.latency.as_seconds());
    let alpha = alpha.fold(0.0, f64::max);
    let rates = links.map(|link| link.bandwidth.bytes_per_second());
    let rate = rates.min().unwrap_or(1) as f64;
    let best = ((steps - 1) as f64 * part as f64 / rate / alpha)
        .sqrt()
        .round();
    let most = most_chunks(collective, trees);
    match best.is_finite() {
        true => fit(whole(best.max(1.0)).min(most as u64)),
        false => most,
    }
}

/// Returns the numbers of chunks to try of such trees: the one that takes least time, and more, which are better where
/// latency holds no link.
pub(super) fn ladder(on: &On<'_>, trees: usize, best: fn(&On<'_>) -> usize) -> Ladder {
    let ladder = Ladder::short(trees).usually_best(best);
    let best = ladder.default(on);
    let most = most_chunks(on.collective, trees).max(best);
    ladder.trying([best, (4 * best).min(most), most])
}

/// Returns the most chunks that are of use by default: a part of each a packet, and not too many transfers.
fn most_chunks(collective: &Collective, trees: usize) -> usize {
    let trees = trees as u64;
    let packets = collective.size() / trees / PACKET;
    let room = MAX_TRANSFERS / (2 * trees * collective.npus().len() as u64);
    packets.min(room).max(1) as usize
}

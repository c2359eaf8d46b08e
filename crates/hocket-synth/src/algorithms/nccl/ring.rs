//! NCCL's ring: blocks go round every channel; what a root has, or gets, goes along it piece by piece.

use super::channels::{NcclChannel, channels, count};
use super::{Roads, rooted};
use crate::algorithms::dimensional::{self, Along};
use crate::algorithms::in_network::{self, Tree};
use crate::algorithms::ladder::{Ladder, is_single};
use crate::algorithms::multi_ring::ranks;
use crate::algorithms::recipe::{About, Made, On, Recipe, TREE_KINDS};
use crate::algorithms::{Job, Outline};
use crate::collective::CollectiveKind;
use crate::collective::pattern::{Pattern, Shape};
use crate::plan::PlanError;
use crate::progress::Progress;

/// All channels abreast.
pub(in crate::algorithms) struct NcclRing;

impl Recipe for NcclRing {
    fn about(&self) -> About {
        About::rule(
            "nccl-ring",
            TREE_KINDS,
            "NCCL's rings: one way round, one for each NIC of a node or each cycle of free links in a lone one",
        )
    }

    fn refusal(&self, on: &On<'_>) -> Option<String> {
        super::refusal(on)
    }

    fn ladder(&self, on: &On<'_>) -> Ladder {
        let pieces = count(on.topology) * on.blocks();
        match is_single(on.collective.kind()) {
            true => Ladder::pipelined(pieces),
            false => Ladder::short(pieces),
        }
    }

    // Or several times that, with several channels.
    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128 {
        match outline.kind.is_rooted() {
            true => outline.others(chunks),
            false => outline.flat(chunks, Shape::Ring),
        }
    }

    fn transfers(&self, on: &On<'_>, chunks: u128) -> u128 {
        let lanes = count(on.topology) as u128;
        self.outlined(&on.outline(), chunks.saturating_mul(lanes))
    }

    fn plan(&self, job: &Job<'_>, _: &mut dyn Progress) -> Result<Made, PlanError> {
        let channels = channels(job.topology, job.collective.size());
        if job.collective.kind().is_rooted() {
            let mut roads = Roads::new(job.topology, job.collective.size());
            let chains = channels.into_iter();
            let chains = chains.map(|it| rooted_chain(job, it, &mut roads));
            return in_network::along(job, chains.collect()).map(Made::from);
        }
        let lanes = channels.len() * job.chunks;
        let orders = channels
            .iter()
            .map(|it| Pattern::ring(ranks(job, &it.order)));
        let patterns = orders.collect();
        let paths = channels.into_iter().map(|it| it.paths).collect();
        let npus = job.collective.npus();
        let side = Along::new(npus.len(), patterns).on_paths(paths);
        dimensional::build(job, npus, &[side], lanes).map(Made::from)
    }
}

/// Returns a channel that is cut before the root, or behind it where the root is to be last: transfers go the way of
/// the ring.
pub(super) fn rooted_chain(job: &Job<'_>, mut channel: NcclChannel, roads: &mut Roads<'_>) -> Tree {
    let root = job.collective.npus()[job.root()];
    let is_last = job.collective.kind() == CollectiveKind::Reduce;
    let at = channel.order.iter().position(|&npu| npu == root);
    let first = at.expect("a participant") + usize::from(is_last);
    let count = channel.order.len();
    channel.order.rotate_left(first % count);
    rooted(roads.chain(&channel), root.device())
}

//! NCCL's ring: blocks go round every channel; what a root has, or gets, goes along it piece by piece.

use super::channels::{Channel, channels};
use super::{Roads, rooted};
use crate::algorithms::Job;
use crate::algorithms::dimensional::{self, Along};
use crate::algorithms::in_network::{self, Tree};
use crate::algorithms::multi_ring::ranks;
use crate::collective::CollectiveKind;
use crate::collective::pattern::Pattern;
use crate::plan::{Plan, PlanError};

/// All channels abreast.
pub(in crate::algorithms) fn build(job: &Job<'_>) -> Result<Plan, PlanError> {
    let channels = channels(job.topology, job.collective.size());
    if job.collective.kind().is_rooted() {
        let mut roads = Roads::new(job.topology, job.collective.size());
        let chains = channels.into_iter();
        let chains = chains.map(|it| rooted_chain(job, it, &mut roads));
        return in_network::along(job, chains.collect());
    }
    let lanes = channels.len() * job.chunks;
    let orders = channels
        .iter()
        .map(|it| Pattern::ring(ranks(job, &it.order)));
    let patterns = orders.collect();
    let paths = channels.into_iter().map(|it| it.paths).collect();
    let npus = job.collective.npus();
    let side = Along::new(npus.len(), patterns).on_paths(paths);
    dimensional::build(job, npus, &[side], lanes)
}

/// A channel that is cut before the root, or behind it where the root is to be last: transfers go the way of the ring.
pub(super) fn rooted_chain(job: &Job<'_>, mut channel: Channel, roads: &mut Roads<'_>) -> Tree {
    let root = job.collective.npus()[job.root()];
    let is_last = job.collective.kind() == CollectiveKind::Reduce;
    let at = channel.order.iter().position(|&npu| npu == root);
    let first = at.expect("a participant") + usize::from(is_last);
    let count = channel.order.len();
    channel.order.rotate_left(first % count);
    rooted(roads.chain(&channel), root.device())
}

//! How large a plan becomes, from what is known before there is a network.

use super::{
    Algorithm, dimensional, hierarchical, multitree, nccl, ring_2d, ring_bi_odd, tto,
    two_tree_overlap,
};
use crate::collective::CollectiveKind;
use crate::collective::pattern::Shape;
use crate::multirail::PARTS;
use crate::plan::{PlanBuilder, PlanError};
use crate::topology::{Dimension, DimensionKind};

/// What a plan's size depends on, besides its algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Outline<'a> {
    /// Kind of the collective.
    pub kind: CollectiveKind,
    /// Number of participants.
    pub npus: u32,
    /// Dimensions of a product; empty for other networks.
    pub dimensions: &'a [Dimension],
}

impl Outline<'_> {
    /// How many transfers a plan of so many chunks has; see [`transfer_count`](super::transfer_count).
    ///
    /// 0 for the hierarchical ones where there are no dimensions.
    pub fn transfers(&self, algorithm: Algorithm, chunks: usize) -> u128 {
        let (kind, count, k) = (self.kind, self.npus as usize, chunks as u128);
        let n = u128::from(self.npus);
        let flat = |lanes, shape| dimensional::transfers(kind, lanes, [(count, shape)].into_iter());
        match algorithm {
            Algorithm::Ring => flat(k, Shape::Ring),
            Algorithm::BidirectionalRing => flat(2 * k, Shape::Ring),
            Algorithm::MultiRing => flat(k.saturating_mul(2), Shape::Ring), // or several times that
            Algorithm::HalvingDoubling | Algorithm::Hdrm => flat(k, Shape::HalvingDoubling),
            Algorithm::Hierarchical => {
                hierarchical::transfers(&hierarchical::sides(self.dimensions), kind, k)
            }
            Algorithm::ThemisFifo | Algorithm::Themis | Algorithm::MultirailOptimal => {
                let lanes = k.saturating_mul(PARTS as u128);
                hierarchical::transfers(&hierarchical::sides(self.dimensions), kind, lanes)
            }
            // Or several times that, with several channels.
            Algorithm::NcclRing if kind.is_rooted() => k.saturating_mul(n - 1),
            Algorithm::NcclRing => flat(k, Shape::Ring),
            // One tree in a lone node, two trees at least over several.
            Algorithm::NcclTree | Algorithm::NcclNvls if count > nccl::LARGEST_NODE => {
                k.saturating_mul(4 * (n - 1))
            }
            Algorithm::NcclTree => k.saturating_mul(2 * (n - 1)),
            Algorithm::NcclNvls => k.saturating_mul(n - 1),
            Algorithm::DoubleBinaryTree => k.saturating_mul(4 * (n - 1)),
            Algorithm::Binomial | Algorithm::Chain => k.saturating_mul(n - 1),
            Algorithm::Pairwise => k.saturating_mul(n * (n - 1)),
            Algorithm::Direct if kind.is_rooted() => k.saturating_mul(n - 1),
            Algorithm::Direct if kind == CollectiveKind::AllToAll => k.saturating_mul(n * (n - 1)),
            Algorithm::Direct => flat(k, Shape::Direct),
            Algorithm::RingBiOdd => ring_bi_odd::transfers(n, k),
            Algorithm::Tto | Algorithm::TtoOverlapped => tto::transfers(n, k),
            Algorithm::TwoTreeOverlap => two_tree_overlap::transfers(n, k),
            Algorithm::MultiTree => multitree::transfers(kind, n, k),
            Algorithm::Ring2d => ring_2d::transfers(self.dimensions, k),
            // Refused, where there are no switches; till then as large as direct.
            Algorithm::InNetwork if self.has_no_switch() => {
                self.transfers(Algorithm::Direct, chunks)
            }
            // At least: from every NPU but one, or to it.
            Algorithm::InNetwork | Algorithm::NodeGroups => k.saturating_mul(n - 1),
            // Of trees and flows, at the least: a root may have several trees, and blocks are passed on.
            Algorithm::Trees | Algorithm::Symmetric | Algorithm::Flows | Algorithm::Greedy => {
                match kind {
                    CollectiveKind::AllReduce => k.saturating_mul(2 * n * (n - 1)),
                    CollectiveKind::AllGather
                    | CollectiveKind::ReduceScatter
                    | CollectiveKind::AllToAll => k.saturating_mul(n * (n - 1)),
                    _ => k.saturating_mul(n - 1),
                }
            }
        }
    }

    /// Whether it is a product none of whose dimensions has switches.
    fn has_no_switch(&self) -> bool {
        let mut dimensions = self.dimensions.iter();
        !self.dimensions.is_empty() && !dimensions.any(|it| it.kind == DimensionKind::Switch)
    }

    /// Refuses what no memory of that many bytes holds, however few the chunks where none are given.
    ///
    /// What it lets through may still turn out too large, once the network is there. An algorithm that does
    /// another collective is let through: there is more to say of it.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`].
    pub fn check(
        &self,
        algorithm: Algorithm,
        chunks: Option<usize>,
        memory_limit: u64,
    ) -> Result<(), PlanError> {
        if self.npus < 2 || !algorithm.supports(self.kind) {
            return Ok(());
        }
        let transfers = self.transfers(algorithm, chunks.unwrap_or(1));
        PlanBuilder::check_size(transfers, memory_limit)
    }

    /// As [`check`](Self::check), of a greedy timetable without a plan: four bytes for each send.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`].
    pub fn check_timetable(&self, chunks: Option<usize>, limit: u64) -> Result<(), PlanError> {
        let transfers = match self.npus < 2 {
            true => 0,
            false => self.transfers(Algorithm::Greedy, chunks.unwrap_or(1)),
        };
        let bytes = transfers.saturating_mul(4);
        if bytes <= u128::from(limit) {
            return Ok(());
        }
        Err(PlanError::TooLarge {
            transfers,
            bytes,
            limit,
        })
    }
}

//! How large a plan becomes, from what is known before there is a network.

use super::Algorithm;
use super::dimensional;
use crate::collective::CollectiveKind;
use crate::collective::pattern::Shape;
use crate::plan::{PlanBuilder, PlanError};
use crate::topology::Dimension;

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
    /// Returns how many transfers a plan of so many chunks has; see [`transfer_count`](super::transfer_count).
    ///
    /// 0 for the hierarchical ones where there are no dimensions.
    pub fn transfers(&self, algorithm: Algorithm, chunks: usize) -> u128 {
        algorithm.recipe().outlined(self, chunks as u128)
    }

    /// Returns the number of transfers of one pattern among all participants, in so many lanes.
    pub(super) fn flat(&self, lanes: u128, shape: Shape) -> u128 {
        let side = [(self.npus as usize, shape)].into_iter();
        dimensional::transfers(self.kind, lanes, side)
    }

    /// Returns the number of transfers where each chunk goes to, or comes from, every participant but one.
    pub(super) fn others(&self, chunks: u128) -> u128 {
        chunks.saturating_mul(u128::from(self.npus) - 1)
    }

    /// Returns the number of transfers where whatever is wanted is sent once to, or from, everybody who wants or has
    /// it: the least that plans for any network have.
    pub(super) fn least(&self, chunks: u128) -> u128 {
        let n = u128::from(self.npus);
        let roots = match self.kind {
            CollectiveKind::AllReduce => 2 * n,
            CollectiveKind::AllGather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::AllToAll => n,
            _ => 1,
        };
        chunks.saturating_mul(roots * (n - 1))
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

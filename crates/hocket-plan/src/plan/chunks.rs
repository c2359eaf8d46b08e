//! The data of a collective, cut into chunks.

use super::PlanError;
use crate::collective::Demand;
use crate::id::narrow;

/// The chunks of a plan: each belongs to one demand of the collective and has a size in bytes.
///
/// Chunks of one demand, in ascending order, cut its bytes from first to last. Consecutive chunks
/// travel together in one transfer, so the order in which an algorithm lays out its chunks is its
/// own choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunks {
    offsets: Vec<u64>,
    demand: Vec<u32>,
}

impl Chunks {
    /// Room for chunks, none yet.
    pub fn with_capacity(count: usize) -> Self {
        let mut offsets = Vec::with_capacity(count + 1);
        offsets.push(0);
        Self {
            offsets,
            demand: Vec::with_capacity(count),
        }
    }

    /// Cuts every demand into `pieces` chunks whose sizes differ by one byte at most; piece q of
    /// demand d is chunk d x `pieces` + q.
    ///
    /// # Errors
    /// [`PlanError::TooManyChunks`] where a demand has fewer bytes than pieces.
    pub fn split(demands: &[Demand], pieces: usize) -> Result<Self, PlanError> {
        let mut chunks = Self::with_capacity(demands.len() * pieces);
        for (d, demand) in demands.iter().enumerate() {
            chunks.split_one(narrow(d), demand.bytes, pieces)?;
        }
        Ok(chunks)
    }

    /// Cuts every demand into `parts`, and lays out part by part: part s of demand d is chunk
    /// s x demands + d. A transfer can then carry one part of consecutive demands.
    ///
    /// # Errors
    /// [`PlanError::TooManyChunks`] where a demand has fewer bytes than parts.
    pub fn split_part_major(demands: &[Demand], parts: usize) -> Result<Self, PlanError> {
        let order: Vec<u32> = (0..narrow(demands.len())).collect();
        Self::split_part_major_in(demands, parts, &order)
    }

    /// As [`split_part_major`](Self::split_part_major), with the demands of a part in the order
    /// given: part s of demand `order[i]` is chunk s x demands + i.
    ///
    /// # Errors
    /// [`PlanError::TooManyChunks`] where a demand has fewer bytes than parts.
    pub fn split_part_major_in(
        demands: &[Demand],
        parts: usize,
        order: &[u32],
    ) -> Result<Self, PlanError> {
        for (d, demand) in demands.iter().enumerate() {
            check_pieces(narrow(d), demand.bytes, parts)?;
        }
        let mut chunks = Self::with_capacity(demands.len() * parts);
        for s in 0..parts {
            for &d in order {
                let bytes = demands[d as usize].bytes;
                let start = crate::collective::block_start(bytes, s, parts);
                let end = crate::collective::block_start(bytes, s + 1, parts);
                chunks.push(d, end - start);
            }
        }
        Ok(chunks)
    }

    /// Appends `pieces` chunks that cut `bytes` of demand `demand`.
    ///
    /// # Errors
    /// [`PlanError::TooManyChunks`] where there are fewer bytes than pieces.
    pub fn split_one(&mut self, demand: u32, bytes: u64, pieces: usize) -> Result<(), PlanError> {
        check_pieces(demand, bytes, pieces)?;
        for q in 0..pieces {
            let start = crate::collective::block_start(bytes, q, pieces);
            let end = crate::collective::block_start(bytes, q + 1, pieces);
            self.push(demand, end - start);
        }
        Ok(())
    }

    /// Returns the chunks from columns (a file, another tool).
    ///
    /// # Errors
    /// [`PlanError::Malformed`] unless `offsets` starts at 0, never falls and is one longer than
    /// `demand`.
    pub fn from_columns(offsets: Vec<u64>, demand: Vec<u32>) -> Result<Self, PlanError> {
        super::check_offsets("chunk_offsets", &offsets, demand.len(), None)?;
        Ok(Self { offsets, demand })
    }

    /// Appends one chunk.
    pub fn push(&mut self, demand: u32, bytes: u64) {
        let end = self.offsets[self.len()] + bytes;
        self.offsets.push(end);
        self.demand.push(demand);
    }

    /// Returns the number of chunks.
    pub fn len(&self) -> usize {
        self.demand.len()
    }

    /// Returns `true` if there are no chunks.
    pub fn is_empty(&self) -> bool {
        self.demand.is_empty()
    }

    /// Demand that each chunk belongs to.
    pub fn demand(&self) -> &[u32] {
        &self.demand
    }

    /// Running sum of the chunks' bytes, from 0; one more than there are chunks.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Returns the bytes of `count` consecutive chunks.
    #[inline]
    pub fn bytes_of(&self, first: u32, count: u32) -> u64 {
        self.offsets[first as usize + count as usize] - self.offsets[first as usize]
    }
}

fn check_pieces(demand: u32, bytes: u64, pieces: usize) -> Result<(), PlanError> {
    if pieces == 0 || pieces as u64 > bytes {
        return Err(PlanError::TooManyChunks {
            what: format!("block {demand}"),
            bytes,
            chunks: pieces,
        });
    }
    Ok(())
}

//! What a program is meant to do: which chunk of which buffer holds what before and after.

use std::fmt;

use super::Buffer;
use crate::collective::CollectiveKind;

/// Whether a call's output lies over its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The output lies over the input: of the smaller buffer, rank r's is part r of the larger one.
    InPlace,
    /// Input and output are different memory.
    OutOfPlace,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::InPlace => "in place",
            Mode::OutOfPlace => "out of place",
        })
    }
}

/// What a chunk holds before, or must hold after: which data, of whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Contents {
    /// Number of the data: chunks of one number, of several ranks, are summed.
    pub data: u32,
    /// Rank whose contribution it is; `None` after a sum of all ranks.
    pub rank: Option<u32>,
}

/// A collective among ranks 0, 1, ... whose whole vector has a number of chunks.
///
/// The whole vector is that of one rank for all-reduce, broadcast, reduce and all-to-all, and the gathered or scattered
/// one for the others, as `size` of a [`Collective`](crate::collective::Collective).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The pattern. Of [`CollectiveKind::Custom`] it is not known what buffers hold after.
    pub kind: CollectiveKind,
    /// Number of ranks.
    pub ranks: u32,
    /// The root, for kinds that have one.
    pub root: u32,
    /// Chunks of the whole vector.
    pub chunks: u32,
}

impl Task {
    /// Returns the number of chunks of a rank's part of the whole vector.
    pub fn part(&self) -> u32 {
        self.chunks / self.ranks
    }

    /// Returns the number of chunks of the input of a rank.
    pub fn input(&self, rank: u32) -> u32 {
        match self.kind {
            CollectiveKind::AllGather | CollectiveKind::Gather => self.part(),
            CollectiveKind::Broadcast | CollectiveKind::Scatter if rank != self.root => 0,
            _ => self.chunks,
        }
    }

    /// Returns the number of chunks of the output of a rank.
    pub fn output(&self, rank: u32) -> u32 {
        match self.kind {
            CollectiveKind::ReduceScatter | CollectiveKind::Scatter => self.part(),
            CollectiveKind::Reduce | CollectiveKind::Gather if rank != self.root => 0,
            _ => self.chunks,
        }
    }

    /// Returns whether parts of ranks have equally many chunks, as far as the kind has parts.
    pub fn is_even(&self) -> bool {
        let has_parts = matches!(
            self.kind,
            CollectiveKind::AllGather
                | CollectiveKind::ReduceScatter
                | CollectiveKind::Gather
                | CollectiveKind::Scatter
                | CollectiveKind::AllToAll
        );
        !has_parts || self.chunks.is_multiple_of(self.ranks)
    }

    /// Returns whether chunks are summed.
    pub fn reduces(&self) -> bool {
        self.kind.reduces() || self.kind == CollectiveKind::Custom
    }

    /// Returns what chunk `chunk` of the input of `rank` holds before.
    pub fn before(&self, rank: u32, chunk: u32) -> Contents {
        let data = match self.kind {
            CollectiveKind::AllGather | CollectiveKind::Gather => rank * self.part() + chunk,
            CollectiveKind::AllToAll => rank * self.chunks + chunk,
            _ => chunk,
        };
        Contents {
            data,
            rank: Some(rank),
        }
    }

    /// Returns what chunk `chunk` of the output of `rank` must hold after; `None` if that is not known.
    pub fn after(&self, rank: u32, chunk: u32) -> Option<Contents> {
        let part = self.part();
        let (data, of) = match self.kind {
            CollectiveKind::AllReduce | CollectiveKind::Reduce => (chunk, None),
            CollectiveKind::ReduceScatter => (rank * part + chunk, None),
            CollectiveKind::AllGather | CollectiveKind::Gather => (chunk, Some(chunk / part)),
            CollectiveKind::Broadcast => (chunk, Some(self.root)),
            CollectiveKind::Scatter => (rank * part + chunk, Some(self.root)),
            CollectiveKind::AllToAll => {
                let (from, at) = (chunk / part, chunk % part);
                (from * self.chunks + rank * part + at, Some(from))
            }
            CollectiveKind::Custom => return None,
        };
        Some(Contents { data, rank: of })
    }

    /// Returns the chunk of the memory shared by input and output that `chunk` of `buffer` is, in place.
    pub fn in_place(&self, rank: u32, buffer: Buffer, chunk: u32) -> u32 {
        let own_part = matches!(
            (self.kind, buffer),
            (
                CollectiveKind::AllGather | CollectiveKind::Gather,
                Buffer::Input
            ) | (
                CollectiveKind::ReduceScatter | CollectiveKind::Scatter,
                Buffer::Output
            )
        );
        if own_part {
            rank * self.part() + chunk
        } else {
            chunk
        }
    }
}

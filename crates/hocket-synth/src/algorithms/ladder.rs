//! Into how many slices data is cut: what an algorithm takes by default, what is worth trying, what fits.

use super::recipe::On;
use super::{Algorithm, PlanOptions};
use crate::collective::{Collective, CollectiveKind};
use crate::plan::PlanError;
use crate::topology::Topology;

/// Into how many chunks an algorithm may cut the data, and which numbers are worth trying.
#[derive(Clone, Debug)]
pub(crate) struct Ladder {
    /// What it takes where none is given, if there are bytes for so many.
    pub(super) usual: Usual,
    /// Numbers worth trying, ascending.
    pub(super) rungs: Vec<usize>,
    /// Pieces that it makes of a demand, for each chunk.
    pub(super) pieces: usize,
    /// Transfers up to which numbers are tried.
    pub(super) most_transfers: u128,
}

/// The number of chunks where none is given: computed only when it is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Usual {
    Number(usize),
    Best(fn(&On<'_>) -> usize),
}

impl Ladder {
    /// One chunk, or a few: of what gains little from a pipeline. Each chunk of a demand is `pieces` of them.
    pub(super) fn short(pieces: usize) -> Self {
        Self {
            usual: Usual::Number(1),
            rungs: vec![1, 4, 16, 64],
            pieces,
            most_transfers: 2_000_000,
        }
    }

    /// Many chunks, of what is useless without a pipeline.
    pub(super) fn pipelined(pieces: usize) -> Self {
        Self {
            usual: Usual::Number(16),
            rungs: vec![1, 4, 16, 64, 256],
            ..Self::short(pieces)
        }
    }

    /// Another number where none is given.
    pub(super) fn usually(self, chunks: usize) -> Self {
        Self {
            usual: Usual::Number(chunks),
            ..self
        }
    }

    /// Returns a number that depends on the network where none is given.
    pub(super) fn usually_best(self, best: fn(&On<'_>) -> usize) -> Self {
        Self {
            usual: Usual::Best(best),
            ..self
        }
    }

    /// Other numbers to try.
    pub(super) fn trying(self, rungs: impl Into<Vec<usize>>) -> Self {
        Self {
            rungs: rungs.into(),
            ..self
        }
    }

    /// Returns the number where none is given.
    pub(super) fn default(&self, on: &On<'_>) -> usize {
        let wanted = match self.usual {
            Usual::Number(chunks) => chunks,
            Usual::Best(best) => best(on),
        };
        let room = smallest_piece(on.collective) / self.pieces as u64;
        usize::try_from(room).map_or(wanted, |room| wanted.min(room).max(1))
    }

    /// Checks that there is a byte for every piece, before anything is allocated.
    fn check(&self, collective: &Collective, chunks: usize) -> Result<(), PlanError> {
        let bytes = smallest_piece(collective);
        let pieces = chunks.saturating_mul(self.pieces);
        if pieces as u64 <= bytes {
            return Ok(());
        }
        let what = match is_whole(collective.kind()) {
            true => "the data".to_owned(),
            false => format!("the smallest of {} blocks", collective.npus().len()),
        };
        let what = match self.pieces {
            1 => what,
            each => format!("{what} (for {chunks} slices of {each} chunks)"),
        };
        Err(PlanError::TooManyChunks {
            what,
            bytes,
            chunks: pieces,
        })
    }
}

/// Returns the number of chunks where the user names none, fewer than its algorithm takes where there are not enough
/// bytes.
pub fn default_chunks(algorithm: Algorithm, topology: &Topology, collective: &Collective) -> usize {
    let on = On {
        topology,
        collective,
    };
    algorithm.recipe().ladder(&on).default(&on)
}

/// Returns the numbers of chunks worth trying where the user names none, ascending; never empty.
///
/// Limited by the bytes there are and to plans of some two million transfers, eight million for
/// multi-rail schedulers.
pub fn chunk_ladder(
    topology: &Topology,
    collective: &Collective,
    algorithm: Algorithm,
) -> Vec<usize> {
    let on = On {
        topology,
        collective,
    };
    let recipe = algorithm.recipe();
    let ladder = recipe.ladder(&on);
    let fits = |&chunks: &usize| {
        ladder.check(collective, chunks).is_ok()
            && recipe.transfers(&on, chunks as u128) <= ladder.most_transfers
    };
    let mut tried: Vec<usize> = ladder.rungs.iter().copied().filter(fits).collect();
    tried.dedup();
    if tried.is_empty() {
        tried.push(1);
    }
    tried
}

/// Returns the number of chunks asked for, or the default, if the data can be cut so.
pub(super) fn chunk_count(on: &On<'_>, options: &PlanOptions) -> Result<usize, PlanError> {
    let ladder = options.algorithm.recipe().ladder(on);
    let chunks = options.chunks.unwrap_or_else(|| ladder.default(on));
    if chunks == 0 {
        let why = "0 chunks asked for; ask for one or more";
        return Err(options.algorithm.refused(why));
    }
    ladder.check(on.collective, chunks)?;
    Ok(chunks)
}

/// Returns the bytes of the smallest demand.
fn smallest_piece(collective: &Collective) -> u64 {
    match is_whole(collective.kind()) {
        true => collective.size(),
        false => collective.size() / collective.npus().len() as u64,
    }
}

/// Returns whether all of the data goes from one NPU to all, or the other way.
pub(super) fn is_single(kind: CollectiveKind) -> bool {
    matches!(kind, CollectiveKind::Broadcast | CollectiveKind::Reduce)
}

/// Returns whether all of the data is one demand.
fn is_whole(kind: CollectiveKind) -> bool {
    kind == CollectiveKind::AllReduce || is_single(kind)
}

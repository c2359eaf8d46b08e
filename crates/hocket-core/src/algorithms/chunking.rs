//! Into how many slices data is cut: what an algorithm takes by default, what is worth trying, what fits.

use super::trees::{self, Down};
use super::{
    Algorithm, PlanOptions, in_network, multi_ring, nccl, node_groups, ring_bi_odd, transfer_count,
    tto, two_tree_overlap,
};
use crate::collective::{Collective, CollectiveKind};
use crate::multirail::PARTS;
use crate::plan::PlanError;
use crate::topology::Topology;

/// The number of chunks where the user names none: 1, 4 for hierarchical, 64 (as Themis) for multi-rail
/// schedulers, 16 for what is useless without a pipeline, what takes least time for tto and its like; fewer where there are
/// not enough bytes.
pub fn default_chunks(algorithm: Algorithm, topology: &Topology, collective: &Collective) -> usize {
    let wanted = match algorithm {
        Algorithm::Hierarchical => 4,
        _ if algorithm.is_multirail() => 64,
        Algorithm::Chain
        | Algorithm::DoubleBinaryTree
        | Algorithm::NodeGroups
        | Algorithm::NcclTree
        | Algorithm::NcclNvls => 16,
        Algorithm::NcclRing if is_single(collective.kind()) => 16,
        Algorithm::InNetwork => in_network::best_chunks(topology, collective),
        Algorithm::Tto => tto::best_chunks(topology, collective, Down::AfterAll),
        Algorithm::TtoOverlapped => tto::best_chunks(topology, collective, Down::AtOnce),
        Algorithm::TwoTreeOverlap => two_tree_overlap::best_chunks(topology, collective),
        Algorithm::Greedy if is_single(collective.kind()) => 16,
        _ => 1,
    };
    let room =
        smallest_piece(collective) / pieces_per_chunk(topology, algorithm, collective) as u64;
    usize::try_from(room).map_or(wanted, |room| wanted.min(room).max(1))
}

/// Numbers of chunks worth trying where the user names none, ascending; never empty.
///
/// Limited by the bytes there are and to plans of some two million transfers, eight million for
/// multi-rail schedulers.
pub fn chunk_ladder(
    topology: &Topology,
    collective: &Collective,
    algorithm: Algorithm,
) -> Vec<usize> {
    let most_transfers = match algorithm.is_multirail() {
        true => 8_000_000,
        false if algorithm == Algorithm::Greedy => 500_000,
        false => 2_000_000,
    };
    let rungs: &[usize] = match algorithm {
        _ if algorithm.is_multirail() => &[4, 16, 64],
        Algorithm::Greedy if is_single(collective.kind()) => &[1, 4, 16, 64, 256, 1_024],
        Algorithm::Greedy => &[1, 4, 16],
        Algorithm::Chain
        | Algorithm::DoubleBinaryTree
        | Algorithm::NodeGroups
        | Algorithm::NcclTree
        | Algorithm::NcclNvls => &[1, 4, 16, 64, 256],
        Algorithm::NcclRing if is_single(collective.kind()) => &[1, 4, 16, 64, 256],
        // Trees over slow links are under way for many slices.
        Algorithm::InNetwork => &[1, 4, 16, 64, 256, 1_024, 4_096],
        Algorithm::Tto | Algorithm::TtoOverlapped | Algorithm::TwoTreeOverlap => {
            // Where latency holds no link, more are better.
            let best = default_chunks(algorithm, topology, collective);
            let ways = pieces_per_chunk(topology, algorithm, collective);
            let most = trees::most_chunks(collective, ways);
            &[best, (4 * best).min(most).max(best), most.max(best)]
        }
        _ => &[1, 4, 16, 64],
    };
    let fits = |&chunks: &usize| {
        check_chunks(topology, algorithm, collective, chunks).is_ok()
            && transfer_count(topology, collective, algorithm, chunks) <= most_transfers
    };
    let mut ladder: Vec<usize> = rungs.iter().copied().filter(fits).collect();
    ladder.dedup();
    if ladder.is_empty() {
        ladder.push(1);
    }
    ladder
}

/// The number of chunks asked for, or the default, if the data can be cut so.
pub(super) fn chunk_count(
    topology: &Topology,
    collective: &Collective,
    options: &PlanOptions,
) -> Result<usize, PlanError> {
    let algorithm = options.algorithm;
    let chunks = options
        .chunks
        .unwrap_or_else(|| default_chunks(algorithm, topology, collective));
    if chunks == 0 {
        return Err(PlanError::NotApplicable {
            algorithm: algorithm.name(),
            why: "0 chunks asked for; ask for one or more".to_owned(),
        });
    }
    check_chunks(topology, algorithm, collective, chunks)?;
    Ok(chunks)
}

/// Checks that there is a byte for every piece, before anything is allocated.
fn check_chunks(
    topology: &Topology,
    algorithm: Algorithm,
    collective: &Collective,
    chunks: usize,
) -> Result<(), PlanError> {
    let bytes = smallest_piece(collective);
    let pieces = chunks.saturating_mul(pieces_per_chunk(topology, algorithm, collective));
    if pieces as u64 > bytes {
        let what = match is_whole(collective.kind()) {
            true => "the data".to_owned(),
            false => format!("the smallest of {} blocks", collective.npus().len()),
        };
        let per_chunk = pieces_per_chunk(topology, algorithm, collective);
        let what = match per_chunk {
            1 => what,
            _ => format!("{what} (for {chunks} slices of {per_chunk} chunks)"),
        };
        return Err(PlanError::TooManyChunks {
            what,
            bytes,
            chunks: pieces,
        });
    }
    Ok(())
}

/// Pieces that an algorithm makes of a demand, for each chunk asked for.
fn pieces_per_chunk(topology: &Topology, algorithm: Algorithm, collective: &Collective) -> usize {
    let ways = match algorithm {
        Algorithm::BidirectionalRing | Algorithm::DoubleBinaryTree | Algorithm::Ring2d => 2,
        Algorithm::MultiRing => multi_ring::lanes(topology),
        Algorithm::Tto | Algorithm::TtoOverlapped => tto::TREES,
        Algorithm::TwoTreeOverlap => two_tree_overlap::TREES,
        Algorithm::RingBiOdd => ring_bi_odd::pieces(collective.npus().len()),
        Algorithm::NodeGroups => node_groups::parts(topology, collective),
        Algorithm::NcclRing | Algorithm::NcclTree | Algorithm::NcclNvls => {
            nccl::lanes(topology, collective.kind(), algorithm)
        }
        _ if algorithm.is_multirail() => PARTS,
        _ => 1,
    };
    let whole = [
        Algorithm::DoubleBinaryTree,
        Algorithm::Tto,
        Algorithm::TtoOverlapped,
        Algorithm::TwoTreeOverlap,
        Algorithm::RingBiOdd,
        Algorithm::InNetwork,
        Algorithm::NcclTree,
        Algorithm::NcclNvls,
    ];
    match (collective.kind(), algorithm) {
        (CollectiveKind::AllReduce, algorithm) if whole.contains(&algorithm) => ways,
        (CollectiveKind::AllReduce, _) => ways * collective.npus().len(),
        _ => ways,
    }
}

/// Bytes of the smallest demand.
fn smallest_piece(collective: &Collective) -> u64 {
    match is_whole(collective.kind()) {
        true => collective.size(),
        false => collective.size() / collective.npus().len() as u64,
    }
}

/// Whether all of the data goes from one NPU to all, or the other way.
fn is_single(kind: CollectiveKind) -> bool {
    matches!(kind, CollectiveKind::Broadcast | CollectiveKind::Reduce)
}

/// Whether all of the data is one demand.
fn is_whole(kind: CollectiveKind) -> bool {
    matches!(
        kind,
        CollectiveKind::AllReduce | CollectiveKind::Broadcast | CollectiveKind::Reduce
    )
}

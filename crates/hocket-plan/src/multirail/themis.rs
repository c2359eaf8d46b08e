//! Which order each chunk takes: the fixed one, and Themis's.

use super::Rail;
use super::lane::{Lane, split};
use crate::collective::CollectiveKind;
use crate::id::fit;

/// Returns the order of the hierarchical all-reduce for every chunk: rails upwards, and back.
///
/// # Source
/// Cho et al.: BlueConnect, MLSys 2019; Themis, section 2.3.
pub fn fixed_order(rails: &[Rail], kind: CollectiveKind, bytes: u64, chunks: usize) -> Vec<Lane> {
    let upwards: Vec<u8> = (0..fit(rails.len())).collect();
    let lanes = split(bytes, chunks).into_iter();
    lanes
        .map(|bytes| Lane::along(kind, bytes, &upwards))
        .collect()
}

/// Each chunk goes first where the least load is, so that it puts most load there; where loads differ
/// by less than a threshold, upwards as [`fixed_order`] has it.
///
/// # Complexity
/// O(chunks x rails x log rails).
///
/// # Source
/// Rashidi et al.: Themis, ISCA 2022, algorithm 1. Loads start at A_K = steps x step latency of the
/// whole collective (section 4.4). The threshold is the time that a sixteenth of a chunk takes on the
/// least loaded dimension (section 5.3).
pub fn themis(rails: &[Rail], kind: CollectiveKind, bytes: u64, chunks: usize) -> Vec<Lane> {
    let passes = if kind == CollectiveKind::AllReduce {
        2.0
    } else {
        1.0
    };
    let mut loads: Vec<f64> = rails
        .iter()
        .map(|rail| passes * rail.fixed_delay().as_ps() as f64)
        .collect();
    let upwards: Vec<u8> = (0..fit(rails.len())).collect();
    let mut lanes = Vec::with_capacity(chunks);
    for bytes in split(bytes, chunks) {
        let mut order = upwards.clone();
        let load = |rail: &u8| loads[usize::from(*rail)];
        let (least, most) = (smallest(&loads), largest(&loads));
        let rail = &rails[least];
        let threshold = bytes as f64 / 16.0 * rail.share() * 1e12 / rail.bandwidth as f64;
        if loads[most] - loads[least] >= threshold {
            order.sort_by(|a, b| load(a).total_cmp(&load(b)));
        }
        let lane = Lane::along(kind, bytes, &order);
        // Both passes of an all-reduce load the rails alike: the first is counted (algorithm 1, line 7).
        for stage in lane.stages(rails).take(rails.len()) {
            loads[usize::from(stage.rail)] += stage.occupied_ps(rails);
        }
        lanes.push(lane);
    }
    lanes
}

/// Returns position of the least load, the first of equals.
fn smallest(loads: &[f64]) -> usize {
    (0..loads.len())
        .min_by(|&a, &b| loads[a].total_cmp(&loads[b]))
        .unwrap_or(0)
}

/// Returns position of the greatest load.
fn largest(loads: &[f64]) -> usize {
    (0..loads.len())
        .max_by(|&a, &b| loads[a].total_cmp(&loads[b]))
        .unwrap_or(0)
}

//! Which ranks may share a station.

use std::collections::HashMap;

use crate::id::narrow;
use crate::trace::{NodeKind, Trace};

/// Returns the station of each rank: the number of the first rank that takes part in the same calls.
///
/// Ranks of the same groups, of those that call anything, do. What sends has a station of its own.
pub(super) fn stations(trace: &Trace) -> Vec<u32> {
    let mut calls = vec![false; trace.groups.id.len()];
    for &group in &trace.calls.group {
        calls[group as usize] = true;
    }
    let mut groups_of: Vec<Vec<u32>> = vec![Vec::new(); trace.ranks()];
    for group in (0..narrow(calls.len())).filter(|&group| calls[group as usize]) {
        for &rank in trace.groups.ranks_of(group) {
            groups_of[rank as usize].push(group);
        }
    }
    let mut first: HashMap<Vec<u32>, u32> = HashMap::new();
    let mut stations = Vec::with_capacity(groups_of.len());
    for (rank, groups) in (0u32..).zip(groups_of) {
        let rows =
            trace.rank_first[rank as usize] as usize..trace.rank_first[rank as usize + 1] as usize;
        let sends = trace.kind[rows].contains(&NodeKind::Send);
        stations.push(match sends {
            true => rank,
            false => *first.entry(groups).or_insert(rank),
        });
    }
    stations
}

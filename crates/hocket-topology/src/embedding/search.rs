//! Search for a Hamiltonian cycle in the graph of NPU pairs that are joined by a link or by switches.

use std::cmp::Reverse;

use super::super::Topology;
use super::patch;
use crate::graph::ShortestPaths;
use crate::id::{DeviceId, LinkId, NpuId, narrow};
use crate::units::Seed;

/// Edges looked at by one depth-first search before giving up.
const BUDGET: usize = 1_000_000;
/// Covers tried for one bandwidth.
const COVERS: u64 = 3;

/// Returns a cycle of the given NPUs over pairs as wide as can be found; `None` where the search gives up.
///
/// Where no cycle can visit all (as on a chessboard with more squares of one colour), a few NPUs are
/// left out and then inserted beside a neighbour.
///
/// # Source
/// Depth-first search that goes to the neighbour with the fewest ways on (Warnsdorff's rule), and
/// where that gives up [`patch`].
pub(super) fn hamiltonian_cycle(topology: &Topology, npus: &[NpuId]) -> Option<Vec<NpuId>> {
    let pairs = widths(topology, npus);
    let mut levels: Vec<u64> = pairs.iter().flatten().map(|&(_, width)| width).collect();
    levels.sort_unstable_by(|a, b| b.cmp(a));
    levels.dedup();
    // A cover at one level is a cover at every lower one.
    let widest =
        levels.partition_point(|&level| patch::cycle_cover(&graph(&pairs, level)).is_none());
    let mut step = 0;
    while let Some(&level) = levels.get(widest + step) {
        let out = graph(&pairs, level);
        if let Some(order) = cycle_in(&out) {
            return Some(order.into_iter().map(|rank| npus[rank as usize]).collect());
        }
        step = 2 * step + 1;
    }
    let order = all_but_a_few(&graph(&pairs, *levels.last()?))?;
    Some(order.into_iter().map(|rank| npus[rank as usize]).collect())
}

/// Returns the pairs at least as wide as a level.
fn graph(pairs: &[Vec<(u32, u64)>], level: u64) -> Vec<Vec<u32>> {
    let wide = |ends: &Vec<(u32, u64)>| {
        let wide = ends.iter().filter(|&&(_, width)| width >= level);
        wide.map(|&(rank, _)| rank).collect()
    };
    pairs.iter().map(wide).collect()
}

/// Returns a Hamiltonian cycle, if one is found.
fn cycle_in(out: &[Vec<u32>]) -> Option<Vec<u32>> {
    match warnsdorff(out) {
        Outcome::Found(order) => Some(order),
        Outcome::Impossible => None,
        Outcome::GaveUp => patched(out),
    }
}

/// How a depth-first search ended.
enum Outcome {
    Found(Vec<u32>),
    Impossible,
    GaveUp,
}

/// Returns a cycle patched together from one of several covers.
fn patched(out: &[Vec<u32>]) -> Option<Vec<u32>> {
    let mut shuffled = out.to_vec();
    (0..COVERS).find_map(|round| {
        let mut seed = Seed(round);
        for ends in &mut shuffled {
            for i in (1..ends.len()).rev() {
                ends.swap(i, seed.below(i + 1));
            }
        }
        patch::merged(out, patch::cycle_cover(&shuffled)?)
    })
}

/// Returns a cycle of as many ranks as a cover can have, and the others after a neighbour each.
fn all_but_a_few(out: &[Vec<u32>]) -> Option<Vec<u32>> {
    let mut kept: Vec<u32> = (0..narrow(out.len())).collect();
    let mut left_out: Vec<u32> = Vec::new();
    let among = |kept: &[u32]| -> Vec<Vec<u32>> {
        let own = |&rank: &u32| {
            let ends = out[rank as usize].iter();
            ends.filter_map(|end| kept.binary_search(end).ok())
                .map(narrow)
                .collect()
        };
        kept.iter().map(own).collect()
    };
    let graph = loop {
        let graph = among(&kept);
        let Some(stuck) = patch::uncovered(&graph) else {
            break graph;
        };
        left_out.push(kept.remove(stuck));
        if kept.len() < 3 || left_out.len() > 2 + out.len() / 32 {
            return None;
        }
    };
    let order = cycle_in(&graph)?;
    let mut order: Vec<u32> = order.into_iter().map(|rank| kept[rank as usize]).collect();
    for rank in left_out {
        let joins = |&at: &usize| out[order[at] as usize].binary_search(&rank).is_ok();
        let at = (0..order.len()).find(joins)?;
        order.insert(at + 1, rank);
    }
    Some(order)
}

/// For each rank the ranks that it reaches by a link or through switches alone, with the bandwidth of
/// the widest such way, lowest rank first.
fn widths(topology: &Topology, npus: &[NpuId]) -> Vec<Vec<(u32, u64)>> {
    let mut ranks = vec![u32::MAX; topology.device_count()];
    for (rank, npu) in npus.iter().enumerate() {
        ranks[npu.index()] = narrow(rank);
    }
    // The widest way is the shortest one where less width is a higher cost.
    let mut paths = ShortestPaths::new(Reverse(0u64), ());
    npus.iter()
        .map(|&npu| {
            let arc = |&id: &LinkId| (topology.link(id).dst.0, id);
            let passes_on = |device: u32| device == npu.0 || !topology.is_npu(DeviceId(device));
            let mut ends = Vec::new();
            paths.until(
                topology.device_count(),
                [(npu.0, Reverse(u64::MAX))],
                |device| {
                    let links = topology.out_links(DeviceId(device)).iter();
                    links.map(arc).filter(move |_| passes_on(device))
                },
                |Reverse(through), id, _| {
                    let link = topology.link(id);
                    let limit = topology.device(link.dst).limit.unwrap_or(link.bandwidth);
                    let wide = through.min(link.bandwidth.min(limit).bytes_per_second());
                    Some((Reverse(wide), ()))
                },
                |device, Reverse(wide)| {
                    let rank = ranks[device as usize];
                    if device != npu.0 && rank != u32::MAX {
                        ends.push((rank, wide));
                    }
                    false
                },
            );
            ends.sort_unstable();
            ends
        })
        .collect()
}

/// Depth-first search for a Hamiltonian cycle from rank 0.
fn warnsdorff(out: &[Vec<u32>]) -> Outcome {
    let n = out.len();
    let mut into: Vec<Vec<u32>> = vec![Vec::new(); n];
    for (rank, ends) in out.iter().enumerate() {
        ends.iter()
            .for_each(|&end| into[end as usize].push(narrow(rank)));
    }
    let mut ways: Vec<usize> = out.iter().map(Vec::len).collect();
    let mut visited = vec![false; n];
    let mut budget = BUDGET;
    let mut path = vec![0u32];
    let mut choices = vec![Vec::new()];
    visited[0] = true;
    into[0].iter().for_each(|&rank| ways[rank as usize] -= 1);
    choices[0] = ordered_choices(out, &visited, &ways, 0);
    while let Some(top) = choices.last_mut() {
        let here = path[path.len() - 1];
        if path.len() == n && out[here as usize].binary_search(&0).is_ok() {
            return Outcome::Found(path);
        }
        let Some(next) = top.pop() else {
            choices.pop();
            path.pop();
            visited[here as usize] = false;
            into[here as usize]
                .iter()
                .for_each(|&rank| ways[rank as usize] += 1);
            continue;
        };
        let work = into[next as usize].len() + out[next as usize].len() + 1;
        if work > budget {
            return Outcome::GaveUp;
        }
        budget -= work;
        visited[next as usize] = true;
        into[next as usize]
            .iter()
            .for_each(|&rank| ways[rank as usize] -= 1);
        path.push(next);
        choices.push(ordered_choices(out, &visited, &ways, next));
    }
    Outcome::Impossible
}

/// Unvisited neighbours, the one with the fewest ways on last; of equals the lowest last.
fn ordered_choices(out: &[Vec<u32>], visited: &[bool], ways: &[usize], here: u32) -> Vec<u32> {
    let ends = out[here as usize].iter().copied();
    let mut free: Vec<u32> = ends.filter(|&end| !visited[end as usize]).collect();
    free.sort_unstable_by_key(|&end| std::cmp::Reverse((ways[end as usize], end)));
    free
}

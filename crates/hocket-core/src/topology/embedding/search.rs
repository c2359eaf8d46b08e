//! Search for a Hamiltonian cycle in the graph of NPU pairs that are joined by a link or by switches.

use std::collections::BinaryHeap;

use super::super::Topology;
use super::patch;
use crate::id::{DeviceId, NpuId};

/// Bandwidths tried, from the widest that could do.
const THRESHOLDS: usize = 6;
/// Edges looked at for one bandwidth before giving up.
const BUDGET: usize = 4_000_000;

/// A cycle of the given NPUs over pairs as wide as can be found; `None` where the search gives up.
///
/// # Source
/// Depth-first search that goes to the neighbour with the fewest ways on (Warnsdorff's rule), and
/// where that gives up [`patch`].
pub(super) fn hamiltonian_cycle(topology: &Topology, npus: &[NpuId]) -> Option<Vec<NpuId>> {
    let pairs = widths(topology, npus);
    let mut levels: Vec<u64> = pairs.iter().flatten().map(|&(_, width)| width).collect();
    levels.sort_unstable_by(|a, b| b.cmp(a));
    levels.dedup();
    let highest = highest_level(&pairs);
    let candidates = levels.into_iter().filter(|&level| level <= highest);
    for level in candidates.take(THRESHOLDS) {
        let out: Vec<Vec<u32>> = pairs
            .iter()
            .map(|ends| {
                let wide = ends.iter().filter(|&&(_, width)| width >= level);
                wide.map(|&(rank, _)| rank).collect()
            })
            .collect();
        let Some(cover) = patch::cycle_cover(&out) else {
            continue;
        };
        let found = warnsdorff(&out).or_else(|| patch::merged(&out, cover));
        if let Some(order) = found {
            return Some(order.into_iter().map(|rank| npus[rank as usize]).collect());
        }
    }
    None
}

/// For each rank the ranks that it reaches by a link or through switches alone, with the bandwidth of
/// the widest such way, lowest rank first.
fn widths(topology: &Topology, npus: &[NpuId]) -> Vec<Vec<(u32, u64)>> {
    let mut ranks = vec![u32::MAX; topology.device_count()];
    for (rank, npu) in npus.iter().enumerate() {
        ranks[npu.index()] = rank as u32;
    }
    let mut width = vec![0u64; topology.device_count()];
    npus.iter()
        .map(|&npu| {
            let mut reached: Vec<DeviceId> = Vec::new();
            let mut queue = BinaryHeap::from([(u64::MAX, npu.device())]);
            while let Some((through, device)) = queue.pop() {
                if device != npu.device()
                    && (through < width[device.index()] || topology.is_npu(device))
                {
                    continue;
                }
                for &id in topology.out_links(device) {
                    let link = topology.link(id);
                    let limit = topology.device(link.dst).limit.unwrap_or(link.bandwidth);
                    let wide = through.min(link.bandwidth.min(limit).bytes_per_second());
                    let best = &mut width[link.dst.index()];
                    if link.dst != npu.device() && wide > *best {
                        if *best == 0 {
                            reached.push(link.dst);
                        }
                        *best = wide;
                        queue.push((wide, link.dst));
                    }
                }
            }
            reached.sort_unstable();
            let mut ends = Vec::new();
            for device in reached {
                let wide = std::mem::take(&mut width[device.index()]);
                if ranks[device.index()] != u32::MAX {
                    ends.push((ranks[device.index()], wide));
                }
            }
            ends.sort_unstable();
            ends
        })
        .collect()
}

/// The widest bandwidth at which every rank can still send to one and receive from one.
fn highest_level(pairs: &[Vec<(u32, u64)>]) -> u64 {
    let mut receive = vec![0u64; pairs.len()];
    let mut send = vec![0u64; pairs.len()];
    for (rank, ends) in pairs.iter().enumerate() {
        for &(end, width) in ends {
            send[rank] = send[rank].max(width);
            receive[end as usize] = receive[end as usize].max(width);
        }
    }
    send.into_iter().chain(receive).min().unwrap_or(0)
}

/// Depth-first search for a Hamiltonian cycle from rank 0.
fn warnsdorff(out: &[Vec<u32>]) -> Option<Vec<u32>> {
    let n = out.len();
    let mut into: Vec<Vec<u32>> = vec![Vec::new(); n];
    for (rank, ends) in out.iter().enumerate() {
        ends.iter()
            .for_each(|&end| into[end as usize].push(rank as u32));
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
            return Some(path);
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
        budget = budget.checked_sub(work)?;
        visited[next as usize] = true;
        into[next as usize]
            .iter()
            .for_each(|&rank| ways[rank as usize] -= 1);
        path.push(next);
        choices.push(ordered_choices(out, &visited, &ways, next));
    }
    None
}

/// Unvisited neighbours, the one with the fewest ways on last; of equals the lowest last.
fn ordered_choices(out: &[Vec<u32>], visited: &[bool], ways: &[usize], here: u32) -> Vec<u32> {
    let ends = out[here as usize].iter().copied();
    let mut free: Vec<u32> = ends.filter(|&end| !visited[end as usize]).collect();
    free.sort_unstable_by_key(|&end| std::cmp::Reverse((ways[end as usize], end)));
    free
}

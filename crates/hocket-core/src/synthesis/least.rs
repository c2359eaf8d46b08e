//! The least time that any timetable takes, by what each NPU must receive.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::network::{Network, Timing};
use super::spread::{Spread, Wanted};

/// NPUs up to which distances count; beyond, only how much each must receive.
const NPU_LIMIT: usize = 256;

/// A lower bound on the end of any timetable on this network, in picoseconds: each NPU gets the chunks
/// it lacks one at a time over each edge, none before it can have come the shortest way.
///
/// Edges take whole chunks, so that this may be above the bounds of [`crate::bound`], which cut data in
/// any way; it holds for this network, as unwound, and these chunks.
///
/// # Complexity
/// O(NPUs x (edges log NPUs + chunks log chunks)) up to 256 NPUs, O(edges log chunks) beyond.
pub(super) fn least(network: &Network, spread: &Spread, timings: &[Timing]) -> u64 {
    let npus = network.npus();
    let sizes = spread.sizes.len();
    let cheapest = |edge: u32| {
        let range = edge as usize * sizes..(edge as usize + 1) * sizes;
        let all = &timings[range];
        let delay = all.iter().map(|timing| timing.delay).min().unwrap_or(0);
        let occupied = all.iter().map(|timing| timing.occupied).min().unwrap_or(1);
        (delay, occupied)
    };
    let mut wants: Vec<Vec<u32>> = vec![Vec::new(); if npus <= NPU_LIMIT { npus } else { 0 }];
    let mut counts = vec![0usize; npus];
    match &spread.wanted {
        Wanted::All => {
            counts.fill(spread.chunks());
            spread
                .holders
                .iter()
                .for_each(|&(npu, _)| counts[npu as usize] -= 1);
            spread
                .others
                .iter()
                .for_each(|&(_, npu)| counts[npu as usize] -= 1);
            for (npu, wants) in wants.iter_mut().enumerate() {
                wants.extend(
                    (0..)
                        .zip(&spread.holders)
                        .filter_map(|(chunk, &(holder, _))| {
                            (holder as usize != npu).then_some(chunk)
                        }),
                );
            }
        }
        Wanted::Listed(lists) => {
            for (chunk, list) in (0..).zip(lists.iter()) {
                for &npu in list {
                    counts[npu as usize] += 1;
                    if let Some(wants) = wants.get_mut(npu as usize) {
                        wants.push(chunk);
                    }
                }
            }
        }
    }
    let mut delays = (0..network.edges().len() as u32).map(|edge| cheapest(edge).0);
    let first = delays.next();
    let even = first.filter(|&first| delays.all(|delay| delay == first));
    let many_holders = !spread.others.is_empty();
    let mut far: Vec<Option<Vec<u64>>> = vec![None; npus];
    let mut most = 0;
    for npu in 0..npus {
        if counts[npu] == 0 {
            continue;
        }
        let mut arrivals = vec![(0, counts[npu] as u64)];
        if !many_holders && let Some(wants) = wants.get(npu) {
            let mut times: Vec<u64> = wants
                .iter()
                .map(|&chunk| {
                    let (holder, from) = spread.holders[chunk as usize];
                    let far = far[holder as usize].get_or_insert_with(|| match even {
                        Some(delay) => even_distances(network, holder, delay),
                        None => distances(network, holder, &cheapest),
                    });
                    from.saturating_add(far[npu])
                })
                .collect();
            times.sort_unstable();
            let runs = times.chunk_by(|a, b| a == b);
            arrivals = runs.map(|run| (run[0], run.len() as u64)).collect();
        }
        let edges: Vec<(u64, u64)> = network.in_edges(npu).iter().map(|&e| cheapest(e)).collect();
        most = most.max(earliest_end(&edges, &arrivals));
    }
    most
}

/// When the last of chunks that can come at `arrivals` (times, ascending, and how many), has come over edges
/// that take (delay, occupied) each: for every time, what comes later must find room after it.
fn earliest_end(edges: &[(u64, u64)], arrivals: &[(u64, u64)]) -> u64 {
    let mut most = 0;
    let mut count: u64 = arrivals.iter().map(|&(_, count)| count).sum();
    for &(from, here) in arrivals {
        let room = |end: u64| -> u64 {
            let arrivals = |&(delay, occupied): &(u64, u64)| {
                let start = delay.max(from);
                if end < start {
                    0
                } else {
                    (end - start) / occupied + 1
                }
            };
            edges.iter().map(arrivals).sum()
        };
        if room(most) < count {
            let (mut low, mut high) = (most, most.max(from).max(1));
            while room(high) < count {
                low = high;
                match high.checked_mul(2) {
                    Some(twice) => high = twice,
                    None => return u64::MAX,
                }
            }
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if room(middle) < count {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            most = high;
        }
        count -= here;
    }
    most
}

fn distances(network: &Network, from: u32, cheapest: &dyn Fn(u32) -> (u64, u64)) -> Vec<u64> {
    let mut far = vec![u64::MAX; network.npus()];
    far[from as usize] = 0;
    let mut queue = BinaryHeap::from([Reverse((0, from))]);
    while let Some(Reverse((length, npu))) = queue.pop() {
        if length > far[npu as usize] {
            continue;
        }
        for &edge in network.out_edges(npu as usize) {
            let dst = network.edges()[edge as usize].dst.0;
            let found = length + cheapest(edge).0;
            if found < far[dst as usize] {
                far[dst as usize] = found;
                queue.push(Reverse((found, dst)));
            }
        }
    }
    far
}

/// Distances where every edge takes the same time.
fn even_distances(network: &Network, from: u32, delay: u64) -> Vec<u64> {
    let mut far = vec![u64::MAX; network.npus()];
    far[from as usize] = 0;
    let mut queue = VecDeque::from([from]);
    while let Some(npu) = queue.pop_front() {
        let found = far[npu as usize] + delay;
        for &edge in network.out_edges(npu as usize) {
            let dst = network.edges()[edge as usize].dst.0;
            if far[dst as usize] == u64::MAX {
                far[dst as usize] = found;
                queue.push_back(dst);
            }
        }
    }
    far
}

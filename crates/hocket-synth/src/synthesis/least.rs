//! The least time that any timetable takes, by what each NPU must receive.

use std::collections::VecDeque;

use super::delivery::{Delivery, Wanted};
use super::network::{Timing, UnwoundNetwork};
use crate::graph::ShortestPaths;
use crate::id::narrow;

/// NPUs of which distances count, in networks of that many: all. Of larger ones those with the fewest edges in, at
/// most as many; of the others only how much each must receive.
const NPU_LIMIT: usize = 256;
/// Edges and chunks that may be looked at for them.
const EFFORT: usize = 1_000_000;

/// Returns a lower bound on the end of any timetable on this network, in picoseconds: each NPU gets the chunks it lacks
/// one at a time over each edge, none before it can have come the shortest way.
///
/// Edges take whole chunks, so that this may be above the bounds of [`crate::bound`], which cut data in
/// any way. It holds for this network, as unwound, and these chunks.
///
/// # Complexity
/// O(n (edges log NPUs + chunks log chunks)) with n = NPUs, at most 256 and fewer in large networks; and O(edges log chunks).
pub(super) fn least(network: &UnwoundNetwork, spread: &Delivery, timings: &[Timing]) -> u64 {
    let npus = network.npus();
    let sizes = spread.sizes.len();
    let cheapest = |edge: u32| {
        let range = edge as usize * sizes..(edge as usize + 1) * sizes;
        let all = &timings[range];
        let delay = all.iter().map(|timing| timing.delay).min().unwrap_or(0);
        let occupied = all.iter().map(|timing| timing.occupied).min().unwrap_or(1);
        (delay, occupied)
    };
    let mut counts = vec![0usize; npus];
    match &spread.wanted {
        Wanted::All => {
            counts.fill(spread.chunks());
            let holders = spread.holders.iter().map(|&(npu, _)| npu);
            let others = spread.others.iter().map(|&(_, npu)| npu);
            holders
                .chain(others)
                .for_each(|npu| counts[npu as usize] -= 1);
        }
        Wanted::Listed(lists) => lists
            .iter()
            .flatten()
            .for_each(|&npu| counts[npu as usize] += 1),
    }
    let mut delays = (0..narrow(network.edges().len())).map(|edge| cheapest(edge).0);
    let first = delays.next();
    let even = first.filter(|&first| delays.all(|delay| delay == first));
    let mut few_in: Vec<u32> = (0..narrow(npus))
        .filter(|&npu| counts[npu as usize] > 0)
        .collect();
    few_in.sort_by_key(|&npu| network.in_edges(npu as usize).len());
    let affordable = EFFORT / (network.edges().len() + spread.chunks()).max(1);
    few_in.truncate(match spread.others.is_empty() {
        true if npus <= NPU_LIMIT => NPU_LIMIT,
        true => affordable.clamp(8, NPU_LIMIT),
        false => 0,
    });
    let mut place = vec![usize::MAX; npus];
    (0..)
        .zip(&few_in)
        .for_each(|(at, &npu)| place[npu as usize] = at);
    let mut wants: Vec<Vec<u32>> = vec![Vec::new(); few_in.len()];
    if let Wanted::Listed(lists) = &spread.wanted {
        for (chunk, list) in (0..).zip(lists.iter()) {
            for &npu in list {
                if let Some(wants) = wants.get_mut(place[npu as usize]) {
                    wants.push(chunk);
                }
            }
        }
    }
    let mut paths = ShortestPaths::new(u64::MAX, ());
    let mut most = 0;
    for npu in 0..npus {
        if counts[npu] == 0 {
            continue;
        }
        let mut arrivals = vec![(0, counts[npu] as u64)];
        if let Some(wants) = wants.get(place[npu]) {
            let far = match even {
                Some(delay) => &even_distances(network, narrow(npu), delay),
                None => distances(&mut paths, network, narrow(npu), |edge| cheapest(edge).0),
            };
            let time = |&(holder, from): &(u32, u64)| from.saturating_add(far[holder as usize]);
            let mut times: Vec<u64> = match &spread.wanted {
                Wanted::All => {
                    let others = spread
                        .holders
                        .iter()
                        .filter(|holder| holder.0 as usize != npu);
                    others.map(time).collect()
                }
                Wanted::Listed(_) => {
                    let holders = wants.iter().map(|&chunk| &spread.holders[chunk as usize]);
                    holders.map(time).collect()
                }
            };
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

/// Distances to an NPU.
fn distances<'a>(
    paths: &'a mut ShortestPaths<u64>,
    network: &UnwoundNetwork,
    to: u32,
    delay: impl Fn(u32) -> u64,
) -> &'a [u64] {
    let arc = |&edge: &u32| (network.edges()[edge as usize].src.0, edge);
    paths.run(
        network.npus(),
        [(to, 0)],
        |npu| network.in_edges(npu as usize).iter().map(arc),
        |length, edge, _| Some((length + delay(edge), ())),
    );
    paths.costs()
}

/// Distances to an NPU where every edge takes the same time.
fn even_distances(network: &UnwoundNetwork, to: u32, delay: u64) -> Vec<u64> {
    let mut far = vec![u64::MAX; network.npus()];
    far[to as usize] = 0;
    let mut queue = VecDeque::from([to]);
    while let Some(npu) = queue.pop_front() {
        let found = far[npu as usize] + delay;
        for &edge in network.in_edges(npu as usize) {
            let src = network.edges()[edge as usize].src.0;
            if far[src as usize] == u64::MAX {
                far[src as usize] = found;
                queue.push_back(src);
            }
        }
    }
    far
}

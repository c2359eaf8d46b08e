//! A travelling salesman's tour over the times between NPUs: nearest neighbour, then local moves.

use super::super::Topology;
use super::super::shortest::RouteTree;
use super::estimate::MESSAGE;
use crate::id::NpuId;

/// Most NPUs, and most NPUs times links, for which all times between them are found.
const LARGEST: (usize, usize) = (2048, 1 << 25);
/// Neighbours tried for each NPU.
const NEAR: usize = 8;
/// Rounds over all NPUs.
const ROUNDS: usize = 20;

/// Returns whether the times between all NPUs are found soon.
pub(super) fn is_cheap(topology: &Topology, npus: &[NpuId]) -> bool {
    npus.len() <= LARGEST.0 && npus.len() * topology.links().len() <= LARGEST.1
}

/// Returns a short cycle: from the nearest-neighbour tour, moves of a single NPU and reversals of a stretch (2-opt) as
/// long as they help.
pub(super) fn tour(topology: &Topology, npus: &[NpuId]) -> Vec<NpuId> {
    let times = Times::between(topology, npus);
    let mut order = nearest(&times);
    let near = times.nearest_lists();
    let mut position = vec![0usize; order.len()];
    for _ in 0..ROUNDS {
        let reversed =
            times.symmetric && reverse_stretches(&times, &near, &mut order, &mut position);
        let moved = move_singles(&times, &near, &mut order, &mut position);
        if !reversed && !moved {
            break;
        }
    }
    order.into_iter().map(|rank| npus[rank]).collect()
}

/// From the first NPU always on to the nearest one left.
pub(super) fn nearest_path(topology: &Topology, npus: &[NpuId]) -> Vec<NpuId> {
    let times = Times::between(topology, npus);
    nearest(&times).into_iter().map(|rank| npus[rank]).collect()
}

/// Times in picoseconds between ranks, row by source.
struct Times {
    n: usize,
    ps: Vec<u64>,
    symmetric: bool,
}

impl Times {
    fn between(topology: &Topology, npus: &[NpuId]) -> Self {
        let n = npus.len();
        let mut ps = vec![0; n * n];
        for (j, dst) in npus.iter().enumerate() {
            let tree = RouteTree::to(topology, dst.device(), MESSAGE, None);
            for (i, src) in npus.iter().enumerate() {
                // Far, but small enough to add up.
                let far = u64::MAX >> 16;
                ps[i * n + j] = tree
                    .time(src.device())
                    .map_or(far, |time| time.as_ps().min(far));
            }
        }
        let symmetric = (0..n).all(|i| (0..i).all(|j| ps[i * n + j] == ps[j * n + i]));
        Self { n, ps, symmetric }
    }

    fn get(&self, src: usize, dst: usize) -> u64 {
        self.ps[src * self.n + dst]
    }

    fn nearest_lists(&self) -> Vec<Vec<usize>> {
        let near = NEAR.min(self.n - 1);
        (0..self.n)
            .map(|i| {
                let mut others: Vec<usize> = (0..self.n).filter(|&j| j != i).collect();
                let key = |&j: &usize| (self.get(i, j), j);
                others.select_nth_unstable_by_key(near - 1, key);
                others.truncate(near);
                others.sort_unstable_by_key(key);
                others
            })
            .collect()
    }
}

fn nearest(times: &Times) -> Vec<usize> {
    let mut left: Vec<usize> = (1..times.n).collect();
    let mut order = vec![0];
    let mut here = 0;
    while !left.is_empty() {
        let key = |&at: &usize| (times.get(here, left[at]), left[at]);
        let at = (0..left.len()).min_by_key(key).unwrap_or(0);
        here = left.swap_remove(at);
        order.push(here);
    }
    order
}

fn note_positions(order: &[usize], position: &mut [usize]) {
    for (i, &rank) in order.iter().enumerate() {
        position[rank] = i;
    }
}

/// One round of 2-opt; whether any move helped. Times are symmetric.
fn reverse_stretches(
    times: &Times,
    near: &[Vec<usize>],
    order: &mut [usize],
    position: &mut [usize],
) -> bool {
    let n = order.len();
    let mut any = false;
    note_positions(order, position);
    for a in 0..n {
        for &c in &near[a] {
            let b = order[(position[a] + 1) % n];
            let d = order[(position[c] + 1) % n];
            if times.get(a, c) >= times.get(a, b) {
                break;
            }
            let (before, after) = (
                times.get(a, b) + times.get(c, d),
                times.get(a, c) + times.get(b, d),
            );
            if c == b || d == a || after >= before {
                continue;
            }
            let (i, j) = (
                position[a].min(position[c]) + 1,
                position[a].max(position[c]),
            );
            order[i..=j].reverse();
            note_positions(order, position);
            any = true;
        }
    }
    any
}

/// One round of moving one NPU behind one of its near ones; whether any move helped.
fn move_singles(
    times: &Times,
    near: &[Vec<usize>],
    order: &mut Vec<usize>,
    position: &mut [usize],
) -> bool {
    let n = order.len();
    let mut any = false;
    note_positions(order, position);
    for rank in 0..n {
        for &to in &near[rank] {
            let at = position[rank];
            let (before, after) = (order[(at + n - 1) % n], order[(at + 1) % n]);
            let follower = order[(position[to] + 1) % n];
            if to == before || follower == rank || to == rank {
                continue;
            }
            let old = times.get(before, rank) + times.get(rank, after) + times.get(to, follower);
            let new = times.get(before, after) + times.get(to, rank) + times.get(rank, follower);
            if new < old {
                order.remove(at);
                let behind = position[to] + 1 - usize::from(position[to] > at);
                order.insert(behind, rank);
                note_positions(order, position);
                any = true;
            }
        }
    }
    any
}

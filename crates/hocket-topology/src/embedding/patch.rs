//! Hamiltonian cycles of large sparse graphs: cover all ranks by cycles, then merge the cycles.

use crate::id::narrow;
use crate::units::Seed;

/// Ranks and edges looked at before giving up.
const BUDGET: usize = 3_000_000;
/// Most rounds of merging.
const ROUNDS: usize = 2_000;
/// Random exchanges between two rounds of merging.
const KICKS: usize = 12;

/// One successor for each rank, each rank once: a perfect matching of ranks to successors. `None`
/// where there is none, and so no Hamiltonian cycle either.
///
/// # Source
/// Kuhn's augmenting paths, with an explicit stack.
pub(super) fn cycle_cover(out: &[Vec<u32>]) -> Option<Vec<u32>> {
    cover(out).ok()
}

/// Returns a rank that stands in the way of a cover; `None` where there is a cover.
pub(super) fn uncovered(out: &[Vec<u32>]) -> Option<usize> {
    cover(out).err()
}

/// Returns the successors, or the first rank for which there is none.
fn cover(out: &[Vec<u32>]) -> Result<Vec<u32>, usize> {
    const FREE: u32 = u32::MAX;
    let n = out.len();
    let mut owner = vec![FREE; n];
    for (rank, ends) in out.iter().enumerate() {
        if let Some(&end) = ends.iter().find(|&&end| owner[end as usize] == FREE) {
            owner[end as usize] = narrow(rank);
        }
    }
    let mut served = vec![false; n];
    owner
        .iter()
        .filter(|&&rank| rank != FREE)
        .for_each(|&rank| served[rank as usize] = true);
    let mut seen = vec![usize::MAX; n];
    for rank in (0..n).filter(|&rank| !served[rank]) {
        let mut stack = vec![(narrow(rank), 0usize)];
        while let Some((here, next)) = stack.last_mut() {
            let Some(&end) = out[*here as usize].get(*next) else {
                stack.pop();
                continue;
            };
            *next += 1;
            if std::mem::replace(&mut seen[end as usize], rank) == rank {
                continue;
            }
            match owner[end as usize] {
                FREE => break,
                other => stack.push((other, 0)),
            }
        }
        if stack.is_empty() {
            return Err(rank);
        }
        for (here, next) in stack {
            owner[out[here as usize][next - 1] as usize] = here;
        }
    }
    let mut successor = vec![0; n];
    for (end, &rank) in owner.iter().enumerate() {
        successor[rank as usize] = narrow(end);
    }
    Ok(successor)
}

/// Merges the cycles of a cover by exchanging the successors of two ranks of different cycles, one of
/// which is turned round first where that helps and the graph is undirected. Where no exchange
/// merges any, a few random ones split cycles again, as often as the budget allows.
///
/// # Source
/// Karp, A patching algorithm for the nonsymmetric traveling-salesman problem, 1979.
pub(super) fn merged(out: &[Vec<u32>], successor: Vec<u32>) -> Option<Vec<u32>> {
    let n = out.len();
    let edges: usize = out.iter().map(Vec::len).sum();
    let mut seed = Seed(n as u64);
    let mut patches = Patches::new(out, successor);
    let mut count = patches.merge();
    for _ in 0..ROUNDS.min(BUDGET / (edges + n)) {
        if count == 1 {
            break;
        }
        let before = patches.successor.clone();
        for _ in 0..KICKS {
            patches.exchange_at(seed.below(n), &mut seed);
        }
        let found = patches.merge();
        if found <= count {
            count = found;
        } else {
            patches.successor = before;
            patches.note_predecessors();
        }
    }
    (count == 1).then(|| patches.cycle_from_0())
}

/// A cover whose cycles are being merged.
struct Patches<'a> {
    out: &'a [Vec<u32>],
    undirected: bool,
    successor: Vec<u32>,
    predecessor: Vec<u32>,
    cycle: Vec<u32>,
}

impl<'a> Patches<'a> {
    fn new(out: &'a [Vec<u32>], successor: Vec<u32>) -> Self {
        let n = out.len();
        let mut patches = Self {
            out,
            undirected: false,
            successor,
            predecessor: vec![0; n],
            cycle: vec![0; n],
        };
        patches.undirected =
            (0..narrow(n)).all(|rank| out[rank as usize].iter().all(|&end| patches.has(end, rank)));
        patches
    }

    fn has(&self, from: u32, to: u32) -> bool {
        self.out[from as usize].binary_search(&to).is_ok()
    }

    fn note_predecessors(&mut self) {
        for (rank, &end) in self.successor.iter().enumerate() {
            self.predecessor[end as usize] = narrow(rank);
        }
    }

    /// Merges while it can; how many cycles are left.
    fn merge(&mut self) -> usize {
        loop {
            let count = label(&self.successor, &mut self.cycle);
            self.note_predecessors();
            if count == 1 || !self.merge_once(count) {
                return count;
            }
        }
    }

    /// Merges each cycle with at most one other; whether any did.
    fn merge_once(&mut self, count: usize) -> bool {
        let mut changed = vec![false; count];
        for rank in 0..self.out.len() {
            for &end in &self.out[rank] {
                let (own, its) = (self.cycle[rank] as usize, self.cycle[end as usize] as usize);
                if own == its || changed[own] || changed[its] {
                    continue;
                }
                let old = self.successor[rank];
                let (before, after) =
                    (self.predecessor[end as usize], self.successor[end as usize]);
                if self.has(before, old) {
                    self.successor[before as usize] = old;
                } else if self.undirected && self.has(after, old) {
                    turn_round(&mut self.successor, end);
                    self.successor[after as usize] = old;
                } else {
                    continue;
                }
                self.successor[rank] = end;
                (changed[own], changed[its]) = (true, true);
            }
        }
        changed.contains(&true)
    }

    /// Replaces a rank's successor, if the one that loses it can have the old one.
    fn exchange_at(&mut self, rank: usize, seed: &mut Seed) {
        let ends = &self.out[rank];
        let end = ends[seed.below(ends.len())];
        let (old, before) = (self.successor[rank], self.predecessor[end as usize]);
        if end != old && before != old && self.has(before, old) {
            (self.successor[rank], self.successor[before as usize]) = (end, old);
            (
                self.predecessor[end as usize],
                self.predecessor[old as usize],
            ) = (narrow(rank), before);
        }
    }

    fn cycle_from_0(&self) -> Vec<u32> {
        let mut order = vec![0u32];
        while order.len() < self.out.len() {
            order.push(self.successor[order[order.len() - 1] as usize]);
        }
        order
    }
}

/// Reverses the cycle of a rank.
fn turn_round(successor: &mut [u32], start: u32) {
    let (mut last, mut here) = (start, successor[start as usize]);
    while here != start {
        let next = std::mem::replace(&mut successor[here as usize], last);
        (last, here) = (here, next);
    }
    successor[start as usize] = last;
}

/// Numbers the cycles; how many there are.
fn label(successor: &[u32], cycle: &mut [u32]) -> usize {
    cycle.fill(u32::MAX);
    let mut count = 0;
    for start in 0..successor.len() {
        if cycle[start] != u32::MAX {
            continue;
        }
        let mut rank = start;
        while cycle[rank] == u32::MAX {
            cycle[rank] = count;
            rank = successor[rank] as usize;
        }
        count += 1;
    }
    count as usize
}

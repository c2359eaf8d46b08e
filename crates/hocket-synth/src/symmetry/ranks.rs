//! Who may get data from whom, so that whatever is chosen is a tree.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::group::Symmetry;
use super::steps::Steps;
use crate::id::narrow;

/// Returns how far every element is from the first, in arcs of the cheapest tree; `u32::MAX` where no step leads.
///
/// The tree is grown by its cheapest arc at each time, of those of equal price the one that starts nearest the root.
/// Every arc then leads from a lower rank to a higher one, and trees whose arcs all do are no higher than that.
///
/// # Complexity
/// O(elements x steps x log).
///
/// # Source
/// Prim, Shortest connection networks and some generalizations, 1957: with prices that the group keeps, what is joined
/// at each price is a coset, so that no directed tree is cheaper.
pub(super) fn ranks(symmetry: &Symmetry, steps: &Steps, prices: &[f64]) -> Vec<u32> {
    let price = |profile: &Vec<u32>| profile.iter().map(|&orbit| prices[orbit as usize]).sum();
    let of_profiles: Vec<f64> = steps.profiles.iter().map(price).collect();
    let mut dearest = of_profiles.clone();
    dearest.sort_by(f64::total_cmp);
    // Prices that differ by rounding alone are one.
    dearest.dedup_by(|b, a| *b <= *a * (1.0 + 1e-9));
    let level = |profile: u32| {
        let price = of_profiles[profile as usize];
        narrow(dearest.partition_point(|&level| level * (1.0 + 1e-9) < price))
    };
    let mut order: Vec<(u32, u32)> = steps
        .steps
        .iter()
        .map(|step| (level(step.profile), step.by))
        .collect();
    order.sort_unstable();
    let mut rank = vec![u32::MAX; symmetry.len()];
    rank[0] = 0;
    let mut heap = BinaryHeap::new();
    let push = |heap: &mut BinaryHeap<_>, from: u32, rank: u32, next: usize| {
        if let Some(&(level, _)) = order.get(next) {
            heap.push(Reverse((level, rank, from, next)));
        }
    };
    push(&mut heap, 0, 0, 0);
    while let Some(Reverse((_, below, from, next))) = heap.pop() {
        push(&mut heap, from, below, next + 1);
        let to = symmetry.sum(from, order[next].1);
        if rank[to as usize] == u32::MAX {
            rank[to as usize] = below + 1;
            push(&mut heap, to, below + 1, 0);
        }
    }
    rank
}

/// For each element the profiles by which it can be reached from a lower rank, each with the number of the step from
/// the lowest one.
pub(super) fn entries(symmetry: &Symmetry, steps: &Steps, rank: &[u32]) -> Vec<Vec<(u32, u32)>> {
    let count = narrow(symmetry.len());
    let mut best: Vec<(u32, u32)> = vec![(u32::MAX, 0); steps.profiles.len()];
    let mut entries = Vec::with_capacity(symmetry.len());
    for to in 0..count {
        best.fill((u32::MAX, 0));
        for (number, step) in (0..).zip(&steps.steps) {
            let from = rank[symmetry.difference(to, step.by) as usize];
            let best = &mut best[step.profile as usize];
            if from < rank[to as usize] && from < best.0 {
                *best = (from, number);
            }
        }
        let found = (0..).zip(&best).filter(|(_, (from, _))| *from != u32::MAX);
        entries.push(found.map(|(profile, &(_, step))| (profile, step)).collect());
    }
    entries
}

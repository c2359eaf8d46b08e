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
    let mut left = rank.len() - 1;
    while left > 0
        && let Some(Reverse((_, below, from, next))) = heap.pop()
    {
        push(&mut heap, from, below, next + 1);
        let to = symmetry.sum(from, order[next].1);
        if rank[to as usize] == u32::MAX {
            rank[to as usize] = below + 1;
            left -= 1;
            push(&mut heap, to, below + 1, 0);
        }
    }
    rank
}

/// The steps of each profile: by how much each shifts, and its number.
pub(super) struct Shifts(Vec<(Vec<(u32, u32)>, bool)>);

impl Shifts {
    /// Sorts steps by profile, and finds which profiles shift by a whole subgroup, as those through one switch do.
    pub(super) fn new(symmetry: &Symmetry, steps: &Steps) -> Self {
        let mut of = vec![(Vec::new(), false); steps.profiles.len()];
        for (number, step) in (0..).zip(&steps.steps) {
            of[step.profile as usize].0.push((step.by, number));
        }
        for (shifts, is_group) in &mut of {
            *is_group = is_subgroup(symmetry, shifts);
        }
        Self(of)
    }

    /// Returns how many steps are looked at for all elements.
    pub(super) fn work(&self, symmetry: &Symmetry) -> u64 {
        let each = self.0.iter().map(|(shifts, is_group)| match is_group {
            true => 1,
            false => shifts.len() as u64,
        });
        each.sum::<u64>() * symmetry.len() as u64
    }
}

/// Whether shifts, with none, are closed: each makes the group of those before larger by its multiples.
fn is_subgroup(symmetry: &Symmetry, shifts: &[(u32, u32)]) -> bool {
    let mut is_shift = vec![false; symmetry.len()];
    shifts
        .iter()
        .for_each(|&(by, _)| is_shift[by as usize] = true);
    is_shift[0] = true;
    let mut is_in = vec![false; symmetry.len()];
    is_in[0] = true;
    let mut group = vec![0];
    for &(by, _) in shifts {
        let before = group.len();
        let mut multiple = by;
        while !is_in[multiple as usize] {
            for at in 0..before {
                let sum = symmetry.sum(group[at], multiple);
                if !is_shift[sum as usize] {
                    return false;
                }
                is_in[sum as usize] = true;
                group.push(sum);
            }
            multiple = symmetry.sum(multiple, by);
        }
    }
    true
}

/// For each element the profiles by which it can be reached from a lower rank, each with the number of the step from
/// the lowest one, the first of equals.
///
/// # Complexity
/// O(elements) for a profile that shifts by a subgroup, if few of a coset are of its lowest rank; O(elements x steps)
/// for others.
pub(super) fn entries(symmetry: &Symmetry, shifts: &Shifts, rank: &[u32]) -> Vec<Vec<(u32, u32)>> {
    let mut entries = vec![Vec::new(); symmetry.len()];
    for (profile, (shifts, is_group)) in (0..).zip(&shifts.0) {
        let mut enter = |to: u32, froms: &mut dyn Iterator<Item = (u32, u32)>| {
            let lower = froms.filter(|&(from, _)| from < rank[to as usize]);
            if let Some((_, number)) = lower.min() {
                entries[to as usize].push((profile, number));
            }
        };
        if !is_group {
            for to in 0..narrow(symmetry.len()) {
                let from = |&(by, number): &(u32, u32)| {
                    (rank[symmetry.difference(to, by) as usize], number)
                };
                enter(to, &mut shifts.iter().map(from));
            }
            continue;
        }
        let mut number_of = vec![u32::MAX; symmetry.len()];
        for &(by, number) in shifts {
            number_of[by as usize] = number;
        }
        let mut is_seen = vec![false; symmetry.len()];
        for first in 0..narrow(symmetry.len()) {
            if is_seen[first as usize] {
                continue;
            }
            let others = shifts.iter().map(|&(by, _)| symmetry.sum(first, by));
            let coset: Vec<u32> = std::iter::once(first).chain(others).collect();
            let ranks = coset.iter().map(|&element| rank[element as usize]);
            let least = ranks.min().expect("the first is in it");
            let lowest = coset.iter().copied();
            let lowest: Vec<u32> = lowest
                .filter(|&from| rank[from as usize] == least)
                .collect();
            for &to in &coset {
                is_seen[to as usize] = true;
                let by = |&from: &u32| symmetry.difference(to, from) as usize;
                let from = |from: &u32| (least, number_of[by(from)]);
                enter(to, &mut lowest.iter().map(from));
            }
        }
    }
    entries
}

//! Which way each NPU gets its data in each tree, so that the busiest orbit of links has least to do.

use std::collections::{BTreeMap, VecDeque};

use crate::id::narrow;

/// What is to be shared out: elements that can be reached by the same profiles count together.
pub(super) struct Balance<'a> {
    /// Orbits that each profile takes.
    profiles: &'a [Vec<u32>],
    /// How long a link of each orbit takes for a byte.
    costs: &'a [f64],
    /// The profiles of each pattern, and how many arcs of each are chosen.
    patterns: Vec<(Vec<u32>, Vec<u64>)>,
    uses: Vec<u64>,
}

/// Moves after which the shares stay as they are.
const MOST_MOVES: usize = 1 << 16;

impl<'a> Balance<'a> {
    /// Shares out `trees` arcs into each of the elements that `patterns` counts.
    pub(super) fn new(
        profiles: &'a [Vec<u32>],
        costs: &'a [f64],
        patterns: &BTreeMap<Vec<u32>, u64>,
        trees: u64,
    ) -> Self {
        let mut found = Self {
            profiles,
            costs,
            patterns: Vec::new(),
            uses: vec![0; costs.len()],
        };
        let mut ordered: Vec<(&Vec<u32>, u64)> = patterns
            .iter()
            .map(|(pattern, &count)| (pattern, count))
            .collect();
        ordered.sort_by_key(|(pattern, _)| pattern.len());
        for (pattern, count) in ordered {
            let mut shares = vec![0; pattern.len()];
            for _ in 0..count * trees {
                let after = |&i: &usize| found.after(pattern[i], &[]);
                let least = (0..pattern.len()).min_by(|a, b| after(a).total_cmp(&after(b)));
                let least = least.expect("each element can be reached");
                shares[least] += 1;
                found.count(pattern[least], 1);
            }
            found.patterns.push((pattern.clone(), shares));
        }
        for _ in 0..MOST_MOVES {
            if !found.relieve() {
                break;
            }
        }
        found
    }

    /// Returns how long the busiest link takes for a byte of every tree.
    pub(super) fn busiest(&self) -> f64 {
        self.busy().fold(0.0, f64::max)
    }

    /// Returns the same for a link of each orbit.
    pub(super) fn busy(&self) -> impl Iterator<Item = f64> {
        let each = self.uses.iter().zip(self.costs);
        each.map(|(&uses, cost)| uses as f64 * cost)
    }

    /// Returns how many arcs of each profile a pattern has.
    pub(super) fn shares(&self) -> BTreeMap<&Vec<u32>, &Vec<u64>> {
        self.patterns
            .iter()
            .map(|(pattern, shares)| (pattern, shares))
            .collect()
    }

    fn count(&mut self, profile: u32, more: i64) {
        for &orbit in &self.profiles[profile as usize] {
            let uses = &mut self.uses[orbit as usize];
            *uses = uses
                .checked_add_signed(more)
                .expect("as many are taken away as there are");
        }
    }

    /// Returns how busy the busiest orbit of a profile is with one arc more, when one of each of the orbits of `less`
    /// is gone.
    fn after(&self, profile: u32, less: &[u32]) -> f64 {
        let each = self.profiles[profile as usize].iter();
        let busy = each.map(|orbit| {
            let uses = self.uses[*orbit as usize] + 1 - u64::from(less.contains(orbit));
            uses as f64 * self.costs[*orbit as usize]
        });
        busy.fold(0.0, f64::max)
    }

    /// Takes an arc from the busiest orbit, by a chain of changes from one profile to another that ends where there is
    /// room; `false` where there is none.
    fn relieve(&mut self) -> bool {
        let most = self.busiest();
        let busy =
            |orbit: usize| self.uses[orbit] as f64 * self.costs[orbit] >= most * (1.0 - 1e-12);
        let Some(orbit) = (0..self.uses.len()).find(|&orbit| busy(orbit)) else {
            return false;
        };
        // How each profile was come to: from which, in which pattern.
        let mut via: Vec<Option<(u32, usize)>> = vec![None; self.profiles.len()];
        for start in (0..narrow(self.profiles.len()))
            .filter(|&start| self.profiles[start as usize].contains(&narrow(orbit)))
        {
            let mut queue = VecDeque::from([start]);
            via.fill(None);
            while let Some(from) = queue.pop_front() {
                for (p, (pattern, shares)) in self.patterns.iter().enumerate() {
                    let Some(at) = pattern.iter().position(|&profile| profile == from) else {
                        continue;
                    };
                    if shares[at] == 0 {
                        continue;
                    }
                    for &to in pattern.iter().filter(|&&to| to != start) {
                        if via[to as usize].is_none() && to != from {
                            via[to as usize] = Some((from, p));
                            queue.push_back(to);
                        }
                    }
                }
            }
            let less = &self.profiles[start as usize];
            let room = |&to: &u32| {
                let helps = !self.profiles[to as usize].contains(&narrow(orbit));
                via[to as usize].is_some() && helps && self.after(to, less) < most * (1.0 - 1e-12)
            };
            if let Some(end) = (0..narrow(self.profiles.len())).find(room) {
                self.shift(start, end, &via);
                return true;
            }
        }
        false
    }

    fn shift(&mut self, start: u32, end: u32, via: &[Option<(u32, usize)>]) {
        let mut at = end;
        while at != start {
            let (from, p) = via[at as usize].expect("the chain leads back to its start");
            let (pattern, shares) = &mut self.patterns[p];
            for (&profile, share) in pattern.iter().zip(shares) {
                *share += u64::from(profile == at);
                *share -= u64::from(profile == from);
            }
            at = from;
        }
        self.count(start, -1);
        self.count(end, 1);
    }
}

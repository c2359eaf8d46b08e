//! How many bytes each of many known trees carries, so that the fullest link sends for the least time: a linear program.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use microlp::{ComparisonOp, OptimizationDirection, Problem};

use super::{Known, Packer, Packing, Tree};
use crate::units::whole;

/// Trees with a smaller share of their commodity are left out: their pieces would be tiny.
const LEAST: f64 = 1e-3;
/// Trees times links up to which the program is solved.
const MOST_WORK: usize = 400_000;

impl Packer<'_> {
    /// Returns the best packing of known trees; `None` if the program is too large. Trees of mean depth count as if they took
    /// the share `low` of `seconds` longer: low trees are filled sooner.
    pub(crate) fn shared(&self, known: &Known, seconds: f64, low: f64) -> Option<Packing> {
        let trees = &known.trees;
        if trees.len() * self.capacity.len() > MOST_WORK {
            return None;
        }
        let mut rows: BTreeMap<u32, BTreeMap<usize, f64>> = BTreeMap::new();
        for (number, tree) in trees.iter().enumerate() {
            for arc in self.arcs(tree) {
                *rows.entry(arc).or_default().entry(number).or_default() += 1.0;
            }
        }
        let most = self.commodities.iter().map(|each| each.bytes).max()? as f64;
        let fast = self.capacity.iter().copied().fold(0.0, f64::max);
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let time = problem.add_var(1.0, (0.0, f64::INFINITY));
        let depths: Vec<f64> = trees
            .iter()
            .map(|tree| f64::from(self.depth(tree)))
            .collect();
        let mean = depths.iter().sum::<f64>() / depths.len().max(1) as f64;
        let all: f64 = self
            .commodities
            .iter()
            .map(|each| each.bytes as f64 / most)
            .sum();
        let dear = low * seconds * fast / most / (mean * all);
        let shares: Vec<_> = depths
            .iter()
            .map(|depth| problem.add_var(dear * depth, (0.0, f64::INFINITY)))
            .collect();
        let mut seen = HashSet::new();
        for (arc, row) in rows {
            let rate = self.capacity[arc as usize] / fast;
            let same: Vec<(usize, u64)> = row
                .iter()
                .map(|(&tree, uses)| (tree, uses.to_bits()))
                .collect();
            if !seen.insert((rate.to_bits(), same)) {
                continue; // as another says
            }
            let uses = row.into_iter().map(|(tree, uses)| (shares[tree], uses));
            let row: Vec<_> = uses.chain([(time, -rate)]).collect();
            problem.add_constraint(row, ComparisonOp::Le, 0.0);
        }
        for (number, commodity) in (0..).zip(self.commodities) {
            let own = trees.iter().zip(&shares);
            let own = own.filter(|(tree, _)| tree.commodity == number);
            let own: Vec<_> = own.map(|(_, &share)| (share, 1.0)).collect();
            problem.add_constraint(own, ComparisonOp::Eq, commodity.bytes as f64 / most);
        }
        let solved = problem.solve().ok()?.into_solution().ok()?;
        let mut found: Vec<(Rc<Tree>, f64)> = Vec::new();
        for (tree, &share) in trees.iter().zip(&shares) {
            let bytes = solved.var_value(share) * most;
            if bytes > LEAST * self.commodities[tree.commodity as usize].bytes as f64 {
                found.push((Rc::clone(tree), bytes));
            }
        }
        let mut carried = vec![0.0; self.commodities.len()];
        for (tree, bytes) in &found {
            carried[tree.commodity as usize] += bytes;
        }
        let mut loads = vec![0.0; self.capacity.len()];
        for (tree, bytes) in &mut found {
            let at = tree.commodity as usize;
            *bytes *= self.commodities[at].bytes as f64 / carried[at];
            self.load(&mut loads, tree, *bytes);
        }
        Some(Packing {
            seconds: self.seconds(&loads),
            trees: found,
        })
    }

    /// Returns the number of hops from the root of a tree to the farthest end; of one that sums and copies over the same
    /// links, half of those between the two ends farthest from each other.
    fn depth(&self, tree: &Tree) -> u32 {
        let mut longest = 0;
        let mut height = 0;
        for hops in [&tree.sums, &tree.copies] {
            let mut heights: HashMap<u32, u32> = HashMap::new();
            let mut across = 0;
            for hop in hops.iter().rev() {
                let below = heights.get(&hop.far).copied().unwrap_or(0) + 1;
                let here = heights.entry(hop.near).or_default();
                across = across.max(*here + below);
                *here = below.max(*here);
            }
            longest = longest.max(across);
            height += heights.get(&tree.root).copied().unwrap_or(0);
        }
        match self.is_both[tree.commodity as usize] {
            true => longest.div_ceil(2),
            false => height,
        }
    }
}

impl Packing {
    /// Returns the same trees, those with more than the `parts`th part of all bytes as several of about so much each.
    pub(crate) fn split(&self, parts: u64) -> Self {
        let all: f64 = self.trees.iter().map(|(_, bytes)| bytes).sum();
        let mut trees = Vec::new();
        for (tree, bytes) in &self.trees {
            let count = whole((bytes * parts as f64 / all).round()).max(1);
            trees.extend((0..count).map(|_| (Rc::clone(tree), bytes / count as f64)));
        }
        Self {
            trees,
            seconds: self.seconds,
        }
    }
}

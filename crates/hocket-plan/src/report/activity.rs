//! When each dimension of a product topology has something to do.

use super::ReportError;
use super::dimensions::{link_dimensions, wide};
use super::heat::single;
use crate::id::{DeviceId, LinkId, NpuId, TransferId, fit, narrow};
use crate::plan::Route;
use crate::simulate::Run;
use crate::units::Time;
use crate::verify::Verified;

/// How time is cut into bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bins {
    /// That many, equally long.
    Count(usize),
    /// Each that long; the last one ends with the run.
    Period(Time),
}

impl Bins {
    /// Returns how many bins a run of that time has.
    pub fn count(self, time: Time) -> usize {
        match self {
            Bins::Count(count) => count,
            Bins::Period(Time::ZERO) => 0,
            Bins::Period(period) => fit(time.as_ps().div_ceil(period.as_ps())),
        }
    }
}

/// Share of each time bin in which each dimension has activity, 0 to 1: in which at least one
/// transfer that takes a link of the dimension is between its start and its end. A row of bins for
/// each dimension of more than one NPU, in the topology's order. Times are exact, not sampled.
///
/// # Errors
/// [`ReportError::NoDimensions`].
///
/// # Complexity
/// O(transfers log transfers) and, for routes that are trees, O(trees x devices); memory as many
/// intervals as there are gaps, at most twice.
///
/// # Source
/// "Frontend activity rate" of Rashidi et al.: Themis, ISCA 2022, section 6.1, figure 9, with a
/// period of 100 us. There a chunk that waits for its turn in a dimension counts too.
pub fn activity(run: &Run, verified: &Verified, bins: Bins) -> Result<Vec<f32>, ReportError> {
    let mut passing = Passing::new(verified)?;
    let rows = wide(verified.topology()).count();
    let mut unions = vec![Union::default(); rows];
    for (i, (start, end)) in run.start.iter().zip(&run.end).enumerate() {
        let mut mask = passing.mask(narrow(i));
        while mask != 0 {
            unions[mask.trailing_zeros() as usize].add(start.as_ps(), end.as_ps());
            mask &= mask - 1;
        }
    }
    let count = bins.count(run.time);
    let mut shares = Vec::with_capacity(rows * count);
    for union in unions {
        shares.extend(union.shares(run.time, bins));
    }
    Ok(shares)
}

/// Which dimensions each transfer passes, as bits: position among those of more than one NPU, of
/// which there are 31 at most.
struct Passing<'a> {
    verified: &'a Verified,
    links: Vec<u32>,
    paths: Vec<u32>,
    /// From each device to the destination, for each tree that was asked about.
    trees: Vec<Vec<u32>>,
}

const UNKNOWN: u32 = u32::MAX;

impl<'a> Passing<'a> {
    fn new(verified: &'a Verified) -> Result<Self, ReportError> {
        let topology = verified.topology();
        let mut bits = vec![0; topology.dimensions().len()];
        for (row, (i, _)) in wide(topology).enumerate() {
            bits[i] = 1 << row;
        }
        let of_link = link_dimensions(topology)?.into_iter();
        let links: Vec<u32> = of_link
            .map(|of| of.map_or(0, |of| bits[of as usize]))
            .collect();
        let paths = verified.routes().paths().iter();
        let all = |path: &[LinkId]| path.iter().fold(0, |mask, link| mask | links[link.index()]);
        Ok(Self {
            verified,
            paths: paths.map(all).collect(),
            links,
            trees: Vec::new(),
        })
    }

    #[inline]
    fn mask(&mut self, transfer: u32) -> u32 {
        match self.verified.routes().route(TransferId(transfer)) {
            Route::Link(link) => self.links[link.index()],
            Route::Path(path) => self.paths[path as usize],
            Route::Tree(tree) => self.along_tree(tree, transfer as usize),
            Route::Spray(set) => {
                let plan = self.verified.plan();
                let i = transfer as usize;
                let ends = (NpuId(plan.src()[i]), NpuId(plan.dst()[i]));
                let equal = self.verified.routes().equal().into_iter();
                let paths = equal.flat_map(|equal| {
                    let paths = 0..equal.count(set);
                    paths.flat_map(move |path| equal.links(ends, set, path))
                });
                paths.fold(0, |mask, link| mask | self.links[link.index()])
            }
        }
    }

    fn along_tree(&mut self, tree: u32, transfer: usize) -> u32 {
        let (plan, topology) = (self.verified.plan(), self.verified.topology());
        if self.trees.len() <= tree as usize {
            self.trees.resize(tree as usize + 1, Vec::new());
        }
        let known = &mut self.trees[tree as usize];
        if known.is_empty() {
            known.resize(topology.device_count(), UNKNOWN);
            known[plan.dst()[transfer] as usize] = 0;
        }
        let mut device = DeviceId(plan.src()[transfer]);
        let mut way = Vec::new();
        while known[device.index()] == UNKNOWN {
            let link = self.verified.routes().next(tree, device);
            way.push((device, link));
            device = topology.link(link).dst;
        }
        let mut mask = known[device.index()];
        for (device, link) in way.into_iter().rev() {
            mask |= self.links[link.index()];
            known[device.index()] = mask;
        }
        mask
    }
}

/// A union of half-open intervals of time.
#[derive(Clone, Default)]
pub struct Union {
    spans: Vec<(u64, u64)>,
    /// Not yet among `spans`: transfers near each other in a plan are often under way together.
    last: (u64, u64),
}

impl Union {
    /// Adds the interval from `start` up to `end`.
    #[inline]
    pub fn add(&mut self, start: u64, end: u64) {
        if start <= self.last.1 && self.last.0 <= end {
            self.last = (self.last.0.min(start), self.last.1.max(end));
            return;
        }
        if self.spans.len() == self.spans.capacity() {
            self.merge();
            self.spans.reserve(self.spans.len());
        }
        self.spans.push(self.last);
        self.last = (start, end);
    }

    /// Sorts the spans; those that meet become one.
    fn merge(&mut self) {
        self.spans.sort_unstable();
        self.spans.dedup_by(|next, kept| {
            let meet = next.0 <= kept.1;
            if meet {
                kept.1 = kept.1.max(next.1);
            }
            meet
        });
    }

    /// Returns the share of each bin that the union covers.
    pub fn shares(mut self, time: Time, bins: Bins) -> Vec<f32> {
        let count = bins.count(time);
        // In units in which every bin begins at a whole multiple of its width.
        let total = u128::from(time.as_ps());
        let (scale, width) = match bins {
            Bins::Count(count) => (count as u128, total),
            Bins::Period(period) => (1, u128::from(period.as_ps())),
        };
        let mut covered = vec![0u128; count];
        self.spans.push(self.last);
        self.merge();
        if count > 0 {
            for &(start, end) in self.spans.iter().filter(|(start, end)| start < end) {
                let (start, end) = (u128::from(start) * scale, u128::from(end) * scale);
                for bin in start / width..end.div_ceil(width) {
                    covered[bin as usize] += end.min((bin + 1) * width) - start.max(bin * width);
                }
            }
        }
        let share = |(bin, covered): (usize, u128)| {
            let whole = width.min((total * scale).saturating_sub(bin as u128 * width));
            single(covered as f64 / whole.max(1) as f64)
        };
        covered.into_iter().enumerate().map(share).collect()
    }
}

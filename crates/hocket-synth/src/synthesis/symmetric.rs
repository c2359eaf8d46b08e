//! Matching on networks that look the same from every NPU: one NPU's part, done by all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use strum::VariantArray as _;

use super::delivery::{Delivery, Wanted};
use super::detour::{Detour, Near};
use super::network::{Timing, UnwoundNetwork};
use super::timetable::{Send, Timetable};
use crate::id::fit;
use crate::progress::Progress;
use crate::units::Seed;

/// A network whose NPUs can be shifted, so that all edges fall on edges of the same cost: products of
/// rings, of fully connected groups and of switches.
pub(super) struct Symmetry {
    /// NPUs along each axis; the numbers of NPUs vary fastest along the first.
    sizes: Vec<usize>,
    /// What comes into NPU 0: by how much each edge shifts, and its cost.
    steps: Vec<(usize, Timing)>,
    /// The edge of each NPU for each step.
    edges: Vec<u32>,
    /// For each step, how far away those are who are nearer than it is long, and the time from there.
    near: Vec<Vec<(usize, u64)>>,
    /// Chunks that each NPU holds, of NPU x pieces.
    chunks: Vec<u32>,
    pieces: usize,
}

/// Trials of one search.
const TRIALS: u64 = 256;
/// Offers that are compared for the one with the fewest other ways.
const LOOKED_AT: usize = 256;
/// Receptions that all trials together may make.
const EFFORT: u64 = 2_000_000;

impl Symmetry {
    /// Finds it along `axes` (the sizes of a product's dimensions), if it is there and every NPU holds
    /// as many chunks that everybody wants.
    pub(super) fn find(
        network: &UnwoundNetwork,
        spread: &Delivery,
        timings: &[Timing],
        axes: &[usize],
        near: &Near,
    ) -> Option<Self> {
        let npus = network.npus();
        let is_spread = matches!(spread.wanted, Wanted::All) && spread.others.is_empty();
        let released = spread.holders.iter().any(|&(_, from)| from > 0);
        if !is_spread || released || axes.iter().product::<usize>() != npus {
            return None;
        }
        let pieces = spread.chunks() / npus;
        let mut held: Vec<Vec<u32>> = vec![Vec::with_capacity(pieces); npus];
        for (chunk, &(npu, _)) in (0..).zip(&spread.holders) {
            held[npu as usize].push(chunk);
        }
        if pieces == 0 || held.iter().any(|chunks| chunks.len() != pieces) {
            return None;
        }
        let mut found = Self {
            sizes: axes.to_vec(),
            steps: Vec::new(),
            edges: Vec::new(),
            near: Vec::new(),
            chunks: held.into_iter().flatten().collect(),
            pieces,
        };
        let sizes = spread.sizes.len();
        for npu in 0..npus {
            let mut steps: Vec<(usize, Timing, u32)> = network
                .in_edges(npu)
                .iter()
                .map(|&edge| {
                    let src = network.edges()[edge as usize].src.index();
                    let range = edge as usize * sizes..(edge as usize + 1) * sizes;
                    let slowest = timings[range].iter().max().copied();
                    let slowest = slowest.expect("there is at least one size");
                    (found.difference(npu, src), slowest, edge)
                })
                .collect();
            steps.sort_unstable();
            let own = steps.iter().map(|&(step, timing, _)| (step, timing));
            if npu == 0 {
                found.steps = own.collect();
            } else if !own.eq(found.steps.iter().copied()) {
                return None;
            }
            found.edges.extend(steps.iter().map(|&(.., edge)| edge));
        }
        if found.steps.is_empty() {
            return None;
        }
        let steps = found.edges[..found.steps.len()].iter();
        found.near = steps
            .map(|&edge| {
                near.of(edge)
                    .iter()
                    .map(|&(npu, far)| (npu as usize, far))
                    .collect()
            })
            .collect();
        Some(found)
    }

    /// `a` - `b`, axis by axis, as the number of an NPU.
    fn difference(&self, a: usize, b: usize) -> usize {
        self.combine(a, b, |a, b, size| (a + size - b) % size)
    }

    /// `a` + `b`, axis by axis, as the number of an NPU.
    fn sum(&self, a: usize, b: usize) -> usize {
        self.combine(a, b, |a, b, size| (a + b) % size)
    }

    fn combine(
        &self,
        mut a: usize,
        mut b: usize,
        each: impl Fn(usize, usize, usize) -> usize,
    ) -> usize {
        let (mut result, mut stride) = (0, 1);
        for &size in &self.sizes {
            result += stride * each(a % size, b % size, size);
            (a, b, stride) = (a / size, b / size, stride * size);
        }
        result
    }

    /// Returns the best timetable of several trials; stops at `floor`. `None` where some NPUs cannot be reached.
    ///
    /// What NPU 0 receives is chosen event by event, as in [`super::event`]; everybody else receives the
    /// same, shifted. A chunk is named by how far from its receiver it began: what comes over a step
    /// must have come to the sender, and so to all, from one step less far.
    ///
    /// # Complexity
    /// O(trials x NPUs x pieces x steps x offers looked at) to find it, O(sends) to write it down.
    pub(super) fn timetable(
        &self,
        seed: u64,
        floor: u64,
        most: u64,
        progress: &mut dyn Progress,
    ) -> Option<Timetable> {
        let npus = self.edges.len() / self.steps.len();
        let work = (npus * self.pieces * self.steps.len()) as u64;
        let trials = (EFFORT / work.max(1)).clamp(1, TRIALS.min(most.max(1)));
        let mut best: Option<(u64, Vec<Receipt>)> = None;
        for trial in 0..trials {
            let limit = best.as_ref().map_or(u64::MAX, |(end, _)| *end);
            let detour = match self.near.iter().all(Vec::is_empty) {
                true => Detour::Ignore,
                false => Detour::VARIANTS[fit::<usize, _>(trial) % Detour::VARIANTS.len()],
            };
            progress.spend(8 * work);
            let search = Search::new(self, npus, detour, seed.wrapping_add(trial));
            if let Some(found) = search.run(limit) {
                let done = found.0 <= floor;
                best = Some(found);
                if done {
                    break;
                }
            } else if limit == u64::MAX {
                return None;
            }
            if !progress.report("synthesizing", trial + 1, trials) {
                break;
            }
        }
        let (end, receipts) = best?;
        let mut sends = Vec::with_capacity(receipts.len() * npus);
        for receipt in receipts {
            let (from, piece) = (receipt.item / self.pieces, receipt.item % self.pieces);
            for npu in 0..npus {
                sends.push(Send {
                    chunk: self.chunks[self.sum(npu, from) * self.pieces + piece],
                    edge: self.edges[npu * self.steps.len() + receipt.step],
                    start: receipt.start,
                });
            }
        }
        Some(Timetable { sends, end })
    }
}

/// What NPU 0 receives: item (how far away x pieces + piece), over which step, sent when.
#[derive(Clone, Copy, Debug)]
struct Receipt {
    item: usize,
    step: usize,
    start: u64,
}

struct Search<'a> {
    with: &'a Symmetry,
    detour: Detour,
    /// When each item comes; `u64::MAX` for not yet known.
    due: Vec<u64>,
    /// For each step, items that the sender has, some of them taken since.
    offers: Vec<Vec<usize>>,
    /// How many steps offer each item.
    ways: Vec<u32>,
    random: Seed,
}

impl<'a> Search<'a> {
    fn new(with: &'a Symmetry, npus: usize, detour: Detour, seed: u64) -> Self {
        let items = npus * with.pieces;
        Self {
            with,
            detour,
            due: vec![u64::MAX; items],
            offers: vec![Vec::new(); with.steps.len()],
            ways: vec![0; items],
            random: Seed(seed),
        }
    }

    /// When all has come, and how; `None` where that is not before `limit`.
    fn run(mut self, limit: u64) -> Option<(u64, Vec<Receipt>)> {
        let pieces = self.with.pieces;
        let mut left = self.due.len() - pieces;
        let mut receipts = Vec::with_capacity(left);
        let mut free = vec![0u64; self.with.steps.len()];
        // Arrivals: time, item. `usize::MAX` only wakes.
        let mut events: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        for piece in 0..pieces {
            self.due[piece] = 0;
            events.push(Reverse((0, piece)));
        }
        let mut end = 0;
        while let Some(&Reverse((now, _))) = events.peek() {
            if now >= limit {
                return None;
            }
            while let Some(&Reverse((time, item))) = events.peek()
                && time == now
            {
                events.pop();
                if item != usize::MAX {
                    self.hold(item);
                    end = now;
                }
            }
            if left == 0 {
                continue;
            }
            // Those with least to offer choose first; each draws once, so that the order is an order.
            let mut steps: Vec<(u64, usize, u64, usize)> = (0..free.len())
                .filter(|&step| free[step] <= now)
                .map(|step| {
                    let offers = self.offers[step].len();
                    (
                        self.with.steps[step].1.delay,
                        offers,
                        self.random.next_u64(),
                        step,
                    )
                })
                .collect();
            steps.sort_unstable();
            for (.., step) in steps {
                let Some(item) = self.pick(step, now) else {
                    continue;
                };
                let timing = self.with.steps[step].1;
                self.due[item] = now + timing.delay;
                left -= 1;
                receipts.push(Receipt {
                    item,
                    step,
                    start: now,
                });
                free[step] = now + timing.occupied;
                events.push(Reverse((now + timing.delay, item)));
                events.push(Reverse((now + timing.occupied, usize::MAX)));
            }
        }
        (left == 0).then_some((end, receipts))
    }

    /// An item has come, to everybody from as far: it is offered one step farther on.
    fn hold(&mut self, item: usize) {
        let pieces = self.with.pieces;
        for (step, &(shift, _)) in self.with.steps.iter().enumerate() {
            // Relative to a receiver, its sender's item lies one step nearer.
            let from = self.with.difference(item / pieces, shift);
            let offered = from * pieces + item % pieces;
            if self.due[offered] == u64::MAX {
                self.offers[step].push(offered);
                self.ways[offered] += 1;
            }
        }
    }

    /// Of some offers from a random place on, the one with the fewest other ways; those that would come
    /// sooner another way as [`Detour`] says.
    fn pick(&mut self, step: usize, now: u64) -> Option<usize> {
        let mut offers = std::mem::take(&mut self.offers[step]);
        let mut best: Option<(bool, u32, usize)> = None;
        let (mut place, mut seen) = (self.random.below(offers.len().max(1)), 0);
        let mut left = offers.len();
        while left > 0 && (seen < LOOKED_AT || best.is_none()) {
            left -= 1;
            if place >= offers.len() {
                place = 0;
            }
            let item = offers[place];
            if self.due[item] != u64::MAX {
                // The last takes its place: one that was looked at already is only looked at again.
                offers.swap_remove(place);
                if let Some((.., best_place)) = &mut best
                    && *best_place == offers.len()
                {
                    *best_place = place;
                }
                continue;
            }
            let sooner = self.detour != Detour::Ignore && self.comes_sooner(item, step, now);
            if !(sooner && self.detour == Detour::Refuse) {
                let found = (sooner, self.ways[item], place);
                if best.is_none_or(|(sooner, ways, _)| (found.0, found.1) < (sooner, ways)) {
                    best = Some(found);
                }
                seen += 1;
            }
            place += 1;
        }
        let item = best.map(|(.., place)| offers.swap_remove(place));
        self.offers[step] = offers;
        item
    }

    /// Returns whether an item will be with somebody near soon enough to come sooner than over a step.
    fn comes_sooner(&self, item: usize, step: usize, now: u64) -> bool {
        let pieces = self.with.pieces;
        let arrival = now + self.with.steps[step].1.delay;
        self.with.near[step].iter().any(|&(npu, far)| {
            let theirs = self.with.difference(item / pieces, npu) * pieces + item % pieces;
            let due = self.due[theirs];
            due != u64::MAX && due.max(now) + far < arrival
        })
    }
}

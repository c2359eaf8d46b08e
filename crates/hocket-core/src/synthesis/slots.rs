//! Greedy matching, slot by slot: all edges alike, everybody wants everything, many NPUs.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::network::{Network, Timing};
use super::spread::{Bits, Spread, Wanted};
use super::timetable::{Send, Timetable};
use crate::progress::{Interrupted, Progress};
use crate::units::Seed;

/// What every edge carries in every slot.
///
/// Four bytes a send and what idles in between, where a plan takes a hundred: what fits in memory for tens
/// of thousands of NPUs.
#[derive(Clone, Debug)]
pub struct SlotTable {
    /// How many slots.
    pub slots: u64,
    /// How many sends.
    pub sends: u64,
    /// For each NPU, slot after slot, what comes over each of its edges in; shorter where the NPU has
    /// everything earlier.
    rows: Vec<Vec<u32>>,
}

/// No chunk.
const NONE: u32 = u32::MAX;

/// The length of a slot where all edges cost the same: the time a chunk takes over one.
pub(super) fn slot_length(spread: &Spread, timings: &[Timing]) -> Option<u64> {
    let sizes = spread.sizes.len();
    let first = timings.first()?;
    let nearly = |timing: &Timing| timing.delay.abs_diff(first.delay) <= first.delay / 100_000 + 1;
    let is_spread = matches!(spread.wanted, Wanted::All) && spread.others.is_empty();
    let released = spread.holders.iter().any(|&(_, from)| from > 0);
    if !is_spread || released || sizes == 0 || !timings.iter().all(nearly) {
        return None;
    }
    timings.iter().map(|timing| timing.delay).max()
}

/// Matches chunks to edges in each slot. Every NPU goes through its edges in, in an order that turns
/// from slot to slot, and takes over each the next chunk from a pointer on that the sender has and it
/// lacks. What one NPU takes does not depend on what others take in the same slot, so that NPUs
/// are shared out among `threads`, with the same result for any number of them.
///
/// `None` where some NPU can never get everything.
///
/// # Complexity
/// O(sends) words looked at while neighbours differ much, O(slots x edges x chunks / 64) at worst;
/// chunks x NPUs / 4 bytes, and four for each send.
///
/// # Source
/// TACOS, section VI-A.
pub(super) fn slot_table(
    network: &Network,
    spread: &Spread,
    seed: u64,
    threads: usize,
    progress: &mut dyn Progress,
) -> Result<Option<SlotTable>, Interrupted> {
    let npus = network.npus();
    let mut missing = spread.missing();
    let width = missing.width;
    let total = missing.count();
    let have = Have::new(spread, width);
    let per_thread = npus.div_ceil(threads.max(1)).max(1);
    let parts: Vec<&mut [u64]> = missing
        .words
        .chunks_mut(per_thread * width.max(1))
        .collect();
    let barrier = Barrier::new(parts.len() + 1);
    let left = AtomicU64::new(total);
    let stop = AtomicBool::new(false);
    let mut is_complete = true;
    let mut outcome = Ok(());
    let rows: Vec<Vec<Vec<u32>>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..)
            .zip(parts)
            .map(|(part, missing)| {
                let mut shop = Shop::new(network, &have, missing, width, part * per_thread, seed);
                let (barrier, left, stop) = (&barrier, &left, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let taken = shop.choose();
                        left.fetch_sub(taken, Ordering::Relaxed);
                        barrier.wait();
                        shop.apply();
                        barrier.wait();
                        barrier.wait();
                    }
                    shop.rows
                })
            })
            .collect();
        let mut before = total;
        if total == 0 {
            stop.store(true, Ordering::Relaxed);
        }
        while !stop.load(Ordering::Relaxed) {
            barrier.wait();
            barrier.wait();
            let now = left.load(Ordering::Relaxed);
            is_complete = now == 0;
            if now == 0 || now == before {
                stop.store(true, Ordering::Relaxed);
            } else if !progress.report("synthesizing", total - now, total) {
                outcome = Err(Interrupted);
                stop.store(true, Ordering::Relaxed);
            }
            before = now;
            barrier.wait();
        }
        let joined = workers.into_iter().map(|worker| worker.join());
        joined.map(|rows| rows.expect("no worker panics")).collect()
    });
    outcome?;
    let rows: Vec<Vec<u32>> = rows.into_iter().flatten().collect();
    let slots = (0..npus).map(|npu| rows[npu].len() / network.in_edges(npu).len().max(1));
    Ok(is_complete.then_some(SlotTable {
        slots: slots.max().unwrap_or(0) as u64,
        sends: total,
        rows,
    }))
}

/// Who has what, read by all and written by the owner of each row between slots.
struct Have {
    words: Vec<AtomicU64>,
}

impl Have {
    fn new(spread: &Spread, width: usize) -> Self {
        let mut bits = Bits::new(spread.npus, spread.chunks());
        debug_assert_eq!(bits.width, width);
        for (chunk, &(npu, _)) in spread.holders.iter().enumerate() {
            bits.set(npu as usize, chunk);
        }
        Self {
            words: bits.words.into_iter().map(AtomicU64::new).collect(),
        }
    }
}

/// The NPUs of one thread.
struct Shop<'a> {
    network: &'a Network,
    have: &'a Have,
    missing: &'a mut [u64],
    width: usize,
    first: usize,
    left: Vec<u64>,
    rows: Vec<Vec<u32>>,
    slot: usize,
    random: Vec<Seed>,
}

impl<'a> Shop<'a> {
    fn new(
        network: &'a Network,
        have: &'a Have,
        missing: &'a mut [u64],
        width: usize,
        first: usize,
        seed: u64,
    ) -> Self {
        let npus = missing.len() / width.max(1);
        let mut randoms = Vec::with_capacity(npus);
        let mut rows = Vec::with_capacity(npus);
        let mut left = Vec::with_capacity(npus);
        for i in 0..npus {
            randoms.push(Seed(Seed(seed ^ ((first + i) as u64) << 20).next_u64()));
            let row = &missing[i * width..(i + 1) * width];
            let lacking: u64 = row.iter().map(|word| u64::from(word.count_ones())).sum();
            let edges = network.in_edges(first + i).len();
            rows.push(Vec::with_capacity(lacking as usize + edges));
            left.push(lacking);
        }
        Self {
            network,
            have,
            missing,
            width,
            first,
            left,
            rows,
            slot: 0,
            random: randoms,
        }
    }

    /// Takes what each NPU can in this slot; gives how many chunks.
    fn choose(&mut self) -> u64 {
        let mut taken = 0;
        for i in 0..self.left.len() {
            let edges = self.network.in_edges(self.first + i);
            if self.left[i] == 0 {
                continue;
            }
            let start = self.rows[i].len();
            self.rows[i].resize(start + edges.len(), NONE);
            for k in 0..edges.len() {
                let at = (k + self.slot) % edges.len();
                let src = self.network.edges()[edges[at] as usize].src.index();
                let random = self.random[i].next_u64();
                let have = &self.have.words[src * self.width..(src + 1) * self.width];
                let missing = &mut self.missing[i * self.width..(i + 1) * self.width];
                if let Some(chunk) = take(have, missing, random) {
                    self.rows[i][start + at] = chunk;
                    self.left[i] -= 1;
                    taken += 1;
                }
            }
        }
        self.slot += 1;
        taken
    }

    /// What was taken is there for others from the next slot on.
    fn apply(&mut self) {
        for (i, row) in self.rows.iter().enumerate() {
            let edges = self.network.in_edges(self.first + i).len();
            if row.len() < self.slot * edges || edges == 0 {
                continue;
            }
            for &chunk in &row[row.len() - edges..] {
                if chunk != NONE {
                    let word = (self.first + i) * self.width + chunk as usize / 64;
                    self.have.words[word].fetch_or(1 << (chunk % 64), Ordering::Relaxed);
                }
            }
        }
    }
}

/// The next chunk, from a random place on, that is had and missing; it is missing no more.
#[inline]
fn take(have: &[AtomicU64], missing: &mut [u64], random: u64) -> Option<u32> {
    let width = missing.len();
    let start = (((random >> 32) * width as u64) >> 32) as usize;
    let found = (start..width)
        .chain(0..start)
        .find(|&w| missing[w] != 0 && have[w].load(Ordering::Relaxed) & missing[w] != 0)?;
    let word = have[found].load(Ordering::Relaxed) & missing[found];
    let turn = (random & 63) as u32;
    let bit = (word.rotate_right(turn).trailing_zeros() + turn) & 63;
    missing[found] &= !(1 << bit);
    Some((found * 64) as u32 + bit)
}

impl SlotTable {
    /// The same as sends, slots of `length` picoseconds.
    pub(super) fn timetable(&self, network: &Network, length: u64) -> Timetable {
        let mut sends = Vec::with_capacity(self.sends as usize);
        let mut end = 0;
        for slot in 0..self.slots as usize {
            for (npu, row) in self.rows.iter().enumerate() {
                let edges = network.in_edges(npu);
                let Some(row) = row.get(slot * edges.len()..(slot + 1) * edges.len()) else {
                    continue;
                };
                for (&edge, &chunk) in edges.iter().zip(row) {
                    if chunk != NONE {
                        let start = slot as u64 * length;
                        sends.push(Send { chunk, edge, start });
                        end = start + length;
                    }
                }
            }
        }
        Timetable { sends, end }
    }
}

//! Greedy matching, slot by slot: all edges alike, everybody wants everything, many NPUs.

use super::network::{Network, Timing};
use super::slot_table::{Row, SlotTable};
use super::spread::{Spread, Wanted};
use crate::progress::{Interrupted, Progress};
use crate::units::Seed;

/// Slots of one length, for networks whose edges all cost the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clockwork {
    /// How long a slot is: an edge sends one chunk in each, in picoseconds.
    pub(super) length: u64,
    /// Slots from the start of a send until its chunk may be sent on.
    pub(super) lag: u64,
    /// From the start of a send until it is there, in picoseconds.
    pub(super) delay: u64,
}

impl Clockwork {
    /// `None` where edges cost different times, or not everybody wants everything.
    pub(super) fn of(spread: &Spread, timings: &[Timing]) -> Option<Self> {
        let first = timings.first()?;
        let is_spread = matches!(spread.wanted, Wanted::All) && spread.others.is_empty();
        let released = spread.holders.iter().any(|&(_, from)| from > 0);
        if !is_spread || released || timings.iter().any(|timing| timing != first) {
            return None;
        }
        Some(Self {
            length: first.occupied,
            lag: first.delay.div_ceil(first.occupied),
            delay: first.delay,
        })
    }
}

/// Matches chunks to edges in each slot. Every NPU takes over each edge in one of the chunks that the sender
/// has and it lacks: one from the first words of the bitset with any, from a random word of this slot on.
/// What one NPU takes does not depend on what others take in the same slot, so that NPUs are shared out
/// among `threads`, with the same result for any number of them.
///
/// `None` where some NPU can never get everything.
///
/// # Complexity
/// O(sends x what has to be looked at until a word has one), at worst chunks / 64 words; chunks x NPUs / 4
/// bytes, and four for each send.
///
/// # Source
/// TACOS, section VI-A.
pub(super) fn slot_table(
    network: &Network,
    spread: &Spread,
    seed: u64,
    lag: u64,
    threads: usize,
    progress: &mut dyn Progress,
) -> Result<Option<SlotTable>, Interrupted> {
    let npus = network.npus();
    let mut missing = spread.missing();
    let mut have = spread.held();
    let width = have.width;
    let total = missing.count();
    let mut left = total;
    let threads = if npus < FEW { 1 } else { threads.max(1) };
    let per_thread = npus.div_ceil(threads).max(1);
    let parts = missing.words.chunks_mut(per_thread * width).enumerate();
    let mut shops: Vec<Shop<'_>> = parts
        .map(|(part, missing)| Shop::new(network, missing, width, part * per_thread, seed))
        .collect();
    let mut clock = Seed(seed);
    let (mut slot, mut idle) = (0, 0);
    while left > 0 && idle <= lag {
        let start = clock.below(width);
        let taken = side_by_side(&mut shops, |shop| shop.choose(&have.words, start));
        left -= taken;
        idle = if taken == 0 { idle + 1 } else { 0 };
        slot += 1;
        if slot >= lag {
            let shown = slot - lag;
            let rows = have.words.chunks_mut(per_thread * width);
            let mut pairs: Vec<_> = shops.iter_mut().zip(rows).collect();
            side_by_side(&mut pairs, |(shop, have)| shop.show(have, shown as usize));
        }
        if !progress.report("synthesizing", total - left, total) {
            return Err(Interrupted);
        }
    }
    let rows = shops.into_iter().flat_map(|shop| shop.rows).collect();
    Ok((left == 0).then(|| SlotTable::new(rows, lag)))
}

/// NPUs up to which starting threads takes longer than their work.
pub(super) const FEW: usize = 2_048;

/// Does something with each part on a thread of its own; gives the sum of the results.
pub(super) fn side_by_side<T: Send>(parts: &mut [T], work: impl Fn(&mut T) -> u64 + Sync) -> u64 {
    let Some((first, others)) = parts.split_first_mut() else {
        return 0;
    };
    std::thread::scope(|scope| {
        let work = &work;
        let started: Vec<_> = others
            .iter_mut()
            .map(|part| scope.spawn(move || work(part)))
            .collect();
        let own = work(first);
        let joined = started.into_iter().map(|part| part.join());
        own + joined
            .map(|done| done.expect("no part panics"))
            .sum::<u64>()
    })
}

/// The NPUs of one thread.
struct Shop<'a> {
    network: &'a Network,
    missing: &'a mut [u64],
    width: usize,
    first: usize,
    left: Vec<u64>,
    rows: Vec<Row>,
    /// How many of each row's chunks may be sent on.
    shown: Vec<usize>,
    random: Vec<Seed>,
}

impl<'a> Shop<'a> {
    fn new(
        network: &'a Network,
        missing: &'a mut [u64],
        width: usize,
        first: usize,
        seed: u64,
    ) -> Self {
        let npus = missing.len() / width;
        let lacking = |i: usize| -> u64 {
            let row = &missing[i * width..(i + 1) * width];
            row.iter().map(|word| u64::from(word.count_ones())).sum()
        };
        let left: Vec<u64> = (0..npus).map(lacking).collect();
        let row = |i: usize| Row::new(left[i] as usize, network.in_edges(first + i).len());
        let random = |i: usize| Seed(Seed(seed ^ (((first + i) as u64) << 20)).next_u64());
        Self {
            rows: (0..npus).map(row).collect(),
            random: (0..npus).map(random).collect(),
            shown: vec![0; npus],
            left,
            network,
            missing,
            width,
            first,
        }
    }

    /// Takes what each NPU can in a slot; gives how many chunks.
    fn choose(&mut self, have: &[u64], start: usize) -> u64 {
        let mut taken = 0;
        for i in 0..self.left.len() {
            if self.left[i] == 0 {
                continue;
            }
            let edges = self.network.in_edges(self.first + i);
            let missing = &mut self.missing[i * self.width..(i + 1) * self.width];
            let row = &mut self.rows[i];
            row.begin_slot();
            for (at, &edge) in edges.iter().enumerate() {
                let src = self.network.edges()[edge as usize].src.index();
                let have = &have[src * self.width..(src + 1) * self.width];
                let turn = (self.random[i].next_u64() & 63) as u32;
                if let Some(chunk) = take(have, missing, start, turn) {
                    row.take(at, chunk);
                    self.left[i] -= 1;
                    taken += 1;
                }
            }
        }
        taken
    }

    /// What was taken in a slot may be sent on.
    fn show(&mut self, have: &mut [u64], slot: usize) -> u64 {
        for (i, row) in self.rows.iter().enumerate() {
            let count = row.count(slot);
            for &chunk in &row.chunks[self.shown[i]..self.shown[i] + count] {
                have[i * self.width + chunk as usize / 64] |= 1 << (chunk % 64);
            }
            self.shown[i] += count;
        }
        0
    }
}

/// Words looked at together.
const BLOCK: usize = 8;

/// A chunk of the first word from `start` on that is had and missing; it is missing no more.
#[inline]
fn take(have: &[u64], missing: &mut [u64], start: usize, turn: u32) -> Option<u32> {
    let found = first_common(&have[start..], &missing[start..])
        .map(|w| start + w)
        .or_else(|| first_common(&have[..start], &missing[..start]))?;
    let word = have[found] & missing[found];
    let bit = (word.rotate_right(turn).trailing_zeros() + turn) & 63;
    missing[found] &= !(1 << bit);
    Some((found * 64) as u32 + bit)
}

/// The first place where both have a bit.
#[inline]
fn first_common(a: &[u64], b: &[u64]) -> Option<usize> {
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK));
    let mut from = a.len() / BLOCK * BLOCK;
    for (i, (a, b)) in blocks.enumerate() {
        let any = a.iter().zip(b).fold(0, |any, (a, b)| any | (a & b));
        if any != 0 {
            from = i * BLOCK;
            break;
        }
    }
    let rest = a[from..].iter().zip(&b[from..]);
    rest.map(|(a, b)| a & b)
        .position(|both| both != 0)
        .map(|w| from + w)
}

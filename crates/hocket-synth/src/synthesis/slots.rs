//! Greedy matching, slot by slot: all edges alike, everybody wants everything, many NPUs.

use super::delivery::{Delivery, Wanted};
use super::network::{Timing, UnwoundNetwork};
use super::slot_bits::{SlotBits, common, place};
use super::slot_table::{Part, SlotTable};
use crate::id::fit;
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
    /// Returns `None` where edges cost different times, or not everybody wants everything.
    pub(super) fn of(spread: &Delivery, timings: &[Timing]) -> Option<Self> {
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

    /// When all is there if so many slots are used, in picoseconds.
    pub(super) fn end(&self, slots: u64) -> u64 {
        match slots {
            0 => 0,
            _ => (slots - 1) * self.length + self.delay,
        }
    }
}

/// Matches chunks to edges in each slot. Every NPU takes over each edge in one of the chunks that the sender
/// has and it lacks: any, from a random place of this slot on, so that all look at the same stretch of chunks,
/// which lies together in memory. What one NPU takes does not depend on what others take in the same slot, so
/// that NPUs are shared out among `threads`, with the same result for any number of them.
///
/// `None` where some NPU can never get everything.
///
/// # Complexity
/// O(sends x what has to be looked at until a chunk is found), at worst chunks / 512 counts; chunks x NPUs / 4
/// bytes, and four for each send.
///
/// # Source
/// TACOS, section VI-A.
pub(super) fn slot_table(
    network: &UnwoundNetwork,
    spread: &Delivery,
    seed: u64,
    lag: u64,
    threads: usize,
    progress: &mut dyn Progress,
) -> Result<Option<SlotTable>, Interrupted> {
    let npus = network.npus();
    let blocks = SlotBits::per_npu(spread.chunks());
    let mut held = Held::new(network, spread);
    let per_part = npus.div_ceil(threads.max(1)).max(1);
    let mut shops: Vec<Shop<'_>> = (0..npus)
        .step_by(per_part)
        .map(|first| Shop::new(network, spread, first, per_part.min(npus - first), seed))
        .collect();
    let total: u64 = shops.iter().flat_map(|shop| &shop.left).sum();
    let mut left = total;
    let mut clock = Seed(seed);
    // Numbers of the slots in which something is sent, and how many of them are shown.
    let mut numbers: Vec<u64> = Vec::new();
    let (mut slot, mut shown) = (0, 0);
    while left > 0 {
        if numbers.get(shown).is_some_and(|&sent| sent + lag <= slot) {
            held.show(&mut shops, per_part, shown);
            shown += 1;
        }
        let start = clock.below(blocks);
        let taken = side_by_side(&mut shops, |shop| shop.choose(&held, start));
        left -= taken;
        progress.spend(network.edges().len() as u64 + 4 * taken);
        if taken > 0 {
            numbers.push(slot);
            slot += 1;
        } else {
            shops.iter_mut().for_each(|shop| shop.part.drop_last());
            match numbers.get(shown) {
                Some(&sent) => slot = sent + lag,
                None => break,
            }
        }
        if !progress.report("synthesizing", total - left, total) {
            return Err(Interrupted);
        }
    }
    let parts = shops.into_iter().map(|shop| shop.part).collect();
    Ok((left == 0).then(|| SlotTable::new(parts, numbers, lag)))
}

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

/// No chunk.
const NOTHING: u32 = u32::MAX;

/// What every NPU may send on.
struct Held {
    have: SlotBits,
    /// Where the edges into each NPU begin in `news`.
    begin: Vec<usize>,
    /// What each edge has brought last, of what may be sent on for the first time in this slot.
    news: Vec<u32>,
}

impl Held {
    fn new(network: &UnwoundNetwork, spread: &Delivery) -> Self {
        let npus = network.npus();
        let mut have = SlotBits::new(npus, spread.chunks());
        for (chunk, &(npu, _)) in (0..).zip(&spread.holders) {
            have.set(npu as usize, chunk);
        }
        let mut begin = vec![0];
        for npu in 0..npus {
            begin.push(begin[npu] + network.in_edges(npu).len());
        }
        Self {
            news: vec![NOTHING; begin[npus]],
            have,
            begin,
        }
    }

    /// Returns what has come to an NPU, of what may be sent on for the first time in this slot.
    fn news(&self, npu: usize) -> impl Iterator<Item = u32> + '_ {
        let news = &self.news[self.begin[npu]..self.begin[npu + 1]];
        news.iter().copied().filter(|&chunk| chunk != NOTHING)
    }

    /// Shows what was taken in a slot, so that it may be sent on.
    fn show(&mut self, shops: &mut [Shop<'_>], per_part: usize, slot: usize) {
        let Self { have, begin, news } = self;
        let mut rest = &mut news[..];
        let mut parts = Vec::new();
        for (shop, lines) in shops.iter().zip(have.parts(per_part)) {
            let first = shop.part.first;
            let begin = &begin[first..=first + shop.left.len()];
            let (news, others) = rest.split_at_mut(begin[begin.len() - 1] - begin[0]);
            rest = others;
            parts.push((shop, lines, begin, news));
        }
        side_by_side(&mut parts, |(shop, lines, begin, news)| {
            news.fill(NOTHING);
            shop.part.each(slot, |i, at, chunk| {
                let (block, word, bit) = place(chunk);
                lines[block][i][word] |= bit;
                news[begin[i] - begin[0] + at] = chunk;
            });
            0
        });
    }
}

/// The NPUs of one thread.
struct Shop<'a> {
    network: &'a UnwoundNetwork,
    part: Part,
    missing: SlotBits,
    /// How many are missing of each block, of NPU x blocks.
    counts: Vec<u16>,
    /// How many are missing.
    left: Vec<u64>,
    /// Whether each edge in has nothing to bring but news.
    is_dry: Vec<bool>,
    random: Vec<Seed>,
}

impl<'a> Shop<'a> {
    fn new(
        network: &'a UnwoundNetwork,
        spread: &Delivery,
        first: usize,
        npus: usize,
        seed: u64,
    ) -> Self {
        let chunks = spread.chunks();
        let blocks = SlotBits::per_npu(chunks);
        let mut missing = SlotBits::full(npus, chunks);
        let whole = (0..blocks).map(|block| fit(SlotBits::chunks_of(block, chunks)));
        let mut counts: Vec<u16> = whole.collect::<Vec<_>>().repeat(npus);
        let mut left = vec![chunks as u64; npus];
        for (chunk, &(npu, _)) in (0..).zip(&spread.holders) {
            let Some(i) = (npu as usize).checked_sub(first).filter(|&i| i < npus) else {
                continue;
            };
            let (block, word, bit) = place(chunk);
            missing.line_mut(block, i)[word] &= !bit;
            counts[i * blocks + block] -= 1;
            left[i] -= 1;
        }
        let random = |i: usize| Seed(Seed(seed ^ (((first + i) as u64) << 20)).next_u64());
        Self {
            part: Part::new(network, first, npus),
            random: (0..npus).map(random).collect(),
            network,
            is_dry: vec![false; (0..npus).map(|i| network.in_edges(first + i).len()).sum()],
            missing,
            counts,
            left,
        }
    }

    /// Takes what each NPU can in a slot; gives how many chunks.
    fn choose(&mut self, held: &Held, start: usize) -> u64 {
        let Self { network, part, .. } = self;
        let blocks = self.counts.len() / self.left.len();
        let mut is_dry = self.is_dry.iter_mut();
        part.fill(network, |i, edges, receipt| {
            if self.left[i] == 0 {
                is_dry.by_ref().take(edges.len()).for_each(drop);
                return;
            }
            let mut row = Missing {
                lines: &mut self.missing,
                counts: &mut self.counts[i * blocks..(i + 1) * blocks],
                npu: i,
            };
            for (at, &edge) in edges.iter().enumerate() {
                let src = network.edges()[edge as usize].src.index();
                let is_dry = is_dry.next().expect("one for each edge");
                let found = match *is_dry {
                    true => {
                        let mut wanted = held.news(src).filter(|&chunk| row.contains(chunk));
                        let first = wanted.next();
                        *is_dry = wanted.next().is_none();
                        first.inspect(|&chunk| row.remove(chunk))
                    }
                    false => {
                        let random = self.random[i].next_u64();
                        let found = row.take_around(&held.have, src, start, random);
                        *is_dry = found.is_none();
                        found
                    }
                };
                if let Some(chunk) = found {
                    self.left[i] -= 1;
                    receipt.take(at, chunk);
                }
            }
        })
    }
}

/// What one NPU lacks.
struct Missing<'a> {
    lines: &'a mut SlotBits,
    counts: &'a mut [u16],
    npu: usize,
}

impl Missing<'_> {
    #[inline]
    fn contains(&self, chunk: u32) -> bool {
        self.lines.get(self.npu, chunk)
    }

    #[inline]
    fn remove(&mut self, chunk: u32) {
        let (block, word, bit) = place(chunk);
        self.lines.line_mut(block, self.npu)[word] &= !bit;
        self.counts[block] -= 1;
    }

    /// Takes a chunk that the sender has, if there is one: of the first block that has any, from `start` on.
    #[inline]
    fn take_around(
        &mut self,
        have: &SlotBits,
        src: usize,
        start: usize,
        random: u64,
    ) -> Option<u32> {
        let mut block = start;
        for _ in 0..self.counts.len() {
            if self.counts[block] > 0 {
                let (have, missing) = (have.line(block, src), self.lines.line(block, self.npu));
                if let Some(chunk) = common(block, have, missing, random) {
                    self.remove(chunk);
                    return Some(chunk);
                }
            }
            block = if block + 1 < self.counts.len() {
                block + 1
            } else {
                0
            };
        }
        None
    }
}

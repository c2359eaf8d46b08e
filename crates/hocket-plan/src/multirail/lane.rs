//! Lanes: chunks with an order of rails each, and what that order costs.

use super::Rail;
use crate::collective::CollectiveKind;
use crate::collective::pattern::Pass;
use crate::id::fit;

/// A chunk and the rails that it travels, in order: what Themis calls a chunk's schedule.
///
/// (*Chunk* means the unit of a plan elsewhere; a lane has one chunk of the plan for each NPU.)
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lane {
    /// Bytes of one NPU's vector in it; of the whole vector for reduce-scatter and all-gather.
    pub bytes: u64,
    /// Rails in the order of the reduce-scatter; empty for an all-gather.
    pub reduce_scatter: Vec<u8>,
    /// Rails in the order of the all-gather; empty for a reduce-scatter.
    pub all_gather: Vec<u8>,
}

/// One operation: a lane's pass along one rail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// Reduce-scatter or all-gather.
    pub pass: Pass,
    /// The rail.
    pub rail: u8,
    /// Bytes that an NPU holds of the lane before it.
    pub held: f64,
    /// Bytes that an NPU sends (or receives, if that is more).
    pub sent: f64,
    /// A block of the pass is the lane's bytes over this.
    pub spread: u64,
}

impl Stage {
    /// Returns whether it sums; else it copies.
    pub fn reduces(&self) -> bool {
        self.pass == Pass::ReduceScatter
    }

    /// Returns time that it occupies its rail, in picoseconds: n_K x B_K.
    pub fn occupied_ps(&self, rails: &[Rail]) -> f64 {
        self.sent * 1e12 / rails[usize::from(self.rail)].bandwidth as f64
    }
}

impl Lane {
    /// Returns a lane that follows one order of rails: in that order for a reduce-scatter, against it for an
    /// all-gather.
    pub fn along(kind: CollectiveKind, bytes: u64, order: &[u8]) -> Self {
        let backwards = || order.iter().rev().copied().collect();
        Self {
            bytes,
            reduce_scatter: match kind {
                CollectiveKind::AllGather => Vec::new(),
                _ => order.to_vec(),
            },
            all_gather: match kind {
                CollectiveKind::ReduceScatter => Vec::new(),
                _ => backwards(),
            },
        }
    }

    /// Returns the number of operations of the lane.
    pub fn len(&self) -> usize {
        self.reduce_scatter.len() + self.all_gather.len()
    }

    /// Returns whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the rail of each operation, first to last.
    pub fn rails(&self) -> impl Iterator<Item = u8> + '_ {
        self.reduce_scatter.iter().chain(&self.all_gather).copied()
    }

    /// Returns its operations, first to last.
    ///
    /// # Source
    /// Themis, section 4.4 and its footnote 7: the bytes sent on dimension K are (P_K - 1) / P_K of
    /// the chunk's size before a reduce-scatter, or after an all-gather.
    pub fn stages<'a>(&'a self, rails: &'a [Rail]) -> impl Iterator<Item = Stage> + 'a {
        let mut held = self.bytes as f64;
        let mut spread = 1u64;
        let sums = self.reduce_scatter.iter().map(move |&rail| {
            let size = rails[usize::from(rail)].size;
            spread *= u64::from(size);
            let stage = Stage {
                pass: Pass::ReduceScatter,
                rail,
                held,
                sent: held * rails[usize::from(rail)].share(),
                spread,
            };
            held /= f64::from(size);
            stage
        });
        let sizes = self.all_gather.iter();
        let sizes = sizes.map(|&rail| u64::from(rails[usize::from(rail)].size));
        let mut spread: u64 = sizes.product();
        let mut held = self.bytes as f64 / spread as f64;
        let copies = self.all_gather.iter().map(move |&rail| {
            let size = f64::from(rails[usize::from(rail)].size);
            let stage = Stage {
                pass: Pass::AllGather,
                rail,
                held,
                sent: held * size * rails[usize::from(rail)].share(),
                spread,
            };
            held *= size;
            spread /= u64::from(rails[usize::from(rail)].size);
            stage
        });
        sums.chain(copies)
    }
}

impl Lane {
    /// Returns the order in which the digits of a chunk's place in the lane stand for NPUs' coordinates, most
    /// significant first: that of the reduce-scatter, or against that of the all-gather, whichever makes fewer
    /// transfers; and their number in one part of the lane.
    ///
    /// A transfer carries consecutive chunks. What an NPU holds in a pass is consecutive where the layout
    /// follows the pass, and where all-gather turns back the way of the reduce-scatter one layout follows
    /// both.
    pub fn layout(&self, rails: &[Rail]) -> (Vec<u8>, u64) {
        let against: Vec<u8> = self.all_gather.iter().rev().copied().collect();
        let layouts = [self.reduce_scatter.clone(), against].into_iter();
        let counted = layouts.filter(|layout| !layout.is_empty()).map(|layout| {
            let transfers = self.transfers(rails, &layout);
            (layout, transfers)
        });
        counted
            .min_by_key(|&(_, transfers)| transfers)
            .unwrap_or_default()
    }

    fn transfers(&self, rails: &[Rail], layout: &[u8]) -> u64 {
        let npus: u64 = rails.iter().map(|rail| u64::from(rail.size)).product();
        let rails_of_stages = self.rails().zip(self.ranges(rails, layout));
        let stages = rails_of_stages.map(|(rail, ranges)| {
            let rail = &rails[usize::from(rail)];
            let (moves, blocks) = rail.moves();
            npus / u64::from(rail.size) * ranges.of(moves, blocks)
        });
        stages.sum()
    }

    /// Returns the ranges of each operation under a layout, first to last.
    pub fn ranges<'a>(
        &'a self,
        rails: &'a [Rail],
        layout: &'a [u8],
    ) -> impl Iterator<Item = Ranges> + 'a {
        let sums = self.reduce_scatter.iter().enumerate();
        let sums = sums.map(|(i, &rail)| (&self.reduce_scatter[i + 1..], rail));
        let copies = self.all_gather.iter().enumerate();
        let copies = copies.map(|(i, &rail)| (&self.all_gather[..i], rail));
        let stages = sums.chain(copies);
        stages.map(|(free, rail)| Ranges::new(rails, layout, free, rail))
    }
}

/// How many ranges of consecutive chunks an operation's messages consist of. A transfer of a plan carries one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranges {
    /// Ranges of one block, or of all blocks of a message if they are neighbours.
    times: u64,
    /// Whether neighbouring blocks are one range.
    joins: bool,
}

impl Ranges {
    /// Of a pass along `rail`, where chunks with every value of the `free` digits go together.
    fn new(rails: &[Rail], layout: &[u8], free: &[u8], rail: u8) -> Self {
        let mut out = Self {
            times: 1,
            joins: true,
        };
        // Whether all digits below have every value, so that a digit's neighbouring values are one range.
        let mut is_whole = true;
        for &digit in layout.iter().rev() {
            if digit == rail {
                out.joins = is_whole;
                is_whole = false;
            } else if !free.contains(&digit) {
                is_whole = false;
            } else if !is_whole {
                out.times *= u64::from(rails[usize::from(digit)].size);
            }
        }
        out
    }

    /// Returns the ranges of so many messages that carry so many blocks together.
    pub fn of(self, messages: u64, blocks: u64) -> u64 {
        self.times * if self.joins { messages } else { blocks }
    }
}

/// Splits bytes into `chunks` lanes' sizes that differ by one at most.
///
/// # Source
/// Themis, section 4.1: the splitter.
pub(crate) fn split(bytes: u64, chunks: usize) -> Vec<u64> {
    let piece = |i: u64| fit::<u64, _>(u128::from(bytes) * u128::from(i) / chunks as u128);
    (0..chunks as u64)
        .map(|i| piece(i + 1) - piece(i))
        .collect()
}

//! How the states of one component are laid out: which runs of chunks are one state at each NPU.

use super::structure::Record;
use crate::collective::{Demand, NpuSet};
use crate::id::NpuId;

/// Segments: runs of chunks that every transfer into or out of an NPU carries whole, so that one
/// state stands for all of them.
pub(super) enum Layout {
    /// One segment per NPU; segment i is NPU i's.
    Whole,
    /// A bit per NPU and chunk, set where a segment starts; and the count of segments before each
    /// word of bits.
    Cut {
        words: usize,
        bits: Vec<u64>,
        before: Vec<u32>,
        starts: Vec<u32>,
    },
}

/// A run of chunks of one demand, relative to the component's first chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) demand: u32,
}

/// The runs of equal demand among a component's chunks.
pub(super) fn runs(demand: &[u32]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (i, &demand) in demand.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if run.demand == demand => run.end += 1,
            _ => runs.push(Run {
                start: i as u32,
                end: i as u32 + 1,
                demand,
            }),
        }
    }
    runs
}

impl Layout {
    /// The coarsest layout for the transfers of a component of `length` chunks from `first` on; or,
    /// where `finest`, one that cuts at every chunk where any transfer starts or ends.
    pub(super) fn new(
        records: &[Record],
        (first, length): (u32, u32),
        runs: &[Run],
        demands: &[Demand],
        npus: usize,
        finest: bool,
    ) -> Self {
        let whole = |record: &Record| record.count == length;
        if runs.len() == 1 && records.iter().all(whole) {
            return Layout::Whole;
        }
        let words = (length as usize + 1).div_ceil(64);
        let mut bits = vec![0u64; words * npus];
        let mut cut = |npu: u32, at: u32| {
            bits[npu as usize * words + at as usize / 64] |= 1 << (at % 64);
        };
        for npu in 0..npus as u32 {
            cut(npu, 0);
        }
        for record in records {
            let start = record.chunk - first;
            for npu in [record.src, record.dst] {
                cut(npu, start);
                cut(npu, start + record.count);
            }
        }
        for pair in runs.windows(2) {
            let (left, right) = (
                &demands[pair[0].demand as usize],
                &demands[pair[1].demand as usize],
            );
            let all = |demand: &Demand| demand.holders == NpuSet::All;
            if left.reduced != right.reduced || all(left) != all(right) {
                (0..npus as u32).for_each(|npu| cut(npu, pair[1].start));
            }
        }
        for run in runs {
            let holders: &[NpuId] = match &demands[run.demand as usize].holders {
                NpuSet::All => &[],
                some => some.members(&[]),
            };
            for holder in holders {
                cut(holder.0, run.start);
                cut(holder.0, run.end);
            }
        }
        if finest {
            let mut every = vec![0u64; words];
            for own in bits.chunks(words) {
                every.iter_mut().zip(own).for_each(|(all, own)| *all |= own);
            }
            bits.chunks_mut(words)
                .for_each(|own| own.copy_from_slice(&every));
        }
        Self::index(words, bits, length)
    }

    fn index(words: usize, mut bits: Vec<u64>, length: u32) -> Self {
        let mut before = Vec::with_capacity(bits.len() + 1);
        let mut starts = Vec::new();
        for (i, word) in bits.iter_mut().enumerate() {
            let base = (i % words * 64) as u32;
            if length / 64 == base / 64 {
                *word &= !(1 << (length % 64)); // the end starts nothing
            }
            before.push(starts.len() as u32);
            let mut left = *word;
            while left != 0 {
                starts.push(base + left.trailing_zeros());
                left &= left - 1;
            }
        }
        before.push(starts.len() as u32);
        Layout::Cut {
            words,
            bits,
            before,
            starts,
        }
    }

    /// How many segments.
    pub(super) fn len(&self, npus: usize) -> usize {
        match self {
            Layout::Whole => npus,
            Layout::Cut { starts, .. } => starts.len(),
        }
    }

    /// Segments of an NPU that start before chunk `at` (relative), counted from the first NPU's
    /// first; where `at` is the start of one, that is its position.
    #[inline]
    pub(super) fn position(&self, npu: u32, at: u32) -> usize {
        match self {
            Layout::Whole => npu as usize + usize::from(at > 0),
            Layout::Cut {
                words,
                bits,
                before,
                ..
            } => {
                let word = npu as usize * words + at as usize / 64;
                let below = bits[word] & ((1u64 << (at % 64)) - 1);
                before[word] as usize + below.count_ones() as usize
            }
        }
    }

    /// First chunk (relative) of a segment.
    #[inline]
    pub(super) fn start(&self, segment: usize) -> u32 {
        match self {
            Layout::Whole => 0,
            Layout::Cut { starts, .. } => starts[segment],
        }
    }

    /// Positions of the segments of an NPU that share a chunk with `start..end` (relative).
    pub(super) fn overlapping(&self, npu: u32, start: u32, end: u32) -> std::ops::Range<usize> {
        let first = self.position(npu, start + 1) - 1;
        first..self.position(npu, end)
    }
}

//! How the states of one component are laid out: which runs of chunks are one state at each NPU.

use super::structure::Record;
use crate::collective::{Demand, NpuSet};
use crate::id::{NpuId, narrow};

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

/// Returns the runs of equal demand among a component's chunks.
pub(super) fn runs(demand: &[u32]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (i, &demand) in demand.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if run.demand == demand => run.end += 1,
            _ => runs.push(Run {
                start: narrow(i),
                end: narrow(i) + 1,
                demand,
            }),
        }
    }
    runs
}

impl Layout {
    /// Returns the coarsest layout for the transfers of a component of `length` chunks from `first` on; or, where
    /// `finest`, one that cuts at every chunk where any transfer starts or ends.
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
        for npu in 0..narrow(npus) {
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
                (0..narrow(npus)).for_each(|npu| cut(npu, pair[1].start));
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
            let base = narrow(i % words * 64);
            if length / 64 == base / 64 {
                *word &= !(1 << (length % 64)); // the end starts nothing
            }
            before.push(narrow(starts.len()));
            let mut left = *word;
            while left != 0 {
                starts.push(base + left.trailing_zeros());
                left &= left - 1;
            }
        }
        before.push(narrow(starts.len()));
        Layout::Cut {
            words,
            bits,
            before,
            starts,
        }
    }

    /// Returns how many segments.
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

    /// Returns first chunk (relative) of a segment.
    #[inline]
    pub(super) fn start(&self, segment: usize) -> u32 {
        match self {
            Layout::Whole => 0,
            Layout::Cut { starts, .. } => starts[segment],
        }
    }

    /// Returns the positions of the segments of an NPU that share a chunk with `start..end` (relative).
    pub(super) fn overlapping(&self, npu: u32, start: u32, end: u32) -> std::ops::Range<usize> {
        let first = self.position(npu, start + 1) - 1;
        first..self.position(npu, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{Collective, CollectiveKind};
    use crate::units::Seed;

    const NPUS: usize = 3;

    #[test]
    fn runs_are_as_long_as_they_can_be() {
        let found: Vec<(u32, u32, u32)> = runs(&[4, 4, 0, 4, 4, 4])
            .iter()
            .map(|run| (run.start, run.end, run.demand))
            .collect();
        assert_eq!(found, [(0, 2, 4), (2, 3, 0), (3, 6, 4)]);
    }

    /// Looks up every place of a layout, beside the chunks at which segments of each NPU start.
    fn compare(layout: &Layout, starts: &[Vec<u32>], length: u32) {
        let total: usize = starts.iter().map(Vec::len).sum();
        assert_eq!(layout.len(NPUS), total);
        let mut first = 0;
        for (npu, own) in starts.iter().enumerate() {
            for (i, &start) in own.iter().enumerate() {
                assert_eq!(layout.start(first + i), start);
            }
            for at in 0..=length {
                let below = own.iter().filter(|&&start| start < at).count();
                assert_eq!(layout.position(narrow(npu), at), first + below);
            }
            for start in 0..length {
                let holding = own.iter().rposition(|&each| each <= start).unwrap();
                for end in start + 1..=length {
                    let last = own.iter().filter(|&&each| each < end).count();
                    assert_eq!(
                        layout.overlapping(narrow(npu), start, end),
                        first + holding..first + last
                    );
                }
            }
            first += own.len();
        }
    }

    #[test]
    fn segments_agree_with_lists_of_their_starts() {
        let npus: Vec<NpuId> = (0..NPUS).map(NpuId::from).collect();
        let demands = Collective::new(CollectiveKind::AllReduce, npus, 1000, None)
            .unwrap()
            .demands();
        let mut seed = Seed(7);
        for length in [1, 2, 5, 63, 64, 65, 127, 128, 130] {
            for finest in [false, true] {
                let first = narrow(seed.below(9));
                let mut starts = vec![vec![0]; NPUS];
                let records: Vec<Record> = (0..seed.below(6))
                    .map(|_| {
                        let chunk = narrow(seed.below(length as usize));
                        let count = 1 + narrow(seed.below((length - chunk) as usize));
                        let src = narrow(seed.below(NPUS));
                        let dst = (src + 1 + narrow(seed.below(NPUS - 1))) % narrow(NPUS);
                        let touched = if finest {
                            vec![0, 1, 2]
                        } else {
                            vec![src, dst]
                        };
                        for npu in touched {
                            starts[npu as usize].extend([chunk, chunk + count]);
                        }
                        Record::of(first + chunk, count, (src, dst))
                    })
                    .collect();
                for own in &mut starts {
                    own.retain(|&start| start < length);
                    own.sort_unstable();
                    own.dedup();
                }
                let runs = runs(&vec![0; length as usize]);
                let span = (first, length);
                let layout = Layout::new(&records, span, &runs, &demands, NPUS, finest);
                let is_whole = records.iter().all(|record| record.count == length);
                assert_eq!(matches!(layout, Layout::Whole), is_whole);
                compare(&layout, &starts, length);
            }
        }
    }
}

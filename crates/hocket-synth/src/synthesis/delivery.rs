//! What every synthesizer solves: chunks that must spread from their holders to all who want them.

use crate::plan::Lists;

/// Chunks, who holds each at the start, and who must hold it at the end.
///
/// Sums are spreads as well, turned round in space and time: what flows together from everybody to
/// one place is, mirrored, what spreads from that place to everybody (TACOS, section VII-A).
#[derive(Clone, Debug)]
#[doc(alias = "Spread")]
pub struct Delivery {
    /// Number of NPUs.
    pub npus: usize,
    /// Different sizes of chunks, in bytes.
    pub sizes: Vec<u64>,
    /// Position in `sizes` of each chunk.
    pub class: Vec<u32>,
    /// Who holds each chunk, and from what time on, in picoseconds.
    pub holders: Vec<(u32, u64)>,
    /// Who else holds a chunk from the start: (chunk, NPU).
    pub others: Vec<(u32, u32)>,
    /// Who wants each chunk, besides those who hold it.
    pub wanted: Wanted,
}

/// NPUs that want each chunk.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Every NPU wants every chunk.
    All,
    /// The NPUs listed, for each chunk, ascending.
    Listed(Lists<u32>),
}

impl Delivery {
    /// Returns the number of chunks.
    pub fn chunks(&self) -> usize {
        self.class.len()
    }

    /// Bits of a chunk, a row for each NPU: those that it holds at the start.
    pub(super) fn held(&self) -> Bits {
        let mut bits = Bits::new(self.npus, self.chunks());
        for (chunk, &(npu, from)) in self.holders.iter().enumerate() {
            if from == 0 {
                bits.set(npu as usize, chunk);
            }
        }
        for &(chunk, npu) in &self.others {
            bits.set(npu as usize, chunk as usize);
        }
        bits
    }

    /// Bits of a chunk, a row for each NPU: those that it wants and does not hold.
    pub(super) fn missing(&self) -> Bits {
        let mut bits = Bits::new(self.npus, self.chunks());
        match &self.wanted {
            Wanted::All => bits.fill(self.chunks()),
            Wanted::Listed(wanted) => {
                for (chunk, npus) in wanted.iter().enumerate() {
                    npus.iter().for_each(|&npu| bits.set(npu as usize, chunk));
                }
            }
        }
        for (chunk, &(npu, _)) in self.holders.iter().enumerate() {
            bits.clear(npu as usize, chunk);
        }
        for &(chunk, npu) in &self.others {
            bits.clear(npu as usize, chunk as usize);
        }
        bits
    }
}

/// A matrix of bits, rows packed in words.
#[derive(Clone, Debug)]
pub(super) struct Bits {
    pub(super) words: Vec<u64>,
    /// Words of a row.
    pub(super) width: usize,
}

impl Bits {
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        let width = columns.div_ceil(64);
        Self {
            words: vec![0; rows * width],
            width,
        }
    }

    fn fill(&mut self, columns: usize) {
        self.words.fill(u64::MAX);
        let rest = columns % 64;
        if rest > 0 {
            for row in self.words.chunks_exact_mut(self.width) {
                row[self.width - 1] = (1 << rest) - 1;
            }
        }
    }

    #[inline]
    pub(super) fn row(&self, row: usize) -> &[u64] {
        &self.words[row * self.width..(row + 1) * self.width]
    }

    #[inline]
    pub(super) fn set(&mut self, row: usize, column: usize) {
        self.words[row * self.width + column / 64] |= 1 << (column % 64);
    }

    #[inline]
    pub(super) fn clear(&mut self, row: usize, column: usize) {
        self.words[row * self.width + column / 64] &= !(1 << (column % 64));
    }

    #[inline]
    pub(super) fn get(&self, row: usize, column: usize) -> bool {
        self.words[row * self.width + column / 64] >> (column % 64) & 1 == 1
    }

    pub(super) fn count(&self) -> u64 {
        self.words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }
}

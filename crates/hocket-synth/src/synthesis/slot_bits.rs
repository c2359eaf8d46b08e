//! Bits laid out for matching slot by slot: what all NPUs look at in a slot lies together.

use crate::id::{fit, narrow};

/// Words of a line.
const WORDS: usize = 8;
/// Chunks of a line.
const CHUNKS: usize = 64 * WORDS;

/// A bit for each of 512 chunks.
pub(super) type Line = [u64; WORDS];

/// A bit for each NPU and chunk. Lines of the same chunks lie side by side, NPU after NPU, so that going
/// through all NPUs with the same chunks reads memory from one end to the other.
#[derive(Clone, Debug)]
pub(super) struct SlotBits {
    lines: Vec<Line>,
    npus: usize,
}

impl SlotBits {
    pub(super) fn new(npus: usize, chunks: usize) -> Self {
        Self {
            lines: vec![[0; WORDS]; npus * chunks.div_ceil(CHUNKS)],
            npus,
        }
    }

    /// Returns every NPU with every chunk.
    pub(super) fn full(npus: usize, chunks: usize) -> Self {
        let mut full = Self::new(npus, chunks);
        for (block, lines) in full.lines.chunks_mut(npus.max(1)).enumerate() {
            let mut line = [0; WORDS];
            for (word, bits) in line.iter_mut().enumerate() {
                let first = block * CHUNKS + word * 64;
                *bits = match chunks.saturating_sub(first) {
                    0 => 0,
                    rest if rest < 64 => (1 << rest) - 1,
                    _ => u64::MAX,
                };
            }
            lines.fill(line);
        }
        full
    }

    /// Returns how many lines each NPU has.
    pub(super) fn per_npu(chunks: usize) -> usize {
        chunks.div_ceil(CHUNKS)
    }

    /// Returns how many chunks a line is of: 512, but for the last.
    pub(super) fn chunks_of(block: usize, chunks: usize) -> usize {
        (chunks - block * CHUNKS).min(CHUNKS)
    }

    #[inline]
    pub(super) fn line(&self, block: usize, npu: usize) -> &Line {
        &self.lines[block * self.npus + npu]
    }

    #[inline]
    pub(super) fn line_mut(&mut self, block: usize, npu: usize) -> &mut Line {
        &mut self.lines[block * self.npus + npu]
    }

    #[inline]
    pub(super) fn get(&self, npu: usize, chunk: u32) -> bool {
        let (block, word, bit) = place(chunk);
        self.line(block, npu)[word] & bit != 0
    }

    #[inline]
    pub(super) fn set(&mut self, npu: usize, chunk: u32) {
        let (block, word, bit) = place(chunk);
        self.line_mut(block, npu)[word] |= bit;
    }

    /// Shares NPUs out, so many to each part; of each part the lines of its NPUs, block after block.
    pub(super) fn parts(&mut self, npus: usize) -> Vec<Vec<&mut [Line]>> {
        let mut parts: Vec<Vec<&mut [Line]>> = Vec::new();
        parts.resize_with(self.npus.div_ceil(npus), Vec::new);
        for block in self.lines.chunks_mut(self.npus) {
            for (part, lines) in parts.iter_mut().zip(block.chunks_mut(npus)) {
                part.push(lines);
            }
        }
        parts
    }
}

/// Block, word and bit of a chunk.
#[inline]
pub(super) fn place(chunk: u32) -> (usize, usize, u64) {
    let chunk = chunk as usize;
    (chunk / CHUNKS, chunk / 64 % WORDS, 1 << (chunk % 64))
}

/// Returns a chunk that is in both lines of a block, from a random place on.
#[inline]
pub(super) fn common(block: usize, a: &Line, b: &Line, random: u64) -> Option<u32> {
    let any = a.iter().zip(b).fold(0, |any, (a, b)| any | (a & b));
    if any == 0 {
        return None;
    }
    let mut which = 0;
    for i in 0..WORDS {
        which |= u32::from(a[i] & b[i] != 0) << i;
    }
    let first = fit::<u32, _>((random >> 6) % WORDS as u64);
    let both = which | which << WORDS;
    let word = (first + (both >> first).trailing_zeros()) as usize % WORDS;
    let turn = (random & 63) as u32;
    let bits = (a[word] & b[word]).rotate_right(turn);
    let bit = (bits.trailing_zeros() + turn) & 63;
    Some(narrow(block * CHUNKS + word * 64) + bit)
}

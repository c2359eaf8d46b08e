//! A timetable in slots, held in little memory, and its check.

use super::network::Network;
use super::slots::{Clockwork, FEW, side_by_side};
use super::spread::{Bits, Spread};
use super::timetable::{Send, Timetable};
use crate::progress::{Interrupted, Progress};

/// What every edge carries in every slot, where all edges are alike.
///
/// Four bytes a send, and a bit for each edge and slot, where a plan takes a hundred bytes a transfer: what
/// fits in memory for tens of thousands of NPUs.
#[derive(Clone, Debug)]
pub struct SlotTable {
    rows: Vec<Row>,
    /// Slots until a chunk may be sent on.
    lag: u64,
}

/// What one NPU receives.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Chunks, slot after slot, in the order of the edges in.
    pub(super) chunks: Vec<u32>,
    /// For each slot, which of the edges in bring one.
    masks: Vec<u8>,
    /// Bytes of a slot's mask.
    width: usize,
}

impl Row {
    pub(super) fn new(chunks: usize, edges: usize) -> Self {
        Self {
            chunks: Vec::with_capacity(chunks),
            masks: Vec::new(),
            width: edges.div_ceil(8),
        }
    }

    pub(super) fn begin_slot(&mut self) {
        self.masks.resize(self.masks.len() + self.width, 0);
    }

    /// Takes a chunk over an edge in, in the slot begun last; edges in ascending order.
    pub(super) fn take(&mut self, edge: usize, chunk: u32) {
        let first = self.masks.len() - self.width;
        self.masks[first + edge / 8] |= 1 << (edge % 8);
        self.chunks.push(chunk);
    }

    fn mask(&self, slot: usize) -> &[u8] {
        let end = (slot + 1) * self.width;
        self.masks.get(slot * self.width..end).unwrap_or(&[])
    }

    /// How many chunks come in a slot.
    pub(super) fn count(&self, slot: usize) -> usize {
        self.mask(slot)
            .iter()
            .map(|byte| byte.count_ones() as usize)
            .sum()
    }

    /// Which edges in bring a chunk in a slot.
    fn edges(&self, slot: usize) -> impl Iterator<Item = usize> + '_ {
        let bytes = self.mask(slot).iter().enumerate();
        bytes.flat_map(|(i, &byte)| {
            (0..8)
                .filter(move |bit| byte >> bit & 1 == 1)
                .map(move |b| i * 8 + b)
        })
    }

    fn slots(&self) -> usize {
        self.masks.len() / self.width.max(1)
    }
}

impl SlotTable {
    pub(super) fn new(rows: Vec<Row>, lag: u64) -> Self {
        Self { rows, lag }
    }

    /// Slots in which something is sent.
    pub fn slots(&self) -> u64 {
        self.rows.iter().map(Row::slots).max().unwrap_or(0) as u64
    }

    /// How many sends.
    pub fn sends(&self) -> u64 {
        self.rows.iter().map(|row| row.chunks.len() as u64).sum()
    }

    /// The same as sends.
    pub(super) fn timetable(&self, network: &Network, clockwork: Clockwork) -> Timetable {
        let mut sends = Vec::with_capacity(self.sends() as usize);
        let mut next = vec![0; self.rows.len()];
        let mut end = 0;
        for slot in 0..self.slots() as usize {
            let start = slot as u64 * clockwork.length;
            for (npu, row) in self.rows.iter().enumerate() {
                for at in row.edges(slot) {
                    let edge = network.in_edges(npu)[at];
                    let chunk = row.chunks[next[npu]];
                    next[npu] += 1;
                    sends.push(Send { chunk, edge, start });
                    end = start + clockwork.delay;
                }
            }
        }
        Timetable { sends, end }
    }

    /// Plays the table slot by slot: everything is held where it is sent from, comes once, and comes to
    /// everybody. That no edge carries two chunks in a slot is in the form of the table. Gives what is
    /// wrong.
    ///
    /// # Complexity
    /// O(sends), shared out among `threads`.
    pub(super) fn check(
        &self,
        network: &Network,
        spread: &Spread,
        threads: usize,
        progress: &mut dyn Progress,
    ) -> Result<Result<(), String>, Interrupted> {
        let mut have = spread.held();
        let width = have.width;
        let threads = if self.rows.len() < FEW {
            1
        } else {
            threads.max(1)
        };
        let per_thread = self.rows.len().div_ceil(threads).max(1);
        let mut players: Vec<Player<'_>> = (0..)
            .zip(self.rows.chunks(per_thread))
            .map(|(part, rows)| Player {
                network,
                got: Bits::new(rows.len(), spread.chunks()),
                next: vec![0; rows.len()],
                shown: vec![0; rows.len()],
                first: part * per_thread,
                wrong: None,
                rows,
            })
            .collect();
        let total = self.sends();
        let mut come = 0;
        for slot in 0..self.slots() as usize {
            come += side_by_side(&mut players, |player| player.play(&have, slot));
            if let Some(shown) = (slot + 1).checked_sub(self.lag as usize) {
                let rows = have.words.chunks_mut(per_thread * width);
                let mut pairs: Vec<_> = players.iter_mut().zip(rows).collect();
                side_by_side(&mut pairs, |(player, have)| player.show(have, width, shown));
            }
            if !progress.report("checking", come, total) {
                return Err(Interrupted);
            }
        }
        let wrong = players.into_iter().find_map(|player| player.wrong);
        let wanted = spread.missing().count();
        Ok(match wrong {
            Some(wrong) => Err(wrong),
            None if come != wanted => Err(format!(
                "{come} chunks come to somebody who lacks them, not {wanted}"
            )),
            None => Ok(()),
        })
    }
}

/// The NPUs that one thread checks.
struct Player<'a> {
    network: &'a Network,
    rows: &'a [Row],
    got: Bits,
    next: Vec<usize>,
    shown: Vec<usize>,
    first: usize,
    wrong: Option<String>,
}

impl Player<'_> {
    /// Receives what comes in a slot; gives how many chunks.
    fn play(&mut self, have: &Bits, slot: usize) -> u64 {
        let mut come = 0;
        for (i, row) in self.rows.iter().enumerate() {
            let npu = self.first + i;
            for at in row.edges(slot) {
                let edge = self.network.in_edges(npu)[at];
                let src = self.network.edges()[edge as usize].src.index();
                let chunk = row.chunks[self.next[i]];
                self.next[i] += 1;
                come += 1;
                let why = if !have.get(src, chunk as usize) {
                    format!("NPU {src} does not hold chunk {chunk} in slot {slot}")
                } else if self.got.get(i, chunk as usize) {
                    format!("chunk {chunk} comes to NPU {npu} twice, in slot {slot} again")
                } else if have.get(npu, chunk as usize) {
                    format!("chunk {chunk} comes to NPU {npu}, which holds it, in slot {slot}")
                } else {
                    self.got.set(i, chunk as usize);
                    continue;
                };
                self.wrong.get_or_insert(why);
            }
        }
        come
    }

    /// What came in a slot may be sent on.
    fn show(&mut self, have: &mut [u64], width: usize, slot: usize) -> u64 {
        for (i, row) in self.rows.iter().enumerate() {
            let count = row.count(slot);
            for &chunk in &row.chunks[self.shown[i]..self.shown[i] + count] {
                have[i * width + chunk as usize / 64] |= 1 << (chunk % 64);
            }
            self.shown[i] += count;
        }
        0
    }
}

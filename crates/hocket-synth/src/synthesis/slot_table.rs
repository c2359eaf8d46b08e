//! A timetable in slots, held in little memory, and its check.

use super::delivery::Delivery;
use super::network::UnwoundNetwork;
use super::slot_bits::{SlotBits, place};
use super::slots::{Clockwork, side_by_side};
use super::timetable::{Send, Timetable};
use crate::id::{fit, narrow};
use crate::progress::{Interrupted, Progress};

/// What every edge carries in every slot, where all edges are alike.
///
/// Four bytes a send, and a bit for each edge and slot, where a plan takes a hundred bytes a transfer: what
/// fits in memory for tens of thousands of NPUs.
#[derive(Clone, Debug)]
pub struct SlotTable {
    parts: Vec<Part>,
    /// Of the slots in which something is sent, ascending; others are left out.
    numbers: Vec<u64>,
    /// Slots until a chunk may be sent on.
    lag: u64,
}

/// What a stretch of NPUs receives.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The first of the NPUs.
    pub(super) first: usize,
    /// Bytes of a mask of each NPU's edges in.
    widths: Vec<u32>,
    slots: Vec<Slot>,
}

/// What comes in a slot: for each NPU which of its edges in bring a chunk, and the chunks in that order.
#[derive(Clone, Debug)]
struct Slot {
    masks: Vec<u8>,
    chunks: Vec<u32>,
}

impl Part {
    pub(super) fn new(network: &UnwoundNetwork, first: usize, npus: usize) -> Self {
        let width = |i: usize| narrow(network.in_edges(first + i).len().div_ceil(8));
        Self {
            first,
            widths: (0..npus).map(width).collect(),
            slots: Vec::new(),
        }
    }

    pub(super) fn npus(&self) -> usize {
        self.widths.len()
    }

    /// Appends a slot: `receive` takes what comes to one of the NPUs, by its position, over its edges in.
    /// Gives how many chunks.
    pub(super) fn fill(
        &mut self,
        network: &UnwoundNetwork,
        mut receive: impl FnMut(usize, &[u32], &mut Receipt<'_>),
    ) -> u64 {
        let bytes = self.widths.iter().map(|&width| width as usize).sum();
        let mut masks = vec![0; bytes];
        // About as many as in the slot before.
        let last = self.slots.last().map_or(0, |slot| slot.chunks.len());
        let mut chunks = Vec::with_capacity(last + last / 32);
        let mut rest = &mut masks[..];
        for (i, &width) in self.widths.iter().enumerate() {
            let (mask, others) = rest.split_at_mut(width as usize);
            let chunks = &mut chunks;
            let mut receipt = Receipt { mask, chunks };
            receive(i, network.in_edges(self.first + i), &mut receipt);
            rest = others;
        }
        chunks.shrink_to_fit();
        let taken = chunks.len() as u64;
        self.slots.push(Slot { masks, chunks });
        taken
    }

    /// Drops the slot appended last.
    pub(super) fn drop_last(&mut self) {
        self.slots.pop();
    }

    /// Goes through what comes in a slot: position of the NPU, of its edge in, and the chunk.
    #[inline]
    pub(super) fn each(&self, slot: usize, mut look: impl FnMut(usize, usize, u32)) {
        let Some(Slot { masks, chunks }) = self.slots.get(slot) else {
            return;
        };
        let mut chunks = chunks.iter();
        let mut begin = 0;
        for (i, &width) in self.widths.iter().enumerate() {
            for at in 0..width as usize {
                let mut mask = masks[begin + at];
                while mask != 0 {
                    let edge = at * 8 + mask.trailing_zeros() as usize;
                    mask &= mask - 1;
                    let chunk = chunks.next().expect("a chunk for each bit");
                    look(i, edge, *chunk);
                }
            }
            begin += width as usize;
        }
    }
}

/// What comes to one NPU in a slot.
pub(super) struct Receipt<'a> {
    mask: &'a mut [u8],
    chunks: &'a mut Vec<u32>,
}

impl Receipt<'_> {
    /// Takes a chunk over an edge in, by its position; positions ascend.
    #[inline]
    pub(super) fn take(&mut self, at: usize, chunk: u32) {
        self.mask[at / 8] |= 1 << (at % 8);
        self.chunks.push(chunk);
    }
}

impl SlotTable {
    /// `numbers` of the slots that the parts list.
    pub(super) fn new(parts: Vec<Part>, numbers: Vec<u64>, lag: u64) -> Self {
        Self {
            parts,
            numbers,
            lag,
        }
    }

    /// Slots from the first to the last in which something is sent.
    pub fn slots(&self) -> u64 {
        self.numbers.last().map_or(0, |last| last + 1)
    }

    /// Number of sends.
    pub fn sends(&self) -> u64 {
        let slots = self.parts.iter().flat_map(|part| &part.slots);
        slots.map(|slot| slot.chunks.len() as u64).sum()
    }

    /// Returns the same as sends.
    pub(super) fn timetable(&self, network: &UnwoundNetwork, clockwork: Clockwork) -> Timetable {
        let mut sends = Vec::with_capacity(fit(self.sends()));
        for (slot, number) in self.numbers.iter().enumerate() {
            let start = number * clockwork.length;
            for part in &self.parts {
                part.each(slot, |i, at, chunk| {
                    let edge = network.in_edges(part.first + i)[at];
                    sends.push(Send { chunk, edge, start });
                });
            }
        }
        Timetable {
            sends,
            end: clockwork.end(self.slots()),
        }
    }

    /// Plays the table slot by slot: everything is held where it is sent from, comes once, and comes to
    /// everybody. That no edge carries two chunks in a slot is in the form of the table. Gives what is
    /// wrong.
    ///
    /// # Complexity
    /// O(sends), shared out among the threads that the table was made by.
    pub(super) fn check(
        &self,
        network: &UnwoundNetwork,
        spread: &Delivery,
        progress: &mut dyn Progress,
    ) -> Result<Result<(), String>, Interrupted> {
        let mut have = SlotBits::new(spread.npus, spread.chunks());
        for (chunk, &(npu, _)) in (0..).zip(&spread.holders) {
            have.set(npu as usize, chunk);
        }
        let per_part = self.parts.first().map_or(1, Part::npus);
        let mut players: Vec<Player<'_>> = self
            .parts
            .iter()
            .map(|part| Player {
                network,
                part,
                got: SlotBits::new(part.npus(), spread.chunks()),
                wrong: None,
            })
            .collect();
        let total = self.sends();
        let (mut come, mut shown) = (0, 0);
        for (slot, &number) in self.numbers.iter().enumerate() {
            while shown < slot && self.numbers[shown] + self.lag <= number {
                let parts = have.parts(per_part);
                let mut pairs: Vec<_> = self.parts.iter().zip(parts).collect();
                side_by_side(&mut pairs, |(part, have)| {
                    part.each(shown, |i, _, chunk| {
                        let (block, word, bit) = place(chunk);
                        have[block][i][word] |= bit;
                    });
                    0
                });
                shown += 1;
            }
            come += side_by_side(&mut players, |player| player.play(&have, slot));
            if !progress.report("checking", come, total) {
                return Err(Interrupted);
            }
        }
        let wrong = players.into_iter().find_map(|player| player.wrong);
        let wanted = (spread.npus as u64 - 1) * spread.chunks() as u64;
        Ok(match wrong {
            Some(wrong) => Err(wrong),
            None if come != wanted => Err(format!(
                "{come} chunks come to somebody who lacks them, not {wanted}"
            )),
            None => Ok(()),
        })
    }
}

/// Checks what the NPUs of a part receive.
struct Player<'a> {
    network: &'a UnwoundNetwork,
    part: &'a Part,
    got: SlotBits,
    wrong: Option<String>,
}

impl Player<'_> {
    /// Receives what comes in a slot; gives how many chunks.
    fn play(&mut self, have: &SlotBits, slot: usize) -> u64 {
        let mut come = 0;
        self.part.each(slot, |i, at, chunk| {
            let npu = self.part.first + i;
            let edge = self.network.in_edges(npu)[at];
            let src = self.network.edges()[edge as usize].src.index();
            come += 1;
            let why = if !have.get(src, chunk) {
                format!("NPU {src} does not hold chunk {chunk} in slot {slot}")
            } else if self.got.get(i, chunk) {
                format!("chunk {chunk} comes to NPU {npu} twice, in slot {slot} again")
            } else if have.get(npu, chunk) {
                format!("chunk {chunk} comes to NPU {npu}, which holds it, in slot {slot}")
            } else {
                self.got.set(i, chunk);
                return;
            };
            self.wrong.get_or_insert(why);
        });
        come
    }
}

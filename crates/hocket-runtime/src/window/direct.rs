//! Collectives on arrays that lie in memory which all ranks map: nothing is put into blocks.
//!
//! Of an all-reduce, each rank sums its part of all arrays, and stores the sum into all of them. Of other kinds, each
//! takes what it gets out of the arrays of the others. Ranks meet before and after.

use std::sync::{Arc, Weak};

use hocket_base::id::{fit, narrow};
use hocket_plan::collective::CollectiveKind;

use super::{Exchange, Meeting, SMALL, Window};
use crate::error::Failure;
use crate::memory::Mapping;
use crate::number::{Reduction, combine_all, divide};

/// Arrays in shared memory begin at multiples of this, if they are as long: a large page.
const LARGE: usize = 2 << 20;
/// Bytes that are summed before they are stored.
const STRETCH: usize = 32 << 10;
/// Arrays that together are larger than this go past the caches when they are stored.
const CACHED: usize = 512 << 20;

/// Memory with a part for each rank, that all of them map.
#[derive(Debug)]
pub struct Board {
    memory: Mapping,
    stride: usize,
    rank: usize,
    bytes: usize,
}

impl Board {
    /// Returns the bytes from one rank's part to the next.
    pub(crate) fn stride(bytes: usize) -> usize {
        let step = if bytes < LARGE { 4096 } else { LARGE };
        bytes.max(1).next_multiple_of(step)
    }

    pub(crate) fn new(memory: Mapping, rank: usize, bytes: usize) -> Self {
        let stride = Self::stride(bytes);
        Self {
            memory,
            stride,
            rank,
            bytes,
        }
    }

    /// This rank's part.
    pub fn own(&self) -> *mut u8 {
        self.of(self.rank, 0)
    }

    /// Returns the bytes of each rank's part.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn of(&self, rank: usize, offset: usize) -> *mut u8 {
        // SAFETY: the memory has a part for each rank.
        unsafe { self.memory.base().add(rank * self.stride + offset) }
    }
}

/// Boards of a group, by number. A rank forgets one when its program has no array there any more.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    boards: Vec<(u32, Weak<Board>)>,
    last: u32,
}

/// A place on a board; number 0 stands for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spot {
    board: u32,
    offset: u64,
}

/// Where a rank's arrays are in memory that all see: what it reads, or else writes, and what an all-reduce writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    input: Spot,
    output: Spot,
}

impl Places {
    const BYTES: usize = 24;

    /// Returns whether the rank has what it needs there.
    pub(crate) fn are_known(&self) -> bool {
        self.input.board > 0
    }

    /// Returns whether all have theirs on the same boards: then all still know these.
    pub(crate) fn suit(&self, all: &[Places]) -> bool {
        let boards = |places: &Places| (places.input.board, places.output.board);
        all.iter().all(|other| boards(other) == boards(self))
    }

    pub(crate) fn encode(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        for (spot, out) in [self.input, self.output]
            .iter()
            .zip(out.chunks_exact_mut(12))
        {
            out[..4].copy_from_slice(&spot.board.to_le_bytes());
            out[4..].copy_from_slice(&spot.offset.to_le_bytes());
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let spot = |at: usize| Spot {
            board: u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")),
            offset: u64::from_le_bytes(bytes[at + 4..at + 12].try_into().expect("8 bytes")),
        };
        Self {
            input: spot(0),
            output: spot(12),
        }
    }
}

/// Returns whether arrays of such a call are used where they are, if they are where all see them.
pub(super) fn suits(exchange: &Exchange) -> bool {
    exchange.bytes > SMALL
        && !matches!(
            exchange.kind,
            CollectiveKind::Reduce | CollectiveKind::Custom
        )
}

impl Shelf {
    /// Puts a board on it; all ranks do so in the same order.
    pub(crate) fn put(&mut self, board: Board) -> Arc<Board> {
        let board = Arc::new(board);
        self.boards.retain(|(_, each)| each.strong_count() > 0);
        self.last += 1;
        self.boards.push((self.last, Arc::downgrade(&board)));
        board
    }

    fn board(&self, number: u32) -> Arc<Board> {
        let (_, board) = self
            .boards
            .iter()
            .find(|(each, _)| *each == number)
            .expect("the caller's array lies on it");
        board.upgrade().expect("likewise")
    }

    /// Where some memory of the caller is.
    fn find(&self, start: *const u8, bytes: usize) -> Spot {
        for (number, board) in &self.boards {
            let Some(board) = board.upgrade() else {
                continue;
            };
            let offset = (start as usize).wrapping_sub(board.own() as usize);
            if offset < board.bytes && bytes <= board.bytes - offset {
                return Spot {
                    board: *number,
                    offset: offset as u64,
                };
            }
        }
        Spot::default()
    }

    /// Where a call's arrays are; none, if they cannot be used there.
    pub(super) fn places(&self, exchange: &Exchange, ranks: usize) -> Places {
        use CollectiveKind::*;
        if self.boards.is_empty() || !suits(exchange) {
            return Places::default();
        }
        let (whole, part) = (exchange.bytes, exchange.bytes / ranks);
        let rank = exchange.rank;
        let (input, output) = (exchange.input as usize, exchange.output as usize);
        let is_root = rank == exchange.root;
        // Bytes that it reads and writes, and where it may read what it writes.
        let (reads, writes, same) = match exchange.kind {
            AllReduce => (whole, whole, output),
            ReduceScatter => (whole, part, output.wrapping_sub(rank * part)),
            AllGather => (part, whole, output + rank * part),
            Gather => (part, if is_root { whole } else { 0 }, output + rank * part),
            AllToAll => (whole, whole, usize::MAX),
            Broadcast if is_root => (whole, whole, output),
            Scatter if is_root => (whole, part, output.wrapping_sub(rank * part)),
            Broadcast => (0, whole, usize::MAX),
            Scatter => (0, part, usize::MAX),
            Reduce | Custom => return Places::default(),
        };
        let overlap = reads > 0 && input < output + writes && output < input + reads;
        if overlap && input != same {
            return Places::default();
        }
        let read = match reads {
            0 => self.find(exchange.output, writes),
            _ => self.find(exchange.input, reads),
        };
        let mut places = Places {
            input: read,
            output: Spot::default(),
        };
        if exchange.kind == AllReduce {
            places.output = self.find(exchange.output, writes);
            if places.output.board == 0 {
                return Places::default();
            }
        }
        places
    }
}

impl Window {
    /// Runs a collective on arrays that all ranks see, when all have come.
    pub(super) fn run_direct(
        &mut self,
        exchange: &Exchange,
        all: &[Places],
        meeting: &mut Meeting<'_>,
    ) -> Result<(), Failure> {
        let board = |spot: Spot| self.shelf.board(spot.board);
        let inputs = board(all[self.rank].input);
        let input = |rank: usize| inputs.of(rank, fit(all[rank].input.offset)).cast_const();
        if exchange.kind == CollectiveKind::AllReduce {
            let outputs = board(all[self.rank].output);
            let output = |rank: usize| outputs.of(rank, fit(all[rank].output.offset));
            let ranks = 0..self.ranks;
            let (inputs, outputs): (Vec<_>, Vec<_>) =
                ranks.map(|rank| (input(rank), output(rank))).unzip();
            // SAFETY: all arrays are as long, and each rank writes its part alone.
            unsafe { self.push(exchange, &inputs, &outputs) };
        } else {
            // SAFETY: nobody writes what others read before all have met again.
            unsafe { self.pull(exchange, &input) };
        }
        self.tick = self.tick.wrapping_add(1);
        self.meet(meeting)?;
        self.tick = self.tick.wrapping_add(1);
        Ok(())
    }

    /// Sums this rank's part of all inputs into all outputs.
    unsafe fn push(&self, exchange: &Exchange, inputs: &[*const u8], outputs: &[*mut u8]) {
        const GRAIN: usize = 4096;
        let part = exchange.bytes.div_ceil(self.ranks).next_multiple_of(GRAIN);
        let start = (part * self.rank).min(exchange.bytes);
        let end = (start + part).min(exchange.bytes);
        let past_caches = exchange.bytes * self.ranks > CACHED;
        let mut sum = vec![0u8; STRETCH];
        let mut sources = Vec::with_capacity(inputs.len());
        let mut at = start;
        while at < end {
            let len = STRETCH.min(end - at);
            sources.clear();
            // SAFETY: within all arrays.
            unsafe {
                sources.extend(inputs.iter().map(|input| input.add(at)));
                let sum = sum.as_mut_ptr();
                combine_all(exchange.dtype, exchange.op, sum, &sources, len);
                if exchange.op == Reduction::Average {
                    divide(exchange.dtype, sum, len, narrow(self.ranks));
                }
                for output in outputs {
                    store(output.add(at), sum, len, past_caches);
                }
            }
            at += len;
        }
        fence();
    }

    /// Takes what this rank gets out of the inputs of others.
    unsafe fn pull(&self, exchange: &Exchange, input: &dyn Fn(usize) -> *const u8) {
        use CollectiveKind::*;
        let (n, me) = (self.ranks, self.rank);
        let part = exchange.bytes / n;
        // Parts may lie where they belong already.
        let copy = |to: *mut u8, from: *const u8, len: usize| {
            if to.cast_const() != from {
                // SAFETY: both are that long, and do not overlap.
                unsafe { to.copy_from_nonoverlapping(from, len) };
            }
        };
        let is_root = me == exchange.root;
        let output = exchange.output;
        // SAFETY: within the arrays, and the room that the caller has for what the kind gives.
        unsafe {
            match exchange.kind {
                ReduceScatter => {
                    let at = |rank: usize| input(rank).add(me * part);
                    let sources: Vec<*const u8> = (0..n).map(at).collect();
                    let mut done = 0;
                    while done < part {
                        let len = STRETCH.min(part - done);
                        let sources: Vec<_> = sources.iter().map(|each| each.add(done)).collect();
                        let mut sum = [0u8; STRETCH];
                        let sum = sum.as_mut_ptr();
                        combine_all(exchange.dtype, exchange.op, sum, &sources, len);
                        if exchange.op == Reduction::Average {
                            divide(exchange.dtype, sum, len, narrow(n));
                        }
                        output.add(done).copy_from_nonoverlapping(sum, len);
                        done += len;
                    }
                }
                Broadcast => copy(output, input(exchange.root), exchange.bytes),
                Scatter => copy(output, input(exchange.root).add(me * part), part),
                AllToAll => {
                    for rank in 0..n {
                        copy(output.add(rank * part), input(rank).add(me * part), part);
                    }
                }
                AllGather => {
                    for rank in 0..n {
                        copy(output.add(rank * part), input(rank), part);
                    }
                }
                Gather if is_root => {
                    for rank in 0..n {
                        copy(output.add(rank * part), input(rank), part);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Copies, past the caches if wanted.
///
/// # Safety
/// As of [`std::ptr::copy_nonoverlapping`].
unsafe fn store(to: *mut u8, from: *const u8, len: usize, past_caches: bool) {
    #[cfg(target_arch = "x86_64")]
    if past_caches {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        const WIDTH: usize = size_of::<__m128i>();
        let before = to.align_offset(WIDTH).min(len);
        let wide = (len - before) / WIDTH * WIDTH;
        // SAFETY: as of this function; the stores are aligned.
        unsafe {
            to.copy_from_nonoverlapping(from, before);
            for at in (before..before + wide).step_by(WIDTH) {
                _mm_stream_si128(to.add(at).cast(), _mm_loadu_si128(from.add(at).cast()));
            }
            let at = before + wide;
            to.add(at).copy_from_nonoverlapping(from.add(at), len - at);
        }
        return;
    }
    let _ = past_caches;
    // SAFETY: as of this function.
    unsafe { to.copy_from_nonoverlapping(from, len) };
}

/// Makes stores past the caches seen before what follows.
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

//! Collectives among ranks of one host, through memory that all of them map.
//!
//! The window has two blocks for each rank, which take turns, and two for sums. In a tick, each rank puts a part of its
//! numbers into its block; all meet; each takes what it needs from the blocks of the others. In the next tick the other
//! blocks are used, so that meeting once a tick is enough: who comes to the next meeting has taken all of this one.
//!
//! The file of the window has no name, and so nothing is left behind by whoever dies.

mod direct;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::{Duration, Instant};

use hocket_base::id::narrow;
use hocket_plan::collective::CollectiveKind;

use crate::agreement::Agreement;
use crate::control::Control;
use crate::error::{Code, Failure};
use crate::memory::{self, Mapping, SLEEP};
use crate::number::{Dtype, Reduction, combine_all, divide};
use crate::pipes::{self, Pipes};

pub use direct::Board;
use direct::Places;
pub(crate) use direct::Shelf;

/// Bytes that a rank puts into the window in one tick.
const BLOCK: usize = 1 << 20;
/// Up to here, each rank sums everything itself: one meeting instead of two.
const SMALL: usize = 32 << 10;
/// A rank's words lie this far apart, so that no two share a line of a cache.
const APART: usize = 128;
/// Words of each rank: where it is, what it has come for, in both turns, and what call it is at.
const WORDS: usize = 4 * APART;

/// What a call moves, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub kind: CollectiveKind,
    pub rank: usize,
    pub root: usize,
    pub dtype: Dtype,
    pub op: Reduction,
    pub input: *const u8,
    pub output: *mut u8,
    /// Bytes of the whole vector.
    pub bytes: usize,
    pub agreement: Agreement,
    pub timeout: Duration,
}

/// A window that this rank has mapped.
#[derive(Debug)]
pub(crate) struct Window {
    memory: Mapping,
    /// Others open it by its number while they join.
    _file: OwnedFd,
    pipes: Arc<Pipes>,
    pub shelf: Shelf,
    rank: usize,
    ranks: usize,
    tick: u32,
    spins: u32,
}

/// Returns the bytes of words and blocks.
fn len(ranks: usize) -> usize {
    head(ranks) + (2 * ranks + 2) * BLOCK
}

/// Returns the bytes of words before the blocks.
fn head(ranks: usize) -> usize {
    (APART * 2 + ranks * WORDS).next_multiple_of(4096)
}

impl Window {
    /// Maps the window of a group: the file of its first rank. `None` if that cannot be reached.
    pub(crate) fn open(own: OwnedFd, place: (u32, u32), rank: usize, ranks: usize) -> Option<Self> {
        let file = memory::reach(own, place)?;
        let len = len(ranks);
        memory::lengthen(&file, len + pipes::len(ranks))?;
        let memory = Mapping::large(&file, len)?;
        Some(Self {
            memory,
            pipes: Arc::new(Pipes::open(&file, len, rank, ranks)?),
            _file: file,
            shelf: Shelf::default(),
            rank,
            ranks,
            // The words of a new window say 0: nobody has come yet.
            tick: 1,
            spins: memory::spins(ranks),
        })
    }

    /// Returns the ways between the ranks for messages.
    pub(crate) fn pipes(&self) -> Arc<Pipes> {
        Arc::clone(&self.pipes)
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at + 4 <= head(self.ranks));
        self.memory.word(at)
    }

    /// Where a block begins: two of each rank, then those of sums.
    fn at(&self, number: usize) -> *mut u8 {
        // SAFETY: the window has that many blocks.
        unsafe { self.memory.base().add(head(self.ranks) + number * BLOCK) }
    }

    /// Block of a rank in this turn.
    fn block(&self, rank: usize) -> *mut u8 {
        self.at(2 * rank + self.tick as usize % 2)
    }

    /// Block of sums of a tick.
    fn sums(&self, tick: u32) -> *mut u8 {
        self.at(2 * self.ranks + tick as usize % 2)
    }

    /// Waits until all ranks have come to this tick.
    fn meet(&self, meeting: &mut Meeting<'_>) -> Result<(), Failure> {
        let (count, generation) = (self.word(0), self.word(APART));
        let own = self.word(2 * APART + self.rank * WORDS);
        let before = generation.load(Ordering::Acquire);
        own.store(self.tick, Ordering::Release);
        if count.fetch_add(1, Ordering::AcqRel) + 1 == narrow(self.ranks) {
            count.store(0, Ordering::Relaxed);
            generation.store(before.wrapping_add(1), Ordering::Release);
            memory::wake(generation);
            return Ok(());
        }
        for _ in 0..self.spins {
            if generation.load(Ordering::Acquire) != before {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        let since = Instant::now();
        while generation.load(Ordering::Acquire) == before {
            memory::sleep(generation, before, SLEEP);
            if generation.load(Ordering::Acquire) != before {
                break;
            }
            if let Some(failure) = meeting.control.poll()? {
                return Err(failure);
            }
            let late = self.late();
            if let Some(&rank) = late.iter().find(|&&rank| meeting.control.has_left(rank)) {
                return Err(Failure::left(rank, meeting.agreement.call));
            }
            self.meets_others(&meeting.agreement)?;
            if (meeting.stop)() {
                return Err(Failure::new(Code::Interrupted, "the call was interrupted"));
            }
            if since.elapsed() >= meeting.timeout {
                let call = meeting.agreement.call;
                return Err(meeting.control.stalled(call, &late));
            }
        }
        Ok(())
    }

    /// Ranks that have not come to this tick.
    fn late(&self) -> Vec<u32> {
        let is_late = |&rank: &u32| {
            let at = self.word(2 * APART + rank as usize * WORDS);
            at.load(Ordering::Acquire) != self.tick
        };
        (0..narrow(self.ranks)).filter(is_late).collect()
    }

    /// Where a rank says what call it is at: a count that is odd while it writes, and what it has come for.
    fn current(rank: usize) -> usize {
        2 * APART + rank * WORDS + 3 * APART
    }

    /// Announces the call that this rank is at, whatever transport the call takes.
    pub(crate) fn announce(&self, agreement: &Agreement) {
        let at = Self::current(self.rank);
        let count = self.word(at).load(Ordering::Relaxed);
        self.word(at)
            .store(count.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.write(at + 4, &agreement.encode());
        self.word(at)
            .store(count.wrapping_add(2), Ordering::Release);
    }

    /// An error if some rank is at the same call and has come for something else: it would be waited for in vain.
    pub(crate) fn meets_others(&self, ours: &Agreement) -> Result<(), Failure> {
        for rank in (0..self.ranks).filter(|&rank| rank != self.rank) {
            let at = Self::current(rank);
            let count = self.word(at).load(Ordering::Acquire);
            let theirs = Agreement::decode(&self.read(at + 4));
            fence(Ordering::Acquire);
            let is_whole =
                count.is_multiple_of(2) && self.word(at).load(Ordering::Relaxed) == count;
            if is_whole && theirs.call == ours.call && theirs != *ours {
                return Err(differ(ours, &theirs, rank));
            }
        }
        Ok(())
    }

    /// Where what a rank declares in this turn begins.
    fn declared(&self, rank: usize) -> usize {
        2 * APART + rank * WORDS + APART * (1 + self.tick as usize % 2)
    }

    /// Declares the call that this rank has come for.
    fn declare(&self, agreement: &Agreement, places: &Places) {
        let at = self.declared(self.rank);
        self.write(at, &agreement.encode());
        self.write(at + Agreement::BYTES, &places.encode());
    }

    /// Part of what a rank has declared.
    fn said<const BYTES: usize>(&self, rank: usize, from: usize) -> [u8; BYTES] {
        self.read(self.declared(rank) + from)
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        for (index, bytes) in bytes.chunks_exact(4).enumerate() {
            let word = u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
            self.word(at + 4 * index).store(word, Ordering::Relaxed);
        }
    }

    fn read<const BYTES: usize>(&self, at: usize) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        for (index, bytes) in bytes.chunks_exact_mut(4).enumerate() {
            let word = self.word(at + 4 * index).load(Ordering::Relaxed);
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Whether all ranks have come for the same.
    fn agree(&self, ours: &Agreement) -> Result<(), Failure> {
        for rank in 0..self.ranks {
            let theirs = Agreement::decode(&self.said(rank, 0));
            if theirs != *ours {
                return Err(differ(ours, &theirs, rank));
            }
        }
        Ok(())
    }

    /// Runs a collective to the end.
    pub(crate) fn run(
        &mut self,
        exchange: &Exchange,
        control: &mut Control,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<(), Failure> {
        let mut meeting = Meeting {
            control,
            stop,
            timeout: exchange.timeout,
            agreement: exchange.agreement,
        };
        let places = self.shelf.places(exchange, self.ranks);
        self.declare(&exchange.agreement, &places);
        if places.are_known() {
            self.meet(&mut meeting)?;
            self.agree(&exchange.agreement)?;
            let all = self.places_of_all();
            if places.suit(&all) {
                return self.run_direct(exchange, &all, &mut meeting);
            }
        } else {
            let is_over = self.run_staged(exchange, &mut meeting, direct::suits(exchange))?;
            if is_over {
                return Ok(());
            }
        }
        // Some have their arrays in memory that all see, and some have not: all begin anew without.
        self.tick = self.tick.wrapping_add(1);
        self.declare(&exchange.agreement, &Places::default());
        self.run_staged(exchange, &mut meeting, false)?;
        Ok(())
    }

    /// Runs a collective on arrays wherever they are; whether it did, or must be begun anew since arrays of others are
    /// in memory that all see.
    fn run_staged(
        &mut self,
        exchange: &Exchange,
        meeting: &mut Meeting<'_>,
        looks: bool,
    ) -> Result<bool, Failure> {
        let is_summed = matches!(
            exchange.kind,
            CollectiveKind::AllReduce | CollectiveKind::Reduce
        );
        let is_over = if is_summed && exchange.bytes > SMALL {
            self.sum(exchange, meeting, looks)?
        } else {
            self.pass(exchange, meeting, looks)?
        };
        if is_over && exchange.op == Reduction::Average && exchange.kind.reduces() {
            // SAFETY: the caller has that much room for what the kind gives.
            unsafe { self.divide(exchange) };
        }
        Ok(is_over)
    }

    unsafe fn divide(&self, exchange: &Exchange) {
        let bytes = match exchange.kind {
            CollectiveKind::ReduceScatter => exchange.bytes / self.ranks,
            CollectiveKind::Reduce if self.rank != exchange.root => 0,
            _ => exchange.bytes,
        };
        // SAFETY: as of this function.
        unsafe { divide(exchange.dtype, exchange.output, bytes, narrow(self.ranks)) };
    }

    /// Returns whether what was declared must be put aside, as arrays of some other rank are in memory that all see.
    fn is_mixed(&self) -> bool {
        self.places_of_all().iter().any(Places::are_known)
    }

    fn places_of_all(&self) -> Vec<Places> {
        let of = |rank| Places::decode(&self.said(rank, Agreement::BYTES));
        (0..self.ranks).map(of).collect()
    }

    /// All-reduce and reduce of many numbers: in a tick, block `i` is put, of block `i - 1` each rank sums its part, and
    /// block `i - 2` is taken.
    fn sum(
        &mut self,
        exchange: &Exchange,
        meeting: &mut Meeting<'_>,
        looks: bool,
    ) -> Result<bool, Failure> {
        let blocks = exchange.bytes.div_ceil(BLOCK);
        let range = |block: usize| {
            let start = block * BLOCK;
            (start, BLOCK.min(exchange.bytes - start))
        };
        let takes = exchange.kind == CollectiveKind::AllReduce || self.rank == exchange.root;
        for step in 0..blocks + 2 {
            if step < blocks {
                let (start, len) = range(step);
                // SAFETY: within the caller's numbers and this rank's block.
                unsafe {
                    let from = exchange.input.add(start);
                    self.block(self.rank).copy_from_nonoverlapping(from, len);
                }
            }
            if (1..=blocks).contains(&step) {
                let (_, len) = range(step - 1);
                self.sum_part(exchange, len);
            }
            if step >= 2 && takes {
                let (start, len) = range(step - 2);
                // SAFETY: as above; the sums of two ticks ago are complete since the last meeting.
                unsafe {
                    let sums = self.sums(self.tick.wrapping_sub(1));
                    exchange
                        .output
                        .add(start)
                        .copy_from_nonoverlapping(sums, len);
                }
            }
            if step <= blocks {
                self.meet(meeting)?;
            }
            if step == 0 {
                self.agree(&exchange.agreement)?;
                if looks && self.is_mixed() {
                    return Ok(false);
                }
            }
            self.tick = self.tick.wrapping_add(1);
        }
        Ok(true)
    }

    /// Sums this rank's part of the blocks of the last tick.
    fn sum_part(&self, exchange: &Exchange, len: usize) {
        const GRAIN: usize = 64;
        let part = len.div_ceil(self.ranks).next_multiple_of(GRAIN);
        let start = (part * self.rank).min(len);
        let len = part.min(len - start);
        let last = self.tick.wrapping_sub(1) as usize % 2;
        // SAFETY: within the blocks, which nobody writes in this tick.
        let source = |rank: usize| unsafe { self.at(2 * rank + last).add(start) };
        let sources: Vec<*const u8> = (0..self.ranks)
            .map(|rank| source(rank).cast_const())
            .collect();
        // SAFETY: only this rank writes this part of the sums.
        unsafe {
            let sums = self.sums(self.tick).add(start);
            combine_all(exchange.dtype, exchange.op, sums, &sources, len);
        }
    }

    /// Everything else: what is put in a tick is taken in the same.
    fn pass(
        &mut self,
        exchange: &Exchange,
        meeting: &mut Meeting<'_>,
        looks: bool,
    ) -> Result<bool, Failure> {
        use CollectiveKind::*;
        let kind = exchange.kind;
        let (n, me) = (self.ranks, self.rank);
        let whole = matches!(kind, AllReduce | Reduce | Broadcast);
        let part = if whole {
            exchange.bytes
        } else {
            exchange.bytes / n
        };
        // Of kinds in which a rank has something for each other rank, a block holds as many pieces.
        let pieces = if matches!(kind, ReduceScatter | Scatter | AllToAll) {
            n
        } else {
            1
        };
        let stride = BLOCK / pieces / 64 * 64;
        let puts = match kind {
            Broadcast | Scatter => me == exchange.root,
            _ => true,
        };
        let takes = match kind {
            Reduce | Gather => me == exchange.root,
            _ => true,
        };
        for tick in 0..part.div_ceil(stride).max(1) {
            let start = tick * stride;
            let len = stride.min(part - start);
            let block = self.block(me);
            for piece in 0..if puts { pieces } else { 0 } {
                // SAFETY: within the caller's numbers and this rank's block.
                unsafe {
                    let from = exchange.input.add(piece * part + start);
                    block
                        .add(piece * stride)
                        .copy_from_nonoverlapping(from, len);
                }
            }
            self.meet(meeting)?;
            if tick == 0 {
                self.agree(&exchange.agreement)?;
                if looks && self.is_mixed() {
                    return Ok(false);
                }
            }
            let sources = |piece: usize| -> Vec<*const u8> {
                // SAFETY: within the blocks, which nobody writes before all have come to the next meeting.
                let at = |rank| unsafe { self.block(rank).add(piece * stride).cast_const() };
                (0..n).map(at).collect()
            };
            if takes {
                // SAFETY: within the blocks and the room that the caller has for what the kind gives.
                unsafe {
                    let output = exchange.output.add(start);
                    match kind {
                        AllReduce | Reduce => {
                            combine_all(exchange.dtype, exchange.op, output, &sources(0), len);
                        }
                        ReduceScatter => {
                            combine_all(exchange.dtype, exchange.op, output, &sources(me), len);
                        }
                        Broadcast => output.copy_from(sources(0)[exchange.root], len),
                        Scatter => output.copy_from(sources(me)[exchange.root], len),
                        AllGather | Gather | AllToAll => {
                            let piece = if kind == AllToAll { me } else { 0 };
                            for (rank, source) in sources(piece).into_iter().enumerate() {
                                output.add(rank * part).copy_from(source, len);
                            }
                        }
                        Custom => {}
                    }
                }
            }
            self.tick = self.tick.wrapping_add(1);
        }
        Ok(true)
    }
}

fn differ(ours: &Agreement, theirs: &Agreement, rank: usize) -> Failure {
    let why = ours.differences(theirs, narrow(rank));
    Failure::new(Code::Mismatch, why).of(Some(narrow(rank)), ours.call)
}

/// What a rank looks at while it waits for others.
struct Meeting<'a> {
    control: &'a mut Control,
    stop: &'a mut dyn FnMut() -> bool,
    timeout: Duration,
    agreement: Agreement,
}

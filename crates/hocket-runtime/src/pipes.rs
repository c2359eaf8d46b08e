//! Streams of bytes between ranks of one host, through memory that both map: what `links` has sockets for, over TCP.
//!
//! Each ordered pair of ranks has a ring of bytes in the group's window, mapped twice in a row, so that any part of it
//! is in one piece: a rank sums right out of it. Each rank has a bell. Whoever puts something into a ring, or takes what
//! another waits to be taken, rings that one's bell, and wakes it if it sleeps.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hocket_base::id::narrow;

use crate::memory::{Mapping, sleep, spins, wake};

/// Bytes of a ring, a power of two.
const RING: usize = 1 << 20;
/// Bytes before it: how far it was written and read, and whether its writer waits.
const HEAD: usize = 4096;
/// Words that different ranks write lie this far apart.
const APART: usize = 128;
/// Most that is looked at in one piece: what is summed while it is in the second cache.
const PIECE: usize = 128 << 10;

/// A page for the bell of each rank, and for whether it sleeps.
const BELL: usize = 4096;

/// Returns the bytes that the rings of a group take; memory is only behind those that are used.
pub(crate) fn len(ranks: usize) -> usize {
    ranks * BELL + ranks * ranks * (HEAD + RING)
}

/// The rings and bells of a group.
#[derive(Debug)]
pub(crate) struct Pipes {
    file: OwnedFd,
    /// Where they begin in the file.
    start: usize,
    bells: Arc<Mapping>,
    rank: usize,
    ranks: usize,
    spins: u32,
}

impl Pipes {
    /// Returns those of a group, in a file from a place on.
    pub(crate) fn open(file: &OwnedFd, start: usize, rank: usize, ranks: usize) -> Option<Self> {
        let file = file.try_clone().ok()?;
        let bells = Mapping::part(file.as_fd(), start, ranks * BELL)?;
        Some(Self {
            file,
            start,
            bells: Arc::new(bells),
            rank,
            ranks,
            spins: spins(ranks),
        })
    }

    /// Both rings between this rank and another.
    pub(crate) fn to(&self, peer: u32) -> Option<Pipe> {
        let peer = peer as usize;
        let ring = |from: usize, to: usize| {
            let number = from * self.ranks + to;
            let start = self.start + self.ranks * BELL + number * (HEAD + RING);
            Mapping::round(self.file.as_fd(), start, HEAD, RING)
        };
        Some(Pipe {
            out: Ring(ring(self.rank, peer)?),
            come: Ring(ring(peer, self.rank)?),
            seen: 0,
            bells: Arc::clone(&self.bells),
            peer,
        })
    }

    /// Returns how often this rank's bell has rung.
    pub(crate) fn rung(&self) -> u32 {
        self.bells.word(self.rank * BELL).load(Ordering::SeqCst)
    }

    /// Waits until the bell rings once more, or a time is over.
    pub(crate) fn wait(&self, rung: u32, most: Duration) {
        for _ in 0..self.spins {
            if self.rung() != rung {
                return;
            }
            std::hint::spin_loop();
        }
        let asleep = self.bells.word(self.rank * BELL + APART);
        asleep.store(1, Ordering::SeqCst);
        if self.rung() == rung {
            sleep(self.bells.word(self.rank * BELL), rung, most);
        }
        asleep.store(0, Ordering::SeqCst);
    }
}

/// One ring of bytes.
#[derive(Debug)]
struct Ring(Mapping);

impl Ring {
    /// Returns how many bytes were ever written, by the one who writes; it wraps.
    fn written(&self) -> &AtomicU32 {
        self.0.word(0)
    }

    /// Returns how many bytes were ever read, by the one who reads.
    fn read(&self) -> &AtomicU32 {
        self.0.word(APART)
    }

    /// Returns whether who writes waits for room.
    fn is_awaited(&self) -> &AtomicU32 {
        self.0.word(2 * APART)
    }

    /// Returns the place of a count of bytes.
    fn at(&self, count: u32) -> *mut u8 {
        // SAFETY: within the ring, behind which it is mapped once more.
        unsafe { self.0.base().add(HEAD + count as usize % RING) }
    }

    fn filled(&self) -> usize {
        let written = self.written().load(Ordering::SeqCst);
        written.wrapping_sub(self.read().load(Ordering::SeqCst)) as usize
    }
}

/// A way to a rank and back.
#[derive(Debug)]
pub(crate) struct Pipe {
    out: Ring,
    come: Ring,
    /// Bytes that were there to be read when this rank last looked.
    seen: usize,
    bells: Arc<Mapping>,
    peer: usize,
}

impl Pipe {
    /// Writes what there is room for.
    pub(crate) fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut room = RING.saturating_sub(self.out.filled());
        if room == 0 {
            self.out.is_awaited().store(1, Ordering::SeqCst);
            room = RING.saturating_sub(self.out.filled());
            if room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.out.is_awaited().store(0, Ordering::SeqCst);
        }
        let start = self.out.written().load(Ordering::Relaxed);
        let mut done = 0;
        for part in parts {
            let len = part.len().min(room - done);
            let to = self.out.at(start.wrapping_add(narrow(done)));
            // SAFETY: there is that much room, and only this rank writes it.
            unsafe { to.copy_from_nonoverlapping(part.as_ptr(), len) };
            done += len;
        }
        let end = start.wrapping_add(narrow(done));
        self.out.written().store(end, Ordering::SeqCst);
        self.ring();
        Ok(done)
    }

    /// Returns whether there is room to write.
    pub(crate) fn has_room(&self) -> bool {
        self.out.filled() < RING
    }

    /// Returns whether there is something that was not seen yet.
    pub(crate) fn has_more(&self) -> bool {
        self.come.filled() > self.seen
    }

    /// Looks what there is to read; whether that is more than before.
    pub(crate) fn look(&mut self) -> bool {
        let filled = self.come.filled();
        std::mem::replace(&mut self.seen, filled) < filled
    }

    /// Returns what there is to read, or the first piece of it.
    pub(crate) fn waiting(&self) -> &[u8] {
        let start = self.come.at(self.come.read().load(Ordering::Relaxed));
        // SAFETY: it was written, and nobody writes it before it has been taken.
        unsafe { std::slice::from_raw_parts(start, self.seen.min(PIECE)) }
    }

    /// Takes what was read.
    pub(crate) fn take(&mut self, len: usize) {
        self.seen -= len;
        let read = self.come.read().load(Ordering::Relaxed);
        let read = read.wrapping_add(narrow(len));
        self.come.read().store(read, Ordering::SeqCst);
        let is_awaited = self.come.is_awaited();
        // Half of it at once: who writes is not woken for each piece.
        if is_awaited.load(Ordering::SeqCst) == 1 && self.come.filled() <= RING / 2 {
            is_awaited.store(0, Ordering::SeqCst);
            self.ring();
        }
    }

    /// Rings the other's bell.
    fn ring(&self) {
        let bell = self.bells.word(self.peer * BELL);
        bell.fetch_add(1, Ordering::SeqCst);
        if self
            .bells
            .word(self.peer * BELL + APART)
            .load(Ordering::SeqCst)
            == 1
        {
            wake(bell);
        }
    }
}

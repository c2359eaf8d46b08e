//! Who has read and written each chunk of a rank's memory.

use super::place::At;
use crate::program::Buffer;

/// A step by its block and its position there, both within its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StepId {
    pub block: u32,
    pub position: u32,
}

pub(super) const NONE: StepId = StepId {
    block: u32::MAX,
    position: u32::MAX,
};

/// The steps that have accessed a chunk of memory since it was written, and the one that wrote it.
#[derive(Clone)]
pub(super) struct Cell {
    pub write: StepId,
    /// The first that read it; most chunks have one.
    read: StepId,
    more: More,
}

/// The others, boxed: a chunk that is read once has none, and there are many chunks.
type More = Option<Box<Vec<StepId>>>;

impl Cell {
    fn new() -> Self {
        Self {
            write: NONE,
            read: NONE,
            more: None,
        }
    }

    pub(super) fn is_read(&self) -> bool {
        self.read != NONE
    }

    pub(super) fn add_read(&mut self, step: StepId) {
        if self.is_read() {
            self.more.get_or_insert_default().push(step);
        } else {
            self.read = step;
        }
    }

    pub(super) fn forget_reads(&mut self) {
        self.read = NONE;
        self.more = None;
    }

    /// Returns the steps after which it may be written again.
    pub(super) fn accesses(&self) -> impl Iterator<Item = StepId> {
        let more = self.more.iter().flat_map(|more| more.iter().copied());
        let first = [self.write, self.read].into_iter();
        first.filter(|&step| step != NONE).chain(more)
    }
}

/// Chunks of input, output and scratch, up to the last that was accessed.
#[derive(Default)]
pub(super) struct Cells([Vec<Cell>; 3]);

impl Cells {
    pub(super) fn at(&mut self, at: At, count: u32) -> &mut [Cell] {
        let (first, end) = (at.1 as usize, (at.1 + count) as usize);
        let cells = &mut self.0[at.0 as usize];
        if cells.len() < end {
            cells.resize(end, Cell::new());
        }
        &mut cells[first..end]
    }

    /// Returns the steps that wrote chunks.
    pub(super) fn writes(&mut self, at: At, count: u32) -> impl Iterator<Item = StepId> {
        let writes = self.at(at, count).iter().map(|cell| cell.write);
        writes.filter(|&step| step != NONE)
    }

    /// Takes those of a buffer out.
    pub(super) fn take(&mut self, buffer: Buffer) -> Vec<Cell> {
        std::mem::take(&mut self.0[buffer as usize])
    }
}

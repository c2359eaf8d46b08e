//! What is known to have ended before a step begins, and the accesses of a chunk.

/// Stands for the step of an access by the caller.
pub(super) const CALLER: u32 = u32::MAX;

/// What is known to have ended: of each block so many steps or stretches, and single steps beyond.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    pub ended: Vec<u32>,
    pub single: Vec<Access>,
}

impl Clock {
    pub(super) fn new(width: usize) -> Self {
        Self {
            ended: vec![0; width],
            single: Vec::new(),
        }
    }

    pub(super) fn join(&mut self, other: &Clock) {
        for (own, &theirs) in self.ended.iter_mut().zip(&other.ended) {
            *own = (*own).max(theirs);
        }
        for &access in &other.single {
            if !self.single.contains(&access) {
                self.single.push(access);
            }
        }
        let ended = &self.ended;
        self.single
            .retain(|access| ended[access.block as usize] <= access.position);
    }
}

/// An access of a chunk: which step in which call, of which of the blocks with clocks, in which step or stretch of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub step: u32,
    pub call: u32,
    pub block: u32,
    pub position: u32,
}

impl Access {
    pub(super) fn is_before(self, clock: &Clock) -> bool {
        clock.ended[self.block as usize] > self.position || clock.single.contains(&self)
    }
}

/// Accesses of one chunk that may still conflict: the last write, and the reads since.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    pub write: Option<Access>,
    pub reads: Vec<Access>,
}

//! Where each chunk is at each rank: in input, output or scratch.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Moves;
use super::units::Units;
use crate::collective::CollectiveKind;
use crate::graph::Lists;
use crate::program::{Buffer, Mode, Task};

/// A chunk of a buffer of a rank that is known: the buffer, and the chunk.
pub(super) type At = (Buffer, u32);

/// Chunk of the input in which `rank` has the data before, if it has it.
fn input(task: &Task, rank: u32, data: u32) -> Option<u32> {
    let (part, chunks) = (task.part(), task.chunks);
    match task.kind {
        CollectiveKind::AllGather | CollectiveKind::Gather => {
            (data / part == rank).then(|| data % part)
        }
        CollectiveKind::Broadcast | CollectiveKind::Scatter => (rank == task.root).then_some(data),
        CollectiveKind::AllToAll => (data / chunks == rank).then(|| data % chunks),
        _ => Some(data),
    }
}

/// Chunk of the output in which `rank` must have the data after, if it must.
fn output(task: &Task, rank: u32, data: u32) -> Option<u32> {
    let (part, chunks) = (task.part(), task.chunks);
    match task.kind {
        CollectiveKind::ReduceScatter | CollectiveKind::Scatter => {
            (data / part == rank).then(|| data % part)
        }
        CollectiveKind::Reduce | CollectiveKind::Gather => (rank == task.root).then_some(data),
        CollectiveKind::AllToAll => {
            let (from, at) = (data / chunks, data % chunks);
            (at / part == rank).then(|| from * part + at % part)
        }
        _ => Some(data),
    }
}

/// Chunks of data at ranks, as the program moves them.
pub(super) struct Places<'a> {
    task: Task,
    mode: Mode,
    units: &'a Units,
    /// Chunks of the plan that have been written, by rank, where their data was in the input before.
    moved: FxHashSet<(u32, u32)>,
    /// First scratch chunk of chunks of the plan that have neither input nor output at a rank.
    scratch: FxHashMap<(u32, u32), u32>,
    /// Position in the order of the last move of such a chunk, from the first that writes it.
    last: FxHashMap<(u32, u32), u32>,
    /// Runs of scratch that are free, by rank and length, the longest free first.
    free: FxHashMap<(u32, u32), VecDeque<u32>>,
    /// Scratch chunks of each rank.
    pub sizes: Vec<u32>,
}

impl<'a> Places<'a> {
    pub(super) fn new(
        moves: &Moves<'_>,
        levels: &Lists<u32>,
        units: &'a Units,
        task: Task,
        mode: Mode,
    ) -> Self {
        let mut places = Self {
            task,
            mode,
            units,
            moved: FxHashSet::default(),
            scratch: FxHashMap::default(),
            last: FxHashMap::default(),
            free: FxHashMap::default(),
            sizes: vec![0; task.ranks as usize],
        };
        for (each, position) in moves.along(levels).zip(0..) {
            for chunk in each.first..each.first + each.count {
                let data = units.start[chunk as usize];
                if places.home(each.dst, data).is_none() {
                    places.last.insert((each.dst, chunk), position);
                }
                // What a rank sends before it is written there lies in the input.
                if let Some(last) = places.last.get_mut(&(each.src, chunk)) {
                    *last = position;
                }
            }
        }
        places
    }

    /// Where data is written at a rank, if it has room in a buffer of the call.
    fn home(&self, rank: u32, data: u32) -> Option<At> {
        let task = &self.task;
        let before = input(task, rank, data).map(|chunk| (Buffer::Input, chunk));
        let after = output(task, rank, data).map(|chunk| (Buffer::Output, chunk));
        match self.mode {
            Mode::OutOfPlace => after,
            // Sums stay in the input, which the output lies over; what is gathered lies in the output.
            Mode::InPlace if task.kind.reduces() => before,
            Mode::InPlace => after.or(before),
        }
    }

    /// Where a rank has a chunk of the plan now: the first of its equal chunks; the others follow.
    pub(super) fn now(&self, rank: u32, chunk: u32) -> At {
        let data = self.units.start[chunk as usize];
        if self.mode == Mode::OutOfPlace
            && let Some(at) = input(&self.task, rank, data)
            && !self.moved.contains(&(rank, chunk))
        {
            return (Buffer::Input, at);
        }
        match self.home(rank, data) {
            Some(at) => at,
            None => {
                let at = self.scratch.get(&(rank, chunk));
                (Buffer::Scratch, *at.expect("held, as was proved"))
            }
        }
    }

    /// Where a rank gets a chunk of the plan that is about to be written.
    pub(super) fn next(&mut self, rank: u32, chunk: u32) -> At {
        let data = self.units.start[chunk as usize];
        if self.mode == Mode::OutOfPlace && input(&self.task, rank, data).is_some() {
            self.moved.insert((rank, chunk));
        }
        if let Some(at) = self.home(rank, data) {
            return at;
        }
        if let Some(&at) = self.scratch.get(&(rank, chunk)) {
            return (Buffer::Scratch, at);
        }
        let len = self.units.len[chunk as usize];
        let free = self
            .free
            .get_mut(&(rank, len))
            .and_then(VecDeque::pop_front);
        let at = free.unwrap_or_else(|| {
            let size = &mut self.sizes[rank as usize];
            *size += len;
            *size - len
        });
        self.scratch.insert((rank, chunk), at);
        (Buffer::Scratch, at)
    }

    /// Frees the scratch of a chunk after its last move.
    pub(super) fn end(&mut self, rank: u32, chunk: u32, position: u32) {
        if self.last.get(&(rank, chunk)) == Some(&position)
            && let Some(at) = self.scratch.remove(&(rank, chunk))
        {
            let len = self.units.len[chunk as usize];
            self.free.entry((rank, len)).or_default().push_back(at);
        }
    }
}

/// Returns the chunks of input that are outputs as they are: from, to and how many, for copies out of place.
pub(super) fn copies(task: &Task, mode: Mode, rank: u32) -> Vec<(u32, u32, u32)> {
    let mut copies: Vec<(u32, u32, u32)> = Vec::new();
    if mode == Mode::InPlace {
        return copies;
    }
    for chunk in 0..task.output(rank) {
        let Some(after) = task.after(rank, chunk) else {
            continue;
        };
        if after.rank != Some(rank) {
            continue; // a sum, or another rank's
        }
        let Some(from) = input(task, rank, after.data) else {
            continue;
        };
        match copies.last_mut() {
            Some((first, to, len)) if *first + *len == from && *to + *len == chunk => *len += 1,
            _ => copies.push((from, chunk, 1)),
        }
    }
    copies
}

//! Chunks of memory, numbered: input and output of a call in place are the same.

use crate::id::narrow;
use crate::program::{Buffer, Mode, Program, Span};

/// Where the chunks of each rank's buffers are in one array of all chunks of memory.
#[derive(Debug)]
pub(crate) struct Memory<'a> {
    program: &'a Program,
    /// Mode of the call.
    pub mode: Mode,
    /// First chunk of each rank's memory, and where its output and scratch start in it; one more rank than there are.
    ranks: Vec<[usize; 3]>,
}

impl<'a> Memory<'a> {
    /// Returns the memory of a program that is called in a mode.
    pub(crate) fn of(program: &'a Program, mode: Mode) -> Self {
        let task = program.task();
        let mut ranks = Vec::with_capacity(program.sizes().len() + 1);
        let mut start = 0;
        for (rank, sizes) in program.sizes().iter().enumerate() {
            let rank = narrow(rank);
            let input = sizes[0].max(task.input(rank)) as usize;
            let output = sizes[1].max(task.output(rank)) as usize;
            let (output_at, scratch_at) = match mode {
                Mode::InPlace => {
                    let end = |buffer, size: usize| size + task.in_place(rank, buffer, 0) as usize;
                    let end = end(Buffer::Input, input).max(end(Buffer::Output, output));
                    (start, start + end)
                }
                Mode::OutOfPlace => (start + input, start + input + output),
            };
            ranks.push([start, output_at, scratch_at]);
            start = scratch_at + sizes[2] as usize;
        }
        ranks.push([start; 3]);
        Self {
            program,
            mode,
            ranks,
        }
    }

    /// Returns the number of a chunk of a buffer.
    pub(crate) fn chunk(&self, rank: u32, buffer: Buffer, chunk: u32) -> usize {
        let starts = self.ranks[rank as usize];
        let task = self.program.task();
        let at = match (self.mode, buffer) {
            (Mode::InPlace, Buffer::Input | Buffer::Output) => task.in_place(rank, buffer, chunk),
            _ => chunk,
        };
        starts[buffer as usize] + at as usize
    }

    /// Returns the numbers of the chunks of a span; they are consecutive.
    pub(crate) fn chunks(&self, span: Span) -> std::ops::Range<usize> {
        let start = self.chunk(span.rank(), span.buffer(), span.offset());
        start..start + span.count() as usize
    }

    /// Returns the numbers of all chunks of a rank.
    pub(crate) fn of_rank(&self, rank: u32) -> std::ops::Range<usize> {
        self.ranks[rank as usize][0]..self.ranks[rank as usize + 1][0]
    }

    /// Returns the numbers of the chunks of a rank that its caller hands over: input and output.
    pub(crate) fn of_caller(&self, rank: u32) -> std::ops::Range<usize> {
        let [start, _, scratch] = self.ranks[rank as usize];
        start..scratch
    }

    /// Returns how many chunks there are at all ranks.
    pub(crate) fn len(&self) -> usize {
        self.ranks.last().expect("one more than ranks")[0]
    }
}

//! Makes a program, block after block.

use super::{Block, Buffer, Line, Mode, NONE, Op, Program, Semaphore, SizeLimits, Span, Task};
use crate::explain::Explain;
use crate::graph::Lists;
use crate::id::{fit, narrow};

/// Why a program could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum ProgramError {
    /// A step waits for one that does not exist.
    #[explain(why(
        "block {block}, step {step}: waits for step {target_step} of block {target_block}, which does not exist"
    ))]
    NoSuchStep {
        /// Block of the step that waits, in the order in which blocks were added.
        block: u32,
        /// Its position in the block.
        step: u32,
        /// Block that it waits for.
        target_block: u32,
        /// Position that it waits for.
        target_step: u32,
    },
    /// More than can be counted.
    #[explain(why("{what}: {count}"), remedy("the most is {limit}"))]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        count: u64,
        /// How many there may be.
        limit: u64,
    },
}

/// A step that is added to a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewStep<'a> {
    /// What it does.
    pub op: Op,
    /// Block, in the order in which blocks are added, and position in it of the step that it waits for.
    pub dependency: Option<(u32, u32)>,
    /// What it reads.
    pub sources: &'a [Span],
    /// What it writes.
    pub targets: &'a [Span],
    /// Numbers of lines, of barrier and blocks, or of semaphores.
    pub numbers: &'a [u32],
}

impl NewStep<'_> {
    /// Returns a step without operands that waits for nothing.
    pub const fn new(op: Op) -> Self {
        NewStep {
            op,
            dependency: None,
            sources: &[],
            targets: &[],
            numbers: &[],
        }
    }
}

/// Makes a [`Program`]: buffers first, then blocks in the order of ranks, each with its steps.
#[derive(Clone, Debug)]
pub struct ProgramBuilder {
    program: Program,
    /// Dependencies as they were given, by step; resolved when all blocks are there.
    waits: Vec<(u32, u32, u32)>,
    too_many: Option<ProgramError>,
}

impl ProgramBuilder {
    /// Returns a program without blocks, whose ranks have the buffers of the task and no scratch.
    pub fn new(name: impl Into<String>, task: Task) -> Self {
        let sizes = (0..task.ranks).map(|rank| [task.input(rank), task.output(rank), 0]);
        Self {
            program: Program {
                name: name.into(),
                task,
                modes: vec![Mode::InPlace],
                limits: SizeLimits::default(),
                in_flight: None,
                synced: true,
                alternates: false,
                sizes: sizes.collect(),
                blocks: Vec::new(),
                starts: vec![0],
                op: Vec::new(),
                sources: Vec::new(),
                dependency: Vec::new(),
                operands: Lists::default(),
                lines: Vec::new(),
                semaphores: Vec::new(),
            },
            waits: Vec::new(),
            too_many: None,
        }
    }

    /// Makes room for that many more steps with one span each.
    pub fn reserve(&mut self, steps: usize) {
        self.program.op.reserve_exact(steps);
        self.program.sources.reserve_exact(steps);
        self.program.dependency.reserve_exact(steps);
    }

    /// In which modes it is meant to be called.
    pub fn modes(&mut self, modes: &[Mode]) {
        self.program.modes = modes.to_vec();
    }

    /// For which sizes it may be used.
    pub fn limits(&mut self, limits: SizeLimits) {
        self.program.limits = limits;
    }

    /// How many messages a connection holds.
    pub fn in_flight(&mut self, messages: u32) {
        self.program.in_flight = Some(messages);
    }

    /// Threads of a block do not wait for each other between steps.
    pub fn unsynced(&mut self) {
        self.program.synced = false;
    }

    /// Two halves of the scratch take turns from call to call; sizes are those of one.
    pub fn alternating(&mut self) {
        self.program.alternates = true;
    }

    /// Chunks that a buffer of a rank has, where they are not those of the task.
    pub fn size(&mut self, rank: u32, buffer: Buffer, chunks: u32) {
        self.program.sizes[rank as usize][buffer as usize] = chunks;
    }

    /// Adds a line of signals; gives its number.
    pub fn line(&mut self, line: Line) -> u32 {
        self.program.lines.push(line);
        narrow(self.program.lines.len()) - 1
    }

    /// Adds a semaphore; gives its number.
    pub fn semaphore(&mut self, semaphore: Semaphore) -> u32 {
        self.program.semaphores.push(semaphore);
        narrow(self.program.semaphores.len()) - 1
    }

    /// Returns the number of blocks so far.
    pub fn blocks(&self) -> u32 {
        narrow(self.program.blocks.len())
    }

    /// Adds a block, to which the steps that follow belong; gives its number.
    ///
    /// # Panics
    /// If its rank is below that of the block before.
    pub fn block(&mut self, block: Block) -> u32 {
        let last = self.program.blocks.last().map_or(0, |last| last.rank);
        assert!(block.rank >= last, "blocks are added in the order of ranks");
        self.program.blocks.push(block);
        self.program.starts.push(narrow(self.program.op.len()));
        narrow(self.program.blocks.len()) - 1
    }

    /// Adds a step to the last block; gives its position there.
    ///
    /// # Panics
    /// If there is no block yet.
    pub fn step(&mut self, step: &NewStep<'_>) -> u32 {
        let program = &mut self.program;
        let count = step.sources.len() + step.targets.len() + step.numbers.len();
        let limit = u64::from(u32::MAX) - 1;
        if step.sources.len() > u8::MAX as usize
            || (program.operands.items().len() + count) as u64 > limit
        {
            self.too_many.get_or_insert(ProgramError::TooMany {
                what: "operands of its steps",
                count: (program.operands.items().len() + count) as u64,
                limit,
            });
            return 0;
        }
        let number = narrow(program.op.len());
        program.op.push(step.op);
        program.sources.push(fit(step.sources.len()));
        program.dependency.push(NONE);
        let spans = step.sources.iter().chain(step.targets).map(|span| span.0);
        let operands = spans.chain(step.numbers.iter().map(|&number| u64::from(number)));
        program.operands.push_all(operands);
        if let Some((block, position)) = step.dependency {
            self.waits.push((number, block, position));
        }
        *program.starts.last_mut().expect("starts at 0") = number + 1;
        number - program.starts[program.starts.len() - 2]
    }

    /// The finished program.
    ///
    /// # Errors
    /// [`ProgramError::NoSuchStep`] for a dependency that leads nowhere, [`ProgramError::TooMany`].
    pub fn finish(mut self) -> Result<Program, ProgramError> {
        if let Some(error) = self.too_many {
            return Err(error);
        }
        let program = &mut self.program;
        for (step, target_block, target_step) in self.waits {
            let range = (target_block as usize) < program.blocks.len();
            let range = range.then(|| program.steps_of(target_block));
            match range.filter(|range| target_step < narrow(range.len())) {
                Some(range) => program.dependency[step as usize] = range.start + target_step,
                None => {
                    let block = program.block_of(step);
                    return Err(ProgramError::NoSuchStep {
                        block,
                        step: step - program.starts[block as usize],
                        target_block,
                        target_step,
                    });
                }
            }
        }
        Ok(self.program)
    }
}

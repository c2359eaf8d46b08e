//! A program that can be changed.

use hocket_core::id::narrow;
use hocket_core::program::{
    Block, Buffer, Line, NewStep, Op, Program, ProgramBuilder, ProgramError, Semaphore, Span,
};

/// A step, by value.
#[derive(Clone, Debug)]
pub(crate) struct DraftStep {
    pub op: Op,
    pub dependency: Option<(u32, u32)>,
    pub sources: Vec<Span>,
    pub targets: Vec<Span>,
    pub numbers: Vec<u32>,
}

/// A program, by value.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub like: Program,
    pub sizes: Vec<[u32; 3]>,
    pub blocks: Vec<(Block, Vec<DraftStep>)>,
    pub lines: Vec<Line>,
    pub semaphores: Vec<Semaphore>,
    pub alternates: bool,
}

impl DraftStep {
    pub(crate) fn new(op: Op, sources: &[Span], targets: &[Span]) -> Self {
        Self {
            op,
            dependency: None,
            sources: sources.to_vec(),
            targets: targets.to_vec(),
            numbers: Vec::new(),
        }
    }

    pub(crate) fn numbered(op: Op, numbers: &[u32]) -> Self {
        Self {
            numbers: numbers.to_vec(),
            ..Self::new(op, &[], &[])
        }
    }
}

impl Draft {
    pub(crate) fn of(program: &Program) -> Self {
        let blocks = program.blocks().iter().zip(0..).map(|(&block, number)| {
            let steps = program.steps_of(number).map(|step| {
                let view = program.step(step);
                let dependency = view.dependency.map(|target| {
                    let other = program.block_of(target);
                    (other, target - program.steps_of(other).start)
                });
                DraftStep {
                    op: view.op,
                    dependency,
                    sources: view.sources().collect(),
                    targets: view.targets().collect(),
                    numbers: view.numbers().collect(),
                }
            });
            (block, steps.collect())
        });
        Self {
            sizes: program.sizes().to_vec(),
            blocks: blocks.collect(),
            lines: program.lines().to_vec(),
            semaphores: program.semaphores().to_vec(),
            alternates: program.alternates(),
            like: program.clone(),
        }
    }

    pub(crate) fn build(&self) -> Result<Program, ProgramError> {
        let mut builder = ProgramBuilder::new("draft", *self.like.task());
        builder.modes(self.like.modes());
        if let Some(messages) = self.like.in_flight() {
            builder.in_flight(messages);
        }
        if !self.like.is_synced() {
            builder.unsynced();
        }
        if self.alternates {
            builder.alternating();
        }
        for (rank, sizes) in self.sizes.iter().enumerate() {
            for &buffer in Buffer::ALL {
                builder.size(narrow(rank), buffer, sizes[buffer as usize]);
            }
        }
        for &line in &self.lines {
            builder.line(line);
        }
        for &semaphore in &self.semaphores {
            builder.semaphore(semaphore);
        }
        for (block, steps) in &self.blocks {
            builder.block(*block);
            for step in steps {
                builder.step(&NewStep {
                    op: step.op,
                    dependency: step.dependency,
                    sources: &step.sources,
                    targets: &step.targets,
                    numbers: &step.numbers,
                });
            }
        }
        builder.finish()
    }
}

//! What one rank does in a call: the steps of a program with places in bytes instead of chunks.

use std::collections::BTreeSet;
use std::sync::Arc;

use hocket_base::id::{fit, narrow};
use hocket_plan::collective::CollectiveKind;
use hocket_plan::verify::Verified;
use hocket_program::program::{
    Buffer, CompileError, CompileOptions, Mode, Op, Program, Span, compile,
};
use sha2::{Digest, Sha256};

use crate::error::{Code, Failure};
use crate::number::Dtype;

/// A program that can be run, and what tells it from others.
#[derive(Clone, Debug)]
pub struct Loaded {
    program: Arc<Program>,
    mode: Mode,
    hash: u64,
}

impl Loaded {
    /// Takes a program that is right: lowered from a proved plan, or judged by [`check`](hocket_program::program::check::check).
    ///
    /// # Errors
    /// [`Code::Invalid`] if it has steps that reach into the memory of other ranks, or does nothing that has a name.
    pub fn new(program: Program) -> Result<Self, Failure> {
        let refuse = |why: String| Err(Failure::new(Code::Invalid, why));
        if program.task().kind == CollectiveKind::Custom {
            return refuse("a custom collective has no input and output that can be named".into());
        }
        for step in 0..narrow(program.len()) {
            let op = program.step(step).op;
            if !(op.moves_data() || op == Op::Nop) {
                let name = op.name();
                return refuse(format!(
                    "the program has a step \"{name}\", which needs memory that is shared; \
                     only messages can be run"
                ));
            }
        }
        let mode = program.modes().first().copied().unwrap_or(Mode::OutOfPlace);
        let hash = hash(&program);
        Ok(Self {
            program: Arc::new(program),
            mode,
            hash,
        })
    }

    /// Returns the program of a proved plan. Sends and receives have blocks of their own, so that none waits for the
    /// other. What a rank gathers or scatters lies apart from what it has itself.
    ///
    /// # Errors
    /// [`CompileError`], of a plan that has no program.
    pub fn of_plan(verified: &Verified) -> Result<Self, CompileError> {
        Self::of_plan_over(verified, None, false)
    }

    /// Likewise, with a channel for each transfer, and messages of a channel in the plan's order where they are to be.
    /// With channels, sends also keep waits of the plan that are not for data. A channel is a stream by its number
    /// modulo the number of streams. Of several channels of a stream, who is ready first is sent first.
    ///
    /// # Errors
    /// As of [`of_plan`](Self::of_plan).
    ///
    /// # Panics
    /// If there are channels, but not one for each transfer.
    pub fn of_plan_over(
        verified: &Verified,
        channel_of: Option<Vec<u32>>,
        in_plan_order: bool,
    ) -> Result<Self, CompileError> {
        use CollectiveKind::{AllToAll, Gather, Scatter};
        let kind = verified.plan().collective().kind();
        let mode = match kind {
            AllToAll | Gather | Scatter => Mode::OutOfPlace,
            _ => Mode::InPlace,
        };
        let options = CompileOptions {
            mode: Some(mode),
            fuse: false,
            max_count: Span::MAX_COUNT,
            max_chunks: Span::MAX_CHUNKS - 1,
            keeps_waits: channel_of.is_some(),
            channel_of,
            in_plan_order,
            ..CompileOptions::default()
        };
        let program = compile(verified, &options)?;
        Ok(Self::new(program).expect("lowered programs have only messages and copies"))
    }

    /// Returns the program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns whether input and output are one place.
    pub fn is_in_place(&self) -> bool {
        self.mode == Mode::InPlace
    }

    /// Equal for equal programs, whoever made them.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Other ranks to which a rank sends, or from which it receives, and on which channels.
    pub fn channels(&self, rank: u32) -> BTreeSet<(u32, u32)> {
        let program = &self.program;
        let mut found = BTreeSet::new();
        for number in program.blocks_of(rank) {
            let block = program.blocks()[number as usize];
            let has = |does: fn(Op) -> bool| {
                let mut steps = program.steps_of(number);
                steps.any(|step| does(program.step(step).op))
            };
            let ends = [
                block.send.filter(|_| has(Op::sends)),
                block.recv.filter(|_| has(Op::receives)),
            ];
            found.extend(ends.into_iter().flatten().map(|peer| (peer, block.channel)));
        }
        found
    }
}

fn hash(program: &Program) -> u64 {
    let mut hasher = Sha256::new();
    let mut number = |number: u64| hasher.update(number.to_le_bytes());
    let task = program.task();
    number(task.kind as u64);
    for value in [task.ranks, task.root, task.chunks] {
        number(value.into());
    }
    number(u64::from(program.modes().first() == Some(&Mode::InPlace)));
    for (index, block) in program.blocks().iter().enumerate() {
        let peer = |peer: Option<u32>| peer.map_or(0, |peer| u64::from(peer) + 1);
        for value in [
            block.rank.into(),
            peer(block.send),
            peer(block.recv),
            block.channel.into(),
        ] {
            number(value);
        }
        for step in program.steps_of(narrow(index)) {
            let view = program.step(step);
            number(view.op as u64);
            number(view.dependency.map_or(0, |step| u64::from(step) + 1));
            number(view.sources().len() as u64);
            for span in view.spans() {
                let values = [
                    span.rank(),
                    span.buffer() as u32,
                    span.offset(),
                    span.count(),
                ];
                values.iter().for_each(|&value| number(value.into()));
            }
        }
    }
    let digest = hasher.finalize();
    u64::from_le_bytes(*digest.first_chunk().expect("32 bytes"))
}

/// Bytes of one of the three buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Of the buffer, as in [`Buffer`]; in place, the output is the input.
    pub buffer: Buffer,
    pub offset: usize,
    pub len: usize,
}

/// A step with its places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub op: Op,
    /// Block of this rank, and position in it, of the step that must have ended.
    pub after: Option<(u32, u32)>,
    first: u32,
    sources: u8,
    count: u8,
}

/// A thread block of this rank.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Rank and channel that it sends to, and which it receives from.
    pub send: Option<(u32, u32)>,
    pub recv: Option<(u32, u32)>,
    pub steps: Vec<Step>,
    /// Blocks that wait for steps of this one.
    pub awaited_by: Vec<u32>,
}

/// What one rank does in a call with a number of elements.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub blocks: Vec<Block>,
    places: Vec<Place>,
    /// Bytes of input, output and scratch; in place, the input is the whole vector.
    pub sizes: [usize; 3],
    /// Numbers of each part, as the caller has them and with what fills up chunks.
    pub part: (u64, u64),
    /// Whether nobody sends anything to this rank, so that it must ask whether others have come for the same.
    pub only_sends: bool,
    /// Ranks that it receives from and of which the same is true, so that it must answer.
    pub givers: Vec<u32>,
}

impl Script {
    /// Returns the script of a rank for a whole vector of that many numbers.
    ///
    /// # Errors
    /// [`Code::Invalid`] if the numbers do not fill parts of ranks that are equally large.
    pub(crate) fn of(
        loaded: &Loaded,
        rank: u32,
        elements: u64,
        dtype: Dtype,
    ) -> Result<Self, Failure> {
        let program = loaded.program();
        let task = program.task();
        let parts = u64::from(parts(task.kind, task.ranks));
        if !elements.is_multiple_of(parts) {
            let kind = task.kind;
            let why =
                format!("{elements} numbers are not {parts} equal parts, as {kind} needs them");
            return Err(Failure::new(Code::Invalid, why));
        }
        // Scratch chunks have no place in the vector and so no length of their own: all must be equal.
        let has_scratch = program.sizes().iter().any(|sizes| sizes[2] > 0);
        let chunks = u64::from(task.chunks);
        let of_part = chunks / parts;
        let part = elements / parts;
        let padded = if has_scratch {
            part.next_multiple_of(of_part)
        } else {
            part
        };
        let cut = Split {
            elements: padded * parts,
            chunks,
            bytes: dtype.bytes() as u64,
            in_place: loaded.is_in_place(),
        };
        let range = program.blocks_of(rank);
        let mut script = Self {
            blocks: Vec::with_capacity(range.len()),
            places: Vec::new(),
            sizes: cut.sizes(program, rank),
            part: (part, padded),
            only_sends: !is_sent_to(program, rank),
            givers: Vec::new(),
        };
        let first = range.start;
        for block in range {
            let core = program.blocks()[block as usize];
            let steps: Vec<Step> = program
                .steps_of(block)
                .map(|number| {
                    let view = program.step(number);
                    let start = narrow(script.places.len());
                    let places = view.spans().map(|span| cut.place(program, span));
                    script.places.extend(places);
                    let after = view.dependency.map(|step| {
                        let other = program.block_of(step);
                        (other - first, step - program.steps_of(other).start)
                    });
                    Step {
                        op: view.op,
                        after,
                        first: start,
                        sources: fit(view.sources().len()),
                        count: fit(view.spans().len()),
                    }
                })
                .collect();
            script.blocks.push(Block {
                send: core.send.map(|peer| (peer, core.channel)),
                recv: core.recv.map(|peer| (peer, core.channel)),
                steps,
                awaited_by: Vec::new(),
            });
        }
        let mut from: Vec<u32> = script
            .blocks
            .iter()
            .filter_map(|block| Some(block.recv?.0))
            .collect();
        from.sort_unstable();
        from.dedup();
        from.retain(|&peer| !is_sent_to(program, peer));
        script.givers = from;
        for waiting in 0..script.blocks.len() {
            let awaited: Vec<u32> = script.blocks[waiting]
                .steps
                .iter()
                .filter_map(|step| Some(step.after?.0))
                .collect();
            for block in awaited {
                let by = &mut script.blocks[block as usize].awaited_by;
                if by.last() != Some(&narrow(waiting)) && block != narrow(waiting) {
                    by.push(narrow(waiting));
                }
            }
        }
        Ok(script)
    }

    pub(crate) fn sources(&self, step: Step) -> &[Place] {
        &self.places[step.first as usize..][..step.sources as usize]
    }

    pub(crate) fn targets(&self, step: Step) -> &[Place] {
        &self.places[step.first as usize..][step.sources as usize..step.count as usize]
    }
}

/// Returns whether a rank receives any message.
fn is_sent_to(program: &Program, rank: u32) -> bool {
    let mut steps = program
        .blocks_of(rank)
        .flat_map(|block| program.steps_of(block));
    steps.any(|step| program.step(step).op.receives())
}

/// Parts of the whole vector that a kind has: one for each rank, or one.
pub(crate) fn parts(kind: CollectiveKind, ranks: u32) -> u32 {
    match kind {
        CollectiveKind::AllReduce | CollectiveKind::Broadcast | CollectiveKind::Reduce => 1,
        _ => ranks,
    }
}

/// How a vector is cut into chunks.
struct Split {
    elements: u64,
    chunks: u64,
    bytes: u64,
    in_place: bool,
}

impl Split {
    /// Byte at which a chunk starts.
    fn start(&self, chunk: u64) -> usize {
        let number = u128::from(chunk) * u128::from(self.elements) / u128::from(self.chunks.max(1));
        fit::<usize, _>(number) * fit::<usize, _>(self.bytes)
    }

    fn sizes(&self, program: &Program, rank: u32) -> [usize; 3] {
        let task = program.task();
        let scratch = self.start(program.sizes()[rank as usize][2].into());
        let (input, output) = (task.input(rank), task.output(rank));
        if self.in_place {
            return [self.start(self.chunks), 0, scratch];
        }
        [self.start(input.into()), self.start(output.into()), scratch]
    }

    fn place(&self, program: &Program, span: Span) -> Place {
        let (buffer, first) = match span.buffer() {
            Buffer::Scratch => (Buffer::Scratch, span.offset()),
            other if self.in_place => {
                let first = program.task().in_place(span.rank(), other, span.offset());
                (Buffer::Input, first)
            }
            other => (other, span.offset()),
        };
        let offset = self.start(first.into());
        let end = self.start(u64::from(first) + u64::from(span.count()));
        Place {
            buffer,
            offset,
            len: end - offset,
        }
    }
}

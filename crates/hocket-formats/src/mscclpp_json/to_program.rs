//! [`ExecutionPlan`] to [`Program`], and its check.
//!
//! Chunks are cut so that shares of block groups are whole chunks. A pipeline is unrolled into two rounds for each of its
//! chunks: rounds take different bytes, and all of them do the same. Packet operations become one step for each chunk,
//! since each chunk of packets orders what comes before and after it alone.

use std::collections::HashMap;

use hocket_base::id::{fit, narrow};
use hocket_base::progress::{Interrupted, Progress};
use hocket_plan::collective::CollectiveKind;
use hocket_program::program::check::{CheckOptions, Fault, Place, check as check_program};
use hocket_program::program::{
    Block, Buffer as Memory, Line, Mode, NewStep, Op as StepOp, Program, ProgramBuilder, Semaphore,
    SizeLimits, Span, Task,
};

use super::export::plain_name;
use super::{Buffer, BufferType, ChannelType, ExecutionPlan, Gpu, Op, Threadblock, rules};
use crate::{Finding, FormatError, Verdict};

/// What plans call the kinds of collectives.
pub(super) const COLLECTIVES: [(&str, CollectiveKind); 6] = [
    ("allreduce", CollectiveKind::AllReduce),
    ("allgather", CollectiveKind::AllGather),
    ("reducescatter", CollectiveKind::ReduceScatter),
    ("alltoall", CollectiveKind::AllToAll),
    ("broadcast", CollectiveKind::Broadcast),
    ("reduce", CollectiveKind::Reduce),
];

impl BufferType {
    /// Returns the buffer of a program.
    pub(super) const fn memory(self) -> Memory {
        match self {
            BufferType::Input => Memory::Input,
            BufferType::Output => Memory::Output,
            BufferType::Scratch => Memory::Scratch,
        }
    }
}

/// Rounds of a pipeline for each of its chunks.
const ROUNDS: u32 = 2;

/// Returns the program of a plan that keeps the rules, and the operation that each step comes from.
///
/// # Errors
/// [`FormatError`] for numbers that lead nowhere or are too large.
pub fn program(plan: &ExecutionPlan) -> Result<(Program, Vec<String>), FormatError> {
    let cut = cut(plan)?;
    let first = plan.gpus.first();
    let input = first.map_or(0, |gpu| gpu.input_chunks) * cut;
    let output = first.map_or(0, |gpu| gpu.output_chunks) * cut;
    let kind = COLLECTIVES
        .iter()
        .find(|(name, _)| *name == plan.collective);
    let kind = kind.map_or(CollectiveKind::Custom, |&(_, kind)| kind);
    let task = Task {
        kind,
        ranks: narrow(plan.gpus.len()),
        root: 0,
        chunks: if kind == CollectiveKind::AllGather {
            output
        } else {
            input
        },
    };
    let mut builder = ProgramBuilder::new(plain_name(&plan.name), task);
    builder.unsynced();
    builder.modes(&[if plan.inplace {
        Mode::InPlace
    } else {
        Mode::OutOfPlace
    }]);
    if plan.use_double_scratch_buffer {
        builder.alternating();
    }
    builder.limits(SizeLimits {
        min: plan.min_message_size,
        max: plan.max_message_size,
    });
    let mut reader = Reader {
        cut,
        builder,
        lines: HashMap::new(),
        semaphores: Vec::new(),
        places: Vec::new(),
        place: String::new(),
        round: None,
        rank: 0,
    };
    for (rank, gpu) in plan.gpus.iter().enumerate() {
        reader.gpu(narrow(rank), gpu)?;
    }
    let built = reader.builder.finish();
    let program = built.map_err(|error| FormatError::new(error.to_string()))?;
    Ok((program, reader.places))
}

/// Into how many each chunk is cut.
fn cut(plan: &ExecutionPlan) -> Result<u32, FormatError> {
    let blocks = plan.gpus.iter().flat_map(|gpu| &gpu.threadblocks);
    let outer = blocks.flat_map(|tb| &tb.ops);
    let mut cut: u32 = 1;
    for op in outer {
        for each in std::iter::once(op).chain(&op.ops) {
            let size = each.tbg_info.map_or(1, |group| group.tbg_size.max(1));
            cut = cut / gcd(cut, size) * size;
            if cut > 1 << 12 {
                let why = "has block groups whose shares need chunks cut into more than 4,096";
                return Err(FormatError::new(why));
            }
        }
    }
    let blocks = plan.gpus.iter().flat_map(|gpu| &gpu.threadblocks);
    let has_pipeline = blocks
        .flat_map(|tb| &tb.ops)
        .any(|op| op.name == "pipeline");
    let cut = if has_pipeline { cut * ROUNDS } else { cut };
    let sizes = plan.gpus.iter().map(|gpu| {
        gpu.input_chunks
            .max(gpu.output_chunks)
            .max(gpu.scratch_chunks)
    });
    let most = u64::from(sizes.max().unwrap_or(0)) * u64::from(cut);
    if most >= u64::from(Span::MAX_CHUNKS) {
        let why = format!("has buffers of {most} chunks and shares of them");
        let remedy = format!("the most is {}", Span::MAX_CHUNKS - 1);
        return Err(FormatError::new(why).remedy(remedy));
    }
    Ok(cut)
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

struct Reader {
    cut: u32,
    builder: ProgramBuilder,
    /// Lines by type, rank that signals, rank that waits, and which of their channels.
    lines: HashMap<(ChannelType, u32, u32, u32), u32>,
    /// Number of the first semaphore of each rank.
    semaphores: Vec<u32>,
    places: Vec<String>,
    place: String,
    /// Round of the pipeline that is being unrolled.
    round: Option<u32>,
    rank: u32,
}

impl Reader {
    fn gpu(&mut self, rank: u32, gpu: &Gpu) -> Result<(), FormatError> {
        self.rank = rank;
        let sizes = [gpu.input_chunks, gpu.output_chunks, gpu.scratch_chunks];
        for (&buffer, size) in Memory::ALL.iter().zip(sizes) {
            self.builder.size(rank, buffer, size * self.cut);
        }
        let mut first = None;
        for semaphore in &gpu.semaphores {
            let initial = semaphore.init_value;
            let number = self.builder.semaphore(Semaphore { rank, initial });
            first.get_or_insert(number);
        }
        self.semaphores.push(first.unwrap_or(0));
        for (id, tb) in gpu.threadblocks.iter().enumerate() {
            self.builder.block(Block {
                rank,
                send: None,
                recv: None,
                channel: 0,
            });
            for (i, op) in tb.ops.iter().enumerate() {
                self.place = format!("gpus[{rank}].threadblocks[{id}].ops[{i}]");
                if op.name != "pipeline" {
                    self.op(gpu, tb, op)?;
                    continue;
                }
                let rounds = op.iter_context.map_or(1, |context| context.num_chunks);
                let rounds = rounds.saturating_mul(ROUNDS);
                if rounds > 1 << 10 {
                    let remedy = "the most that is checked is 512 chunks";
                    return self.fail("is a pipeline of too many chunks", remedy);
                }
                let outer = self.place.clone();
                for round in 0..rounds {
                    self.round = Some(round);
                    for (j, inner) in op.ops.iter().enumerate() {
                        self.place = format!("{outer}.ops[{j}]");
                        self.op(gpu, tb, inner)?;
                    }
                }
                self.round = None;
            }
        }
        Ok(())
    }

    fn fail<T>(&self, why: &str, remedy: &str) -> Result<T, FormatError> {
        Err(FormatError::new(format!("{}: {why}", self.place)).remedy(remedy))
    }

    fn add(&mut self, op: StepOp, sources: &[Span], targets: &[Span], numbers: &[u32]) {
        self.builder.step(&NewStep {
            sources,
            targets,
            numbers,
            ..NewStep::new(op)
        });
        self.places.push(self.place.clone());
    }

    fn op(&mut self, gpu: &Gpu, tb: &Threadblock, op: &Op) -> Result<(), FormatError> {
        match op.name.as_ref() {
            "nop" => self.add(StepOp::Nop, &[], &[], &[]),
            "flush" => {}
            "barrier" => {
                let numbers = [op.barrier_id.unwrap_or(0), op.num_threadblocks.unwrap_or(0)];
                self.add(StepOp::Barrier, &[], &[], &numbers);
            }
            "sem_acquire" | "sem_release" => {
                let first = self.semaphores[self.rank as usize];
                let numbers: Vec<u32> = op.semaphore_ids.iter().map(|id| first + id).collect();
                let is_acquire = op.name == "sem_acquire";
                let kind = if is_acquire {
                    StepOp::Acquire
                } else {
                    StepOp::Release
                };
                self.add(kind, &[], &[], &numbers);
            }
            "signal" | "rlxsignal" => {
                let lines = self.lines_of(gpu, tb, op, true)?;
                self.add(StepOp::Signal, &[], &[], &lines);
            }
            "wait" | "rlxwait" => {
                let lines = self.lines_of(gpu, tb, op, false)?;
                self.add(StepOp::Wait, &[], &[], &lines);
            }
            "pws" | "pwsf" if op.channel_type != Some(ChannelType::Memory) => {
                self.moves(gpu, tb, op)?;
                self.add(StepOp::Nop, &[], &[], &[]);
                let lines = self.lines_of(gpu, tb, op, true)?;
                self.add(StepOp::Signal, &[], &[], &lines);
            }
            _ => self.moves(gpu, tb, op)?,
        }
        Ok(())
    }

    /// Returns the numbers of the lines of an operation's channels: outward for signals, inward for waits.
    fn lines_of(
        &mut self,
        gpu: &Gpu,
        tb: &Threadblock,
        op: &Op,
        outward: bool,
    ) -> Result<Vec<u32>, FormatError> {
        let Some(kind) = op.channel_type.filter(|&kind| kind != ChannelType::Switch) else {
            return self.fail("has no channel_type memory or port", "");
        };
        let own = tb.channels.iter().find(|refs| refs.channel_type == kind);
        let ids = own.map_or([].as_slice(), |refs| refs.channel_ids.as_slice());
        let of_kind = gpu
            .channels
            .iter()
            .filter(|channels| channels.channel_type == kind);
        let peers: Vec<u32> = of_kind
            .flat_map(|channels| channels.connected_to.iter().flatten())
            .copied()
            .collect();
        let mut lines = Vec::with_capacity(op.channel_ids.len());
        for &id in &op.channel_ids {
            let channel = ids.get(id as usize).map(|&id| id as usize);
            let Some((channel, &peer)) = channel.and_then(|id| Some((id, peers.get(id)?))) else {
                return self.fail("uses a channel that does not exist", "");
            };
            let which = narrow(
                peers[..channel]
                    .iter()
                    .filter(|&&other| other == peer)
                    .count(),
            );
            let (from, to) = if outward {
                (self.rank, peer)
            } else {
                (peer, self.rank)
            };
            let builder = &mut self.builder;
            let line = self.lines.entry((kind, from, to, which));
            lines.push(*line.or_insert_with(|| builder.line(Line { from, to })));
        }
        Ok(lines)
    }

    /// Returns the spans of a buffer: one, or at a switch one for each rank.
    fn spans(
        &self,
        gpu: &Gpu,
        tb: &Threadblock,
        op: &Op,
        buffer: &Buffer,
    ) -> Result<Vec<Span>, FormatError> {
        let places: Vec<(u32, BufferType)> = if let Some(kind) = buffer.r#type {
            vec![(self.rank, kind)]
        } else if let Some(id) = buffer.buffer_id {
            let of_kind =
                |refs: &&super::BufferRefs| Some(refs.access_channel_type) == op.channel_type;
            let refs = tb.remote_buffer_refs.iter().find(of_kind);
            let id = refs.and_then(|refs| refs.remote_buffer_ids.get(id as usize));
            let Some(remote) = id.and_then(|&id| gpu.remote_buffers.get(id as usize)) else {
                return self.fail("uses a remote buffer that its block does not have", "");
            };
            vec![(remote.rank, remote.r#type)]
        } else if let Some(id) = buffer.switch_channel_id {
            let is_switch = |refs: &&super::ChannelRefs| refs.channel_type == ChannelType::Switch;
            let refs = tb.channels.iter().find(is_switch);
            let switches = gpu
                .channels
                .iter()
                .filter(|each| each.channel_type == ChannelType::Switch);
            let groups: Vec<_> = switches
                .flat_map(|each| {
                    each.rank_groups
                        .iter()
                        .flatten()
                        .map(|group| (each.buffer_type, group))
                })
                .collect();
            let id = refs.and_then(|refs| refs.channel_ids.get(id as usize));
            match id.and_then(|&id| groups.get(id as usize)) {
                Some((Some(kind), group)) => {
                    group.ranks.iter().map(|&rank| (rank, *kind)).collect()
                }
                _ => return self.fail("uses a switch channel that its block does not have", ""),
            }
        } else {
            return self.fail(
                "has a buffer without type, buffer_id or switch_channel_id",
                "",
            );
        };
        let (offset, count) = self.range(op, buffer)?;
        Ok(places
            .into_iter()
            .map(|(rank, kind)| Span::new(rank, kind.memory(), offset, count))
            .collect())
    }

    /// Returns first chunk and number of chunks, of those that chunks are cut into.
    fn range(&self, op: &Op, buffer: &Buffer) -> Result<(u32, u32), FormatError> {
        let start = u64::from(buffer.index) * u64::from(self.cut);
        let (start, count) = match self.round {
            None => (start, u64::from(buffer.size) * u64::from(self.cut)),
            Some(round) => {
                let unit = u64::from(self.cut / ROUNDS);
                (start + u64::from(round) * unit, unit)
            }
        };
        let (share, shares) = op.tbg_info.map_or((0, 1), |group| {
            (u64::from(group.tb_id), u64::from(group.tbg_size.max(1)))
        });
        let (offset, count) = (start + count / shares * share, count / shares);
        if offset + count >= u64::from(Span::MAX_CHUNKS) || count > u64::from(Span::MAX_COUNT) {
            return self.fail("has too many chunks", "");
        }
        if count == 0 {
            return self.fail("has a buffer of size 0", "give at least 1");
        }
        Ok((fit(offset), fit(count)))
    }

    /// The steps of an operation that moves data.
    fn moves(&mut self, gpu: &Gpu, tb: &Threadblock, op: &Op) -> Result<(), FormatError> {
        let mut sources = Vec::new();
        for buffer in &op.src_buff {
            sources.push(self.spans(gpu, tb, op, buffer)?);
        }
        let mut targets = Vec::new();
        for buffer in &op.dst_buff {
            targets.push(self.spans(gpu, tb, op, buffer)?);
        }
        // Which sources and targets are packets: from this position on.
        let (packets_read, packets_written) = match op.name.as_ref() {
            "ppkt" | "cpkt" => (usize::MAX, 0),
            "rppkt" | "gstorepkt" => (0, 0),
            "upkt" => (0, usize::MAX),
            "repkt" => (1, usize::MAX),
            "respkt" | "recpkt" | "recspkt" => (1, 1),
            _ => (usize::MAX, usize::MAX),
        };
        let mark = |spans: Vec<Vec<Span>>, from: usize| -> Vec<Span> {
            let marked = spans.into_iter().enumerate().flat_map(|(i, spans)| {
                spans
                    .into_iter()
                    .map(move |span| if i >= from { span.packet() } else { span })
            });
            marked.collect()
        };
        let sums = matches!(
            op.name.as_ref(),
            "re" | "res" | "rre" | "rres" | "repkt" | "respkt" | "recpkt" | "recspkt" | "glres"
        );
        let sources = mark(sources, packets_read);
        let targets = mark(targets, packets_written);
        let one_to_many = sources.len() == 1 && targets.len() > 1;
        let kind = if sums || one_to_many {
            StepOp::Reduce
        } else {
            StepOp::Copy
        };
        let has_packets = sources.iter().chain(&targets).any(|span| span.is_packet());
        if !has_packets {
            self.add(kind, &sources, &targets, &[]);
            return Ok(());
        }
        let count = sources.first().map_or(0, |span| span.count());
        let all = sources.iter().chain(&targets);
        if all.clone().any(|span| span.count() != count) {
            return self.fail(
                "has packets of different sizes",
                "give all buffers one size",
            );
        }
        let part = |span: &Span, i: u32| {
            let one = Span::new(span.rank(), span.buffer(), span.offset() + i, 1);
            if span.is_packet() { one.packet() } else { one }
        };
        for i in 0..count {
            let sources: Vec<Span> = sources.iter().map(|span| part(span, i)).collect();
            let targets = targets.iter().map(|span| part(span, i));
            // What is multicast comes back to its own place, as the packet that is there.
            let comes_back = |span: &Span| !sums && span.is_packet() && sources.contains(span);
            let targets: Vec<Span> = targets.filter(|span| !comes_back(span)).collect();
            if !targets.is_empty() {
                self.add(kind, &sources, &targets, &[]);
            }
        }
        Ok(())
    }
}

/// Judges a plan: the rules of the format, and the program.
///
/// # Errors
/// [`Interrupted`].
pub fn check(
    plan: &ExecutionPlan,
    options: &CheckOptions,
    progress: &mut dyn Progress,
) -> Result<Verdict, Interrupted> {
    let mut verdict = Verdict::default();
    let ignored = plan.ignored.iter().map(ToString::to_string);
    verdict.notes.extend(ignored);
    rules::check(plan, &mut verdict);
    if !verdict.is_right() {
        return Ok(verdict);
    }
    check_sizes(plan, &mut verdict);
    match program(plan) {
        Ok((program, places)) if verdict.is_right() => {
            let checked = check_program(&program, options, progress)?;
            verdict.take(&checked, |fault| (0, locate(&program, &places, fault)));
            if let (false, Ok(parts @ 2..)) = (verdict.is_right(), cut(plan)) {
                verdict.notes.push(format!(
                    "chunks are counted in {parts} parts of each, as thread blocks share them"
                ));
            }
        }
        Ok(_) => {}
        Err(error) => verdict.add(Finding {
            code: "unreadable",
            line: error.line().unwrap_or(0),
            place: String::new(),
            detail: error.why().to_owned(),
        }),
    }
    verdict
        .notes
        .push("checked by the rules of MSCCL++ 0.9.0".to_owned());
    Ok(verdict)
}

/// Chunks of input and output must have the same number of bytes, and be those of the collective.
fn check_sizes(plan: &ExecutionPlan, verdict: &mut Verdict) {
    let ranks = narrow(plan.gpus.len());
    let (input_factor, output_factor) = match plan.collective.as_str() {
        "allgather" => (ranks, 1),
        "reducescatter" => (1, ranks),
        "allreduce" | "alltoall" | "broadcast" | "reduce" => (1, 1),
        _ => return,
    };
    let first = &plan.gpus[0];
    for (rank, gpu) in plan.gpus.iter().enumerate() {
        let place = format!("gpus[{rank}]");
        let detail = if gpu.input_chunks.saturating_mul(input_factor)
            != gpu.output_chunks.saturating_mul(output_factor)
        {
            format!(
                "has {} input chunks and {} output chunks, which are not of one size in an {} of {ranks} ranks",
                gpu.input_chunks, gpu.output_chunks, plan.collective
            )
        } else if gpu.input_chunks != first.input_chunks {
            format!(
                "has {} input chunks, and rank 0 has {}",
                gpu.input_chunks, first.input_chunks
            )
        } else {
            continue;
        };
        verdict.add(Finding {
            code: "sizes",
            line: 0,
            place,
            detail,
        });
    }
}

fn locate(program: &Program, places: &[String], fault: &Fault) -> String {
    match fault.place {
        Place::Program => String::new(),
        Place::Rank(rank) => format!("gpus[{rank}]"),
        Place::Block(block) => {
            let rank = program.blocks()[block as usize].rank;
            format!(
                "gpus[{rank}].threadblocks[{}]",
                block - program.blocks_of(rank).start
            )
        }
        Place::Step(step) => places[step as usize].clone(),
    }
}

//! Plans in which the NVSwitches of a machine sum and multicast, to [`ExecutionPlan`].
//!
//! A channel of type switch binds one buffer of all its ranks. `glres` reads a chunk of all of them as one sum and writes that sum to
//! all of them; `gstore` writes a chunk of one rank to all. Neither waits for anything, so ranks meet before and after: all
//! have come to this call and filled the buffer, and all have written their parts.
//!
//! The file has chunks of its own, a rank's part for each thread block, whatever the plan's are: the hardware moves 16 bytes at a
//! time, as a plan with many chunks does. Each rank sums an equal part, since `glres` takes the data of whoever sums through the switch
//! too, as a multimem plan says and an in-network plan does not.
//!
//! # Source
//! microsoft/mscclpp 1f5f065 (0.9.0): `src/core/include/execution_kernel.hpp` (`glres`, `gstore`), `src/core/switch_channel.cc`. The
//! barrier of many ranks: Hensgen, Finkel and Manber, Two Algorithms for Barrier Synchronization, 1988 (dissemination).

use std::fmt::Write;

use hocket_base::id::{TransferId, narrow};
use hocket_plan::collective::CollectiveKind;
use hocket_plan::plan::Op as PlanOp;
use hocket_plan::verify::Verified;
use hocket_program::program::{SizeLimits, Task};

use super::export::{Head, Protocol, Refused, Written};
use super::{
    Buffer, BufferType, ChannelRefs, ChannelType, Channels, ExecutionPlan, Gpu, Op, RankGroup,
    Threadblock, limits,
};

/// How a plan in which switches sum is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchOptions {
    /// Thread blocks of a rank, each with its own part of the data.
    pub blocks: u32,
    /// Whether input and output are one buffer.
    pub in_place: bool,
    /// Sizes for which the file may be used.
    pub limits: SizeLimits,
}

impl Default for SwitchOptions {
    /// In place, for all sizes, with 16 blocks: as many as NCCL has for its switches on an H100.
    fn default() -> Self {
        Self {
            blocks: 16,
            in_place: true,
            limits: SizeLimits::default(),
        }
    }
}

/// Returns whether transfers of a plan end at switches.
pub fn uses_switches(verified: &Verified) -> bool {
    let npus = narrow(verified.topology().npu_count());
    let plan = verified.plan();
    let mut ends = plan.src().iter().zip(plan.dst());
    ends.any(|(&src, &dst)| src.max(dst) >= npus)
}

/// Writes a plan in which the switches of one box sum and multicast.
///
/// # Errors
/// [`Refused`] where switches do what `glres` and `gstore` do not, and where a thread block has no room for as many ranks.
pub fn export_switches(
    verified: &Verified,
    protocol: Protocol,
    options: &SwitchOptions,
    out: &mut dyn Write,
) -> Result<Written, Refused> {
    if protocol == Protocol::Ll {
        let why = "packets through switches; write it with protocol Simple";
        return Err(Refused::Inexpressible(why.to_owned()));
    }
    let call = Call::of(verified, options)?;
    let plan = verified.plan();
    let root = plan.collective().root().map_or(0, |root| root.0);
    let file = call.file(plan.algorithm(), root, options)?;
    out.write_str(&super::write(&file)?)?;
    let blocks = file.gpus.iter().flat_map(|gpu| &gpu.threadblocks);
    Ok(Written {
        steps: file.gpus.iter().map(Gpu::operations).sum(),
        operations: blocks.map(|block| block.ops.len()).max().unwrap_or(0),
        ..call.written()
    })
}

/// Counts what a plan in which switches sum and multicast takes of the executor, and takes the plan at its word for how long links are
/// busy.
///
/// # Errors
/// [`Refused`] as [`export_switches`], and for plans that leave a rank's own data out of the switch, where the executor does not.
pub fn need_switches(verified: &Verified, options: &SwitchOptions) -> Result<Written, Refused> {
    let call = Call::of(verified, options)?;
    if call.adds_own() {
        let instead = match call.kind {
            CollectiveKind::AllReduce => "multimem counts them",
            _ => "direct takes no longer",
        };
        return Err(Refused::Inexpressible(format!(
            "a rank's own data that stay where they are, since all of it goes through the switch; {instead}"
        )));
    }
    let block = call.ops(0, 0, &Meeting::of(0, call.ranks));
    Ok(Written {
        operations: block.len(),
        ..call.written()
    })
}

/// What is asked of the file.
struct Call {
    kind: CollectiveKind,
    ranks: u32,
    blocks: u32,
    /// Whether the plan sums the data of whoever sums at the switch too.
    has_own: bool,
}

impl Call {
    /// Finds what a plan asks for.
    fn of(verified: &Verified, options: &SwitchOptions) -> Result<Self, Refused> {
        if options.blocks == 0 {
            let why = "a rank needs one thread block at least".to_owned();
            return Err(Refused::Limit(why));
        }
        let collective = verified.plan().collective();
        let has_own = Judge::new(verified)
            .and_then(|judge| judge.all(verified))
            .map_err(Refused::Inexpressible)?;
        Ok(Self {
            kind: collective.kind(),
            ranks: narrow(collective.npus().len()),
            blocks: options.blocks,
            has_own,
        })
    }

    /// What is written, without steps and operations.
    fn written(&self) -> Written {
        let [input, output, scratch] = self.sizes();
        Written {
            chunks: input.max(output),
            blocks: self.blocks as usize,
            channels: self.blocks,
            scratch,
            adds_own: self.adds_own(),
            binds_output: self.bound() == BufferType::Output,
            ..Written::default()
        }
    }

    fn file(
        &self,
        name: &str,
        root: u32,
        options: &SwitchOptions,
    ) -> Result<ExecutionPlan, Refused> {
        let [input, output, scratch] = self.sizes();
        let task = Task {
            kind: self.kind,
            ranks: self.ranks,
            root,
            chunks: input.max(output),
        };
        let head = Head {
            name,
            task: &task,
            in_place: options.in_place,
            limits: options.limits,
        };
        let mut file = head.plan(Protocol::Simple)?;
        file.gpus = (0..self.ranks).map(|rank| self.gpu(rank)).collect();
        let blocks = file.gpus.iter().flat_map(|gpu| &gpu.threadblocks);
        let operations = blocks.map(|block| block.ops.len()).max().unwrap_or(0);
        if operations > limits::MAX_OPS {
            return Err(Refused::Limit(format!(
                "a block has {operations} operations to meet {} ranks, and the most is {}",
                self.ranks,
                limits::MAX_OPS
            )));
        }
        super::export::finish(&mut file, &task, scratch)?;
        Ok(file)
    }

    /// Whether ranks' own data go through the switch, where the plan leaves them out. The root of a broadcast has its link to itself.
    fn adds_own(&self) -> bool {
        self.kind != CollectiveKind::Broadcast && !self.has_own
    }

    /// The buffer that the switch channel binds.
    fn bound(&self) -> BufferType {
        match self.kind {
            CollectiveKind::AllReduce => BufferType::Scratch,
            _ => BufferType::Output,
        }
    }

    /// Chunks of input, output and scratch.
    fn sizes(&self) -> [u32; 3] {
        let (own, all) = (self.blocks, self.blocks.saturating_mul(self.ranks));
        match self.kind {
            CollectiveKind::AllReduce => [all; 3],
            CollectiveKind::AllGather => [own, all, 0],
            _ => [own, own, 0],
        }
    }

    fn gpu(&self, rank: u32) -> Gpu {
        let [input_chunks, output_chunks, scratch_chunks] = self.sizes();
        let meeting = Meeting::of(rank, self.ranks);
        let each = narrow(meeting.peers.len());
        let memory = (0..self.blocks).flat_map(|_| meeting.peers.iter().copied());
        let channels = vec![
            Channels {
                channel_type: ChannelType::Memory,
                connected_to: Some(memory.collect()),
                buffer_type: None,
                rank_groups: None,
            },
            Channels {
                channel_type: ChannelType::Switch,
                connected_to: None,
                buffer_type: Some(self.bound()),
                rank_groups: Some(vec![RankGroup {
                    size: self.ranks,
                    ranks: (0..self.ranks).collect(),
                }]),
            },
        ];
        let block = |id: u32| Threadblock {
            id,
            ops: self.ops(rank, id, &meeting),
            channels: [
                (ChannelType::Memory, (id * each..(id + 1) * each).collect()),
                (ChannelType::Switch, vec![0]),
            ]
            .map(|(channel_type, channel_ids)| ChannelRefs {
                channel_type,
                channel_ids,
            })
            .into(),
            remote_buffer_refs: Vec::new(),
        };
        Gpu {
            id: rank,
            input_chunks,
            output_chunks,
            scratch_chunks,
            threadblocks: (0..self.blocks).map(block).collect(),
            channels,
            remote_buffers: Vec::new(),
            semaphores: Vec::new(),
        }
    }

    fn ops(&self, rank: u32, block: u32, meeting: &Meeting) -> Vec<Op> {
        let (ranks, first) = (self.ranks, block * self.ranks);
        let mut ops = Vec::new();
        match self.kind {
            CollectiveKind::AllReduce => {
                let copy = |from, to| {
                    let (from, to) = (local(from, first, ranks), local(to, first, ranks));
                    moved("copy", from, to)
                };
                ops.push(copy(BufferType::Input, BufferType::Scratch));
                ops.push(nop());
                meeting.add(&mut ops);
                ops.push(nop());
                let sum = at_switch(first + rank);
                ops.push(Op {
                    channel_type: Some(ChannelType::Switch),
                    reduce_op: Some("sum".to_owned()),
                    ..moved("glres", sum, sum)
                });
                ops.push(nop());
                meeting.add(&mut ops);
                ops.push(nop());
                ops.push(copy(BufferType::Scratch, BufferType::Output));
            }
            kind => {
                meeting.add(&mut ops);
                let gathers = kind == CollectiveKind::AllGather;
                if gathers || rank == 0 {
                    let to = at_switch(block + if gathers { rank * self.blocks } else { 0 });
                    let from = local(BufferType::Input, block, 1);
                    ops.push(nop());
                    ops.push(Op {
                        channel_type: Some(ChannelType::Switch),
                        ..moved("gstore", from, to)
                    });
                    ops.push(nop());
                }
                meeting.add(&mut ops);
            }
        }
        ops
    }
}

/// How the blocks of all ranks wait for each other.
struct Meeting {
    /// The rank at the other end of each channel of a block.
    peers: Vec<u32>,
    /// Channels over which it signals, then those over which it waits, in rounds.
    rounds: Vec<[Vec<u32>; 2]>,
}

impl Meeting {
    /// All meet all while a block has channels for that; otherwise whom a rank signals is twice as far away in each round.
    fn of(rank: u32, ranks: u32) -> Self {
        if ranks as usize <= limits::MAX_REFS + 1 {
            let peers: Vec<u32> = (0..ranks).filter(|&peer| peer != rank).collect();
            let all: Vec<u32> = (0..ranks - 1).collect();
            let rounds = vec![[all.clone(), all]];
            return Self { peers, rounds };
        }
        let (mut peers, mut rounds) = (Vec::new(), Vec::new());
        let mut far = 1;
        while far < ranks {
            let ends = [(rank + far) % ranks, (rank + ranks - far) % ranks];
            let first = narrow(peers.len());
            peers.push(ends[0]);
            if ends[0] != ends[1] {
                peers.push(ends[1]);
            }
            rounds.push([vec![first], vec![narrow(peers.len()) - 1]]);
            far *= 2;
        }
        Self { peers, rounds }
    }

    fn add(&self, ops: &mut Vec<Op>) {
        // The same thread waits, and signals in the next round.
        for round in &self.rounds {
            for (name, channels) in ["signal", "wait"].into_iter().zip(round) {
                for some in channels.chunks(limits::MAX_OP_CHANNELS) {
                    ops.push(Op {
                        name: name.into(),
                        channel_ids: some.to_vec(),
                        channel_type: Some(ChannelType::Memory),
                        ..Op::default()
                    });
                }
            }
        }
    }
}

fn nop() -> Op {
    Op {
        name: "nop".into(),
        ..Op::default()
    }
}

fn moved(name: &'static str, from: Buffer, to: Buffer) -> Op {
    Op {
        name: name.into(),
        src_buff: vec![from],
        dst_buff: vec![to],
        ..Op::default()
    }
}

fn local(buffer: BufferType, index: u32, size: u32) -> Buffer {
    Buffer {
        r#type: Some(buffer),
        index,
        size,
        ..Buffer::default()
    }
}

/// A chunk of all ranks.
fn at_switch(index: u32) -> Buffer {
    Buffer {
        switch_channel_id: Some(0),
        index,
        size: 1,
        ..Buffer::default()
    }
}

/// What happens to a chunk of the plan: numbers of transfers.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Passage {
    /// From ranks, to be summed.
    summed: u32,
    /// Sums that come to a rank.
    sums: u32,
    /// From a rank, to be multicast.
    cast: u32,
    /// To ranks.
    received: u32,
}

/// Looks for what the executor's operations do not do.
struct Judge {
    ranks: u32,
    passages: Vec<Passage>,
    /// Whether each NPU is a rank.
    is_rank: Vec<bool>,
}

impl Judge {
    fn new(verified: &Verified) -> Result<Self, String> {
        let plan = verified.plan();
        let collective = plan.collective();
        let ranks = narrow(collective.npus().len());
        if !matches!(
            collective.kind(),
            CollectiveKind::AllReduce | CollectiveKind::AllGather | CollectiveKind::Broadcast
        ) {
            return Err(format!(
                "a {} by switches: its executor has every sum sent to all ranks; use an algorithm in which NPUs sum, such as direct",
                collective.kind()
            ));
        }
        let mut is_rank = vec![false; verified.topology().npu_count()];
        for npu in collective.npus() {
            is_rank[npu.index()] = true;
        }
        Ok(Self {
            ranks,
            passages: vec![Passage::default(); plan.chunks().len()],
            is_rank,
        })
    }

    /// Returns whether sums have the data of whoever sums.
    fn all(mut self, verified: &Verified) -> Result<bool, String> {
        let plan = verified.plan();
        for i in 0..plan.len() {
            self.transfer(verified, i)
                .map_err(|why| format!("transfer {i} {why}"))?;
        }
        let others = self.ranks - 1;
        let sums = plan.collective().kind() == CollectiveKind::AllReduce;
        let passage = |summed, sums, received| Passage {
            summed,
            sums,
            cast: 1,
            received,
        };
        // Whoever sums has left its own data where they are, or has had them summed too: then what comes to it is a copy.
        let right = match sums {
            true => [
                passage(others, 1, others),
                passage(others + 1, 0, others + 1),
            ],
            false => [passage(0, 0, others); 2],
        };
        for (chunk, passage) in self.passages.iter().enumerate() {
            if !right.contains(passage) {
                return Err(format!(
                    "chunk {chunk}, which goes up to switches in {} transfers, of which {} reach a rank as sums, is multicast by ranks {} times and received {} times; one rank must sum and multicast it, through switches at which all ranks are",
                    passage.summed, passage.sums, passage.cast, passage.received
                ));
            }
        }
        Ok(self.passages.iter().all(|passage| passage.summed > others))
    }

    fn transfer(&mut self, verified: &Verified, i: usize) -> Result<(), String> {
        let (plan, topology) = (verified.plan(), verified.topology());
        let npus = narrow(topology.npu_count());
        let (src, dst) = (plan.src()[i], plan.dst()[i]);
        let (goes_up, npu) = match (src < npus, dst < npus) {
            (true, false) => (true, src),
            (false, true) => (false, dst),
            (true, true) => return Err("goes from NPU to NPU beside what switches do".to_owned()),
            (false, false) => return Err("goes from switch to switch".to_owned()),
        };
        if !self.is_rank[npu as usize] {
            return Err(format!(
                "ends at NPU {npu}, which is no rank of the collective"
            ));
        }
        let links = verified
            .routes()
            .links(plan, topology, TransferId(narrow(i)));
        if links.len() != 1 {
            return Err(format!(
                "reaches its switch over {} links; its channels need a switch at which every GPU is, as an NVSwitch",
                links.len()
            ));
        }
        let sums = plan.op()[i] == PlanOp::Reduce as u8;
        let first = plan.chunk()[i] as usize;
        let chunks = &mut self.passages[first..][..plan.chunk_count()[i] as usize];
        for passage in chunks {
            *match (goes_up, sums) {
                (true, true) => &mut passage.summed,
                (false, true) => &mut passage.sums,
                (true, false) => &mut passage.cast,
                (false, false) => &mut passage.received,
            } += 1;
        }
        Ok(())
    }
}

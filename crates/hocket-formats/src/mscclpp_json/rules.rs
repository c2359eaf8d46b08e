//! What the executor demands: numbers that lead somewhere, and its [limits](super::limits).

use super::limits::{
    MAX_BARRIERS, MAX_OP_BUFFERS, MAX_OP_CHANNELS, MAX_OP_SEMAPHORES, MAX_OPS, MAX_REFS,
};
use super::{Buffer, BufferType, ChannelType, ExecutionPlan, Gpu, Op, Threadblock};
use crate::{Finding, Verdict};

/// The operations, and what they need: (name, sources at least, targets at least, has channels of its own).
const OPS: [(&str, usize, usize, bool); 30] = [
    ("nop", 0, 0, false),
    ("barrier", 0, 0, false),
    ("signal", 0, 0, true),
    ("wait", 0, 0, true),
    ("rlxsignal", 0, 0, true),
    ("rlxwait", 0, 0, true),
    ("flush", 0, 0, false),
    ("put", 1, 1, false),
    ("pws", 1, 1, true),
    ("pwsf", 1, 1, true),
    ("get", 1, 1, false),
    ("copy", 1, 1, false),
    ("re", 1, 1, false),
    ("res", 1, 1, false),
    ("rre", 1, 1, false),
    ("rres", 1, 1, false),
    ("ppkt", 1, 1, false),
    ("rppkt", 1, 1, false),
    ("cpkt", 1, 1, false),
    ("upkt", 1, 1, false),
    ("repkt", 1, 1, false),
    ("respkt", 1, 1, false),
    ("recpkt", 1, 2, false),
    ("recspkt", 1, 2, false),
    ("glres", 1, 1, false),
    ("gstore", 1, 1, false),
    ("gstorepkt", 1, 1, false),
    ("sem_acquire", 0, 0, false),
    ("sem_release", 0, 0, false),
    ("pipeline", 0, 0, false),
];

struct Rules<'a> {
    plan: &'a ExecutionPlan,
    gpu: &'a Gpu,
    tb: &'a Threadblock,
    place: String,
    verdict: &'a mut Verdict,
}

/// Adds what is wrong by the rules of the format.
pub(super) fn check(plan: &ExecutionPlan, verdict: &mut Verdict) {
    let mut add = |code, place: String, detail: String| {
        verdict.add(Finding {
            code,
            line: 0,
            place,
            detail,
        });
    };
    if plan.gpus.len() < 2 {
        let detail = format!("has {} ranks; it needs two or more", plan.gpus.len());
        add("ranks", "gpus".to_owned(), detail);
    }
    if !matches!(plan.protocol.as_str(), "Simple" | "LL") {
        let detail = "is neither Simple nor LL".to_owned();
        add("protocol", "protocol".to_owned(), detail);
    }
    if plan.buffer_alignment == 0 {
        add("sizes", "buffer_alignment".to_owned(), "is 0".to_owned());
    }
    if plan.min_message_size > plan.max_message_size {
        let (min, max) = (plan.min_message_size, plan.max_message_size);
        let detail = format!("is {min}, above max_message_size, {max}");
        add("sizes", "min_message_size".to_owned(), detail);
    }
    for (rank, gpu) in plan.gpus.iter().enumerate() {
        let place = format!("gpus[{rank}]");
        if gpu.id as usize != rank {
            add(
                "position",
                place.clone(),
                format!("has id {}; it must be {rank}", gpu.id),
            );
        }
        if gpu.input_chunks == 0 || gpu.output_chunks == 0 {
            let detail = "has no input_chunks or no output_chunks, by which the executor divides";
            add("sizes", place.clone(), detail.to_owned());
        }
        let first = plan.gpus[0].scratch_chunks;
        if plan.use_double_scratch_buffer && gpu.scratch_chunks != first {
            let detail = format!(
                "has {} scratch chunks, and rank 0 has {first}: halves that take turns must start at the same place in all ranks, since the executor takes its own for theirs",
                gpu.scratch_chunks
            );
            add("sizes", place.clone(), detail);
        }
        check_channels(plan, gpu, rank, &place, &mut add);
        for (id, tb) in gpu.threadblocks.iter().enumerate() {
            if tb.id as usize != id {
                let place = format!("{place}.threadblocks[{id}]");
                add(
                    "position",
                    place,
                    format!("has id {}; it must be {id}", tb.id),
                );
            }
        }
    }
    if !verdict.is_right() {
        return;
    }
    for (rank, gpu) in plan.gpus.iter().enumerate() {
        for (id, tb) in gpu.threadblocks.iter().enumerate() {
            Rules {
                plan,
                gpu,
                tb,
                place: format!("gpus[{rank}].threadblocks[{id}]"),
                verdict,
            }
            .check_block();
        }
    }
}

fn check_channels(
    plan: &ExecutionPlan,
    gpu: &Gpu,
    rank: usize,
    place: &str,
    add: &mut impl FnMut(&'static str, String, String),
) {
    let ranks = plan.gpus.len();
    let stray = |peer: &&u32| **peer as usize >= ranks || **peer as usize == rank;
    for (i, channels) in gpu.channels.iter().enumerate() {
        let place = format!("{place}.channels[{i}]");
        if channels.channel_type == ChannelType::Switch {
            if channels.buffer_type.is_none() {
                add(
                    "channel",
                    place.clone(),
                    "is a switch without buffer_type".to_owned(),
                );
            }
            for group in channels.rank_groups.iter().flatten() {
                let known = group.ranks.iter().all(|&peer| (peer as usize) < ranks);
                if !known || group.size as usize != group.ranks.len() {
                    let detail = "has a rank group of unknown ranks or of another size".to_owned();
                    add("channel", place.clone(), detail);
                }
            }
            if channels.rank_groups.is_none() {
                add(
                    "channel",
                    place,
                    "is a switch without rank_groups".to_owned(),
                );
            }
        } else if channels.connected_to.is_none() {
            add("channel", place, "has no connected_to".to_owned());
        } else if let Some(peer) = channels.connected_to.iter().flatten().find(stray) {
            let detail = format!("leads to rank {peer}, which does not exist or is itself");
            add("channel", place, detail);
        }
    }
    for (i, buffer) in gpu.remote_buffers.iter().enumerate() {
        if stray(&&buffer.rank) {
            let place = format!("{place}.remote_buffers[{i}]");
            let detail = format!(
                "is of rank {}, which does not exist or is itself",
                buffer.rank
            );
            add("remote_buffer", place, detail);
        }
    }
}

impl Rules<'_> {
    fn add(&mut self, code: &'static str, at: &str, detail: String) {
        self.verdict.add(Finding {
            code,
            line: 0,
            place: format!("{}{at}", self.place),
            detail,
        });
    }

    fn check_block(&mut self) {
        let count: usize = self.tb.ops.iter().map(|op| 1 + op.ops.len()).sum();
        if count > MAX_OPS {
            self.add(
                "limit",
                "",
                format!("has {count} operations, and the most is {MAX_OPS}"),
            );
        }
        for refs in &self.tb.channels {
            let kind = refs.channel_type;
            let known = channel_count(self.gpu, kind);
            if refs.channel_ids.len() > MAX_REFS {
                let detail = format!(
                    "has {} {} channels, and the most is {MAX_REFS}",
                    refs.channel_ids.len(),
                    kind.name()
                );
                self.add("limit", "", detail);
            }
            if let Some(&id) = refs.channel_ids.iter().find(|&&id| id as usize >= known) {
                let detail = format!(
                    "uses {} channel {id}, and its rank has {known}",
                    kind.name()
                );
                self.add("channel", "", detail);
            }
        }
        for refs in &self.tb.remote_buffer_refs {
            let kind = refs.access_channel_type;
            if refs.remote_buffer_ids.len() > MAX_REFS {
                let detail = format!(
                    "has {} remote buffers, and the most is {MAX_REFS}",
                    refs.remote_buffer_ids.len()
                );
                self.add("limit", "", detail);
            }
            for &id in &refs.remote_buffer_ids {
                match self.gpu.remote_buffers.get(id as usize) {
                    None => {
                        let known = self.gpu.remote_buffers.len();
                        let detail = format!("uses remote buffer {id}, and its rank has {known}");
                        self.add("remote_buffer", "", detail);
                    }
                    Some(buffer) if !buffer.access_channel_types.contains(&kind) => {
                        let detail = format!(
                            "uses remote buffer {id} over {} channels, which its access_channel_types lacks",
                            kind.name()
                        );
                        self.add("remote_buffer", "", detail);
                    }
                    Some(_) => {}
                }
            }
        }
        for (i, op) in self.tb.ops.iter().enumerate() {
            self.check_op(op, &format!(".ops[{i}]"), false);
        }
    }

    fn check_op(&mut self, op: &Op, at: &str, is_inner: bool) {
        let Some(&(name, sources, targets, needs_channels)) =
            OPS.iter().find(|known| known.0 == op.name)
        else {
            let text: String = op.name.chars().take(40).collect();
            self.add(
                "operation",
                at,
                format!("is {text:?}, which the executor does not know"),
            );
            return;
        };
        if op.src_buff.len() < sources || op.dst_buff.len() < targets {
            let detail = format!(
                "is a {name} with too few buffers: it needs {sources} to read and {targets} to write at least"
            );
            self.add("buffers", at, detail);
        }
        if op.src_buff.len() > MAX_OP_BUFFERS || op.dst_buff.len() > MAX_OP_BUFFERS {
            self.add(
                "limit",
                at,
                format!("has more than {MAX_OP_BUFFERS} buffers on a side"),
            );
        }
        if op.channel_ids.len() > MAX_OP_CHANNELS {
            self.add(
                "limit",
                at,
                format!("has more than {MAX_OP_CHANNELS} channels"),
            );
        }
        if needs_channels && op.channel_ids.is_empty() {
            self.add("channel", at, format!("is a {name} without channels"));
        }
        if name.starts_with("pws") && op.channel_type == Some(ChannelType::Memory) {
            let detail = format!(
                "is a {name} on a memory channel, where the executor puts and does not signal; write put, nop and signal"
            );
            self.add("signal", at, detail);
        }
        let own = |kind| {
            self.tb
                .channels
                .iter()
                .find(|refs| refs.channel_type == kind)
        };
        let known = op
            .channel_type
            .and_then(own)
            .map_or(0, |refs| refs.channel_ids.len());
        if let Some(&id) = op.channel_ids.iter().find(|&&id| id as usize >= known) {
            let detail = format!("uses channel {id} of its type, and its block has {known}");
            self.add("channel", at, detail);
        }
        if name == "barrier" {
            match op.barrier_id {
                Some(id) if id < MAX_BARRIERS => {}
                _ => self.add(
                    "limit",
                    at,
                    format!("needs a barrier_id below {MAX_BARRIERS}"),
                ),
            }
            if op.num_threadblocks.is_none() {
                self.add("barrier", at, "has no num_threadblocks".to_owned());
            }
        }
        if name.starts_with("sem_") {
            let known = self.gpu.semaphores.len();
            if op.semaphore_ids.is_empty() || op.semaphore_ids.len() > MAX_OP_SEMAPHORES {
                self.add(
                    "limit",
                    at,
                    format!("needs 1 to {MAX_OP_SEMAPHORES} semaphores"),
                );
            }
            if let Some(&id) = op.semaphore_ids.iter().find(|&&id| id as usize >= known) {
                self.add(
                    "semaphore",
                    at,
                    format!("uses semaphore {id}, and its rank has {known}"),
                );
            }
        }
        if let Some(group) = op.tbg_info
            && (group.tbg_size == 0 || group.tb_id >= group.tbg_size)
        {
            let detail = format!("is share {} of {}", group.tb_id, group.tbg_size);
            self.add("block_group", at, detail);
        }
        let unequal = op
            .src_buff
            .iter()
            .zip(&op.dst_buff)
            .any(|(src, dst)| src.index != dst.index);
        if name == "get" && unequal {
            let detail =
                "is a get between different indices, which the executor takes for each other";
            self.add("get", at, detail.to_owned());
        }
        self.check_halves(op, at);
        self.check_pipeline(op, at, is_inner);
    }

    /// Packets alone heed, in memory of other ranks, whose turn it is of the two halves of the scratch.
    fn check_halves(&mut self, op: &Op, at: &str) {
        if !self.plan.use_double_scratch_buffer || op.name.ends_with("pkt") {
            return;
        }
        let is_scratch =
            |buffer: &Buffer| reached(self.gpu, self.tb, op, buffer) == Some(BufferType::Scratch);
        if op.src_buff.iter().chain(&op.dst_buff).any(is_scratch) {
            let detail = format!(
                "is a {} with scratch of other ranks whose halves take turns, which the executor heeds for packets alone: every second call is wrong",
                op.name
            );
            self.add("scratch", at, detail);
        }
    }

    fn check_pipeline(&mut self, op: &Op, at: &str, is_inner: bool) {
        if op.name != "pipeline" {
            if !op.ops.is_empty() {
                self.add(
                    "pipeline",
                    at,
                    format!("is a {} with operations in it", op.name),
                );
            }
            return;
        }
        if is_inner {
            self.add("pipeline", at, "is a pipeline in a pipeline".to_owned());
            return;
        }
        match op.iter_context {
            Some(context) if context.unit_size > 0 && context.num_chunks > 0 => {}
            _ => self.add(
                "pipeline",
                at,
                "needs an iter_context that is not 0".to_owned(),
            ),
        }
        let chunks = op.iter_context.map_or(0, |context| context.num_chunks);
        for (i, inner) in op.ops.iter().enumerate() {
            let at = format!("{at}.ops[{i}]");
            self.check_op(inner, &at, true);
            let mut buffers = inner.src_buff.iter().chain(&inner.dst_buff);
            let is_share = inner.tbg_info.is_some_and(|group| group.tbg_size > 1);
            if buffers.any(|buffer| is_share || buffer.size != chunks) {
                let detail = format!(
                    "moves other chunks than the {chunks} that its pipeline has rounds for: the executor moves too much in the last rounds"
                );
                self.add("pipeline", &at, detail);
            }
        }
        let alignment = u64::from(super::alignment());
        if let Some(context) = op.iter_context
            && !context.unit_size.is_multiple_of(alignment)
        {
            let detail = format!(
                "has rounds of {} bytes, no multiple of {alignment}: the executor sums the rest of a round elsewhere",
                context.unit_size
            );
            self.add("pipeline", at, detail);
        }
        if self.plan.protocol == "LL" {
            let packets = op.ops.iter().any(|inner| inner.name.ends_with("pkt"));
            if packets {
                let detail = "has packets, which do not heed the rounds of a pipeline".to_owned();
                self.add("pipeline", at, detail);
            }
        }
    }
}

/// Returns the buffer of other ranks that an operation's buffer is, if it is one.
fn reached(gpu: &Gpu, tb: &Threadblock, op: &Op, buffer: &Buffer) -> Option<BufferType> {
    if let Some(id) = buffer.buffer_id {
        let mut refs = tb.remote_buffer_refs.iter();
        let refs = refs.find(|refs| Some(refs.access_channel_type) == op.channel_type)?;
        let id = *refs.remote_buffer_ids.get(id as usize)?;
        return Some(gpu.remote_buffers.get(id as usize)?.r#type);
    }
    let id = buffer.switch_channel_id? as usize;
    let mut refs = tb.channels.iter();
    let refs = refs.find(|refs| refs.channel_type == ChannelType::Switch)?;
    let id = *refs.channel_ids.get(id)? as usize;
    let switches = gpu.channels.iter();
    let switches = switches.filter(|each| each.channel_type == ChannelType::Switch);
    let mut groups = switches.flat_map(|each| {
        let groups = each.rank_groups.iter().flatten();
        groups.map(|_| each.buffer_type)
    });
    groups.nth(id)?
}

/// Channels of a type that a rank has.
pub(super) fn channel_count(gpu: &Gpu, kind: ChannelType) -> usize {
    let of_kind = gpu
        .channels
        .iter()
        .filter(|channels| channels.channel_type == kind);
    of_kind
        .map(|channels| match kind {
            ChannelType::Switch => channels.rank_groups.as_ref().map_or(0, Vec::len),
            _ => channels.connected_to.as_ref().map_or(0, Vec::len),
        })
        .sum()
}

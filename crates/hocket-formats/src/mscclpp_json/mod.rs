//! MSCCL++'s JSON execution plans: read, checked and written.
//!
//! # Source
//! microsoft/mscclpp 1f5f065 (0.9.0): `src/core/executor/execution_plan.cc`, `executor.cc`, the headers beside
//! them, and `python/mscclpp/language`. Plans have no version field, and the executor passes over keys that it does not know.

mod export;
mod inbox;
mod keys;
mod limits;
mod rank;
mod rules;
mod switches;
mod to_program;
mod writer;

#[cfg(test)]
mod tests;

pub use export::{
    Protocol, Refused, Room, Written, export, first_slice, least, need, unit_of, with_chunks_of,
};
pub use inbox::How;
pub use keys::Ignored;
pub use limits::{MAX_BLOCKS, MAX_OPS};
pub use switches::{SwitchOptions, export_switches, need_switches, uses_switches};
pub use to_program::{check, program};

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::FormatError;

/// Largest file that is read, in bytes.
const MAX_BYTES: usize = 1 << 30;

/// A whole plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionPlan {
    /// What it is called; also the key under which the executor keeps its resources.
    pub name: String,
    /// `allreduce`, `allgather`, `reducescatter`, `alltoall` or another word.
    pub collective: String,
    /// `Simple` or `LL`.
    pub protocol: String,
    /// Whether it is for calls in place.
    pub inplace: bool,
    /// Whether all calls share one scratch window.
    #[serde(default)]
    pub reuse_resources: bool,
    /// The ranks.
    pub gpus: Vec<Gpu>,
    /// Threads of a block.
    #[serde(default = "threads")]
    pub num_threads_per_block: u32,
    /// Whether halves of the scratch take turns.
    #[serde(default)]
    pub use_double_scratch_buffer: bool,
    /// Bytes at whose multiples chunks start.
    #[serde(default = "alignment")]
    pub buffer_alignment: u32,
    /// Smallest size in bytes.
    #[serde(default)]
    pub min_message_size: u64,
    /// Largest size in bytes.
    #[serde(default = "largest")]
    pub max_message_size: u64,
    /// Keys that were passed over.
    #[serde(skip)]
    pub ignored: Vec<Ignored>,
}

const fn threads() -> u32 {
    1024
}

const fn alignment() -> u32 {
    16
}

const fn largest() -> u64 {
    u64::MAX
}

/// What one rank has and does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its rank.
    pub id: u32,
    /// Chunks of its input.
    pub input_chunks: u32,
    /// Chunks of its output.
    pub output_chunks: u32,
    /// Chunks of its scratch.
    pub scratch_chunks: u32,
    /// Its thread blocks.
    pub threadblocks: Vec<Threadblock>,
    /// Its channels.
    pub channels: Vec<Channels>,
    /// Memory of other ranks that it addresses.
    #[serde(default)]
    pub remote_buffers: Vec<RemoteBuffer>,
    /// Its semaphores.
    #[serde(default)]
    pub semaphores: Vec<Semaphore>,
}

impl Gpu {
    /// Returns the number of operations of its blocks.
    pub fn operations(&self) -> usize {
        self.threadblocks.iter().map(|block| block.ops.len()).sum()
    }
}

/// How a channel reaches its peer.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ChannelType {
    /// Loads and stores of the peer's memory.
    Memory,
    /// A proxy on the host that moves data, as for NICs.
    Port,
    /// A switch that sums and multicasts.
    Switch,
}

impl ChannelType {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A buffer of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BufferType {
    /// The input.
    #[serde(rename = "i")]
    Input,
    /// The output.
    #[serde(rename = "o")]
    Output,
    /// The scratch.
    #[serde(rename = "s")]
    Scratch,
}

impl BufferType {
    /// Returns the name in files.
    pub const fn name(self) -> &'static str {
        match self {
            BufferType::Input => "i",
            BufferType::Output => "o",
            BufferType::Scratch => "s",
        }
    }
}

/// Channels of one type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    /// Their type.
    pub channel_type: ChannelType,
    /// Of memory and port: the peer of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected_to: Option<Vec<u32>>,
    /// Of a switch: the buffer that it reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_type: Option<BufferType>,
    /// Of a switch: the ranks that each of its channels reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank_groups: Option<Vec<RankGroup>>,
}

/// Ranks at a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankGroup {
    /// How many.
    pub size: u32,
    /// Which.
    pub ranks: Vec<u32>,
}

/// Memory of another rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteBuffer {
    /// The rank.
    pub rank: u32,
    /// Its buffer.
    pub r#type: BufferType,
    /// Types of channels over which it is reached.
    pub access_channel_types: Vec<ChannelType>,
}

/// A counting semaphore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Semaphore {
    /// Its count at the start.
    pub init_value: u32,
}

/// A thread block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threadblock {
    /// Its position in the list.
    pub id: u32,
    /// What it does, in order.
    pub ops: Vec<Op>,
    /// Channels that it uses.
    #[serde(default)]
    pub channels: Vec<ChannelRefs>,
    /// Remote memory that it uses.
    #[serde(default)]
    pub remote_buffer_refs: Vec<BufferRefs>,
}

/// Channels of one type that a block uses: positions in the list of its rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelRefs {
    /// Their type.
    pub channel_type: ChannelType,
    /// Their positions.
    pub channel_ids: Vec<u32>,
}

/// Remote memory that a block uses: positions in the list of its rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferRefs {
    /// Type of the channels over which it is reached.
    pub access_channel_type: ChannelType,
    /// Positions.
    pub remote_buffer_ids: Vec<u32>,
}

/// What a block does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Op {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub src_buff: Vec<Buffer>,
    /// What it writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dst_buff: Vec<Buffer>,
    /// Channels, by position in the list of its block.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channel_ids: Vec<u32>,
    /// Type of its channels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_type: Option<ChannelType>,
    /// Its share of the work of several blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tbg_info: Option<BlockGroup>,
    /// Of a barrier: which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub barrier_id: Option<u32>,
    /// Of a barrier: for how many blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_threadblocks: Option<u32>,
    /// Semaphores, by position in the list of its rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub semaphore_ids: Vec<u32>,
    /// Written by the DSL; never read: every reduction is a sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduce_op: Option<String>,
    /// Of a pipeline: how much each round takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iter_context: Option<IterContext>,
    /// Of a pipeline: what is repeated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<Op>,
}

/// Share `tb_id` of `tbg_size` of a range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockGroup {
    /// Which share.
    pub tb_id: u32,
    /// How many shares.
    pub tbg_size: u32,
}

/// How a pipeline goes through its chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterContext {
    /// Bytes of a round.
    pub unit_size: u64,
    /// Chunks in all.
    pub num_chunks: u32,
}

/// Chunks that an operation reads or writes: of a local buffer, a remote one, or those at a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// A local buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<BufferType>,
    /// A remote one, by position in the list of its block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_id: Option<u32>,
    /// A switch channel, by position in the list of its block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_channel_id: Option<u32>,
    /// First chunk.
    pub index: u32,
    /// Number of chunks.
    pub size: u32,
}

/// Reads a plan.
///
/// # Errors
/// [`FormatError`] for text that is not JSON, for keys that MSCCL++ 0.9 needs, and for values that it does not have, with the line.
pub fn read(text: &str) -> Result<ExecutionPlan, FormatError> {
    if text.len() > MAX_BYTES {
        let why = format!("has {} bytes", text.len());
        return Err(FormatError::new(why).remedy(format!("the most that is read is {MAX_BYTES}")));
    }
    let mut plan: ExecutionPlan = serde_json::from_str(text).map_err(|error| {
        let (line, text) = (error.line() as u64, error.to_string());
        let why = text
            .rsplit_once(" at line ")
            .map_or(text.as_str(), |(why, _)| why);
        FormatError::at(line, why)
    })?;
    plan.ignored = keys::ignored(text);
    Ok(plan)
}

/// Writes a plan on one line.
///
/// # Errors
/// Never, as long as a string takes all.
pub fn write(plan: &ExecutionPlan) -> Result<String, std::fmt::Error> {
    serde_json::to_string(plan).map_err(|_| std::fmt::Error)
}

//! MSCCL's XML files of algorithms: read, checked and written.
//!
//! One format in three dialects: that of microsoft/msccl, that of msccl-executor-nccl and RCCL, which demand more attributes,
//! and that of msccl-tools, which writes files for the first.
//!
//! # Source
//! The parsers of microsoft/msccl b23e9cd, Azure/msccl-executor-nccl c6f6b36 and ROCm/rccl 0cbce2a; msccl-tools
//! 030a750.

mod export;
mod read;
mod rules;
mod to_program;
mod write;

#[cfg(test)]
mod tests;

pub use export::{Refused, export, from_program};
pub use read::read;
pub use rules::{MAX_COUNT, MAX_DEPENDED_BLOCK, MAX_FUSED, MAX_OFFSET, MAX_STEPS, Runtime};
pub use to_program::{check, program};
pub use write::write;

use hocket_plan::collective::CollectiveKind;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// NCCL's protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
pub enum Protocol {
    /// Large messages: full bandwidth.
    Simple,
    /// Small messages: every 4 bytes carry a flag.
    #[strum(serialize = "LL")]
    Ll,
    /// As LL, with 8 bytes of flag in 128.
    #[strum(serialize = "LL128")]
    Ll128,
}

impl Protocol {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the number of messages that a connection holds: of its 8 slots, a message of Simple takes 4 and others
    /// take 1.
    pub const fn in_flight(self) -> u32 {
        match self {
            Protocol::Simple => 2,
            Protocol::Ll | Protocol::Ll128 => 8,
        }
    }
}

/// What a file calls the kinds of collectives; the first name of a kind is what is written.
pub(crate) const COLLECTIVES: [(&str, CollectiveKind); 9] = [
    ("allreduce", CollectiveKind::AllReduce),
    ("allgather", CollectiveKind::AllGather),
    ("reducescatter", CollectiveKind::ReduceScatter),
    ("reduce_scatter", CollectiveKind::ReduceScatter),
    ("alltoall", CollectiveKind::AllToAll),
    ("broadcast", CollectiveKind::Broadcast),
    ("reduce", CollectiveKind::Reduce),
    ("gather", CollectiveKind::Gather),
    ("scatter", CollectiveKind::Scatter),
];

/// `<algo>`: a whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Algo {
    /// `name`.
    pub name: String,
    /// `proto`.
    pub protocol: Protocol,
    /// `nchannels`.
    pub channels: u32,
    /// `nchunksperloop`.
    pub chunks: u32,
    /// `ngpus`.
    pub ranks: u32,
    /// `coll`, as it is written.
    pub collective: String,
    /// `inplace`.
    pub in_place: bool,
    /// `outofplace`, in the dialect that has it.
    pub out_of_place: Option<bool>,
    /// `minBytes`.
    pub min_bytes: Option<u64>,
    /// `maxBytes`.
    pub max_bytes: Option<u64>,
    /// `nthreads`.
    pub threads: Option<u32>,
    /// The ranks, in order.
    pub gpus: Vec<Gpu>,
}

impl Algo {
    /// Returns the kind of collective; `None` for names that have none here, as `custom` and `alltoallv`.
    pub fn kind(&self) -> Option<CollectiveKind> {
        let known = COLLECTIVES
            .iter()
            .find(|(name, _)| *name == self.collective);
        known.map(|&(_, kind)| kind)
    }
}

/// `<gpu>`: what one rank does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// `i_chunks`, `o_chunks` and `s_chunks`.
    pub sizes: [u32; 3],
    /// Its thread blocks, in order of their ids.
    pub blocks: Vec<Tb>,
    /// Line in the file that it was read from; of no account when two are compared.
    pub line: LineNumber,
}

/// `<tb>`: a thread block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tb {
    /// `send`: the rank that it sends to.
    pub send: Option<u32>,
    /// `recv`: the rank that it receives from.
    pub recv: Option<u32>,
    /// `chan`.
    pub channel: u32,
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// Line in the file that it was read from; of no account when two are compared.
    pub line: LineNumber,
}

/// `type` of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
pub enum StepType {
    /// `nop`: waits for its dependency.
    #[strum(serialize = "nop")]
    Nop,
    /// `s`: send.
    #[strum(serialize = "s")]
    Send,
    /// `r`: receive.
    #[strum(serialize = "r")]
    Recv,
    /// `cpy`: copy.
    #[strum(serialize = "cpy")]
    Copy,
    /// `re`: reduce.
    #[strum(serialize = "re")]
    Reduce,
    /// `rcs`: receive, copy, send.
    #[strum(serialize = "rcs")]
    RecvCopySend,
    /// `rrs`: receive, reduce, send.
    #[strum(serialize = "rrs")]
    RecvReduceSend,
    /// `rrc`: receive, reduce, copy.
    #[strum(serialize = "rrc")]
    RecvReduceCopy,
    /// `rrcs`: receive, reduce, copy, send.
    #[strum(serialize = "rrcs")]
    RecvReduceCopySend,
}

impl StepType {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A chunk of a local buffer: `i`, `o` or `s`, and an offset, which is -1 where it is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The buffer.
    pub buffer: hocket_program::program::Buffer,
    /// The chunk.
    pub offset: i32,
}

/// `<step>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// `s`: its position, as the file says.
    pub position: u32,
    /// `type`.
    pub kind: StepType,
    /// `srcbuf` and `srcoff`.
    pub src: At,
    /// `dstbuf` and `dstoff`.
    pub dst: At,
    /// `cnt`.
    pub count: u32,
    /// `depid` and `deps`: block and step of the same rank; `None` for -1 and -1.
    pub dependency: Option<(u32, u32)>,
    /// `hasdep`: whether another step waits for it.
    pub awaited: bool,
    /// Line in the file that it was read from; of no account when two are compared.
    pub line: LineNumber,
}

/// A line of a file, from 1; all are equal, so that what was read is equal to what was made.
#[derive(Clone, Copy, Debug, Default)]
pub struct LineNumber(pub u32);

impl PartialEq for LineNumber {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LineNumber {}

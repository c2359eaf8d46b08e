//! Execution traces: what every rank of a job computed, sent and received, and what waited for
//! what.
//!
//! ```text
//! files, one a rank -> Draft (columns) + groups -> Trace: dependencies, calls, messages
//! ```
//!
//! A trace is columns over the nodes of all ranks, rank by rank. What belongs together is matched
//! already: the nodes of each collective (a call), and each send with its receive.
//!
//! # Source
//! The format is MLCommons Chakra's, its attributes as ASTRA-sim reads them (`src/feeder_v3` of its
//! Chakra and `astra-sim/workload/Workload.cc`).

mod calls;
mod chakra;
mod columns;
mod trace_files;
mod error;
mod order;

pub use columns::Columns;
pub(crate) use error::shortened;
pub use error::{Call, Fault, TraceError};
pub use trace_files::{File, Follow, UngroupedTrace};

use strum::{FromRepr, IntoStaticStr, VariantArray};

use crate::collective::CollectiveKind;
use crate::id::narrow;
use crate::units::Time;

/// The largest size, in bytes.
pub const LARGEST_SIZE: u64 = 1 << 62;

/// The longest duration, in microseconds: 213 days.
pub const LONGEST_MICROS: u64 = u64::MAX / 1_000_000;

/// Stands for no group, no peer, no call and no partner.
pub const NONE: u32 = u32::MAX;

/// What a node is, numbered as Chakra does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromRepr, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
#[repr(u8)]
pub enum NodeKind {
    /// Says something about the trace and takes no time; so is a node that Chakra calls invalid.
    Metadata = 1,
    /// From memory elsewhere.
    #[strum(serialize = "memory load")]
    MemoryLoad = 2,
    /// To memory elsewhere.
    #[strum(serialize = "memory store")]
    MemoryStore = 3,
    /// A computation.
    Compute = 4,
    /// To one rank.
    Send = 5,
    /// From one rank.
    Receive = 6,
    /// With a group of ranks.
    Collective = 7,
}

impl NodeKind {
    /// Every kind.
    pub const ALL: &[NodeKind] = Self::VARIANTS;

    /// Returns the name in tables, as `memory load`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What a collective node does, numbered as Chakra does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromRepr, VariantArray)]
#[repr(u8)]
pub enum CallKind {
    /// All-reduce.
    AllReduce = 0,
    /// Reduce to a root.
    Reduce = 1,
    /// All-gather.
    AllGather = 2,
    /// Gather at a root.
    Gather = 3,
    /// Scatter from a root.
    Scatter = 4,
    /// Broadcast from a root.
    Broadcast = 5,
    /// All-to-all.
    AllToAll = 6,
    /// Reduce-scatter; Chakra's `REDUCE_SCATTER_BLOCK` is one as well.
    ReduceScatter = 7,
    /// All wait for all; moves no bytes.
    Barrier = 9,
    /// A collective node that does not say what it does, and belongs to no call. Real PyTorch
    /// traces have them: the host's side of a collective whose kernel is a node of its own.
    Unspecified = 254,
    /// The node is not a collective.
    None = 255,
}

impl CallKind {
    /// Those that Chakra has numbers for.
    pub const KNOWN: &[CallKind] = match Self::VARIANTS {
        [known @ .., CallKind::Unspecified, CallKind::None] => known,
        _ => unreachable!(),
    };

    /// Returns the collective that it is; `None` for a barrier and where there is none.
    pub const fn collective(self) -> Option<CollectiveKind> {
        Some(match self {
            CallKind::AllReduce => CollectiveKind::AllReduce,
            CallKind::Reduce => CollectiveKind::Reduce,
            CallKind::AllGather => CollectiveKind::AllGather,
            CallKind::Gather => CollectiveKind::Gather,
            CallKind::Scatter => CollectiveKind::Scatter,
            CallKind::Broadcast => CollectiveKind::Broadcast,
            CallKind::AllToAll => CollectiveKind::AllToAll,
            CallKind::ReduceScatter => CollectiveKind::ReduceScatter,
            CallKind::Barrier | CallKind::Unspecified | CallKind::None => return None,
        })
    }

    /// Returns the name in tables, as `all-reduce`.
    pub fn name(self) -> &'static str {
        match (self.collective(), self) {
            (Some(kind), _) => kind.name(),
            (None, CallKind::Barrier) => "barrier",
            (None, CallKind::Unspecified) => "unspecified",
            (None, _) => "none",
        }
    }

    /// Returns the name in Chakra, as `ALL_REDUCE`.
    pub(crate) fn chakra_name(self) -> String {
        self.name().replace('-', "_").to_uppercase()
    }

    /// Returns what [`crate::collective::Collective`] calls size, where each of `ranks` ranks has `bytes` as its
    /// `comm_size`; `None` past [`LARGEST_SIZE`].
    ///
    /// A `comm_size` is the bytes that go into a collective at one rank: its vector for all-reduce,
    /// reduce-scatter, all-to-all, reduce, broadcast and scatter, which is the size here too; but
    /// its block for all-gather and gather, whose size here is that of all blocks.
    ///
    /// # Source
    /// ASTRA-sim, `system/astraccl/native_collectives/collective_algorithm/Ring.cc`: an all-gather
    /// sends messages of `data_size` and ends with `data_size * nodes`; all-reduce, reduce-scatter
    /// and all-to-all send `data_size / nodes`. It has no gather. PyTorch traces of Chakra's tests
    /// have the bytes of a kernel's inputs there, so that a gather is as an all-gather.
    pub fn size(self, bytes: u64, ranks: usize) -> Option<u64> {
        let factor = match self {
            CallKind::AllGather | CallKind::Gather => ranks as u64,
            _ => 1,
        };
        let size = bytes.checked_mul(factor)?;
        (size <= LARGEST_SIZE).then_some(size)
    }
}

/// A trace of all ranks, matched and checked.
///
/// Columns have a row for each node, those of rank r from `rank_first[r]` to `rank_first[r + 1]` in
/// the order of its file. A dependency, a call's member and a partner are rows.
///
/// # Complexity
/// 83 bytes a node, 4 a dependency, and each distinct name once.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// First row of each rank, and the number of rows.
    pub rank_first: Vec<u32>,
    /// The node's number in its file.
    pub id: Vec<u64>,
    /// Kind of each node.
    pub kind: Vec<NodeKind>,
    /// How long it took, where the trace says so.
    pub duration: Vec<Time>,
    /// Operations of a computation (`num_ops`).
    pub operations: Vec<u64>,
    /// Bytes that a computation or a memory node touches (`tensor_size`).
    pub tensor_bytes: Vec<u64>,
    /// 1 for what a CPU does (`is_cpu_op`), else 0.
    pub is_cpu: Vec<u8>,
    /// What a collective node does.
    pub call_kind: Vec<CallKind>,
    /// `comm_size` of a collective, a send or a receive, as it stands there; [`CallKind::size`]
    /// says of what.
    pub bytes: Vec<u64>,
    /// Group of a collective, as a row of `groups`, or [`NONE`].
    pub group: Vec<u32>,
    /// Rank at the other end of a send or receive, or [`NONE`].
    pub peer: Vec<u32>,
    /// Tag of a send or receive.
    pub tag: Vec<u64>,
    /// Priority of a collective (`comm_priority`).
    pub priority: Vec<u32>,
    /// Names.
    pub names: Names,
    /// First of each row's dependencies, and their number.
    pub dependency_first: Vec<u32>,
    /// What must end before a row starts: rows of the same rank, ascending, each once.
    pub dependencies: Vec<u32>,
    /// All rows, rank by rank, each after what it depends on; of those that may come next the one
    /// with the lowest id does.
    pub order: Vec<u32>,
    /// Who takes part in collectives.
    pub groups: Groups,
    /// Every collective, group by group in the order in which its ranks issue them.
    pub calls: Calls,
    /// Call of a collective node, or [`NONE`].
    pub call: Vec<u32>,
    /// The receive of a send and the reverse, or [`NONE`].
    pub partner: Vec<u32>,
}

/// Names of nodes, each distinct one kept once.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// All names, one after the other.
    pub text: String,
    /// First byte of each, and their number.
    pub first: Vec<u32>,
    /// Position of each row's name.
    pub of: Vec<u32>,
}

/// Groups of ranks; row 0 is all ranks.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// The number that nodes call it by.
    pub id: Vec<u64>,
    /// First of each group's ranks, and their number.
    pub first: Vec<u32>,
    /// The ranks, in the group's order.
    pub ranks: Vec<u32>,
}

/// Collectives, each one call of all ranks of its group.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Kind of each call.
    pub kind: Vec<CallKind>,
    /// Among whom, as a row of `groups`.
    pub group: Vec<u32>,
    /// Bytes as [`crate::collective::Collective`] counts them; 0 for a barrier.
    pub size: Vec<u64>,
    /// First of each call's nodes, and their number.
    pub first: Vec<u32>,
    /// Nodes, one for each rank of the group in the group's order.
    pub nodes: Vec<u32>,
}

impl Trace {
    /// Reads a file for each rank, in the order of ranks. Groups are an id and its ranks each;
    /// those that the files define themselves ([`UngroupedTrace::process_groups`]) do not count.
    ///
    /// # Errors
    /// [`TraceError`], naming file and node.
    ///
    /// # Complexity
    /// Linear in bytes, nodes and dependencies, but for a heap of the nodes that may come next.
    pub fn read(
        files: &[File<'_>],
        follow: Follow,
        groups: &[(u64, Vec<u32>)],
    ) -> Result<Self, TraceError> {
        UngroupedTrace::read(files, follow)?.link(groups)
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.rank_first.len().saturating_sub(1)
    }

    /// Returns the number of nodes, of all ranks.
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Returns whether no rank has a node.
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// Rank of a row.
    pub fn rank_of(&self, row: u32) -> u32 {
        let after = self.rank_first.partition_point(|&first| first <= row);
        narrow(after) - 1
    }

    /// Returns what must end before a row starts.
    pub fn dependencies_of(&self, row: u32) -> &[u32] {
        slice(&self.dependency_first, &self.dependencies, row)
    }

    /// Collective nodes that do not say what they do.
    pub fn unspecified(&self) -> usize {
        let kinds = self.call_kind.iter();
        kinds.filter(|&&kind| kind == CallKind::Unspecified).count()
    }
}

impl Names {
    /// Name of the node in a row.
    pub fn of_row(&self, row: u32) -> &str {
        let name = self.of[row as usize] as usize;
        &self.text[self.first[name] as usize..self.first[name + 1] as usize]
    }

    /// Returns each distinct name.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let spans = self.first.windows(2);
        spans.map(|span| &self.text[span[0] as usize..span[1] as usize])
    }
}

impl Groups {
    /// Ranks of a group.
    pub fn ranks_of(&self, group: u32) -> &[u32] {
        slice(&self.first, &self.ranks, group)
    }
}

impl Calls {
    /// Returns the number of calls.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// Returns the nodes of a call, one for each rank of its group in the group's order.
    pub fn nodes_of(&self, call: u32) -> &[u32] {
        slice(&self.first, &self.nodes, call)
    }
}

fn slice<'a>(first: &[u32], values: &'a [u32], row: u32) -> &'a [u32] {
    let row = row as usize;
    &values[first[row] as usize..first[row + 1] as usize]
}

#[cfg(test)]
mod tests;

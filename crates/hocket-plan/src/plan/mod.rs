//! The transfers that implement one collective on one topology, as columns.

mod builder;
mod chunks;
mod merge;
pub mod routes;
mod path_choice;
mod serial;
mod slices;
mod waits;

pub use crate::graph::Lists;
pub use builder::{Columns, PlanBuilder, Transfer};
pub use chunks::Chunks;
pub use path_choice::{BadRouting, Routing};
pub use routes::{NoRoute, Route, Routes};
pub use serial::{BadRow, BadTransfer, SerialBuilder};
pub use waits::WaitGraph;

use std::fmt;

use strum::{Display, IntoStaticStr};

use crate::collective::Collective;
use crate::explain::{Explain, Parts};
use crate::id::{ChunkId, LinkId, NpuId, TransferId, narrow};
use crate::progress::Interrupted;
use crate::units::Memory;

/// What the receiver does with a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[repr(u8)]
pub enum Op {
    /// Store it over what is there.
    Copy = 0,
    /// Add it to what is there.
    Reduce = 1,
}

impl Op {
    /// Returns the name in files, `copy` or `reduce`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// In what order a link serves messages that wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkOrder {
    /// By the time they came, ties by the plan's order.
    #[default]
    Ready,
    /// By the plan's order, waiting for a message that comes late.
    Plan,
    /// By the plan's order among those that have come.
    Priority,
}

/// What a transfer waits for before it starts. Four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wait(u32);

/// [`Wait`], taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOn {
    /// Nothing: starts at time 0.
    Nothing,
    /// The end of one transfer.
    Transfer(TransferId),
    /// The end of every member of a group, by the group's position.
    Group(u32),
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.target() {
            WaitOn::Nothing => f.write_str("nothing"),
            WaitOn::Transfer(transfer) => write!(f, "transfer {transfer}"),
            WaitOn::Group(group) => write!(f, "group {group}"),
        }
    }
}

impl Wait {
    const GROUP: u32 = 1 << 31;
    /// Highest count of transfers, and of groups, of one plan.
    pub const LIMIT: usize = (1 << 31) - 1;

    /// Wait for nothing.
    pub const NOTHING: Wait = Wait(u32::MAX);

    /// Wait for the end of one transfer.
    #[inline]
    pub const fn on(transfer: TransferId) -> Self {
        debug_assert!(transfer.0 < Self::GROUP);
        Wait(transfer.0)
    }

    /// Wait for every member of a group.
    #[inline]
    pub const fn group(index: u32) -> Self {
        debug_assert!(index < Self::GROUP - 1);
        Wait(index | Self::GROUP)
    }

    /// Target of the wait.
    #[inline]
    pub const fn target(self) -> WaitOn {
        if self.0 == u32::MAX {
            WaitOn::Nothing
        } else if self.0 & Self::GROUP == 0 {
            WaitOn::Transfer(TransferId(self.0))
        } else {
            WaitOn::Group(self.0 & !Self::GROUP)
        }
    }

    /// Returns the four bytes, for columns: `u32::MAX` nothing, high bit a group, else a transfer.
    #[inline]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// From the four bytes of a column.
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        Wait(bits)
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target().fmt(f)
    }
}

/// Lists from columns (a file, another tool); `name` is what errors call them.
///
/// # Errors
/// [`PlanError::Malformed`] unless `offsets` starts at 0, never falls and ends at the items' end.
pub fn lists<T: Copy>(name: &str, offsets: Vec<u32>, items: Vec<T>) -> Result<Lists<T>, PlanError> {
    let lists = offsets.len().saturating_sub(1);
    check_offsets(name, &offsets, lists, Some(items.len() as u64))?;
    Ok(Lists::from_parts(offsets, items))
}

/// Checks that `offsets` cuts a column into `rows` stretches that end where it does.
fn check_offsets<T: Copy + Into<u64>>(
    name: &str,
    offsets: &[T],
    rows: usize,
    end: Option<u64>,
) -> Result<(), PlanError> {
    let at = |i: usize| -> u64 { offsets[i].into() };
    let why = if offsets.len() != rows + 1 {
        let len = offsets.len();
        format!("has {len} entries for {rows} rows; it needs one more than there are rows")
    } else if at(0) != 0 {
        format!("starts at {}; it must start at 0", at(0))
    } else if let Some(i) = (1..offsets.len()).find(|&i| at(i) < at(i - 1)) {
        let (before, after) = (at(i - 1), at(i));
        format!("falls from {before} to {after} at entry {i}; it must never fall")
    } else {
        match end {
            Some(end) if at(rows) != end => {
                format!("ends at {}; there are {end} items", at(rows))
            }
            _ => return Ok(()),
        }
    };
    Err(PlanError::Malformed {
        why: format!("{name} {why}"),
    })
}

/// Why a plan could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum PlanError {
    /// The algorithm cannot run here.
    #[explain(origin("{algorithm}"), why("{why}"))]
    NotApplicable {
        /// The algorithm.
        algorithm: &'static str,
        /// Why, and what would make it run.
        why: String,
    },
    /// No algorithm of that name.
    #[explain(
        why("there is no algorithm {name:?}"),
        remedy("algorithms are {known}")
    )]
    UnknownAlgorithm {
        /// Name that was asked for.
        name: String,
        /// Names of all algorithms.
        known: String,
    },
    /// Times could exceed what 64 bits hold.
    #[explain(
        why("a plan could take longer than 26 days, too close to the 213 days that can be told"),
        remedy("make sizes smaller or bandwidths larger")
    )]
    TooLong,
    /// More chunks than bytes.
    #[explain(
        why("{what} of {bytes} B cannot be cut into {chunks} chunks of at least one byte"),
        remedy("use fewer chunks or more bytes")
    )]
    TooManyChunks {
        /// The data that is cut.
        what: String,
        /// Bytes of that data.
        bytes: u64,
        /// Number of chunks asked for.
        chunks: usize,
    },
    /// More transfers than fit.
    #[explain(
        why("a plan of {transfers} transfers needs about {} of memory, more than the limit of {}", Memory(*bytes), Memory(u128::from(*limit))),
        remedy("use fewer NPUs or chunks, or another algorithm")
    )]
    TooLarge {
        /// Number of transfers.
        transfers: u128,
        /// Bytes that planning and checking them would take.
        bytes: u128,
        /// Bytes that may be used.
        limit: u64,
    },
    /// The collective itself is at fault.
    #[explain(from)]
    Collective(crate::collective::CollectiveError),
    /// A schedule of dimensions that does not fit in memory.
    #[explain(
        origin("{algorithm}"),
        why("a schedule of {chunks} chunks, each of {steps} steps a pass, needs about {} of memory, more than the limit of {}", Memory(*bytes), Memory(u128::from(*limit))),
        remedy("use fewer chunks")
    )]
    Memory {
        /// Name of the algorithm.
        algorithm: &'static str,
        /// Number of chunks asked for.
        chunks: usize,
        /// Steps of each chunk's pass through all dimensions.
        steps: u128,
        /// Bytes that the schedule would take.
        bytes: u128,
        /// Bytes that it may take.
        limit: u64,
    },
    /// A plan that planning made itself, and that cannot be simulated.
    #[explain(of(_0.clone()), field("plan"))]
    Unrunnable(Parts),
    /// Planning was asked to stop, and no plan had been found yet.
    #[explain(from)]
    Interrupted(Interrupted),
    /// Columns that do not fit together (a plan from a file).
    #[explain(field("plan"), why("{why}"))]
    Malformed {
        /// What is wrong with the columns, as a sentence.
        why: String,
    },
}

impl PlanError {
    /// Returns the same refusal, of an algorithm that asked another whether it can run.
    pub fn named(self, name: &'static str) -> Self {
        match self {
            Self::NotApplicable { why, .. } => {
                let algorithm = name;
                Self::NotApplicable { algorithm, why }
            }
            other => other,
        }
    }
}

/// The transfers that implement one collective: who sends which chunks to whom, after what.
///
/// Transfers are columns of equal length, 25 bytes a row in all. Their order is the plan's order:
/// where links serve in plan order ([`Plan::link_order`]), each serves its transfers in it. Positions in `wait`
/// and in groups may point forward; [`crate::verify`] rejects cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    algorithm: String,
    collective: Collective,
    chunks: Chunks,
    chunk: Vec<u32>,
    chunk_count: Vec<u32>,
    src: Vec<u32>,
    dst: Vec<u32>,
    op: Vec<u8>,
    wait: Vec<u32>,
    path: Vec<u32>,
    groups: Lists<u32>,
    paths: Lists<LinkId>,
    link_order: LinkOrder,
    routing: Routing,
    /// How many of `paths` are the algorithm's own: those behind are of `routing`.
    own_paths: u32,
}

impl Plan {
    /// `path` of a transfer that takes the default route.
    pub const DEFAULT_ROUTE: u32 = u32::MAX;

    /// Name of the algorithm that made the plan.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }

    /// In what order links are meant to serve its transfers.
    pub fn link_order(&self) -> LinkOrder {
        self.link_order
    }

    /// Returns the same plan, whose links are meant to serve in another order.
    pub fn with_link_order(mut self, order: LinkOrder) -> Self {
        self.link_order = order;
        self
    }

    /// Returns how its transfers were spread over equal paths; [`Routing::Single`] where they were not.
    pub fn routing(&self) -> Routing {
        self.routing
    }

    /// Returns how many of [`paths`](Self::paths) are the algorithm's own; what comes behind is of
    /// [`routing`](Self::routing).
    pub fn own_paths(&self) -> u32 {
        self.own_paths
    }

    /// Returns the same plan, said to have been spread over equal paths in a certain way (a plan from a file). The
    /// algorithm's own paths are the first `own_paths`.
    pub fn said_routed(mut self, routing: Routing, own_paths: u32) -> Self {
        self.routing = routing;
        self.own_paths = own_paths.min(narrow(self.paths.len()));
        self
    }

    /// Collective that the plan implements.
    pub fn collective(&self) -> &Collective {
        &self.collective
    }

    /// Returns the data, cut into chunks.
    pub fn chunks(&self) -> &Chunks {
        &self.chunks
    }

    /// Returns the number of transfers.
    pub fn len(&self) -> usize {
        self.chunk.len()
    }

    /// Returns `true` if there are no transfers.
    pub fn is_empty(&self) -> bool {
        self.chunk.is_empty()
    }

    /// Returns first chunk of each transfer.
    pub fn chunk(&self) -> &[u32] {
        &self.chunk
    }

    /// Returns how many consecutive chunks each transfer carries.
    pub fn chunk_count(&self) -> &[u32] {
        &self.chunk_count
    }

    /// Sending NPU of each transfer.
    pub fn src(&self) -> &[u32] {
        &self.src
    }

    /// Receiving NPU of each transfer.
    pub fn dst(&self) -> &[u32] {
        &self.dst
    }

    /// [`Op`] of each transfer, as its number.
    pub fn op(&self) -> &[u8] {
        &self.op
    }

    /// [`Wait`] of each transfer, as its bits.
    pub fn wait(&self) -> &[u32] {
        &self.wait
    }

    /// Returns position in [`paths`](Self::paths) of each transfer's path, or [`Plan::DEFAULT_ROUTE`].
    pub fn path(&self) -> &[u32] {
        &self.path
    }

    /// Returns the groups that transfers wait for: members as [`Wait`] bits, transfers or earlier groups.
    pub fn groups(&self) -> &Lists<u32> {
        &self.groups
    }

    /// Returns the explicit paths that transfers take.
    pub fn paths(&self) -> &Lists<LinkId> {
        &self.paths
    }

    /// Returns the bytes that a transfer carries.
    #[inline]
    pub fn bytes(&self, transfer: TransferId) -> u64 {
        let i = transfer.index();
        self.chunks.bytes_of(self.chunk[i], self.chunk_count[i])
    }

    /// Returns the bytes that each transfer carries; of what lies beyond the last chunk, none.
    pub fn sizes(&self) -> impl ExactSizeIterator<Item = u64> {
        let offsets = self.chunks.offsets();
        let last = offsets.len() - 1;
        let at = move |chunk: usize| offsets[chunk.min(last)];
        let ranges = self.chunk.iter().zip(&self.chunk_count);
        ranges.map(move |(&first, &count)| at(first as usize + count as usize) - at(first as usize))
    }

    /// Returns whether it has the same transfers as another, column by column, chunks and link order too; by what name
    /// does not matter.
    pub fn is_same_as(&self, other: &Plan) -> bool {
        let unnamed = |plan: &Plan| Plan {
            algorithm: String::new(),
            ..plan.clone()
        };
        self.len() == other.len() && unnamed(self) == unnamed(other)
    }

    /// One transfer as a value.
    pub fn transfer(&self, transfer: TransferId) -> Transfer {
        let i = transfer.index();
        Transfer {
            chunk: ChunkId(self.chunk[i]),
            count: self.chunk_count[i],
            src: NpuId(self.src[i]),
            dst: NpuId(self.dst[i]),
            op: if self.op[i] == Op::Copy as u8 {
                Op::Copy
            } else {
                Op::Reduce
            },
            wait: Wait::from_bits(self.wait[i]),
            path: (self.path[i] != Self::DEFAULT_ROUTE).then_some(self.path[i]),
        }
    }

    /// Transfers by the length of the longest chain of waits that ends in them; those on cycles, and those behind them,
    /// are left out.
    pub fn wait_levels(&self) -> Lists<u32> {
        WaitGraph::new(self).levels(self)
    }

    /// Memory that the columns take, in bytes.
    pub fn memory(&self) -> usize {
        self.len() * (6 * 4 + 1) + 4 * (self.groups.items().len() + self.groups.offsets().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why<T: fmt::Debug>(result: Result<T, PlanError>) -> String {
        result.expect_err("refused").to_string()
    }

    #[test]
    fn lists_from_columns_are_those_pushed() {
        let mut pushed = Lists::default();
        pushed.push(&[7, 8]);
        pushed.push(&[]);
        pushed.push(&[9]);
        let columns = super::lists("groups", vec![0, 2, 2, 3], vec![7, 8, 9]);
        assert_eq!(columns, Ok(pushed));
    }

    #[test]
    fn stray_offsets_are_refused() {
        let lists = |offsets| why(super::lists("groups", offsets, vec![7u32, 8]));
        assert!(lists(vec![]).contains("groups has 0 entries for 0 rows"));
        assert!(lists(vec![1, 2]).contains("starts at 1"));
        assert!(lists(vec![0, 2, 1]).contains("falls from 2 to 1 at entry 2"));
        assert!(lists(vec![0, 3]).contains("ends at 3; there are 2 items"));
        let short = why(Chunks::from_columns(vec![0, 5], vec![0, 0]));
        assert!(short.contains("chunk_offsets has 2 entries for 2 rows"));
    }
}

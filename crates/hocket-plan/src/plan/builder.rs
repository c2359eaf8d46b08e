//! Appends transfers to a plan.

use super::{Chunks, LinkOrder, Lists, Op, Plan, PlanError, Routing, Wait};
use crate::collective::Collective;
use crate::id::{ChunkId, LinkId, NpuId, TransferId, narrow};
use crate::topology::name_fault;

/// One transfer, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// First chunk.
    pub chunk: ChunkId,
    /// Number of consecutive chunks.
    pub count: u32,
    /// Sender.
    pub src: NpuId,
    /// Receiver.
    pub dst: NpuId,
    /// What the receiver does with the chunks.
    pub op: Op,
    /// What must have ended before the transfer starts.
    pub wait: Wait,
    /// Position of an explicit path, or `None` for the default route: the shortest by time for the
    /// transfer's bytes.
    pub path: Option<u32>,
}

/// Appends transfers, groups and paths, and makes a [`Plan`] of them.
///
/// # Examples
/// A reduction of 1 MB from two NPUs into a third, in two halves that are summed one after the other:
/// ```
/// use std::sync::Arc;
///
/// use hocket_plan::collective::{Collective, CollectiveKind};
/// use hocket_base::id::NpuId;
/// use hocket_plan::plan::{Chunks, Op, PlanBuilder, Wait};
/// use hocket_base::progress::Silent;
/// use hocket_topology::build;
/// use hocket_base::units::{Bandwidth, Time};
/// use hocket_plan::verify::verify;
///
/// let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
/// let network = Arc::new(build::fully_connected(3, gigabyte, Time::ZERO)?);
/// let reduce = Collective::among_all(CollectiveKind::Reduce, &network, 1_000_000)?;
///
/// let halves = Chunks::split(&reduce.demands(), 2)?;
/// let mut builder = PlanBuilder::new("one after the other", &reduce, halves);
/// for half in 0..2 {
///     let chunk = (half, 1); // first chunk, number of chunks
///     let first = builder.send(chunk, NpuId(1), NpuId(0), Op::Reduce, Wait::NOTHING);
///     builder.send(chunk, NpuId(2), NpuId(0), Op::Reduce, Wait::on(first));
/// }
/// let verified = verify(Arc::new(builder.finish()), network, &mut Silent)?;
/// // The waits fix the order of the sums, so that they round alike in every run.
/// assert!(verified.reproducible());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlanBuilder {
    pub(super) plan: Plan,
}

/// Memory that planning, verifying and simulating take for each transfer, in bytes: columns (25),
/// routes, groups, the replay's records and the run's columns, measured on a ring all-reduce.
const BYTES_PER_TRANSFER: u128 = 100;

impl PlanBuilder {
    /// Returns a plan without transfers.
    pub fn new(algorithm: impl Into<String>, collective: &Collective, chunks: Chunks) -> Self {
        Self {
            plan: Plan {
                algorithm: algorithm.into(),
                collective: collective.clone(),
                chunks,
                chunk: Vec::new(),
                chunk_count: Vec::new(),
                src: Vec::new(),
                dst: Vec::new(),
                op: Vec::new(),
                wait: Vec::new(),
                path: Vec::new(),
                groups: Lists::default(),
                paths: Lists::default(),
                link_order: LinkOrder::Ready,
                routing: Routing::Single,
                own_paths: 0,
            },
        }
    }

    /// Checks that a plan of that many transfers can be held at all; call it before the first loop,
    /// and before anything is allocated per chunk.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`].
    pub fn check_size(transfers: u128, memory_limit: u64) -> Result<(), PlanError> {
        let bytes = transfers.saturating_mul(BYTES_PER_TRANSFER);
        if transfers > Wait::LIMIT as u128 || bytes > u128::from(memory_limit) {
            return Err(PlanError::TooLarge {
                transfers,
                bytes,
                limit: memory_limit,
            });
        }
        Ok(())
    }

    /// Makes room for that many more transfers.
    pub fn reserve(&mut self, transfers: usize) {
        let plan = &mut self.plan;
        plan.chunk.reserve_exact(transfers);
        plan.chunk_count.reserve_exact(transfers);
        plan.src.reserve_exact(transfers);
        plan.dst.reserve_exact(transfers);
        plan.op.reserve_exact(transfers);
        plan.wait.reserve_exact(transfers);
        plan.path.reserve_exact(transfers);
    }

    /// Appends a transfer.
    #[inline(always)] // ring plans take 8 % longer where the compiler makes it a call
    pub fn push(&mut self, transfer: Transfer) -> TransferId {
        let plan = &mut self.plan;
        let id = TransferId(narrow(plan.chunk.len()));
        plan.chunk.push(transfer.chunk.0);
        plan.chunk_count.push(transfer.count);
        plan.src.push(transfer.src.0);
        plan.dst.push(transfer.dst.0);
        plan.op.push(transfer.op as u8);
        plan.wait.push(transfer.wait.to_bits());
        plan.path.push(transfer.path.unwrap_or(Plan::DEFAULT_ROUTE));
        id
    }

    /// Appends a transfer of `count` chunks from `chunk` on, over the default route.
    #[inline]
    pub fn send(
        &mut self,
        (chunk, count): (u32, u32),
        src: NpuId,
        dst: NpuId,
        op: Op,
        wait: Wait,
    ) -> TransferId {
        self.push(Transfer {
            chunk: ChunkId(chunk),
            count,
            src,
            dst,
            op,
            wait,
            path: None,
        })
    }

    /// Returns a wait for all of `members`, each a transfer or an earlier group; [`Wait::NOTHING`] among them counts
    /// for nothing. Makes no group where one or none is left.
    pub fn all_of(&mut self, members: &[Wait]) -> Wait {
        let bits: Vec<u32> = members
            .iter()
            .filter(|wait| **wait != Wait::NOTHING)
            .map(|wait| wait.to_bits())
            .collect();
        match bits[..] {
            [] => Wait::NOTHING,
            [one] => Wait::from_bits(one),
            _ => Wait::group(self.plan.groups.push(&bits)),
        }
    }

    /// Adds an explicit path, for [`Transfer::path`].
    pub fn path(&mut self, links: &[LinkId]) -> u32 {
        self.plan.paths.push(links)
    }

    /// In what order links are meant to serve the transfers; ready by default.
    pub fn link_order(&mut self, order: LinkOrder) {
        self.plan.link_order = order;
    }

    /// Returns the number of transfers so far.
    pub fn len(&self) -> usize {
        self.plan.len()
    }

    /// Returns `true` if there are no transfers yet.
    pub fn is_empty(&self) -> bool {
        self.plan.is_empty()
    }

    /// Returns the finished plan.
    pub fn finish(mut self) -> Plan {
        self.plan.own_paths = narrow(self.plan.paths.len());
        self.plan
    }
}

/// A plan's columns, for [`Plan::from_columns`].
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// First chunk of each transfer.
    pub chunk: Vec<u32>,
    /// Consecutive chunks of each transfer.
    pub chunk_count: Vec<u32>,
    /// Sender of each transfer.
    pub src: Vec<u32>,
    /// Receiver of each transfer.
    pub dst: Vec<u32>,
    /// 0 copy, 1 reduce.
    pub op: Vec<u8>,
    /// [`Wait`] bits.
    pub wait: Vec<u32>,
    /// Position in `paths`, or [`Plan::DEFAULT_ROUTE`].
    pub path: Vec<u32>,
}

impl Plan {
    /// Returns a copy of the columns, to be changed and made a plan of again.
    pub fn columns(&self) -> Columns {
        Columns {
            chunk: self.chunk.clone(),
            chunk_count: self.chunk_count.clone(),
            src: self.src.clone(),
            dst: self.dst.clone(),
            op: self.op.clone(),
            wait: self.wait.clone(),
            path: self.path.clone(),
        }
    }

    /// Returns a plan from columns (a file, another tool). Only what is needed to read it safely is checked here;
    /// [`crate::verify`] judges the rest.
    ///
    /// # Errors
    /// [`PlanError::Malformed`] for columns of unequal length, or an op, path, group or wait that
    /// points nowhere.
    pub fn from_columns(
        algorithm: impl Into<String>,
        collective: Collective,
        chunks: Chunks,
        columns: Columns,
        groups: Lists<u32>,
        paths: Lists<LinkId>,
    ) -> Result<Self, PlanError> {
        let malformed = |why: String| Err(PlanError::Malformed { why });
        let algorithm = checked_name(algorithm.into())?;
        let len = columns.chunk.len();
        let lengths = [
            ("chunk_count", columns.chunk_count.len()),
            ("src", columns.src.len()),
            ("dst", columns.dst.len()),
            ("op", columns.op.len()),
            ("wait", columns.wait.len()),
            ("path", columns.path.len()),
        ];
        for (name, length) in lengths {
            if length != len {
                return malformed(format!("column {name} has {length} rows, chunk has {len}"));
            }
        }
        if len > Wait::LIMIT {
            return malformed(format!("{len} transfers; the most is {}", Wait::LIMIT));
        }
        if let Some(i) = columns.op.iter().position(|&op| op > 1) {
            let op = columns.op[i];
            return malformed(format!(
                "transfer {i}: op {op} is neither copy (0) nor reduce (1)"
            ));
        }
        let stray = |bits: u32, groups: usize| match Wait::from_bits(bits).target() {
            super::WaitOn::Nothing => false,
            super::WaitOn::Transfer(id) => id.index() >= len,
            super::WaitOn::Group(group) => group as usize >= groups,
        };
        if let Some(i) = columns
            .wait
            .iter()
            .position(|&bits| stray(bits, groups.len()))
        {
            let wait = Wait::from_bits(columns.wait[i]);
            return malformed(format!(
                "transfer {i} waits for {wait}, which does not exist; there are {} transfers and {} groups",
                columns.wait.len(),
                groups.len()
            ));
        }
        for (g, members) in groups.iter().enumerate() {
            if let Some(&bits) = members.iter().find(|&&bits| stray(bits, g)) {
                let wait = Wait::from_bits(bits);
                return malformed(format!(
                    "group {g} has {wait} as a member; members are transfers and groups before it"
                ));
            }
        }
        let last = narrow(paths.len());
        let stray = |&path: &u32| path != Self::DEFAULT_ROUTE && path >= last;
        if let Some(i) = columns.path.iter().position(stray) {
            let path = columns.path[i];
            return malformed(format!("transfer {i}: path {path} does not exist"));
        }
        Ok(Self {
            algorithm,
            collective,
            chunks,
            chunk: columns.chunk,
            chunk_count: columns.chunk_count,
            src: columns.src,
            dst: columns.dst,
            op: columns.op,
            wait: columns.wait,
            path: columns.path,
            groups,
            link_order: LinkOrder::Ready,
            routing: Routing::Single,
            own_paths: narrow(paths.len()),
            paths,
        })
    }
}

/// The name of an algorithm, if it is one.
pub(super) fn checked_name(algorithm: String) -> Result<String, PlanError> {
    match name_fault(&algorithm) {
        None => Ok(algorithm),
        Some(why) => Err(PlanError::Malformed {
            why: format!("the name of its algorithm {why}"),
        }),
    }
}

//! Transfers that are right one after the other, and what each must then wait for.
//!
//! A place is a chunk at an NPU. Two transfers conflict at a place unless both read it, or both add to it
//! (docs/proof.md). The accesses of a place, in the order of the plan, fall into phases: longest stretches
//! without a conflict. A transfer that waits for the phase before its own, at the sender and at the
//! receiver, is ordered with everything that it conflicts with, since each phase waits for the one before.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::{
    Chunks, Columns, LinkOrder, Lists, Op, Plan, PlanBuilder, PlanError, Transfer, Wait, WaitOn,
};
use crate::collective::Collective;
use crate::explain::Explain;
use crate::id::{ChunkId, DeviceId, LinkId, NpuId, TransferId, narrow};
use crate::topology::Topology;

/// Why a transfer cannot be taken. Its parts are shown as Python writes them, the language of most callers.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum BadTransfer {
    /// Chunks that do not follow each other, or none.
    #[explain(
        field("chunk"),
        why("{given} is not a run of chunks"),
        remedy("give one such as range(4, 8)")
    )]
    NoRun {
        /// The chunks, as they were given.
        given: String,
    },
    /// Something that is not a chunk at all.
    #[explain(
        field("chunk"),
        why("{given} is not a chunk"),
        remedy("give its number, or a range")
    )]
    NotAChunk {
        /// What was given.
        given: String,
    },
    /// A chunk beyond the last.
    #[explain(
        field("chunk"),
        why("there is no chunk {given}"),
        remedy("chunks are 0 to {last}")
    )]
    NoChunk {
        /// The chunks, as they were given.
        given: String,
        /// The last chunk.
        last: usize,
    },
    /// An end that is neither an NPU nor a switch that sums or multicasts.
    #[explain(
        field("{field}"),
        why("there is no NPU {npu}"),
        remedy("NPUs are 0 to {last}")
    )]
    NoNpu {
        /// `src` or `dst`.
        field: &'static str,
        /// The number.
        npu: u32,
        /// The last NPU.
        last: usize,
    },
    /// A transfer from an NPU to itself.
    #[explain(
        field("dst"),
        why("NPU {npu} is the sender, too"),
        remedy("name another NPU")
    )]
    ToItself {
        /// The NPU, as it was given.
        npu: String,
    },
    /// A wait for something that is not there yet.
    #[explain(
        field("after"),
        why("{given} is none of the {transfers} transfers so far"),
        remedy("give what copy, reduce or barrier returned")
    )]
    NoTransfer {
        /// What was given.
        given: String,
        /// How many transfers there are.
        transfers: usize,
    },
    /// Devices of a path that no link joins.
    #[explain(field("path"), why("there is no link from '{src}' to '{dst}'"))]
    NoLink {
        /// Name of the first.
        src: String,
        /// Name of the second.
        dst: String,
    },
    /// A path that does not lead from the sender to the receiver.
    #[explain(
        field("path"),
        why("{given} does not join them"),
        remedy("name the devices from the sender to the receiver, both included")
    )]
    OtherEnds {
        /// The devices, as they were given.
        given: String,
    },
    /// More transfers than a plan can have.
    #[explain(
        why("a plan has at most {} transfers", Wait::LIMIT),
        remedy("use fewer chunks, or send several as one")
    )]
    TooMany,
}

/// The first of several transfers that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[explain(of(why.parts()), origin("transfer {transfer}"))]
pub struct BadRow {
    /// The number that it would have had.
    pub transfer: TransferId,
    /// What is wrong with it.
    pub why: BadTransfer,
}

/// Appends transfers in an order in which they would be right if each ran alone, one after the other.
///
/// A transfer waits for the earlier ones that it conflicts with: those that wrote its chunks at the sender,
/// and those that read or wrote them at the receiver. So a plan that is right step by step is right in every
/// order that its waits allow, and nothing waits without need.
///
/// # Complexity
/// O(log chunks) per transfer and run of chunks that transfers cut each other into.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use hocket_base::id::NpuId;
/// use hocket_base::progress::Silent;
/// use hocket_base::units::{Bandwidth, Time};
/// use hocket_plan::collective::{Collective, CollectiveKind};
/// use hocket_plan::plan::{Chunks, LinkOrder, Op, SerialBuilder};
/// use hocket_plan::verify::verify;
/// use hocket_topology::build;
///
/// let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
/// let network = Arc::new(build::fully_connected(3, gigabyte, Time::ZERO)?);
/// let reduce = Collective::among_all(CollectiveKind::Reduce, &network, 1_000_000)?;
/// let chunks = Chunks::split(&reduce.demands(), 1)?;
/// let mut builder = SerialBuilder::new(Arc::clone(&network), &reduce, chunks);
/// builder.send((0, 1), NpuId(2), NpuId(1), Op::Reduce, None, None)?;
/// builder.send((0, 1), NpuId(1), NpuId(0), Op::Reduce, None, None)?; // waits for the first
/// verify(Arc::new(builder.plan("by hand", LinkOrder::Ready)?), network, &mut Silent)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SerialBuilder {
    topology: Arc<Topology>,
    chunks: u32,
    made: Made,
    /// Of each device.
    places: Vec<Places>,
    paths: FxHashMap<Vec<DeviceId>, u32>,
    /// The transfers that the last barrier of all stands for, and itself.
    barrier: (u32, Wait),
}

impl SerialBuilder {
    /// A plan without transfers.
    pub fn new(topology: Arc<Topology>, collective: &Collective, chunks: Chunks) -> Self {
        Self {
            chunks: narrow(chunks.len()),
            made: Made {
                plan: PlanBuilder::new("own", collective, chunks),
                ending: Vec::new(),
                groups: FxHashMap::default(),
            },
            places: vec![Places::default(); topology.device_count()],
            paths: FxHashMap::default(),
            barrier: (0, Wait::NOTHING),
            topology,
        }
    }

    /// The network.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The collective of the plan.
    pub fn collective(&self) -> &Collective {
        &self.made.plan.plan.collective
    }

    /// The data, cut into chunks.
    pub fn chunks(&self) -> &Chunks {
        &self.made.plan.plan.chunks
    }

    /// Number of transfers so far.
    pub fn len(&self) -> usize {
        self.made.plan.len()
    }

    /// Returns `true` if there are no transfers yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if a device can send and receive chunks: an NPU, or a switch that sums or multicasts.
    #[inline]
    pub fn is_end(&self, device: u32) -> bool {
        let index = device as usize;
        index < self.topology.npu_count()
            || (index < self.topology.device_count()
                && self.topology.device(DeviceId(device)).offload.is_some())
    }

    /// Checks all of a transfer but what it waits for.
    ///
    /// # Errors
    /// The first of chunks, sender and receiver that is wrong.
    #[inline]
    pub fn check(&self, (first, count): (u32, u32), src: u32, dst: u32) -> Result<(), BadTransfer> {
        let end = u64::from(first) + u64::from(count);
        if count == 0 || end > u64::from(self.chunks) {
            return Err(self.no_chunks(first, count));
        }
        for (field, npu) in [("src", src), ("dst", dst)] {
            if !self.is_end(npu) {
                let last = self.topology.npu_count() - 1;
                return Err(BadTransfer::NoNpu { field, npu, last });
            }
        }
        if src == dst {
            let npu = dst.to_string();
            return Err(BadTransfer::ToItself { npu });
        }
        Ok(())
    }

    #[cold]
    fn no_chunks(&self, first: u32, count: u32) -> BadTransfer {
        let end = u64::from(first) + u64::from(count);
        let range = format!("range({first}, {end})");
        match count {
            0 => BadTransfer::NoRun { given: range },
            _ => BadTransfer::NoChunk {
                given: if count == 1 { first.to_string() } else { range },
                last: self.chunks.saturating_sub(1) as usize,
            },
        }
    }

    /// Appends a transfer of so many chunks from the first on. It waits for `after`, or by default for the
    /// earlier transfers that it conflicts with.
    ///
    /// # Errors
    /// [`BadTransfer`], and nothing is appended.
    pub fn send(
        &mut self,
        chunk: (u32, u32),
        src: NpuId,
        dst: NpuId,
        op: Op,
        after: Option<Wait>,
        path: Option<u32>,
    ) -> Result<TransferId, BadTransfer> {
        self.check(chunk, src.0, dst.0)?;
        if self.len() >= Wait::LIMIT {
            return Err(BadTransfer::TooMany);
        }
        Ok(self.append(chunk, src, dst, op, after, path))
    }

    #[inline]
    fn append(
        &mut self,
        (first, count): (u32, u32),
        src: NpuId,
        dst: NpuId,
        op: Op,
        after: Option<Wait>,
        path: Option<u32>,
    ) -> TransferId {
        let transfer = TransferId(narrow(self.len()));
        let write = match op {
            Op::Copy => Access::Copy,
            Op::Reduce => Access::Sum,
        };
        let chunks = (first, first + count);
        let mut waits = Waits::default();
        self.enter(src, chunks, Access::Read, transfer, &mut waits);
        self.enter(dst, chunks, write, transfer, &mut waits);
        let wait = after.unwrap_or_else(|| self.made.all_of(waits));
        self.made.plan.push(Transfer {
            chunk: ChunkId(first),
            count,
            src,
            dst,
            op,
            wait,
            path,
        })
    }

    /// Appends transfers, each over the default route, as [`send`](Self::send) does one by one. Waits and
    /// paths of the columns are not read.
    ///
    /// # Errors
    /// [`BadRow`] for the first that is wrong; then nothing is appended.
    pub fn extend(&mut self, columns: &Columns) -> Result<(), BadRow> {
        let rows = || {
            let chunks = columns
                .chunk
                .iter()
                .copied()
                .zip(columns.chunk_count.iter().copied());
            let ends = columns.src.iter().copied().zip(columns.dst.iter().copied());
            chunks.zip(ends)
        };
        let before = self.len();
        for (row, (chunk, (src, dst))) in rows().enumerate() {
            let checked = match before + row {
                Wait::LIMIT.. => Err(BadTransfer::TooMany),
                _ => self.check(chunk, src, dst),
            };
            let transfer = TransferId::from(before + row);
            checked.map_err(|why| BadRow { transfer, why })?;
        }
        self.made.plan.reserve(columns.chunk.len());
        for ((chunk, (src, dst)), &op) in rows().zip(&columns.op) {
            let op = if op == Op::Copy as u8 {
                Op::Copy
            } else {
                Op::Reduce
            };
            self.append(chunk, NpuId(src), NpuId(dst), op, None, None);
        }
        Ok(())
    }

    /// A wait for all of several waits; one group stands for the same ones in the same order.
    pub fn all_of(&mut self, waits: impl IntoIterator<Item = Wait>) -> Wait {
        let mut all = Waits::default();
        waits.into_iter().for_each(|wait| all.push(wait));
        self.made.all_of(all)
    }

    /// A wait for all transfers so far, which many can share.
    pub fn barrier(&mut self) -> Wait {
        let (first, before) = self.barrier;
        let len = narrow(self.len());
        let new = (first..len).map(|transfer| Wait::on(TransferId(transfer)));
        let mut all = Waits::default();
        std::iter::once(before)
            .chain(new)
            .for_each(|wait| all.push(wait));
        self.barrier = (len, self.made.all_of(all));
        self.barrier.1
    }

    /// Returns `true` if a wait is for nothing, or for a transfer or group that exists.
    pub fn has(&self, wait: Wait) -> bool {
        match wait.target() {
            WaitOn::Nothing => true,
            WaitOn::Transfer(transfer) => transfer.index() < self.len(),
            WaitOn::Group(group) => (group as usize) < self.made.plan.plan.groups.len(),
        }
    }

    /// The explicit path through these devices, for [`send`](Self::send); of parallel links the first.
    ///
    /// # Errors
    /// [`BadTransfer::NoLink`], and [`BadTransfer::OtherEnds`] unless it leads from `src` to `dst`.
    pub fn path(
        &mut self,
        devices: &[DeviceId],
        src: NpuId,
        dst: NpuId,
    ) -> Result<u32, BadTransfer> {
        let known = self.paths.get(devices).copied();
        let links: Vec<LinkId> = match known {
            Some(_) => Vec::new(),
            None => devices
                .windows(2)
                .map(|pair| self.link(pair[0], pair[1]))
                .collect::<Result<_, _>>()?,
        };
        let ends = (devices.first(), devices.last());
        if devices.len() < 2 || ends != (Some(&src.device()), Some(&dst.device())) {
            let numbers: Vec<u32> = devices.iter().map(|device| device.0).collect();
            let given = format!("{numbers:?}");
            return Err(BadTransfer::OtherEnds { given });
        }
        Ok(known.unwrap_or_else(|| {
            let path = self.made.plan.path(&links);
            self.paths.insert(devices.to_vec(), path);
            path
        }))
    }

    fn link(&self, src: DeviceId, dst: DeviceId) -> Result<LinkId, BadTransfer> {
        let found = self.topology.links_from_to(src, dst).first();
        let name = |device| self.topology.device(device).name.clone();
        found.copied().ok_or_else(|| BadTransfer::NoLink {
            src: name(src),
            dst: name(dst),
        })
    }

    /// The plan of the transfers so far, by a name.
    ///
    /// # Errors
    /// [`PlanError::Malformed`] for something that is not a name.
    pub fn plan(&self, algorithm: &str, order: LinkOrder) -> Result<Plan, PlanError> {
        let named = super::builder::checked_name(algorithm.to_owned())?;
        let mut plan = self.made.plan.clone().finish();
        plan.algorithm = named;
        Ok(plan.with_link_order(order))
    }

    /// What transfers wait for that are right one after the other: a wait for each, and the groups.
    ///
    /// # Errors
    /// [`BadRow`] for the first that is wrong.
    pub fn waits_of(
        topology: &Arc<Topology>,
        collective: &Collective,
        chunks: &Chunks,
        columns: &Columns,
    ) -> Result<(Vec<u32>, Lists<u32>), BadRow> {
        let mut builder = Self::new(Arc::clone(topology), collective, chunks.clone());
        builder.extend(columns)?;
        let plan = builder.made.plan.plan;
        Ok((plan.wait, plan.groups))
    }

    /// Notes that a transfer touches the chunks up to `end` at an NPU, and adds what it waits for.
    #[inline]
    fn enter(
        &mut self,
        npu: NpuId,
        (first, end): (u32, u32),
        access: Access,
        transfer: TransferId,
        waits: &mut Waits,
    ) {
        let places = &mut self.places[npu.index()];
        if let Some(run) = places.get(first)
            && run.end == end
        {
            waits.push(run.enter(access, transfer, &mut self.made));
            return;
        }
        places.cut(first, self.chunks);
        if end < self.chunks {
            places.cut(end, self.chunks);
        }
        let mut at = first;
        while at < end
            && let Some(run) = places.get(at)
        {
            waits.push(run.enter(access, transfer, &mut self.made));
            at = run.end;
        }
    }
}

/// The runs of one NPU, by the chunk with which each starts; 64 chunks share a page.
#[derive(Clone, Debug, Default)]
struct Places {
    pages: BTreeMap<u32, Page>,
}

/// The runs that start in a page, and at which of its chunks.
#[derive(Clone, Debug, Default)]
struct Page {
    starts: u64,
    runs: Vec<Run>,
}

impl Page {
    /// How many runs start before a chunk of the page.
    #[inline]
    fn rank(&self, at: u32) -> usize {
        let before = (1u64 << (at % u64::BITS)) - 1;
        (self.starts & before).count_ones() as usize
    }

    #[inline]
    fn has(&self, at: u32) -> bool {
        self.starts >> (at % u64::BITS) & 1 == 1
    }
}

impl Places {
    /// The run that starts at a chunk.
    #[inline]
    fn get(&mut self, at: u32) -> Option<&mut Run> {
        let page = self.pages.get_mut(&(at / u64::BITS))?;
        let rank = page.rank(at);
        page.has(at).then(|| &mut page.runs[rank])
    }

    /// The last run that starts before a chunk.
    fn before(&mut self, at: u32) -> Option<&mut Run> {
        let number = at / u64::BITS;
        let is_here = self
            .pages
            .get(&number)
            .is_some_and(|page| page.rank(at) > 0);
        let last = if is_here { number + 1 } else { number };
        let (_, page) = self.pages.range_mut(..last).next_back()?;
        let rank = if is_here {
            page.rank(at)
        } else {
            page.runs.len()
        };
        Some(&mut page.runs[rank - 1])
    }

    fn insert(&mut self, at: u32, run: Run) {
        let page = self.pages.entry(at / u64::BITS).or_default();
        page.runs.insert(page.rank(at), run);
        page.starts |= 1 << (at % u64::BITS);
    }

    /// Makes a run begin at a chunk.
    fn cut(&mut self, at: u32, chunks: u32) {
        if self.get(at).is_some() {
            return;
        }
        let second = match self.before(at) {
            Some(run) => {
                let second = run.clone();
                run.end = at;
                second
            }
            None => {
                if at > 0 {
                    self.insert(0, Run::untouched(at));
                }
                Run::untouched(chunks)
            }
        };
        self.insert(at, second);
    }
}

/// What a transfer does at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Sum,
    Copy,
}

/// A run of chunks at one NPU that every transfer so far has touched as a whole.
#[derive(Clone, Debug)]
struct Run {
    /// The chunk behind the last.
    end: u32,
    /// What the phase under way does.
    access: Access,
    /// For the phase before the one under way.
    before: Wait,
    /// For the only transfer of the phase under way, or for nothing.
    only: Wait,
    /// The transfers of the phase under way where they are several.
    #[expect(
        clippy::box_collection,
        reason = "runs are many, and nearly all have none"
    )]
    several: Option<Box<Vec<Wait>>>,
}

impl Run {
    fn untouched(end: u32) -> Self {
        Self {
            end,
            access: Access::Read,
            before: Wait::NOTHING,
            only: Wait::NOTHING,
            several: None,
        }
    }

    /// Notes that a transfer touches the run, giving what it waits for.
    #[inline]
    fn enter(&mut self, access: Access, transfer: TransferId, made: &mut Made) -> Wait {
        let wait = Wait::on(transfer);
        if access == self.access && access != Access::Copy {
            match &mut self.several {
                Some(several) => several.push(wait),
                None if self.only == Wait::NOTHING => self.only = wait,
                None => self.several = Some(Box::new(vec![self.only, wait])),
            }
            return self.before;
        }
        self.before = match self.several.take() {
            None => self.only,
            Some(several) => made.group(&several),
        };
        self.access = access;
        self.only = wait;
        self.before
    }
}

/// Different waits, in the order in which they came; none for nothing.
#[derive(Debug, Default)]
struct Waits {
    /// The first two, by far the most frequent.
    first: [Option<Wait>; 2],
    more: Vec<Wait>,
    seen: FxHashSet<Wait>,
}

impl Waits {
    #[inline]
    fn push(&mut self, wait: Wait) {
        match self.first {
            _ if wait == Wait::NOTHING => {}
            [None, _] => self.first[0] = Some(wait),
            [Some(one), _] if one == wait => {}
            [_, None] => self.first[1] = Some(wait),
            [_, Some(other)] if other == wait => {}
            _ => {
                if self.seen.insert(wait) {
                    self.more.push(wait);
                }
            }
        }
    }
}

/// The plan, and which groups it has already.
#[derive(Clone, Debug)]
struct Made {
    plan: PlanBuilder,
    /// Of each transfer: a group of which it is the last member. Most have one at most.
    ending: Vec<Option<u32>>,
    /// The other groups, by the hash of their members; the next number is tried where another has it.
    groups: FxHashMap<u64, u32>,
}

impl Made {
    #[inline]
    fn all_of(&mut self, waits: Waits) -> Wait {
        match (waits.first, waits.more.is_empty()) {
            ([None, _], _) => Wait::NOTHING,
            ([Some(one), None], _) => one,
            ([Some(one), Some(other)], true) => self.group(&[one, other]),
            ([Some(one), Some(other)], false) => {
                let all: Vec<Wait> = [one, other].into_iter().chain(waits.more).collect();
                self.group(&all)
            }
        }
    }

    /// The wait for two members or more.
    fn group(&mut self, members: &[Wait]) -> Wait {
        let next = narrow(self.plan.plan.groups.len());
        let is_known = |group: u32, plan: &PlanBuilder| {
            let known = plan.plan.groups.get(group as usize).iter().copied();
            known.eq(members.iter().map(|wait| wait.to_bits()))
        };
        let transfers = members.iter().filter_map(|wait| match wait.target() {
            WaitOn::Transfer(transfer) => Some(transfer.index()),
            _ => None,
        });
        if let Some(last) = transfers.max() {
            if last >= self.ending.len() {
                self.ending.resize(self.plan.len().max(last + 1), None);
            }
            match self.ending[last] {
                Some(group) if is_known(group, &self.plan) => return Wait::group(group),
                Some(_) => {}
                None => {
                    self.ending[last] = Some(next);
                    return self.plan.all_of(members);
                }
            }
        }
        let mut hash = FxBuildHasher.hash_one(members);
        loop {
            match self.groups.entry(hash) {
                Entry::Vacant(place) => {
                    place.insert(next);
                    return self.plan.all_of(members);
                }
                Entry::Occupied(known) if is_known(*known.get(), &self.plan) => {
                    return Wait::group(*known.get());
                }
                Entry::Occupied(_) => hash = hash.wrapping_add(1),
            }
        }
    }
}

#[cfg(test)]
mod tests;

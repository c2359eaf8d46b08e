//! Replays a plan on sets of contributions, one component of chunks at a time.

use super::contribution::{Set, SetTable};
use super::layout::{Layout, Run, runs};
use super::ordering::{FEW, Ordering};
use super::structure::{self, Order, Record};
use super::violation::{Code, VerifyReport, Violation};
use crate::collective::{Demand, NpuSet};
use crate::id::{ChunkId, NpuId, TransferId, narrow};
use crate::plan::{Plan, Wait};
use crate::topology::Topology;

const NONE: u32 = u32::MAX;
const MORE: u32 = 1 << 31;
/// Bytes of stored sets after which they are forgotten between components.
const TABLE_LIMIT: usize = 256 << 20;

/// How a transfer accesses a place. Two reads do not conflict, nor do two sums; all else does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Sum,
    Copy,
}

/// What one NPU holds of one segment, and who accessed it.
///
/// The accesses, in the order of the replay, fall into *phases*: longest runs without a conflict,
/// which are reads, or sums, or one copy. Every two conflicting accesses are ordered if and only if
/// each access comes after all of the phase before its own (docs/proof.md), so that two phases are
/// all that must be known.
#[derive(Clone, Copy)]
#[repr(align(32))] // so that none lies across two lines of the cache
struct State {
    value: Set,
    /// The accesses of the phase under way.
    phase: u32,
    /// The accesses of the phase before it.
    before: u32,
    /// A wait known to be over only after all of `before` ended, as bits; or nothing.
    settled: u32,
    /// Whether `settled` is what several waits have in common.
    narrowed: bool,
    /// How often it was read in all.
    reads: u32,
    /// Component in which this state was last used, plus one.
    epoch: u32,
    /// What the phase under way does.
    access: Access,
}

/// Why a replay ends early.
enum Halt {
    /// It needs states at finer grain than it has.
    TooCoarse,
    /// As many violations as are kept were found.
    Enough,
}

/// The replay of one plan.
pub(super) struct Replay<'a> {
    plan: &'a Plan,
    topology: &'a Topology,
    demands: Vec<Demand>,
    /// By device that transfers may end at.
    rank: Vec<u32>,
    /// Devices from here on are switches.
    npus: u32,
    sets: SetTable,
    pub(super) ordering: Ordering<'a>,
    states: Vec<State>,
    /// Further entries of the lists of accesses: (transfer, the rest of the list).
    lists: Vec<(u32, u32)>,
    epoch: u32,
    first: u32,
    layout: Layout,
    /// The last answer of [`Ordering::covers`] that was yes.
    covered: (Wait, Wait),
    /// Whether every two sums of one phase were ordered so far.
    pub(super) reproducible: bool,
    /// Everything wrong so far.
    pub(super) report: VerifyReport,
}

impl<'a> Replay<'a> {
    pub(super) fn new(plan: &'a Plan, topology: &'a Topology, order: &'a Order) -> Self {
        let participants = plan.collective().npus();
        let mut rank = vec![NONE; topology.end_count()];
        for (r, npu) in participants.iter().enumerate() {
            rank[npu.index()] = narrow(r);
        }
        Self {
            plan,
            topology,
            demands: plan.collective().demands(),
            rank,
            npus: narrow(topology.npu_count()),
            sets: SetTable::new(participants.len()),
            ordering: Ordering::new(plan, order),
            states: Vec::new(),
            lists: Vec::new(),
            epoch: 0,
            first: 0,
            layout: Layout::Whole,
            covered: (Wait::NOTHING, Wait::NOTHING),
            reproducible: true,
            report: VerifyReport::default(),
        }
    }

    /// Replays the transfers that carry chunks `first..end`, which are those of `records`, in wait
    /// order; then checks the postcondition of these chunks. Stops once as many violations as a
    /// report keeps were found.
    pub(super) fn component(&mut self, first: u32, end: u32, records: &[Record]) {
        if self.sets.memory() > TABLE_LIMIT {
            self.sets.clear();
        }
        let runs = runs(&self.plan.chunks().demand()[first as usize..end as usize]);
        let before = self.report.clone();
        let mut done = self.replay(first, end, records, &runs, false);
        if matches!(done, Err(Halt::TooCoarse)) {
            self.report = before;
            done = self.replay(first, end, records, &runs, true);
        }
        match done {
            Ok(()) => runs.iter().for_each(|run| self.check_post(run)),
            Err(Halt::Enough) => {}
            Err(Halt::TooCoarse) => unreachable!("segments cut at every boundary are fine enough"),
        }
    }

    fn replay(
        &mut self,
        first: u32,
        end: u32,
        records: &[Record],
        runs: &[Run],
        finest: bool,
    ) -> Result<(), Halt> {
        let npus = self.rank.len();
        self.first = first;
        self.epoch += 1;
        self.lists.clear();
        let span = (first, end - first);
        self.layout = Layout::new(records, span, runs, &self.demands, npus, finest);
        let segments = self.layout.len(npus);
        if self.states.len() < segments {
            self.states.resize(segments, State::new(Set::EMPTY, 0));
        }
        records.iter().try_for_each(|record| self.transfer(record))
    }

    fn transfer(&mut self, record: &Record) -> Result<(), Halt> {
        if self.report.is_full() {
            return Err(Halt::Enough);
        }
        let start = record.chunk - self.first;
        let end = start + record.count;
        let position = |npu, at| self.layout.position(npu, at);
        let (from, from_end) = (position(record.src, start), position(record.src, end));
        let (to, to_end) = (position(record.dst, start), position(record.dst, end));
        let mut value = Set::EMPTY;
        let mut uniform = true;
        for segment in from..from_end {
            let read = self.read(segment, record);
            uniform &= segment == from || read == value;
            value = read;
        }
        if uniform {
            if value != Set::EMPTY {
                (to..to_end).for_each(|segment| self.write(segment, record, value));
            }
            return Ok(());
        }
        let mut source = from;
        for segment in to..to_end {
            let at = self.layout.start(segment);
            while source + 1 < from_end && self.layout.start(source + 1) <= at {
                source += 1;
            }
            let ends = |segment, last| {
                if segment + 1 < last {
                    self.layout.start(segment + 1)
                } else {
                    end
                }
            };
            if ends(segment, to_end) > ends(source, from_end) {
                return Err(Halt::TooCoarse);
            }
            let value = self.states[source].value;
            if value != Set::EMPTY {
                self.write(segment, record, value);
            }
        }
        Ok(())
    }

    /// Brings a state up to this component: what the precondition says, if it was not used yet.
    #[inline(always)]
    fn touch(&mut self, segment: usize, npu: u32) {
        if self.states[segment].epoch != self.epoch {
            let demand = self.demand_of(segment);
            self.states[segment] = State::new(self.initial(demand, npu), self.epoch);
        }
    }

    fn demand_of(&self, segment: usize) -> u32 {
        let chunk = self.first + self.layout.start(segment);
        self.plan.chunks().demand()[chunk as usize]
    }

    fn initial(&self, demand: u32, npu: u32) -> Set {
        let demand = &self.demands[demand as usize];
        let rank = self.rank[npu as usize];
        if rank == NONE || !demand.holders.contains(NpuId(npu)) {
            Set::EMPTY
        } else if demand.reduced {
            self.sets.single(rank)
        } else {
            self.sets.single(0)
        }
    }

    #[inline]
    fn read(&mut self, segment: usize, record: &Record) -> Set {
        self.touch(segment, record.src);
        let state = &self.states[segment];
        if state.value == Set::EMPTY {
            self.blame(
                Code::SentBeforeHeld,
                segment,
                record,
                record.src,
                |replay| {
                    let name = replay.end(record.src);
                    format!("{name} sends it before it holds it")
                },
            );
            return Set::EMPTY;
        }
        if let Some(open) = self.enter(segment, record, Access::Read) {
            self.blame(Code::UnorderedRead, segment, record, record.src, |_| {
                format!("is sent without waiting for transfer {open}, which brings part of it")
            });
        }
        let state = &mut self.states[segment];
        state.reads = state.reads.saturating_add(1);
        state.value
    }

    #[inline]
    fn write(&mut self, segment: usize, record: &Record, value: Set) {
        self.touch(segment, record.dst);
        if record.dst >= self.npus && self.states[segment].access == Access::Read {
            // A switch keeps nothing of what it has sent on.
            self.states[segment].value = Set::EMPTY;
        }
        let state = self.states[segment];
        let (new, access) = if record.reduces() {
            (self.reduced(segment, record, value), Access::Sum)
        } else {
            if state.value == value {
                self.blame(
                    Code::DeliveredTwice,
                    segment,
                    record,
                    record.dst,
                    |replay| format!("{} already holds it", replay.end(record.dst)),
                );
            }
            if self.came_back(&state, record.dst, segment, value) {
                self.states[segment].phase = NONE; // the one read ended before
            }
            (Some(value), Access::Copy)
        };
        let open = self.enter(segment, record, access);
        if let Some(open) = open {
            self.blame(
                Code::UnorderedWrite,
                segment,
                record,
                record.dst,
                |replay| {
                    let name = replay.end(record.dst);
                    format!("is received at {name} while transfer {open} may still use it")
                },
            );
        }
        self.states[segment].value = new.unwrap_or(state.value);
    }

    /// Adds an access to its phase, or begins the next with it, and finds a transfer of the phase
    /// before that it does not come after.
    #[inline(always)]
    fn enter(&mut self, segment: usize, record: &Record, access: Access) -> Option<TransferId> {
        let state = &mut self.states[segment];
        if state.access != access || access == Access::Copy {
            state.begin(access);
        } else if access == Access::Sum && self.reproducible && state.phase != NONE {
            self.follow(segment, record);
        }
        let state = &self.states[segment];
        // A lone transfer is its own list, and waiting for it is the same four bytes.
        let is_direct = state.before == record.wait && state.before & MORE == 0;
        let is_settled = state.settled == record.wait && record.wait != Wait::NOTHING.to_bits();
        let open = if state.before == NONE || is_direct || is_settled {
            None
        } else {
            self.check_before(segment, record)
        };
        let state = &mut self.states[segment];
        state.phase = push(&mut self.lists, state.phase, record.transfer());
        open
    }

    /// Notes if a sum is not ordered with the one before it in its phase, so that floating-point
    /// sums may differ from run to run.
    fn follow(&mut self, segment: usize, record: &Record) {
        let phase = Entries {
            lists: &self.lists,
            list: self.states[segment].phase,
        };
        let wait = Wait::from_bits(record.wait);
        self.reproducible = self.ordering.first_open(phase.take(1), wait).is_none();
    }

    /// Returns the first transfer of the phase before that may not have ended when this one starts.
    fn check_before(&mut self, segment: usize, record: &Record) -> Option<TransferId> {
        let state = self.states[segment];
        let wait = Wait::from_bits(record.wait);
        let settled = Wait::from_bits(state.settled);
        if settled != Wait::NOTHING && self.covers(settled, wait) {
            if !state.narrowed {
                self.states[segment].settled = record.wait; // the next is likely to be the same
            }
            return None;
        }
        let before = Entries {
            lists: &self.lists,
            list: state.before,
        };
        let open = self.ordering.first_open(before.clone(), wait);
        if open.is_some() {
            return open;
        }
        let is_long = self.ordering.asked() > FEW;
        let state = &mut self.states[segment];
        state.settled = record.wait;
        if settled != Wait::NOTHING && is_long {
            // Waits differ: what they have in common settles those to come.
            state.settled = self.ordering.narrow(before, wait).to_bits();
            state.narrowed = true;
        }
        None
    }

    /// As [`Ordering::covers`]; what a transfer carries was mostly settled by one wait.
    #[inline]
    fn covers(&mut self, inner: Wait, outer: Wait) -> bool {
        if self.covered != (inner, outer) {
            if !self.ordering.covers(inner, outer) {
                return false;
            }
            self.covered = (inner, outer);
        }
        true
    }

    fn reduced(&mut self, segment: usize, record: &Record, value: Set) -> Option<Set> {
        let held = self.states[segment].value;
        if held == Set::EMPTY {
            if record.dst >= self.npus && self.is_summed(segment) {
                return Some(value); // a switch adds to nothing what comes first
            }
            self.blame(
                Code::ReduceIntoNothing,
                segment,
                record,
                record.dst,
                |replay| {
                    let name = replay.end(record.dst);
                    format!("{name} holds nothing to add to; copy instead")
                },
            );
            return Some(value);
        }
        if !self.is_summed(segment) {
            self.blame(Code::CountedTwice, segment, record, record.dst, |_| {
                "is added, but this collective does not sum it; copy instead".to_owned()
            });
            return None;
        }
        let union = self.sets.disjoint_union(held, value);
        if union.is_none() {
            self.blame(Code::CountedTwice, segment, record, record.dst, |replay| {
                let twice = replay
                    .sets
                    .ranks(held)
                    .filter(|&r| replay.sets.contains(value, r));
                format!(
                    "adds the contributions of {} a second time",
                    replay.npus(twice)
                )
            });
        }
        union
    }

    /// Returns whether its chunks are to be summed.
    fn is_summed(&self, segment: usize) -> bool {
        self.demands[self.demand_of(segment) as usize].reduced
    }

    /// Returns whether a value that is copied in must have left by the one read there was, so that it comes after it
    /// without a search.
    ///
    /// A contribution of an NPU to a sum is, at first, nowhere else. If the NPU sent the chunk once
    /// only, then whatever contains its contribution descends from that send. And that send came
    /// after every write before it, as [`Self::enter`] saw.
    fn came_back(&self, state: &State, npu: u32, segment: usize, value: Set) -> bool {
        let demand = &self.demands[self.demand_of(segment) as usize];
        let rank = self.rank[npu as usize];
        state.reads == 1
            && state.access == Access::Read
            && demand.reduced
            && rank != NONE
            && demand.holders.contains(NpuId(npu))
            && self.sets.contains(value, rank)
    }

    /// The postcondition of a run of chunks.
    fn check_post(&mut self, run: &Run) {
        let demand = self.demands[run.demand as usize].clone();
        let participants = self.plan.collective().npus();
        let target = match (&demand.holders, demand.reduced) {
            (_, false) => self.sets.single(0),
            (NpuSet::All, true) => self.sets.all(),
            (some, true) => {
                let ranks = some
                    .members(participants)
                    .iter()
                    .map(|npu| self.rank[npu.index()]);
                self.sets.of(ranks)
            }
        };
        for &npu in demand.wanted.members(participants) {
            for segment in self.layout.overlapping(npu.0, run.start, run.end) {
                self.touch(segment, npu.0);
                if self.states[segment].value != target {
                    self.blame_end(segment, npu, run, target);
                }
            }
        }
    }

    fn blame_end(&mut self, segment: usize, npu: NpuId, run: &Run, target: Set) {
        let state = self.states[segment];
        let chunk = self.first + self.layout.start(segment).max(run.start);
        let written = match state.access {
            Access::Read => state.before,
            Access::Sum | Access::Copy => state.phase,
        };
        let mut writers = Entries {
            lists: &self.lists,
            list: written,
        };
        let (sets, first) = (&self.sets, writers.next());
        let missing = sets
            .ranks(target)
            .filter(|&r| !sets.contains(state.value, r));
        let detail = if !self.demands[run.demand as usize].reduced {
            "never gets it".to_owned()
        } else {
            let empty = state.value == Set::EMPTY;
            let held = if empty {
                "is left with nothing,"
            } else {
                "ends"
            };
            format!("{held} without the contributions of {}", self.npus(missing))
        };
        self.report.add(|| Violation {
            code: Code::Missing,
            transfer: first,
            chunk: Some(ChunkId(chunk)),
            npu: Some(npu),
            detail,
        });
    }

    #[cold]
    fn blame(
        &mut self,
        code: Code,
        segment: usize,
        record: &Record,
        npu: u32,
        detail: impl FnOnce(&Self) -> String,
    ) {
        let mut report = std::mem::take(&mut self.report);
        report.add(|| Violation {
            code,
            transfer: Some(record.transfer()),
            chunk: Some(ChunkId(self.first + self.layout.start(segment))),
            npu: (npu < self.npus).then_some(NpuId(npu)),
            detail: detail(self),
        });
        self.report = report;
    }

    /// Returns what messages call an end of a transfer.
    fn end(&self, device: u32) -> String {
        structure::end_name(self.topology, device)
    }

    /// Names the NPUs of some ranks, the first few in full.
    fn npus(&self, ranks: impl Iterator<Item = u32>) -> String {
        const NAMED: usize = 6;
        let participants = self.plan.collective().npus();
        let npus: Vec<NpuId> = ranks.map(|rank| participants[rank as usize]).collect();
        let named: Vec<String> = npus.iter().take(NAMED).map(|npu| npu.to_string()).collect();
        let plural = if npus.len() == 1 { "" } else { "s" };
        let more = match npus.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("NPU{plural} {}{more}", named.join(", "))
    }
}

impl State {
    /// Returns a place that nobody accessed yet.
    fn new(value: Set, epoch: u32) -> Self {
        Self {
            value,
            phase: NONE,
            before: NONE,
            settled: Wait::NOTHING.to_bits(),
            narrowed: false,
            reads: 0,
            epoch,
            access: Access::Read,
        }
    }

    /// Begins a phase.
    #[inline]
    fn begin(&mut self, access: Access) {
        self.before = self.phase;
        self.phase = NONE;
        self.settled = Wait::NOTHING.to_bits();
        self.narrowed = false;
        self.access = access;
    }
}

/// Adds a transfer to a list: a lone one is the list itself.
///
/// # Panics
/// If the lists of one component pass 2^31 - 1 entries, 16 GiB: positions would pass for others.
#[inline]
fn push(lists: &mut Vec<(u32, u32)>, list: u32, transfer: TransferId) -> u32 {
    if list == NONE {
        return transfer.0;
    }
    let position = lists.len();
    assert!(
        position < (NONE & !MORE) as usize,
        "the accesses of a component are at most 2^31 - 1"
    );
    lists.push((transfer.0, list));
    narrow(position) | MORE
}

/// The transfers of a list, latest first.
#[derive(Clone)]
struct Entries<'a> {
    lists: &'a [(u32, u32)],
    list: u32,
}

impl Iterator for Entries<'_> {
    type Item = TransferId;

    #[inline]
    fn next(&mut self) -> Option<TransferId> {
        if self.list == NONE {
            return None;
        }
        if self.list & MORE == 0 {
            return Some(TransferId(std::mem::replace(&mut self.list, NONE)));
        }
        let (transfer, rest) = self.lists[(self.list & !MORE) as usize];
        self.list = rest;
        Some(TransferId(transfer))
    }
}

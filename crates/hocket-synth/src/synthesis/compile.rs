//! A timetable made into a plan on the topology itself.

use std::collections::HashMap;

use super::network::UnwoundNetwork;
use super::sums_and_copies::{Part, SumsAndCopies};
use super::timetable::{Send, Timetable};
use crate::collective::{Collective, Demand};
use crate::id::{ChunkId, NpuId, TransferId, narrow};
use crate::plan::{Chunks, LinkOrder, Op, Plan, PlanBuilder, Transfer, Wait};

/// What is sent when: sums and copies, in real time both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timetables {
    /// Timetable of what is summed; edges as they are, not turned round.
    pub sums: Timetable,
    /// Timetable of what is copied.
    pub copies: Timetable,
}

impl Timetables {
    /// When all is done, in picoseconds.
    pub fn end(&self) -> u64 {
        self.sums.end.max(self.copies.end)
    }
}

const NONE: u32 = u32::MAX;

/// Makes the plan: a transfer for each send, in the order of their starts, over the links of its edge.
///
/// A copy waits until its chunk has come, a sum until all that flows into it has. Links serve in the
/// plan's order, so that nothing is later than the timetable says, with one exception: where an NPU
/// that has nothing to add passes a sum on, what comes first is copied there, and the rest waits for
/// it. Such an NPU sends nothing where nothing has come. A sum that is made at an NPU with nothing to
/// add may be complete before it gets there. It is not copied back to where it was complete.
pub(super) fn compile(
    algorithm: &str,
    collective: &Collective,
    network: &UnwoundNetwork,
    work: &SumsAndCopies,
    times: &Timetables,
) -> Plan {
    let mut plan = PlanBuilder::new(algorithm, collective, work.chunks.clone());
    plan.reserve(times.sums.sends.len() + times.copies.sends.len());
    plan.link_order(LinkOrder::Plan);
    for edge in 0..narrow(network.edges().len()) {
        plan.path(network.path(edge));
    }
    let mut arrived = Arrived::new(network.npus(), work.chunks.len());
    let mut holders = Holders::new(network.npus(), collective, work);
    let (mut sums, mut copies) = (&times.sums.sends[..], &times.copies.sends[..]);
    loop {
        let next = match (sums, copies) {
            ([], []) => return plan.finish(),
            ([sum, ..], [copy, ..]) if sum.start > copy.start => (false, copy),
            ([], [copy, ..]) => (false, copy),
            ([sum, ..], _) => (true, sum),
        };
        match next.0 {
            true => sums = &sums[1..],
            false => copies = &copies[1..],
        }
        let part = if next.0 { &work.sums } else { &work.copies };
        push(&mut plan, network, part, next, &mut holders, &mut arrived);
    }
}

fn push(
    plan: &mut PlanBuilder,
    network: &UnwoundNetwork,
    part: &Part,
    (is_sum, send): (bool, &Send),
    holders: &mut Holders<'_>,
    arrived: &mut Arrived,
) {
    let ends = network.edges()[send.edge as usize];
    let (src, dst) = (ends.src, ends.dst);
    let chunk = part.ids[send.chunk as usize];
    if is_sum && !holders.contains(chunk, src) && !arrived.any(src.0, chunk) {
        return;
    }
    if !is_sum && holders.is_complete(chunk, dst) {
        return;
    }
    let mut wait = arrived.wait(plan, src.0, chunk);
    let mut op = if is_sum { Op::Reduce } else { Op::Copy };
    if is_sum && !holders.contains(chunk, dst) {
        match arrived.first(dst.0, chunk) {
            None => op = Op::Copy,
            Some(copied) => wait = plan.all_of(&[wait, Wait::on(copied)]),
        }
    }
    let id = plan.push(Transfer {
        chunk: ChunkId(chunk),
        count: 1,
        src,
        dst,
        op,
        wait,
        path: Some(send.edge),
    });
    arrived.note(dst.0, chunk, id, is_sum);
    if is_sum {
        holders.add(chunk, src, dst);
    }
}

/// Who has something of each chunk at the start, and how much of some sums has come where.
struct Holders<'a> {
    chunks: &'a Chunks,
    demands: Vec<Demand>,
    participates: Vec<bool>,
    /// How many add to each chunk that is summed at an NPU with nothing to add.
    adding: HashMap<u32, u32>,
    /// Of those chunks: how many of the contributions have come to each NPU.
    come: HashMap<(u32, NpuId), u32>,
}

impl<'a> Holders<'a> {
    fn new(npus: usize, collective: &Collective, work: &'a SumsAndCopies) -> Self {
        let mut participates = vec![false; npus];
        let participants = collective.npus().iter();
        participants.for_each(|npu| participates[npu.index()] = true);
        let mut holders = Self {
            chunks: &work.chunks,
            demands: collective.demands(),
            participates,
            adding: HashMap::new(),
            come: HashMap::new(),
        };
        for (&chunk, &(site, _)) in work.sums.ids.iter().zip(&work.sums.spread.holders) {
            if !holders.contains(chunk, NpuId(site)) {
                let demand = &holders.demands[work.chunks.demand()[chunk as usize] as usize];
                let adding = demand.holders.members(collective.npus()).len();
                holders.adding.insert(chunk, narrow(adding));
            }
        }
        holders
    }

    fn contains(&self, chunk: u32, npu: NpuId) -> bool {
        let demand = self.chunks.demand()[chunk as usize] as usize;
        self.participates[npu.index()] && self.demands[demand].holders.contains(npu)
    }

    /// Returns how many contributions are at an NPU.
    fn at(&self, chunk: u32, npu: NpuId) -> u32 {
        let come = self.come.get(&(chunk, npu)).copied().unwrap_or(0);
        come + u32::from(self.contains(chunk, npu))
    }

    /// Notes that all that one NPU has of a sum has been sent to another.
    fn add(&mut self, chunk: u32, src: NpuId, dst: NpuId) {
        if self.adding.contains_key(&chunk) {
            let sent = self.at(chunk, src);
            *self.come.entry((chunk, dst)).or_insert(0) += sent;
        }
    }

    /// Returns whether an NPU through which a sum has come has had all of it.
    fn is_complete(&self, chunk: u32, npu: NpuId) -> bool {
        let adding = self.adding.get(&chunk);
        adding.is_some_and(|&adding| self.at(chunk, npu) == adding)
    }
}

/// The transfers that have brought each chunk to each NPU, as chains.
struct Arrived {
    npus: usize,
    latest: Vec<u32>,
    /// For each transfer, the one before it to the same place, if that was a sum; as far as there
    /// have been sums: none where there is nothing to chain.
    earlier: Vec<u32>,
    members: Vec<Wait>,
}

impl Arrived {
    fn new(npus: usize, chunks: usize) -> Self {
        Self {
            npus,
            latest: vec![NONE; npus * chunks],
            earlier: Vec::new(),
            members: Vec::new(),
        }
    }

    /// Returns the last transfer that has brought a chunk to an NPU, or [`NONE`].
    #[inline]
    fn latest(&mut self, npu: u32, chunk: u32) -> &mut u32 {
        &mut self.latest[chunk as usize * self.npus + npu as usize]
    }

    /// Returns whether a chunk has come to an NPU.
    fn any(&mut self, npu: u32, chunk: u32) -> bool {
        *self.latest(npu, chunk) != NONE
    }

    /// Returns the sum that came to the same place before a transfer, or [`NONE`].
    #[inline]
    fn earlier(&self, id: u32) -> u32 {
        self.earlier.get(id as usize).copied().unwrap_or(NONE)
    }

    /// Returns the first transfer that has brought a chunk to an NPU.
    fn first(&mut self, npu: u32, chunk: u32) -> Option<TransferId> {
        let mut first = *self.latest(npu, chunk);
        while first != NONE && self.earlier(first) != NONE {
            first = self.earlier(first);
        }
        (first != NONE).then_some(TransferId(first))
    }

    fn wait(&mut self, plan: &mut PlanBuilder, npu: u32, chunk: u32) -> Wait {
        let latest = *self.latest(npu, chunk);
        if latest == NONE {
            return Wait::NOTHING;
        }
        if self.earlier(latest) == NONE {
            return Wait::on(TransferId(latest));
        }
        self.members.clear();
        let mut next = latest;
        while next != NONE {
            self.members.push(Wait::on(TransferId(next)));
            next = self.earlier(next);
        }
        plan.all_of(&self.members)
    }

    /// Whoever has a copy has all that came before it.
    fn note(&mut self, npu: u32, chunk: u32, id: TransferId, is_sum: bool) {
        let earlier = std::mem::replace(self.latest(npu, chunk), id.0);
        if is_sum && earlier != NONE {
            self.earlier.resize(id.index(), NONE);
            self.earlier.push(earlier);
        }
    }
}

//! A timetable made into a plan on the topology itself.

use super::network::Network;
use super::timetable::{Send, Timetable};
use super::work::{Part, Work};
use crate::collective::Collective;
use crate::id::{ChunkId, TransferId};
use crate::plan::{LinkOrder, Op, Plan, PlanBuilder, Transfer, Wait};

/// What is sent when: sums and copies, in real time both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timetables {
    /// Of what is summed; edges as they are, not turned round.
    pub sums: Timetable,
    /// Of what is copied.
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
/// plan's order, so that nothing is later than the timetable says.
pub(super) fn lower(
    algorithm: &str,
    collective: &Collective,
    network: &Network,
    work: &Work,
    times: &Timetables,
) -> Plan {
    let mut plan = PlanBuilder::new(algorithm, collective, work.chunks.clone());
    plan.reserve(times.sums.sends.len() + times.copies.sends.len());
    plan.link_order(LinkOrder::Plan);
    for edge in 0..network.edges().len() as u32 {
        plan.path(network.path(edge));
    }
    let mut arrived = Arrived::new(network.npus(), work.chunks.len());
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
        push(&mut plan, network, part, next, &mut arrived);
    }
}

fn push(
    plan: &mut PlanBuilder,
    network: &Network,
    part: &Part,
    (is_sum, send): (bool, &Send),
    arrived: &mut Arrived,
) {
    let ends = network.edges()[send.edge as usize];
    let (src, dst) = (ends.src, ends.dst);
    let chunk = part.ids[send.chunk as usize];
    let wait = arrived.wait(plan, src.0, chunk);
    let id = plan.push(Transfer {
        chunk: ChunkId(chunk),
        count: 1,
        src,
        dst,
        op: if is_sum { Op::Reduce } else { Op::Copy },
        wait,
        path: Some(send.edge),
    });
    arrived.note(dst.0, chunk, id, is_sum);
}

/// The transfers that have brought each chunk to each NPU, as chains.
struct Arrived {
    chunks: usize,
    latest: Vec<u32>,
    /// For each transfer, the one before it to the same place.
    earlier: Vec<u32>,
    members: Vec<Wait>,
}

impl Arrived {
    fn new(npus: usize, chunks: usize) -> Self {
        Self {
            chunks,
            latest: vec![NONE; npus * chunks],
            earlier: Vec::new(),
            members: Vec::new(),
        }
    }

    fn wait(&mut self, plan: &mut PlanBuilder, npu: u32, chunk: u32) -> Wait {
        let latest = self.latest[npu as usize * self.chunks + chunk as usize];
        if latest == NONE {
            return Wait::NOTHING;
        }
        if self.earlier[latest as usize] == NONE {
            return Wait::on(TransferId(latest));
        }
        self.members.clear();
        let mut next = latest;
        while next != NONE {
            self.members.push(Wait::on(TransferId(next)));
            next = self.earlier[next as usize];
        }
        plan.all_of(&self.members)
    }

    /// Whoever has a copy has all that came before it.
    fn note(&mut self, npu: u32, chunk: u32, id: TransferId, is_sum: bool) {
        let latest = &mut self.latest[npu as usize * self.chunks + chunk as usize];
        let earlier = std::mem::replace(latest, id.0);
        self.earlier.push(if is_sum { earlier } else { NONE });
    }
}

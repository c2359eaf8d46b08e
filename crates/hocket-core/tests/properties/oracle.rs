//! A slow, obvious judge of plans: counts of contributions, and every pair of accesses compared.

use std::collections::BTreeMap;

use hocket_core::id::narrow;
use hocket_core::plan::{Op, Plan, Wait, WaitOn};

/// What an NPU holds of a chunk: how often each NPU's contribution is in it. Absent: nothing.
type Value = BTreeMap<u32, u32>;

/// Whether two transfers of one chunk race; which transfers end before which start is given.
pub(crate) type Races<'a> = &'a dyn Fn(&Plan, &[TransferSet], usize, usize) -> bool;

/// Whether a plan is right, whatever the timing. Chunks are judged one by one.
pub(crate) fn is_right(plan: &Plan) -> bool {
    is_right_if(plan, &races)
}

/// Whether a plan is right by a notion of races that may be another.
pub(crate) fn is_right_if(plan: &Plan, races: Races) -> bool {
    let Some((order, before)) = closure(plan) else {
        return false;
    };
    let demands = plan.collective().demands();
    let all = plan.collective().npus();
    (0..narrow(plan.chunks().len())).all(|chunk| {
        let demand = &demands[plan.chunks().demand()[chunk as usize] as usize];
        let mut held: BTreeMap<u32, Value> = BTreeMap::new();
        for &holder in demand.holders.members(all) {
            let contribution = if demand.reduced { holder.0 } else { 0 };
            held.insert(holder.0, Value::from([(contribution, 1)]));
        }
        let full: Value = held.values().flatten().map(|(&npu, _)| (npu, 1)).collect();
        let carries = |&t: &usize| {
            (plan.chunk()[t]..plan.chunk()[t] + plan.chunk_count()[t]).contains(&chunk)
        };
        let transfers: Vec<usize> = order.iter().copied().filter(carries).collect();
        transfers
            .iter()
            .all(|&t| replay(plan, t, demand.reduced, &mut held))
            && transfers
                .iter()
                .all(|&a| transfers.iter().all(|&b| !races(plan, &before, a, b)))
            && demand
                .wanted
                .members(all)
                .iter()
                .all(|npu| held.get(&npu.0) == Some(&full))
    })
}

/// Makes one transfer; false if it makes no sense.
fn replay(plan: &Plan, t: usize, reduced: bool, held: &mut BTreeMap<u32, Value>) -> bool {
    let Some(sent) = held.get(&plan.src()[t]).cloned() else {
        return false;
    };
    let dst = plan.dst()[t];
    if plan.op()[t] == Op::Copy as u8 {
        return held.insert(dst, sent.clone()) != Some(sent);
    }
    let Some(there) = held.get_mut(&dst) else {
        return false;
    };
    for (npu, count) in sent {
        *there.entry(npu).or_insert(0) += count;
    }
    reduced && there.values().all(|&count| count == 1)
}

/// Whether two transfers of one chunk touch one place in an order that the waits leave open.
pub(crate) fn races(plan: &Plan, before: &[TransferSet], a: usize, b: usize) -> bool {
    if a == b || before[a].contains(b) || before[b].contains(a) {
        return false;
    }
    let sums = |t: usize| plan.op()[t] == Op::Reduce as u8;
    let read_and_written = plan.src()[a] == plan.dst()[b];
    let written_twice = plan.dst()[a] == plan.dst()[b] && !(sums(a) && sums(b));
    read_and_written || written_twice
}

/// An order that the waits allow, and for each transfer all that end before it starts; `None` for a
/// cycle.
pub(crate) fn closure(plan: &Plan) -> Option<(Vec<usize>, Vec<TransferSet>)> {
    let n = plan.len();
    let mut before = waits(plan);
    for k in 0..n {
        let before_k = before[k].clone();
        for set in before.iter_mut().filter(|set| set.contains(k)) {
            set.add_all(&before_k);
        }
    }
    if (0..n).any(|t| before[t].contains(t)) {
        return None;
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&t| before[t].iter().count());
    Some((order, before))
}

/// What each transfer waits for, groups taken apart.
pub(crate) fn waits(plan: &Plan) -> Vec<TransferSet> {
    let mut groups: Vec<TransferSet> = Vec::new();
    let add = |groups: &[TransferSet], set: &mut TransferSet, bits: u32| match Wait::from_bits(bits)
        .target()
    {
        WaitOn::Nothing => {}
        WaitOn::Transfer(t) => set.insert(t.index()),
        WaitOn::Group(group) => set.add_all(&groups[group as usize]),
    };
    for members in plan.groups().iter() {
        let mut set = TransferSet::none_of(plan.len());
        members
            .iter()
            .for_each(|&bits| add(&groups, &mut set, bits));
        groups.push(set);
    }
    let of = |&bits: &u32| {
        let mut set = TransferSet::none_of(plan.len());
        add(&groups, &mut set, bits);
        set
    };
    plan.wait().iter().map(of).collect()
}

/// A set of transfers, a bit each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransferSet(Vec<u64>);

impl TransferSet {
    fn none_of(transfers: usize) -> Self {
        Self(vec![0; transfers.div_ceil(64)])
    }

    fn insert(&mut self, t: usize) {
        self.0[t / 64] |= 1 << (t % 64);
    }

    fn add_all(&mut self, others: &Self) {
        for (word, other) in self.0.iter_mut().zip(&others.0) {
            *word |= other;
        }
    }

    /// Whether a transfer is a member.
    pub(crate) fn contains(&self, t: usize) -> bool {
        self.0[t / 64] >> (t % 64) & 1 == 1
    }

    /// Its members, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        (0..64 * self.0.len()).filter(|&t| self.contains(t))
    }
}

//! A slow, obvious judge of plans: counts of contributions, and every pair of accesses compared.

use std::collections::BTreeMap;

use hocket_core::id::TransferId;
use hocket_core::plan::{Op, Plan, Wait, WaitOn};

/// What an NPU holds of a chunk: how often each NPU's contribution is in it. Absent: nothing.
type Value = BTreeMap<u32, u32>;

/// Whether a plan is right, whatever the timing. Chunks are judged one by one.
pub fn is_right(plan: &Plan) -> bool {
    let Some((order, before)) = closure(plan) else {
        return false;
    };
    let demands = plan.collective().demands();
    let all = plan.collective().npus();
    (0..plan.chunks().len() as u32).all(|chunk| {
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
fn races(plan: &Plan, before: &[Vec<bool>], a: usize, b: usize) -> bool {
    if a == b || before[a][b] || before[b][a] {
        return false;
    }
    let sums = |t: usize| plan.op()[t] == Op::Reduce as u8;
    let read_and_written = plan.src()[a] == plan.dst()[b];
    let written_twice = plan.dst()[a] == plan.dst()[b] && !(sums(a) && sums(b));
    read_and_written || written_twice
}

/// An order that the waits allow, and which transfer ends before which starts; `None` for a cycle.
fn closure(plan: &Plan) -> Option<(Vec<usize>, Vec<Vec<bool>>)> {
    let n = plan.len();
    let mut before = vec![vec![false; n]; n];
    for (t, &bits) in plan.wait().iter().enumerate() {
        for earlier in members(plan, Wait::from_bits(bits)) {
            before[earlier][t] = true;
        }
    }
    for k in 0..n {
        let after_k = before[k].clone();
        for row in before.iter_mut().filter(|row| row[k]) {
            row.iter_mut()
                .zip(&after_k)
                .for_each(|(this, &that)| *this |= that);
        }
    }
    if before.iter().enumerate().any(|(t, after)| after[t]) {
        return None;
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&t| (0..n).filter(|&earlier| before[earlier][t]).count());
    Some((order, before))
}

fn members(plan: &Plan, wait: Wait) -> Vec<usize> {
    match wait.target() {
        WaitOn::Nothing => Vec::new(),
        WaitOn::Transfer(TransferId(t)) => vec![t as usize],
        WaitOn::Group(group) => {
            let members = plan.groups().get(group as usize).iter();
            members
                .flat_map(|&bits| self::members(plan, Wait::from_bits(bits)))
                .collect()
        }
    }
}

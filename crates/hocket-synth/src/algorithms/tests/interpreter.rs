//! A slow and obvious judge of plans: replays them value by value and compares every pair of
//! accesses to a place against the waits.

use std::collections::{BTreeMap, HashMap};

use crate::id::{ChunkId, NpuId, TransferId, narrow};
use crate::plan::{Op, Plan, Transfer, Wait, WaitOn};

/// A set of transfers.
type Bits = Vec<u64>;

/// Asserts that a plan does what its collective says, in any order of execution that its waits
/// allow; gives each transfer's step: the length of the longest chain of waits that ends in it.
pub(crate) fn judge(plan: &Plan) -> Vec<usize> {
    let transfers: Vec<Transfer> = (0..plan.len())
        .map(|i| plan.transfer(TransferId::from(i)))
        .collect();
    let (before, steps) = happens_before(plan, &transfers);
    assert_places_are_ordered(plan, &transfers, &before);
    replay(plan, &transfers);
    steps
}

fn members(plan: &Plan, wait: Wait, into: &mut Vec<usize>) {
    match wait.target() {
        WaitOn::Nothing => {}
        WaitOn::Transfer(id) => into.push(id.index()),
        WaitOn::Group(group) => {
            for &bits in plan.groups().get(group as usize) {
                members(plan, Wait::from_bits(bits), into);
            }
        }
    }
}

/// For each transfer, all that have ended before it starts, and its step.
fn happens_before(plan: &Plan, transfers: &[Transfer]) -> (Vec<Bits>, Vec<usize>) {
    let words = transfers.len().div_ceil(64);
    let mut before: Vec<Bits> = Vec::new();
    let mut steps = Vec::new();
    for (t, transfer) in transfers.iter().enumerate() {
        let mut direct = Vec::new();
        members(plan, transfer.wait, &mut direct);
        let mut bits = vec![0u64; words];
        let mut step = 1;
        for d in direct {
            assert!(d < t, "transfer {t} waits for {d}: not in order");
            step = step.max(steps[d] + 1);
            bits[d / 64] |= 1 << (d % 64);
            for (word, earlier) in bits.iter_mut().zip(&before[d]) {
                *word |= earlier;
            }
        }
        before.push(bits);
        steps.push(step);
    }
    (before, steps)
}

#[derive(Clone, Copy, PartialEq)]
enum Access {
    Read,
    Write(Op),
}

fn assert_places_are_ordered(plan: &Plan, transfers: &[Transfer], before: &[Bits]) {
    let mut places: BTreeMap<(NpuId, u32), Vec<(usize, Access)>> = BTreeMap::new();
    for (t, transfer) in transfers.iter().enumerate() {
        for chunk in chunks(transfer) {
            let here = places.entry((transfer.src, chunk)).or_default();
            here.push((t, Access::Read));
            let there = places.entry((transfer.dst, chunk)).or_default();
            there.push((t, Access::Write(transfer.op)));
        }
    }
    for (place, accesses) in places {
        for (i, &(b, second)) in accesses.iter().enumerate() {
            for &(a, first) in &accesses[..i] {
                let commute = first == second && first != Access::Write(Op::Copy);
                let ordered = before[b][a / 64] >> (a % 64) & 1 == 1;
                assert!(
                    commute || ordered,
                    "{}: {place:?}: transfer {b} does not wait for {a}",
                    plan.algorithm()
                );
            }
        }
    }
}

fn chunks(transfer: &Transfer) -> std::ops::Range<u32> {
    let ChunkId(first) = transfer.chunk;
    first..first + transfer.count
}

/// How often each contribution is in a value; for data that is not summed, `[NpuId::MAX]` once.
type Value = BTreeMap<NpuId, usize>;

const DATA: NpuId = NpuId(u32::MAX);

fn replay(plan: &Plan, transfers: &[Transfer]) {
    let collective = plan.collective();
    let (demands, all) = (collective.demands(), collective.npus());
    let once = |npus: &[NpuId]| npus.iter().map(|&npu| (npu, 1)).collect::<Value>();
    let mut held: HashMap<(NpuId, u32), Value> = HashMap::new();
    let mut bytes = vec![0; demands.len()];
    for (chunk, &d) in plan.chunks().demand().iter().enumerate() {
        let demand = &demands[d as usize];
        bytes[d as usize] += plan.chunks().bytes_of(narrow(chunk), 1);
        for &npu in demand.holders.members(all) {
            let own = if demand.reduced { npu } else { DATA };
            held.insert((npu, narrow(chunk)), once(&[own]));
        }
    }
    for (d, demand) in demands.iter().enumerate() {
        assert_eq!(bytes[d], demand.bytes, "bytes of demand {d}");
    }
    for (t, transfer) in transfers.iter().enumerate() {
        assert_ne!(transfer.src, transfer.dst, "transfer {t}");
        assert!(plan.bytes(TransferId::from(t)) > 0, "transfer {t}");
        for chunk in chunks(transfer) {
            let sent = held
                .get(&(transfer.src, chunk))
                .unwrap_or_else(|| panic!("transfer {t}: {} lacks {chunk}", transfer.src))
                .clone();
            let there = held.entry((transfer.dst, chunk)).or_default();
            match transfer.op {
                Op::Copy => {
                    assert_ne!(*there, sent, "transfer {t} brings what is there");
                    *there = sent;
                }
                Op::Reduce => {
                    for (npu, count) in sent {
                        *there.entry(npu).or_default() += count;
                    }
                }
            }
        }
    }
    for (chunk, &d) in plan.chunks().demand().iter().enumerate() {
        let demand = &demands[d as usize];
        let whole = match demand.reduced {
            true => once(demand.holders.members(all)),
            false => once(&[DATA]),
        };
        for &npu in demand.wanted.members(all) {
            let got = held.get(&(npu, narrow(chunk)));
            assert_eq!(
                got,
                Some(&whole),
                "{}: NPU {npu}, chunk {chunk}",
                plan.algorithm()
            );
        }
    }
}

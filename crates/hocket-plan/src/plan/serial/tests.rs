use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::collective::CollectiveKind;
use crate::topology::build;
use crate::units::{Bandwidth, Time};

const NPUS: u32 = 4;
const CHUNKS: u32 = 6;

fn builder() -> SerialBuilder {
    let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
    let network = build::fully_connected(NPUS, gigabyte, Time::ZERO).unwrap();
    let all = Collective::among_all(CollectiveKind::AllReduce, &network, 1_000).unwrap();
    let chunks = Chunks::split(&all.demands(), CHUNKS as usize).unwrap();
    SerialBuilder::new(Arc::new(network), &all, chunks)
}

/// What a transfer does to a chunk at an NPU, if it touches it.
fn access(plan: &Plan, transfer: usize, chunk: u32, npu: u32) -> Option<Access> {
    let first = plan.chunk()[transfer];
    let write = [Access::Copy, Access::Sum][plan.op()[transfer] as usize];
    let ends = [
        (plan.src()[transfer], Access::Read),
        (plan.dst()[transfer], write),
    ];
    let touched = (first..first + plan.chunk_count()[transfer]).contains(&chunk);
    let end = ends.iter().find(|(end, _)| *end == npu && touched);
    end.map(|(_, access)| *access)
}

fn conflict(plan: &Plan, one: usize, other: usize) -> bool {
    let mut places = (0..CHUNKS).flat_map(|chunk| (0..NPUS).map(move |npu| (chunk, npu)));
    places.any(|(chunk, npu)| {
        match (
            access(plan, one, chunk, npu),
            access(plan, other, chunk, npu),
        ) {
            (Some(one), Some(other)) => one != other || one == Access::Copy,
            _ => false,
        }
    })
}

/// Everything that ends before each transfer starts, as bits, from what it is known to follow directly.
fn closure(count: usize, follows: impl Fn(usize) -> u64) -> Vec<u64> {
    let mut before = Vec::with_capacity(count);
    for transfer in 0..count {
        let direct = follows(transfer);
        let earlier = before.iter().enumerate();
        let all = earlier.filter(|(other, _)| direct >> other & 1 == 1);
        before.push(all.fold(direct, |all, (_, more)| all | more));
    }
    before
}

proptest! {
    #[test]
    fn transfers_wait_for_what_they_conflict_with_and_for_nothing_else(
        rows in prop::collection::vec((any::<bool>(), 0..CHUNKS, 1..4u32, 0..NPUS, 1..NPUS), 0..40)
    ) {
        let mut builder = builder();
        for (is_sum, first, count, src, step) in rows {
            let op = if is_sum { Op::Reduce } else { Op::Copy };
            let chunk = (first, count.min(CHUNKS - first));
            let dst = NpuId((src + step) % NPUS);
            builder.send(chunk, NpuId(src), dst, op, None, None).unwrap();
        }
        let plan = builder.plan("own", LinkOrder::Ready).unwrap();
        let waits = closure(plan.len(), |transfer| {
            let wait = Wait::from_bits(plan.wait()[transfer]);
            match wait.target() {
                WaitOn::Nothing => 0,
                WaitOn::Transfer(one) => 1 << one.0,
                // All transfers: no barrier was made.
                WaitOn::Group(group) => {
                    let members = plan.groups().get(group as usize).iter();
                    let mut all = 0;
                    let mut left: Vec<u32> = members.copied().collect();
                    while let Some(bits) = left.pop() {
                        match Wait::from_bits(bits).target() {
                            WaitOn::Transfer(one) => all |= 1 << one.0,
                            WaitOn::Group(inner) => {
                                left.extend(plan.groups().get(inner as usize));
                            }
                            WaitOn::Nothing => {}
                        }
                    }
                    all
                }
            }
        });
        let conflicts = closure(plan.len(), |transfer| {
            let earlier = (0..transfer).filter(|&one| conflict(&plan, one, transfer));
            earlier.fold(0, |all, one| all | 1 << one)
        });
        prop_assert_eq!(waits, conflicts);
    }
}

#[test]
fn rows_are_taken_all_or_none() {
    let mut builder = builder();
    let mut rows = Columns {
        chunk: vec![0, 1, 9],
        chunk_count: vec![1; 3],
        src: vec![0, 1, 2],
        dst: vec![1, 2, 3],
        op: vec![0; 3],
        ..Columns::default()
    };
    let error = builder.extend(&rows).unwrap_err();
    assert_eq!(
        error.to_string(),
        "transfer 2: chunk: there is no chunk 9; chunks are 0 to 5"
    );
    assert!(builder.is_empty());
    rows.chunk[2] = 1;
    builder.extend(&rows).unwrap();
    let plan = builder.plan("own", LinkOrder::Ready).unwrap();
    let nothing = Wait::NOTHING.to_bits();
    assert_eq!(plan.wait(), [nothing, nothing, 1]);
}

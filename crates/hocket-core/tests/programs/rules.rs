//! Every kind of fault, each in the smallest program that has it.

use hocket_core::collective::CollectiveKind;
use hocket_core::program::check::{CheckOptions, Code, check};
use hocket_core::program::interpret::{Explored, explore};
use hocket_core::program::{
    Block, Buffer, Line, Mode, Op, Program, ProgramBuilder, Semaphore, Span, Task,
};
use hocket_core::progress::Silent;

use crate::draft::{Draft, DraftStep};

fn at(rank: u32, buffer: Buffer, chunk: u32) -> Span {
    Span::new(rank, buffer, chunk, 1)
}

fn block(rank: u32, send: Option<u32>, recv: Option<u32>) -> Block {
    Block {
        rank,
        send,
        recv,
        channel: 0,
    }
}

/// A broadcast of one chunk from rank 0 to rank 1, out of place, with one scratch chunk each.
fn broadcast(in_flight: u32) -> Draft {
    let task = Task {
        kind: CollectiveKind::Broadcast,
        ranks: 2,
        root: 0,
        chunks: 1,
    };
    let mut builder = ProgramBuilder::new("broadcast", task);
    builder.modes(&[Mode::OutOfPlace]);
    builder.in_flight(in_flight);
    let mut draft = Draft::of(&builder.finish().unwrap());
    draft.sizes = vec![[1, 1, 2]; 2];
    let input = at(0, Buffer::Input, 0);
    draft.blocks = vec![
        (
            block(0, Some(1), None),
            vec![
                DraftStep::new(Op::Send, &[input], &[]),
                DraftStep::new(Op::Copy, &[input], &[at(0, Buffer::Output, 0)]),
            ],
        ),
        (
            block(1, None, Some(0)),
            vec![DraftStep::new(Op::Recv, &[], &[at(1, Buffer::Output, 0)])],
        ),
    ];
    draft
}

fn codes(draft: &Draft) -> Vec<Code> {
    let program = draft.build().expect("it can be built");
    codes_of(&program)
}

fn codes_of(program: &Program) -> Vec<Code> {
    let checked = check(program, &CheckOptions::default(), &mut Silent).unwrap();
    let mut codes: Vec<Code> = checked
        .faults
        .kept()
        .iter()
        .map(|fault| fault.code)
        .collect();
    codes.dedup();
    codes
}

#[test]
fn the_broadcast_is_right() {
    assert_eq!(codes(&broadcast(1)), []);
}

#[test]
fn each_fault_has_its_code() {
    type Change = fn(&mut Draft);
    let cases: [(Code, Change); 14] = [
        (Code::Unknown, |draft| draft.blocks[0].0.send = Some(7)),
        (Code::Unknown, |draft| draft.blocks[0].0.send = Some(0)),
        (Code::Unknown, |draft| draft.blocks[1].0.recv = None),
        (Code::OutOfBounds, |draft| {
            draft.blocks[1].1[0].targets[0] = at(1, Buffer::Output, 1);
        }),
        (Code::BadStep, |draft| draft.blocks[1].1[0].targets.clear()),
        (Code::Shared, |draft| {
            let twice = draft.blocks[1].clone();
            draft.blocks.push(twice);
        }),
        (Code::Unmatched, |draft| draft.blocks[1].1.clear()),
        (Code::Unmatched, |draft| {
            let again = draft.blocks[1].1[0].clone();
            draft.blocks[1].1.push(again);
        }),
        (Code::BadDependency, |draft| {
            draft.blocks[1].1[0].dependency = Some((0, 0))
        }),
        (Code::BadDependency, |draft| {
            draft.blocks[0].1[0].dependency = Some((0, 1))
        }),
        (Code::Race, |draft| {
            let copy = DraftStep::new(
                Op::Copy,
                &[at(0, Buffer::Output, 0)],
                &[at(0, Buffer::Scratch, 0)],
            );
            draft.blocks.insert(1, (block(0, None, None), vec![copy]));
        }),
        (Code::Undefined, |draft| {
            draft.blocks[0].1[1].sources[0] = at(0, Buffer::Scratch, 0);
        }),
        (Code::CountedTwice, |draft| {
            let input = at(0, Buffer::Input, 0);
            draft.blocks[0].1[1] =
                DraftStep::new(Op::Reduce, &[input, input], &[at(0, Buffer::Output, 0)]);
        }),
        (Code::WrongResult, |draft| {
            draft.blocks[1].1[0].targets[0] = at(1, Buffer::Scratch, 0);
        }),
    ];
    for (i, (code, change)) in cases.into_iter().enumerate() {
        let mut draft = broadcast(1);
        change(&mut draft);
        assert_eq!(codes(&draft), [code], "case {i}");
    }
}

#[test]
fn different_data_is_not_summed() {
    let task = Task {
        kind: CollectiveKind::AllReduce,
        ranks: 2,
        root: 0,
        chunks: 2,
    };
    let mut draft = Draft::of(&ProgramBuilder::new("sum", task).finish().unwrap());
    let (first, second) = (at(0, Buffer::Input, 0), at(0, Buffer::Input, 1));
    let sum = DraftStep::new(Op::Reduce, &[first, second], &[second]);
    draft.blocks = vec![(block(0, None, None), vec![sum])];
    assert_eq!(codes(&draft)[0], Code::WrongSum);
}

#[test]
fn exchanges_of_more_than_fits_get_stuck() {
    // Both send all before they receive.
    let task = Task {
        kind: CollectiveKind::AllGather,
        ranks: 2,
        root: 0,
        chunks: 6,
    };
    let mut builder = ProgramBuilder::new("exchange", task);
    builder.in_flight(2);
    let mut draft = Draft::of(&builder.finish().unwrap());
    draft.blocks = (0..2)
        .map(|rank| {
            let (own, other) = (rank * 3, (1 - rank) * 3);
            let steps = vec![
                DraftStep::new(Op::Send, &[Span::new(rank, Buffer::Output, own, 3)], &[]),
                DraftStep::new(Op::Recv, &[], &[Span::new(rank, Buffer::Output, other, 3)]),
            ];
            (block(rank, Some(1 - rank), Some(1 - rank)), steps)
        })
        .collect();
    let program = draft.build().unwrap();
    let checked = check(&program, &CheckOptions::default(), &mut Silent).unwrap();
    assert_eq!(checked.faults.kept()[0].code, Code::Deadlock);
    assert_eq!(
        checked.safe_from,
        Some(2),
        "two messages of at most two chunks"
    );
    assert!(
        checked.faults.kept()[0]
            .detail
            .contains("2 blocks wait for each other")
    );
    let options = CheckOptions {
        chunks_per_message: 2,
    };
    assert!(check(&program, &options, &mut Silent).unwrap().is_right());
    assert_eq!(
        explore(&program, Mode::InPlace, 1, 10_000),
        Ok(Explored::Stuck)
    );
    assert_eq!(
        explore(&program, Mode::InPlace, 2, 10_000),
        Ok(Explored::Right)
    );
}

/// A broadcast by a copy into the other rank's memory, with a signal after it.
fn remote(steps_before_signal: &[Op], steps_after_wait: &[Op]) -> Draft {
    let task = Task {
        kind: CollectiveKind::Broadcast,
        ranks: 2,
        root: 0,
        chunks: 1,
    };
    let mut builder = ProgramBuilder::new("remote", task);
    builder.unsynced();
    let mut draft = Draft::of(&builder.finish().unwrap());
    draft.sizes = vec![[1, 1, 1]; 2];
    draft.lines = vec![Line { from: 0, to: 1 }];
    let put = DraftStep::new(
        Op::Copy,
        &[at(0, Buffer::Output, 0)],
        &[at(1, Buffer::Scratch, 0)],
    );
    let nops = |ops: &[Op]| {
        ops.iter()
            .map(|&op| DraftStep::new(op, &[], &[]))
            .collect::<Vec<_>>()
    };
    let mut first = vec![put];
    first.extend(nops(steps_before_signal));
    first.push(DraftStep::numbered(Op::Signal, &[0]));
    let mut second = vec![DraftStep::numbered(Op::Wait, &[0])];
    second.extend(nops(steps_after_wait));
    second.push(DraftStep::new(
        Op::Copy,
        &[at(1, Buffer::Scratch, 0)],
        &[at(1, Buffer::Output, 0)],
    ));
    draft.blocks = vec![
        (block(0, None, None), first),
        (block(1, None, None), second),
    ];
    draft
}

#[test]
fn threads_of_a_block_need_a_sync_around_signals() {
    assert_eq!(codes(&remote(&[Op::Nop], &[Op::Nop])), []);
    assert_eq!(codes(&remote(&[], &[Op::Nop])), [Code::Race]);
    assert_eq!(codes(&remote(&[Op::Nop], &[])), [Code::Race]);
}

#[test]
fn signals_have_waits_and_one_block_at_each_end() {
    let mut draft = remote(&[Op::Nop], &[Op::Nop]);
    draft.blocks[1].1.remove(0);
    assert_eq!(codes(&draft), [Code::Unmatched]);
    let mut draft = remote(&[Op::Nop], &[Op::Nop]);
    draft.blocks.insert(
        1,
        (
            block(0, None, None),
            vec![DraftStep::numbered(Op::Signal, &[0])],
        ),
    );
    assert!(codes(&draft).contains(&Code::Shared));
}

#[test]
fn packets_need_no_signal() {
    let mut draft = remote(&[], &[]);
    draft.lines.clear();
    for (_, steps) in &mut draft.blocks {
        steps.retain(|step| step.op == Op::Copy);
    }
    let packet = at(1, Buffer::Scratch, 0).packet();
    draft.blocks[0].1[0].targets[0] = packet;
    draft.blocks[1].1[0].sources[0] = packet;
    assert_eq!(codes(&draft), []);
    // A packet that nobody writes, and one that two write.
    let never = draft.blocks[0].1.pop().unwrap();
    assert_eq!(codes(&draft), [Code::Deadlock]);
    draft.blocks[0].1 = vec![never.clone(), never];
    assert_eq!(codes(&draft), [Code::Shared]);
}

#[test]
fn barriers_and_semaphores_order_blocks_of_a_rank() {
    let signal = |draft: &mut Draft, first: DraftStep, second: DraftStep| {
        draft.lines.clear();
        let put = draft.blocks[0].1[0].clone();
        let copy = draft.blocks[1].1.last().unwrap().clone();
        // Both at rank 0: output to scratch, scratch to output again.
        let mut put = put;
        put.targets[0] = at(0, Buffer::Scratch, 0);
        let mut copy = copy;
        copy.sources[0] = at(0, Buffer::Scratch, 0);
        copy.targets[0] = at(1, Buffer::Output, 0);
        let nop = DraftStep::new(Op::Nop, &[], &[]);
        draft.blocks = vec![
            (block(0, None, None), vec![put, nop.clone(), first]),
            (block(0, None, None), vec![second, nop, copy]),
        ];
    };
    let barrier = DraftStep::numbered(Op::Barrier, &[0, 2]);
    let mut draft = remote(&[], &[]);
    signal(&mut draft, barrier.clone(), barrier.clone());
    assert_eq!(codes(&draft), []);
    draft.blocks[1].1[0] = DraftStep::numbered(Op::Barrier, &[1, 2]);
    assert_eq!(codes(&draft), [Code::Unmatched]);

    let mut draft = remote(&[], &[]);
    let release = DraftStep::numbered(Op::Release, &[0]);
    let acquire = DraftStep::numbered(Op::Acquire, &[0]);
    signal(&mut draft, release, acquire);
    draft.semaphores = vec![Semaphore {
        rank: 0,
        initial: 0,
    }];
    assert_eq!(codes(&draft), []);
    draft.semaphores[0].initial = 1; // it may be taken before it is given
    assert_eq!(codes(&draft), [Code::Race]);
    draft.semaphores[0].initial = 0;
    draft.blocks[0].1.pop();
    assert_eq!(codes(&draft), [Code::Deadlock]);
}

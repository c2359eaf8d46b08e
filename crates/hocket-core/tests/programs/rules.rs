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
    let cases: [(Code, Change); 18] = [
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
        // Blocks that only name the peer of another one.
        (Code::Shared, |draft| {
            draft
                .blocks
                .insert(1, (block(0, Some(1), None), Vec::new()));
        }),
        (Code::Shared, |draft| {
            draft.blocks.push((block(1, None, Some(0)), Vec::new()));
        }),
        // A connection that one side alone names.
        (Code::Unmatched, |draft| draft.blocks[0].0.recv = Some(1)),
        (Code::Unmatched, |draft| {
            let mut idle = block(1, Some(0), None);
            idle.channel = 1;
            draft.blocks.push((idle, Vec::new()));
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

/// A broadcast by a copy into the other rank's memory, with a signal before it that the rank has begun, and one after it.
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
    draft.lines = vec![Line { from: 0, to: 1 }, Line { from: 1, to: 0 }];
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
    let mut first = vec![DraftStep::numbered(Op::Wait, &[1])];
    first.extend(nops(&[Op::Nop]));
    first.push(put);
    first.extend(nops(steps_before_signal));
    first.push(DraftStep::numbered(Op::Signal, &[0]));
    let mut second = vec![
        DraftStep::numbered(Op::Signal, &[1]),
        DraftStep::numbered(Op::Wait, &[0]),
    ];
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
fn packets_need_no_signal_but_an_answer() {
    let mut draft = remote(&[], &[]);
    let packet = at(1, Buffer::Scratch, 0).packet();
    let mut put = draft.blocks[0].1[2].clone();
    let mut copy = draft.blocks[1].1.pop().unwrap();
    put.targets[0] = packet;
    copy.sources[0] = packet;
    let nop = DraftStep::new(Op::Nop, &[], &[]);
    draft.lines.remove(0);
    draft.blocks[0].1 = vec![put, DraftStep::numbered(Op::Wait, &[0])];
    draft.blocks[1].1 = vec![copy, nop, DraftStep::numbered(Op::Signal, &[0])];
    assert_eq!(codes(&draft), []);
    let mut unanswered = draft.clone();
    unanswered.blocks[0].1.truncate(1);
    unanswered.blocks[1].1.truncate(1);
    assert_eq!(codes(&unanswered), [Code::NextCall]);
    // A packet that nobody writes, and one that two write.
    let never = draft.blocks[0].1.remove(0);
    assert_eq!(codes(&draft), [Code::Deadlock]);
    draft.blocks[0].1.splice(0..0, [never.clone(), never]);
    assert_eq!(codes(&draft), [Code::Shared]);
}

/// A thread that has waited may signal or release at once; the others of its block need a sync.
#[test]
fn a_thread_that_waited_passes_on_what_it_knows() {
    let nop = DraftStep::new(Op::Nop, &[], &[]);
    let numbered = |op, number: u32| DraftStep::numbered(op, &[number]);
    let relayed = |between: Vec<DraftStep>| {
        let mut draft = remote(&[Op::Nop], &[]);
        draft.semaphores = vec![Semaphore {
            rank: 1,
            initial: 0,
        }];
        let copy = draft.blocks[1].1.pop().unwrap();
        draft.blocks[1].1.extend(between);
        let steps = vec![numbered(Op::Acquire, 0), nop.clone(), copy];
        draft.blocks.push((block(1, None, None), steps));
        draft
    };
    let release = numbered(Op::Release, 0);
    assert_eq!(codes(&relayed(vec![release.clone(), nop.clone()])), []);
    assert_eq!(codes(&relayed(vec![nop.clone(), release.clone()])), []);
    // The thread that releases is not the one that waits.
    let mut second = relayed(vec![DraftStep::numbered(Op::Release, &[1, 0])]);
    second.semaphores.push(Semaphore {
        rank: 1,
        initial: 0,
    });
    second.blocks[2].1.push(numbered(Op::Acquire, 1));
    assert_eq!(codes(&second), [Code::Race]);
    second.blocks[1].1.insert(2, nop.clone());
    assert_eq!(codes(&second), []);
    // What all threads copy is not known to be there when one of them releases.
    let mut copied = relayed(vec![release]);
    let early = copied.blocks[2].1.pop().unwrap();
    copied.blocks[1].1.insert(2, early);
    assert_eq!(codes(&copied), [Code::Race]);
}

#[test]
fn a_call_leaves_semaphores_as_it_found_them() {
    for (op, initial) in [(Op::Acquire, 1), (Op::Release, 0)] {
        let mut draft = remote(&[Op::Nop], &[Op::Nop]);
        draft.semaphores = vec![
            Semaphore {
                rank: 0,
                initial: 0,
            },
            Semaphore { rank: 1, initial },
        ];
        draft.blocks[1].1.push(DraftStep::numbered(op, &[1]));
        let program = draft.build().unwrap();
        let checked = check(&program, &CheckOptions::default(), &mut Silent).unwrap();
        let fault = &checked.faults.kept()[0];
        assert_eq!((fault.code, checked.faults.count()), (Code::NextCall, 1));
        assert!(
            fault.detail.contains("semaphore 0 of rank 1"),
            "{}",
            fault.detail
        );
    }
}

#[test]
fn barriers_and_semaphores_order_blocks_of_a_rank() {
    let signal = |draft: &mut Draft, first: DraftStep, second: DraftStep| {
        let put = draft.blocks[0].1[2].clone();
        let copy = draft.blocks[1].1.last().unwrap().clone();
        // Both at rank 0: output to scratch, scratch to output again.
        let mut put = put;
        put.targets[0] = at(0, Buffer::Scratch, 0);
        let mut copy = copy;
        copy.sources[0] = at(0, Buffer::Scratch, 0);
        copy.targets[0] = at(1, Buffer::Output, 0);
        let nop = DraftStep::new(Op::Nop, &[], &[]);
        let (begun, wait) = (
            DraftStep::numbered(Op::Signal, &[1]),
            DraftStep::numbered(Op::Wait, &[1]),
        );
        let (done, waited) = (
            DraftStep::numbered(Op::Signal, &[0]),
            DraftStep::numbered(Op::Wait, &[0]),
        );
        let copying = vec![second, wait, nop.clone(), copy, nop.clone(), done];
        draft.blocks = vec![
            (block(0, None, None), vec![put, nop, first]),
            (block(0, None, None), copying),
            (block(1, None, None), vec![begun, waited]),
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

//! Programs that are called again and again: the check against all runs of several calls of small ones.

use std::collections::BTreeMap;

use hocket_core::collective::CollectiveKind;
use hocket_core::id::{fit, narrow};
use hocket_core::program::check::{CheckOptions, Code, check};
use hocket_core::program::{
    Block, Buffer, Line, Mode, Op, Program, ProgramBuilder, Semaphore, Span, Task,
};
use hocket_core::progress::Silent;
use hocket_core::units::Seed;

use crate::draft::{Draft, DraftStep};
use crate::every_run::{Outcome, every_run};

fn at(rank: u32, buffer: Buffer, chunk: u32) -> Span {
    Span::new(rank, buffer, chunk, 1)
}

fn copy(from: Span, to: Span) -> DraftStep {
    DraftStep::new(Op::Copy, &[from], &[to])
}

fn numbered(op: Op, number: u32) -> DraftStep {
    DraftStep::numbered(op, &[number])
}

fn drafted(kind: CollectiveKind, mode: Mode, blocks: Vec<(u32, Vec<DraftStep>)>) -> Draft {
    let chunks = if kind == CollectiveKind::AllGather {
        2
    } else {
        1
    };
    let task = Task {
        kind,
        ranks: 2,
        root: 0,
        chunks,
    };
    let mut builder = ProgramBuilder::new("calls", task);
    builder.modes(&[mode]);
    let mut draft = Draft::of(&builder.finish().unwrap());
    draft.sizes.iter_mut().for_each(|sizes| sizes[2] = 2);
    draft.lines = [(0, 1), (1, 0), (0, 1), (1, 0)]
        .map(|(from, to)| Line { from, to })
        .to_vec();
    let none = |rank| Block {
        rank,
        send: None,
        recv: None,
        channel: 0,
    };
    let blocks = blocks.into_iter();
    draft.blocks = blocks.map(|(rank, steps)| (none(rank), steps)).collect();
    draft
}

/// Rank 1 is ready, rank 0 puts, rank 1 waits for it.
fn put() -> Draft {
    use Buffer::{Input, Output};
    let (signal, wait) = (
        |line| numbered(Op::Signal, line),
        |line| numbered(Op::Wait, line),
    );
    let first = vec![
        copy(at(0, Input, 0), at(0, Output, 0)),
        wait(1),
        copy(at(0, Input, 0), at(1, Output, 0)),
        signal(0),
    ];
    let second = vec![signal(1), wait(0)];
    drafted(
        CollectiveKind::Broadcast,
        Mode::OutOfPlace,
        vec![(0, first), (1, second)],
    )
}

/// Rank 0 has begun, rank 1 gets, and rank 0 waits until it has.
fn get() -> Draft {
    use Buffer::{Input, Output};
    let (signal, wait) = (
        |line| numbered(Op::Signal, line),
        |line| numbered(Op::Wait, line),
    );
    let first = vec![signal(0), copy(at(0, Input, 0), at(0, Output, 0)), wait(1)];
    let second = vec![wait(0), copy(at(0, Input, 0), at(1, Output, 0)), signal(1)];
    drafted(
        CollectiveKind::Broadcast,
        Mode::OutOfPlace,
        vec![(0, first), (1, second)],
    )
}

/// Both put what they have into the other's output, which lies over the input.
fn exchange() -> Draft {
    use Buffer::Output;
    let blocks = (0..2).map(|rank| {
        let (out, back) = (rank, 1 - rank);
        let steps = vec![
            numbered(Op::Signal, out),
            numbered(Op::Wait, back),
            copy(at(rank, Output, rank), at(1 - rank, Output, rank)),
            numbered(Op::Signal, out),
            numbered(Op::Wait, back),
        ];
        (rank, steps)
    });
    drafted(CollectiveKind::AllGather, Mode::InPlace, blocks.collect())
}

/// Both put into the other's scratch and add what they got.
fn sum() -> Draft {
    use Buffer::{Input, Scratch};
    let blocks = (0..2).map(|rank| {
        let (out, back) = (rank, 1 - rank);
        let (own, got) = (at(rank, Input, 0), at(rank, Scratch, 0));
        let steps = vec![
            numbered(Op::Signal, out),
            numbered(Op::Wait, back),
            copy(own, at(1 - rank, Scratch, 0)),
            numbered(Op::Signal, out),
            numbered(Op::Wait, back),
            DraftStep::new(Op::Reduce, &[own, got], &[own]),
        ];
        (rank, steps)
    });
    drafted(CollectiveKind::AllReduce, Mode::InPlace, blocks.collect())
}

/// Both put packets into halves of the other's scratch that take turns.
fn packets() -> Draft {
    use Buffer::{Output, Scratch};
    let blocks = (0..2).map(|rank| {
        let (there, here) = (at(1 - rank, Scratch, 0), at(rank, Scratch, 0));
        let steps = vec![
            copy(at(rank, Output, rank), there.packet()),
            copy(here.packet(), at(rank, Output, 1 - rank)),
        ];
        (rank, steps)
    });
    let mut draft = drafted(CollectiveKind::AllGather, Mode::InPlace, blocks.collect());
    draft.alternates = true;
    draft
}

/// Two blocks of rank 1: one waits for what is put into scratch, the other copies it when the first has released it.
fn relayed() -> Draft {
    use Buffer::{Input, Output, Scratch};
    let first = vec![
        copy(at(0, Input, 0), at(0, Output, 0)),
        numbered(Op::Wait, 1),
        copy(at(0, Input, 0), at(1, Scratch, 0)),
        numbered(Op::Signal, 0),
    ];
    let second = vec![
        numbered(Op::Signal, 1),
        numbered(Op::Wait, 0),
        numbered(Op::Release, 0),
    ];
    let third = vec![
        numbered(Op::Acquire, 0),
        copy(at(1, Scratch, 0), at(1, Output, 0)),
    ];
    let blocks = vec![(0, first), (1, second), (1, third)];
    let mut draft = drafted(CollectiveKind::Broadcast, Mode::OutOfPlace, blocks);
    draft.semaphores = vec![Semaphore {
        rank: 1,
        initial: 0,
    }];
    draft
}

/// The same, and the second gives and takes the semaphore once more.
fn given_back() -> Draft {
    let mut draft = relayed();
    let again = [numbered(Op::Release, 0), numbered(Op::Acquire, 0)];
    draft.blocks[2].1.extend(again);
    draft
}

/// Two blocks of rank 1 that meet: one waits for what is put, the other copies it.
fn met() -> Draft {
    let mut draft = relayed();
    let barrier = DraftStep::numbered(Op::Barrier, &[0, 2]);
    draft.semaphores.clear();
    draft.blocks[1].1[2] = barrier.clone();
    draft.blocks[2].1[0] = barrier;
    draft
}

fn originals() -> Vec<Draft> {
    vec![
        put(),
        get(),
        exchange(),
        sum(),
        packets(),
        relayed(),
        given_back(),
        met(),
    ]
}

/// Changes one thing.
fn change(draft: &mut Draft, seed: &mut Seed) {
    let block = seed.below(draft.blocks.len());
    let count = draft.blocks[block].1.len();
    if count == 0 {
        return;
    }
    let step = seed.below(count);
    match seed.below(8) {
        0 => drop(draft.blocks[block].1.remove(step)),
        1 => draft.blocks[block].1.swap(step, (step + 1) % count),
        2 => {
            // A signal, and a wait for it.
            let line = narrow(seed.below(draft.lines.len()));
            for op in [Op::Signal, Op::Wait] {
                let names = |step: &DraftStep| step.op == op && step.numbers == [line];
                let blocks = draft.blocks.iter_mut();
                for (_, steps) in blocks {
                    if let Some(found) = steps.iter().position(names) {
                        steps.remove(found);
                        break;
                    }
                }
            }
        }
        3 => {
            let again = draft.blocks[block].1[step].clone();
            draft.blocks[block].1.push(again);
        }
        4 if !draft.semaphores.is_empty() => {
            draft.semaphores[0].initial = narrow(seed.below(3));
            if seed.below(2) == 0 {
                draft.blocks[2].1.push(numbered(Op::Release, 0));
            }
        }
        5 => draft.alternates ^= true,
        6 => {
            // A handshake at the start or at the end of two blocks.
            let (from, to) = if seed.below(2) == 0 { (0, 1) } else { (1, 0) };
            let line = 2 + narrow(from);
            let end = seed.below(2) == 0;
            for (block, op) in [(from, Op::Signal), (to, Op::Wait)] {
                let steps = &mut draft.blocks[block].1;
                let place = if end { steps.len() } else { 0 };
                steps.insert(place, numbered(op, line));
            }
        }
        _ => {
            let step = &mut draft.blocks[block].1[step];
            let spans = if seed.below(2) == 0 {
                &mut step.sources
            } else {
                &mut step.targets
            };
            if let Some(span) = spans.first_mut() {
                let moved = Span::new(
                    narrow(seed.below(2)),
                    Buffer::Scratch,
                    narrow(seed.below(2)),
                    1,
                );
                *span = if span.is_packet() {
                    moved.packet()
                } else {
                    moved
                };
            }
        }
    }
}

fn found(program: &Program) -> Vec<Code> {
    let checked = check(program, &CheckOptions::default(), &mut Silent).unwrap();
    let kept = checked.faults.kept().iter();
    let mut codes: Vec<Code> = kept.map(|fault| fault.code).collect();
    codes.dedup();
    codes
}

#[test]
fn originals_are_right_in_every_call() {
    for (i, draft) in originals().iter().enumerate() {
        let program = draft.build().unwrap();
        assert_eq!(found(&program), [], "original {i}");
        assert_eq!(
            every_run(&program, 3, 100_000),
            Outcome::Right,
            "original {i}"
        );
    }
}

#[test]
fn the_check_knows_every_call_of_small_programs() {
    let cases = std::env::var("HOCKET_CALL_CASES").map_or(5_000, |text| text.parse().unwrap());
    let originals = originals();
    let mut tally: BTreeMap<String, u32> = BTreeMap::new();
    for case in 0..cases {
        let mut seed = Seed(case);
        let mut draft = originals[seed.below(originals.len())].clone();
        for _ in 0..1 + seed.below(3) {
            change(&mut draft, &mut seed);
        }
        let program = draft.build().unwrap();
        let codes = found(&program);
        // Two writers of a packet, or takers of a count, are refused whatever they do.
        if codes.contains(&Code::Shared) {
            continue;
        }
        let outcome = every_run(&program, 3, 20_000);
        let first = every_run(&program, 1, 20_000);
        if outcome == Outcome::TooMany {
            *tally.entry("too many".to_owned()).or_default() += 1;
            continue;
        }
        let only_sums = |code: &Code| matches!(code, Code::WrongSum | Code::CountedTwice);
        if !codes.is_empty() && codes.iter().all(only_sums) && outcome == Outcome::Right {
            continue;
        }
        assert_eq!(
            codes.is_empty(),
            outcome == Outcome::Right,
            "case {case}: {codes:?}, {outcome:?}"
        );
        let later = codes == [Code::NextCall] && first == Outcome::Right;
        let name = if later {
            "later".to_owned()
        } else {
            format!("{outcome:?}")
        };
        *tally.entry(name).or_default() += 1;
    }
    println!("{tally:?}");
    assert!(tally["Right"] > fit::<u32, _>(cases) / 20, "{tally:?}");
    assert!(tally["later"] > fit::<u32, _>(cases) / 50, "{tally:?}");
}

/// Each of these is right in one call, as the runs of one call say, and wrong when calls follow each other.
#[test]
fn what_is_right_in_one_call_only() {
    let without = |mut draft: Draft, block: usize, step: usize| {
        draft.blocks[block].1.remove(step);
        draft
    };
    let mut released = relayed();
    released.blocks[2].1.push(numbered(Op::Release, 0));
    let mut one_half = packets();
    one_half.alternates = false;
    let cases = [
        // No word that rank 1 has begun, or has read its scratch.
        ("put", without(without(put(), 1, 0), 0, 1)),
        ("exchange", {
            let bare = without(without(exchange(), 0, 0), 0, 0);
            without(without(bare, 1, 0), 1, 0)
        }),
        // The caller of rank 0 has its input again while rank 1 reads it.
        ("get", without(without(get(), 0, 2), 1, 2)),
        ("released", released),
        ("one half", one_half),
    ];
    for (name, draft) in cases {
        let program = draft.build().unwrap();
        assert_eq!(found(&program), [Code::NextCall], "{name}");
        assert_ne!(every_run(&program, 2, 100_000), Outcome::Right, "{name}");
    }
}

/// Packets need a rank to know, before it writes a half again, that the other has read it two calls ago.
#[test]
fn halves_that_take_turns_need_an_answer() {
    let mut draft = packets();
    // Rank 1 sends nothing back.
    draft.like = {
        let task = Task {
            kind: CollectiveKind::Broadcast,
            ..*draft.like.task()
        };
        let mut builder = ProgramBuilder::new("one way", task);
        builder.modes(&[Mode::InPlace]);
        builder.finish().unwrap()
    };
    draft.blocks[0].1.truncate(1);
    draft.blocks[1].1.remove(0);
    draft.blocks[1].1[0].targets[0] = at(1, Buffer::Output, 0);
    let program = draft.build().unwrap();
    assert_eq!(
        every_run(&program, 1, 100_000),
        Outcome::Wrong,
        "one chunk of two alone"
    );
    draft.like = put().like;
    draft.blocks[0].1[0].sources[0] = at(0, Buffer::Input, 0);
    let own = copy(at(0, Buffer::Input, 0), at(0, Buffer::Output, 0));
    draft.blocks[0].1.push(own);
    let program = draft.build().unwrap();
    assert_eq!(found(&program), [Code::NextCall]);
    assert_eq!(every_run(&program, 2, 100_000), Outcome::Right);
    assert_eq!(every_run(&program, 3, 100_000), Outcome::Race);
}

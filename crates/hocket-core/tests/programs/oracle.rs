//! The check against all runs of small programs: right ones, and such in which something was changed.

use std::collections::BTreeMap;

use hocket_core::algorithms::Algorithm;
use hocket_core::collective::CollectiveKind;
use hocket_core::id::narrow;
use hocket_core::program::check::{CheckOptions, Code, check};
use hocket_core::program::interpret::{Explored, explore};
use hocket_core::program::{Block, Buffer, CompileOptions, Mode, Op, Program, Span, compile};
use hocket_core::progress::Silent;
use hocket_core::topology::build::{self, RingWays};
use hocket_core::units::{Bandwidth, Seed, Time};

use crate::compiled::verified;
use crate::draft::{Draft, DraftStep};

/// Small lowered programs of several shapes.
fn originals() -> Vec<Program> {
    let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
    let networks = [
        build::ring(3, gigabyte, Time::ZERO, RingWays::Both).unwrap(),
        build::line(3, gigabyte, Time::ZERO).unwrap(),
        build::fully_connected(2, gigabyte, Time::ZERO).unwrap(),
    ];
    let mut programs = Vec::new();
    for network in &networks {
        for kind in CollectiveKind::NAMED {
            for algorithm in [Algorithm::Ring, Algorithm::Direct, Algorithm::Greedy] {
                let Some(verified) = verified(network, kind, algorithm, 1, 6_000) else {
                    continue;
                };
                for (fuse, in_flight) in [(true, 1), (false, 1), (true, 2)] {
                    let options = CompileOptions {
                        fuse,
                        in_flight,
                        ..CompileOptions::default()
                    };
                    let program = compile(&verified, &options).unwrap();
                    if program.len() <= 10 {
                        programs.push(program);
                    }
                }
            }
        }
    }
    programs
}

fn span(seed: &mut Seed, like: Span, sizes: &[[u32; 3]]) -> Span {
    let buffer = Buffer::ALL[seed.below(3)];
    let size = sizes[like.rank() as usize][buffer as usize];
    let count = like.count();
    if size < count {
        return like;
    }
    let offset = narrow(seed.below((size - count + 1) as usize));
    Span::new(like.rank(), buffer, offset, count)
}

/// Changes one thing in a program.
fn change(draft: &mut Draft, seed: &mut Seed) {
    let block = seed.below(draft.blocks.len());
    let others: Vec<(u32, u32)> = draft
        .blocks
        .iter()
        .enumerate()
        .filter(|(_, (other, _))| other.rank == draft.blocks[block].0.rank)
        .flat_map(|(number, (_, steps))| {
            (0..narrow(steps.len())).map(move |at| (narrow(number), at))
        })
        .collect();
    let sizes = draft.sizes.clone();
    let steps = &mut draft.blocks[block].1;
    if steps.is_empty() {
        return;
    }
    let at = seed.below(steps.len());
    match seed.below(6) {
        0 => steps[at].dependency = None,
        1 => steps[at].dependency = Some(others[seed.below(others.len())]),
        2 => {
            let other = seed.below(steps.len());
            steps.swap(at, other);
        }
        3 => {
            if let Some(source) = steps[at].sources.first_mut() {
                *source = span(seed, *source, &sizes);
            }
        }
        4 => {
            if let Some(target) = steps[at].targets.first_mut() {
                *target = span(seed, *target, &sizes);
            }
        }
        _ => {
            let rank = draft.blocks[block].0.rank;
            let any = Span::new(rank, Buffer::Input, 0, 1);
            let (a, b) = (span(seed, any, &sizes), span(seed, any, &sizes));
            let copy = DraftStep::new(Op::Copy, &[a], &[b]);
            draft.blocks.insert(
                block + 1,
                (
                    Block {
                        rank,
                        send: None,
                        recv: None,
                        channel: 0,
                    },
                    vec![copy],
                ),
            );
            // Blocks behind have other numbers now.
            for (_, steps) in &mut draft.blocks {
                for step in steps {
                    if let Some((other, _)) = &mut step.dependency
                        && *other as usize > block
                    {
                        *other += 1;
                    }
                }
            }
        }
    }
}

#[test]
fn the_check_is_exact_on_small_programs() {
    let cases = std::env::var("HOCKET_PROGRAM_CASES").map_or(1_500, |text| text.parse().unwrap());
    let originals = originals();
    assert!(originals.len() > 20);
    let mut tally: BTreeMap<String, u32> = BTreeMap::new();
    for case in 0..cases {
        let mut seed = Seed(case);
        let original = &originals[seed.below(originals.len())];
        let mut draft = Draft::of(original);
        for _ in 0..seed.below(5) {
            change(&mut draft, &mut seed);
        }
        let Ok(program) = draft.build() else { continue };
        compare(&program, case, &mut tally);
    }
    println!("{tally:?}");
    assert!(
        tally["right"] > 50 && tally["Race"] > 10 && tally["Stuck"] > 10,
        "{tally:?}"
    );
}

fn compare(program: &Program, case: u64, tally: &mut BTreeMap<String, u32>) {
    let checked = check(program, &CheckOptions::default(), &mut Silent).unwrap();
    let explored = match explore(program, program.modes()[0], 1, 6_000) {
        Err(_) => return, // does not fit together; both say so
        Ok(Explored::TooMany) => {
            *tally.entry("too many".to_owned()).or_default() += 1;
            return;
        }
        Ok(explored) => explored,
    };
    let found: Vec<Code> = checked
        .faults
        .kept()
        .iter()
        .map(|fault| fault.code)
        .collect();
    // A sum that makes no sense is a fault though nobody may use it.
    let only_sums = !found.is_empty()
        && found
            .iter()
            .all(|code| matches!(code, Code::WrongSum | Code::CountedTwice));
    if only_sums && explored == Explored::Right {
        *tally.entry("unused sum".to_owned()).or_default() += 1;
        return;
    }
    assert_eq!(
        checked.is_right(),
        explored == Explored::Right,
        "case {case}: {explored:?}, {:?}",
        checked.faults.kept()
    );
    if explored == Explored::Stuck {
        assert_eq!(found, [Code::Deadlock], "case {case}");
    }
    let name = if checked.is_right() {
        "right".to_owned()
    } else {
        format!("{explored:?}")
    };
    *tally.entry(name).or_default() += 1;
}

#[test]
fn modes_matter() {
    let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
    let network = build::fully_connected(2, gigabyte, Time::ZERO).unwrap();
    let kind = CollectiveKind::AllGather;
    let verified = verified(&network, kind, Algorithm::Direct, 1, 2_000).unwrap();
    let program = compile(&verified, &CompileOptions::default()).unwrap();
    assert_eq!(
        explore(&program, Mode::InPlace, 1, 1_000),
        Ok(Explored::Right)
    );
    assert_eq!(
        explore(&program, Mode::OutOfPlace, 1, 1_000),
        Ok(Explored::Undefined)
    );
}

//! The true optimum of tiny networks, and a replay that looks at every moment.

use std::collections::BTreeSet;

use super::super::timetable::timing;
use super::*;
use crate::id::narrow;

/// Slots of the best timetable there is, where each send takes one: all states after each slot.
fn optimum(problem: &Problem) -> u64 {
    let spread = &problem.work().copies.spread;
    let (npus, chunks) = (spread.npus, spread.chunks());
    let bit = |npu: usize, chunk: usize| 1u64 << (npu * chunks + chunk);
    let mut start = 0;
    let mut goal = 0;
    let missing = spread.missing();
    for (chunk, &(npu, _)) in spread.holders.iter().enumerate() {
        start |= bit(npu as usize, chunk);
    }
    for npu in 0..npus {
        for chunk in (0..chunks).filter(|&chunk| missing.get(npu, chunk)) {
            goal |= bit(npu, chunk);
        }
    }
    let mut states = BTreeSet::from([start]);
    for slot in 0.. {
        if states.iter().any(|state| state & goal == goal) {
            return slot;
        }
        let mut next = BTreeSet::new();
        for &state in &states {
            let mut reached = BTreeSet::from([state]);
            for edge in problem.network().edges() {
                let (src, dst) = (edge.src.index(), edge.dst.index());
                let sent: Vec<u64> = (0..chunks)
                    .filter(|&c| state & bit(src, c) != 0 && state & bit(dst, c) == 0)
                    .map(|c| bit(dst, c))
                    .collect();
                if !sent.is_empty() {
                    let all = |state: &u64| sent.iter().map(|&bit| state | bit).collect::<Vec<_>>();
                    reached = reached.iter().flat_map(all).collect();
                }
            }
            next.extend(reached);
        }
        states = next;
    }
    unreachable!("slots are without end")
}

#[test]
fn least_is_no_more_and_greedy_no_less_than_the_optimum() {
    let networks = [
        undirected(2, &[(0, 1)]),
        undirected(3, &[(0, 1), (1, 2)]),
        undirected(3, &[(0, 1), (1, 2), (2, 0)]),
        undirected(3, &[(0, 1), (0, 1), (1, 2)]),
        undirected(4, &[(0, 1), (1, 2), (2, 3)]),
        undirected(4, &[(0, 1), (0, 2), (0, 3)]),
        undirected(4, &[(0, 1), (1, 2), (2, 3), (3, 0)]),
        build::ring(4, gb_per_s(1), Time::ZERO, build::RingWays::One).expect("a ring"),
    ];
    for (i, topology) in networks.iter().enumerate() {
        let rooted = [
            CollectiveKind::Broadcast,
            CollectiveKind::Gather,
            CollectiveKind::Scatter,
        ];
        for kind in rooted.into_iter().chain([CollectiveKind::AllGather]) {
            let root = kind.is_rooted().then_some(1);
            let problem = problem(topology, kind, 1_000, root);
            let (least, end) = (problem.least(), greedy(&problem).end());
            let best = optimum(&problem) * 1_000_000;
            assert!(
                least <= best && best <= end,
                "{i} {kind}: {least} {best} {end}"
            );
            assert_eq!(end, best, "{i} {kind}: so small a network is no challenge");
        }
    }
}

/// Whether sends, in any order, carry a spread out: by the definition, send against send.
fn is_right(problem: &Problem, sends: &[Send]) -> bool {
    let spread = &problem.work().copies.spread;
    let (edges, timings) = (problem.network().edges(), problem.copy_times());
    let held_from = |npu: u32, chunk: u32| -> Option<u64> {
        let (holder, from) = spread.holders[chunk as usize];
        if holder == npu {
            return Some(from);
        }
        let comes = |send: &&Send| send.chunk == chunk && edges[send.edge as usize].dst.0 == npu;
        let first = sends.iter().filter(comes);
        first
            .map(|send| send.start + timing(timings, spread, send).delay)
            .min()
    };
    let is_sound = |(i, send): (usize, &Send)| {
        let ends = edges[send.edge as usize];
        let end = send.start + timing(timings, spread, send).occupied;
        let clashes = |other: &Send| {
            let other_end = other.start + timing(timings, spread, other).occupied;
            other.edge == send.edge && other.start < end && send.start < other_end
        };
        let repeats =
            |other: &Send| other.chunk == send.chunk && edges[other.edge as usize].dst == ends.dst;
        let others = sends[..i].iter().chain(&sends[i + 1..]);
        held_from(ends.src.0, send.chunk).is_some_and(|from| from <= send.start)
            && spread.holders[send.chunk as usize].0 != ends.dst.0
            && !others.clone().any(|other| clashes(other) || repeats(other))
    };
    let missing = spread.missing();
    let all_come = (0..spread.npus).all(|npu| {
        let mut wanted = (0..spread.chunks()).filter(|&chunk| missing.get(npu, chunk));
        wanted.all(|chunk| held_from(narrow(npu), narrow(chunk)).is_some())
    });
    all_come && sends.iter().enumerate().all(is_sound)
}

#[test]
fn a_check_says_what_a_replay_says() {
    let mut seed = Seed(3);
    let mut verdicts = [0; 2];
    let latency = Time::from_ns(700);
    let topologies = [
        build::mesh(&[3, 2], gb_per_s(1), latency).expect("a mesh"),
        build::torus(&[4], gb_per_s(1), latency).expect("a ring"),
        undirected(3, &[(0, 1), (0, 1), (1, 2)]),
    ];
    for topology in &topologies {
        for kind in [
            CollectiveKind::AllGather,
            CollectiveKind::Gather,
            CollectiveKind::AllToAll,
        ] {
            let root = kind.is_rooted().then_some(0);
            let problem = problem(topology, kind, 1_000, root);
            let spread = &problem.work().copies.spread;
            let valid = greedy(&problem).copies.sends;
            assert!(is_right(&problem, &valid));
            for _ in 0..300 {
                let mut sends = valid.clone();
                let (i, j) = (seed.below(sends.len()), seed.below(sends.len()));
                match seed.below(6) {
                    0 => sends[i].start = seed.below(8_000_000) as u64,
                    1 => sends[i].start = sends[i].start.saturating_add_signed([-1, 1][j % 2]),
                    2 => sends[i].chunk = narrow(seed.below(spread.chunks())),
                    3 => drop(sends.remove(i)),
                    4 => sends.push(Send {
                        start: sends[j].start,
                        ..sends[i]
                    }),
                    _ => sends.iter_mut().skip(i).for_each(|send| send.start += 5),
                }
                let is_right = is_right(&problem, &sends);
                verdicts[usize::from(is_right)] += 1;
                let found = problem.timetables(Vec::new(), sends.clone());
                assert_eq!(found.is_ok(), is_right, "{kind}: {found:?} {sends:?}");
            }
        }
    }
    assert!(verdicts.iter().all(|&count| count > 100), "{verdicts:?}");
}

/// What is copied after it was summed waits for the sum, and links carry one thing at a time.
#[test]
fn copies_wait_for_their_sums() {
    let topology = undirected(2, &[(0, 1)]);
    let problem = problem(&topology, CollectiveKind::AllReduce, 1_000, None);
    let times = greedy(&problem);
    let (sums, copies) = (times.sums.sends, times.copies.sends);
    assert!(problem.timetables(sums.clone(), copies.clone()).is_ok());
    let early = copies.iter().map(|send| Send { start: 0, ..*send });
    assert!(problem.timetables(sums.clone(), early.collect()).is_err());
    let huge = copies.iter().map(|send| Send {
        start: u64::MAX,
        ..*send
    });
    assert!(problem.timetables(sums, huge.collect()).is_err());
}

use std::collections::HashSet;

use strum::VariantArray as _;

use super::*;
use crate::collective::{Collective, CollectiveKind};
use crate::id::narrow;
use crate::plan::{Chunks, Columns, Lists, Op, PlanBuilder, Transfer, Wait};
use crate::progress::Silent;
use crate::topology::TopologyBuilder;
use crate::units::{Bandwidth, Time};

mod named;
mod switches;
mod watched;

const ALL_REDUCE: CollectiveKind = CollectiveKind::AllReduce;

fn bandwidth() -> Bandwidth {
    Bandwidth::from_bytes_per_second(1_000_000_000).unwrap()
}

/// NPUs in a row, links both ways between neighbours.
fn line(n: usize) -> Arc<Topology> {
    let mut builder = TopologyBuilder::new("line");
    builder.npus(n);
    for i in 1..n {
        let (a, b) = (NpuId::from(i - 1).device(), NpuId::from(i).device());
        builder.both_ways(a, b, bandwidth(), Time::ZERO);
    }
    Arc::new(builder.finish().unwrap())
}

fn builder(kind: CollectiveKind, n: usize, pieces: usize) -> PlanBuilder {
    let npus = (0..n).map(NpuId::from).collect();
    let collective = Collective::new(kind, npus, 1000, None).unwrap();
    let chunks = Chunks::split(&collective.demands(), pieces).unwrap();
    PlanBuilder::new("by hand", &collective, chunks)
}

fn send(b: &mut PlanBuilder, chunk: (u32, u32), ends: (u32, u32), op: Op, wait: Wait) -> Wait {
    Wait::on(b.send(chunk, NpuId(ends.0), NpuId(ends.1), op, wait))
}

fn codes(builder: PlanBuilder, n: usize) -> Vec<Code> {
    codes_of(builder.finish(), n)
}

fn codes_of(plan: Plan, n: usize) -> Vec<Code> {
    match verify(Arc::new(plan), line(n), &mut Silent) {
        Ok(_) => Vec::new(),
        Err(VerifyError::Wrong(report)) => {
            assert!(report.to_string().lines().count() == 1, "{report}");
            report
                .violations()
                .iter()
                .map(|violation| violation.code)
                .collect()
        }
        Err(other) => panic!("{other}"),
    }
}

/// A chain reduction to NPU 0 and a chain broadcast back.
fn chain_all_reduce(n: u32) -> PlanBuilder {
    let mut b = builder(ALL_REDUCE, n as usize, 1);
    let mut wait = Wait::NOTHING;
    for i in (1..n).rev() {
        wait = send(&mut b, (0, 1), (i, i - 1), Op::Reduce, wait);
    }
    for i in 1..n {
        wait = send(&mut b, (0, 1), (i - 1, i), Op::Copy, wait);
    }
    b
}

/// A violation without what its transfer sends, which is there if it has one.
fn unsent(violation: &Violation) -> String {
    let text = violation.to_string();
    match text.rsplit_once("; transfer ") {
        Some((told, _)) => told.to_owned(),
        None => {
            assert_eq!(violation.transfer, None, "{text}");
            text
        }
    }
}

#[test]
fn a_right_plan_is_proved() {
    assert_eq!(codes(chain_all_reduce(5), 5), []);
}

#[test]
fn every_code_is_found() {
    let mut found = HashSet::new();
    let nothing = Wait::NOTHING;
    let mut expect = |code: Code, plan: PlanBuilder, n: usize| {
        let codes = codes(plan, n);
        assert!(codes.contains(&code), "{code}: {codes:?}");
        found.insert(code);
    };

    let mut b = builder(ALL_REDUCE, 2, 1);
    send(&mut b, (0, 1), (0, 7), Op::Copy, nothing);
    expect(Code::UnknownNpu, b, 2);
    let mut b = builder(ALL_REDUCE, 2, 1);
    send(&mut b, (0, 2), (0, 1), Op::Copy, nothing);
    expect(Code::UnknownChunk, b, 2);
    let mut b = builder(ALL_REDUCE, 2, 1);
    send(&mut b, (u32::MAX, 2), (0, 1), Op::Copy, nothing);
    expect(Code::UnknownChunk, b, 2);
    let mut b = builder(ALL_REDUCE, 2, 1);
    send(&mut b, (0, 0), (0, 1), Op::Copy, nothing);
    expect(Code::UnknownChunk, b, 2);
    let mut b = builder(ALL_REDUCE, 2, 1);
    send(&mut b, (0, 1), (1, 1), Op::Copy, nothing);
    expect(Code::SelfTransfer, b, 2);

    // NPU 1 passes its sum on without waiting for NPU 2's part of it.
    let mut b = builder(CollectiveKind::Reduce, 3, 1);
    send(&mut b, (0, 1), (2, 1), Op::Reduce, nothing);
    send(&mut b, (0, 1), (1, 0), Op::Reduce, nothing);
    expect(Code::UnorderedRead, b, 3);

    // A reduction arrives while its target is being sent.
    let mut b = builder(CollectiveKind::Reduce, 3, 1);
    send(&mut b, (0, 1), (1, 0), Op::Reduce, nothing);
    send(&mut b, (0, 1), (2, 1), Op::Reduce, nothing);
    expect(Code::UnorderedWrite, b, 3);

    let mut b = builder(CollectiveKind::Broadcast, 3, 1);
    send(&mut b, (0, 1), (1, 2), Op::Copy, nothing);
    expect(Code::SentBeforeHeld, b, 3);
    let mut b = builder(CollectiveKind::Broadcast, 2, 1);
    send(&mut b, (0, 1), (0, 1), Op::Reduce, nothing);
    expect(Code::ReduceIntoNothing, b, 2);
    let mut b = builder(CollectiveKind::Broadcast, 2, 1);
    let first = send(&mut b, (0, 1), (0, 1), Op::Copy, nothing);
    send(&mut b, (0, 1), (0, 1), Op::Copy, first);
    expect(Code::DeliveredTwice, b, 2);
    let mut b = builder(CollectiveKind::Reduce, 2, 1);
    let first = send(&mut b, (0, 1), (1, 0), Op::Reduce, nothing);
    send(&mut b, (0, 1), (1, 0), Op::Reduce, first);
    expect(Code::CountedTwice, b, 2);
    let mut b = builder(CollectiveKind::Broadcast, 2, 1);
    let first = send(&mut b, (0, 1), (0, 1), Op::Copy, nothing);
    send(&mut b, (0, 1), (0, 1), Op::Reduce, first);
    expect(Code::CountedTwice, b, 2);
    expect(Code::Missing, builder(CollectiveKind::Broadcast, 2, 1), 2);

    let mut b = builder(CollectiveKind::Broadcast, 2, 1);
    send(&mut b, (0, 1), (0, 1), Op::Copy, Wait::on(TransferId(0)));
    expect(Code::WaitCycle, b, 2);

    let mut b = builder(CollectiveKind::Broadcast, 3, 1);
    let path = b.path(&[crate::id::LinkId(0)]);
    b.push(Transfer {
        chunk: ChunkId(0),
        count: 1,
        src: NpuId(0),
        dst: NpuId(2),
        op: Op::Copy,
        wait: nothing,
        path: Some(path),
    });
    expect(Code::BrokenPath, b, 3);

    let npus = vec![NpuId(0), NpuId(1)];
    let collective = Collective::new(ALL_REDUCE, npus, 1000, None).unwrap();
    let mut chunks = Chunks::with_capacity(1);
    chunks.push(0, 999);
    expect(
        Code::BytesLost,
        PlanBuilder::new("by hand", &collective, chunks),
        2,
    );

    let mut apart = TopologyBuilder::new("apart");
    apart.npus(2);
    let mut b = builder(CollectiveKind::Broadcast, 2, 1);
    send(&mut b, (0, 1), (0, 1), Op::Copy, nothing);
    let apart = Arc::new(apart.finish().unwrap());
    match verify(Arc::new(b.finish()), apart, &mut Silent) {
        Err(VerifyError::Wrong(report)) => {
            found.insert(report.violations()[0].code);
        }
        other => panic!("{other:?}"),
    }

    // A switch that only forwards is no end of transfers.
    let mut star = TopologyBuilder::new("star");
    star.npus(2);
    star.switch("core", None);
    let mut b = builder(CollectiveKind::Broadcast, 2, 1);
    send(&mut b, (0, 1), (0, 2), Op::Copy, nothing);
    match verify(
        Arc::new(b.finish()),
        Arc::new(star.finish().unwrap()),
        &mut Silent,
    ) {
        Err(VerifyError::Wrong(report)) => {
            found.insert(report.violations()[0].code);
        }
        other => panic!("{other:?}"),
    }

    let missed: Vec<Code> = Code::VARIANTS
        .iter()
        .copied()
        .filter(|code| !found.contains(code))
        .collect();
    assert_eq!(missed, [], "every code is provoked above");
}

#[test]
fn a_lost_contribution_is_named() {
    let mut b = builder(CollectiveKind::Reduce, 3, 1);
    let first = send(&mut b, (0, 1), (2, 1), Op::Copy, Wait::NOTHING);
    send(&mut b, (0, 1), (1, 0), Op::Reduce, first);
    let Err(VerifyError::Wrong(report)) = verify(Arc::new(b.finish()), line(3), &mut Silent) else {
        panic!("NPU 1's contribution was overwritten");
    };
    let violation = &report.violations()[0];
    assert_eq!(violation.code, Code::Missing);
    assert_eq!(violation.npu, Some(NpuId(0)));
    assert!(
        violation
            .detail
            .contains("the contributions of NPU 1; transfer "),
        "{violation}"
    );
}

#[test]
fn ranges_of_different_origin_are_cut_where_they_must() {
    // NPU 0 gathers from 1 and 2 and passes both blocks on in one transfer; NPU 3 knew neither.
    let npus = (0..4).map(NpuId).collect();
    let collective = Collective::new(CollectiveKind::Gather, npus, 1000, None).unwrap();
    let gathered = |missing: bool| {
        let chunks = Chunks::split(&collective.demands(), 1).unwrap();
        let mut b = PlanBuilder::new("by hand", &collective, chunks);
        let three = send(&mut b, (3, 1), (3, 2), Op::Copy, Wait::NOTHING);
        let both = if missing { (1, 2) } else { (2, 2) };
        let two = send(&mut b, both, (2, 1), Op::Copy, three);
        send(&mut b, (1, 3), (1, 0), Op::Copy, two);
        codes(b, 4)
    };
    assert_eq!(gathered(false), []);
    assert!(gathered(true).contains(&Code::SentBeforeHeld));
}

#[test]
fn values_finer_than_the_receivers_segments_are_replayed_again() {
    // NPU 1 reduces the halves of NPU 0's chunks at different times; NPU 2 takes both at once.
    let mut b = builder(CollectiveKind::AllReduce, 3, 2);
    let left = send(&mut b, (0, 1), (0, 1), Op::Reduce, Wait::NOTHING);
    let right = send(&mut b, (1, 1), (2, 1), Op::Reduce, Wait::NOTHING);
    let left_too = send(&mut b, (0, 1), (2, 1), Op::Reduce, Wait::NOTHING);
    let both = b.all_of(&[left, right, left_too]);
    // Chunk 1 lacks NPU 0: NPU 2 gets {0,1,2} for chunk 0 and {1,2} for chunk 1.
    let passed = send(&mut b, (0, 2), (1, 2), Op::Copy, both);
    send(&mut b, (0, 2), (2, 0), Op::Copy, passed);
    let codes = codes(b, 3);
    assert!(codes.iter().all(|&code| code == Code::Missing), "{codes:?}");
    assert_eq!(codes.len(), 3, "chunk 1 is wrong at every NPU");
}

#[test]
fn waits_may_point_forward() {
    let plan = chain_all_reduce(4).finish();
    let n = narrow(plan.len());
    let flip = |bits: &u32| {
        if *bits == u32::MAX {
            *bits
        } else {
            n - 1 - *bits
        }
    };
    let reversed = |column: &[u32]| column.iter().rev().copied().collect::<Vec<u32>>();
    let columns = Columns {
        chunk: reversed(plan.chunk()),
        chunk_count: reversed(plan.chunk_count()),
        src: reversed(plan.src()),
        dst: reversed(plan.dst()),
        op: plan.op().iter().rev().copied().collect(),
        wait: plan.wait().iter().rev().map(flip).collect(),
        path: reversed(plan.path()),
    };
    let collective = plan.collective().clone();
    let (chunks, none) = (plan.chunks().clone(), Lists::default());
    let plan = Plan::from_columns("x", collective, chunks, columns, none, Lists::default());
    assert_eq!(codes_of(plan.unwrap(), 4), []);
}

#[test]
fn two_sends_of_one_value_are_both_over_before_it_is_overwritten() {
    // NPU 3 takes no part, but gets a copy too; then the sum comes back over NPU 0's own vector.
    let all_reduce = |ordered: bool| {
        let mut b = builder(ALL_REDUCE, 3, 1);
        let aside = send(&mut b, (0, 1), (0, 3), Op::Copy, Wait::NOTHING);
        let wait = if ordered { aside } else { Wait::NOTHING };
        let first = send(&mut b, (0, 1), (0, 1), Op::Reduce, wait);
        let second = send(&mut b, (0, 1), (1, 2), Op::Reduce, first);
        let back = send(&mut b, (0, 1), (2, 1), Op::Copy, second);
        send(&mut b, (0, 1), (1, 0), Op::Copy, back);
        codes(b, 4)
    };
    assert_eq!(all_reduce(true), []);
    assert_eq!(all_reduce(false), [Code::UnorderedWrite]);
}

#[test]
fn a_path_that_no_transfer_takes_must_exist_too() {
    let mut b = chain_all_reduce(3);
    b.path(&[crate::id::LinkId(99)]);
    assert_eq!(codes(b, 3), [Code::BrokenPath]);
}

/// A reduction to NPU 0 of which a read by NPU 4, aside, is the only thing that a sum may disturb.
fn read_between_sums(first: Wait, second: Wait) -> Vec<Code> {
    let mut b = builder(CollectiveKind::Reduce, 3, 1);
    send(&mut b, (0, 1), (0, 4), Op::Copy, Wait::NOTHING);
    send(&mut b, (0, 1), (1, 0), Op::Reduce, first);
    send(&mut b, (0, 1), (2, 0), Op::Reduce, second);
    codes(b, 5)
}

#[test]
fn every_sum_after_a_read_waits_for_it() {
    let (read, nothing) = (Wait::on(TransferId(0)), Wait::NOTHING);
    let wrong = [Code::UnorderedWrite];
    assert_eq!(read_between_sums(read, read), []);
    assert_eq!(read_between_sums(read, Wait::on(TransferId(1))), []);
    assert_eq!(read_between_sums(read, nothing), wrong);
    assert_eq!(read_between_sums(nothing, read), wrong);
    assert_eq!(read_between_sums(nothing, nothing), wrong.repeat(2));
}

#[test]
fn nested_empty_groups_cost_nothing() {
    const DEPTH: u32 = 60;
    let mut b = builder(CollectiveKind::Broadcast, 3, 1);
    let first = send(&mut b, (0, 1), (0, 1), Op::Copy, Wait::NOTHING);
    let mut groups = vec![vec![]];
    for depth in 1..=DEPTH {
        groups.push(vec![Wait::group(depth - 1).to_bits(); 2]);
    }
    groups.push(vec![Wait::group(DEPTH).to_bits(), first.to_bits()]);
    groups.push(vec![first.to_bits(), Wait::group(DEPTH).to_bits()]);
    for last in [DEPTH, DEPTH + 1, DEPTH + 2] {
        let mut b = b.clone();
        send(&mut b, (0, 1), (1, 2), Op::Copy, Wait::group(last));
        let plan = b.finish();
        let mut lists = Lists::default();
        for members in &groups {
            lists.push(members);
        }
        let columns = plan.columns();
        let (collective, chunks) = (plan.collective().clone(), plan.chunks().clone());
        let none = Lists::default();
        let plan = Plan::from_columns("nested", collective, chunks, columns, lists, none);
        let expected: &[Code] = match last {
            DEPTH => &[Code::UnorderedRead],
            _ => &[],
        };
        assert_eq!(codes_of(plan.expect("columns"), 3), expected);
    }
}

#[test]
fn the_replay_ends_when_a_report_is_full() {
    const SENDS: usize = 1000;
    let mut b = builder(CollectiveKind::Broadcast, 2, 1);
    for _ in 0..SENDS {
        send(&mut b, (0, 1), (0, 1), Op::Copy, Wait::NOTHING);
    }
    let Err(VerifyError::Wrong(report)) = verify(Arc::new(b.finish()), line(2), &mut Silent) else {
        panic!("delivered a thousand times");
    };
    assert_eq!(report.violations().len(), VerifyReport::KEPT);
    assert!(report.is_full() && report.count() < SENDS as u64);
    assert!(report.to_string().starts_with("the plan is wrong, 10"));
    assert!(
        report
            .to_string()
            .contains(" or more violations; the first: ")
    );
}

#[test]
fn sums_that_are_ordered_are_reproducible() {
    let reduce = |ordered: bool| {
        let mut b = builder(CollectiveKind::Reduce, 3, 1);
        let first = send(&mut b, (0, 1), (1, 0), Op::Reduce, Wait::NOTHING);
        let wait = if ordered { first } else { Wait::NOTHING };
        send(&mut b, (0, 1), (2, 0), Op::Reduce, wait);
        let proof = verify(Arc::new(b.finish()), line(3), &mut Silent);
        proof.expect("right").reproducible()
    };
    assert!(reduce(true) && !reduce(false));
    let proof = verify(Arc::new(chain_all_reduce(5).finish()), line(5), &mut Silent);
    assert!(proof.expect("right").reproducible());
}

/// What the sums of [`busy`] wait for: all of them for all readers, one way or another.
#[derive(Clone, Copy, Debug)]
enum Waits {
    OneGroup,
    GroupAndOneMore,
    Barrier,
    BarrierAndOneMore,
    Chain,
    ChainBackwards,
    BarriersOfOneGroup,
}

/// One busy place: `k` NPUs read it, then `k` others add to it.
fn busy(k: usize, waits: Waits) -> Plan {
    let mut b = builder(CollectiveKind::Reduce, k + 1, 1);
    let aside = narrow(k + 1);
    let read = |b: &mut PlanBuilder, i: usize| {
        send(b, (0, 1), (0, aside + narrow(i)), Op::Copy, Wait::NOTHING)
    };
    let readers: Vec<Wait> = (0..k).map(|i| read(&mut b, i)).collect();
    let all = b.all_of(&readers);
    // Transfers that only order others: a chain of copies beside the busy place.
    let mut at = aside + narrow(k);
    let mut barrier = |b: &mut PlanBuilder, wait: Wait| {
        at += 1;
        send(b, (0, 1), (aside, at), Op::Copy, wait)
    };
    let first = barrier(&mut b, all);
    let mut chain = vec![first];
    for _ in 1..k {
        let next = match waits {
            Waits::Chain | Waits::ChainBackwards => barrier(&mut b, chain[chain.len() - 1]),
            Waits::BarriersOfOneGroup => {
                let own = b.all_of(&[all, readers[chain.len()]]);
                barrier(&mut b, own)
            }
            _ => barrier(&mut b, readers[0]),
        };
        chain.push(next);
    }
    for i in 0..k {
        let wait = match waits {
            Waits::OneGroup => all,
            Waits::GroupAndOneMore => b.all_of(&[all, chain[i]]),
            Waits::Barrier => first,
            Waits::BarrierAndOneMore => b.all_of(&[first, chain[i]]),
            Waits::Chain | Waits::BarriersOfOneGroup => chain[i],
            Waits::ChainBackwards => chain[k - 1 - i],
        };
        send(&mut b, (0, 1), (1 + narrow(i), 0), Op::Reduce, wait);
    }
    b.finish()
}

#[test]
fn shared_groups_barriers_and_chains_are_checked_in_linear_time() {
    use super::structure;
    for waits in [
        Waits::OneGroup,
        Waits::GroupAndOneMore,
        Waits::Barrier,
        Waits::BarrierAndOneMore,
        Waits::Chain,
        Waits::ChainBackwards,
        Waits::BarriersOfOneGroup,
    ] {
        let work = |k: usize| {
            let plan = busy(k, waits);
            let order =
                structure::wait_order(&plan, &mut VerifyReport::default()).expect("no cycle");
            let starts = structure::components(&plan);
            let (records, _) = structure::records(&plan, &starts, &order);
            let topology = line(3 * k + 3);
            let mut replay = replay::Replay::new(&plan, &topology, &order);
            replay.component(0, 1, &records);
            assert!(replay.report.is_empty(), "{waits:?}: {}", replay.report);
            replay.ordering.work()
        };
        let (small, large) = (work(1000), work(4000));
        assert!(
            large <= 5 * small + 1000,
            "{waits:?}: {small} for 1,000, {large} for 4,000"
        );
    }
}

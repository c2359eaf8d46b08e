//! Plans made by hand, of which it is known what is right: a check of the oracle itself.

use std::sync::Arc;

use hocket_core::collective::{Collective, Demand, NpuSet};
use hocket_core::id::{ChunkId, NpuId, TransferId};
use hocket_core::plan::{Chunks, Op, Plan, PlanBuilder, Transfer, Wait};

use crate::judges::{Judged, star};
use crate::oracle::{Fault, judge, judge_in_full, reproducible};
use crate::random::{SMALL, case};

/// Sender, receiver, op, and what it waits for.
type Line<'a> = (u32, u32, Op, &'a [u32]);

/// A plan of one chunk: the sum of `holders`, or the data that all of them hold, for `wanted`.
fn plan(reduced: bool, holders: &[u32], wanted: &[u32], lines: &[Line]) -> Arc<Plan> {
    let set = |npus: &[u32]| NpuSet::of(npus.iter().map(|&npu| NpuId(npu)));
    let demand = Demand {
        bytes: 8,
        reduced,
        holders: set(holders),
        wanted: set(wanted),
    };
    let chunks = Chunks::split(std::slice::from_ref(&demand), 1).expect("a chunk");
    let npus = (0..5).map(NpuId).collect();
    let collective = Collective::custom(npus, vec![demand]).expect("a collective");
    let mut plan = PlanBuilder::new("by hand", &collective, chunks);
    for &(src, dst, op, after) in lines {
        let members: Vec<Wait> = after.iter().map(|&t| Wait::on(TransferId(t))).collect();
        let wait = plan.all_of(&members);
        plan.push(Transfer {
            chunk: ChunkId(0),
            count: 1,
            src: NpuId(src),
            dst: NpuId(dst),
            op,
            wait,
            path: None,
        });
    }
    Arc::new(plan.finish())
}

use Op::{Copy, Reduce};

#[test]
fn two_sums_after_a_read() {
    let lines = |last: &'static [u32]| {
        plan(
            true,
            &[0, 1, 2],
            &[0],
            &[
                (0, 3, Copy, &[]),
                (1, 0, Reduce, &[0]),
                (2, 0, Reduce, last),
            ],
        )
    };
    let right = lines(&[0]);
    assert!(judge(&right).faults.right() && !reproducible(&right));
    assert!(reproducible(&lines(&[1])));
    // What is read may be torn; that nobody wants it does not make the plan right.
    let faults = judge(&lines(&[])).faults;
    assert!(faults.has(Fault::Overlap) && faults.has(Fault::Differs) && !faults.right());
    assert!(faults.right_by_outcome());
}

#[test]
fn faults_have_names() {
    let faults = |reduced, wanted: &[u32], lines: &[Line]| {
        judge(&plan(reduced, &[0, 1], wanted, lines)).faults
    };
    let only = |faults: crate::oracle::Faults, fault| {
        assert!(
            faults.has(fault) && faults.without(fault).right(),
            "{fault:?}: {faults:?}"
        );
    };
    only(faults(true, &[0], &[]), Fault::Missing);
    only(
        faults(false, &[0], &[(2, 3, Copy, &[])]),
        Fault::ReadNothing,
    );
    only(faults(false, &[0], &[(0, 1, Reduce, &[])]), Fault::BadSum);
    only(
        faults(true, &[0], &[(1, 0, Reduce, &[]), (1, 0, Reduce, &[0])]),
        Fault::BadSum,
    );
    only(faults(false, &[0], &[(0, 1, Copy, &[])]), Fault::Redundant);
    only(faults(false, &[2], &[(0, 2, Copy, &[0])]), Fault::Stuck);
    // Two copies at once, and a third over both: only what is in between may be mixed.
    let mixed: [Line; 3] = [(0, 2, Copy, &[]), (1, 2, Copy, &[]), (0, 2, Copy, &[0, 1])];
    assert!(faults(true, &[0], &mixed).has(Fault::Overlap));
    assert!(faults(true, &[0, 1], &[]).has(Fault::Missing));
}

#[test]
fn the_smallest_all_reduce_is_right_in_one_order_only() {
    let lines = |after: &'static [u32]| {
        plan(
            true,
            &[0, 1],
            &[0, 1],
            &[(0, 1, Reduce, &[]), (1, 0, Copy, after)],
        )
    };
    let judged = |plan: &Arc<Plan>| Judged::of(plan, &star(5));
    let right = judged(&lines(&[0]));
    assert!(right.oracle.faults.right() && right.pairs && right.said.is_ok());
    assert_eq!(right.reproducible, Some((true, true)));
    let wrong = judged(&lines(&[]));
    assert!(!wrong.oracle.faults.right() && !wrong.pairs && wrong.said.is_err());
}

#[test]
fn what_does_not_carry_a_chunk_may_pass_at_once() {
    for seed in 0..1000 {
        let plan = case(SMALL, seed).plan;
        let (short, full) = (judge(&plan).faults, judge_in_full(&plan).faults);
        assert_eq!(short.right(), full.right(), "seed {seed}");
        assert_eq!(
            short.right_by_values(),
            full.right_by_values(),
            "seed {seed}"
        );
        assert_eq!(
            short.right_by_outcome(),
            full.right_by_outcome(),
            "seed {seed}"
        );
    }
}

#[test]
fn only_one_order_is_missing() {
    let mut plans = 0;
    for case in (0..2000).map(|seed| case(SMALL, seed)) {
        let Some((before, after)) = case.missing else {
            continue;
        };
        assert!(!judge(&case.plan).faults.right());
        assert!(judge(&with_wait(&case.plan, before, after)).faults.right());
        plans += 1;
    }
    assert!(plans > 400, "{plans}");
}

/// The plan in which one transfer waits for another, too.
fn with_wait(plan: &Plan, before: usize, after: usize) -> Plan {
    let mut columns = plan.columns();
    let mut groups = plan.groups().clone();
    let wait = &mut columns.wait[after];
    let mut both = vec![Wait::on(before.into()).to_bits()];
    both.extend((*wait != Wait::NOTHING.to_bits()).then_some(*wait));
    *wait = Wait::group(groups.push(&both)).to_bits();
    let (collective, chunks) = (plan.collective().clone(), plan.chunks().clone());
    let paths = plan.paths().clone();
    Plan::from_columns("whole", collective, chunks, columns, groups, paths).expect("a plan")
}

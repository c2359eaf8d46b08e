//! What is counted of small plans: verdicts, corners that they reach, and disagreements.

use std::collections::BTreeSet;

use hocket_core::collective::{CollectiveKind, Demand};
use hocket_core::id::{NpuId, narrow};
use hocket_core::plan::{Op, Plan, Wait, WaitOn};
use hocket_core::verify::{Code, VerifyReport};

use crate::changes::Change;
use crate::judges::{DISAGREEMENTS, Judged};
use crate::oracle::Fault;
use crate::pairwise::waits;
use crate::random::Case;
use crate::rows::Job;

/// What is true of a small plan and of what the judges say.
pub(crate) fn facts(case: &Case, judged: &Judged) -> Vec<(&'static str, bool)> {
    let faults = judged.oracle.faults;
    let (right, outcome) = (faults.right(), faults.right_by_outcome());
    let disagreement = judged.disagreement_on(case);
    let mut facts = vec![
        ("plans", true),
        ("right", right),
        ("wrong", !right),
        (
            "wrong by exactly one missing order",
            !right && case.change == Change::OneOrder,
        ),
        ("wrong: overlap", faults.has(Fault::Overlap)),
        ("wrong: values differ by timing", faults.has(Fault::Differs)),
        (
            "wrong: read where nothing is",
            faults.has(Fault::ReadNothing),
        ),
        ("wrong: bad sum", faults.has(Fault::BadSum)),
        ("wrong: redundant copy", faults.has(Fault::Redundant)),
        ("wrong: missing at the end", faults.has(Fault::Missing)),
        ("wrong: cycle of waits", faults.has(Fault::Stuck)),
        (
            "right outcome, but a race",
            outcome && faults.has(Fault::Overlap),
        ),
        (
            "right outcome, but only a redundant copy",
            outcome && faults.has(Fault::Redundant) && !faults.has(Fault::Overlap),
        ),
        (
            "reproducible",
            judged.reproducible.is_some_and(|(same, _)| same),
        ),
        (
            "right and not reproducible",
            judged.reproducible.is_some_and(|(same, _)| !same),
        ),
    ];
    facts.extend(jobs(case, right));
    facts.extend(corners(case, right));
    facts.extend(only_codes(
        judged
            .said
            .as_ref()
            .err()
            .unwrap_or(&VerifyReport::default()),
    ));
    for name in DISAGREEMENTS {
        facts.push((name, disagreement == Some(name)));
    }
    facts
}

/// Plans for whose fault `verify` has one name only: without that check they would pass.
fn only_codes(report: &VerifyReport) -> Vec<(&'static str, bool)> {
    let only = |code| {
        report
            .violations()
            .iter()
            .all(|violation| violation.code == code)
    };
    let some = !report.is_empty();
    ONLY_CODES
        .iter()
        .map(|&(name, code)| (name, some && only(code)))
        .collect()
}

const ONLY_CODES: [(&str, Code); 8] = [
    ("refused for wait_cycle alone", Code::WaitCycle),
    ("refused for sent_before_held alone", Code::SentBeforeHeld),
    ("refused for unordered_read alone", Code::UnorderedRead),
    ("refused for unordered_write alone", Code::UnorderedWrite),
    ("refused for counted_twice alone", Code::CountedTwice),
    (
        "refused for reduce_into_nothing alone",
        Code::ReduceIntoNothing,
    ),
    ("refused for delivered_twice alone", Code::DeliveredTwice),
    ("refused for missing alone", Code::Missing),
];

/// What a plan is for, and what NPUs do in it that neither have nor want the data.
fn jobs(case: &Case, right: bool) -> Vec<(&'static str, bool)> {
    let plan = &case.plan;
    let demands = plan.collective().demands();
    let npus = plan.collective().npus();
    let is_relay = |npu: u32, t: usize| {
        let its = plan.chunk()[t]..plan.chunk()[t] + plan.chunk_count()[t];
        its.into_iter().any(|chunk| {
            let demand: &Demand = &demands[plan.chunks().demand()[chunk as usize] as usize];
            let ends = [&demand.holders, &demand.wanted];
            ends.iter()
                .all(|set| !set.members(npus).contains(&NpuId(npu)))
        })
    };
    let any = |holds: &dyn Fn(usize) -> bool| (0..plan.len()).any(holds);
    let passes_on = any(&|t| is_relay(plan.src()[t], t));
    let sums = any(&|t| plan.op()[t] == Op::Reduce as u8 && is_relay(plan.dst()[t], t));
    let is_groups = matches!(case.job, Job::Groups(_));
    vec![
        ("several groups at once", is_groups),
        (
            "several groups at once, of different kinds",
            case.job == Job::Groups(None),
        ),
        (
            "all-reduces of several groups",
            case.job == Job::Groups(Some(CollectiveKind::AllReduce)),
        ),
        (
            "reduce-scatters of several groups",
            case.job == Job::Groups(Some(CollectiveKind::ReduceScatter)),
        ),
        ("dispatch", case.job == Job::Dispatch),
        ("combine", case.job == Job::Combine),
        ("a relay passes data on", passes_on),
        ("a relay sums", sums),
        ("right, a relay sums", right && sums),
        (
            "right, a relay sums for one of several groups",
            right && sums && is_groups,
        ),
    ]
}

/// Which corners a plan reaches.
fn corners(case: &Case, right: bool) -> Vec<(&'static str, bool)> {
    let plan = &case.plan;
    let n = plan.len();
    let chunks = |t: usize| plan.chunk()[t]..plan.chunk()[t] + plan.chunk_count()[t];
    let meet =
        |t: usize, u: usize| chunks(t).start < chunks(u).end && chunks(u).start < chunks(t).end;
    let sums = |t: usize| plan.op()[t] == Op::Reduce as u8;
    let any = |holds: &dyn Fn(usize) -> bool| (0..n).any(holds);
    let any_two = |holds: &dyn Fn(usize, usize) -> bool| {
        any(&|t| any(&|u| t != u && meet(t, u) && holds(t, u)))
    };
    let (src, dst) = (plan.src(), plan.dst());
    let into = |t: usize, u: usize| dst[t] == dst[u];
    let read_and_sums = any(&|r| {
        let at = |t: usize| sums(t) && dst[t] == src[r] && meet(t, r);
        (0..n).filter(|&t| at(t)).count() > 1
    });
    let in_part =
        any_two(&|t, u| chunks(t).start < chunks(u).start && chunks(t).end < chunks(u).end);
    let waits = waits(plan);
    let forward = any(&|t| waits[t].iter().any(|u| u > t));
    let is_group = |bits: &u32| matches!(Wait::from_bits(*bits).target(), WaitOn::Group(_));
    let mut named: Vec<u32> = plan.wait().iter().copied().filter(is_group).collect();
    let groups_named = named.len();
    named.sort_unstable();
    named.dedup();
    let takes_part = |npu: u32| plan.collective().npus().iter().any(|p| p.0 == npu);
    vec![
        (
            "right, a place is read and summed into twice",
            right && read_and_sums,
        ),
        (
            "a copy over a sum",
            any_two(&|t, u| sums(t) && !sums(u) && into(t, u)),
        ),
        ("ranges overlap in part", in_part),
        ("several components", components(plan) > 1),
        (
            "an NPU that takes no part is used",
            any(&|t| !takes_part(dst[t])),
        ),
        ("a wait points forward", forward),
        ("a group is shared", named.len() < groups_named),
        (
            "a group in a group",
            plan.groups().items().iter().any(is_group),
        ),
        (
            "an empty group",
            plan.groups().iter().any(<[u32]>::is_empty),
        ),
        ("several demands", plan.collective().demands().len() > 1),
        ("no transfers", n == 0),
        ("eight or nine transfers", n >= 8),
    ]
}

/// Into how many parts the chunks fall that no transfer carries together.
fn components(plan: &Plan) -> usize {
    let starts: BTreeSet<u32> = (0..narrow(plan.chunks().len()))
        .filter(|&c| {
            let across =
                |t: usize| plan.chunk()[t] < c && c < plan.chunk()[t] + plan.chunk_count()[t];
            !(0..plan.len()).any(across)
        })
        .collect();
    starts.len()
}

//! `verify` against every interleaving of small random plans, and against pairs of accesses on
//! larger ones. `docs/testing.md` says what is compared and how to run more of it.
//!
//! `HOCKET_ORACLE_PLANS` sets how many small plans are judged (20,000), `HOCKET_ORACLE_LARGER` how
//! many larger ones (300), `HOCKET_ORACLE_SEED` the first seed (1), `HOCKET_ORACLE_THREADS` on how
//! many threads (all).

mod board;
mod facts;
mod judges;
mod known;
mod midsize;
mod mutants;
mod oracle;
mod order;
#[path = "../properties/oracle.rs"]
mod pairwise;
mod run;
mod shrink;
mod small;
mod states;
mod tally;
mod words;

use std::sync::Arc;

use hocket_core::plan::Plan;
use hocket_core::topology::Topology;

use crate::facts::facts;
use crate::judges::{ACCEPTS_WRONG, DISAGREEMENTS, Judged, REFUSES_RIGHT, SAME_BITS, said, star};
use crate::mutants::MUTANTS;
use crate::run::Seeds;
use crate::shrink::shrink;
use crate::small::case;
use crate::words::words;

/// Small plans that are judged by default. With fewer, corners may be missed.
const ENOUGH: u64 = 20_000;

#[test]
fn verify_agrees_with_every_interleaving() {
    let stars = stars();
    let seeds = Seeds::by("HOCKET_ORACLE_PLANS", ENOUGH);
    let (tally, failed) = seeds.judge(&|seed, tally| {
        let case = case(seed);
        let judged = Judged::of(&case.plan, &stars[case.npus]);
        tally.count(facts(&case, &judged));
        judged.disagreement_on(&case).is_none()
    });
    println!("{tally}");
    if let Some(seed) = failed {
        panic!("{tally}\n{}", explain(seed));
    }
    if seeds.count >= ENOUGH {
        assert!(tally.share("right") >= 0.10);
        assert!(tally.share("wrong by exactly one missing order") >= 0.05);
        for name in tally.names().filter(|name| !DISAGREEMENTS.contains(name)) {
            assert!(tally.of(name) > 0, "no plan: {name}");
        }
    }
}

/// A star for each number of NPUs that small plans have.
fn stars() -> Vec<Arc<Topology>> {
    (0..=oracle::MOST_NPUS)
        .map(|npus| star(npus.max(2)))
        .collect()
}

/// The plan of a seed on which judges disagree, made as small as may be, and what they say of it.
fn explain(seed: u64) -> String {
    let case = case(seed);
    let topology = star(case.npus);
    let judged = Judged::of(&case.plan, &topology);
    let how = judged.disagreement();
    let mut smallest = case.plan.clone();
    if how.is_some() {
        let same = |plan: &Arc<Plan>| Judged::of(plan, &topology).disagreement() == how;
        smallest = shrink(&case.plan, &same);
    }
    let Judged {
        oracle,
        pairs,
        said,
        reproducible,
    } = Judged::of(&smallest, &topology);
    format!(
        "{}\nseed {seed} ({:?}); again: HOCKET_ORACLE_SEED={seed} HOCKET_ORACLE_PLANS=1\n\
         {}made smaller:\n{}oracle: {:?}\nby pairs: {pairs}\nverify: {said:?}\n\
         reproducible, by expressions and by pairs: {reproducible:?}",
        judged.disagreement_on(&case).expect("the judges disagree"),
        case.change,
        words(&case.plan),
        words(&smallest),
        oracle.faults,
    )
}

#[test]
fn verify_agrees_with_pairs_of_accesses_on_larger_plans() {
    let seeds = Seeds::by("HOCKET_ORACLE_LARGER", 300);
    let (tally, failed) = seeds.judge(&|seed, tally| {
        let (plan, npus) = midsize::plan(seed);
        let right = pairwise::is_right(&plan);
        let said = said(&plan, &star(npus));
        let reproducible = right && pairwise::is_reproducible(&plan);
        let told = said.as_ref().ok().copied().flatten();
        let differ = [
            said.is_ok() && !right,
            said.is_err() && right,
            right && told.is_some_and(|told| told != reproducible),
        ];
        tally.count([
            ("larger plans", true),
            ("right", right),
            ("wrong", !right),
            ("reproducible", reproducible),
            ("more than 200 transfers", plan.len() > 200),
            (ACCEPTS_WRONG, differ[0]),
            (REFUSES_RIGHT, differ[1]),
            (SAME_BITS, differ[2]),
        ]);
        !differ.contains(&true)
    });
    println!("{tally}");
    if let Some(seed) = failed {
        panic!("{tally}\n{}", explain_larger(seed));
    }
    for name in ["right", "wrong", "reproducible", "more than 200 transfers"] {
        assert!(
            seeds.count < 300 || tally.share(name) >= 0.05,
            "few plans: {name}"
        );
    }
}

/// The larger plan of a seed on which judges disagree, made as small as may be.
fn explain_larger(seed: u64) -> String {
    let (plan, npus) = midsize::plan(seed);
    let topology = star(npus);
    let verdicts = |plan: &Arc<Plan>| {
        let right = pairwise::is_right(plan);
        let same = right.then(|| pairwise::is_reproducible(plan));
        (right, same, said(plan, &topology).ok())
    };
    let first = verdicts(&plan);
    let smallest = shrink(&plan, &|plan| verdicts(plan) == first);
    let (right, same, told) = first;
    format!(
        "seed {seed}; again: HOCKET_ORACLE_SEED={seed} HOCKET_ORACLE_LARGER=1\n{}\
         right: {right}, reproducible: {same:?}, verify: {told:?}",
        words(&smallest)
    )
}

#[test]
fn a_judge_with_a_fault_is_noticed() {
    let seeds = Seeds {
        first: 1,
        count: ENOUGH,
    };
    let (tally, _) = seeds.judge(&|seed, tally| {
        let case = case(seed);
        let faults = oracle::judge(&case.plan).faults;
        let wrong = |&(name, judge): &(_, fn(&Plan, _) -> bool)| {
            (name, judge(&case.plan, faults) != faults.right())
        };
        tally.count(
            [("plans", true)]
                .into_iter()
                .chain(MUTANTS.iter().map(wrong)),
        );
        true
    });
    println!("{tally}");
    for (name, _) in MUTANTS {
        assert!(tally.of(name) > 0, "nobody notices: {name}");
    }
}

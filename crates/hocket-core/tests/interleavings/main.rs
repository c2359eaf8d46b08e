//! `verify` against every interleaving of small random plans, and against pairs of accesses on
//! larger ones. `docs/testing.md` says what is compared and how to run more of it.
//!
//! `HOCKET_ORACLE_PLANS` sets how many small plans are judged (20,000), `HOCKET_ORACLE_MEDIUM`
//! and `HOCKET_ORACLE_LARGE` how many larger ones (1,000 and 300), `HOCKET_ORACLE_SEED` the first seed (1), `HOCKET_ORACLE_THREADS` on how
//! many threads (all).

mod board;
mod changes;
mod facts;
mod judges;
mod known;
mod midsize;
mod mutants;
mod oracle;
mod order;
#[path = "../properties/oracle.rs"]
mod pairwise;
mod random;
mod rows;
mod run;
mod shrink;
mod states;
mod tally;
mod words;

use std::sync::Arc;

use hocket_core::plan::Plan;
use hocket_core::topology::Topology;

use crate::facts::facts;
use crate::judges::{
    ACCEPTS_WRONG, DISAGREEMENTS, Judged, REFUSES_RIGHT, SAME_BITS, Said, said, star,
    sums_in_one_order,
};
use crate::mutants::MUTANTS;
use crate::random::{MEDIUM, SMALL, case};
use crate::run::Seeds;
use crate::shrink::shrink;
use crate::words::words;

/// Small plans that are judged by default. With fewer, corners may be missed.
const ENOUGH: u64 = 20_000;

#[test]
fn verify_agrees_with_every_interleaving() {
    let stars = stars();
    let seeds = Seeds::by("HOCKET_ORACLE_PLANS", ENOUGH);
    let (tally, failed) = seeds.judge(&|seed, tally| {
        let case = case(SMALL, seed);
        let judged = Judged::of(&case.plan, &stars[case.npus]);
        tally.count(facts(&case, &judged));
        judged.disagreement_on(&case).is_none()
    });
    if let Some(seed) = failed {
        panic!("{}", explain(seed));
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
    (0..=oracle::MAX_NPUS)
        .map(|npus| star(npus.max(2)))
        .collect()
}

/// The plan of a seed on which judges disagree, made as small as may be, and what they say of it.
fn explain(seed: u64) -> String {
    let case = case(SMALL, seed);
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
fn verify_agrees_with_pairs_of_accesses_on_medium_plans() {
    let seeds = Seeds::by("HOCKET_ORACLE_MEDIUM", 1000);
    by_pairs(&seeds, "HOCKET_ORACLE_MEDIUM", &|seed| {
        let case = case(MEDIUM, seed);
        (case.plan, case.npus)
    });
}

#[test]
fn verify_agrees_with_pairs_of_accesses_on_large_plans() {
    let seeds = Seeds::by("HOCKET_ORACLE_LARGE", 300);
    by_pairs(&seeds, "HOCKET_ORACLE_LARGE", &midsize::plan);
}

/// Holds `verify` against the judge by pairs on plans among so many NPUs.
fn by_pairs(seeds: &Seeds, variable: &str, plan: &(dyn Fn(u64) -> (Arc<Plan>, usize) + Sync)) {
    let (tally, failed) = seeds.judge(&|seed, tally| {
        let (plan, npus) = plan(seed);
        let (right, reproducible, said) = two_verdicts(&plan, &star(npus));
        let differ = [
            said.is_ok() && !right,
            said.is_err() && right,
            right && said.as_ref().is_ok_and(|&told| told != reproducible),
        ];
        tally.count([
            ("plans", true),
            ("right", right),
            ("wrong", !right),
            ("reproducible", reproducible),
            ("right and not reproducible", right && !reproducible),
            ("20 transfers or more", plan.len() >= 20),
            ("200 transfers or more", plan.len() >= 200),
            (ACCEPTS_WRONG, differ[0]),
            (REFUSES_RIGHT, differ[1]),
            (SAME_BITS, differ[2]),
        ]);
        !differ.contains(&true)
    });
    if let Some(seed) = failed {
        let (plan, npus) = plan(seed);
        let topology = star(npus);
        let first = two_verdicts(&plan, &topology);
        let like_first = |other: &Arc<Plan>| {
            let (right, reproducible, said) = two_verdicts(other, &topology);
            (right, reproducible, said.ok()) == (first.0, first.1, first.2.clone().ok())
        };
        let smallest = shrink(&plan, &like_first);
        panic!(
            "seed {seed}; again: HOCKET_ORACLE_SEED={seed} {variable}=1\nmade smaller:\n{}\
             (right, reproducible, verify): {first:?}",
            words(&smallest),
        );
    }
    for name in [
        "right",
        "wrong",
        "reproducible",
        "right and not reproducible",
    ] {
        assert!(
            seeds.count < 300 || tally.share(name) >= 0.05,
            "few plans: {name}"
        );
    }
}

/// By pairs: whether a plan is right, and reproducible; and what `verify` says.
fn two_verdicts(plan: &Arc<Plan>, topology: &Arc<Topology>) -> (bool, bool, Said) {
    let right = pairwise::is_right(plan);
    let reproducible = right && sums_in_one_order(plan);
    (right, reproducible, said(plan, topology))
}

#[test]
fn a_judge_with_a_fault_is_noticed() {
    let seeds = Seeds {
        first: 1,
        count: ENOUGH,
    };
    let (tally, _) = seeds.judge(&|seed, tally| {
        let case = case(SMALL, seed);
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
    for (name, _) in MUTANTS {
        assert!(tally.of(name) > 0, "nobody notices: {name}");
    }
}

//! `verify` against every interleaving of small random plans, and against pairs of accesses on
//! larger ones. `docs/testing.md` says what is compared and how to run more of it.
//!
//! `HOCKET_ORACLE_PLANS` sets how many small plans are judged (20,000), `HOCKET_ORACLE_SEED` the
//! first seed (1), `HOCKET_ORACLE_THREADS` on how many threads (all).

mod board;
mod judges;
mod midsize;
mod oracle;
mod order;
#[path = "../properties/oracle.rs"]
mod pairwise;
mod shrink;
mod small;
mod states;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hocket_core::plan::Plan;
use hocket_core::topology::Topology;

use crate::judges::{DISAGREEMENTS, Judged, Tally, facts, said, star};
use crate::shrink::{shrink, words};
use crate::small::case;

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}; give it a whole number")),
        Err(_) => default,
    }
}

#[test]
fn verify_agrees_with_every_interleaving() {
    let plans = setting("HOCKET_ORACLE_PLANS", 20_000);
    let first = setting("HOCKET_ORACLE_SEED", 1);
    let (tally, failed) = run(first, plans);
    println!("{tally}");
    if let Some(seed) = failed {
        panic!("{tally}\n{}", explain(seed));
    }
    for name in DISAGREEMENTS {
        assert_eq!(tally.of(name), 0, "{name}");
    }
    assert!(tally.share("right") >= 0.10);
    assert!(tally.share("wrong by exactly one missing order") >= 0.05);
    for name in tally.names().filter(|name| !DISAGREEMENTS.contains(name)) {
        assert!(plans < 20_000 || tally.of(name) > 0, "no plan: {name}");
    }
}

/// Judges the plans of that many seeds on all threads; the first seed where judges disagree.
fn run(first: u64, plans: u64) -> (Tally, Option<u64>) {
    const BATCH: u64 = 256;
    let all = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let threads = setting("HOCKET_ORACLE_THREADS", all).max(1);
    let next = AtomicU64::new(0);
    let work = || {
        let stars: BTreeMap<usize, Arc<Topology>> = (2..=oracle::MOST_NPUS)
            .map(|npus| (npus, star(npus)))
            .collect();
        let (mut tally, mut failed) = (Tally::default(), None);
        loop {
            let start = next.fetch_add(BATCH, Ordering::Relaxed);
            if start >= plans {
                return (tally, failed);
            }
            for seed in (start..plans.min(start + BATCH)).map(|i| first.wrapping_add(i)) {
                let case = case(seed);
                let judged = Judged::of(&case.plan, &stars[&case.npus]);
                tally.states += judged.oracle.states;
                tally.count(facts(&case, &judged));
                if judged.disagreement().is_some() {
                    failed = Some(failed.map_or(seed, |other: u64| other.min(seed)));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = (Tally::default(), None);
        for worker in workers {
            let (tally, failed) = worker.join().expect("no judge panics");
            all.0.add(&tally);
            all.1 = [all.1, failed].into_iter().flatten().min();
        }
        all
    })
}

/// The plan of a seed on which judges disagree, made as small as may be, and what they say of it.
fn explain(seed: u64) -> String {
    let case = case(seed);
    let topology = star(case.npus);
    let how = |plan: &Arc<Plan>| Judged::of(plan, &topology).disagreement();
    let first = how(&case.plan).expect("the judges disagree");
    let smallest = shrink(&case.plan, &|plan| how(plan) == Some(first));
    let judged = Judged::of(&smallest, &topology);
    format!(
        "{first}\nseed {seed} ({:?}); again: HOCKET_ORACLE_SEED={seed} HOCKET_ORACLE_PLANS=1\n\
         {}made smaller:\n{}oracle: {:?}\nby pairs: {}\nverify: {:?}\nreproducible: {:?}",
        case.change,
        words(&case.plan),
        words(&smallest),
        judged.oracle,
        judged.pairs,
        judged.said,
        judged.reproducible,
    )
}

#[test]
fn verify_agrees_with_pairs_of_accesses_on_larger_plans() {
    let plans = setting("HOCKET_ORACLE_LARGER", 300);
    let first = setting("HOCKET_ORACLE_SEED", 1);
    let mut tally = Tally::default();
    let (mut transfers, mut failed) = (0, None);
    for seed in (0..plans).map(|i| first.wrapping_add(i)) {
        let (plan, npus) = midsize::plan(seed);
        let right = pairwise::is_right(&plan);
        let accepted = said(&plan, &star(npus)).is_ok();
        transfers += plan.len();
        tally.count([
            ("larger plans", true),
            ("right", right),
            ("wrong", !right),
            ("disagree: verify accepts a wrong plan", accepted && !right),
            ("disagree: verify refuses a right plan", !accepted && right),
        ]);
        if accepted != right && failed.is_none() {
            let topology = star(npus);
            let differ = |plan: &Arc<Plan>| {
                said(plan, &topology).is_ok() == accepted && pairwise::is_right(plan) == right
            };
            failed = Some(format!("seed {seed}\n{}", words(&shrink(&plan, &differ))));
        }
    }
    println!(
        "{tally}\ntransfers of a plan, mean: {}",
        transfers as u64 / plans.max(1)
    );
    if let Some(smallest) = failed {
        panic!("{tally}\n{smallest}");
    }
    assert!(tally.share("right") >= 0.10 && tally.share("wrong") >= 0.10);
}

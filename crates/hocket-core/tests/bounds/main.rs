//! An attack on the bounds: no run of any plan, at any fidelity, is faster than the bound printed beside it.
//!
//! Random networks, collectives, plans and options; see docs/models.md for what is to hold, and why.
//! `HOCKET_BOUND_RUNS` says how many runs (20,000 by default), `HOCKET_BOUND_SEED` where to begin,
//! `HOCKET_BOUND_CASE` which one case to run again, told step by step; `HOCKET_OPTIMUM_CASES` how many tiny
//! cases of each kind are searched for their optimum (24).

mod causes;
mod networks;
mod optimum;
mod plans;
mod runs;
mod tally;
mod works;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use hocket_core::units::Seed;
use tally::Tally;

/// Runs of one seed: a network, a collective on it, a few plans, and each at every fidelity that it has.
fn case(seed: u64, tally: &mut Tally, is_told: bool) {
    let mut draw = Seed(seed);
    let topology = networks::network(&mut draw);
    let collective = works::collective(&topology, &mut draw);
    if is_told {
        println!("{topology:#?}\n{collective:#?}");
    }
    tally.begin(seed, is_told);
    runs::of_schedule(&topology, &collective, &mut draw, tally);
    for verified in plans::plans(&topology, &collective, &mut draw, tally) {
        if is_told {
            println!("{:#?}", verified.plan());
        }
        runs::of_plan(&verified, &mut draw, tally);
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text:?} is not a number")),
    )
}

#[test]
fn no_run_is_faster_than_its_bound() {
    if let Some(seed) = number("HOCKET_BOUND_CASE") {
        let mut tally = Tally::default();
        case(seed, &mut tally, true);
        println!("{tally}");
        return tally.check();
    }
    let most = number("HOCKET_BOUND_RUNS").unwrap_or(20_000);
    let first = number("HOCKET_BOUND_SEED").unwrap_or(0);
    let (next, done) = (AtomicU64::new(first), AtomicU64::new(0));
    let all = Mutex::new(Tally::default());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while done.load(Ordering::Relaxed) < most {
                    let mut tally = Tally::default();
                    case(next.fetch_add(1, Ordering::Relaxed), &mut tally, false);
                    done.fetch_add(tally.runs(), Ordering::Relaxed);
                    all.lock().expect("no thread panics").add(tally);
                }
            });
        }
    });
    let all = all.into_inner().expect("no thread panics");
    println!("seeds {first} to {}\n{all}", next.into_inner());
    all.check();
}

//! The search for schedules better than Themis's.

use super::*;
use crate::id::fit;
use crate::progress::{Progress, Silent};
use crate::units::Seed;
use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
use DimensionKind::{FullyConnected, Line, Ring, Switch};

const GIGABYTE: u64 = 1_000_000_000;

fn problem(rails: &[Rail], kind: CollectiveKind, bytes: u64, chunks: usize) -> Problem {
    Problem {
        kind,
        rails: rails.to_vec(),
        bytes,
        chunks,
        model: Model::default(),
    }
}

/// One to four rails.
fn random_rails(seed: &mut Seed) -> Vec<Rail> {
    let count = 1 + seed.below(4);
    let dims: Vec<Dimension> = (0..count)
        .map(|_| {
            let kind = [Ring, Switch, FullyConnected, Line][seed.below(4)];
            let size = [2, 3, 4, 6, 8][seed.below(5)];
            let rate = GIGABYTE * (1 + seed.below(40) as u64);
            dimension(kind, size, rate, 1000 * seed.below(2000) as u64)
        })
        .collect();
    rails(&dims)
}

/// Every rail once in each pass, every byte in a lane, every step served once and after what it
/// needs.
fn assert_valid(schedule: &Schedule, problem: &Problem) {
    let bytes: u64 = schedule.lanes.iter().map(|lane| lane.bytes).sum();
    assert_eq!(
        (bytes, schedule.lanes.len()),
        (problem.bytes, problem.chunks)
    );
    let every: Vec<u8> = (0..fit(problem.rails.len())).collect();
    for lane in &schedule.lanes {
        let passes = [
            (&lane.reduce_scatter, problem.kind != AllGather),
            (&lane.all_gather, problem.kind != ReduceScatter),
        ];
        for (order, is_taken) in passes {
            let mut order = order.clone();
            order.sort();
            assert_eq!(order, if is_taken { every.clone() } else { Vec::new() });
        }
    }
    let timeline = &schedule.timeline;
    assert_eq!(schedule.simulate(problem.model), *timeline);
    let mut next = vec![0; timeline.start.len()];
    for &(task, step) in &timeline.served {
        assert_eq!(next[task as usize], step);
        next[task as usize] += 1;
    }
    let stages = schedule.stages();
    for (task, &served) in next.iter().enumerate() {
        let lane = &schedule.lanes[task / stages / PARTS];
        let rail = lane.rails().nth(task % stages).unwrap();
        assert_eq!(
            served as usize,
            problem.rails[usize::from(rail)].step_count()
        );
    }
}

#[test]
fn it_is_never_worse_than_the_fixed_order_or_themis() {
    let mut seed = Seed(3);
    let mut better = 0;
    for case in 0..40 {
        let rails = random_rails(&mut seed);
        let kind = [AllReduce, ReduceScatter, AllGather][case % 3];
        let bytes = 1_000_001 + seed.below(100_000_000) as u64;
        let problem = problem(&rails, kind, bytes, 1 + seed.below(24));
        let found = optimal(&problem, 20_000, &mut Silent);
        assert_valid(&found, &problem);
        let run = |lanes: Vec<Lane>, policy| {
            simulate(&rails, &lanes, PARTS, policy, problem.model).finish
        };
        let fixed = fixed_order(&rails, kind, bytes, problem.chunks);
        let greedy = || themis(&rails, kind, bytes, problem.chunks);
        let known = [
            run(fixed, Policy::Fifo),
            run(greedy(), Policy::Fifo),
            run(greedy(), Policy::SmallestFirst),
        ];
        let best = known.into_iter().min().unwrap();
        assert!(found.timeline.finish <= best, "{rails:?} {known:?}");
        better += usize::from(found.timeline.finish < best);
    }
    assert!(better >= 10, "{better} of 40");
}

#[test]
fn the_same_problem_has_the_same_schedule() {
    for (_, rails) in rails_of_table_2().into_iter().skip(3) {
        let problem = problem(&rails, AllReduce, 250_000_000, 16);
        let run = || optimal(&problem, 30_000, &mut Silent);
        assert_eq!(run(), run());
    }
}

/// Stops at the first question.
struct Impatient(u32);

impl Progress for Impatient {
    fn report(&mut self, stage: &'static str, done: u64, total: u64) -> bool {
        assert_eq!(stage, "schedule");
        assert!(done <= total);
        self.0 += 1;
        false
    }
}

#[test]
fn a_search_that_is_stopped_gives_the_best_so_far() {
    let (_, rails) = &rails_of_table_2()[4];
    let problem = problem(rails, AllReduce, 100_000_000, 64);
    let mut progress = Impatient(0);
    // Longer than anybody would wait for a test.
    let found = optimal(&problem, u64::MAX, &mut progress);
    assert_eq!(progress.0, 1);
    assert_valid(&found, &problem);
    let lanes = themis(rails, AllReduce, problem.bytes, 64);
    let greedy = simulate(rails, &lanes, PARTS, Policy::SmallestFirst, problem.model);
    assert!(found.timeline.finish <= greedy.finish);
}

#[test]
fn one_rail_needs_no_search() {
    let rails = rails(&[dimension(Ring, 6, GIGABYTE, 1000)]);
    for kind in [AllReduce, ReduceScatter, AllGather] {
        let problem = problem(&rails, kind, 6_000_000, 8);
        let found = optimal(&problem, u64::MAX, &mut Silent);
        assert_valid(&found, &problem);
        let lanes = fixed_order(&rails, kind, problem.bytes, 8);
        let fixed = simulate(&rails, &lanes, PARTS, Policy::Fifo, problem.model);
        assert_eq!(found.timeline.finish, fixed.finish);
    }
}

/// Utilisation found on each network of table 2, for each size.
fn utilizations(chunks: usize) -> Vec<(&'static str, u64, f64)> {
    let mut all = Vec::new();
    for (name, rails) in rails_of_table_2() {
        for megabytes in SIZES {
            let bytes = megabytes * 1_000_000;
            let problem = problem(&rails, AllReduce, bytes, chunks);
            let found = optimal(&problem, EFFORT, &mut Silent);
            let used = utilization(&rails, bytes, found.timeline.finish);
            all.push((name, megabytes, used));
        }
    }
    all
}

fn mean(all: &[(&str, u64, f64)]) -> f64 {
    all.iter().map(|(_, _, used)| used).sum::<f64>() / all.len() as f64
}

#[test]
#[ignore = "slow: thirty searches at full effort"]
fn table_2_is_used_almost_fully() {
    let all = utilizations(64);
    assert!(mean(&all) >= 0.99, "{}", mean(&all));
    for (name, megabytes, used) in all {
        assert!(
            megabytes < 500 || used >= 0.985,
            "{name} {megabytes}: {used}"
        );
    }
}

#[test]
#[ignore = "slow: thirty searches at full effort"]
fn table_2_is_used_well_in_sixteen_chunks() {
    let all = utilizations(16);
    assert!(mean(&all) >= 0.96, "{}", mean(&all));
}

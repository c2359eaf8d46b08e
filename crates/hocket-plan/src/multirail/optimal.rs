//! Past Themis: orders from a linear program, then a search that removes what idle time is left.

use std::sync::atomic::{AtomicBool, Ordering};

use super::balance::{self, balance};
use super::dimension::{Model, Policy, Tasks};
use super::dispatch::Dispatcher;
use super::{Lane, PARTS, Rail, Schedule, fixed_order, themis};
use crate::collective::CollectiveKind;
use crate::progress::Progress;
use crate::units::{Seed, whole};

/// What is to be scheduled.
#[derive(Clone, Debug)]
pub struct Problem {
    /// All-reduce, reduce-scatter or all-gather.
    pub kind: CollectiveKind,
    /// The rails.
    pub rails: Vec<Rail>,
    /// Bytes of one NPU's vector, or of the whole vector.
    pub bytes: u64,
    /// Number of lanes.
    pub chunks: usize,
    /// What times are judged by.
    pub model: Model,
}

/// Simulated steps that each of two searches may take: about a second's worth.
pub const EFFORT: u64 = 15_000_000;

/// Returns the best schedule found: never worse than the fixed order's or Themis's.
///
/// Two searches, the same whatever the number of threads, begin with Themis's orders and with those of
/// the linear program ([`balance()`]). Each is a simulated annealing over the orders of the lanes, those
/// of reduce-scatter and of all-gather apart, and over their sizes. A lane is served before another
/// where its NPUs hold fewer bytes. `progress` may stop them: the best so far is the result.
///
/// # Complexity
/// O(`effort`), and O(rails!) for the linear program.
///
/// # Source
/// Kirkpatrick, Gelatt, Vecchi: Optimization by simulated annealing, Science 1983.
pub fn optimal(problem: &Problem, effort: u64, progress: &mut dyn Progress) -> Schedule {
    let Problem {
        kind,
        rails,
        bytes,
        chunks,
        model,
    } = problem;
    let fixed = fixed_order(rails, *kind, *bytes, *chunks);
    let greedy = themis(rails, *kind, *bytes, *chunks);
    let make = |lanes: &[Lane], policy| {
        Schedule::new(*kind, rails.clone(), lanes.to_vec(), policy, *model)
    };
    let mut best = make(&fixed, Policy::Fifo);
    let mut offer = |schedule: Schedule| {
        if schedule.timeline.finish < best.timeline.finish {
            best = schedule;
        }
    };
    offer(make(&greedy, Policy::Fifo));
    offer(make(&greedy, Policy::SmallestFirst));
    if rails.len() > 1 {
        let balanced = balance(rails).map(|found| balance::lanes(&found, *kind, *bytes, *chunks));
        let balanced =
            balanced.filter(|lanes| lanes.iter().all(|lane| lane.bytes >= problem.least()));
        let stop = AtomicBool::new(false);
        let second = balanced.unwrap_or_else(|| greedy.clone());
        offer(make(&second, Policy::SmallestFirst));
        let (one, two) = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                Search::new(problem, second, Seed(2)).run(effort, |_| stop.load(Ordering::Relaxed))
            });
            let one = Search::new(problem, greedy, Seed(1)).run(effort, |done| {
                let go_on = progress.report("schedule", done, effort);
                stop.fetch_or(!go_on, Ordering::Relaxed);
                !go_on
            });
            (one, other.join().expect("the search does not panic"))
        });
        offer(make(&one, Policy::SmallestFirst));
        offer(make(&two, Policy::SmallestFirst));
    }
    best
}

impl Problem {
    /// Returns the fewest bytes of a lane: enough for every chunk of its parts to have one.
    fn least(&self) -> u64 {
        let npus: u64 = self.rails.iter().map(|rail| u64::from(rail.size)).product();
        2 * PARTS as u64 * npus
    }
}

/// A simulated annealing.
struct Search<'a> {
    problem: &'a Problem,
    lanes: Vec<Lane>,
    tasks: Tasks,
    dispatcher: Dispatcher,
    seed: Seed,
    /// Transfers of one part of each lane, their sum, and the most that it may be.
    transfers: Vec<u64>,
    sum: u64,
    most: u64,
}

/// How many times the transfers of a plan without detours a plan may have: an all-gather that does not
/// turn back the way of its reduce-scatter sends its data in pieces.
const PIECES: u64 = 2;

/// Costs up to this share above the present one are taken at first; later less.
const WARMTH: f64 = 0.006;

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, lanes: Vec<Lane>, seed: Seed) -> Self {
        let count = |lane: &Lane| lane.layout(&problem.rails).1;
        let transfers: Vec<u64> = lanes.iter().map(count).collect();
        let sum = transfers.iter().sum();
        Self {
            most: sum * PIECES,
            sum,
            transfers,
            tasks: Tasks::of(&problem.rails, &lanes, PARTS),
            dispatcher: Dispatcher::default(),
            problem,
            lanes,
            seed,
        }
    }

    /// The best lanes found until so many steps are simulated, or told to stop.
    fn run(mut self, effort: u64, mut stop: impl FnMut(u64) -> bool) -> Vec<Lane> {
        let model = self.problem.model;
        let Some(mut cost) = self.dispatcher.cost_within(&self.tasks, model, u64::MAX) else {
            return self.lanes;
        };
        let mut best = (cost, self.lanes.clone());
        let mut round = 0u64;
        while self.dispatcher.served < effort {
            // What a trial costs besides its steps, and if it makes too many transfers.
            self.dispatcher.served += 64;
            round += 1;
            if round.is_multiple_of(64) && stop(self.dispatcher.served) {
                break;
            }
            let before = self.change();
            if !self.count(&before) {
                self.take_back(before);
                continue;
            }
            let cold = self.dispatcher.served as f64 / effort as f64;
            let chance = self.seed.below(1 << 16) as f64 / f64::from(1 << 16);
            let limit = cost as f64 * (1.0 + WARMTH * (1.0 - cold) * chance);
            for &(i, _) in &before {
                self.tasks.set_lane(&self.problem.rails, i, &self.lanes[i]);
            }
            match self
                .dispatcher
                .cost_within(&self.tasks, model, whole(limit))
            {
                Some(found) => {
                    cost = found;
                    if cost < best.0 {
                        best = (cost, self.lanes.clone());
                    }
                }
                None => self.take_back(before),
            }
        }
        best.1
    }

    /// Counts the transfers of changed lanes; whether there are not too many.
    fn count(&mut self, changed: &[(usize, Lane)]) -> bool {
        for &(i, _) in changed {
            let transfers = self.lanes[i].layout(&self.problem.rails).1;
            self.sum = self.sum + transfers - self.transfers[i];
            self.transfers[i] = transfers;
        }
        self.sum <= self.most
    }

    fn take_back(&mut self, before: Vec<(usize, Lane)>) {
        for (i, lane) in before.into_iter().rev() {
            self.tasks.set_lane(&self.problem.rails, i, &lane);
            self.lanes[i] = lane;
            self.count(&[(i, Lane::default())]);
        }
    }

    /// Changes one lane or two; gives them as they were.
    fn change(&mut self) -> Vec<(usize, Lane)> {
        let (a, b) = (
            self.seed.below(self.lanes.len()),
            self.seed.below(self.lanes.len()),
        );
        let both = |lanes: &[Lane]| vec![(a, lanes[a].clone()), (b, lanes[b].clone())];
        match self.seed.below(20) {
            0 | 1 if a != b => {
                let before = both(&self.lanes);
                let share = 4 + self.seed.below(12) as u64;
                let spare = self.lanes[a].bytes.saturating_sub(self.problem.least());
                let moved = (self.lanes[a].bytes / share).min(spare);
                self.lanes[a].bytes -= moved;
                self.lanes[b].bytes += moved;
                before
            }
            2..=4 => {
                let before = both(&self.lanes);
                self.lanes.swap(a, b);
                before
            }
            5..=7 if a != b && !self.lanes[a].all_gather.is_empty() => {
                let before = both(&self.lanes);
                let (low, high) = self.lanes.split_at_mut(a.max(b));
                let pair = (&mut low[a.min(b)], &mut high[0]);
                std::mem::swap(&mut pair.0.all_gather, &mut pair.1.all_gather);
                before
            }
            _ => {
                let before = vec![(a, self.lanes[a].clone())];
                let copies = self.lanes[a].reduce_scatter.is_empty()
                    || !self.lanes[a].all_gather.is_empty() && self.seed.below(2) == 0;
                let lane = &mut self.lanes[a];
                let order = if copies {
                    &mut lane.all_gather
                } else {
                    &mut lane.reduce_scatter
                };
                if self.seed.below(5) > 0 {
                    let i = self.seed.below(order.len() - 1);
                    order.swap(i, i + 1);
                } else {
                    for i in (1..order.len()).rev() {
                        order.swap(i, self.seed.below(i + 1));
                    }
                }
                before
            }
        }
    }
}

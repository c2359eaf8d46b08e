//! Transfers that run together on different paths.

use super::{Choice, steps::steps};
use crate::id::{LinkId, TransferId};
use crate::plan::Plan;
use crate::topology::Topology;
use crate::topology::equal::EqualPaths;
use crate::units::{Beta, Time};

/// For each choice, a path of its set: step by step, and within a step those with fewest paths first, then
/// the largest, each to the path whose busiest link carries least in this step, then in all, then whose switches
/// carry least.
///
/// # Source
/// Within a step: Cohen et al., Routing for large ML models, algorithm 1 (greedy).
pub(super) fn choose(
    plan: &Plan,
    topology: &Topology,
    equal: &EqualPaths,
    choices: &[Choice],
) -> Vec<u32> {
    let steps = steps(plan);
    let mut order: Vec<u32> = (0..choices.len() as u32).collect();
    let bytes = |choice: &Choice| plan.bytes(TransferId(choice.transfer));
    order.sort_by_cached_key(|&i| {
        let choice = &choices[i as usize];
        let step = steps[choice.transfer as usize];
        (step, equal.count(choice.set), u64::MAX - bytes(choice), i)
    });
    let mut loads = Loads::new(topology);
    let mut chosen = vec![0; choices.len()];
    for group in order.chunk_by(|&a, &b| {
        let step = |i: u32| steps[choices[i as usize].transfer as usize];
        step(a) == step(b)
    }) {
        loads.begin();
        for &i in group {
            let choice = &choices[i as usize];
            let bytes = bytes(choice);
            let paths = 0..equal.count(choice.set);
            let best = paths.min_by_key(|&path| loads.cost(equal.middle(choice.set, path), bytes));
            let best = best.unwrap_or(0);
            loads.add(equal.middle(choice.set, best), bytes);
            chosen[i as usize] = best as u32;
        }
    }
    chosen
}

/// What links and switches carry.
struct Loads<'a> {
    topology: &'a Topology,
    beta: Vec<Beta>,
    /// In this step, where `seen` says so.
    now: Vec<Time>,
    seen: Vec<u32>,
    step: u32,
    all: Vec<Time>,
    /// By device, in bytes.
    switches: Vec<u64>,
}

impl<'a> Loads<'a> {
    fn new(topology: &'a Topology) -> Self {
        let links = topology.links();
        Self {
            topology,
            beta: links.iter().map(|link| link.bandwidth.beta()).collect(),
            now: vec![Time::ZERO; links.len()],
            seen: vec![0; links.len()],
            step: 0,
            all: vec![Time::ZERO; links.len()],
            switches: vec![0; topology.device_count()],
        }
    }

    fn begin(&mut self) {
        self.step += 1;
    }

    fn now(&self, link: LinkId) -> Time {
        if self.seen[link.index()] == self.step {
            self.now[link.index()]
        } else {
            Time::ZERO
        }
    }

    /// What a path would carry: the busiest link and all links in this step, the same in all steps, and the
    /// busiest switch.
    fn cost(&self, path: &[LinkId], bytes: u64) -> (Time, Time, Time, Time, u64) {
        let mut cost = (Time::ZERO, Time::ZERO, Time::ZERO, Time::ZERO, 0);
        for &link in path {
            let own = self.beta[link.index()].transmission(bytes);
            let (now, all) = (self.now(link) + own, self.all[link.index()] + own);
            cost.0 = cost.0.max(now);
            cost.1 = cost.1 + now;
            cost.2 = cost.2.max(all);
            cost.3 = cost.3 + all;
            cost.4 = cost.4.max(self.switches[self.topology.link(link).dst.index()]);
        }
        cost
    }

    fn add(&mut self, path: &[LinkId], bytes: u64) {
        for &link in path {
            let own = self.beta[link.index()].transmission(bytes);
            self.now[link.index()] = self.now(link) + own;
            self.seen[link.index()] = self.step;
            self.all[link.index()] = self.all[link.index()] + own;
            self.switches[self.topology.link(link).dst.index()] += bytes;
        }
    }
}

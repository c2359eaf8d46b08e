//! Schedule consistency: NPUs that each choose for themselves can wait for each other for ever,
//! those that keep to the order of a plan cannot.
//!
//! # Source
//! Themis, section 4.6.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::*;
use crate::units::Seed;

/// An operation: part of a lane, stage.
type Operation = (usize, usize);

/// Operations in the order in which an NPU begins them on a rail, by NPU and rail.
type Orders = BTreeMap<(usize, usize), Vec<Operation>>;

/// What the model knows of a schedule.
struct Network {
    sizes: Vec<usize>,
    /// The rail of each stage of each part.
    rails: Vec<Vec<usize>>,
}

impl Network {
    fn new(schedule: &Schedule) -> Self {
        let rails = |lane: &Lane| -> Vec<usize> { lane.rails().map(usize::from).collect() };
        let lanes = schedule.lanes.iter();
        let parts = lanes.flat_map(|lane| std::iter::repeat_n(rails(lane), PARTS));
        Self {
            sizes: schedule
                .rails
                .iter()
                .map(|rail| rail.size as usize)
                .collect(),
            rails: parts.collect(),
        }
    }

    fn npus(&self) -> usize {
        self.sizes.iter().product()
    }

    fn stride(&self, rail: usize) -> usize {
        self.sizes[..rail].iter().product()
    }

    fn coordinate(&self, npu: usize, rail: usize) -> usize {
        npu / self.stride(rail) % self.sizes[rail]
    }

    /// The NPUs that work together along a rail.
    fn group(&self, npu: usize, rail: usize) -> Vec<usize> {
        let base = npu - self.coordinate(npu, rail) * self.stride(rail);
        let members = 0..self.sizes[rail];
        members.map(|i| base + i * self.stride(rail)).collect()
    }

    /// Reads the orders back from a plan's transfers.
    fn orders(&self, plan: &Plan) -> Orders {
        let mut orders = Orders::new();
        for i in 0..plan.len() {
            let (src, dst) = (plan.src()[i] as usize, plan.dst()[i] as usize);
            let differs = |&rail: &usize| self.coordinate(src, rail) != self.coordinate(dst, rail);
            let moved: Vec<usize> = (0..self.sizes.len()).filter(differs).collect();
            let [rail] = moved[..] else {
                panic!("transfer {i} goes along {moved:?}");
            };
            // A lane passes each rail once to sum and once to copy.
            let part = plan.chunk()[i] as usize / self.npus();
            let sums = plan.op()[i] == Op::Reduce as u8;
            let stages = 0..self.rails[part].len();
            let half = self.sizes.len();
            let stage = stages
                .filter(|&stage| (stage < half) == sums)
                .find(|&stage| self.rails[part][stage] == rail);
            let operation = (part, stage.expect("a stage along the rail"));
            let order = orders.entry((src, rail)).or_default();
            if !order.contains(&operation) {
                order.push(operation);
            }
        }
        orders
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// An NPU has what an operation needs.
    Available(usize, Operation),
    /// An operation has ended in the group of an NPU.
    Done(usize, Operation),
}

/// NPUs that run operations, each of which begins when all NPUs of its group have begun it.
struct Machine<'a> {
    network: &'a Network,
    /// `None` where each NPU takes what is available first.
    orders: Option<&'a Orders>,
    seed: Seed,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    available: BTreeMap<(usize, usize), VecDeque<Operation>>,
    /// By NPU and rail: what it is at, or waits in.
    busy: BTreeMap<(usize, usize), Operation>,
    log: Orders,
}

impl<'a> Machine<'a> {
    fn new(network: &'a Network, orders: Option<&'a Orders>, seed: u64) -> Self {
        Self {
            network,
            orders,
            seed: Seed(seed),
            events: BinaryHeap::new(),
            available: BTreeMap::new(),
            busy: BTreeMap::new(),
            log: Orders::new(),
        }
    }

    /// What each NPU ended on each rail, in order; `None` for a deadlock.
    fn run(mut self) -> Option<Orders> {
        for npu in 0..self.network.npus() {
            for part in 0..self.network.rails.len() {
                self.will_be_available(npu, (part, 0), 0);
            }
        }
        while let Some(Reverse((now, event))) = self.events.pop() {
            match event {
                Event::Available(npu, operation) => {
                    let rail = self.network.rails[operation.0][operation.1];
                    let queue = self.available.entry((npu, rail)).or_default();
                    queue.push_back(operation);
                    self.begin(npu, rail, now);
                }
                Event::Done(npu, operation) => self.end(npu, operation, now),
            }
        }
        self.busy.is_empty().then_some(self.log)
    }

    /// After a delay that nobody foresees.
    fn will_be_available(&mut self, npu: usize, operation: Operation, now: u64) {
        let delay = self.seed.below(20) as u64;
        let event = Event::Available(npu, operation);
        self.events.push(Reverse((now + delay, event)));
    }

    fn begin(&mut self, npu: usize, rail: usize, now: u64) {
        let here = (npu, rail);
        if self.busy.contains_key(&here) {
            return;
        }
        let Some(queue) = self.available.get_mut(&here) else {
            return;
        };
        let next = match self.orders {
            None => 0,
            Some(orders) => {
                let done = self.log.get(&here).map_or(0, Vec::len);
                let turn = orders[&here].get(done);
                let Some(next) = queue.iter().position(|operation| Some(operation) == turn) else {
                    return;
                };
                next
            }
        };
        let Some(operation) = queue.remove(next) else {
            return;
        };
        self.busy.insert(here, operation);
        let group = self.network.group(npu, rail);
        if group
            .iter()
            .all(|&other| self.busy.get(&(other, rail)) == Some(&operation))
        {
            let time = 5 + self.seed.below(10) as u64;
            let event = Event::Done(npu, operation);
            self.events.push(Reverse((now + time, event)));
        }
    }

    fn end(&mut self, npu: usize, operation: Operation, now: u64) {
        let (part, stage) = operation;
        let rail = self.network.rails[part][stage];
        for member in self.network.group(npu, rail) {
            self.busy.remove(&(member, rail));
            self.log.entry((member, rail)).or_default().push(operation);
            if stage + 1 < self.network.rails[part].len() {
                self.will_be_available(member, (part, stage + 1), now);
            }
            self.begin(member, rail, now);
        }
    }
}

/// A schedule of an all-reduce on 4 x 2 x 3 NPUs, and its plan.
fn example(algorithm: Algorithm) -> (Schedule, Plan) {
    let gigabyte = 1_000_000_000;
    let topology = topology(&[
        dimension(Ring, 4, 3 * gigabyte, 500_000),
        dimension(Switch, 2, 5 * gigabyte, 300_000),
        dimension(FullyConnected, 3, 2 * gigabyte, 900_000),
    ]);
    let collective = Collective::among_all(AllReduce, &topology, 48_000_000).unwrap();
    let schedule = scheduled(algorithm, &topology, &collective, 8);
    let plan = plan_of(&schedule, &topology, &collective, MEMORY).unwrap();
    (schedule, plan)
}

const ALGORITHMS: [Algorithm; 3] = [
    Algorithm::ThemisFifo,
    Algorithm::Themis,
    Algorithm::MultirailOptimal,
];

#[test]
fn a_plan_has_the_same_order_for_every_npu() {
    for algorithm in ALGORITHMS {
        let (schedule, plan) = example(algorithm);
        let network = Network::new(&schedule);
        let orders = network.orders(&plan);
        assert_eq!(orders.len(), 24 * 3);
        // That of the schedule: by first steps.
        let stages = schedule.stages();
        let served = schedule
            .timeline
            .served
            .iter()
            .filter(|(_, step)| *step == 0);
        let begun: Vec<Operation> = served
            .map(|&(task, _)| (task as usize / stages, task as usize % stages))
            .collect();
        for ((npu, rail), order) in &orders {
            let expected = begun
                .iter()
                .filter(|&&(part, stage)| network.rails[part][stage] == *rail);
            assert!(order.iter().eq(expected), "{algorithm} {npu} {rail}");
        }
    }
}

#[test]
fn npus_that_choose_for_themselves_wait_for_each_other() {
    for algorithm in ALGORITHMS {
        let network = Network::new(&example(algorithm).0);
        let runs = (0..50).map(|seed| Machine::new(&network, None, seed).run());
        let deadlocks = runs.filter(Option::is_none).count();
        assert!(deadlocks > 0, "{algorithm}");
    }
}

#[test]
fn npus_that_keep_to_the_plan_never_wait_for_each_other() {
    for algorithm in ALGORITHMS {
        let (schedule, plan) = example(algorithm);
        let network = Network::new(&schedule);
        let orders = network.orders(&plan);
        for seed in 0..80 {
            let run = Machine::new(&network, Some(&orders), seed).run();
            let log = run.unwrap_or_else(|| panic!("{algorithm}: deadlock, seed {seed}"));
            assert_eq!(log, orders, "{algorithm}, seed {seed}");
        }
    }
}

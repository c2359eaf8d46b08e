//! Dimension fidelity against an oracle that scans lists, and what holds of any of its runs.

use proptest::prelude::*;

use super::*;
use crate::topology::{LatencyModel, Switching};
use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
use DimensionKind::{FullyConnected, Ring, Switch};

/// A dimension, and what its steps send.
#[derive(Clone, Debug)]
struct Dim {
    kind: DimensionKind,
    size: u64,
    /// Picoseconds that a byte takes over all links of an NPU.
    per_byte: u64,
    /// Latency of one link, and links of one step.
    link_ps: u64,
    hops: u64,
    offload: bool,
    /// Blocks in each step of a reduce-scatter.
    steps: Vec<u64>,
}

impl Dim {
    fn dimension(&self) -> Dimension {
        let bandwidth = 1_000_000_000_000 / self.per_byte;
        let links = match self.kind {
            Ring if self.size > 2 => 2,
            FullyConnected => self.size - 1,
            _ => 1,
        };
        assert_eq!(bandwidth % links, 0, "{self:?}");
        Dimension {
            offload: self.offload,
            ..dimension(self.kind, self.size as u32, bandwidth / links, self.link_ps)
        }
    }

    fn is_both_ways(&self, parts: usize) -> bool {
        self.kind == Ring && self.size > 2 && parts == 2
    }
}

/// A step of a task is sent: server, start, how long.
type Service = (usize, u64, u64);

/// One pass of one part of a lane.
struct Task {
    server: usize,
    held: u64,
    /// Time to send each step.
    times: Vec<u64>,
    done: usize,
    /// Its rank among those that became ready, and among those that began.
    ready: Option<usize>,
    began: Option<usize>,
    is_waiting: bool,
}

/// A message on its way.
struct Message {
    arrival: u64,
    server: usize,
    task: usize,
}

/// The obvious simulation: everything is looked for in lists, in whole picoseconds.
struct Oracle {
    model: Model,
    stages: usize,
    tasks: Vec<Task>,
    /// Of each server: latency of a link, links, when the first is free, when the one behind is.
    servers: Vec<(u64, u64, u64, u64)>,
    under_way: Vec<Message>,
    out: Timeline,
    services: Vec<Service>,
}

impl Oracle {
    fn new(dims: &[Dim], lanes: &[Lane], parts: usize, model: Model) -> Self {
        let mut servers = Vec::new();
        let mut first = Vec::new();
        for dim in dims {
            first.push(servers.len());
            let count = if dim.offload || dim.is_both_ways(parts) {
                2
            } else {
                1
            };
            servers.resize(servers.len() + count, (dim.link_ps, dim.hops, 0, 0));
        }
        let mut tasks = Vec::new();
        for lane in lanes {
            for part in 0..parts {
                let mut held = lane.bytes;
                for (i, rail) in lane.rails().enumerate() {
                    let dim = &dims[usize::from(rail)];
                    let gathers = i >= lane.reduce_scatter.len();
                    if gathers && i == 0 {
                        held = lane.bytes / dims.iter().map(|dim| dim.size).product::<u64>();
                    }
                    let whole = if gathers { held * dim.size } else { held };
                    // Both ways round a ring together have the bandwidth of the rail.
                    let block = whole / dim.size * dim.per_byte;
                    let block = if dim.is_both_ways(parts) {
                        block
                    } else {
                        block / parts as u64
                    };
                    let mut times: Vec<u64> = dim.steps.iter().map(|n| n * block).collect();
                    if gathers {
                        times.reverse();
                    }
                    let second = dim.is_both_ways(parts) && part == 1 || dim.offload && gathers;
                    tasks.push(Task {
                        server: first[usize::from(rail)] + usize::from(second),
                        held,
                        times,
                        done: 0,
                        ready: None,
                        began: None,
                        is_waiting: false,
                    });
                    held = if gathers { whole } else { whole / dim.size };
                }
            }
        }
        let out = Timeline {
            start: vec![0; tasks.len()],
            end: vec![0; tasks.len()],
            ..Timeline::default()
        };
        Self {
            model,
            stages: lanes[0].len(),
            tasks,
            servers,
            under_way: Vec::new(),
            out,
            services: Vec::new(),
        }
    }

    fn run(mut self, policy: Policy) -> (Timeline, Vec<Service>) {
        for task in (0..self.tasks.len()).step_by(self.stages) {
            self.make_ready(task);
        }
        let mut now = 0;
        loop {
            let arrival = (0..self.under_way.len())
                .min_by_key(|&i| (self.under_way[i].arrival, self.under_way[i].server));
            let server = (0..self.servers.len())
                .filter(|&s| {
                    self.tasks
                        .iter()
                        .any(|task| task.is_waiting && task.server == s)
                })
                .min_by_key(|&s| (now.max(self.servers[s].2), s));
            let arrives = arrival.map_or(u64::MAX, |i| self.under_way[i].arrival);
            let serves = server.map_or(u64::MAX, |s| now.max(self.servers[s].2));
            match (arrival, server) {
                (Some(i), _) if arrives <= serves => {
                    now = arrives;
                    let message = self.under_way.remove(i);
                    self.arrive(message.task, now);
                }
                (_, Some(s)) => {
                    now = serves;
                    self.serve(s, now, policy);
                }
                _ => return (self.out, self.services),
            }
        }
    }

    fn make_ready(&mut self, task: usize) {
        let before = self
            .tasks
            .iter()
            .filter(|task| task.ready.is_some())
            .count();
        self.tasks[task].ready = Some(before);
        self.tasks[task].is_waiting = true;
    }

    fn arrive(&mut self, task: usize, now: u64) {
        if self.tasks[task].done < self.tasks[task].times.len() {
            self.tasks[task].is_waiting = true;
            return;
        }
        self.out.end[task] = now;
        self.out.finish = self.out.finish.max(now);
        if (task + 1) % self.stages != 0 {
            self.make_ready(task + 1);
        }
    }

    fn serve(&mut self, server: usize, now: u64, policy: Policy) {
        let began = self
            .tasks
            .iter()
            .filter(|task| task.began.is_some())
            .count();
        let waiting = (0..self.tasks.len())
            .filter(|&t| self.tasks[t].is_waiting && self.tasks[t].server == server);
        // What has begun first, in the order in which it began.
        let turn = |&t: &usize| {
            let task = &self.tasks[t];
            let held = if policy == Policy::Fifo { 0 } else { task.held };
            match task.began {
                Some(rank) => (0, rank as u64, 0),
                None => (1, held, task.ready.unwrap()),
            }
        };
        let next = waiting.min_by_key(turn).unwrap();
        let task = &mut self.tasks[next];
        if task.began.is_none() {
            task.began = Some(began);
            self.out.start[next] = now;
        }
        let time = task.times[task.done];
        self.out.served.push((next as u32, task.done as u32));
        task.done += 1;
        task.is_waiting = false;
        let (link_ps, hops, free, behind) = &mut self.servers[server];
        let mut occupied = time;
        if self.model.latency == LatencyModel::Occupying {
            occupied += *link_ps * *hops;
        }
        *free = now + occupied;
        let arrival = if *hops == 2 && self.model.switching == Switching::StoreAndForward {
            let at_switch = now + time + *link_ps;
            let out = at_switch.max(*behind) + time;
            *behind = out;
            out + *link_ps
        } else {
            now + time + *link_ps * *hops
        };
        self.services.push((server, now, occupied));
        self.under_way.push(Message {
            arrival,
            server,
            task: next,
        });
    }
}

fn dims() -> impl Strategy<Value = Vec<Dim>> {
    // Sizes and, by hand, the blocks in each step of a reduce-scatter.
    let shapes = prop_oneof![
        Just((Ring, 2, vec![1])),
        Just((Ring, 3, vec![1, 1])),
        Just((Ring, 4, vec![1, 1, 1])),
        Just((Ring, 5, vec![1, 1, 1, 1])),
        Just((Switch, 2, vec![1])),
        // Halves of two and one: two blocks come to the one, then one each way.
        Just((Switch, 3, vec![2, 1])),
        Just((Switch, 4, vec![2, 1])),
        Just((Switch, 8, vec![4, 2, 1])),
        Just((FullyConnected, 2, vec![1])),
        Just((FullyConnected, 3, vec![2])),
        Just((FullyConnected, 6, vec![5])),
    ];
    let per_byte = prop_oneof![Just(10u64), Just(20), Just(40), Just(100), Just(200)];
    let latency = prop_oneof![Just(0u64), Just(500), 0u64..100_000];
    let one = (shapes, per_byte, latency, 0..4).prop_map(|(shape, per_byte, link_ps, offload)| {
        let (kind, size, steps) = shape;
        let offload = kind == Switch && offload == 0;
        Dim {
            kind,
            size,
            per_byte,
            link_ps,
            hops: if kind == Switch { 2 } else { 1 },
            offload,
            steps: if offload { vec![size] } else { steps },
        }
    });
    proptest::collection::vec(one, 1..4)
}

/// Lanes of random sizes and orders, reduce-scatter and all-gather apart.
fn lanes(dims: &[Dim], kind: CollectiveKind, drawn: &[(u64, usize, usize)]) -> Vec<Lane> {
    let npus: u64 = dims.iter().map(|dim| dim.size).product();
    let orders = orders(dims.len() as u8);
    let order = |i: usize, is_none: bool| match is_none {
        true => Vec::new(),
        false => orders[i % orders.len()].clone(),
    };
    let lane = |&(units, sums, copies): &(u64, usize, usize)| Lane {
        bytes: 2 * npus * units,
        reduce_scatter: order(sums, kind == AllGather),
        all_gather: order(copies, kind == ReduceScatter),
    };
    drawn.iter().map(lane).collect()
}

fn kinds() -> impl Strategy<Value = CollectiveKind> {
    prop_oneof![Just(AllReduce), Just(ReduceScatter), Just(AllGather)]
}

fn models() -> impl Strategy<Value = Model> {
    use LatencyModel::{Occupying, Overlapped};
    use Switching::{CutThrough, StoreAndForward};
    let switching = prop_oneof![Just(CutThrough), Just(StoreAndForward)];
    let latency = prop_oneof![Just(Overlapped), Just(Occupying)];
    (switching, latency).prop_map(|(switching, latency)| Model { switching, latency })
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn simulation_is_the_obvious_one(
        dims in dims(),
        kind in kinds(),
        drawn in proptest::collection::vec((0u64..60, 0usize..6, 0usize..6), 1..12),
        parts in 1usize..3,
        policy in prop_oneof![Just(Policy::Fifo), Just(Policy::SmallestFirst)],
        model in models(),
    ) {
        let dimensions: Vec<Dimension> = dims.iter().map(Dim::dimension).collect();
        let rails = rails(&dimensions);
        let lanes = lanes(&dims, kind, &drawn);
        let found = simulate(&rails, &lanes, parts, policy, model);
        let oracle = Oracle::new(&dims, &lanes, parts, model);
        let mut work = vec![0; oracle.servers.len()];
        for task in &oracle.tasks {
            let latency = match model.latency {
                LatencyModel::Overlapped => 0,
                LatencyModel::Occupying => {
                    let (link_ps, hops, ..) = oracle.servers[task.server];
                    link_ps * hops * task.times.len() as u64
                }
            };
            work[task.server] += task.times.iter().sum::<u64>() + latency;
        }
        let stages = oracle.stages;
        let (expected, services) = oracle.run(policy);
        prop_assert_eq!(&found, &expected);

        // A lane is in one place at a time, and nothing is lost.
        for task in 0..found.start.len() {
            prop_assert!(found.start[task] <= found.end[task]);
            if task % stages != 0 {
                prop_assert!(found.end[task - 1] <= found.start[task]);
            }
        }
        prop_assert_eq!(found.finish, found.end.iter().copied().max().unwrap());
        // Each server does all of its work, one step at a time.
        let mut busy = vec![0; work.len()];
        let mut until = vec![0; work.len()];
        for (server, start, time) in services {
            prop_assert!(until[server] <= start);
            until[server] = start + time;
            busy[server] += time;
        }
        prop_assert_eq!(busy, work);
    }

    #[test]
    fn a_schedule_run_again_is_the_same(
        dims in dims(),
        kind in kinds(),
        drawn in proptest::collection::vec((0u64..60, 0usize..6, 0usize..6), 1..12),
        policy in prop_oneof![Just(Policy::Fifo), Just(Policy::SmallestFirst)],
        model in models(),
        other in models(),
    ) {
        let dimensions: Vec<Dimension> = dims.iter().map(Dim::dimension).collect();
        let lanes = lanes(&dims, kind, &drawn);
        let schedule = Schedule::new(kind, rails(&dimensions), lanes, policy, model);
        prop_assert_eq!(schedule.simulate(model), schedule.timeline.clone());
        // In another model the order is kept, and nobody begins before what is needed has come.
        let again = schedule.simulate(other);
        prop_assert_eq!(&again.served, &schedule.timeline.served);
        for task in 0..again.start.len() {
            if task % schedule.stages() != 0 {
                prop_assert!(again.end[task - 1] <= again.start[task]);
            }
        }
    }
}

/// One lane of an all-reduce, alone: its stages one after the other.
#[test]
fn a_lane_alone_takes_the_sum_of_its_steps() {
    let rails = rails(&[
        dimension(Ring, 4, 1_000_000_000, 1_000),
        dimension(Switch, 8, 1_000_000_000, 2_000),
    ]);
    let lanes = fixed_order(&rails, AllReduce, 32_000, 1);
    let run = |parts, model| simulate(&rails, &lanes, parts, Policy::Fifo, model).finish;
    // 2 (3 x (4 us + 1 ns) + 8000 B x 7/8 at 1 GB/s + 3 x 4 ns); a byte takes 500 ps on the ring.
    let once = 2 * (3 * (4_000_000 + 1_000) + 7_000_000 + 3 * 4_000);
    assert_eq!(run(1, Model::default()), once);
    let stored = Model {
        switching: Switching::StoreAndForward,
        ..Model::default()
    };
    assert_eq!(run(1, stored), once + 2 * 7_000_000);
}

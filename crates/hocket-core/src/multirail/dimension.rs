//! Dimension fidelity: each rail serves the steps of lanes, one message at a time.
//!
//! All NPUs do the same at the same time on a product topology, so one of them stands for all, and a
//! rail is one server (two on a ring, one each way, and where switches sum: up and down). A step
//! occupies its server for bytes / bandwidth and its message arrives the step's latency later;
//! meanwhile the server sends for others. Work that has begun goes before work that has not.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Lane, Rail};
use crate::collective::pattern::Pass;
use crate::topology::{DimensionKind, LatencyModel, Switching};

/// Which of the operations that are ready a rail begins next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The one that has been ready longest.
    Fifo,
    /// The one before which NPUs hold the fewest bytes, then the one ready longest.
    ///
    /// # Source
    /// Themis, section 4.3.
    SmallestFirst,
}

/// How messages cross links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Crossing of switches. Cut-through by default: a step's latency is that of its whole way.
    pub switching: Switching,
    /// Overlapped: a server sends while messages are under way. Occupying: it is occupied for the
    /// whole step's latency too.
    pub latency: LatencyModel,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            switching: Switching::CutThrough,
            latency: LatencyModel::Overlapped,
        }
    }
}

/// A step of a task: task, step.
pub type Served = (u32, u32);

/// When the tasks of a schedule run. A task is an operation of one part of a lane; tasks are numbered
/// `(lane x parts + part) x stages + stage`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Timeline {
    /// When each began to send, in picoseconds.
    pub start: Vec<u64>,
    /// When its last message had arrived.
    pub end: Vec<u64>,
    /// Every step in the order in which they were served; that of each server is part of it.
    pub served: Vec<Served>,
    /// When the last task ended.
    pub finish: u64,
}

/// The tasks of lanes, as columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    /// Operations of each lane.
    pub stages: usize,
    pub server: Vec<u8>,
    /// Steps of task t: `first[t]..first[t + 1]`.
    pub first: Vec<u32>,
    /// Time that each step's message takes to send.
    pub time: Vec<u64>,
    /// Bytes that an NPU holds before it.
    pub held: Vec<u64>,
    /// Of each server: from NPU to NPU, and the links crossed.
    pub ways: Vec<(u64, u64)>,
}

/// When a server is free, and when the link behind it (from the switch on) is, its latency left out.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    free: u64,
    behind: u64,
}

/// The first server of each rail, and how many there are in all.
fn servers(rails: &[Rail], parts: usize) -> (Vec<u8>, usize) {
    let mut next = 0;
    let mut first = Vec::with_capacity(rails.len());
    for rail in rails {
        first.push(next as u8);
        next += 1 + usize::from(rail.offload || is_both_ways(rail, parts));
    }
    (first, next)
}

/// Whether each part of a lane goes round a ring its own way, at half of the bandwidth.
fn is_both_ways(rail: &Rail, parts: usize) -> bool {
    parts == 2 && rail.kind == DimensionKind::Ring && rail.size > 2
}

impl Tasks {
    /// The tasks of lanes that travel in one part or two.
    pub fn of(rails: &[Rail], lanes: &[Lane], parts: usize) -> Self {
        let (first_server, count) = servers(rails, parts);
        let mut tasks = Self {
            stages: lanes.first().map_or(0, Lane::len),
            first: vec![0],
            ways: vec![(0, 0); count],
            ..Self::default()
        };
        for (rail, &first) in rails.iter().zip(&first_server) {
            let last = first_server.iter().copied().find(|&other| other > first);
            let range = usize::from(first)..last.map_or(count, usize::from);
            tasks.ways[range].fill((rail.step_latency.as_ps(), rail.hops()));
        }
        for lane in lanes {
            for part in 0..parts {
                for stage in lane.stages(rails) {
                    let rail = &rails[usize::from(stage.rail)];
                    let split = is_both_ways(rail, parts);
                    let second =
                        split && part == 1 || rail.offload && stage.pass == Pass::AllGather;
                    tasks
                        .server
                        .push(first_server[usize::from(stage.rail)] + u8::from(second));
                    tasks.held.push(stage.held as u64);
                    let share = if split { 1.0 } else { 1.0 / parts as f64 };
                    let block = stage.occupied_ps(rails) * share / f64::from(rail.blocks());
                    let time = |&blocks: &u32| (block * f64::from(blocks)).round() as u64;
                    match stage.pass {
                        Pass::ReduceScatter => tasks.time.extend(rail.steps().iter().map(time)),
                        Pass::AllGather => tasks.time.extend(rail.steps().iter().rev().map(time)),
                    }
                    tasks.first.push(tasks.time.len() as u32);
                }
            }
        }
        tasks
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.server.len()
    }

    fn steps(&self, task: usize) -> u32 {
        self.first[task + 1] - self.first[task]
    }

    /// Sends a step's message at a time; gives when it arrives.
    fn send(&self, task: usize, step: u32, now: u64, model: Model, port: &mut Port) -> u64 {
        let time = self.time[(self.first[task] + step) as usize];
        let (latency, hops) = self.ways[usize::from(self.server[task])];
        port.free = now + time;
        if model.latency == LatencyModel::Occupying {
            port.free += latency;
        }
        let mut out = now + time;
        if model.switching == Switching::StoreAndForward {
            // All links after the first are alike: what holds up one holds up the next no more.
            for _ in 1..hops {
                out = out.max(port.behind) + time;
            }
            port.behind = out;
        }
        out + latency
    }
}

/// Simulates lanes on rails.
///
/// # Complexity
/// O(steps x log tasks): no more for many NPUs than for few, but for the steps of rings.
pub fn simulate(
    rails: &[Rail],
    lanes: &[Lane],
    parts: usize,
    policy: Policy,
    model: Model,
) -> Timeline {
    let tasks = Tasks::of(rails, lanes, parts);
    let key: Vec<u64> = match policy {
        Policy::Fifo => vec![0; tasks.len()],
        Policy::SmallestFirst => tasks.held.clone(),
    };
    let mut timeline = Timeline::default();
    Desk::default().run(&tasks, &key, model, &mut timeline);
    timeline
}

/// The state of a simulation, kept between runs so that a search allocates nothing.
#[derive(Default)]
pub(crate) struct Desk {
    /// Tasks that are ready and have not begun, by key, then by when they became ready.
    fresh: Vec<BinaryHeap<Reverse<(u64, u32, u32)>>>,
    /// Tasks that have begun and whose next step is ready, by when they began.
    going: Vec<BinaryHeap<Reverse<(u32, u32)>>>,
    ports: Vec<Port>,
    /// Arrivals: time, task.
    arrivals: BinaryHeap<Reverse<(u64, u32)>>,
    /// Next step of each task, and its place among those that began or became ready.
    step: Vec<u32>,
    begun: Vec<u32>,
}

impl Desk {
    /// Runs tasks; those with the least key begin first where several are ready.
    pub fn run(&mut self, tasks: &Tasks, key: &[u64], model: Model, out: &mut Timeline) {
        self.clear(tasks);
        out.start.clear();
        out.start.resize(tasks.len(), 0);
        out.end.clear();
        out.end.resize(tasks.len(), 0);
        out.served.clear();
        out.finish = 0;
        let mut order = 0;
        for task in (0..tasks.len()).step_by(tasks.stages.max(1)) {
            self.arrivals.push(Reverse((0, task as u32)));
        }
        let mut now = 0;
        loop {
            while let Some(&Reverse((time, task))) = self.arrivals.peek() {
                if time > now {
                    break;
                }
                self.arrivals.pop();
                self.arrive(tasks, key, task, time, &mut order, out);
            }
            let mut next = u64::MAX;
            for server in 0..self.ports.len() {
                if self.ports[server].free <= now {
                    self.serve(tasks, server, now, model, &mut order, out);
                }
                if self.ports[server].free > now && self.is_wanted(server) {
                    next = next.min(self.ports[server].free);
                }
            }
            if let Some(&Reverse((time, _))) = self.arrivals.peek() {
                next = next.min(time);
            }
            if next == u64::MAX {
                break;
            }
            now = next;
        }
    }

    fn clear(&mut self, tasks: &Tasks) {
        let servers = tasks.ways.len();
        self.fresh.resize_with(servers, BinaryHeap::new);
        self.going.resize_with(servers, BinaryHeap::new);
        self.ports.clear();
        self.ports.resize(servers, Port::default());
        self.step.clear();
        self.step.resize(tasks.len(), 0);
        self.begun.clear();
        self.begun.resize(tasks.len(), 0);
    }

    fn is_wanted(&self, server: usize) -> bool {
        !self.going[server].is_empty() || !self.fresh[server].is_empty()
    }

    /// A message has arrived: the task's next step is ready, or the task is over and the next one is.
    fn arrive(
        &mut self,
        tasks: &Tasks,
        key: &[u64],
        task: u32,
        now: u64,
        order: &mut u32,
        out: &mut Timeline,
    ) {
        let i = task as usize;
        let step = self.step[i];
        let server = usize::from(tasks.server[i]);
        if step == 0 {
            *order += 1;
            self.fresh[server].push(Reverse((key[i], *order, task)));
        } else if step < tasks.steps(i) {
            self.going[server].push(Reverse((self.begun[i], task)));
        } else {
            out.end[i] = now;
            out.finish = out.finish.max(now);
            if (i + 1) % tasks.stages != 0 {
                self.arrive(tasks, key, task + 1, now, order, out);
            }
        }
    }

    /// A free server takes the next step that it should, if any is ready.
    fn serve(
        &mut self,
        tasks: &Tasks,
        server: usize,
        now: u64,
        model: Model,
        order: &mut u32,
        out: &mut Timeline,
    ) {
        let task = match self.going[server].pop() {
            Some(Reverse((_, task))) => task,
            None => {
                let Some(Reverse((_, _, task))) = self.fresh[server].pop() else {
                    return;
                };
                *order += 1;
                self.begun[task as usize] = *order;
                out.start[task as usize] = now;
                task
            }
        };
        let i = task as usize;
        let step = self.step[i];
        let arrival = tasks.send(i, step, now, model, &mut self.ports[server]);
        out.served.push((task, step));
        self.step[i] += 1;
        self.arrivals.push(Reverse((arrival, task)));
    }
}

/// Runs a schedule's steps again in the order in which they were served, in another model.
///
/// # Complexity
/// O(steps).
pub(crate) fn replay(tasks: &Tasks, served: &[Served], model: Model) -> Timeline {
    let mut out = Timeline {
        start: vec![0; tasks.len()],
        end: vec![0; tasks.len()],
        served: served.to_vec(),
        finish: 0,
    };
    let mut ports = vec![Port::default(); tasks.ways.len()];
    for &(task, step) in served {
        let i = task as usize;
        // What came before it in the lane stands in `end` by now.
        let ready = match step {
            0 if i % tasks.stages == 0 => 0,
            0 => out.end[i - 1],
            _ => out.end[i],
        };
        let server = usize::from(tasks.server[i]);
        let start = ready.max(ports[server].free);
        if step == 0 {
            out.start[i] = start;
        }
        out.end[i] = tasks.send(i, step, start, model, &mut ports[server]);
        out.finish = out.finish.max(out.end[i]);
    }
    out
}

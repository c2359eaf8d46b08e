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
    first_server: Vec<u8>,
    parts: usize,
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
        tasks.first_server = first_server;
        tasks.parts = parts;
        for (place, lane) in lanes.iter().enumerate() {
            tasks.set_lane(rails, place, lane);
        }
        tasks
    }

    /// Puts a lane in a place, the next one or one that is taken.
    pub fn set_lane(&mut self, rails: &[Rail], place: usize, lane: &Lane) {
        let mut task = place * self.parts * self.stages;
        if task == self.len() {
            let more = self.parts * self.stages;
            let steps: usize = lane
                .rails()
                .map(|rail| rails[usize::from(rail)].step_count())
                .sum();
            self.server.resize(task + more, 0);
            self.held.resize(task + more, 0);
            self.first.resize(task + more + 1, 0);
            self.time.resize(self.time.len() + self.parts * steps, 0);
        }
        let mut at = self.first[task] as usize;
        for part in 0..self.parts {
            for stage in lane.stages(rails) {
                let rail = &rails[usize::from(stage.rail)];
                let split = is_both_ways(rail, self.parts);
                let second = split && part == 1 || rail.offload && stage.pass == Pass::AllGather;
                self.server[task] = self.first_server[usize::from(stage.rail)] + u8::from(second);
                self.held[task] = stage.held as u64;
                let share = if split { 1.0 } else { 1.0 / self.parts as f64 };
                let block = stage.occupied_ps(rails) * share / f64::from(rail.blocks());
                let steps = rail.steps();
                for step in 0..steps.len() {
                    let blocks = match stage.pass {
                        Pass::ReduceScatter => steps[step],
                        Pass::AllGather => steps[steps.len() - 1 - step],
                    };
                    self.time[at + step] = (block * f64::from(blocks)).round() as u64;
                }
                at += steps.len();
                task += 1;
                self.first[task] = at as u32;
            }
        }
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
    Desk::default().run(&tasks, &key, model)
}

/// The state of a simulation, kept between runs so that a search allocates nothing.
#[derive(Default)]
pub(crate) struct Desk {
    /// Tasks that are ready and have not begun, by key, then by when they became ready.
    fresh: Vec<BinaryHeap<Reverse<(u64, u32, u32)>>>,
    /// Tasks that have begun and whose next step is ready, by when they began.
    going: Vec<BinaryHeap<Reverse<(u32, u32)>>>,
    ports: Vec<Port>,
    /// When the next message of each server arrives, then when each server can serve next; the end of
    /// time where there is no message, or none to serve.
    next: Vec<u64>,
    /// Messages under way from each server: they keep their order.
    under_way: Vec<UnderWay>,
    /// What each server has still to send, in picoseconds.
    rest: Vec<u64>,
    /// Next step of each task, and when it began among all.
    step: Vec<u32>,
    begun: Vec<u32>,
    events: u32,
    /// When each server is done at the earliest, their sum, and the latest.
    done: Vec<u64>,
    sum_done: u64,
    last_done: u64,
    /// Steps served since it was made.
    pub served: u64,
}

/// What a run is to note.
trait Notes {
    fn start(&mut self, task: usize, now: u64);
    fn served(&mut self, task: u32, step: u32);
    fn end(&mut self, task: usize, now: u64);
}

impl Notes for Timeline {
    fn start(&mut self, task: usize, now: u64) {
        self.start[task] = now;
    }

    fn served(&mut self, task: u32, step: u32) {
        self.served.push((task, step));
    }

    fn end(&mut self, task: usize, now: u64) {
        self.end[task] = now;
        self.finish = self.finish.max(now);
    }
}

/// The finish alone.
struct Finish(u64);

impl Notes for Finish {
    fn start(&mut self, _: usize, _: u64) {}
    fn served(&mut self, _: u32, _: u32) {}
    fn end(&mut self, _: usize, now: u64) {
        self.0 = self.0.max(now);
    }
}

impl Desk {
    /// Runs tasks; those with the least key begin first where several are ready.
    pub fn run(&mut self, tasks: &Tasks, key: &[u64], model: Model) -> Timeline {
        let mut out = Timeline {
            start: vec![0; tasks.len()],
            end: vec![0; tasks.len()],
            served: Vec::with_capacity(tasks.time.len()),
            finish: 0,
        };
        self.go(tasks, key, model, u64::MAX, &mut out);
        out
    }

    /// When tasks finish, and a little of each server's idle time: what a search makes less. `None` as
    /// soon as it is sure to be more than `limit`.
    pub fn cost_within(&mut self, tasks: &Tasks, model: Model, limit: u64) -> Option<u64> {
        let mut finish = Finish(0);
        if !self.go(tasks, &tasks.held, model, limit, &mut finish) {
            return None;
        }
        self.last_done = self.last_done.max(finish.0);
        Some(self.cost()).filter(|&cost| cost <= limit)
    }

    fn cost(&self) -> u64 {
        const SHARE: u64 = 10;
        self.last_done + self.sum_done / SHARE
    }

    /// A server that begins to serve now has been idle; whether longer than known.
    fn loses(&mut self, server: usize, now: u64) -> bool {
        let done = now + self.rest[server];
        let more = done.saturating_sub(self.done[server]);
        self.sum_done += more;
        self.done[server] += more;
        self.last_done = self.last_done.max(done);
        more > 0
    }

    /// Whether it came to the end. Events are arrivals and services; of those at one time arrivals come
    /// first, then services, each by server.
    fn go(
        &mut self,
        tasks: &Tasks,
        key: &[u64],
        model: Model,
        limit: u64,
        out: &mut impl Notes,
    ) -> bool {
        self.clear(tasks);
        for task in (0..tasks.len()).step_by(tasks.stages.max(1)) {
            self.make_ready(tasks, key, task, 0);
        }
        let servers = self.ports.len();
        loop {
            let (event, now) = earliest(&self.next);
            if now == u64::MAX {
                return true;
            }
            if event < servers {
                let task = self.under_way[event].take();
                self.next[event] = self.under_way[event].next();
                self.arrive(tasks, key, task as usize, now, out);
            } else {
                if self.loses(event - servers, now) && self.cost() > limit {
                    return false;
                }
                self.serve(tasks, event - servers, now, model, out);
            }
        }
    }

    fn clear(&mut self, tasks: &Tasks) {
        let servers = tasks.ways.len();
        self.fresh.resize_with(servers, BinaryHeap::new);
        self.fresh.iter_mut().for_each(BinaryHeap::clear);
        self.going.resize_with(servers, BinaryHeap::new);
        self.going.iter_mut().for_each(BinaryHeap::clear);
        self.under_way.resize_with(servers, UnderWay::default);
        self.under_way.iter_mut().for_each(UnderWay::clear);
        self.next.clear();
        self.next.resize(2 * servers, u64::MAX);
        self.ports.clear();
        self.ports.resize(servers, Port::default());
        self.step.clear();
        self.step.resize(tasks.len(), 0);
        self.begun.clear();
        self.begun.resize(tasks.len(), 0);
        self.events = 0;
        self.rest.clear();
        self.rest.resize(servers, 0);
        for task in 0..tasks.len() {
            let times = &tasks.time[tasks.first[task] as usize..tasks.first[task + 1] as usize];
            self.rest[usize::from(tasks.server[task])] += times.iter().sum::<u64>();
        }
        self.done.clone_from(&self.rest);
        self.sum_done = self.done.iter().sum();
        self.last_done = self.done.iter().copied().max().unwrap_or(0);
    }

    fn make_ready(&mut self, tasks: &Tasks, key: &[u64], task: usize, now: u64) {
        let server = usize::from(tasks.server[task]);
        self.events += 1;
        self.fresh[server].push(Reverse((key[task], self.events, task as u32)));
        self.next[self.ports.len() + server] = now.max(self.ports[server].free);
    }

    /// A message has arrived: the task's next step is ready, or the task is over and the next one is.
    fn arrive(&mut self, tasks: &Tasks, key: &[u64], task: usize, now: u64, out: &mut impl Notes) {
        if self.step[task] < tasks.steps(task) {
            let server = usize::from(tasks.server[task]);
            self.going[server].push(Reverse((self.begun[task], task as u32)));
            self.next[self.ports.len() + server] = now.max(self.ports[server].free);
            return;
        }
        out.end(task, now);
        if (task + 1) % tasks.stages != 0 {
            self.make_ready(tasks, key, task + 1, now);
        }
    }

    /// A free server takes the next step that it should.
    fn serve(
        &mut self,
        tasks: &Tasks,
        server: usize,
        now: u64,
        model: Model,
        out: &mut impl Notes,
    ) {
        let task = match self.going[server].pop() {
            Some(Reverse((_, task))) => task,
            None => {
                let Some(Reverse((_, _, task))) = self.fresh[server].pop() else {
                    self.next[self.ports.len() + server] = u64::MAX;
                    return;
                };
                self.events += 1;
                self.begun[task as usize] = self.events;
                out.start(task as usize, now);
                task
            }
        };
        let i = task as usize;
        let step = self.step[i];
        self.rest[server] -= tasks.time[(tasks.first[i] + step) as usize];
        let arrival = tasks.send(i, step, now, model, &mut self.ports[server]);
        out.served(task, step);
        self.served += 1;
        self.step[i] += 1;
        self.under_way[server].put(arrival, task);
        self.next[server] = self.next[server].min(arrival);
        self.next[self.ports.len() + server] =
            match self.going[server].is_empty() && self.fresh[server].is_empty() {
                true => u64::MAX,
                false => self.ports[server].free,
            };
    }
}

/// The position and value of the least of some times, the first of equals.
fn earliest(times: &[u64]) -> (usize, u64) {
    let mut least = (0, u64::MAX);
    for (i, &time) in times.iter().enumerate() {
        if time < least.1 {
            least = (i, time);
        }
    }
    least
}

/// Messages under way from one server, in the order of arrival.
#[derive(Clone, Debug, Default)]
struct UnderWay {
    head: usize,
    arrivals: Vec<(u64, u32)>,
}

impl UnderWay {
    fn clear(&mut self) {
        self.head = 0;
        self.arrivals.clear();
    }

    fn put(&mut self, arrival: u64, task: u32) {
        self.arrivals.push((arrival, task));
    }

    fn task(&self) -> u32 {
        self.arrivals[self.head].1
    }

    /// When the next arrives; the end of time where there is none.
    fn next(&self) -> u64 {
        self.arrivals.get(self.head).map_or(u64::MAX, |next| next.0)
    }

    fn take(&mut self) -> u32 {
        let task = self.task();
        self.head += 1;
        task
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

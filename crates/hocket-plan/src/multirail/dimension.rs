//! Dimension fidelity: each rail serves the steps of lanes, one message at a time.
//!
//! All NPUs do the same at the same time on a product topology, so one of them stands for all, and a
//! rail is one server (two on a ring, one each way, and where switches sum: up and down). A step
//! occupies its server for bytes / bandwidth and its message arrives the step's latency later;
//! meanwhile the server sends for others. Work that has begun goes before work that has not.
//!
//! A plan's transfer carries consecutive chunks, so a step whose chunks are not consecutive is several messages,
//! one after the other. Each pays for what a link does once a message ([`Tasks::send`]).

use super::dispatch::Dispatcher;
use super::{Lane, Rail};
use crate::collective::pattern::Pass;
use crate::id::{fit, narrow};
use crate::topology::{DimensionKind, LatencyModel, Switching};
use crate::units::whole;

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
    /// Overlapped: a server sends while messages are under way. Occupying: each message occupies a link for
    /// the latency of that link too.
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tasks {
    /// Operations of each lane.
    pub stages: usize,
    /// The server of each task.
    pub server: Vec<u8>,
    /// Steps of task t: `first[t]..first[t + 1]`.
    pub first: Vec<u32>,
    /// Time that each step's messages take to send.
    pub time: Vec<u64>,
    /// How many messages of equal size each step sends on a link.
    messages: Vec<u32>,
    /// Bytes that an NPU holds before it.
    pub held: Vec<u64>,
    /// Of each server: from NPU to NPU, and the links crossed.
    pub ways: Vec<(u64, u64)>,
    first_server: Vec<u8>,
    parts: usize,
}

/// When a server is free, and when each link behind it (from the switch on) is, latencies on the way left out.
#[derive(Clone, Debug, Default)]
pub struct Port {
    /// When the server is free, in picoseconds.
    pub free: u64,
    behind: Vec<u64>,
}

/// An operation of a task that is not a pass of an all-reduce: a server, what NPUs hold before it, and the
/// time that each step's message takes to send.
pub struct Operation {
    /// The server that it takes.
    pub server: u8,
    /// Bytes that an NPU holds before it.
    pub held: u64,
    /// Time that each step's message takes to send, in picoseconds.
    pub steps: Vec<u64>,
}

/// Returns the first server of each rail, and how many there are in all.
pub fn servers(rails: &[Rail], parts: usize) -> (Vec<u8>, usize) {
    let mut next = 0;
    let mut first = Vec::with_capacity(rails.len());
    for rail in rails {
        first.push(fit(next));
        next += 1 + usize::from(rail.offload || is_both_ways(rail, parts));
    }
    (first, next)
}

/// Returns whether each part of a lane goes round a ring its own way, at half of the bandwidth.
fn is_both_ways(rail: &Rail, parts: usize) -> bool {
    parts == 2 && rail.kind == DimensionKind::Ring && rail.size > 2
}

impl Tasks {
    /// Returns the tasks of lanes that travel in one part or two.
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

    /// Returns the tasks of operations in a row, as many in each row. `ways`: of each server, the latency from NPU to
    /// NPU, and the links crossed.
    pub fn of_operations(ways: Vec<(u64, u64)>, rows: &[Vec<Operation>]) -> Self {
        let mut tasks = Self {
            stages: rows.first().map_or(0, Vec::len),
            first: vec![0],
            ways,
            parts: 1,
            ..Self::default()
        };
        for operation in rows.iter().flatten() {
            tasks.server.push(operation.server);
            tasks.held.push(operation.held);
            tasks.time.extend(&operation.steps);
            tasks.first.push(narrow(tasks.time.len()));
        }
        tasks.messages = vec![1; tasks.time.len()];
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
            self.messages.resize(self.time.len(), 1);
        }
        let layout = lane.layout(rails).0;
        let mut at = self.first[task] as usize;
        for part in 0..self.parts {
            for (stage, ranges) in lane.stages(rails).zip(lane.ranges(rails, &layout)) {
                let rail = &rails[usize::from(stage.rail)];
                let split = is_both_ways(rail, self.parts);
                let second = split && part == 1 || rail.offload && stage.pass == Pass::AllGather;
                self.server[task] = self.first_server[usize::from(stage.rail)] + u8::from(second);
                self.held[task] = whole(stage.held);
                let parts = if split { 1 } else { self.parts };
                let steps = rail.steps();
                let mut known = (0, 0);
                for step in 0..steps.len() {
                    let blocks = match stage.pass {
                        Pass::ReduceScatter => steps[step],
                        Pass::AllGather => steps[steps.len() - 1 - step],
                    };
                    if blocks != known.0 {
                        known = (blocks, rail.sending(lane.bytes, blocks, &stage, parts));
                    }
                    self.time[at + step] = known.1;
                    self.messages[at + step] = rail.messages(blocks, ranges);
                }
                at += steps.len();
                task += 1;
                self.first[task] = narrow(at);
            }
        }
    }

    /// Returns how many.
    pub fn len(&self) -> usize {
        self.server.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.server.is_empty()
    }

    /// Returns the number of steps of a task.
    pub fn steps(&self, task: usize) -> u32 {
        self.first[task + 1] - self.first[task]
    }

    /// Returns time that each step's message takes to send, in picoseconds.
    pub fn times(&self, task: usize) -> &[u64] {
        &self.time[self.first[task] as usize..self.first[task + 1] as usize]
    }

    /// Sends a step's messages from a time on; gives when the last one arrives.
    ///
    /// All links of the way are alike. A link is free for the next message when it has sent one, or with
    /// `Occupying` when that has arrived at its end.
    pub fn send(&self, task: usize, step: u32, now: u64, model: Model, port: &mut Port) -> u64 {
        let place = (self.first[task] + step) as usize;
        let (time, messages) = (self.time[place], u64::from(self.messages[place]));
        let (latency, hops) = self.ways[usize::from(self.server[task])];
        let held = match model.latency {
            LatencyModel::Overlapped => 0,
            LatencyModel::Occupying => latency / hops,
        };
        let waits = held * (messages - 1);
        let mut out = now + time + waits;
        port.free = out + held;
        if model.switching == Switching::StoreAndForward && hops > 1 {
            let links = fit::<usize, _>(hops) - 1;
            if port.behind.len() < links {
                port.behind.resize(links, 0);
            }
            // The first of the messages is whole at the end of each link before it goes on; the others follow.
            let one = time.div_ceil(messages);
            let mut first = now + one;
            for behind in &mut port.behind[..links] {
                let start = first.max(*behind);
                out = start + time + waits;
                *behind = out + held;
                first = start + one;
            }
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
    Dispatcher::default().run(&tasks, &key, model)
}

/// Runs a schedule's steps again in the order in which they were served, in another model.
///
/// # Complexity
/// O(steps).
pub(super) fn replay(tasks: &Tasks, served: &[Served], model: Model) -> Timeline {
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
            0 if i.is_multiple_of(tasks.stages) => 0,
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

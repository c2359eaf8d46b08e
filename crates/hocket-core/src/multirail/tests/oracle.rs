//! The obvious simulation at dimension fidelity: it scans lists, in whole picoseconds.

use super::*;
use crate::topology::{LatencyModel, Switching};
use DimensionKind::{FullyConnected, Ring};

/// A dimension, and what its steps send.
#[derive(Clone, Debug)]
pub struct Dim {
    pub kind: DimensionKind,
    pub size: u64,
    /// Picoseconds that a byte takes over all links of an NPU.
    pub per_byte: u64,
    /// Latency of one link, and links of one step.
    pub link_ps: u64,
    pub hops: u64,
    pub offload: bool,
    /// Blocks in each step of a reduce-scatter.
    pub steps: Vec<u64>,
}

impl Dim {
    pub fn dimension(&self) -> Dimension {
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
pub type Service = (usize, u64, u64);

/// One pass of one part of a lane.
pub struct Task {
    pub server: usize,
    held: u64,
    /// Time to send each step.
    pub times: Vec<u64>,
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

/// A simulation in which everything is looked for in lists.
pub struct Oracle {
    model: Model,
    pub stages: usize,
    pub tasks: Vec<Task>,
    /// Of each server: latency of a link, links, when the first is free, when the one behind is.
    pub servers: Vec<(u64, u64, u64, u64)>,
    under_way: Vec<Message>,
    out: Timeline,
    services: Vec<Service>,
}

impl Oracle {
    pub fn new(dims: &[Dim], lanes: &[Lane], parts: usize, model: Model) -> Self {
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

    pub fn run(mut self, policy: Policy) -> (Timeline, Vec<Service>) {
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
        if !(task + 1).is_multiple_of(self.stages) {
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

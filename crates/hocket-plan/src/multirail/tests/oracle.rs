//! The obvious simulation at dimension fidelity: it scans lists, in whole picoseconds.

use super::*;
use crate::id::{fit, narrow};
use crate::topology::{LatencyModel, Switching};
use DimensionKind::{FullyConnected, Ring};

/// A dimension, and what its steps send.
#[derive(Clone, Debug)]
pub(crate) struct Dim {
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
    pub(crate) fn dimension(&self) -> Dimension {
        let bandwidth = 1_000_000_000_000 / self.per_byte;
        let links = match self.kind {
            Ring if self.size > 2 => 2,
            FullyConnected => self.size - 1,
            _ => 1,
        };
        assert_eq!(bandwidth % links, 0, "{self:?}");
        Dimension {
            offload: self.offload,
            ..dimension(self.kind, fit(self.size), bandwidth / links, self.link_ps)
        }
    }

    fn is_both_ways(&self, parts: usize) -> bool {
        self.kind == Ring && self.size > 2 && parts == 2
    }
}

/// A step of a task is sent: server, start, how long.
pub(crate) type Service = (usize, u64, u64);

/// A server: the two links of a way through a switch, or the one link of another.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    /// Latency of one, and how many.
    pub link_ps: u64,
    hops: u64,
    /// When each is free.
    free: [u64; 2],
}

/// One pass of one part of a lane.
pub(crate) struct Task {
    pub server: usize,
    held: u64,
    /// Time to send each step, and its messages, all of one size.
    pub times: Vec<u64>,
    pub messages: Vec<u64>,
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
pub(crate) struct Oracle {
    model: Model,
    pub stages: usize,
    pub tasks: Vec<Task>,
    pub servers: Vec<Links>,
    under_way: Vec<Message>,
    out: Timeline,
    services: Vec<Service>,
}

/// Runs of consecutive chunks in a step that sends `blocks` of `rail`'s values, for each of the `free` digits' values:
/// all chunks are made, sorted and looked through.
fn runs(dims: &[Dim], layout: &[u8], free: &[u8], rail: u8, blocks: u64) -> u64 {
    let mut chunks = vec![0u64];
    for &digit in layout {
        let size = dims[usize::from(digit)].size;
        let values = match digit {
            _ if digit == rail => blocks,
            _ if free.contains(&digit) => size,
            _ => 1,
        };
        let spread = |chunk: &u64| (0..values).map(|value| chunk * size + value).collect();
        chunks = chunks
            .iter()
            .flat_map(|chunk| -> Vec<u64> { spread(chunk) })
            .collect();
    }
    chunks.sort_unstable();
    1 + chunks
        .windows(2)
        .filter(|pair| pair[1] != pair[0] + 1)
        .count() as u64
}

impl Oracle {
    pub(crate) fn new(dims: &[Dim], lanes: &[Lane], parts: usize, model: Model) -> Self {
        let mut servers = Vec::new();
        let mut first = Vec::new();
        for dim in dims {
            first.push(servers.len());
            let count = if dim.offload || dim.is_both_ways(parts) {
                2
            } else {
                1
            };
            let links = Links {
                link_ps: dim.link_ps,
                hops: dim.hops,
                free: [0; 2],
            };
            servers.resize(servers.len() + count, links);
        }
        let mut tasks = Vec::new();
        let rails = rails(&dims.iter().map(Dim::dimension).collect::<Vec<_>>());
        for lane in lanes {
            let layout = lane.layout(&rails).0;
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
                    let free = match gathers {
                        true => &lane.all_gather[..i - lane.reduce_scatter.len()],
                        false => &lane.reduce_scatter[i + 1..],
                    };
                    let messages = |&blocks: &u64| match dim.kind {
                        _ if dim.offload => 1,
                        // One peer in a step; of a full connection one on each link.
                        DimensionKind::Switch => runs(dims, &layout, free, rail, blocks),
                        _ => runs(dims, &layout, free, rail, 1),
                    };
                    let mut messages: Vec<u64> = dim.steps.iter().map(messages).collect();
                    if gathers {
                        times.reverse();
                        messages.reverse();
                    }
                    let second = dim.is_both_ways(parts) && part == 1 || dim.offload && gathers;
                    tasks.push(Task {
                        server: first[usize::from(rail)] + usize::from(second),
                        held,
                        times,
                        messages,
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

    pub(crate) fn run(mut self, policy: Policy) -> (Timeline, Vec<Service>) {
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
                .min_by_key(|&s| (now.max(self.servers[s].free[0]), s));
            let arrives = arrival.map_or(u64::MAX, |i| self.under_way[i].arrival);
            let serves = server.map_or(u64::MAX, |s| now.max(self.servers[s].free[0]));
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
        let (time, messages) = (task.times[task.done], task.messages[task.done]);
        self.out.served.push((narrow(next), narrow(task.done)));
        task.done += 1;
        task.is_waiting = false;
        assert_eq!(time % messages, 0);
        let mut arrival = 0;
        for _ in 0..messages {
            let (start, end) = self.servers[server].pass(0, now, 0, time / messages, self.model);
            arrival = end;
            if self.servers[server].hops == 2 {
                arrival = self.second(server, start, end, time / messages);
            }
            let occupied = self.servers[server].free[0] - start;
            self.services.push((server, start, occupied));
        }
        self.under_way.push(Message {
            arrival,
            server,
            task: next,
        });
    }

    /// Sends a message on, which started at one time on the first link and is whole behind it at another; gives when
    /// it has arrived.
    fn second(&mut self, server: usize, start: u64, end: u64, time: u64) -> u64 {
        let links = &mut self.servers[server];
        let head = start + links.link_ps;
        match self.model.switching {
            Switching::StoreAndForward => links.pass(1, end, 0, time, self.model).1,
            Switching::CutThrough => links.pass(1, head, end, time, self.model).1,
        }
    }
}

impl Links {
    /// A message whose head is there at one time and whose tail at another crosses a link; gives when it starts and
    /// when it is whole at the end.
    fn pass(&mut self, link: usize, head: u64, tail: u64, time: u64, model: Model) -> (u64, u64) {
        let start = head.max(self.free[link]);
        let sent = tail.max(start + time);
        let end = sent + self.link_ps;
        self.free[link] = match model.latency {
            LatencyModel::Overlapped => sent,
            LatencyModel::Occupying => end,
        };
        (start, end)
    }
}

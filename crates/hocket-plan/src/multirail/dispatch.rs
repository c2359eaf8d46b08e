//! Runs tasks by rule: which of them a server takes next is decided as the simulation goes.

use super::dimension::{Model, Port, Tasks, Timeline};
use super::server::{Event, Load, NEVER, Next, Servers};
use crate::id::narrow;

/// A dispatcher: the state of a simulation, kept between runs so that a search allocates nothing.
#[derive(Default)]
pub(super) struct Dispatcher {
    servers: Servers<u32, u64, u32>,
    /// Next step of each task, and when it began among all.
    step: Vec<u32>,
    begun: Vec<u32>,
    /// What each server has still to send, in picoseconds.
    rest: Vec<u64>,
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

/// The tasks of one run, and how far they are.
struct Progress<'a, N> {
    tasks: &'a Tasks,
    key: &'a [u64],
    model: Model,
    step: &'a mut [u32],
    begun: &'a mut [u32],
    rest: &'a mut [u64],
    served: u64,
    notes: &'a mut N,
}

impl<N: Notes> Load for Progress<'_, N> {
    type Task = u32;
    type Key = u64;
    type Count = u32;

    #[inline]
    fn server(&self, task: u32) -> usize {
        usize::from(self.tasks.server[task as usize])
    }

    #[inline]
    fn key(&self, task: u32) -> u64 {
        self.key[task as usize]
    }

    #[inline]
    fn begin(&mut self, task: u32, number: u32, now: u64) {
        self.begun[task as usize] = number;
        self.notes.start(task as usize, now);
    }

    #[inline]
    fn send(&mut self, task: u32, now: u64, port: &mut Port) -> u64 {
        let i = task as usize;
        let step = self.step[i];
        self.step[i] += 1;
        self.served += 1;
        self.rest[usize::from(self.tasks.server[i])] -=
            self.tasks.time[(self.tasks.first[i] + step) as usize];
        self.notes.served(task, step);
        self.tasks.send(i, step, now, self.model, port)
    }

    #[inline]
    fn arrive(&mut self, task: u32, now: u64) -> Next<u32, u32> {
        let i = task as usize;
        if self.step[i] < self.tasks.steps(i) {
            return Next::Step(self.begun[i]);
        }
        self.notes.end(i, now);
        if (i + 1).is_multiple_of(self.tasks.stages) {
            Next::Nothing
        } else {
            Next::Task(task + 1)
        }
    }
}

impl Dispatcher {
    /// Runs tasks; those with the least key begin first where several are ready.
    pub(crate) fn run(&mut self, tasks: &Tasks, key: &[u64], model: Model) -> Timeline {
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
    pub(crate) fn cost_within(&mut self, tasks: &Tasks, model: Model, limit: u64) -> Option<u64> {
        let mut finish = Finish(0);
        if !self.go(tasks, &tasks.held, model, limit, &mut finish) {
            return None;
        }
        self.last_done = self.last_done.max(finish.0);
        Some(cost(self.last_done, self.sum_done)).filter(|&cost| cost <= limit)
    }

    /// Returns whether it came to the end.
    fn go(
        &mut self,
        tasks: &Tasks,
        key: &[u64],
        model: Model,
        limit: u64,
        notes: &mut impl Notes,
    ) -> bool {
        self.clear(tasks);
        let mut load = Progress {
            tasks,
            key,
            model,
            step: &mut self.step,
            begun: &mut self.begun,
            rest: &mut self.rest,
            served: 0,
            notes,
        };
        for task in (0..tasks.len()).step_by(tasks.stages.max(1)) {
            self.servers.make_ready(narrow(task), 0, &mut load);
        }
        let is_whole = loop {
            match self.servers.next_event() {
                (_, NEVER) => break true,
                (Event::Arrival(server), now) => self.servers.arrive(server, now, &mut load),
                (Event::Service(server), now) => {
                    // A server that begins to serve now has been idle; perhaps longer than known.
                    let done = now + load.rest[server];
                    let more = done.saturating_sub(self.done[server]);
                    self.sum_done += more;
                    self.done[server] += more;
                    self.last_done = self.last_done.max(done);
                    if more > 0 && cost(self.last_done, self.sum_done) > limit {
                        break false;
                    }
                    self.servers.serve(server, now, &mut load);
                }
            }
        };
        self.served += load.served;
        is_whole
    }

    fn clear(&mut self, tasks: &Tasks) {
        let servers = tasks.ways.len();
        self.servers.clear(servers);
        self.step.clear();
        self.step.resize(tasks.len(), 0);
        self.begun.clear();
        self.begun.resize(tasks.len(), 0);
        self.rest.clear();
        self.rest.resize(servers, 0);
        for task in 0..tasks.len() {
            self.rest[usize::from(tasks.server[task])] += tasks.times(task).iter().sum::<u64>();
        }
        self.done.clone_from(&self.rest);
        self.sum_done = self.done.iter().sum();
        self.last_done = self.done.iter().copied().max().unwrap_or(0);
    }
}

/// Returns what a search makes less.
fn cost(last_done: u64, sum_done: u64) -> u64 {
    const SHARE: u64 = 10;
    last_done + sum_done / SHARE
}

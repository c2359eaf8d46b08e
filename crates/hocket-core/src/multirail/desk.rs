//! Runs tasks by rule: which of them a server takes next is decided as the simulation goes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::dimension::{Model, Port, Tasks, Timeline};

/// The state of a simulation, kept between runs so that a search allocates nothing.
#[derive(Default)]
pub(super) struct Desk {
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
            self.rest[usize::from(tasks.server[task])] += tasks.times(task).iter().sum::<u64>();
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
        if !(task + 1).is_multiple_of(tasks.stages) {
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
pub(crate) fn earliest(times: &[u64]) -> (usize, u64) {
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

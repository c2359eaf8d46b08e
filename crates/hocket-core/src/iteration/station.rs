//! One actor's servers, and the calls under way on them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::Shape;
use crate::multirail::{Port, earliest};

const NEVER: u64 = u64::MAX;

/// Serves the tasks of calls, as [`crate::multirail::simulate`] does those of one: a task that has begun goes
/// on before others begin; of those that may begin, the one of the call that comes first, then that of least
/// key, then the one ready longest.
///
/// A call that is alone takes the time that its shape is known to take; only if another joins it are its
/// steps served one by one, from its start on.
#[derive(Debug, Default)]
pub(super) struct Station {
    ports: Vec<Port>,
    fresh: Vec<BinaryHeap<Reverse<Fresh>>>,
    /// Tasks whose next step is ready: when they began, slot, task.
    going: Vec<BinaryHeap<Reverse<(u64, u32, u32)>>>,
    /// Messages under way from each server, first arrival first: time, slot, task.
    under_way: Vec<VecDeque<(u64, u32, u32)>>,
    /// When the next message of each server arrives, then when each server can serve next.
    next: Vec<u64>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    lone: Option<Lone>,
    under_way_calls: usize,
    events: u64,
}

/// Rank of the call, key, number of the event that made it ready, slot, task.
type Fresh = (u128, u64, u64, u32, u32);

#[derive(Clone, Copy, Debug)]
struct Lone {
    call: Call,
    start: u64,
}

/// A call as a station sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Call {
    pub number: u32,
    pub shape: u32,
    /// Least is served first.
    pub rank: u128,
}

#[derive(Debug, Default)]
struct Slot {
    call: Call,
    step: Vec<u32>,
    begun: Vec<u64>,
    /// Rows of tasks that are not done.
    left: usize,
}

impl Station {
    /// How long a shape takes on servers that are idle.
    pub fn lone(shape: &Shape) -> u64 {
        let shapes = std::slice::from_ref(shape);
        let mut station = Self::default();
        station.admit(Call::default(), 0, shapes);
        let mut now = 0;
        while station.under_way_calls > 0 {
            now = station.next_time(shapes);
            station.step(shapes);
        }
        now
    }

    /// Begins a call. Events before `now` must have been taken.
    pub fn start(&mut self, call: Call, now: u64, shapes: &[Shape]) {
        if let Some(lone) = self.lone.take() {
            self.admit(lone.call, lone.start, shapes);
            while self.next_time(shapes) < now {
                self.step(shapes);
            }
        }
        match self.under_way_calls {
            0 => self.lone = Some(Lone { call, start: now }),
            _ => self.admit(call, now, shapes),
        }
    }

    /// When its next event is, the end of time if there is none; and whether it is that a server takes a
    /// step, which comes after all that arrives at that time.
    pub fn next_event(&self, shapes: &[Shape]) -> (u64, bool) {
        if let Some(lone) = self.lone {
            return (
                lone.start + shapes[lone.call.shape as usize].lone_ps(),
                false,
            );
        }
        let (event, time) = earliest(&self.next);
        (time, event >= self.ports.len())
    }

    /// When its next event is.
    pub fn next_time(&self, shapes: &[Shape]) -> u64 {
        self.next_event(shapes).0
    }

    /// Takes the next event; gives the call that ends with it.
    pub fn step(&mut self, shapes: &[Shape]) -> Option<u32> {
        if let Some(lone) = self.lone.take() {
            return Some(lone.call.number);
        }
        let (event, now) = earliest(&self.next);
        let servers = self.ports.len();
        if event >= servers {
            self.serve(event - servers, now, shapes);
            return None;
        }
        let (_, slot, task) = self.under_way[event].pop_front()?;
        self.next[event] = self.under_way[event].front().map_or(NEVER, |next| next.0);
        self.arrive(slot, task, now, shapes)
    }

    /// Begins a call whose every step is served.
    pub fn admit(&mut self, call: Call, now: u64, shapes: &[Shape]) {
        let shape = &shapes[call.shape as usize];
        self.widen(shape.server_count());
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let stages = shape.tasks.stages.max(1);
        let tasks = shape.tasks.len();
        let state = &mut self.slots[slot as usize];
        state.call = call;
        state.step.clear();
        state.step.resize(tasks, 0);
        state.begun.clear();
        state.begun.resize(tasks, 0);
        state.left = tasks / stages;
        self.under_way_calls += 1;
        for task in (0..tasks).step_by(stages) {
            self.make_ready(slot, task as u32, now, shapes);
        }
    }

    fn widen(&mut self, servers: usize) {
        let had = self.ports.len();
        if servers <= had {
            return;
        }
        self.ports.resize(servers, Port::default());
        self.fresh.resize_with(servers, BinaryHeap::new);
        self.going.resize_with(servers, BinaryHeap::new);
        self.under_way.resize_with(servers, VecDeque::new);
        let services = self.next.split_off(had);
        self.next.resize(servers, NEVER);
        self.next.extend(services);
        self.next.resize(2 * servers, NEVER);
    }

    fn server(&self, slot: u32, task: u32, shapes: &[Shape]) -> usize {
        let shape = &shapes[self.slots[slot as usize].call.shape as usize];
        usize::from(shape.servers[usize::from(shape.tasks.server[task as usize])])
    }

    fn make_ready(&mut self, slot: u32, task: u32, now: u64, shapes: &[Shape]) {
        let server = self.server(slot, task, shapes);
        let call = self.slots[slot as usize].call;
        let key = shapes[call.shape as usize].key[task as usize];
        self.events += 1;
        self.fresh[server].push(Reverse((call.rank, key, self.events, slot, task)));
        self.wake(server, now);
    }

    fn wake(&mut self, server: usize, now: u64) {
        self.next[self.ports.len() + server] = now.max(self.ports[server].free);
    }

    /// A message has arrived: the task's next step is ready, or the next task is, or the row is done.
    fn arrive(&mut self, slot: u32, task: u32, now: u64, shapes: &[Shape]) -> Option<u32> {
        let call = self.slots[slot as usize].call;
        let tasks = &shapes[call.shape as usize].tasks;
        let state = &mut self.slots[slot as usize];
        if state.step[task as usize] < tasks.steps(task as usize) {
            let begun = state.begun[task as usize];
            let server = self.server(slot, task, shapes);
            self.going[server].push(Reverse((begun, slot, task)));
            self.wake(server, now);
            return None;
        }
        if !(task as usize + 1).is_multiple_of(tasks.stages) {
            self.make_ready(slot, task + 1, now, shapes);
            return None;
        }
        state.left -= 1;
        if state.left > 0 {
            return None;
        }
        self.free.push(slot);
        self.under_way_calls -= 1;
        Some(call.number)
    }

    /// A free server takes the next step that it should.
    fn serve(&mut self, server: usize, now: u64, shapes: &[Shape]) {
        let service = self.ports.len() + server;
        let (slot, task) = match self.going[server].pop() {
            Some(Reverse((_, slot, task))) => (slot, task),
            None => {
                let Some(Reverse((.., slot, task))) = self.fresh[server].pop() else {
                    self.next[service] = NEVER;
                    return;
                };
                self.events += 1;
                self.slots[slot as usize].begun[task as usize] = self.events;
                (slot, task)
            }
        };
        let state = &mut self.slots[slot as usize];
        let shape = &shapes[state.call.shape as usize];
        let step = state.step[task as usize];
        state.step[task as usize] += 1;
        let port = &mut self.ports[server];
        let arrival = shape
            .tasks
            .send(task as usize, step, now, shape.model, port);
        let queue = &mut self.under_way[server];
        let place = queue.partition_point(|message| message.0 <= arrival);
        queue.insert(place, (arrival, slot, task));
        self.next[server] = self.next[server].min(arrival);
        self.next[service] = match self.going[server].is_empty() && self.fresh[server].is_empty() {
            true => NEVER,
            false => self.ports[server].free,
        };
    }
}

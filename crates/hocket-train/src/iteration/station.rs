//! One actor's servers, and the calls under way on them.

use super::Shape;
use crate::id::narrow;
use crate::multirail::{Event, Load, Next, Port, Servers};

/// Serves the tasks of calls, as [`crate::multirail::simulate`] does those of one: a task that has begun goes
/// on before others begin. Of those that may begin, the one of the call that comes first, then that of least
/// key, then the one ready longest.
///
/// A call that is alone takes the time that its shape is known to take. Only if another joins it are its
/// steps served one by one, from its start on.
#[derive(Debug, Default)]
pub(super) struct Station {
    servers: Servers<Task, Key, u64>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    lone: Option<Lone>,
    /// Calls under way, but for a lone one.
    under_way: usize,
}

/// Rank of the call, then the task's own key.
type Key = (u128, u64);

/// Slot of the call, number of the task.
type Task = (u32, u32);

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
    /// Returns how long a shape takes on servers that are idle.
    pub(crate) fn lone(shape: &Shape) -> u64 {
        let shapes = std::slice::from_ref(shape);
        let mut station = Self::default();
        station.admit(Call::default(), 0, shapes);
        let mut now = 0;
        while station.under_way > 0 {
            now = station.next_time(shapes);
            station.step(shapes);
        }
        now
    }

    /// Begins a call. Events before `now` must have been taken.
    pub(crate) fn start(&mut self, call: Call, now: u64, shapes: &[Shape]) {
        if let Some(lone) = self.lone.take() {
            self.admit(lone.call, lone.start, shapes);
            while self.next_time(shapes) < now {
                self.step(shapes);
            }
        }
        match self.under_way {
            0 => self.lone = Some(Lone { call, start: now }),
            _ => self.admit(call, now, shapes),
        }
    }

    /// When its next event is, the end of time if there is none; and whether it is that a server takes a
    /// step, which comes after all that arrives at that time.
    pub(crate) fn next_event(&self, shapes: &[Shape]) -> (u64, bool) {
        if let Some(lone) = self.lone {
            return (
                lone.start + shapes[lone.call.shape as usize].lone_ps(),
                false,
            );
        }
        let (event, time) = self.servers.next_event();
        (time, matches!(event, Event::Service(_)))
    }

    /// When its next event is.
    pub(crate) fn next_time(&self, shapes: &[Shape]) -> u64 {
        self.next_event(shapes).0
    }

    /// Takes the next event; gives the call that ends with it.
    pub(crate) fn step(&mut self, shapes: &[Shape]) -> Option<u32> {
        if let Some(lone) = self.lone.take() {
            return Some(lone.call.number);
        }
        let (event, now) = self.servers.next_event();
        let mut load = Calls {
            slots: &mut self.slots,
            shapes,
            ended: None,
        };
        match event {
            Event::Service(server) => self.servers.serve(server, now, &mut load),
            Event::Arrival(server) => self.servers.arrive(server, now, &mut load),
        }
        let slot = load.ended?;
        self.free.push(slot);
        self.under_way -= 1;
        Some(self.slots[slot as usize].call.number)
    }

    /// Begins a call whose every step is served.
    pub(crate) fn admit(&mut self, call: Call, now: u64, shapes: &[Shape]) {
        let shape = &shapes[call.shape as usize];
        self.servers.widen(shape.server_count());
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            narrow(self.slots.len()) - 1
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
        self.under_way += 1;
        let mut load = Calls {
            slots: &mut self.slots,
            shapes,
            ended: None,
        };
        for task in (0..tasks).step_by(stages) {
            self.servers
                .make_ready((slot, narrow(task)), now, &mut load);
        }
    }
}

/// The calls whose steps are served.
struct Calls<'a> {
    slots: &'a mut [Slot],
    shapes: &'a [Shape],
    /// The slot of a call that has ended.
    ended: Option<u32>,
}

impl<'a> Calls<'a> {
    fn shape(&self, slot: u32) -> &'a Shape {
        &self.shapes[self.slots[slot as usize].call.shape as usize]
    }
}

impl Load for Calls<'_> {
    type Task = Task;
    type Key = Key;
    type Count = u64;

    fn server(&self, (slot, task): Task) -> usize {
        let shape = self.shape(slot);
        usize::from(shape.servers[usize::from(shape.tasks.server[task as usize])])
    }

    fn key(&self, (slot, task): Task) -> Key {
        let rank = self.slots[slot as usize].call.rank;
        (rank, self.shape(slot).key[task as usize])
    }

    fn begin(&mut self, (slot, task): Task, number: u64, _: u64) {
        self.slots[slot as usize].begun[task as usize] = number;
    }

    fn send(&mut self, (slot, task): Task, now: u64, port: &mut Port) -> u64 {
        let shape = self.shape(slot);
        let next = &mut self.slots[slot as usize].step[task as usize];
        let step = *next;
        *next += 1;
        shape
            .tasks
            .send(task as usize, step, now, shape.model, port)
    }

    /// The task's next step is ready, or the next task is, or the row is done.
    fn arrive(&mut self, (slot, task): Task, _: u64) -> Next<Task, u64> {
        let tasks = &self.shape(slot).tasks;
        let state = &mut self.slots[slot as usize];
        if state.step[task as usize] < tasks.steps(task as usize) {
            return Next::Step(state.begun[task as usize]);
        }
        if !(task as usize + 1).is_multiple_of(tasks.stages) {
            return Next::Task((slot, task + 1));
        }
        state.left -= 1;
        if state.left == 0 {
            self.ended = Some(slot);
        }
        Next::Nothing
    }
}

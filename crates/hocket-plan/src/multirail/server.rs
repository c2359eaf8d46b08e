//! Servers that send the steps of tasks: the one discipline of dimension fidelity.
//!
//! A server sends one message at a time. A task that has begun goes on before others begin. Of those that may
//! begin, the one with the least key does, and of equals the one ready longest. While a message is under way
//! its server sends for others. Of events at one time arrivals come first, then services, each by server.
//!
//! What a task is, how long its steps take and what is noted of them is the caller's: a [`Load`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::AddAssign;

use super::dimension::Port;

/// What servers serve.
pub trait Load {
    /// Names a task; breaks ties.
    type Task: Copy + Ord;
    /// Says which of the tasks that may begin does: the least.
    type Key: Copy + Ord;
    /// Counts the tasks that become ready or begin: `u32`, or `u64` where they may be more.
    type Count: Count;

    /// Returns the server that sends a task's steps.
    fn server(&self, task: Self::Task) -> usize;
    /// Returns a task's key.
    fn key(&self, task: Self::Task) -> Self::Key;
    /// A task begins: as the `number`-th of all.
    fn begin(&mut self, task: Self::Task, number: Self::Count, now: u64);
    /// Sends the next step of a task that has begun; gives when its message arrives.
    fn send(&mut self, task: Self::Task, now: u64, port: &mut Port) -> u64;
    /// A task's message has arrived: what there is to serve next.
    fn arrive(&mut self, task: Self::Task, now: u64) -> Next<Self::Task, Self::Count>;
}

/// A number of events.
pub trait Count: Copy + Ord + Default + AddAssign + From<u8> {}

impl Count for u32 {}
impl Count for u64 {}

/// What there is to serve after a message has arrived.
pub enum Next<Task, Count> {
    /// The same task's next step, and the number that it began with.
    Step(Count),
    /// Another task, which may begin.
    Task(Task),
    /// Nothing.
    Nothing,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message of the server arrives.
    Arrival(usize),
    /// The server looks for a step to send.
    Service(usize),
}

/// The end of time: when nothing happens.
pub(crate) const NEVER: u64 = u64::MAX;

/// The state of the servers of tasks `T` with keys `K`, whose events are counted by `C`.
#[derive(Debug)]
pub struct Servers<T, K, C> {
    /// Tasks that may begin: key, when they became ready.
    fresh: Vec<BinaryHeap<Reverse<(K, C, T)>>>,
    /// Tasks whose next step is ready, by when they began.
    going: Vec<BinaryHeap<Reverse<(C, T)>>>,
    under_way: Vec<UnderWay<T>>,
    ports: Vec<Port>,
    /// When the next message of each server arrives, then when each server can serve next.
    next: Vec<u64>,
    /// How many tasks became ready or began.
    events: C,
}

impl<T: Ord, K: Ord, C: Count> Default for Servers<T, K, C> {
    fn default() -> Self {
        Self {
            fresh: Vec::new(),
            going: Vec::new(),
            under_way: Vec::new(),
            ports: Vec::new(),
            next: Vec::new(),
            events: C::default(),
        }
    }
}

impl<T: Copy + Ord, K: Copy + Ord, C: Count> Servers<T, K, C> {
    /// Makes them so many, all idle, and keeps their memory.
    pub fn clear(&mut self, servers: usize) {
        self.fresh.iter_mut().for_each(BinaryHeap::clear);
        self.going.iter_mut().for_each(BinaryHeap::clear);
        self.under_way.iter_mut().for_each(UnderWay::clear);
        self.ports.clear();
        self.next.clear();
        self.events = C::default();
        self.resize(servers);
    }

    /// Makes them so many, unless they are more; the new ones are idle.
    pub fn widen(&mut self, servers: usize) {
        if servers > self.ports.len() {
            self.resize(servers);
        }
    }

    fn resize(&mut self, servers: usize) {
        let services = self.next.split_off(self.next.len() / 2);
        self.next.resize(servers, NEVER);
        self.next.extend(services);
        self.next.resize(2 * servers, NEVER);
        self.ports.resize(servers, Port::default());
        self.fresh.resize_with(servers, BinaryHeap::new);
        self.going.resize_with(servers, BinaryHeap::new);
        self.under_way.resize_with(servers, UnderWay::default);
    }

    /// Returns what happens next, and when; at `NEVER` where nothing does.
    #[inline]
    pub fn next_event(&self) -> (Event, u64) {
        let mut least = (0, NEVER);
        for (i, &time) in self.next.iter().enumerate() {
            if time < least.1 {
                least = (i, time);
            }
        }
        let servers = self.ports.len();
        if least.0 < servers {
            (Event::Arrival(least.0), least.1)
        } else {
            (Event::Service(least.0 - servers), least.1)
        }
    }

    /// A task may begin.
    #[inline]
    pub fn make_ready(
        &mut self,
        task: T,
        now: u64,
        load: &mut impl Load<Task = T, Key = K, Count = C>,
    ) {
        let server = load.server(task);
        self.events += C::from(1);
        self.fresh[server].push(Reverse((load.key(task), self.events, task)));
        self.wake(server, now);
    }

    fn wake(&mut self, server: usize, now: u64) {
        self.next[self.ports.len() + server] = now.max(self.ports[server].free);
    }

    /// The next message of a server arrives.
    #[inline]
    pub fn arrive(
        &mut self,
        server: usize,
        now: u64,
        load: &mut impl Load<Task = T, Key = K, Count = C>,
    ) {
        let messages = &mut self.under_way[server];
        let task = messages.take();
        self.next[server] = messages.next();
        match load.arrive(task, now) {
            Next::Step(begun) => {
                let server = load.server(task);
                self.going[server].push(Reverse((begun, task)));
                self.wake(server, now);
            }
            Next::Task(task) => self.make_ready(task, now, load),
            Next::Nothing => {}
        }
    }

    /// A free server sends the next step that it should.
    #[inline]
    pub fn serve(
        &mut self,
        server: usize,
        now: u64,
        load: &mut impl Load<Task = T, Key = K, Count = C>,
    ) {
        let service = self.ports.len() + server;
        let task = match self.going[server].pop() {
            Some(Reverse((_, task))) => task,
            None => {
                let Some(Reverse((_, _, task))) = self.fresh[server].pop() else {
                    self.next[service] = NEVER;
                    return;
                };
                self.events += C::from(1);
                load.begin(task, self.events, now);
                task
            }
        };
        let arrival = load.send(task, now, &mut self.ports[server]);
        self.under_way[server].put(arrival, task);
        self.next[server] = self.next[server].min(arrival);
        let is_idle = self.going[server].is_empty() && self.fresh[server].is_empty();
        self.next[service] = if is_idle {
            NEVER
        } else {
            self.ports[server].free
        };
    }
}

/// Messages under way from one server, in the order of arrival: what has arrived, then the rest.
#[derive(Clone, Debug)]
struct UnderWay<T> {
    head: usize,
    arrivals: Vec<(u64, T)>,
}

impl<T> Default for UnderWay<T> {
    fn default() -> Self {
        Self {
            head: 0,
            arrivals: Vec::new(),
        }
    }
}

impl<T: Copy> UnderWay<T> {
    fn clear(&mut self) {
        self.head = 0;
        self.arrivals.clear();
    }

    /// Messages of tasks with the same latency keep their order; another may be overtaken.
    #[inline]
    fn put(&mut self, arrival: u64, task: T) {
        if self.arrivals.last().is_none_or(|last| last.0 <= arrival) {
            self.arrivals.push((arrival, task));
        } else {
            let rest = &self.arrivals[self.head..];
            let place = rest.partition_point(|message| message.0 <= arrival);
            self.arrivals.insert(self.head + place, (arrival, task));
        }
    }

    /// When the next arrives.
    #[inline]
    fn next(&self) -> u64 {
        self.arrivals.get(self.head).map_or(NEVER, |next| next.0)
    }

    /// Takes the next, of which there must be one.
    #[inline]
    fn take(&mut self) -> T {
        /// What has arrived is forgotten from so many messages on.
        const LONG: usize = 1 << 10;
        let task = self.arrivals[self.head].1;
        self.head += 1;
        if self.head >= LONG && 2 * self.head >= self.arrivals.len() {
            self.arrivals.drain(..self.head);
            self.head = 0;
        }
        task
    }
}

//! When trees with many pieces end: a simulation that counts pieces at links, where others keep a message for each.
//!
//! Pieces of one size that follow each other along a tree never overtake: each link serves an earlier piece of a job first. So
//! of each job, how many pieces have come to each link of its way and how many have left it tell all. Every link sends for the
//! same time whatever it sends, and events so long from now come in the order in which they are made.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::hint::black_box;

use super::Jobs;
use super::Timing;
use crate::id::{LinkId, narrow};
use crate::progress::{Interrupted, MESSAGE, Progress};
use crate::topology::{LatencyModel, Topology};
use crate::units::Time;

/// Messages between two reports of progress.
const STRIDE: u64 = 1 << 20;

/// What happens at some time.
#[derive(Clone, Copy)]
enum Event {
    /// A link is free.
    Free(u32),
    /// A piece has passed a link of a way.
    Passed(u32),
}

/// Events by how long they were away when they were made, each with its time.
#[derive(Default)]
struct Events(Vec<(u64, VecDeque<(u64, Event)>)>);

impl Events {
    /// Returns the number of a queue, which there is from then on.
    fn queue(&mut self, away: u64) -> usize {
        let known = self.0.iter().position(|queue| queue.0 == away);
        known.unwrap_or_else(|| {
            self.0.push((away, VecDeque::new()));
            self.0.len() - 1
        })
    }

    fn push(&mut self, queue: usize, now: u64, event: Event) {
        let (away, events) = &mut self.0[queue];
        events.push_back((now + *away, event));
    }

    fn next(&self) -> Option<u64> {
        let fronts = self.0.iter().filter_map(|queue| queue.1.front());
        fronts.map(|front| front.0).min()
    }

    fn pop(&mut self, now: u64) -> Option<Event> {
        let mut due = self.0.iter_mut();
        let due = due.find(|queue| queue.1.front().is_some_and(|front| front.0 == now));
        due.and_then(|queue| queue.1.pop_front())
            .map(|front| front.1)
    }
}

/// A link of the way of a job, with what is there.
struct Stage {
    /// How urgent its next piece is.
    key: i64,
    link: u32,
    job: u32,
    /// Pieces that wait.
    waiting: u32,
    is_last: bool,
}

/// A job, with what has become of its pieces.
struct State {
    /// How many have come; how many had all that they wait for; and how many jobs the next one waits for.
    done: u32,
    ready: u32,
    missing: u32,
    /// Its first stage.
    first: u32,
    /// Where those that wait for it begin and end, and those that it waits for.
    after: (u32, u32),
    before: (u32, u32),
}

struct Stream {
    period: i64,
    stages: Vec<Stage>,
    jobs: Vec<State>,
    after: Vec<u32>,
    before: Vec<u32>,
    /// By link, whether it is free; its queues of events; and the stages with pieces that wait, the most urgent first.
    is_free: Vec<bool>,
    queues: Vec<(usize, usize)>,
    urgent: Vec<BinaryHeap<Reverse<(i64, u32)>>>,
    events: Events,
    touched: Vec<u32>,
    fetched: Vec<u32>,
    now: u64,
}

impl Jobs {
    /// Simulates the first pieces of every tree, all trees of as many bytes, with links that serve by priority;
    /// with the time of the last arrival.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub(crate) fn stream(
        &self,
        topology: &Topology,
        timing: &Timing,
        first: u32,
        latency: LatencyModel,
        progress: &mut dyn Progress,
    ) -> Result<Time, Interrupted> {
        Stream::new(self, topology, timing, latency).run(first, progress)
    }
}

impl Stream {
    fn new(jobs: &Jobs, topology: &Topology, timing: &Timing, latency: LatencyModel) -> Self {
        let links = topology.links().len();
        let mut events = Events::default();
        let mut queues = vec![(0, 0); links];
        for &(link, takes) in &timing.stages {
            let late = topology.link(LinkId(link)).latency.as_ps();
            let busy = match latency {
                LatencyModel::Occupying => takes + late,
                LatencyModel::Overlapped => takes,
            };
            queues[link as usize] = (events.queue(busy), events.queue(takes + late));
        }
        let mut stream = Self {
            period: timing.period,
            stages: Vec::with_capacity(timing.stages.len()),
            jobs: Vec::with_capacity(jobs.list.len()),
            after: Vec::new(),
            before: Vec::new(),
            is_free: vec![true; links],
            queues,
            urgent: vec![BinaryHeap::new(); links],
            events,
            touched: Vec::new(),
            fetched: Vec::new(),
            now: 0,
        };
        let added = |list: &mut Vec<u32>, some: &[u32]| {
            let begin = narrow(list.len());
            list.extend_from_slice(some);
            (begin, narrow(list.len()))
        };
        for job in 0..narrow(jobs.list.len()) {
            let number = job as usize;
            let (first, end) = (timing.first[number], timing.first[number + 1]);
            for stage in first..end {
                stream.stages.push(Stage {
                    key: timing.key(job, 0),
                    link: timing.stages[stage as usize].0,
                    job,
                    waiting: 0,
                    is_last: stage + 1 == end,
                });
            }
            let before = jobs.before.get(number);
            stream.jobs.push(State {
                done: 0,
                ready: 0,
                missing: narrow(before.len()),
                first,
                after: added(&mut stream.after, timing.after.get(number)),
                before: added(&mut stream.before, before),
            });
        }
        stream
    }

    fn run(&mut self, pieces: u32, progress: &mut dyn Progress) -> Result<Time, Interrupted> {
        for job in 0..self.jobs.len() {
            if self.jobs[job].missing == 0 {
                self.come(self.jobs[job].first, pieces);
            }
        }
        let total = self.stages.len() as u64 * u64::from(pieces);
        let (mut sent, mut told, mut passed) = (0, 0, Vec::new());
        loop {
            let mut touched = std::mem::take(&mut self.touched);
            self.fetch_urgent(&touched);
            for link in touched.drain(..) {
                sent += u64::from(self.serve(link));
            }
            self.touched = touched;
            if sent >= told {
                if !progress.report("trees: pieces", sent, total) {
                    return Err(Interrupted);
                }
                progress.spend(MESSAGE * STRIDE.min(total - sent));
                told = sent + STRIDE;
            }
            let Some(now) = self.events.next() else {
                return Ok(Time::from_ps(self.now));
            };
            self.now = now;
            while let Some(event) = self.events.pop(now) {
                match event {
                    Event::Free(link) => {
                        self.is_free[link as usize] = true;
                        self.touched.push(link);
                    }
                    Event::Passed(stage) => passed.push(stage),
                }
            }
            self.fetch_next(&passed);
            for stage in passed.drain(..) {
                self.pass(stage);
            }
        }
    }

    /// Reads what free links will serve: of many at once, memory answers together.
    fn fetch_urgent(&mut self, links: &[u32]) {
        let tops = links
            .iter()
            .filter_map(|&link| self.urgent[link as usize].peek());
        self.fetched.clear();
        self.fetched.extend(tops.map(|&Reverse((_, stage))| stage));
        let stages = self
            .fetched
            .iter()
            .map(|&stage| &self.stages[stage as usize]);
        black_box(stages.fold(0, |seen, stage| seen ^ stage.waiting));
    }

    /// Reads what pieces that have passed a link will change.
    fn fetch_next(&mut self, passed: &[u32]) {
        let jobs = passed.iter().map(|&stage| self.stages[stage as usize].job);
        self.fetched.clear();
        self.fetched.extend(jobs);
        for job in &mut self.fetched {
            *job = self.jobs[*job as usize].after.0;
        }
        for at in &mut self.fetched {
            *at = self.after.get(*at as usize).copied().unwrap_or(0);
        }
        for job in &mut self.fetched {
            *job = self.jobs[*job as usize].first;
        }
        for stage in &mut self.fetched {
            *stage = self.stages[*stage as usize].link;
        }
        let links = self
            .fetched
            .iter()
            .map(|&link| self.urgent[link as usize].peek());
        black_box(links.fold(0, |seen, top| seen ^ top.map_or(0, |top| top.0.1)));
    }

    /// Pieces have come to the link of a stage.
    fn come(&mut self, number: u32, pieces: u32) {
        let stage = &mut self.stages[number as usize];
        if stage.waiting == 0 {
            self.urgent[stage.link as usize].push(Reverse((stage.key, number)));
        }
        stage.waiting += pieces;
        self.touched.push(stage.link);
    }

    /// A free link serves what is most urgent; returns whether there is any.
    fn serve(&mut self, link: u32) -> bool {
        if !self.is_free[link as usize] {
            return false;
        }
        let urgent = &mut self.urgent[link as usize];
        let Some(mut most) = urgent.peek_mut() else {
            return false;
        };
        let Reverse((_, number)) = *most;
        let stage = &mut self.stages[number as usize];
        stage.waiting -= 1;
        stage.key += self.period;
        if stage.waiting > 0 {
            *most = Reverse((stage.key, number));
        } else {
            PeekMut::pop(most);
        }
        self.is_free[link as usize] = false;
        let (free, passed) = self.queues[link as usize];
        self.events.push(free, self.now, Event::Free(link));
        self.events.push(passed, self.now, Event::Passed(number));
        true
    }

    /// A piece has passed the link of a stage.
    fn pass(&mut self, number: u32) {
        let stage = &self.stages[number as usize];
        if !stage.is_last {
            self.come(number + 1, 1);
            return;
        }
        let job = &mut self.jobs[stage.job as usize];
        let piece = job.done;
        job.done += 1;
        for at in job.after.0..job.after.1 {
            let next = &mut self.jobs[self.after[at as usize] as usize];
            if next.ready != piece {
                continue;
            }
            next.missing -= 1;
            if next.missing > 0 {
                continue;
            }
            next.ready += 1;
            let (first, ready, (begin, end)) = (next.first, next.ready, next.before);
            let late = self.before[begin as usize..end as usize].iter();
            let late = late
                .filter(|&&other| self.jobs[other as usize].done <= ready)
                .count();
            self.jobs[self.after[at as usize] as usize].missing = narrow(late);
            self.come(first, 1);
        }
    }
}

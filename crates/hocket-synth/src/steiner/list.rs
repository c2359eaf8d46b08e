//! When each piece is sent: list scheduling, in which every link serves the most urgent piece that waits.
//!
//! A piece is the more urgent the earlier it comes in its tree, and the longer what follows it takes. On a way of several
//! links the first chooses, and the others serve pieces in the order in which they set off, as links do that keep to the
//! order of a plan; or all choose, as links do that serve by priority.
//!
//! Where all links are full, one is idle while those before it send to others, and nothing makes up for that. There the first
//! link can choose what finds the later ones free first. What is listed so is listed again backwards and forwards, each time
//! in the order of the last: pieces then wait less at the end (Li, Willis, An iterative scheduling technique for
//! resource-constrained project scheduling, 1992).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::Jobs;
use crate::graph::Lists;
use crate::id::fit;
use crate::plan::{LinkOrder, Op};
use crate::topology::Topology;
use crate::units::{Seed, whole};

/// How urgent pieces are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Urgency {
    /// By how many times what follows a piece it is more urgent.
    pub tail: i64,
    /// Whether every tree begins at a random time, within the time from one of its pieces to the next.
    pub is_spread: bool,
    /// Whether all links of a way serve the most urgent piece that has come to them, not only the first.
    pub at_every_link: bool,
    /// Whether of pieces that wait, those set off first whose later links have the fewest before them; and of trees that begin
    /// at different times the highest, evenly.
    pub is_even: bool,
}

/// When every piece of every job starts.
pub(crate) struct Listed {
    /// When all is done [ps].
    pub end: u64,
    /// By job and piece, what comes first in the plan: what starts first, or is more urgent at every link.
    pub turns: Vec<u64>,
    pub order: LinkOrder,
}

/// Pieces among which later links decide.
const MOST_SEEN: usize = 64;
/// In place of a stage: a link is free.
const FREE: u32 = u32::MAX;
/// Up to which part of the time from one of its pieces to the next trees begin evenly: later ones would end late.
const BEGIN: (i64, i64) = (4, 5);

/// A piece that may set off, where later links decide.
struct Ready {
    key: i64,
    row: u32,
    /// The second link of its way, or [`FREE`] if there are none or more.
    second: u32,
}

struct Links {
    is_free: Vec<bool>,
    /// Pieces that may set off over the link, by urgency.
    waiting: Vec<BinaryHeap<Reverse<(i64, u32)>>>,
    /// The same where later links decide, the most urgent last.
    ready: Vec<Vec<Ready>>,
    /// Pieces that set off before over another link, in that order.
    coming: Vec<VecDeque<u32>>,
    /// Until when the link is busy with those, about.
    until: Vec<u64>,
}

impl Listed {
    /// Returns the reverse order, for the jobs turned round.
    fn backwards(self, pieces: u32) -> Self {
        let last = self.turns.len() as u64;
        let turned = self.turns.chunks(pieces as usize).rev().flatten();
        Self {
            turns: turned.map(|turn| last - turn).collect(),
            ..self
        }
    }
}

impl Jobs {
    /// Lists all jobs with so many pieces of every tree.
    pub(crate) fn list(&self, topology: &Topology, pieces: u32, urgency: Urgency) -> Listed {
        if !urgency.is_even {
            return Run::new(self, topology, pieces, urgency).run();
        }
        let turned = self.turned();
        let has_sums_alone = self.list.iter().all(|job| job.op == Op::Reduce);
        let copies = if has_sums_alone { &turned } else { self };
        let evenly = Run::new(copies, topology, pieces, urgency).run();
        // What copies fill evenly, sums do in the reverse order; and copies in the reverse order of these sums.
        let mut listed = evenly.backwards(pieces);
        if !has_sums_alone {
            let mut sums = Run::new(&turned, topology, pieces, urgency);
            sums.given = Some(listed.turns);
            listed = sums.run().backwards(pieces);
        }
        listed
    }

    /// Returns all jobs with the first of so many pieces of every tree in the order in which links serve them by priority.
    pub(crate) fn by_priority(
        &self,
        topology: &Topology,
        (first, pieces): (u32, u32),
        urgency: Urgency,
    ) -> Vec<u64> {
        Timing::new(self, topology, pieces, urgency).turns(first)
    }

    /// Returns how long each job's first piece is sent, by link of its way [ps].
    fn sending(&self, topology: &Topology, job: usize, link: usize, pieces: u32) -> u64 {
        let job = &self.list[job];
        let bytes = self.trees[job.tree as usize].1 * f64::from(job.part.1) / f64::from(pieces);
        let link = topology.link(self.ways[job.way as usize][link]);
        link.bandwidth.transmission(whole(bytes.ceil())).as_ps()
    }
}

/// Over which links the pieces of jobs go, and how urgent they are.
pub(crate) struct Timing {
    /// By job and link of its way, the link and how long it sends a piece [ps]; and where those of a job begin and end.
    pub(super) stages: Vec<(u32, u64)>,
    pub(super) first: Vec<u32>,
    /// How urgent the first piece of each job is, and by how much less each later one.
    keys: Vec<i64>,
    pub(super) period: i64,
    /// By job, those that wait for it.
    pub(super) after: Lists<u32>,
}

impl Timing {
    /// Of trees that carry so many pieces.
    pub(crate) fn new(jobs: &Jobs, topology: &Topology, pieces: u32, urgency: Urgency) -> Self {
        let count = jobs.list.len();
        let mut stages = Vec::new();
        let mut first = Vec::with_capacity(count + 1);
        let mut busy = vec![0u64; topology.links().len()];
        let mut tails = vec![0u64; count];
        for (number, job) in jobs.list.iter().enumerate() {
            first.push(crate::id::narrow(stages.len()));
            for (at, link) in jobs.ways[job.way as usize].iter().enumerate() {
                let takes = jobs.sending(topology, number, at, pieces);
                busy[link.index()] += takes;
                tails[number] += takes + topology.link(*link).latency.as_ps();
                stages.push((link.0, takes));
            }
        }
        first.push(crate::id::narrow(stages.len()));
        let pairs = (0..count).flat_map(|number| {
            let before = jobs.before.get(number).iter();
            before.map(move |&other| (other as usize, crate::id::narrow(number)))
        });
        let after = Lists::grouped(count, pairs);
        for number in (0..count).rev() {
            let next = after
                .get(number)
                .iter()
                .map(|&other| tails[other as usize])
                .max();
            tails[number] += next.unwrap_or(0);
        }
        let period = busy.into_iter().max().unwrap_or(0) as i64;
        let phases = phases(jobs, &tails, period, urgency);
        let phase = |number: usize| phases[jobs.list[number].tree as usize];
        let keys = tails.iter().enumerate();
        // Of equally urgent pieces, one that comes earlier in its tree: stars then serve different ends at once.
        let mut jobs_of = vec![0; jobs.trees.len()];
        let mut place = |number: usize| {
            let of_tree = &mut jobs_of[jobs.list[number].tree as usize];
            *of_tree += 1;
            *of_tree
        };
        let keys = keys
            .map(|(number, &tail)| place(number) + phase(number) - (tail as i64) * urgency.tail);
        Self {
            keys: keys.collect(),
            stages,
            first,
            period,
            after,
        }
    }

    /// Returns how urgent a piece of a job is: the less, the more.
    pub(super) fn key(&self, job: u32, piece: u32) -> i64 {
        self.keys[job as usize].saturating_add(i64::from(piece) * self.period)
    }

    /// Returns how urgent so many pieces of each job are, as numbers without sign.
    fn turns(&self, pieces: u32) -> Vec<u64> {
        let jobs = 0..crate::id::narrow(self.keys.len());
        let keys = jobs.flat_map(|job| (0..pieces).map(move |piece| self.key(job, piece)));
        keys.map(|key| key.cast_unsigned() ^ (1 << 63)).collect()
    }
}

/// Returns when each tree begins, of the time from one of its pieces to the next.
fn phases(jobs: &Jobs, tails: &[u64], period: i64, urgency: Urgency) -> Vec<i64> {
    let trees = jobs.trees.len();
    if !urgency.is_spread {
        return vec![0; trees];
    }
    if !urgency.is_even {
        let mut seed = Seed(tails.len() as u64);
        let begin = |_| seed.below(fit(period.max(1))) as i64;
        return (0..trees).map(begin).collect();
    }
    let mut heights = vec![0; trees];
    for (job, &tail) in jobs.list.iter().zip(tails) {
        let height = &mut heights[job.tree as usize];
        *height = tail.max(*height);
    }
    let mut order: Vec<usize> = (0..trees).collect();
    order.sort_by_key(|&tree| Reverse(heights[tree]));
    let each = period / BEGIN.1 * BEGIN.0 / trees.max(1) as i64;
    let mut phases = vec![0; trees];
    for (place, tree) in (0..).zip(order) {
        phases[tree] = place * each;
    }
    phases
}

struct Run<'a> {
    topology: &'a Topology,
    pieces: u32,
    urgency: Urgency,
    timing: Timing,
    /// Times are compared in parts of two to that many picoseconds where later links decide.
    grain: u32,
    /// By job and piece, for how many it waits.
    left: Vec<u32>,
    /// By job and piece, at which link it waits after it set off, and which of its way that is.
    place: Vec<(u32, u32)>,
    starts: Vec<u64>,
    /// How many have set off.
    sent: u64,
    /// In which order links serve, where that is known.
    given: Option<Vec<u64>>,
    links: Links,
    events: BinaryHeap<Reverse<(u64, u32, u32)>>,
    touched: Vec<u32>,
    now: u64,
}

impl<'a> Run<'a> {
    fn new(jobs: &'a Jobs, topology: &'a Topology, pieces: u32, urgency: Urgency) -> Self {
        let count = jobs.list.len();
        let links = topology.links().len();
        let waits = (0..count).map(|job| crate::id::narrow(jobs.before.get(job).len()));
        let left = waits
            .flat_map(|wait| std::iter::repeat_n(wait, pieces as usize))
            .collect();
        let all = count * pieces as usize;
        let timing = Timing::new(jobs, topology, pieces, urgency);
        let longest = timing.stages.iter().map(|stage| stage.1).max();
        Self {
            topology,
            pieces,
            urgency,
            timing,
            grain: longest.unwrap_or(0).max(1).ilog2(),
            left,
            place: vec![(FREE, 0); all],
            starts: vec![0; all],
            sent: 0,
            given: None,
            links: Links {
                is_free: vec![true; links],
                waiting: vec![BinaryHeap::new(); links],
                ready: std::iter::repeat_with(Vec::new).take(links).collect(),
                coming: vec![VecDeque::new(); links],
                until: vec![0; links],
            },
            events: BinaryHeap::new(),
            touched: Vec::new(),
            now: 0,
        }
    }

    fn run(mut self) -> Listed {
        for row in 0..crate::id::narrow(self.left.len()) {
            if self.left[row as usize] == 0 {
                self.wait(row);
            }
        }
        let mut end = 0;
        loop {
            let mut touched = std::mem::take(&mut self.touched);
            touched.sort_unstable();
            touched.dedup();
            for link in touched.drain(..) {
                if self.links.is_free[link as usize] {
                    self.serve(link);
                }
            }
            let Some(&Reverse((now, _, _))) = self.events.peek() else {
                break;
            };
            self.now = now;
            while let Some(&Reverse((time, id, stage))) = self.events.peek() {
                if time > now {
                    break;
                }
                self.events.pop();
                if stage == FREE {
                    self.links.is_free[id as usize] = true;
                    self.touched.push(id);
                } else {
                    end = now;
                    self.arrive(id, stage);
                }
            }
        }
        let (turns, order) = match self.urgency.at_every_link {
            _ if self.urgency.is_even => (self.starts, LinkOrder::Priority),
            true => (self.timing.turns(self.pieces), LinkOrder::Priority),
            false => (self.starts, LinkOrder::Plan),
        };
        Listed { end, turns, order }
    }

    /// Returns the links of a piece's way, and how long each sends it.
    fn way(&self, row: u32) -> &[(u32, u64)] {
        let job = (row / self.pieces) as usize;
        let timing = &self.timing;
        &timing.stages[timing.first[job] as usize..timing.first[job + 1] as usize]
    }

    /// A piece may set off.
    fn wait(&mut self, row: u32) {
        let (link, _) = self.way(row)[0];
        self.wait_at(row, link, 0);
    }

    /// A piece waits at a link of its way until it is the most urgent there.
    fn wait_at(&mut self, row: u32, link: u32, stage: u32) {
        let key = match (&self.given, stage) {
            (Some(given), _) => given[row as usize].cast_signed(),
            (None, 1..) if self.urgency.is_even => self.starts[row as usize].cast_signed(),
            _ => self.timing.key(row / self.pieces, row % self.pieces),
        };
        self.place[row as usize] = (link, stage);
        if self.urgency.is_even && stage == 0 && self.given.is_none() {
            let second = match self.way(row) {
                &[_, (second, _)] => second,
                _ => FREE,
            };
            let ready = &mut self.links.ready[link as usize];
            let place = ready.partition_point(|other| (other.key, other.row) > (key, row));
            ready.insert(place, Ready { key, row, second });
            self.touched.push(link);
            return;
        }
        self.links.waiting[link as usize].push(Reverse((key, row)));
        self.touched.push(link);
    }

    /// A piece has passed all links of its way before one.
    fn arrive(&mut self, row: u32, stage: u32) {
        if let Some(&(link, _)) = self.way(row).get(stage as usize) {
            if self.urgency.at_every_link {
                self.wait_at(row, link, stage);
                return;
            }
            self.place[row as usize] = (link, stage);
            self.touched.push(link);
            return;
        }
        let (job, piece) = (row / self.pieces, row % self.pieces);
        for at in 0..self.timing.after.get(job as usize).len() {
            let next = self.timing.after.get(job as usize)[at] * self.pieces + piece;
            self.left[next as usize] -= 1;
            if self.left[next as usize] == 0 {
                self.wait(next);
            }
        }
    }

    /// A free link serves what it may.
    fn serve(&mut self, link: u32) {
        if self.urgency.is_even
            && let Some(row) = self.soonest(link)
        {
            self.set_off(row, link);
            return;
        }
        if self.urgency.at_every_link {
            if let Some(Reverse((_, row))) = self.links.waiting[link as usize].pop() {
                let (_, stage) = self.place[row as usize];
                let (_, takes) = self.way(row)[stage as usize];
                if stage == 0 {
                    self.sent += 1;
                    self.starts[row as usize] = self.sent;
                }
                self.send(row, stage, (link, takes));
            }
            return;
        }
        if let Some(&row) = self.links.coming[link as usize].front() {
            let (waits_at, stage) = self.place[row as usize];
            if waits_at == link {
                self.place[row as usize].0 = FREE;
                self.links.coming[link as usize].pop_front();
                let (_, takes) = self.way(row)[stage as usize];
                self.send(row, stage, (link, takes));
            }
            return;
        }
        if let Some(Reverse((_, row))) = self.links.waiting[link as usize].pop() {
            self.set_off(row, link);
        }
    }

    /// Takes the piece of which the later links have the least before it, of the most urgent ones.
    fn soonest(&mut self, link: u32) -> Option<u32> {
        let until = &self.links.until;
        let ready = &self.links.ready[link as usize];
        let late = |piece: &Ready| match piece.second {
            FREE => {
                let later = self.way(piece.row).get(1..).unwrap_or_default();
                later.iter().map(|&(link, _)| until[link as usize]).max()
            }
            second => Some(until[second as usize]),
        };
        // A link that is free until a piece comes is as good as one that has been free for longer.
        let (_, takes) = self.way(ready.last()?.row)[0];
        let comes = self.now + takes + self.latency(link);
        let late = |piece: &Ready| late(piece).map_or(0, |until| until.saturating_sub(comes));
        let seen = (0..ready.len()).rev().take(MOST_SEEN);
        let found = seen.min_by_key(|&at| late(&ready[at]) >> self.grain)?;
        Some(self.links.ready[link as usize].remove(found).row)
    }

    fn set_off(&mut self, row: u32, link: u32) {
        self.sent += 1;
        self.starts[row as usize] = if self.urgency.is_even {
            self.sent
        } else {
            self.now
        };
        let job = (row / self.pieces) as usize;
        let stages = self.timing.first[job] as usize..self.timing.first[job + 1] as usize;
        let (_, takes) = self.timing.stages[stages.start];
        let mut time = self.now + takes + self.latency(link);
        for at in stages.skip(1) {
            let (link, takes) = self.timing.stages[at];
            if !self.urgency.is_even {
                self.links.coming[link as usize].push_back(row);
            }
            let until = &mut self.links.until[link as usize];
            *until = time.max(*until) + takes;
            time = *until + self.latency(link);
        }
        self.send(row, 0, (link, takes));
    }

    fn send(&mut self, row: u32, stage: u32, (link, takes): (u32, u64)) {
        self.links.is_free[link as usize] = false;
        let sent = self.now + takes;
        let arrives = sent + self.latency(link);
        self.events.push(Reverse((sent, link, FREE)));
        self.events.push(Reverse((arrives, row, stage + 1)));
    }

    fn latency(&self, link: u32) -> u64 {
        self.topology.link(crate::id::LinkId(link)).latency.as_ps()
    }
}

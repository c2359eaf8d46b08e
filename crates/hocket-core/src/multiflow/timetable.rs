//! When each part takes each link, so that the busiest links never wait.
//!
//! A part goes from NPU to NPU in legs; a leg is one link, or several through switches. Whenever a link out of an NPU
//! is free, it takes the part that is there and has the dearest way still to go: what has to pass the busiest links
//! goes first, and among equals what has the longest way. Through switches, a leg is taken whose links are free by the
//! time that the part comes there, or nearly so, if there is one: a part that only joins a queue helps nobody.
//!
//! # Source
//! Leighton, Maggs, Rao, Packet routing and job-shop scheduling in O(congestion + dilation) steps, 1994; Graham,
//! Bounds for certain multiprocessing anomalies, 1966, for lists.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::plan::Legs;
use crate::topology::{Switching, Topology};
use crate::id::LinkId;
use crate::units::Beta;

/// What serves a part on its way: a link, or a switch with a limit.
#[derive(Clone, Copy, Debug)]
struct Stage {
    server: u32,
    beta: Beta,
    latency: u64,
}

/// One leg of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub part: u32,
    /// Which of the part's legs.
    pub leg: u32,
}

/// A part that waits: the dearest first, then those of the lowest turn; the part and which of its legs it waits for.
type Waiting = (u64, Reverse<u32>, u32, u32);

/// Parts that wait for the same leg, and go on over the same one.
#[derive(Clone, Debug)]
struct Group {
    leg: u32,
    /// The link that they take after that, or [`NONE`].
    next: u32,
    waiting: BinaryHeap<Waiting>,
}

const NONE: u32 = u32::MAX;

pub(super) struct Timetable<'a> {
    legs: &'a Legs,
    bytes: &'a [u64],
    stages: Vec<Vec<Stage>>,
    cut_through: bool,
    /// When each server is free.
    free: Vec<u64>,
    /// How long each server will be busy with parts that are not yet on their way to it.
    ahead: Vec<u64>,
    groups: Vec<Group>,
    /// The group of each leg of each part.
    group: Vec<u32>,
    /// The groups that wait for each link.
    beginning: Vec<Vec<u32>>,
    /// The parts that wait for each link.
    waiting: Vec<u32>,
    /// Moments: a link may be free, or a part is there for its next leg.
    events: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// What is still to be paid by each part from each leg on.
    left: &'a dyn Fn(u32, u32) -> u64,
    turn: &'a [u32],
    order: Vec<Step>,
    pub end: u64,
}

/// In place of a part: a link may be free.
const LINK: u32 = u32::MAX;

/// The steps of all parts, in the order in which links take them.
pub(super) fn order(
    topology: &Topology,
    legs: &Legs,
    bytes: &[u64],
    turn: &[u32],
    left: &dyn Fn(u32, u32) -> u64,
) -> Vec<Step> {
    let links = topology.links().len();
    let mut timetable = Timetable {
        legs,
        bytes,
        stages: legs.links.iter().map(|way| stages(topology, way)).collect(),
        cut_through: topology.switching() == Switching::CutThrough,
        free: vec![0; links + topology.device_count()],
        ahead: vec![0; links + topology.device_count()],
        groups: Vec::new(),
        group: Vec::with_capacity(legs.of.items().len()),
        waiting: vec![0; links],
        beginning: vec![Vec::new(); links],
        events: BinaryHeap::new(),
        left,
        turn,
        order: Vec::with_capacity(legs.of.items().len()),
        end: 0,
    };
    timetable.group();
    timetable.run(topology);
    timetable.order
}

fn stages(topology: &Topology, way: &[LinkId]) -> Vec<Stage> {
    let links = topology.links().len();
    let mut stages = Vec::new();
    for &id in way {
        let link = topology.link(id);
        if let Some(limit) = topology.device(link.src).limit {
            stages.push(Stage {
                server: (links + link.src.index()) as u32,
                beta: limit.beta(),
                latency: 0,
            });
        }
        stages.push(Stage {
            server: id.0,
            beta: link.bandwidth.beta(),
            latency: link.latency.as_ps(),
        });
    }
    stages
}

impl Timetable<'_> {
    fn group(&mut self) {
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        for (part, legs) in self.legs.of.iter().enumerate() {
            for (i, &leg) in legs.iter().enumerate() {
                let next = legs.get(i + 1).map_or(NONE, |&next| self.legs.links[next as usize][0].0);
                let group = *known.entry((leg, next)).or_insert(self.groups.len() as u32);
                if group as usize == self.groups.len() {
                    let link = self.legs.links[leg as usize][0];
                    self.beginning[link.index()].push(group);
                    self.groups.push(Group { leg, next, waiting: BinaryHeap::new() });
                }
                self.group.push(group);
                for stage in &self.stages[leg as usize] {
                    let sending = stage.beta.transmission(self.bytes[part]).as_ps();
                    self.ahead[stage.server as usize] += sending;
                }
            }
        }
    }

    fn run(&mut self, topology: &Topology) {
        for part in 0..self.bytes.len() as u32 {
            let leg = self.legs.of.get(part as usize)[0];
            let stage = self.stages[leg as usize][0];
            self.leave(stage, part);
            self.come(part, 0);
        }
        for link in 0..topology.links().len() as u32 {
            self.serve(link, 0);
        }
        while let Some(Reverse((now, what, which))) = self.events.pop() {
            match what {
                LINK => self.serve(which, now),
                part => {
                    let link = self.come(part, which);
                    self.serve(link, now);
                }
            }
        }
    }

    /// A part is on its way to a server.
    fn leave(&mut self, stage: Stage, part: u32) {
        let sending = stage.beta.transmission(self.bytes[part as usize]).as_ps();
        self.ahead[stage.server as usize] -= sending;
    }

    /// A part is there for one of its legs.
    fn come(&mut self, part: u32, leg: u32) -> u32 {
        let dear = (self.left)(part, leg);
        let entry = (dear, Reverse(self.turn[part as usize]), part, leg);
        let at = self.legs.of.offsets()[part as usize] + leg;
        let group = self.group[at as usize];
        self.groups[group as usize].waiting.push(entry);
        let link = self.legs.links[self.groups[group as usize].leg as usize][0].0;
        self.waiting[link as usize] += 1;
        link
    }

    /// A link takes the next part, if it is free and there is one.
    fn serve(&mut self, link: u32, now: u64) {
        if self.free[link as usize] > now || self.waiting[link as usize] == 0 {
            return;
        }
        let mut best: Option<((u64, Reverse<(u64, Waiting)>), u32)> = None;
        for &g in &self.beginning[link as usize] {
            let group = &self.groups[g as usize];
            let Some(&entry) = group.waiting.peek() else {
                continue;
            };
            let stages = &self.stages[group.leg as usize];
            let late = match stages.len() {
                1 => 0,
                _ => self.late(stages, self.bytes[entry.2 as usize], now),
            };
            let next = if group.next == NONE { 0 } else { self.ahead[group.next as usize] };
            let within = stages[1..].iter().map(|stage| self.ahead[stage.server as usize]);
            let needed = within.max().unwrap_or(0).max(next);
            let key = (late, Reverse((needed, entry)));
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, g));
            }
        }
        let (_, g) = best.expect("one waits");
        let group = &mut self.groups[g as usize];
        let (.., part, leg) = group.waiting.pop().expect("it was seen");
        let way = group.leg as usize;
        self.waiting[link as usize] -= 1;
        self.order.push(Step { part, leg });
        let end = self.take(way, part, now);
        self.end = self.end.max(end);
        self.events.push(Reverse((self.free[link as usize], LINK, link)));
        if let Some(&next) = self.legs.of.get(part as usize).get(leg as usize + 1) {
            self.leave(self.stages[next as usize][0], part);
            self.events.push(Reverse((end, part, leg + 1)));
        }
    }

    /// How many parts of this size wait at the fullest link of a leg when one comes there that starts now.
    fn late(&self, stages: &[Stage], bytes: u64, now: u64) -> u64 {
        let mut late = 0;
        let mut at = now;
        for (i, stage) in stages.iter().enumerate() {
            let sending = stage.beta.transmission(bytes).as_ps().max(1);
            let free = self.free[stage.server as usize];
            if i > 0 {
                late = late.max(free.saturating_sub(at) / sending);
            }
            at = at.max(free) + stage.latency + if self.cut_through { 0 } else { sending };
        }
        late
    }

    /// Takes all links of a leg, and says when the part has arrived.
    fn take(&mut self, way: usize, part: u32, now: u64) -> u64 {
        let bytes = self.bytes[part as usize];
        let (mut head, mut tail) = (now, now);
        for i in 0..self.stages[way].len() {
            let stage = self.stages[way][i];
            if i > 0 {
                self.leave(stage, part);
            }
            let free = &mut self.free[stage.server as usize];
            let start = head.max(*free);
            let sent = start + stage.beta.transmission(bytes).as_ps();
            *free = if self.cut_through { sent.max(tail) } else { sent };
            tail = *free + stage.latency;
            head = if self.cut_through { start + stage.latency } else { tail };
        }
        tail
    }
}

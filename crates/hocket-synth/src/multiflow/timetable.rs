//! When each part takes each link, so that the busiest links never wait.
//!
//! A part goes from NPU to NPU in legs; a leg is one link, or several through switches. Whenever a link out of an NPU
//! is free, it takes a part that is there, in one of two orders ([`Order`]). Switches send in the order in which parts
//! come.
//!
//! # Source
//! Leighton, Maggs, Rao, Packet routing and job-shop scheduling in O(congestion + dilation) steps, 1994; Pinedo,
//! Scheduling, 2016, for the rule of most work remaining; Zhang, Virtual clock: a new traffic control algorithm for
//! packet switching networks, 1990, and Parekh, Gallager, A generalized processor sharing approach to flow control in
//! integrated services networks: the multiple node case, 1994, for virtual time.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::plan::Legs;
use crate::id::{LinkId, fit, narrow};
use crate::plan::PlanError;
use crate::progress::{MESSAGE, Paced, Progress};
use crate::topology::{Switching, Topology};
use crate::units::Beta;

/// Which of the parts that wait for a link goes first.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order<'a> {
    /// One that goes on to the link that has most to do with parts not yet on their way to it: so no link that many
    /// parts need is left without any. Among those that go on alike, the part with the dearest way to go, then that
    /// of the lowest turn. Through switches, parts that would only join a queue are left for later.
    MostAhead {
        /// Of each part.
        turns: &'a [u32],
    },
    /// The one whose virtual time is least. The parts of a way start at equal distances over the time that the busiest
    /// link sends, less the length of the way; a part's virtual time at a leg is its start and the length of the legs
    /// before. So a way is served at every link in proportion to its bytes, and all links have work from the start.
    VirtualTime {
        /// When each part starts: the share of the time, of 2^32.
        starts: &'a [u32],
    },
}

/// One leg of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub part: u32,
    /// Which of the part's legs.
    pub leg: u32,
}

/// What serves a part on its way: a link, or a switch with a limit.
#[derive(Clone, Copy, Debug)]
struct Stage {
    server: u32,
    beta: Beta,
    latency: u64,
}

/// A part that waits: the highest rank first, then the lowest turn; the part and which of its legs it waits for.
type Waiting = (u64, Reverse<u32>, u32, u32);

/// Parts that take the same leg, and go on over the same link; by virtual time, all that take the same link.
#[derive(Clone, Debug)]
struct Group {
    /// The leg of the first of them.
    leg: u32,
    /// The link that they take after that, or [`NONE`].
    next: u32,
    /// Those that wait.
    waiting: BinaryHeap<Waiting>,
    /// How many there are that have not yet been served.
    left: u32,
}

const NONE: u32 = u32::MAX;

/// Something that happens: a part is at a stage of one of its legs, or ([`LINK`] in place of a part) a link is free.
type Event = (u64, u32, u32, u32);

const LINK: u32 = u32::MAX;

/// Groups that are compared when a link is free.
const MOST_COMPARED: usize = 96;

struct Timetable<'a> {
    legs: &'a Legs,
    bytes: &'a [u64],
    order: Order<'a>,
    /// Of each leg of each part: the highest goes first.
    rank: Cow<'a, [u64]>,
    /// Of each leg.
    stages: Vec<Vec<Stage>>,
    /// The stage of each leg that has most to do.
    busiest: Vec<usize>,
    cut_through: bool,
    /// When each server is free.
    free: Vec<u64>,
    /// How long each server will be busy with parts that are not yet on their way to it.
    ahead: Vec<u64>,
    /// How long each server will be busy with parts that are on their way to it through switches.
    coming: Vec<u64>,
    groups: Vec<Group>,
    /// The group of each leg of each part.
    group: Vec<u32>,
    /// The groups that wait for each link.
    beginning: Vec<Vec<u32>>,
    /// How many parts wait for each link.
    waiting: Vec<u32>,
    /// Where each link goes on comparing its groups.
    from: Vec<usize>,
    events: BinaryHeap<Reverse<Event>>,
    /// Cut-through only: when the tail of each part comes to where its head is.
    tail: Vec<u64>,
    /// What was served, and when its busiest stage began.
    served: Vec<(u64, Step)>,
}

/// Returns the steps of all parts, in the order in which links take them.
///
/// # Errors
/// [`PlanError::TooLong`], [`PlanError::Interrupted`].
pub(super) fn order(
    topology: &Topology,
    legs: &Legs,
    bytes: &[u64],
    order: Order<'_>,
    progress: &mut dyn Progress,
) -> Result<Vec<Step>, PlanError> {
    const BETWEEN_REPORTS: u64 = MESSAGE << 14;
    let mut timetable = Timetable::new(topology, legs, bytes, order)?;
    let all = legs.steps() as u64;
    let mut watch = Paced::new(progress, "timetable", BETWEEN_REPORTS);
    timetable.begin();
    while let Some(Reverse(event)) = timetable.events.pop() {
        timetable.happen(event);
        watch.count(MESSAGE, timetable.served.len() as u64, all)?;
    }
    let mut served = timetable.served;
    served.sort_unstable_by_key(|&(time, step)| (time, step.leg, step.part));
    Ok(served.into_iter().map(|(_, step)| step).collect())
}

impl<'a> Timetable<'a> {
    fn new(
        topology: &Topology,
        legs: &'a Legs,
        bytes: &'a [u64],
        order: Order<'a>,
    ) -> Result<Self, PlanError> {
        let links = topology.links().len();
        let servers = links + topology.device_count();
        let mut timetable = Self {
            legs,
            bytes,
            order,
            rank: Cow::Borrowed(&legs.left),
            stages: legs.links.iter().map(|way| stages(topology, way)).collect(),
            busiest: Vec::new(),
            cut_through: topology.switching() == Switching::CutThrough,
            free: vec![0; servers],
            ahead: vec![0; servers],
            coming: vec![0; servers],
            groups: Vec::new(),
            group: Vec::with_capacity(legs.steps()),
            beginning: vec![Vec::new(); links],
            waiting: vec![0; links],
            from: vec![0; links],
            events: BinaryHeap::new(),
            tail: vec![0; bytes.len()],
            served: Vec::with_capacity(legs.steps()),
        };
        timetable.group()?;
        let ahead = &timetable.ahead;
        let busiest = |stages: &Vec<Stage>| {
            let busy = |&i: &usize| ahead[stages[i].server as usize];
            (0..stages.len()).rev().max_by_key(busy).unwrap_or(0)
        };
        timetable.busiest = timetable.stages.iter().map(busiest).collect();
        if let Order::VirtualTime { starts } = order {
            timetable.rank = timetable.by_virtual_time(starts).into();
        }
        Ok(timetable)
    }

    /// Returns ranks that rise as virtual times fall.
    fn by_virtual_time(&self, starts: &[u32]) -> Vec<u64> {
        let whole = self.ahead.iter().copied().max().unwrap_or(0);
        let mut ranks = Vec::with_capacity(self.legs.steps());
        for (part, legs) in self.legs.of.iter().enumerate() {
            let length = |&leg: &u32| -> u64 {
                let stages = self.stages[leg as usize].iter();
                let own = stages.map(|&stage| stage.latency + self.sending(stage, narrow(part)));
                own.sum()
            };
            let rest = whole.saturating_sub(legs.iter().map(length).sum());
            let start = (u128::from(rest) * u128::from(starts[part])) >> u32::BITS;
            let mut time: u64 = fit(start);
            for leg in legs {
                ranks.push(u64::MAX - time);
                time += length(leg);
            }
        }
        ranks
    }

    /// Puts the legs of all parts into groups, and adds up what each server has to do.
    fn group(&mut self) -> Result<(), PlanError> {
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        let mut longest: u128 = 0;
        for (part, legs) in self.legs.of.iter().enumerate() {
            for (i, &leg) in legs.iter().enumerate() {
                let first = |leg: u32| self.legs.links[leg as usize][0];
                let next = legs.get(i + 1).map_or(NONE, |&next| first(next).0);
                let alike = match self.order {
                    Order::MostAhead { .. } => (leg, next),
                    Order::VirtualTime { .. } => (first(leg).0, NONE),
                };
                let group = *known.entry(alike).or_insert(narrow(self.groups.len()));
                if group as usize == self.groups.len() {
                    self.beginning[first(leg).index()].push(group);
                    self.groups.push(Group {
                        leg,
                        next,
                        waiting: BinaryHeap::new(),
                        left: 0,
                    });
                }
                self.groups[group as usize].left += 1;
                self.group.push(group);
                for stage in &self.stages[leg as usize] {
                    let sending = stage.beta.transmission(self.bytes[part]).as_ps();
                    longest += u128::from(sending) + u128::from(stage.latency);
                    // If this wraps, it is too long.
                    let ahead = &mut self.ahead[stage.server as usize];
                    *ahead = ahead.wrapping_add(sending);
                }
            }
        }
        // As long as there is something to do, something is being sent or is under way.
        match longest < u128::from(u64::MAX / 2) {
            true => Ok(()),
            false => Err(PlanError::TooLong),
        }
    }

    /// All parts are where they start.
    fn begin(&mut self) {
        for part in 0..narrow(self.bytes.len()) {
            let leg = self.legs.of.get(part as usize)[0];
            self.leave(self.stages[leg as usize][0], part);
            self.come(part, 0);
        }
        for link in 0..narrow(self.beginning.len()) {
            self.serve(link, 0);
        }
    }

    fn happen(&mut self, (now, what, which, stage): Event) {
        match (what, stage) {
            (LINK, _) => self.serve(which, now),
            (part, 0) => {
                let link = self.come(part, which);
                self.serve(link, now);
            }
            (part, stage) => self.pass(Step { part, leg: which }, stage, now),
        }
    }

    fn sending(&self, stage: Stage, part: u32) -> u64 {
        let bytes = self.bytes[part as usize];
        stage.beta.transmission(bytes).as_ps()
    }

    /// A part is on its way to a server.
    fn leave(&mut self, stage: Stage, part: u32) {
        self.ahead[stage.server as usize] -= self.sending(stage, part);
    }

    /// A part is there for one of its legs, and waits for the link that is returned.
    fn come(&mut self, part: u32, leg: u32) -> u32 {
        let at = (self.legs.of.offsets()[part as usize] + leg) as usize;
        let turn = match self.order {
            Order::MostAhead { turns } => turns[part as usize],
            Order::VirtualTime { .. } => 0,
        };
        let entry = (self.rank[at], Reverse(turn), part, leg);
        let group = &mut self.groups[self.group[at] as usize];
        group.waiting.push(entry);
        let link = self.legs.links[group.leg as usize][0];
        self.waiting[link.index()] += 1;
        link.0
    }

    /// A link out of an NPU takes the next part, if it is free and there is one.
    fn serve(&mut self, link: u32, now: u64) {
        let l = link as usize;
        if self.free[l] > now || self.waiting[l] == 0 {
            return;
        }
        let Some(g) = self.choose(l, now) else {
            return;
        };
        let group = &mut self.groups[g as usize];
        let Some((.., part, leg)) = group.waiting.pop() else {
            return;
        };
        group.left -= 1;
        let way = self.legs.of.get(part as usize)[leg as usize] as usize;
        if group.left == 0 {
            self.beginning[l].retain(|&other| other != g);
        }
        self.waiting[l] -= 1;
        for i in 1..self.stages[way].len() {
            let stage = self.stages[way][i];
            self.leave(stage, part);
            self.coming[stage.server as usize] += self.sending(stage, part);
        }
        if let Some(&next) = self.legs.of.get(part as usize).get(leg as usize + 1) {
            self.leave(self.stages[next as usize][0], part);
        }
        self.tail[part as usize] = now;
        self.pass(Step { part, leg }, 0, now);
        self.events.push(Reverse((self.free[l], LINK, link, 0)));
    }

    /// Returns the group of which a free link takes a part.
    fn choose(&mut self, link: usize, now: u64) -> Option<u32> {
        let groups = &self.beginning[link];
        if let [only] = groups[..] {
            return Some(only);
        }
        let from = self.from[link] % groups.len().max(1);
        let in_turn = groups[from..].iter().chain(&groups[..from]);
        let mut best = None;
        let mut compared = 0;
        for (i, &g) in in_turn.enumerate() {
            let group = &self.groups[g as usize];
            let Some(&entry) = group.waiting.peek() else {
                continue;
            };
            let stages = &self.stages[group.leg as usize];
            let late = match stages.len() {
                1 => 0,
                _ => self.late(stages, self.bytes[entry.2 as usize], now),
            };
            let within = stages[1..]
                .iter()
                .map(|stage| self.ahead[stage.server as usize]);
            let next = match group.next {
                NONE => 0,
                next => self.ahead[next as usize],
            };
            let needed = within.fold(next, u64::max);
            let key = (late, Reverse((needed, entry)));
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, g));
            }
            compared += 1;
            if compared == MOST_COMPARED {
                self.from[link] = from + i + 1;
                break;
            }
        }
        best.map(|(_, g)| g)
    }

    /// Returns how many parts of this size wait at the fullest link of a leg when one comes there that starts now.
    fn late(&self, stages: &[Stage], bytes: u64, now: u64) -> u64 {
        let mut late = 0;
        let mut lag = 0;
        for (i, stage) in stages.iter().enumerate() {
            let sending = stage.beta.transmission(bytes).as_ps().max(1);
            if i > 0 {
                let server = stage.server as usize;
                let queue = self.coming[server] + self.free[server].saturating_sub(now);
                late = late.max(queue.saturating_sub(lag) / sending);
            }
            lag += stage.latency + if self.cut_through { 0 } else { sending };
        }
        late
    }

    /// A part is at a stage of a leg, which serves it after those that came before.
    fn pass(&mut self, step: Step, i: u32, now: u64) {
        let part = step.part as usize;
        let legs = self.legs.of.get(part);
        let way = legs[step.leg as usize] as usize;
        let stage = self.stages[way][i as usize];
        let server = stage.server as usize;
        let sending = self.sending(stage, step.part);
        let start = now.max(self.free[server]);
        let mut sent = start + sending;
        if self.cut_through {
            sent = sent.max(self.tail[part]);
        }
        self.free[server] = sent;
        if i > 0 {
            self.coming[server] -= sending;
        }
        if i as usize == self.busiest[way] {
            self.served.push((start, step));
        }
        let arrival = sent + stage.latency;
        self.tail[part] = arrival;
        if i as usize + 1 < self.stages[way].len() {
            let head = match self.cut_through {
                true => start + stage.latency,
                false => arrival,
            };
            self.events
                .push(Reverse((head, step.part, step.leg, i + 1)));
        } else if step.leg as usize + 1 < legs.len() {
            self.events
                .push(Reverse((arrival, step.part, step.leg + 1, 0)));
        }
    }
}

fn stages(topology: &Topology, way: &[LinkId]) -> Vec<Stage> {
    let links = topology.links().len();
    let mut stages = Vec::new();
    for &id in way {
        let link = topology.link(id);
        if let Some(limit) = topology.device(link.src).limit {
            stages.push(Stage {
                server: narrow(links + link.src.index()),
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

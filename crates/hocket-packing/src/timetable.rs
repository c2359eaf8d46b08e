//! When trees send: a timetable that repeats, so that links that are full stay full.
//!
//! Every tree carries one piece after another. The busiest link needs a period for one piece of all trees. Each link
//! has as many slots in a period as pieces fit, and each arc of a tree has a slot of its own on every link of its way,
//! the same in each period. The links then never wait for more than the first pieces: a piece takes a period more than
//! the one before, whatever the order. Slots are taken as early as possible after what they wait for, so that few
//! periods pass before the first piece is everywhere.
//!
//! # Source
//! Modulo scheduling: Rau, Glaeser, Some scheduling techniques and an easily schedulable horizontal architecture for
//! high performance scientific computing, 1981.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{TreeArc, TreeSet};
use crate::id::{fit, narrow};
use crate::topology::{Switching, Topology};
use crate::units::Bandwidth;
use hocket_plan::plan::PlanError;

/// When each arc of each tree starts with the first piece.
#[derive(Clone, Debug)]
pub(super) struct Timetable {
    /// By tree and arc [ps].
    pub starts: Vec<Vec<u64>>,
    /// The same, when the piece is there.
    pub ends: Vec<Vec<u64>>,
    /// From one piece to the next [ps].
    pub period: u64,
}

/// What serves a piece on its way: a link, or a switch with a limit.
#[derive(Clone, Copy, Debug)]
struct Stage {
    server: u32,
    sending: u64,
    latency: u64,
}

/// Free slots that are compared for the start of an arc.
const MOST_COMPARED: usize = 64;

impl Timetable {
    /// For so many pieces, of so many bytes each.
    ///
    /// # Errors
    /// [`PlanError::TooLong`].
    pub(crate) fn new(
        topology: &Topology,
        set: &TreeSet,
        bytes: u64,
        pieces: u32,
        turns: Turns,
    ) -> Result<Self, PlanError> {
        let board = Board::new(topology, &[set], bytes, pieces)?;
        let tables = turns.of(&[set]).iter().map(|&turn| {
            let mut slots = board.slots.clone();
            [board.fill(&mut slots, 0, set, turn)]
        });
        let [best] = soonest(tables);
        Ok(best)
    }

    /// For sums and copies that go on at once over the same links: of sums mirrored in time, so that both
    /// start at the roots, and from the same moment.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn together(
        topology: &Topology,
        sums: &TreeSet,
        copies: &TreeSet,
        bytes: u64,
        pieces: u32,
        turns: Turns,
    ) -> Result<[Self; 2], PlanError> {
        let board = Board::new(topology, &[sums, copies], bytes, pieces)?;
        let tables = turns.of(&[sums, copies]).iter().map(|&turn| {
            let mut slots = board.slots.clone();
            let copied = board.fill(&mut slots, 1, copies, turn);
            slots.iter_mut().for_each(Slots::mirror);
            [board.fill(&mut slots, 0, sums, turn), copied]
        });
        Ok(soonest(tables))
    }

    /// When the first piece is everywhere [ps].
    pub(crate) fn first(&self) -> u64 {
        self.ends.iter().flatten().max().copied().unwrap_or(0)
    }

    /// For each arc of all trees, how many of its pieces are under way at a time.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = u32> + '_ {
        let spans = self.starts.iter().flatten().zip(self.ends.iter().flatten());
        // Plans have far fewer pieces than that.
        let pieces = |span: u64| u32::try_from(span.div_ceil(self.period)).unwrap_or(u32::MAX / 2);
        spans.map(move |(start, end)| pieces(end - start))
    }

    /// When the last of so many pieces is everywhere [ps].
    pub(crate) fn last(&self, pieces: u32) -> u64 {
        self.first() + u64::from(pieces - 1) * self.period
    }
}

/// Which arc takes its slots first, of those whose sender has the piece.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// The one that may start first.
    Ready,
    /// The one with the longest way from its start to a leaf.
    Longest,
    /// The one of the tree that ends last, as far as is known.
    Latest,
}

impl Turn {
    /// Less is first.
    fn key(self, ready: u64, rest: u64) -> u64 {
        match self {
            Self::Ready => ready,
            Self::Longest => u64::MAX - rest,
            Self::Latest => u64::MAX - ready.saturating_add(rest),
        }
    }
}

/// Which turns are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turns {
    /// By when arcs may start, as links serve that have no order.
    Ready,
    /// All of them; one where there are many arcs.
    All,
}

impl Turns {
    fn of(self, sets: &[&TreeSet]) -> &'static [Turn] {
        const MANY: usize = 100_000;
        let trees = sets.iter().flat_map(|set| &set.trees);
        let arcs: usize = trees.map(|tree| tree.arcs.len()).sum();
        match self == Self::All && arcs < MANY {
            true => &[Turn::Ready, Turn::Longest, Turn::Latest],
            false => &[Turn::Ready],
        }
    }
}

/// Of timetables for the same trees the ones by which the first piece is everywhere soonest.
fn soonest<const N: usize>(tables: impl Iterator<Item = [Timetable; N]>) -> [Timetable; N] {
    let first = |tables: &[Timetable; N]| tables.iter().map(Timetable::first).sum::<u64>();
    tables.min_by_key(first).expect("there is a turn")
}

/// The slots of all links, and what trees need of them.
struct Board {
    /// By set and way.
    stages: Vec<Vec<Vec<Stage>>>,
    slots: Vec<Slots>,
    period: u64,
    cut_through: bool,
}

impl Board {
    fn new(
        topology: &Topology,
        sets: &[&TreeSet],
        bytes: u64,
        pieces: u32,
    ) -> Result<Self, PlanError> {
        let of = |set: &&TreeSet| -> Vec<Vec<Stage>> {
            let ways = 0..set.ways.len();
            ways.map(|way| stages(topology, set, way, bytes)).collect()
        };
        let stages: Vec<Vec<Vec<Stage>>> = sets.iter().map(of).collect();
        let servers = topology.links().len() + topology.device_count();
        let mut uses = vec![0u64; servers];
        let mut sending = vec![0u64; servers];
        for (set, stages) in sets.iter().zip(&stages) {
            for arc in set.trees.iter().flat_map(|tree| &tree.arcs) {
                for stage in &stages[arc.way as usize] {
                    uses[stage.server as usize] += 1;
                    sending[stage.server as usize] = stage.sending;
                }
            }
        }
        let busy = uses.iter().zip(&sending);
        let period = busy.map(|(&uses, &sending)| u128::from(uses) * u128::from(sending));
        let period = period.max().unwrap_or(0).max(1);
        let period = u64::try_from(period).map_err(|_| PlanError::TooLong)?;
        for (set, stages) in sets.iter().zip(&stages) {
            check_length(set, stages, period, pieces)?;
        }
        let slots = sending.iter();
        Ok(Self {
            slots: slots
                .zip(&uses)
                .map(|(&sending, &uses)| Slots::new(period, sending, uses))
                .collect(),
            stages,
            period,
            cut_through: topology.switching() == Switching::CutThrough,
        })
    }

    /// Takes slots for a set, of those that are free.
    fn fill(&self, slots: &mut [Slots], number: usize, set: &TreeSet, turn: Turn) -> Timetable {
        let stages = &self.stages[number];
        let trees = &set.trees;
        let zeros: Vec<Vec<u64>> = trees.iter().map(|tree| vec![0; tree.arcs.len()]).collect();
        let mut timetable = Timetable {
            starts: zeros.clone(),
            ends: zeros,
            period: self.period,
        };
        let below: Vec<Vec<Vec<u32>>> = trees.iter().map(|tree| children(&tree.arcs)).collect();
        let rest = trees.iter().map(|tree| heights(&tree.arcs, stages));
        let rest: Vec<Vec<u64>> = rest.collect();
        let mut heap = BinaryHeap::new();
        for (t, tree) in trees.iter().enumerate() {
            let arcs = tree.arcs.iter().enumerate();
            for (a, _) in arcs.filter(|(_, arc)| arc.parent == TreeArc::ROOT) {
                heap.push(Reverse((
                    turn.key(0, rest[t][a]),
                    Reverse(rest[t][a]),
                    t,
                    a,
                    0,
                )));
            }
        }
        let mut chosen = Vec::new();
        while let Some(Reverse((_, _, t, a, ready))) = heap.pop() {
            let way = &stages[trees[t].arcs[a].way as usize];
            choose(slots, way, ready, self.cut_through, &mut chosen);
            let mut end = ready;
            for (stage, &slot) in way.iter().zip(&chosen) {
                let its = &mut slots[stage.server as usize];
                its.take(slot);
                end = its.start(slot) + stage.sending + stage.latency;
            }
            timetable.starts[t][a] = slots[way[0].server as usize].start(chosen[0]);
            timetable.ends[t][a] = end;
            for &child in &below[t][a] {
                let child = child as usize;
                let rest = rest[t][child];
                heap.push(Reverse((turn.key(end, rest), Reverse(rest), t, child, end)));
            }
        }
        timetable
    }
}

/// Refuses what may end later than a time can be: no arc waits longer than a period at each link of its way.
fn check_length(
    set: &TreeSet,
    stages: &[Vec<Stage>],
    period: u64,
    pieces: u32,
) -> Result<(), PlanError> {
    let way = |way: &Vec<Stage>| -> u128 {
        let one = |stage: &Stage| 2 * u128::from(period) + u128::from(stage.latency);
        way.iter().map(one).sum()
    };
    let longest = stages.iter().map(way).max().unwrap_or(0);
    let deepest = set.trees.iter().map(|tree| tree.arcs.len()).max();
    let end = longest * deepest.unwrap_or(0) as u128;
    // Sums and copies, one after the other.
    let end = 2 * (end + u128::from(pieces) * u128::from(period));
    match end < u128::from(u64::MAX) {
        true => Ok(()),
        false => Err(PlanError::TooLong),
    }
}

fn stages(topology: &Topology, set: &TreeSet, way: usize, bytes: u64) -> Vec<Stage> {
    let links = topology.links().len();
    let sending = |bandwidth: Bandwidth| bandwidth.transmission(bytes).as_ps().max(1);
    let mut stages = Vec::new();
    for &id in &set.ways[way] {
        let link = topology.link(id);
        // Turned round, the limit of the switch at the other end; which, does not matter to its load.
        if let (Some(limit), false) = (topology.device(link.src).limit, topology.is_npu(link.src)) {
            stages.push(Stage {
                server: narrow(links + link.src.index()),
                sending: sending(limit),
                latency: 0,
            });
        }
        stages.push(Stage {
            server: id.0,
            sending: sending(link.bandwidth),
            latency: link.latency.as_ps(),
        });
    }
    stages
}

fn children(arcs: &[TreeArc]) -> Vec<Vec<u32>> {
    let mut below = vec![Vec::new(); arcs.len()];
    for (i, arc) in (0..)
        .zip(arcs)
        .filter(|(_, arc)| arc.parent != TreeArc::ROOT)
    {
        below[arc.parent as usize].push(i);
    }
    below
}

/// For each arc how long the longest way from its start to a leaf takes, alone.
fn heights(arcs: &[TreeArc], stages: &[Vec<Stage>]) -> Vec<u64> {
    let own = |arc: &TreeArc| -> u64 {
        let stages = stages[arc.way as usize].iter();
        stages.map(|stage| stage.sending + stage.latency).sum()
    };
    let mut heights: Vec<u64> = arcs.iter().map(own).collect();
    for (i, arc) in arcs.iter().enumerate().rev() {
        if arc.parent != TreeArc::ROOT {
            let parent = arc.parent as usize;
            let height = own(&arcs[parent]) + heights[i];
            heights[parent] = heights[parent].max(height);
        }
    }
    heights
}

/// Puts into `best` the slots of a way that bring a piece there soonest; of these, those that start last.
fn choose(slots: &[Slots], way: &[Stage], ready: u64, cut_through: bool, best: &mut Vec<u64>) {
    let first = &slots[way[0].server as usize];
    let stay = |stage: &Stage| stage.latency + if cut_through { 0 } else { stage.sending };
    let (last, others) = way.split_last().expect("a way has a link");
    let alone = others.iter().map(stay).sum::<u64>() + last.sending + last.latency;
    let mut soonest: Option<u64> = None;
    let mut chosen = Vec::with_capacity(way.len());
    let mut from = ready;
    for _ in 0..MOST_COMPARED {
        let start = first.free_from(from);
        let mut begin = first.start(start);
        from = begin + 1;
        if soonest.is_some_and(|end| begin + alone > end) {
            break;
        }
        chosen.clear();
        chosen.push(start);
        for (before, stage) in way.iter().zip(&way[1..]) {
            let its = &slots[stage.server as usize];
            let slot = its.free_from(begin + stay(before));
            begin = its.start(slot);
            chosen.push(slot);
        }
        let end = begin + last.sending + last.latency;
        if soonest.is_none_or(|earliest| end <= earliest) {
            soonest = Some(end);
            std::mem::swap(best, &mut chosen);
        }
        if way.len() == 1 {
            break;
        }
    }
}

/// The slots of a link in one period; slot i of period p is number p x slots + i.
#[derive(Clone, Debug)]
struct Slots {
    period: u64,
    count: u64,
    free: Vec<u64>,
    left: u64,
}

impl Slots {
    fn new(period: u64, sending: u64, uses: u64) -> Self {
        /// More slots than most uses would need to be told apart.
        const MOST: u64 = 1 << 14;
        let count = period.checked_div(sending).unwrap_or(0).min(MOST.max(uses));
        let words: usize = fit(count.div_ceil(64));
        let mut free = vec![u64::MAX; words];
        if !count.is_multiple_of(64) {
            free[words - 1] = (1 << (count % 64)) - 1;
        }
        Self {
            period,
            count,
            free,
            left: count,
        }
    }

    fn start(&self, slot: u64) -> u64 {
        let (period, i) = (slot / self.count, slot % self.count);
        let within = match i.checked_mul(self.period) {
            Some(scaled) => scaled / self.count,
            None => fit(u128::from(i) * u128::from(self.period) / u128::from(self.count)),
        };
        period * self.period + within
    }

    /// Returns the first free slot that starts at a time or later.
    fn free_from(&self, time: u64) -> u64 {
        let (period, within) = (time / self.period, time % self.period);
        let first = match within.checked_mul(self.count) {
            Some(scaled) => scaled.div_ceil(self.period),
            None => {
                let scaled = u128::from(within) * u128::from(self.count);
                fit(scaled.div_ceil(u128::from(self.period)))
            }
        };
        debug_assert!(self.left > 0);
        match self.next_free(first) {
            Some(i) => period * self.count + i,
            None => (period + 1) * self.count + self.next_free(0).expect("a slot is left"),
        }
    }

    fn next_free(&self, from: u64) -> Option<u64> {
        if from >= self.count {
            return None;
        }
        let first = (from / 64) as usize;
        let head = self.free[first] & (u64::MAX << (from % 64));
        let words = std::iter::once(head).chain(self.free[first + 1..].iter().copied());
        let mut words = (first as u64..).zip(words).filter(|(_, word)| *word != 0);
        words
            .next()
            .map(|(i, word)| i * 64 + u64::from(word.trailing_zeros()))
    }

    /// Turns the period round: what was its first slot is its last.
    fn mirror(&mut self) {
        let is_free = |i: u64| self.free[(i / 64) as usize] >> (i % 64) & 1 == 1;
        let free: Vec<u64> = (0..self.count)
            .filter(|&i| is_free(self.count - 1 - i))
            .collect();
        self.free.fill(0);
        for i in free {
            self.free[(i / 64) as usize] |= 1 << (i % 64);
        }
    }

    fn take(&mut self, slot: u64) {
        let i = slot % self.count;
        self.free[(i / 64) as usize] &= !(1 << (i % 64));
        self.left -= 1;
    }
}

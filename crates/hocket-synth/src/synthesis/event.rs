//! Greedy matching, event by event: links of any cost, chunks of any size, links reserved.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::delivery::{Bits, Delivery};
use super::detour::{Detour, Near};
use super::network::{Timing, UnwoundNetwork};
use super::timetable::{Send, Timetable};
use crate::id::narrow;
use crate::progress::{Interrupted, Progress};
use crate::units::Seed;

/// Which of the chunks that could go over an edge does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Any: the first from a random place on.
    Any,
    /// The one that fewest NPUs have.
    Rarest,
    /// From node to node, the one that fewest nodes have, and one that the receiver's has not if there is any.
    RarestNode,
    /// The one with the longest way still before it.
    Farthest,
}

/// One search: what is matched, and how.
pub(super) struct Matching<'a> {
    pub(super) network: &'a UnwoundNetwork,
    pub(super) spread: &'a Delivery,
    /// Of edge x sizes.
    pub(super) timings: &'a [Timing],
    /// Stretches of time that each edge is not to be used in, ascending; empty for none at all.
    pub(super) reserved: &'a [Vec<(u64, u64)>],
    /// For [`Choice::Farthest`]: the way still before each chunk at each NPU, of NPU x chunks.
    pub(super) ahead: &'a [u32],
    pub(super) choice: Choice,
    /// Faster ways round slow edges, and what to do about them.
    pub(super) near: &'a Near,
    pub(super) detour: Detour,
    pub(super) seed: u64,
    /// Gives up where it would take longer.
    pub(super) limit: u64,
}

const NOTHING: u32 = u32::MAX;

/// Matches chunks to edges, greedily, at every moment at which an edge falls free or a chunk comes.
///
/// Shorter edges choose first. An edge sends only what its NPU has at that moment. A chunk that is
/// under way to an NPU and could come sooner over another edge, which has nothing else to send, takes
/// that edge, and the transfer under way carries another chunk that its sender already had when it
/// began (so that the plan can be carried out).
///
/// `None` where the limit is passed, or where some chunk can reach no one who wants it.
///
/// # Complexity
/// O(sends x (log edges + degree x chunks / 64)); choosing the rarest or the farthest looks at every
/// candidate.
///
/// # Source
/// TACOS, section VI.
pub(super) fn matched(
    matching: &Matching<'_>,
    progress: &mut dyn Progress,
) -> Result<Option<Timetable>, Interrupted> {
    State::new(matching).run(progress)
}

struct State<'a> {
    with: &'a Matching<'a>,
    sizes: usize,
    have: Bits,
    missing: Bits,
    left: u64,
    /// Who has each chunk or is to get it.
    count: Vec<u32>,
    /// How many NPUs of each node have each chunk or are to get it, of node x chunks, and how many nodes have it; empty but
    /// for [`Choice::RarestNode`].
    in_node: Vec<u32>,
    node_count: Vec<u32>,
    free: Vec<u64>,
    /// The latest send of each edge.
    last: Vec<u32>,
    /// When each NPU gets each chunk, `u64::MAX` for not yet known; empty where no edge is slower
    /// than another.
    due: Vec<u64>,
    sends: Vec<Send>,
    events: BinaryHeap<Reverse<(u64, u32)>>,
    /// Edges to look at now.
    awake: Vec<u32>,
    is_awake: Vec<bool>,
    /// Rank of each edge in the order in which edges choose.
    turn: Vec<u32>,
    random: Seed,
    now: u64,
    /// Edges, words and candidates that were looked at since the last report.
    looked: u64,
}

/// Bit of an event's code: the edge falls free, or (without it) the send of that number arrives, at which
/// its edge may be free as well.
const FREE: u32 = 1 << 31;

impl<'a> State<'a> {
    fn new(with: &'a Matching<'a>) -> Self {
        let (network, spread) = (with.network, with.spread);
        let (edges, sizes) = (network.edges().len(), spread.sizes.len());
        let mut random = Seed(with.seed ^ 0x5851_f42d_4c95_7f2d);
        let mut order: Vec<(u64, u64, u32)> = (0..narrow(edges))
            .map(|edge| {
                let delay = with.timings[edge as usize * sizes].delay;
                (delay, random.next_u64(), edge)
            })
            .collect();
        order.sort_unstable();
        let mut turn = vec![0; edges];
        for (rank, &(_, _, edge)) in order.iter().enumerate() {
            turn[edge as usize] = narrow(rank);
        }
        let missing = spread.missing();
        let have = spread.held();
        let mut events = BinaryHeap::new();
        let is_even = order.first().map(|&(delay, ..)| delay) == order.last().map(|&(d, ..)| d);
        let mut due = Vec::new();
        if !is_even && spread.npus * spread.chunks() <= 1 << 26 {
            due.resize(spread.npus * spread.chunks(), u64::MAX);
            for (chunk, &(npu, from)) in spread.holders.iter().enumerate() {
                due[npu as usize * spread.chunks() + chunk] = from;
            }
            for &(chunk, npu) in &spread.others {
                due[npu as usize * spread.chunks() + chunk as usize] = 0;
            }
        }
        for edge in 0..narrow(edges) {
            events.push(Reverse((0, edge | FREE)));
        }
        let mut in_node = Vec::new();
        let mut node_count = Vec::new();
        if with.choice == Choice::RarestNode {
            in_node.resize(network.nodes() * spread.chunks(), 0);
            node_count.resize(spread.chunks(), 0);
        }
        let mut state = Self {
            with,
            sizes,
            left: missing.count(),
            have,
            missing,
            count: vec![1; spread.chunks()],
            in_node,
            node_count,
            free: vec![0; edges],
            last: vec![NOTHING; edges],
            due,
            sends: Vec::new(),
            events,
            awake: Vec::new(),
            is_awake: vec![false; edges],
            turn,
            random,
            now: 0,
            looked: 0,
        };
        for (chunk, &(npu, _)) in (0..).zip(&spread.holders) {
            state.count_in_node(npu as usize, chunk, 1);
        }
        for &(chunk, npu) in &spread.others {
            state.count_in_node(npu as usize, chunk, 1);
        }
        state
    }

    /// One NPU more (1) or less (-1) has a chunk, or is to get it.
    fn count_in_node(&mut self, npu: usize, chunk: u32, more: i32) {
        if self.in_node.is_empty() {
            return;
        }
        let node = self.with.network.node_of()[npu] as usize;
        let count = &mut self.in_node[node * self.with.spread.chunks() + chunk as usize];
        let had = *count > 0;
        *count = count.saturating_add_signed(more);
        let nodes = &mut self.node_count[chunk as usize];
        match (had, *count > 0) {
            (false, true) => *nodes += 1,
            (true, false) => *nodes -= 1,
            _ => {}
        }
    }

    /// Returns how many have a chunk, as far as that matters to an edge; more where it would be of less use there.
    fn rarity(&self, [src, dst]: [usize; 2], chunk: usize) -> u64 {
        let everywhere = u64::from(self.count[chunk]);
        if self.in_node.is_empty() {
            return everywhere;
        }
        let [from, to] = [src, dst].map(|npu| self.with.network.node_of()[npu]);
        if from == to {
            return everywhere;
        }
        let is_there = self.in_node[to as usize * self.with.spread.chunks() + chunk] > 0;
        u64::from(is_there) << 48 | u64::from(self.node_count[chunk]) << 24 | everywhere
    }

    fn run(mut self, progress: &mut dyn Progress) -> Result<Option<Timetable>, Interrupted> {
        let spread = self.with.spread;
        let mut releases: Vec<(u64, u32)> = (0..)
            .zip(&spread.holders)
            .filter(|(_, (_, from))| *from > 0)
            .map(|(chunk, &(_, from))| (from, chunk))
            .collect();
        releases.sort_unstable_by(|a, b| b.cmp(a));
        let total = self.left;
        while self.left > 0 {
            let next = self.events.peek().map(|Reverse((time, _))| *time);
            let release = releases.last().map(|&(time, _)| time);
            let Some(now) = next.into_iter().chain(release).min() else {
                return Ok(None);
            };
            self.now = now;
            if self.now > self.with.limit {
                return Ok(None);
            }
            progress.spend(std::mem::take(&mut self.looked));
            if !progress.report("matching", total - self.left, total) {
                return Err(Interrupted);
            }
            while releases.last().is_some_and(|&(time, _)| time == self.now) {
                let (_, chunk) = releases.pop().expect("looked at just now");
                self.hold(spread.holders[chunk as usize].0, chunk);
            }
            while let Some(&Reverse((time, code))) = self.events.peek()
                && time == self.now
            {
                self.events.pop();
                match code & FREE {
                    0 => self.arrive(code),
                    _ => self.wake(code & !FREE),
                }
            }
            self.choose();
        }
        Ok(Some(Timetable::new(self.sends, self.with.timings, spread)))
    }

    fn hold(&mut self, npu: u32, chunk: u32) {
        self.have.set(npu as usize, chunk as usize);
        let network = self.with.network;
        for &edge in network.out_edges(npu as usize) {
            self.wake(edge);
        }
    }

    fn wake(&mut self, edge: u32) {
        if self.free[edge as usize] <= self.now
            && !std::mem::replace(&mut self.is_awake[edge as usize], true)
        {
            self.awake.push(edge);
        }
    }

    fn arrive(&mut self, send: u32) {
        let Send { chunk, edge, .. } = self.sends[send as usize];
        self.wake(edge);
        if chunk == NOTHING {
            return;
        }
        let npu = self.with.network.edges()[edge as usize].dst.0;
        self.left -= 1;
        self.hold(npu, chunk);
    }

    /// Every edge awake sends something, if it can.
    fn choose(&mut self) {
        let mut awake = std::mem::take(&mut self.awake);
        awake.sort_unstable_by_key(|&edge| self.turn[edge as usize]);
        self.looked += 4 * awake.len() as u64;
        for &edge in &awake {
            self.is_awake[edge as usize] = false;
            // What would come too late leaves the chunk to faster edges.
            let too_late = self.now.saturating_add(self.timing(edge, 0).delay) > self.with.limit;
            if too_late || self.is_reserved(edge) {
                continue;
            }
            let mut chunk = self.pick(edge, None, self.with.detour != Detour::Ignore);
            if chunk == NOTHING && self.with.detour == Detour::Avoid {
                chunk = self.pick(edge, None, false);
            }
            match chunk {
                NOTHING => self.take_over(edge),
                chunk => self.send(edge, chunk),
            }
        }
        awake.clear();
        self.awake = awake;
    }

    /// Returns whether the edge has to stay free for a reserved stretch; it is looked at again after it.
    fn is_reserved(&mut self, edge: u32) -> bool {
        let Some(stretches) = self.with.reserved.get(edge as usize) else {
            return false;
        };
        let occupied = (0..self.sizes)
            .map(|size| self.timing(edge, size).occupied)
            .max();
        let end = self.now + occupied.unwrap_or(0);
        let next = stretches.partition_point(|&(_, to)| to <= self.now);
        match stretches.get(next) {
            Some(&(from, to)) if from < end => {
                self.events.push(Reverse((to, edge | FREE)));
                true
            }
            _ => false,
        }
    }

    fn timing(&self, edge: u32, size: usize) -> Timing {
        self.with.timings[edge as usize * self.sizes + size]
    }

    /// Returns a chunk that the edge's sender has, or had at `since`, and its receiver lacks.
    ///
    /// With `direct`, none that would come sooner another way.
    fn pick(&mut self, edge: u32, since: Option<u64>, direct: bool) -> u32 {
        let (found, looked) = self.look(edge, since, direct);
        self.looked += looked;
        found
    }

    /// As [`Self::pick`], with how many words and chunks were looked at.
    fn look(&mut self, edge: u32, since: Option<u64>, direct: bool) -> (u32, u64) {
        let ends = self.with.network.edges()[edge as usize];
        let (src, dst) = (ends.src.index(), ends.dst.index());
        let (have, missing) = (self.have.row(src), self.missing.row(dst));
        let width = have.len();
        let start = self.random.below(width.max(1));
        let (mut best, mut best_value) = (NOTHING, u64::MAX);
        let chunks = self.with.spread.chunks();
        let near = match direct && !self.due.is_empty() {
            true => self.with.near.of(edge),
            false => &[],
        };
        let arrival = self.now + self.timing(edge, 0).delay;
        let mut looked = 0;
        for i in 0..width {
            looked += 1;
            let w = if start + i < width {
                start + i
            } else {
                start + i - width
            };
            let mut word = have[w] & missing[w];
            if word == 0 {
                continue;
            }
            let turn = (self.random.0 & 63) as u32;
            word = word.rotate_right(turn);
            while word != 0 {
                looked += 1;
                let chunk = narrow(w * 64) + ((word.trailing_zeros() + turn) & 63);
                word &= word - 1;
                let held = src * chunks + chunk as usize;
                if since.is_some_and(|since| self.due[held] > since) {
                    continue;
                }
                let sooner = |&(npu, far): &(u32, u64)| {
                    let due = self.due[npu as usize * chunks + chunk as usize];
                    due != u64::MAX && due.max(self.now) + far < arrival
                };
                if near.iter().any(sooner) {
                    continue;
                }
                let value = match self.with.choice {
                    Choice::Any => return (chunk, looked),
                    Choice::Rarest | Choice::RarestNode => self.rarity([src, dst], chunk as usize),
                    Choice::Farthest => u64::from(!self.with.ahead[held]),
                };
                if value < best_value {
                    (best, best_value) = (chunk, value);
                }
            }
        }
        (best, looked)
    }

    fn send(&mut self, edge: u32, chunk: u32) {
        let timing = self.timing(edge, self.with.spread.class[chunk as usize] as usize);
        let dst = self.with.network.edges()[edge as usize].dst.index();
        self.missing.clear(dst, chunk as usize);
        self.count[chunk as usize] += 1;
        self.count_in_node(dst, chunk, 1);
        let send = narrow(self.sends.len());
        self.sends.push(Send {
            chunk,
            edge,
            start: self.now,
        });
        self.last[edge as usize] = send;
        self.free[edge as usize] = self.now + timing.occupied;
        self.set_due(dst, chunk, self.now + timing.delay);
        self.events.push(Reverse((self.now + timing.delay, send)));
        if timing.occupied != timing.delay {
            let free = self.now + timing.occupied;
            self.events.push(Reverse((free, edge | FREE)));
        }
    }

    fn set_due(&mut self, npu: usize, chunk: u32, time: u64) {
        if !self.due.is_empty() {
            self.due[npu * self.with.spread.chunks() + chunk as usize] = time;
        }
    }

    /// An edge that has nothing to send takes over a chunk that would come later over another.
    fn take_over(&mut self, edge: u32) {
        if self.due.is_empty() {
            return;
        }
        let network = self.with.network;
        let ends = network.edges()[edge as usize];
        for &other in network.in_edges(ends.dst.index()) {
            let send = self.last[other as usize];
            if other == edge || send == NOTHING {
                continue;
            }
            let Send { chunk, start, .. } = self.sends[send as usize];
            if chunk == NOTHING || !self.have.get(ends.src.index(), chunk as usize) {
                continue;
            }
            let size = self.with.spread.class[chunk as usize] as usize;
            let arrival = start + self.timing(other, size).delay;
            if arrival <= self.now + self.timing(edge, size).delay {
                continue;
            }
            let replacement = self.pick(other, Some(start), false);
            if replacement != NOTHING
                && self.with.spread.class[replacement as usize] as usize == size
            {
                self.missing.clear(ends.dst.index(), replacement as usize);
                self.count[replacement as usize] += 1;
                self.count_in_node(ends.dst.index(), replacement, 1);
                self.sends[send as usize].chunk = replacement;
                self.set_due(ends.dst.index(), replacement, arrival);
            } else {
                self.sends[send as usize].chunk = NOTHING;
            }
            self.count[chunk as usize] -= 1;
            self.count_in_node(ends.dst.index(), chunk, -1);
            self.send(edge, chunk);
            return;
        }
    }
}

//! Max-min fair rates of flows that come and go: what there is, and what passes it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;

use crate::id::narrow;

/// Of a level: none. Of a flow's most: as much as there is.
pub(super) const NONE: u128 = u128::MAX;

/// One server on a flow's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Its number.
    pub server: u32,
    /// How much of the flow passes it, in parts of the scale; at least 1. A flow that is sprayed over
    /// n links of equal speed has scale / n on each, rounded up, and the scale where it passes whole.
    pub weight: u32,
}

/// What a refill knows of a flow.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum State {
    /// It has the rate that it had before.
    #[default]
    Kept,
    /// Its rate is higher than the level that the refill has come to.
    Growing,
    /// It has another rate than before, for good.
    Stopped,
}

/// A flow's passage over a server.
#[derive(Clone, Copy)]
pub(super) struct Crossing {
    pub(super) flow: u32,
    /// Which of its passes.
    pub(super) pass: u32,
    pub(super) weight: u32,
}

#[derive(Clone, Default)]
pub(super) struct Flow {
    pub(super) rate: u128,
    pub(super) most: u128,
    /// What it passes, each with its place in that server's list.
    pub(super) passes: Vec<(Pass, u32)>,
    pub(super) state: State,
    /// Whether it came since the last refill.
    is_new: bool,
    /// Whether it went since then, and nothing took its slot.
    is_leaving: bool,
}

pub(super) struct Server {
    /// What it has to give: its capacity times the scale.
    pub(super) room: u128,
    /// What its flows have: weight x rate, of those that do not grow.
    pub(super) load: u128,
    /// Weights of all its flows.
    pub(super) weight: u64,
    /// The rate at which it stops flows, or [`NONE`].
    pub(super) level: u128,
    pub(super) crossing: Vec<Crossing>,
    /// Passages, without those of flows that are leaving.
    present: usize,

    /// Level of its next event in the refill under way, or [`NONE`].
    pub(super) key: u128,
    /// Weights of flows that grow; once it is open, of all that are not taken off `left`.
    pub(super) growing: u64,
    pub(super) is_touched: bool,
    /// Whether all its flows have been looked at: then `left` and `kept` are right.
    pub(super) is_open: bool,
    pub(super) left: u128,
    /// Its part of [`Fair::kept`] that is still ahead.
    pub(super) kept: (usize, usize),
}

/// Flows under way, by slot, and their max-min fair rates.
///
/// All rates grow together, step by step, from 0. Where one more step of all that still grow is more
/// than a server has, all that pass it stop. So does a flow that has its own most. Servers that are full
/// at the same step stop their flows together. What rates come to is therefore a function of the flows
/// alone, not of the order in which they came, nor of how servers and slots are numbered.
///
/// A step is one unit, or with [`Fair::rounded`] to the next number of so many bits. Each flow has its
/// most, or passes a server on which no flow is faster and which has less left than one more step of
/// all that are as fast. No server ever gives more than it has.
///
/// # Limits
/// A capacity times the scale fits into 128 bits; weights are 32 bits, and those of a server add up
/// to less than 2^64. Nothing overflows then: a weight times a rate is at most what its server has.
pub struct Fair {
    pub(super) servers: Vec<Server>,
    pub(super) flows: Vec<Flow>,
    /// Leading bits that rates keep.
    pub(super) bits: u32,
    /// Slots of flows that came and that went since the last refill; some no longer are so.
    came: Vec<u32>,
    went: Vec<u32>,
    pub(super) renewed: Vec<u32>,

    /// Events of servers (level, server); those whose level is not the server's key are void.
    pub(super) events: BinaryHeap<Reverse<(u128, u32)>>,
    /// Events of flows that grow and have a most.
    pub(super) mosts: BinaryHeap<Reverse<(u128, u32)>>,
    pub(super) touched: Vec<u32>,
    /// Servers that stop their flows at this level, and that no longer do.
    pub(super) full: Vec<u32>,
    pub(super) eased: Vec<u32>,
    /// By open server: flows that kept their rates, slowest first: rate, flow, weight.
    pub(super) kept: Vec<(u128, u32, u32)>,
    /// Flows that have not kept their rates.
    pub(super) moved: Vec<u32>,
    pub(super) work: usize,
}

impl Fair {
    /// Servers of these capacities, in any one unit: that of rates. A flow of rate r takes
    /// r x weight / scale of a server.
    pub fn new(capacity: Vec<u128>, scale: u32) -> Self {
        let server = |capacity: u128| Server {
            room: capacity * u128::from(scale),
            load: 0,
            weight: 0,
            level: NONE,
            crossing: Vec::new(),
            present: 0,
            key: NONE,
            growing: 0,
            is_touched: false,
            is_open: false,
            left: 0,
            kept: (0, 0),
        };
        Self {
            servers: capacity.into_iter().map(server).collect(),
            flows: Vec::new(),
            bits: u128::BITS,
            came: Vec::new(),
            went: Vec::new(),
            renewed: Vec::new(),
            events: BinaryHeap::new(),
            mosts: BinaryHeap::new(),
            touched: Vec::new(),
            full: Vec::new(),
            eased: Vec::new(),
            kept: Vec::new(),
            moved: Vec::new(),
            work: 0,
        }
    }

    /// Returns the same, and all rates but a flow's own most keep so many leading bits, rounded down.
    ///
    /// A server then leaves up to 2^(1 - bits) of its capacity, but what happens far off rarely matters:
    /// the fewer bits, the fewer flows does a change reach.
    pub fn rounded(self, bits: NonZeroU32) -> Self {
        Self {
            bits: bits.get(),
            ..self
        }
    }

    /// A flow comes to a free slot, and gets no more than `most` ([`u128::MAX`]: any); its rate is
    /// known after [`Self::refill`]. One that takes the slot of a flow that went since the last refill,
    /// with the same passes and most, keeps its rate, and nothing else changes either.
    pub fn add(&mut self, slot: u32, passes: &[Pass], most: u128) {
        let i = slot as usize;
        if i >= self.flows.len() {
            self.flows.resize(i + 1, Flow::default());
        }
        self.came.push(slot);
        if self.flows[i].is_leaving {
            let flow = &mut self.flows[i];
            let before = flow.passes.iter().map(|&(pass, _)| pass);
            if flow.most == most && before.eq(passes.iter().copied()) {
                flow.is_leaving = false;
                flow.is_new = true;
                for pass in passes {
                    self.servers[pass.server as usize].present += 1;
                }
                return;
            }
            self.unlink(slot);
        }
        let flow = &mut self.flows[i];
        flow.rate = 0;
        flow.most = most;
        flow.state = State::Growing;
        flow.is_new = true;
        for (number, &pass) in passes.iter().enumerate() {
            let server = &mut self.servers[pass.server as usize];
            flow.passes.push((pass, narrow(server.crossing.len())));
            server.crossing.push(Crossing {
                flow: slot,
                pass: narrow(number),
                weight: pass.weight,
            });
            server.present += 1;
            server.weight += u64::from(pass.weight);
            server.growing += u64::from(pass.weight);
        }
    }

    /// A flow goes.
    pub fn remove(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        flow.is_new = false;
        flow.is_leaving = true;
        for (pass, _) in &flow.passes {
            self.servers[pass.server as usize].present -= 1;
        }
        if flow.state == State::Growing {
            self.unlink(slot);
        } else {
            self.went.push(slot);
        }
    }

    /// Returns how many passages of flows a server has.
    pub fn crossings(&self, server: u32) -> usize {
        self.servers[server as usize].present
    }

    /// Returns what a flow passes.
    pub fn servers(&self, slot: u32) -> impl Iterator<Item = u32> {
        let passes = self.flows[slot as usize].passes.iter();
        passes.map(|(pass, _)| pass.server)
    }

    /// Returns what the last refill gave a flow.
    pub fn rate(&self, slot: u32) -> u128 {
        self.flows[slot as usize].rate
    }

    /// Takes leaving flows off their servers, and starts those that came. Those are in `moved`, or in
    /// `renewed` where they took the place of an equal one.
    pub(super) fn take_changes(&mut self) {
        let mut went = std::mem::take(&mut self.went);
        for slot in went.drain(..) {
            if self.flows[slot as usize].is_leaving {
                self.unlink(slot);
            }
        }
        self.went = went;
        let mut came = std::mem::take(&mut self.came);
        for slot in came.drain(..) {
            let flow = &mut self.flows[slot as usize];
            if !std::mem::take(&mut flow.is_new) {
                continue;
            }
            if flow.state == State::Kept {
                self.renewed.push(slot);
                continue;
            }
            self.moved.push(slot);
            if flow.passes.is_empty() {
                flow.rate = flow.most;
            } else {
                self.watch_growth(slot, 0);
            }
        }
        self.came = came;
    }

    fn unlink(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        flow.is_leaving = false;
        let is_growing = std::mem::take(&mut flow.state) == State::Growing;
        let rate = flow.rate;
        let mut passes = std::mem::take(&mut flow.passes);
        while let Some((Pass { server, weight }, at)) = passes.pop() {
            let i = server as usize;
            self.servers[i].crossing.swap_remove(at as usize);
            if let Some(&Crossing { flow, pass, .. }) = self.servers[i].crossing.get(at as usize) {
                match flow == slot {
                    true => passes[pass as usize].1 = at,
                    false => self.flows[flow as usize].passes[pass as usize].1 = at,
                }
            }
            let server = &mut self.servers[i];
            server.weight -= u64::from(weight);
            if is_growing {
                server.growing -= u64::from(weight);
            } else {
                server.load -= u128::from(weight) * rate;
                self.watch(narrow(i), self.servers[i].level);
            }
        }
        // Kept for its memory.
        self.flows[slot as usize].passes = passes;
    }
}

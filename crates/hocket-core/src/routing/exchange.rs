//! Exchanges along alternating chains, where missing links leave no balanced colouring.

use super::{Fabric, Flow};

/// Improves an assignment until the bound is met or no exchange helps.
///
/// An exchange takes a flow off a link of the largest load, to another spine; where that would load
/// a link too much, a flow of that link moves the other way, and so on, between the same two
/// spines. It is kept if the first link is relieved and no link that it touches rises to the largest
/// load, so that the maximum never rises and the number of links at it falls with every exchange.
///
/// # Complexity
/// At most [`MOST`] exchanges, each a chain of at most [`LONGEST`] moves for each flow and
/// spine that is tried.
pub(super) fn improve(fabric: &Fabric, flows: &[Flow], spines: Vec<u32>, bound: u64) -> Vec<u32> {
    let loads = super::loads(fabric, flows, &spines);
    if loads.iter().flatten().all(|&load| load <= bound) {
        return spines;
    }
    let mut state = State::new(fabric, flows, spines);
    for _ in 0..MOST {
        let largest = state.largest();
        if largest <= bound || !state.relieve_any(largest) {
            break;
        }
    }
    state.spines
}

/// Exchanges.
const MOST: usize = 1000;

/// Moves in a chain.
const LONGEST: usize = 64;

struct State<'a> {
    fabric: &'a Fabric,
    flows: &'a [Flow],
    spines: Vec<u32>,
    /// Loads of up- and downlinks.
    loads: [Vec<u64>; 2],
    /// Flows on up- and downlinks.
    on: [Vec<Vec<u32>>; 2],
}

impl<'a> State<'a> {
    fn new(fabric: &'a Fabric, flows: &'a [Flow], spines: Vec<u32>) -> Self {
        let links = fabric.tor_count() * fabric.spine_count();
        let mut state = Self {
            fabric,
            flows,
            spines: Vec::new(),
            loads: [vec![0; links], vec![0; links]],
            on: [vec![Vec::new(); links], vec![Vec::new(); links]],
        };
        for (flow, &spine) in spines.iter().enumerate() {
            state.put(flow as u32, spine);
        }
        state.spines = spines;
        state
    }

    fn largest(&self) -> u64 {
        self.loads.iter().flatten().copied().max().unwrap_or(0)
    }

    fn slots(&self, flow: u32, spine: u32) -> [usize; 2] {
        let Flow { src, dst, .. } = self.flows[flow as usize];
        [src, dst].map(|tor| self.fabric.slot(tor, spine))
    }

    fn put(&mut self, flow: u32, spine: u32) {
        let slots = self.slots(flow, spine);
        for (side, slot) in slots.into_iter().enumerate() {
            self.loads[side][slot] += self.flows[flow as usize].weight;
            self.on[side][slot].push(flow);
        }
    }

    fn shift(&mut self, flow: u32, to: u32) {
        let from = std::mem::replace(&mut self.spines[flow as usize], to);
        let slots = self.slots(flow, from);
        for (side, slot) in slots.into_iter().enumerate() {
            self.loads[side][slot] -= self.flows[flow as usize].weight;
            self.on[side][slot].retain(|&other| other != flow);
        }
        self.put(flow, to);
    }

    /// Whether an exchange relieved some link of that load.
    fn relieve_any(&mut self, largest: u64) -> bool {
        (0..2).any(|side| {
            let full = |slot: &usize| self.loads[side][*slot] == largest;
            let slots: Vec<usize> = (0..self.loads[side].len()).filter(full).collect();
            slots
                .into_iter()
                .any(|slot| self.relieve(side, slot, largest))
        })
    }

    fn relieve(&mut self, side: usize, slot: usize, largest: u64) -> bool {
        let from = (slot % self.fabric.spine_count()) as u32;
        let flows = self.on[side][slot].clone();
        flows.into_iter().any(|flow| {
            let Flow { src, dst, weight } = self.flows[flow as usize];
            let others: Vec<u32> = self.fabric.spines_between(src, dst).collect();
            weight > 0
                && others.into_iter().any(|to| {
                    let room = self.loads[side][self.slots(flow, to)[side]] + weight < largest;
                    to != from && room && self.chain(side, flow, to, largest)
                })
        })
    }

    /// Moves a flow of a full link to a spine where its link on that side has room, and what is in
    /// the way on the other side back; undone where it does not come to an end.
    fn chain(&mut self, side: usize, flow: u32, to: u32, largest: u64) -> bool {
        let from = self.spines[flow as usize];
        let mut moved = vec![flow];
        self.shift(flow, to);
        let (mut side, mut last, mut target) = (1 - side, flow, to);
        while moved.len() < LONGEST {
            let slot = self.slots(last, target)[side];
            if self.loads[side][slot] < largest {
                return true;
            }
            let back = if target == to { from } else { to };
            let before = self.loads[side][slot] - self.flows[last as usize].weight;
            let excess = self.loads[side][slot] - before.max(largest - 1);
            let Some(next) = self.in_the_way(side, slot, back, &moved, [excess, largest]) else {
                break;
            };
            self.shift(next, back);
            moved.push(next);
            (side, last, target) = (1 - side, next, back);
        }
        for &flow in moved.iter().rev() {
            let back = if self.spines[flow as usize] == to {
                from
            } else {
                to
            };
            self.shift(flow, back);
        }
        false
    }

    /// A flow that weighs the excess or more, and whose ToR's link to the other spine has room.
    fn in_the_way(
        &self,
        side: usize,
        slot: usize,
        to: u32,
        moved: &[u32],
        [excess, largest]: [u64; 2],
    ) -> Option<u32> {
        let fits = |&flow: &u32| {
            let Flow { src, dst, weight } = self.flows[flow as usize];
            let room = self.loads[side][self.slots(flow, to)[side]] + weight < largest;
            weight >= excess
                && room
                && !moved.contains(&flow)
                && self.fabric.path(src, dst, to).is_some()
        };
        self.on[side][slot].iter().copied().find(fits)
    }
}

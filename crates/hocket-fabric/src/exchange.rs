//! Exchanges along chains, where missing links leave no balanced colouring.

use super::assignment::loads;
use super::fabric::Slots;
use super::{Fabric, Flow, greedy};
use crate::id::narrow;
use crate::units::Seed;

/// Improves an assignment until the bound is met or no exchange helps, and begins anew from greedy
/// ones in other orders while it is not met: never worse than what it is given.
///
/// An exchange takes a flow off a link of the largest load, to another path. Where that would load a
/// link of it too much, a flow of that link moves on in turn, and so on. Chains are searched breadth
/// first, so that the shortest is found. One is kept if the first link is relieved and no link that it
/// touches rises to the largest load: the maximum never rises, and the number of links at it falls
/// with every exchange.
///
/// # Complexity
/// A search looks at a flow once, with all its choices; [`MAX_LOOKS`] choices in all.
pub(super) fn improve(fabric: &Fabric, flows: &[Flow], choices: Vec<u32>, bound: u64) -> Vec<u32> {
    let mut looks = 0;
    let mut best = relieved(fabric, flows, choices, bound, &mut looks);
    for start in 0..STARTS {
        if best.0 <= bound || looks >= MAX_LOOKS {
            break;
        }
        let choices = greedy_in_order(fabric, flows, &order(flows, start));
        let next = relieved(fabric, flows, choices, bound, &mut looks);
        if next.0 < best.0 {
            best = next;
        }
    }
    best.1
}

/// Choices looked at.
const MAX_LOOKS: u64 = 1 << 24;

/// Orders that are tried besides the one given.
const STARTS: u64 = 8;

/// Heaviest first, then shuffled before that.
fn order(flows: &[Flow], start: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..narrow(flows.len())).collect();
    let mut seed = Seed(start);
    for last in (1..order.len()).rev().filter(|_| start > 0) {
        order.swap(last, seed.below(last + 1));
    }
    order.sort_by_key(|&i| std::cmp::Reverse(flows[i as usize].weight));
    order
}

fn greedy_in_order(fabric: &Fabric, flows: &[Flow], order: &[u32]) -> Vec<u32> {
    let found = greedy::greedy(fabric, order.iter().map(|&i| &flows[i as usize]));
    let mut choices = vec![0; flows.len()];
    for (&i, choice) in order.iter().zip(found) {
        choices[i as usize] = choice;
    }
    choices
}

/// Returns the largest load after exchanges, and the choices that make it.
fn relieved(
    fabric: &Fabric,
    flows: &[Flow],
    choices: Vec<u32>,
    bound: u64,
    looks: &mut u64,
) -> (u64, Vec<u32>) {
    let loads = loads(fabric, flows, &choices);
    let largest = loads.iter().copied().max().unwrap_or(0);
    if largest <= bound {
        return (largest, choices);
    }
    let mut state = State::new(fabric, flows, choices, loads);
    state.looks = *looks;
    loop {
        let largest = state.loads.iter().copied().max().unwrap_or(0);
        if largest <= bound || !state.relieve_all(largest) {
            *looks = state.looks;
            return (largest, state.choices);
        }
    }
}

const NONE: u32 = u32::MAX;

struct State<'a> {
    fabric: &'a Fabric,
    flows: &'a [Flow],
    choices: Vec<u32>,
    loads: Vec<u64>,
    /// Flows on each slot.
    on: Vec<Vec<u32>>,
    /// The last search that came to each flow.
    seen: Vec<u32>,
    searches: u32,
    looks: u64,
    steps: Vec<Step>,
}

/// A flow that must leave a slot.
#[derive(Clone, Copy)]
struct Step {
    flow: u32,
    leaves: usize,
    /// The step whose flow is in need of room, and the choice that it takes.
    after: u32,
    taken: u32,
}

impl<'a> State<'a> {
    fn new(fabric: &'a Fabric, flows: &'a [Flow], choices: Vec<u32>, loads: Vec<u64>) -> Self {
        let mut on = vec![Vec::new(); loads.len()];
        for (i, (flow, &choice)) in flows.iter().zip(&choices).enumerate() {
            for slot in fabric.slots_of(flow.src, flow.dst, choice).iter() {
                on[slot].push(narrow(i));
            }
        }
        Self {
            fabric,
            flows,
            choices,
            loads,
            on,
            seen: vec![0; flows.len()],
            searches: 0,
            looks: 0,
            steps: Vec::new(),
        }
    }

    fn slots(&self, flow: u32, choice: u32) -> Slots {
        let Flow { src, dst, .. } = self.flows[flow as usize];
        self.fabric.slots_of(src, dst, choice)
    }

    fn now(&self, flow: u32) -> Slots {
        self.slots(flow, self.choices[flow as usize])
    }

    fn share(&self, flow: u32, slot: usize) -> u64 {
        self.flows[flow as usize].weight * self.fabric.scale(slot)
    }

    fn shift(&mut self, flow: u32, to: u32) {
        for slot in self.now(flow).iter() {
            self.loads[slot] -= self.share(flow, slot);
            self.on[slot].retain(|&other| other != flow);
        }
        self.choices[flow as usize] = to;
        for slot in self.now(flow).iter() {
            self.loads[slot] += self.share(flow, slot);
            self.on[slot].push(flow);
        }
    }

    /// Returns whether an exchange relieved some slot of that load.
    fn relieve_all(&mut self, largest: u64) -> bool {
        let full: Vec<usize> = (0..self.loads.len())
            .filter(|&slot| self.loads[slot] == largest)
            .collect();
        let mut gained = false;
        for slot in full {
            gained |= self.loads[slot] == largest && self.relieve(slot, largest);
        }
        gained
    }

    /// Searches for a chain that takes a flow off a slot.
    fn relieve(&mut self, slot: usize, largest: u64) -> bool {
        self.searches += 1;
        self.steps.clear();
        self.enqueue(slot, largest, NONE, 0, 0);
        let mut next = 0;
        while next < self.steps.len() && self.looks < MAX_LOOKS {
            let Flow { src, dst, .. } = self.flows[self.steps[next].flow as usize];
            for choice in self.fabric.choices_between(src, dst) {
                self.looks += 1;
                match self.blocked(next, choice, largest) {
                    Room::Enough if self.carry_out(narrow(next), choice, largest) => return true,
                    Room::But(slot, over) => {
                        self.enqueue(slot, over, narrow(next), choice, largest)
                    }
                    _ => {}
                }
            }
            next += 1;
        }
        false
    }

    /// Flows that would leave a slot of such a load below the largest.
    fn enqueue(&mut self, slot: usize, load: u64, after: u32, taken: u32, largest: u64) {
        for i in 0..self.on[slot].len() {
            let flow = self.on[slot][i];
            let rest = load - self.share(flow, slot).min(load);
            let enough = if after == NONE {
                rest < load
            } else {
                rest < largest
            };
            if enough && self.seen[flow as usize] != self.searches {
                self.seen[flow as usize] = self.searches;
                self.steps.push(Step {
                    flow,
                    leaves: slot,
                    after,
                    taken,
                });
            }
        }
    }

    /// Returns what stands in the way of a step's flow taking a choice, once the step before is done.
    fn blocked(&self, step: usize, choice: u32, largest: u64) -> Room {
        let Step {
            flow,
            leaves,
            after,
            taken,
        } = self.steps[step];
        let slots = self.slots(flow, choice);
        if slots.iter().any(|slot| slot == leaves) {
            return Room::None;
        }
        let own = self.now(flow);
        let before = (after != NONE).then(|| {
            let before = self.steps[after as usize].flow;
            (before, self.now(before), self.slots(before, taken))
        });
        let mut found = Room::Enough;
        for slot in slots.iter() {
            if own.iter().any(|other| other == slot) {
                continue;
            }
            let mut load = self.loads[slot] + self.share(flow, slot);
            if let Some((before, from, to)) = before {
                let share = self.share(before, slot);
                load += share * u64::from(to.iter().any(|other| other == slot));
                load -= share * u64::from(from.iter().any(|other| other == slot));
            }
            if load >= largest {
                match found {
                    Room::Enough => found = Room::But(slot, load),
                    _ => return Room::None,
                }
            }
        }
        found
    }

    /// Moves the flows of a chain, first things first; undone where a link rises to the largest load
    /// after all, because the chain comes to it twice.
    fn carry_out(&mut self, last: u32, choice: u32, largest: u64) -> bool {
        let mut moves = vec![(self.steps[last as usize].flow, choice)];
        let mut step = self.steps[last as usize];
        while step.after != NONE {
            let before = self.steps[step.after as usize];
            moves.push((before.flow, step.taken));
            step = before;
        }
        let former: Vec<u32> = moves
            .iter()
            .map(|&(flow, _)| self.choices[flow as usize])
            .collect();
        let to = moves
            .iter()
            .flat_map(|&(flow, to)| self.slots(flow, to).iter());
        let touched: Vec<(usize, u64)> = to.map(|slot| (slot, self.loads[slot])).collect();
        for &(flow, to) in &moves {
            self.shift(flow, to);
        }
        let low = |slot: usize, before: u64| self.loads[slot] < largest.max(before + 1);
        let fits = self.loads[step.leaves] < largest
            && touched.iter().all(|&(slot, before)| low(slot, before));
        if !fits {
            for (&(flow, _), &back) in moves.iter().zip(&former).rev() {
                self.shift(flow, back);
            }
        }
        fits
    }
}

enum Room {
    Enough,
    /// But for one slot, and what its load would be.
    But(usize, u64),
    None,
}

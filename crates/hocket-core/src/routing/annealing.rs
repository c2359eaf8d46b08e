//! Hedera's simulated annealing: one spine for each destination host, two hosts swapped at a time.
//!
//! # Source
//! Al-Fares, Radhakrishnan, Raghavan, Huang, Vahdat: Hedera, NSDI 2010, section 5.3. The energy is
//! the capacity exceeded, summed over links; capacity is the certificate's load, which is the
//! paper's capacity of 1 wherever flows of weight 1 can have a link each. The temperature falls from
//! 1000 to 0.1 by a factor of 0.99, as in the code released with Cohen et al., Routing for large ML
//! models. A flow only knows its ToRs, so the hosts of a ToR receive its flows in turn; a flow that
//! its host's spine cannot carry takes the next that can.

use super::{Fabric, Flow};
use crate::units::Seed;

const START: f64 = 1000.0;
const END: f64 = 0.1;
const FACTOR: f64 = 0.99;

pub(super) fn anneal(fabric: &Fabric, flows: &[Flow], capacity: u64, mut seed: Seed) -> Vec<u32> {
    let mut state = State::new(fabric, flows, capacity);
    if state.flows_to.len() < 2 {
        return state.spines;
    }
    let mut best = (state.energy, state.spines.clone());
    let mut temperature = START;
    while temperature > END && best.0 > 0 {
        let hosts = [(); 2].map(|()| seed.below(state.flows_to.len()));
        let before = state.energy;
        state.swap(hosts);
        let worse = state.energy.saturating_sub(before) as f64 / capacity.max(1) as f64;
        let draw = (seed.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        if draw >= (-worse / temperature).exp() {
            state.swap(hosts);
        }
        if state.energy < best.0 {
            best = (state.energy, state.spines.clone());
        }
        temperature *= FACTOR;
    }
    best.1
}

struct State<'a> {
    fabric: &'a Fabric,
    flows: &'a [Flow],
    /// Flows to each host that has any.
    flows_to: Vec<Vec<u32>>,
    /// Position of each host's spine among those that work.
    spine_of: Vec<usize>,
    spines: Vec<u32>,
    loads: [Vec<u64>; 2],
    capacity: u64,
    energy: u128,
}

impl<'a> State<'a> {
    fn new(fabric: &'a Fabric, flows: &'a [Flow], capacity: u64) -> Self {
        let hosts = fabric.hosts_per_tor();
        let mut received = vec![0; fabric.tor_count()];
        let mut flows_to = vec![Vec::new(); fabric.tor_count() * hosts];
        for (i, flow) in flows.iter().enumerate() {
            let tor = flow.dst as usize;
            flows_to[tor * hosts + received[tor] % hosts].push(i as u32);
            received[tor] += 1;
        }
        flows_to.retain(|flows| !flows.is_empty());
        let working = fabric.working_spines().len();
        let links = fabric.tor_count() * fabric.spine_count();
        let mut state = Self {
            fabric,
            flows,
            spine_of: (0..flows_to.len()).map(|host| host % working).collect(),
            flows_to,
            spines: vec![0; flows.len()],
            loads: [vec![0; links], vec![0; links]],
            capacity,
            energy: 0,
        };
        for host in 0..state.flows_to.len() {
            state.place(host, state.spine_of[host]);
        }
        state
    }

    fn swap(&mut self, [a, b]: [usize; 2]) {
        if self.spine_of[a] == self.spine_of[b] {
            return;
        }
        self.lift(a);
        self.lift(b);
        let (to_a, to_b) = (self.spine_of[b], self.spine_of[a]);
        self.place(a, to_a);
        self.place(b, to_b);
    }

    fn lift(&mut self, host: usize) {
        for i in 0..self.flows_to[host].len() {
            let flow = self.flows_to[host][i] as usize;
            for (side, slot) in self.slots(flow).into_iter().enumerate() {
                let load = self.loads[side][slot] - self.flows[flow].weight;
                self.load(side, slot, load);
            }
        }
    }

    fn place(&mut self, host: usize, spine: usize) {
        self.spine_of[host] = spine;
        for i in 0..self.flows_to[host].len() {
            let flow = self.flows_to[host][i] as usize;
            self.spines[flow] = self.carrier(flow, spine);
            for (side, slot) in self.slots(flow).into_iter().enumerate() {
                let load = self.loads[side][slot] + self.flows[flow].weight;
                self.load(side, slot, load);
            }
        }
    }

    /// The first spine from a position on that joins the flow's ends.
    fn carrier(&self, flow: usize, position: usize) -> u32 {
        let working = self.fabric.working_spines();
        let Flow { src, dst, .. } = self.flows[flow];
        let (before, from) = working.split_at(position);
        let joins = |&spine: &u32| self.fabric.path(src, dst, spine).is_some();
        let found = from.iter().chain(before).copied().find(joins);
        found.expect("every flow has a path")
    }

    fn slots(&self, flow: usize) -> [usize; 2] {
        let Flow { src, dst, .. } = self.flows[flow];
        [src, dst].map(|tor| self.fabric.slot(tor, self.spines[flow]))
    }

    fn load(&mut self, side: usize, slot: usize, load: u64) {
        let exceeded = |load: u64| u128::from(load.saturating_sub(self.capacity));
        let before = exceeded(std::mem::replace(&mut self.loads[side][slot], load));
        self.energy = self.energy - before + exceeded(load);
    }
}

//! Hedera's simulated annealing: one choice for each destination host, two hosts swapped at a time.
//!
//! # Source
//! Al-Fares, Radhakrishnan, Raghavan, Huang, Vahdat: Hedera, NSDI 2010, simulated annealing, and the
//! code released with Cohen et al., Routing for large ML models, which differ in energy and
//! temperatures.
//!
//! # What differs
//! It starts from hosts dealt over the spines in turn, and ends as soon as the certificate is met. A flow
//! only knows its ToRs, so that hosts spread over the ToR receive its flows in turn. A flow that its
//! host's spine or core cannot carry takes the next that can, and within a pod the aggregation switch in
//! that place.

use std::collections::BTreeMap;

use super::fabric::Slots;
use super::{Fabric, Flow};
use crate::id::narrow;
use crate::units::Seed;

/// How annealing goes about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Annealing {
    /// Swaps tried. `None`: as released, the temperature falling from 1000 to 0.1 by 0.99, 917 swaps,
    /// the energy the loads of the most loaded links, summed. Otherwise as Hedera: the energy is the
    /// capacity exceeded, summed over links, capacity being the certificate's load; the temperature
    /// falls from the mean weight of a flow to a hundredth of it.
    pub steps: Option<u32>,
}

pub(super) fn anneal(
    fabric: &Fabric,
    flows: &[Flow],
    capacity: u64,
    options: Annealing,
    mut seed: Seed,
) -> Vec<u32> {
    let energy = match options.steps {
        None => Energy::Peak(BTreeMap::new()),
        Some(_) => Energy::Exceeded { capacity, sum: 0 },
    };
    let mut state = State::new(fabric, flows, energy);
    if state.flows_to.len() < 2 {
        return state.choices;
    }
    let mean = flows.iter().map(|flow| flow.weight as f64).sum::<f64>() / flows.len() as f64;
    let (mut temperature, factor, steps) = match options.steps {
        None => (1000.0, 0.99, 917),
        Some(steps) => (mean, 0.01f64.powf(1.0 / f64::from(steps.max(1))), steps),
    };
    let mut best = (state.energy.value(), state.choices.clone());
    for _ in 0..steps {
        if state.largest_within(capacity) {
            break;
        }
        let hosts = state.neighbours(&mut seed);
        let before = state.energy.value();
        state.swap(hosts);
        let after = state.energy.value();
        let draw = (seed.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        if draw >= (-(after.saturating_sub(before) as f64) / temperature).exp() {
            state.swap(hosts);
        } else if after < best.0 {
            best = (after, state.choices.clone());
        }
        temperature *= factor;
    }
    best.1
}

/// What annealing lessens.
enum Energy {
    /// The loads of the most loaded links, summed; how many links have each load.
    Peak(BTreeMap<u64, u64>),
    /// What links carry above their capacity, summed.
    Exceeded { capacity: u64, sum: u128 },
}

impl Energy {
    fn value(&self) -> u128 {
        match self {
            Self::Peak(links) => {
                let (load, links) = links.last_key_value().unwrap_or((&0, &0));
                u128::from(*load) * u128::from(*links)
            }
            Self::Exceeded { sum, .. } => *sum,
        }
    }

    fn change(&mut self, before: u64, after: u64) {
        match self {
            Self::Peak(links) => {
                *links.entry(after).or_default() += 1;
                if let Some(left) = links.get_mut(&before) {
                    *left -= 1;
                    if *left == 0 {
                        links.remove(&before);
                    }
                }
            }
            Self::Exceeded { capacity, sum } => {
                let exceeded = |load: u64| u128::from(load.saturating_sub(*capacity));
                *sum = *sum - exceeded(before) + exceeded(after);
            }
        }
    }
}

struct State<'a> {
    fabric: &'a Fabric,
    flows: &'a [Flow],
    /// Flows to each host that has any, and its ToR.
    flows_to: Vec<(u32, Vec<u32>)>,
    /// Position of each host's choice among the working spines or cores.
    place_of: Vec<usize>,
    choices: Vec<u32>,
    loads: Vec<u64>,
    energy: Energy,
}

impl<'a> State<'a> {
    fn new(fabric: &'a Fabric, flows: &'a [Flow], energy: Energy) -> Self {
        let hosts = fabric.hosts_per_tor();
        let mut to_tor = vec![Vec::new(); fabric.tor_count()];
        for (i, flow) in flows.iter().enumerate() {
            to_tor[flow.dst as usize].push(narrow(i));
        }
        let mut all = vec![Vec::new(); fabric.tor_count() * hosts];
        for (tor, flows) in to_tor.iter().enumerate() {
            for (i, &flow) in flows.iter().enumerate() {
                let host = i * hosts / flows.len().min(hosts) % hosts;
                all[tor * hosts + host].push(flow);
            }
        }
        let tops = fabric.tops().len();
        let (flows_to, place_of): (Vec<_>, Vec<usize>) = all
            .into_iter()
            .enumerate()
            .filter(|(_, flows)| !flows.is_empty())
            .map(|(host, flows)| ((narrow(host / hosts), flows), host % hosts % tops))
            .unzip();
        let mut state = Self {
            fabric,
            flows,
            place_of,
            flows_to,
            choices: vec![0; flows.len()],
            loads: vec![0; fabric.blocks()[4]],
            energy,
        };
        for host in 0..state.flows_to.len() {
            state.place(host, state.place_of[host]);
        }
        state
    }

    fn largest_within(&self, capacity: u64) -> bool {
        match &self.energy {
            Energy::Peak(links) => links
                .last_key_value()
                .is_none_or(|(&load, _)| load <= capacity),
            Energy::Exceeded { sum, .. } => *sum == 0,
        }
    }

    /// Returns two hosts, every other time of one ToR.
    fn neighbours(&self, seed: &mut Seed) -> [usize; 2] {
        let host = seed.below(self.flows_to.len());
        if seed.below(2) == 0 {
            return [host, seed.below(self.flows_to.len())];
        }
        let tor = self.flows_to[host].0;
        let first = self.flows_to.partition_point(|(of, _)| *of < tor);
        let past = self.flows_to.partition_point(|(of, _)| *of <= tor);
        [host, first + seed.below(past - first)]
    }

    fn swap(&mut self, [a, b]: [usize; 2]) {
        if self.place_of[a] == self.place_of[b] {
            return;
        }
        self.lift(a);
        self.lift(b);
        let (to_a, to_b) = (self.place_of[b], self.place_of[a]);
        self.place(a, to_a);
        self.place(b, to_b);
    }

    fn lift(&mut self, host: usize) {
        for i in 0..self.flows_to[host].1.len() {
            let flow = self.flows_to[host].1[i] as usize;
            for slot in self.slots(flow).iter() {
                self.load(slot, self.loads[slot] - self.share(flow, slot));
            }
        }
    }

    fn place(&mut self, host: usize, place: usize) {
        self.place_of[host] = place;
        for i in 0..self.flows_to[host].1.len() {
            let flow = self.flows_to[host].1[i] as usize;
            self.choices[flow] = self.carrier(flow, place);
            for slot in self.slots(flow).iter() {
                self.load(slot, self.loads[slot] + self.share(flow, slot));
            }
        }
    }

    /// Returns the first choice from a place on that joins the flow's ends.
    fn carrier(&self, flow: usize, place: usize) -> u32 {
        let Flow { src, dst, .. } = self.flows[flow];
        let pods = [src, dst].map(|tor| self.fabric.pod_of(tor));
        if pods[0].is_some() && pods[0] == pods[1] {
            let count = self.fabric.choices_between(src, dst).count();
            let mut choices = self.fabric.choices_between(src, dst);
            return choices.nth(place % count).expect("every flow has a path");
        }
        let (before, from) = self.fabric.tops().split_at(place);
        let joins = |&top: &u32| self.fabric.slots(src, dst, top).is_some();
        let found = from.iter().chain(before).copied().find(joins);
        found.expect("every flow has a path")
    }

    fn slots(&self, flow: usize) -> Slots {
        let Flow { src, dst, .. } = self.flows[flow];
        self.fabric.slots_of(src, dst, self.choices[flow])
    }

    fn share(&self, flow: usize, slot: usize) -> u64 {
        self.flows[flow].weight * self.fabric.scale(slot)
    }

    fn load(&mut self, slot: usize, load: u64) {
        let before = std::mem::replace(&mut self.loads[slot], load);
        self.energy.change(before, load);
    }
}

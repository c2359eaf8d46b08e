//! Rates against slow, obvious filling from scratch, by whole steps and in floating point.

use super::super::{Fair, Pass};
use crate::units::Seed;

struct Flow {
    slot: u32,
    passes: Vec<Pass>,
    most: u128,
}

/// A network of so many servers, and what flows over it.
struct Case {
    capacity: Vec<u128>,
    scale: u32,
    bits: u32,
    flows: Vec<Flow>,
}

fn passes(servers: &[u32]) -> Vec<Pass> {
    let pass = |&server: &u32| Pass { server, weight: 1 };
    servers.iter().map(pass).collect()
}

fn round(rate: u128, bits: u32) -> u128 {
    let mut step = 1;
    while rate / step >> (bits - 1) > 1 {
        step *= 2;
    }
    rate / step * step
}

impl Case {
    fn fair(&self) -> Fair {
        let mut fair = Fair::new(self.capacity.clone(), self.scale).rounded(self.bits);
        for flow in &self.flows {
            fair.add(flow.slot, &flow.passes, flow.most);
        }
        fair
    }

    /// What a flow takes of a server at rate 1.
    fn weight(flow: &Flow, server: usize) -> u128 {
        let passes = flow.passes.iter();
        let there = passes.filter(|pass| pass.server as usize == server);
        there.map(|pass| u128::from(pass.weight)).sum()
    }

    /// Rates that grow together from scratch. Each time, all servers with the least to give stop their flows.
    fn filled(&self) -> Vec<u128> {
        let mut rates: Vec<Option<u128>> = vec![None; self.flows.len()];
        while rates.contains(&None) {
            let share = |server: usize| {
                let mut left = self.capacity[server] * u128::from(self.scale);
                let mut growing = 0;
                for (flow, rate) in self.flows.iter().zip(&rates) {
                    let weight = Self::weight(flow, server);
                    match rate {
                        Some(rate) => left -= weight * rate,
                        None => growing += weight,
                    }
                }
                left.checked_div(growing)
                    .map(|share| round(share, self.bits))
            };
            let shares: Vec<Option<u128>> = (0..self.capacity.len()).map(share).collect();
            let growing = self.flows.iter().zip(&rates).filter(|(_, r)| r.is_none());
            let mosts = growing.map(|(flow, _)| flow.most);
            let least = shares.iter().flatten().copied().chain(mosts).min().unwrap();
            for (flow, rate) in self.flows.iter().zip(&mut rates) {
                let mut passed = flow.passes.iter();
                let is_full = passed.any(|pass| shares[pass.server as usize] == Some(least));
                if rate.is_none() && (is_full || flow.most == least) {
                    *rate = Some(least);
                }
            }
        }
        rates.into_iter().flatten().collect()
    }

    /// Max-min fair rates without rounding.
    fn exact(&self) -> Vec<f64> {
        let mut rates: Vec<Option<f64>> = vec![None; self.flows.len()];
        let scale = f64::from(self.scale);
        let mut left: Vec<f64> = self.capacity.iter().map(|&c| c as f64 * scale).collect();
        let mut growing = vec![0.0; left.len()];
        for pass in self.flows.iter().flat_map(|flow| &flow.passes) {
            growing[pass.server as usize] += f64::from(pass.weight);
        }
        for _ in &self.flows {
            let shares = left.iter().zip(&growing).map(|(left, growing)| {
                if *growing > 0.5 {
                    left / growing
                } else {
                    f64::INFINITY
                }
            });
            let shares: Vec<f64> = shares.collect();
            let limit = |flow: &Flow| {
                let on_way = flow.passes.iter().map(|pass| shares[pass.server as usize]);
                on_way.fold(flow.most as f64, f64::min)
            };
            let open = (0..rates.len()).filter(|&i| rates[i].is_none());
            let least =
                open.min_by(|&a, &b| limit(&self.flows[a]).total_cmp(&limit(&self.flows[b])));
            let Some(i) = least else { break };
            let rate = limit(&self.flows[i]);
            rates[i] = Some(rate);
            for pass in &self.flows[i].passes {
                left[pass.server as usize] -= rate * f64::from(pass.weight);
                growing[pass.server as usize] -= f64::from(pass.weight);
            }
        }
        rates.into_iter().flatten().collect()
    }

    /// What makes rates max-min fair: no server gives more than it has, and each flow has its most, or
    /// passes a server on which nobody has more, and which cannot give all that have as much one step.
    fn check_fair(&self, fair: &Fair) {
        let mut given = vec![(0, 0, 0, 0); self.capacity.len()];
        for flow in &self.flows {
            let rate = fair.rate(flow.slot);
            assert!(rate <= flow.most);
            for pass in &flow.passes {
                let (sum, passages, highest, top) = &mut given[pass.server as usize];
                let weight = u128::from(pass.weight);
                *sum += rate * weight;
                *passages += 1;
                if rate > *highest {
                    (*highest, *top) = (rate, 0);
                }
                *top += if rate == *highest { weight } else { 0 };
            }
        }
        for (server, &(sum, passages, ..)) in given.iter().enumerate() {
            assert!(sum <= self.capacity[server] * u128::from(self.scale));
            assert_eq!(fair.crossings(server as u32), passages);
        }
        for flow in &self.flows {
            let rate = fair.rate(flow.slot);
            let step = (rate >> (self.bits - 1)).max(1);
            let is_bottleneck = |pass: &Pass| {
                let (sum, _, highest, top) = given[pass.server as usize];
                let left = self.capacity[pass.server as usize] * u128::from(self.scale) - sum;
                rate == highest && left < top * step
            };
            assert!(rate == flow.most || flow.passes.iter().any(is_bottleneck));
        }
    }

    fn check(&self, fair: &Fair) {
        self.check_fair(fair);
        for (flow, rate) in self.flows.iter().zip(self.filled()) {
            assert_eq!(fair.rate(flow.slot), rate);
        }
    }
}

fn random_case(seed: &mut Seed) -> Case {
    let servers = 1 + seed.below(12);
    let range = [10, 1000, 1 << 50][seed.below(3)];
    let capacity = |_| (1 + seed.below(range)) as u128 + [0, 100][seed.below(2)];
    let capacity = (0..servers).map(capacity).collect();
    Case {
        capacity,
        scale: [1, 3, 1 << 16][seed.below(3)],
        bits: [128, 128, 5, 2, 1][seed.below(5)],
        flows: Vec::new(),
    }
}

fn random_flow(case: &Case, seed: &mut Seed) -> Flow {
    let hops = 1 + seed.below(4);
    let is_sprayed = seed.below(3) == 0;
    // Some pass a server twice.
    let pass = |_| Pass {
        server: seed.below(case.capacity.len()) as u32,
        weight: match is_sprayed {
            true => 1 + seed.below(case.scale as usize) as u32,
            false => case.scale,
        },
    };
    let passes: Vec<Pass> = (0..hops).map(pass).collect();
    let taken = |slot: &u32| case.flows.iter().any(|flow| flow.slot == *slot);
    let share = case.capacity[passes[0].server as usize] / 3;
    Flow {
        slot: (0..).find(|slot| !taken(slot)).unwrap(),
        passes,
        most: [u128::MAX, u128::MAX, share, share + 1][seed.below(4)],
    }
}

#[test]
fn rates_stay_fair_as_flows_come_and_go() {
    for seed in 0..400 {
        let mut seed = Seed(seed);
        let mut case = random_case(&mut seed);
        let mut fair = case.fair();
        let mut changed = Vec::new();
        for _ in 0..60 {
            let mut came = Vec::new();
            for _ in 0..1 + seed.below(3) {
                if seed.below(3) > 0 || case.flows.is_empty() {
                    let flow = random_flow(&case, &mut seed);
                    fair.add(flow.slot, &flow.passes, flow.most);
                    came.push(flow.slot);
                    case.flows.push(flow);
                } else {
                    let place = seed.below(case.flows.len());
                    let gone = case.flows.swap_remove(place);
                    came.retain(|&slot| slot != gone.slot);
                    fair.remove(gone.slot);
                }
            }
            let rates = |fair: &Fair| -> Vec<u128> {
                let slots = case.flows.iter().map(|flow| flow.slot);
                slots.map(|slot| fair.rate(slot)).collect()
            };
            let before = rates(&fair);
            fair.refill(&mut changed);
            case.check(&fair);
            let mut expected = came;
            for (flow, (before, after)) in case.flows.iter().zip(before.iter().zip(rates(&fair))) {
                if *before != after {
                    expected.push(flow.slot);
                }
            }
            expected.sort_unstable();
            expected.dedup();
            changed.sort_unstable();
            assert_eq!(changed, expected);
        }
    }
}

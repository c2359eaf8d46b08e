//! Rates against slow, obvious filling from scratch, by whole steps and in floating point.

use std::num::NonZeroU32;

use super::{Fair, Pass};
use crate::id::narrow;
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
    while (rate / step) >> (bits - 1) > 1 {
        step *= 2;
    }
    rate / step * step
}

impl Case {
    fn fair(&self) -> Fair {
        let mut fair = Fair::new(self.capacity.clone(), self.scale)
            .rounded(NonZeroU32::new(self.bits).unwrap());
        for flow in &self.flows {
            fair.add(flow.slot, &flow.passes, flow.most);
        }
        fair
    }

    /// Rates that grow together from scratch. Each time, all servers with the least to give stop their flows.
    fn filled(&self) -> Vec<u128> {
        let mut rates: Vec<Option<u128>> = vec![None; self.flows.len()];
        while rates.contains(&None) {
            let scale = u128::from(self.scale);
            let mut left: Vec<u128> = self.capacity.iter().map(|c| c * scale).collect();
            let mut growing = vec![0; left.len()];
            let mut least = u128::MAX;
            for (flow, rate) in self.flows.iter().zip(&rates) {
                for pass in &flow.passes {
                    match rate {
                        Some(rate) => left[pass.server as usize] -= rate * u128::from(pass.weight),
                        None => growing[pass.server as usize] += u128::from(pass.weight),
                    }
                }
                least = least.min(if rate.is_none() { flow.most } else { u128::MAX });
            }
            let share = |(left, growing): (&u128, &u128)| {
                let share = left.checked_div(*growing);
                share.map_or(u128::MAX, |share| round(share, self.bits))
            };
            let shares: Vec<u128> = left.iter().zip(&growing).map(share).collect();
            least = least.min(*shares.iter().min().unwrap());
            for (flow, rate) in self.flows.iter().zip(&mut rates) {
                let mut passed = flow.passes.iter();
                let is_full = passed.any(|pass| shares[pass.server as usize] == least);
                if rate.is_none() && (is_full || flow.most == least) {
                    *rate = Some(least);
                }
            }
        }
        rates.into_iter().flatten().collect()
    }

    /// Max-min fair rates without rounding: the flow with the least is settled, and the next.
    fn unrounded(&self) -> Vec<f64> {
        let mut rates: Vec<Option<f64>> = vec![None; self.flows.len()];
        let scale = f64::from(self.scale);
        let mut left: Vec<f64> = self.capacity.iter().map(|&c| c as f64 * scale).collect();
        let mut growing = vec![0.0; left.len()];
        for pass in self.flows.iter().flat_map(|flow| &flow.passes) {
            growing[pass.server as usize] += f64::from(pass.weight);
        }
        for _ in &self.flows {
            let limit = |&i: &usize| {
                let flow = &self.flows[i];
                let servers = flow.passes.iter().map(|pass| pass.server as usize);
                let shares = servers.map(|server| left[server] / growing[server]);
                shares.fold(flow.most as f64, f64::min)
            };
            let open = (0..rates.len()).filter(|&i| rates[i].is_none());
            let least = open.min_by(|a, b| limit(a).total_cmp(&limit(b))).unwrap();
            let rate = limit(&least);
            rates[least] = Some(rate);
            for pass in &self.flows[least].passes {
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
            assert_eq!(fair.crossings(narrow(server)), passages);
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
        server: narrow(seed.below(case.capacity.len())),
        weight: match is_sprayed {
            true => 1 + narrow(seed.below(case.scale as usize)),
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

/// A flow between random hosts of a Clos of 8 spines, 8 ToRs and 64 hosts: by a random spine, or sprayed.
fn clos_flow(slot: u32, scale: u32, seed: &mut Seed) -> Flow {
    let (src, ahead) = (narrow(seed.below(64)), 1 + narrow(seed.below(63)));
    let dst = (src + ahead) % 64;
    let pass = |server, weight| Pass { server, weight };
    let mut passes = vec![pass(src, scale), pass(64 + dst, scale)];
    let spine = narrow(seed.below(8));
    let by = if seed.below(3) > 0 {
        spine..spine + 1
    } else {
        0..8
    };
    if src / 8 != dst / 8 {
        let weight = scale / narrow(by.len());
        for spine in by {
            passes.push(pass(128 + src / 8 * 8 + spine, weight));
            passes.push(pass(192 + dst / 8 * 8 + spine, weight));
        }
    }
    Flow {
        slot,
        passes,
        most: if seed.below(5) == 0 {
            1 << 45
        } else {
            u128::MAX
        },
    }
}

#[test]
fn rates_stay_fair_on_a_clos() {
    for (seed, bits) in [(1, 128), (2, 128), (3, 12), (4, 7)] {
        let mut seed = Seed(seed);
        let capacity = |_| (1u128 << 48) + seed.below(1 << 48) as u128;
        let mut case = Case {
            capacity: (0..256).map(capacity).collect(),
            scale: 1 << 12,
            bits,
            flows: Vec::new(),
        };
        for slot in 0..600 {
            case.flows.push(clos_flow(slot, case.scale, &mut seed));
        }
        let mut fair = case.fair();
        let mut changed = Vec::new();
        fair.refill(&mut changed);
        assert_eq!(changed.len(), 600);
        for _ in 0..40 {
            case.check(&fair);
            if bits == 128 {
                for (flow, exact) in case.flows.iter().zip(case.unrounded()) {
                    let rate = fair.rate(flow.slot) as f64;
                    assert!((rate - exact).abs() <= 1e-9 * exact, "{rate} {exact}");
                }
            }
            for _ in 0..[1, 2, 30][seed.below(3)] {
                let place = seed.below(case.flows.len());
                let slot = case.flows[place].slot;
                fair.remove(slot);
                if seed.below(4) == 0 {
                    case.flows.swap_remove(place);
                    continue;
                }
                case.flows[place] = clos_flow(slot, case.scale, &mut seed);
                fair.add(slot, &case.flows[place].passes, case.flows[place].most);
            }
            fair.refill(&mut changed);
        }
    }
}

/// Rates in slots 0 to so many.
fn rates(fair: &Fair, slots: u32) -> Vec<u128> {
    (0..slots).map(|slot| fair.rate(slot)).collect()
}

#[test]
fn weights_are_parts_of_the_scale() {
    // One sprayed over four servers of 100 has 400; where another has half of one, 4 x 50.
    let mut fair = Fair::new(vec![100; 4], 4);
    let quarter = |server| Pass { server, weight: 1 };
    let sprayed: Vec<Pass> = (0..4).map(quarter).collect();
    fair.add(0, &sprayed, u128::MAX);
    fair.refill(&mut Vec::new());
    assert_eq!(rates(&fair, 1), [400]);
    fair.add(
        1,
        &[Pass {
            server: 2,
            weight: 4,
        }],
        u128::MAX,
    );
    fair.refill(&mut Vec::new());
    assert_eq!(rates(&fair, 2), [80, 80]);
    fair.remove(1);
    fair.add(
        1,
        &[Pass {
            server: 2,
            weight: 4,
        }],
        50,
    );
    fair.refill(&mut Vec::new());
    assert_eq!(rates(&fair, 2), [200, 50]);
}

#[test]
fn rounded_rates_keep_their_leading_bits() {
    let mut fair = Fair::new(vec![1_000_000, 70], 1).rounded(NonZeroU32::new(3).unwrap());
    for slot in 0..7 {
        fair.add(slot, &passes(&[0]), u128::MAX);
    }
    fair.add(7, &passes(&[0, 1]), 69);
    fair.refill(&mut Vec::new());
    // 142,847 is 0b100_010_111_000_000_000; 69 is more than 64 and its own most.
    assert_eq!(rates(&fair, 8), [[131_072; 7].as_slice(), &[64]].concat());
}

#[test]
fn an_equal_flow_in_the_same_slot_changes_nothing() {
    let mut fair = Fair::new(vec![100, 30], 1);
    let mut changed = Vec::new();
    for slot in 0..3 {
        fair.add(slot, &passes(&[0]), u128::MAX);
    }
    fair.add(3, &passes(&[0, 1]), 20);
    fair.refill(&mut changed);
    assert_eq!(rates(&fair, 4), [26, 26, 26, 20]);
    for slot in [0, 3] {
        fair.remove(slot);
    }
    assert_eq!((fair.crossings(0), fair.crossings(1)), (2, 0));
    fair.add(0, &passes(&[0]), u128::MAX);
    fair.add(3, &passes(&[0, 1]), 20);
    assert_eq!((fair.crossings(0), fair.crossings(1)), (4, 1));
    assert_eq!(fair.refill(&mut changed), 0);
    assert_eq!(changed, [0, 3]);
    assert_eq!(rates(&fair, 4), [26, 26, 26, 20]);
    // Another most is another flow.
    fair.remove(3);
    fair.add(3, &passes(&[0, 1]), 10);
    fair.refill(&mut changed);
    assert_eq!(rates(&fair, 4), [30, 30, 30, 10]);
}

#[test]
fn a_change_reaches_no_further_than_it_matters() {
    // A chain: server i is shared by flows i and i + 1, and one flow in three has little.
    let mut fair = Fair::new(vec![1000; 3000], 1);
    for slot in 0..2999 {
        let most = if slot % 3 == 0 { 100 } else { u128::MAX };
        fair.add(slot, &passes(&[slot, slot + 1]), most);
    }
    let mut changed = Vec::new();
    fair.refill(&mut changed);
    assert_eq!(rates(&fair, 4), [100, 500, 500, 100]);
    fair.remove(1000);
    assert!(fair.refill(&mut changed) < 10);
    assert_eq!(changed, [1001]);
    assert_eq!(fair.rate(1001), 900);
}

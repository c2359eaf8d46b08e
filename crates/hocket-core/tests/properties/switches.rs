//! Switches that sum and multicast: plans that use them are proved if and only if a slow, obvious judge says that
//! they are right and that no switch does what it cannot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hocket_core::algorithms::{Algorithm, PlanOptions, check_applicable, plan};
use hocket_core::collective::CollectiveKind;
use hocket_core::id::DeviceId;
use hocket_core::plan::{Op, Plan};
use hocket_core::progress::Silent;
use hocket_core::topology::{Offload, Topology};
use hocket_core::units::Seed;
use hocket_core::verify::verify;
use proptest::prelude::*;

use crate::mutations::{MUTATIONS, mutate, shuffle_wait};
use crate::networks::{collective_on, config, topology};
use crate::oracle::{closure, races};

/// Each switch with operations drawn at random, none for some.
fn capable(mut topology: Topology, draw: &mut Seed) -> Topology {
    for switch in topology.npu_count()..topology.device_count() {
        let offload = Offload {
            sums: draw.below(3) > 0,
            multicasts: draw.below(3) > 0,
            all_reduces: draw.below(3) == 0,
            rate: None,
            trees: (draw.below(3) == 0).then(|| 1 + draw.below(3) as u32),
        };
        let can = offload.operations().next().is_some();
        let switch = DeviceId::from(switch);
        let offload = can.then_some(offload);
        topology = topology.with_offload(switch, offload).expect("a switch");
    }
    topology
}

/// What came to a place at a switch since it last began anew, and where it went.
#[derive(Default)]
struct Visit {
    held: BTreeMap<u32, u32>,
    from: Vec<u32>,
    to: Vec<u32>,
}

/// Whether a plan is right, whatever the timing, and asks no switch for more than it can.
fn is_right(plan: &Plan, topology: &Topology) -> bool {
    let Some((order, before)) = closure(plan) else {
        return false;
    };
    let npus = topology.npu_count() as u32;
    let demands = plan.collective().demands();
    let all = plan.collective().npus();
    let mut trees: BTreeMap<u32, BTreeSet<BTreeSet<u32>>> = BTreeMap::new();
    let mut is_fine = true;
    for chunk in 0..plan.chunks().len() as u32 {
        let demand = &demands[plan.chunks().demand()[chunk as usize] as usize];
        let mut held: BTreeMap<u32, BTreeMap<u32, u32>> = BTreeMap::new();
        for holder in demand.holders.members(all) {
            let contribution = if demand.reduced { holder.0 } else { 0 };
            held.insert(holder.0, BTreeMap::from([(contribution, 1)]));
        }
        let full: BTreeMap<u32, u32> = held.values().flatten().map(|(&npu, _)| (npu, 1)).collect();
        let mut visits: BTreeMap<u32, Visit> = BTreeMap::new();
        let mut past: Vec<(u32, Visit)> = Vec::new();
        let carries = |t: &usize| {
            (plan.chunk()[*t]..plan.chunk()[*t] + plan.chunk_count()[*t]).contains(&chunk)
        };
        let carriers: Vec<usize> = order.iter().copied().filter(carries).collect();
        for &t in &carriers {
            let (src, dst, sums) = (
                plan.src()[t],
                plan.dst()[t],
                plan.op()[t] == Op::Reduce as u8,
            );
            let sent = if src < npus {
                held.get(&src).cloned()
            } else {
                let visit = visits.entry(src).or_default();
                visit.to.push(dst);
                Some(visit.held.clone()).filter(|value| !value.is_empty())
            };
            let Some(sent) = sent else { return false };
            let there = if dst < npus {
                held.entry(dst).or_default()
            } else {
                let visit = visits.entry(dst).or_default();
                if !visit.to.is_empty() {
                    past.push((dst, std::mem::take(visit)));
                }
                visit.from.push(src);
                &mut visit.held
            };
            if sums {
                if !demand.reduced || there.is_empty() && dst < npus {
                    return false;
                }
                for (npu, count) in sent {
                    *there.entry(npu).or_insert(0) += count;
                }
                if there.values().any(|&count| count > 1) {
                    return false;
                }
            } else if *there == sent {
                return false;
            } else {
                *there = sent;
            }
        }
        let is_apart = |&a: &usize| carriers.iter().all(|&b| !races(plan, &before, a, b));
        is_fine &= carriers.iter().all(is_apart);
        let wanted = demand.wanted.members(all).iter();
        is_fine &= wanted
            .into_iter()
            .all(|npu| held.get(&npu.0) == Some(&full));
        for (switch, visit) in past.into_iter().chain(visits) {
            let Some(can) = topology.offload(DeviceId(switch)) else {
                return false;
            };
            let (several_in, several_out) = (visit.from.len() > 1, visit.to.len() > 1);
            is_fine &= match (several_in, several_out) {
                (true, true) => can.all_reduces,
                (true, false) => can.sums || can.all_reduces,
                (false, true) => can.multicasts || can.all_reduces,
                (false, false) => true,
            };
            let around = visit.from.into_iter().chain(visit.to).collect();
            trees.entry(switch).or_default().insert(around);
        }
    }
    is_fine
        && trees.iter().all(|(&switch, sets)| {
            let can = topology.offload(DeviceId(switch));
            can.and_then(|can| can.trees)
                .is_none_or(|most| sets.len() <= most as usize)
        })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn verify_and_the_judge_of_switches_agree(topology in topology(), seed in any::<u64>()) {
        let mut draw = Seed(seed);
        let topology = Arc::new(capable(topology, &mut draw));
        for kind in CollectiveKind::NAMED {
            let collective = collective_on(&topology, kind, draw.next_u64());
            if check_applicable(&topology, &collective, Algorithm::InNetwork).is_err() {
                continue;
            }
            let options = PlanOptions {
                chunks: Some(1 + draw.below(3)),
                ..PlanOptions::new(Algorithm::InNetwork)
            };
            let mut plan = plan(&topology, &collective, &options, &mut Silent).expect("it applies");
            prop_assert!(is_right(&plan, &topology), "{kind} on {topology:?}");
            let verdict = verify(Arc::new(plan.clone()), topology.clone(), &mut Silent);
            prop_assert!(verdict.is_ok(), "{kind} on {topology:?}: {verdict:?}");
            for _ in 0..8 {
                let mutation = MUTATIONS[draw.below(MUTATIONS.len())];
                let victim = draw.below(plan.len());
                if let Some(mutated) = mutate(&plan, &topology, mutation, victim, &mut draw) {
                    plan = shuffle_wait(&mutated, &mut draw);
                }
                if plan.is_empty() {
                    break;
                }
                let verdict = verify(Arc::new(plan.clone()), topology.clone(), &mut Silent);
                let right = is_right(&plan, &topology);
                prop_assert_eq!(verdict.is_ok(), right, "{} {:?}: {:?}", kind, mutation, verdict);
            }
        }
    }
}

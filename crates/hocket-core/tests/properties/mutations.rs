//! Any one change to a right plan is caught; `verify` and the oracle agree on any plan at all.

use std::sync::Arc;

use hocket_core::algorithms::{Algorithm, PlanOptions, check_applicable, plan};
use hocket_core::collective::CollectiveKind;
use hocket_core::id::{DeviceId, TransferId, narrow};
use hocket_core::plan::{Columns, Lists, Plan, Wait, WaitOn};
use hocket_core::progress::Silent;
use hocket_core::topology::Topology;
use hocket_core::units::Seed;
use hocket_core::verify::{VerifyError, verify};
use proptest::prelude::*;

use crate::networks::{collective_on, config, topology};
use crate::oracle::is_right;

/// What is done to one transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mutation {
    /// It is left out; who waited for it waits for what it waited for.
    Drop,
    /// It is made a second time, after the first.
    Duplicate,
    /// It goes to another NPU, or to a switch that can sum or multicast.
    Redirect,
    /// Copy becomes reduce, reduce becomes copy.
    SwapOp,
    /// It waits for one that waits for it, or for itself.
    Cycle,
}

pub(crate) const MUTATIONS: [Mutation; 5] = [
    Mutation::Drop,
    Mutation::Duplicate,
    Mutation::Redirect,
    Mutation::SwapOp,
    Mutation::Cycle,
];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_mutated_plan_is_caught(topology in topology(), seed in any::<u64>()) {
        let topology = Arc::new(topology);
        let mut draw = Seed(seed);
        for (plan, name) in plans(&topology, &mut draw) {
            for mutation in MUTATIONS {
                let victim = draw.below(plan.len());
                let Some(mutated) = mutate(&plan, &topology, mutation, victim, &mut draw) else {
                    continue;
                };
                // Sent elsewhere, a contribution may still come home once: then the plan is right.
                let right = matches!(mutation, Mutation::Redirect) && is_right(&mutated);
                let verdict = verify(Arc::new(mutated), topology.clone(), &mut Silent);
                match verdict {
                    Ok(_) => prop_assert!(right, "{mutation:?} of {victim} of {name} passes"),
                    Err(VerifyError::Wrong(report)) => prop_assert!(!right, "{name}: {report}"),
                    Err(error) => prop_assert!(false, "{error}"),
                }
            }
        }
    }

    #[test]
    fn verify_and_the_oracle_agree(topology in topology(), seed in any::<u64>()) {
        let topology = Arc::new(topology);
        let mut draw = Seed(seed);
        for (mut plan, name) in plans(&topology, &mut draw) {
            prop_assert!(is_right(&plan), "{name}");
            for _ in 0..6 {
                let mutation = MUTATIONS[draw.below(MUTATIONS.len())];
                let victim = draw.below(plan.len());
                if let Some(mutated) = mutate(&plan, &topology, mutation, victim, &mut draw) {
                    plan = shuffle_wait(&mutated, &mut draw);
                }
                if plan.is_empty() {
                    break;
                }
                let right = verify(Arc::new(plan.clone()), topology.clone(), &mut Silent).is_ok();
                prop_assert_eq!(right, is_right(&plan), "{}", name);
            }
        }
    }
}

/// Small plans of every kind and algorithm that applies, and their names.
fn plans(topology: &Topology, draw: &mut Seed) -> Vec<(Plan, String)> {
    const MAX_TRANSFERS: usize = 200;
    let mut plans = Vec::new();
    for kind in CollectiveKind::NAMED {
        let collective = collective_on(topology, kind, draw.next_u64());
        for algorithm in Algorithm::ALL {
            if check_applicable(topology, &collective, algorithm).is_ok() {
                let chunks = Some(1 + draw.below(2));
                let options = PlanOptions {
                    chunks,
                    ..PlanOptions::new(algorithm)
                };
                let plan = plan(topology, &collective, &options, &mut Silent).expect("it applies");
                if plan.len() <= MAX_TRANSFERS {
                    plans.push((plan, format!("{algorithm} {kind}")));
                }
            }
        }
    }
    plans
}

/// Half of the time, lets one transfer wait for another than it did, or for nothing.
pub(crate) fn shuffle_wait(plan: &Plan, draw: &mut Seed) -> Plan {
    let mut columns = plan.columns();
    if !columns.wait.is_empty() && draw.below(2) == 0 {
        let victim = draw.below(columns.wait.len());
        columns.wait[victim] = match draw.below(3) {
            0 => Wait::NOTHING.to_bits(),
            _ => Wait::on(TransferId::from(draw.below(columns.wait.len()))).to_bits(),
        };
    }
    rebuild(plan, columns, plan.groups().clone())
}

/// The plan with one transfer changed; `None` where there is no such change.
pub(crate) fn mutate(
    plan: &Plan,
    topology: &Topology,
    mutation: Mutation,
    victim: usize,
    draw: &mut Seed,
) -> Option<Plan> {
    let mut columns = plan.columns();
    let mut groups: Vec<Vec<u32>> = plan.groups().iter().map(<[u32]>::to_vec).collect();
    match mutation {
        Mutation::Drop => drop_row(&mut columns, &mut groups, victim),
        Mutation::Duplicate => {
            let i = victim;
            columns.chunk.push(columns.chunk[i]);
            columns.chunk_count.push(columns.chunk_count[i]);
            columns.src.push(columns.src[i]);
            columns.dst.push(columns.dst[i]);
            columns.op.push(columns.op[i]);
            columns.wait.push(Wait::on(TransferId::from(i)).to_bits());
            columns.path.push(columns.path[i]);
        }
        Mutation::Redirect => {
            let ends =
                (0..narrow(topology.end_count())).filter(|&end| topology.can_end(DeviceId(end)));
            let choices: Vec<u32> = ends
                .filter(|&end| end != columns.src[victim] && end != columns.dst[victim])
                .collect();
            if choices.is_empty() {
                return None;
            }
            columns.dst[victim] = choices[draw.below(choices.len())];
            // A path of its own would end elsewhere, which the oracle does not look at.
            columns.path[victim] = Plan::DEFAULT_ROUTE;
        }
        Mutation::SwapOp => columns.op[victim] ^= 1,
        Mutation::Cycle => {
            let waits_for_victim = |bits: &u32| {
                Wait::from_bits(*bits).target() == WaitOn::Transfer(TransferId::from(victim))
            };
            let waiter = columns
                .wait
                .iter()
                .position(waits_for_victim)
                .unwrap_or(victim);
            columns.wait[victim] = Wait::on(TransferId::from(waiter)).to_bits();
        }
    }
    let mut lists = Lists::default();
    for members in &groups {
        lists.push(members);
    }
    Some(rebuild(plan, columns, lists))
}

fn rebuild(plan: &Plan, columns: Columns, groups: Lists<u32>) -> Plan {
    let (collective, chunks) = (plan.collective().clone(), plan.chunks().clone());
    let paths = plan.paths().clone();
    Plan::from_columns("mutated", collective, chunks, columns, groups, paths).expect("columns")
}

/// Leaves a row out and renumbers the others.
fn drop_row(columns: &mut Columns, groups: &mut [Vec<u32>], victim: usize) {
    let inherited = columns.wait[victim];
    columns.chunk.remove(victim);
    columns.chunk_count.remove(victim);
    columns.src.remove(victim);
    columns.dst.remove(victim);
    columns.op.remove(victim);
    columns.wait.remove(victim);
    columns.path.remove(victim);
    let renumber = |bits: &mut u32, instead: u32| {
        if let WaitOn::Transfer(id) = Wait::from_bits(*bits).target() {
            match id.index().cmp(&victim) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => *bits = instead,
                std::cmp::Ordering::Greater => {
                    *bits = Wait::on(TransferId(id.0 - 1)).to_bits();
                }
            }
        }
    };
    let mut inherited = inherited;
    renumber(&mut inherited, Wait::NOTHING.to_bits());
    // A group may not point to a later group, so there the victim is simply left out.
    columns
        .wait
        .iter_mut()
        .for_each(|bits| renumber(bits, inherited));
    for members in groups {
        members
            .iter_mut()
            .for_each(|bits| renumber(bits, Wait::NOTHING.to_bits()));
        members.retain(|&bits| bits != Wait::NOTHING.to_bits());
    }
}

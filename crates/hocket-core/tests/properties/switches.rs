//! Switches that sum and multicast: plans that use them are proved if and only if a slow, obvious judge says that
//! they are right and that no switch does what it cannot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hocket_core::algorithms::{Algorithm, PlanOptions, check_applicable, plan};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::id::{DeviceId, NpuId, narrow};
use hocket_core::plan::{Op, Plan};
use hocket_core::progress::Silent;
use hocket_core::topology::{Offload, Topology, TopologyBuilder};
use hocket_core::units::{Bandwidth, Seed, Time};
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
            trees: (draw.below(3) == 0).then(|| 1 + narrow(draw.below(3))),
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
    let npus = narrow(topology.npu_count());
    let demands = plan.collective().demands();
    let all = plan.collective().npus();
    let mut trees: BTreeMap<u32, BTreeSet<BTreeSet<u32>>> = BTreeMap::new();
    let mut is_fine = true;
    for chunk in 0..narrow(plan.chunks().len()) {
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

/// Nodes of NPUs whose summing switches may be of one node, of several, or of some NPUs of a node alone; a switch
/// that cannot sum joins all.
fn shared_switches(draw: &mut Seed) -> Topology {
    let rate = Bandwidth::from_bytes_per_second(1_000_000_000).expect("positive");
    let (nodes, each) = (1 + draw.below(4), 1 + draw.below(3));
    let mut groups: Vec<Vec<NpuId>> = Vec::new();
    let mut npus = 0;
    for _ in 0..nodes {
        let size = if draw.below(4) == 0 {
            1 + draw.below(3)
        } else {
            each
        };
        groups.push((npus..npus + size).map(NpuId::from).collect());
        npus += size;
    }
    if npus == 1 {
        groups.push(vec![NpuId(1)]);
        npus = 2;
    }
    let mut builder = TopologyBuilder::new("shared");
    builder.npus(npus);
    let join = |builder: &mut TopologyBuilder, npu: NpuId, switch: DeviceId| {
        builder.both_ways(npu.device(), switch, rate, Time::from_ns(10));
    };
    let spine = builder.switch("spine".to_owned(), None);
    for npu in 0..npus {
        join(&mut builder, NpuId::from(npu), spine);
    }
    for (node, group) in groups.iter().enumerate() {
        for k in 0..1 + draw.below(2) {
            let switch = builder.switch(format!("s{node}_{k}"), None);
            let can = [
                Offload::FULL,
                Offload {
                    all_reduces: false,
                    ..Offload::FULL
                },
            ];
            if draw.below(5) > 0 {
                builder.offload(switch, Some(can[draw.below(2)]));
            }
            let is_shared = draw.below(3) == 0;
            let members = if is_shared {
                groups.concat()
            } else {
                group.clone()
            };
            for npu in members {
                if draw.below(12) > 0 {
                    join(&mut builder, npu, switch);
                }
            }
        }
    }
    let topology = builder.finish().expect("a network");
    if groups.len() == 1 && draw.below(2) == 0 {
        return topology;
    }
    topology.with_groups(groups).expect("each NPU is in one")
}

/// Those that look at nodes, or sum in switches.
const OF_NODES: [Algorithm; 9] = [
    Algorithm::NcclRing,
    Algorithm::NcclTree,
    Algorithm::NcclNvls,
    Algorithm::InNetwork,
    Algorithm::Multimem,
    Algorithm::Hierarchical,
    Algorithm::MultiRing,
    Algorithm::NodeGroups,
    Algorithm::Greedy,
];

/// Whether NCCL's sums in switches run, by a look at every switch and every node.
fn sums_in_each_node(topology: &Topology, kind: CollectiveKind) -> bool {
    let nodes = match topology.groups() {
        [] => vec![topology.npus().collect()],
        groups => groups.to_vec(),
    };
    let switches = (topology.npu_count()..topology.device_count()).map(DeviceId::from);
    let mut counts = vec![0; nodes.len()];
    for switch in switches {
        let can = topology
            .offload(switch)
            .is_some_and(|can| can.sums && can.multicasts);
        let joined = |npu: &NpuId| {
            let device = npu.device();
            !topology.links_from_to(device, switch).is_empty()
                && !topology.links_from_to(switch, device).is_empty()
        };
        let of: Vec<usize> = (0..nodes.len())
            .filter(|&node| can && nodes[node].iter().all(joined))
            .collect();
        if of.len() > 1 {
            return false;
        }
        of.iter().for_each(|&node| counts[node] += 1);
    }
    counts.iter().all(|&count| count > 0 && count == counts[0])
        && nodes
            .iter()
            .all(|node| node.len() > 1 && node.len() == nodes[0].len())
        && (kind == CollectiveKind::AllReduce || nodes.len() == 1)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_looks_at_nodes_is_right_where_nodes_share_switches(seed in any::<u64>()) {
        let mut draw = Seed(seed);
        let topology = Arc::new(shared_switches(&mut draw));
        for kind in CollectiveKind::NAMED {
            let collective = Collective::among_all(kind, &topology, 10_000).expect("a collective");
            for algorithm in OF_NODES {
                let applies = check_applicable(&topology, &collective, algorithm);
                if algorithm == Algorithm::NcclNvls && algorithm.supports(kind) {
                    let expected = sums_in_each_node(&topology, kind);
                    prop_assert_eq!(applies.is_ok(), expected, "{}: {:?}", kind, applies);
                }
                if applies.is_err() {
                    continue;
                }
                let options = PlanOptions {
                    chunks: Some(1),
                    ..PlanOptions::new(algorithm)
                };
                let made = plan(&topology, &collective, &options, &mut Silent).expect("it applies");
                let verdict = verify(Arc::new(made), topology.clone(), &mut Silent);
                prop_assert!(verdict.is_ok(), "{algorithm} {kind}: {:?}", verdict.err());
            }
        }
    }
}

//! The exact components against every set of devices and every partition of the participants.

use super::*;
use crate::collective::Demand;

/// Bytes that must leave the devices `inside`, from the definition.
fn must_leave(demands: &[Demand], npus: &[NpuId], inside: &dyn Fn(usize) -> bool) -> u128 {
    let crosses = |demand: &&Demand| {
        let mut holders = demand
            .holders
            .members(npus)
            .iter()
            .map(|npu| inside(npu.index()));
        let held = if demand.reduced {
            holders.any(|inside| inside)
        } else {
            holders.all(|inside| inside)
        };
        held && demand
            .wanted
            .members(npus)
            .iter()
            .any(|npu| !inside(npu.index()))
    };
    demands
        .iter()
        .filter(crosses)
        .map(|demand| u128::from(demand.bytes))
        .sum()
}

/// The arcs of a topology as (from, to, bandwidth), limited switches in two halves.
fn arcs(topology: &Topology) -> (usize, Vec<(usize, usize, u128)>) {
    let mut count = topology.device_count();
    let mut arcs = Vec::new();
    let mut exit: Vec<usize> = (0..count).collect();
    for (i, device) in topology.devices().iter().enumerate() {
        if let Some(limit) = device.limit {
            exit[i] = count;
            arcs.push((i, count, limit.bytes_per_second().into()));
            count += 1;
        }
    }
    for link in topology.links() {
        let bandwidth = link.bandwidth.bytes_per_second().into();
        arcs.push((exit[link.src.index()], link.dst.index(), bandwidth));
    }
    (count, arcs)
}

fn time_of(bytes: u128, bandwidth: u128) -> Time {
    match (bytes, bandwidth) {
        (0, _) => Time::ZERO,
        (_, 0) => Time::MAX,
        _ => Time::from_ps((bytes * 1_000_000_000_000 / bandwidth) as u64),
    }
}

fn worst_cut(topology: &Topology, collective: &Collective) -> Time {
    let (count, arcs) = arcs(topology);
    let demands = collective.demands();
    let time = |set: usize| {
        let inside = |node: usize| set >> node & 1 == 1;
        let crossing = arcs.iter().filter(|arc| inside(arc.0) && !inside(arc.1));
        let bandwidth = crossing.map(|arc| arc.2).sum();
        time_of(must_leave(&demands, collective.npus(), &inside), bandwidth)
    };
    (0..1 << count).map(time).max().expect("there are sets")
}

#[test]
fn the_cut_is_the_worst_of_all_cuts() {
    let mut seed = Seed(1);
    let mut finite = 0;
    for case in 0..3_000 {
        let topology = random(&mut seed, 6, false);
        let collective = random_collective(&mut seed, &topology);
        let bound = bound(&topology, &collective, &BoundOptions::default());
        let worst = worst_cut(&topology, &collective);
        if bound.time == Time::MAX {
            assert_eq!(worst, Time::MAX, "case {case}");
            continue;
        }
        finite += 1;
        let cut = component(&bound, "cut");
        let is_exact = collective.kind() != CollectiveKind::AllToAll;
        assert_eq!(bound.exact_cut, is_exact, "case {case}");
        if is_exact {
            assert_eq!(
                cut,
                worst,
                "case {case}: {} {topology:?}",
                collective.kind()
            );
        }
        assert!(cut <= worst, "case {case}");
        assert!(component(&bound, "ingress") <= worst, "case {case}");
        assert!(component(&bound, "egress") <= worst, "case {case}");
    }
    assert!(finite > 1_000, "{finite} cases were connected");
}

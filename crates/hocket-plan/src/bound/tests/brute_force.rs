//! The exact components against every set of devices and every partition of the participants.

use super::*;
use crate::collective::Demand;
use crate::id::fit;

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
        _ => Time::from_ps(fit(bytes * 1_000_000_000_000 / bandwidth)),
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

/// The least bandwidth into `npus` and any switches; or out of them.
fn least_entry(
    (count, arcs): &(usize, Vec<(usize, usize, u128)>),
    topology: &Topology,
    npus: usize,
    leaving: bool,
) -> u128 {
    let first_switch = topology.npu_count();
    let with = |switches: usize| {
        let set = npus | switches << first_switch;
        let inside = |node: usize| set >> node & 1 == 1;
        let enters = |arc: &&(usize, usize, u128)| match leaving {
            false => !inside(arc.0) && inside(arc.1),
            true => inside(arc.0) && !inside(arc.1),
        };
        arcs.iter().filter(enters).map(|arc| arc.2).sum()
    };
    (0..1 << (count - first_switch))
        .map(with)
        .min()
        .expect("there are sets")
}

/// Every partition of `rest` put after the parts chosen: least of sum, by number of parts.
fn each_partition(rest: usize, parts: &mut Vec<usize>, visit: &mut dyn FnMut(&[usize])) {
    if rest == 0 {
        return visit(parts);
    }
    let first = rest & rest.wrapping_neg();
    let others = rest ^ first;
    let mut subset = others;
    loop {
        parts.push(first | subset);
        each_partition(others ^ subset, parts, visit);
        parts.pop();
        if subset == 0 {
            return;
        }
        subset = (subset - 1) & others;
    }
}

#[test]
fn the_partition_is_the_best_of_all_partitions() {
    let mut seed = Seed(2);
    let (mut finite, mut above_cut) = (0, 0);
    for case in 0..2_000 {
        let topology = random(&mut seed, 6, false);
        let bound = bound_of(&topology, CollectiveKind::AllReduce, 9_000);
        if bound.time == Time::MAX {
            continue;
        }
        finite += 1;
        let graph = arcs(&topology);
        let mut best = Time::ZERO;
        for leaving in [false, true] {
            let everyone = (1 << topology.npu_count()) - 1;
            each_partition(everyone, &mut Vec::new(), &mut |parts: &[usize]| {
                let entry = |&part: &usize| least_entry(&graph, &topology, part, leaving);
                let bandwidth = parts.iter().map(entry).sum();
                best = best.max(time_of(2 * 9_000 * (parts.len() as u128 - 1), bandwidth));
            });
        }
        assert_eq!(
            component(&bound, "partition"),
            best,
            "case {case}: {topology:?}"
        );
        assert!(bound.exact_partition);
        above_cut += usize::from(best > component(&bound, "cut"));
    }
    assert!(finite > 700, "{finite} cases were connected");
    assert!(
        above_cut > 100,
        "{above_cut} partitions said more than the cuts"
    );
}

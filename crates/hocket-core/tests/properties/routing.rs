//! Path assignment on small fabrics, against the best of all assignments.

use std::collections::HashSet;

use hocket_core::id::{DeviceId, LinkId};
use hocket_core::routing::{
    Assignment, Ecmp, Fabric, Flow, Hash, RoutingError, Scheme, assign, assignment_of,
};
use hocket_core::topology::{Topology, build};
use hocket_core::units::{Bandwidth, Seed, Time};
use proptest::prelude::*;

const SCHEMES: [Scheme; 6] = [
    Scheme::Greedy,
    Scheme::Ecmp(Ecmp {
        hash: Hash::Crc32,
        upstream: 1,
    }),
    Scheme::Ecmp(Ecmp {
        hash: Hash::Toeplitz,
        upstream: 2,
    }),
    Scheme::LeastLoaded,
    Scheme::Annealing,
    Scheme::EdgeColoring,
];

fn clos(spines: u32, tors: u32) -> Topology {
    let bandwidth = Bandwidth::from_bytes_per_second(1_000).expect("positive");
    let parameters = build::Clos {
        spines,
        tors,
        hosts_per_tor: 2,
        host_bandwidth: bandwidth,
        fabric_bandwidth: bandwidth,
        latency: Time::from_ns(1),
    };
    build::clos(&parameters).expect("a Clos")
}

/// A fabric's sizes and flows on it.
fn instance(
    spines: u32,
    tors: u32,
    flows: usize,
    heaviest: u64,
) -> impl Strategy<Value = (Topology, Vec<Flow>)> {
    (1..=spines, 2..=tors).prop_flat_map(move |(spines, tors)| {
        let flow = (0..tors, 1..tors, 1..=heaviest).prop_map(move |(src, ahead, weight)| Flow {
            src,
            dst: (src + ahead) % tors,
            weight,
        });
        let flows = prop::collection::vec(flow, 0..=flows);
        flows.prop_map(move |flows| (clos(spines, tors), flows))
    })
}

/// The least maximum link load, by trying everything.
fn optimum(fabric: &Fabric, flows: &[Flow]) -> u64 {
    let links = fabric.tor_count() * fabric.spine_count();
    let mut loads = [vec![0; links], vec![0; links]];
    let mut best = flows.iter().map(|flow| flow.weight).sum();
    try_all(fabric, flows, &mut loads, 0, &mut best);
    best
}

fn try_all(
    fabric: &Fabric,
    flows: &[Flow],
    loads: &mut [Vec<u64>; 2],
    so_far: u64,
    best: &mut u64,
) {
    let Some((flow, rest)) = flows.split_first() else {
        *best = (*best).min(so_far);
        return;
    };
    for spine in fabric.spines_between(flow.src, flow.dst) {
        let slot = |tor: u32| tor as usize * fabric.spine_count() + spine as usize;
        let (up, down) = (slot(flow.src), slot(flow.dst));
        loads[0][up] += flow.weight;
        loads[1][down] += flow.weight;
        let largest = so_far.max(loads[0][up]).max(loads[1][down]);
        if largest < *best {
            try_all(fabric, rest, loads, largest, best);
        }
        loads[0][up] -= flow.weight;
        loads[1][down] -= flow.weight;
    }
}

/// Every flow has a path of links that are there, and the loads are what those make.
fn check(topology: &Topology, fabric: &Fabric, flows: &[Flow], made: &Assignment) {
    let mut loads = std::collections::HashMap::<LinkId, u64>::new();
    for (flow, [up, down]) in flows.iter().zip(made.paths(fabric, flows)) {
        let [up_link, down_link] = [up, down].map(|id| topology.link(id));
        let name = |id: DeviceId| topology.device(id).name.clone();
        assert_eq!(name(up_link.src), format!("tor{}", flow.src));
        assert_eq!(up_link.dst, down_link.src);
        assert_eq!(name(down_link.dst), format!("tor{}", flow.dst));
        for link in [up, down] {
            *loads.entry(link).or_default() += flow.weight;
        }
    }
    let largest = loads.values().copied().max().unwrap_or(0);
    assert_eq!(made.max_link_load(), largest);
    let sum: u64 = made.up_loads().iter().chain(made.down_loads()).sum();
    assert_eq!(sum, loads.values().sum::<u64>());
    assert!(made.certificate().load <= largest);
    let again = assignment_of(fabric, flows, made.spines().to_vec());
    assert_eq!(again.as_ref(), Ok(made));
}

fn made(fabric: &Fabric, flows: &[Flow], scheme: Scheme) -> Assignment {
    assign(fabric, flows, scheme, Seed(7)).expect("it can be assigned")
}

proptest! {
    #[test]
    fn greedy_is_at_most_twice_the_optimum((topology, flows) in instance(4, 5, 8, 1)) {
        let fabric = Fabric::new(&topology).expect("a Clos");
        let best = optimum(&fabric, &flows);
        let greedy = made(&fabric, &flows, Scheme::Greedy);
        prop_assert!(greedy.max_link_load() <= 2 * best);
        let colored = made(&fabric, &flows, Scheme::EdgeColoring);
        prop_assert_eq!(colored.max_link_load(), best);
    }

    #[test]
    fn colouring_meets_the_certificate((topology, flows) in instance(11, 9, 200, 1), lost in 0..3u32) {
        let spines = topology.devices().iter().filter(|d| d.name.starts_with("spine")).count();
        let gone: Vec<DeviceId> = (0..lost.min(spines as u32 - 1))
            .map(|spine| topology.device_by_name(&format!("spine{spine}")).expect("there"))
            .collect();
        let topology = topology.without(&gone, &[]).expect("a network");
        let fabric = Fabric::new(&topology).expect("a Clos");
        let colored = made(&fabric, &flows, Scheme::EdgeColoring);
        check(&topology, &fabric, &flows, &colored);
        prop_assert_eq!(colored.max_link_load(), colored.certificate().load);
    }

    #[test]
    fn weights_cost_colouring_the_heaviest_flow_at_most((topology, flows) in instance(6, 6, 40, 50)) {
        let fabric = Fabric::new(&topology).expect("a Clos");
        let colored = made(&fabric, &flows, Scheme::EdgeColoring);
        let heaviest = flows.iter().map(|flow| flow.weight).max().unwrap_or(0);
        let least = colored.certificate().load;
        prop_assert!(colored.max_link_load() <= least + heaviest);
    }

    #[test]
    fn no_assignment_beats_its_certificate((topology, flows) in instance(3, 4, 7, 9)) {
        let fabric = Fabric::new(&topology).expect("a Clos");
        let least = made(&fabric, &flows, Scheme::Greedy).certificate().load;
        prop_assert!(least <= optimum(&fabric, &flows));
    }

    #[test]
    fn failures_are_respected(
        (topology, flows) in instance(5, 5, 12, 3),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let between: Vec<LinkId> = (0..topology.links().len())
            .map(LinkId::from)
            .filter(|&id| {
                let link = topology.link(id);
                !topology.is_npu(link.src) && !topology.is_npu(link.dst)
            })
            .collect();
        let gone: Vec<LinkId> = lost.iter().map(|index| between[index.index(between.len())]).collect();
        prop_assume!(gone.iter().collect::<HashSet<_>>().len() < between.len());
        let topology = topology.without(&[], &gone).expect("a network");
        let fabric = Fabric::new(&topology).expect("a Clos");
        let cut = flows.iter().any(|flow| fabric.spines_between(flow.src, flow.dst).next().is_none());
        for scheme in SCHEMES {
            match assign(&fabric, &flows, scheme, Seed(3)) {
                Ok(made) => {
                    prop_assert!(!cut);
                    check(&topology, &fabric, &flows, &made);
                    prop_assert_eq!(Ok(made), assign(&fabric, &flows, scheme, Seed(3)));
                }
                Err(error) => {
 let named = matches!(error, RoutingError::Cut { .. });
 prop_assert!(cut && named);
 }
            }
        }
        if !cut {
            let [greedy, colored] = [Scheme::Greedy, Scheme::EdgeColoring]
                .map(|scheme| made(&fabric, &flows, scheme).max_link_load());
            prop_assert!(fabric.is_complete() || colored <= greedy);
        }
    }
}

//! Path assignment on small fabrics, against the best of all assignments.

use std::collections::HashSet;

use hocket_core::id::{DeviceId, LinkId, narrow};
use hocket_core::routing::{
    Annealing, Assignment, Ecmp, Fabric, Flow, Hash, RoutingError, Scheme, assign, assignment_of,
    spray,
};
use hocket_core::topology::{Topology, TopologyBuilder, build};
use hocket_core::units::{Bandwidth, Seed, Time};
use proptest::prelude::*;

const SCHEMES: [Scheme; 9] = [
    Scheme::Greedy,
    Scheme::Ecmp(Ecmp {
        hash: Hash::Crc32,
        upstream: 1,
        salted: false,
    }),
    Scheme::Ecmp(Ecmp {
        hash: Hash::Toeplitz,
        upstream: 2,
        salted: true,
    }),
    Scheme::Ecmp(Ecmp {
        hash: Hash::Linux,
        upstream: 3,
        salted: false,
    }),
    Scheme::LeastLoaded,
    Scheme::Annealing(Annealing { steps: None }),
    Scheme::Annealing(Annealing { steps: Some(200) }),
    Scheme::GreedyParallel,
    Scheme::EdgeColoring,
];

fn clos(spines: u32, tors: u32) -> Topology {
    let bandwidth = Bandwidth::from_bytes_per_second(1_000).expect("positive");
    let parameters = build::Clos {
        spines,
        tors,
        hosts_per_tor: 2,
        host_bandwidth: bandwidth,
        bandwidth,
        latency: Time::from_ns(1),
    };
    parameters.build().expect("a Clos")
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

/// A tree of pods, each with so many ToRs and aggs; each agg of a pod reaches so many cores.
fn tree([pods, edges, aggs, cores]: [u32; 4]) -> Topology {
    let bandwidth = Bandwidth::from_bytes_per_second(1_000).expect("positive");
    let latency = Time::from_ns(1);
    let mut builder = TopologyBuilder::new("tree");
    builder.npus((pods * edges) as usize);
    let mut switches = |name: &str, count: u32| -> Vec<DeviceId> {
        let made = (0..count).map(|i| builder.switch(format!("{name}{i}"), None));
        made.collect()
    };
    let edge = switches("edge", pods * edges);
    let agg = switches("agg", pods * aggs);
    let core = switches("core", aggs * cores);
    for (i, &tor) in edge.iter().enumerate() {
        builder.both_ways(DeviceId(narrow(i)), tor, bandwidth, latency);
        for j in 0..aggs {
            let above = agg[(narrow(i) / edges * aggs + j) as usize];
            builder.both_ways(tor, above, bandwidth, latency);
        }
    }
    for (i, &below) in agg.iter().enumerate() {
        for c in 0..cores {
            let above = core[(narrow(i) % aggs * cores + c) as usize];
            builder.both_ways(below, above, bandwidth, latency);
        }
    }
    builder.finish().expect("a tree")
}

/// Sizes of a tree (pods, and ToRs, aggs and cores of each plane) and flows on it.
fn tree_instance(
    most: [u32; 4],
    flows: usize,
    heaviest: u64,
) -> impl Strategy<Value = ([u32; 4], Vec<Flow>)> {
    let sizes = (2..=most[0], 1..=most[1], 1..=most[2], 1..=most[3]);
    sizes.prop_flat_map(move |(pods, edges, aggs, cores)| {
        let tors = pods * edges;
        let flow = (0..tors, 1..tors, 1..=heaviest).prop_map(move |(src, ahead, weight)| Flow {
            src,
            dst: (src + ahead) % tors,
            weight,
        });
        let flows = prop::collection::vec(flow, 0..=flows);
        flows.prop_map(move |flows| ([pods, edges, aggs, cores], flows))
    })
}

/// The same network with other bandwidths between its switches.
fn uneven(topology: &Topology, bandwidths: &[u64]) -> Topology {
    let mut builder = TopologyBuilder::new("uneven");
    builder.npus(topology.npu_count());
    for device in &topology.devices()[topology.npu_count()..] {
        builder.switch(device.name.clone(), None);
    }
    for (i, link) in topology.links().iter().enumerate() {
        let bytes = bandwidths[(i * 7 + i / 5) % bandwidths.len()];
        let bandwidth = Bandwidth::from_bytes_per_second(bytes).expect("positive");
        builder.link(link.src, link.dst, bandwidth, link.latency);
    }
    builder.finish().expect("a network")
}

/// Links between switches that are not in a list of positions.
fn without(topology: &Topology, lost: &[prop::sample::Index]) -> Topology {
    let between: Vec<LinkId> = (0..topology.links().len())
        .map(LinkId::from)
        .filter(|&id| {
            let link = topology.link(id);
            !topology.is_npu(link.src) && !topology.is_npu(link.dst)
        })
        .collect();
    let mut gone: Vec<LinkId> = lost
        .iter()
        .map(|i| between[i.index(between.len())])
        .collect();
    gone.sort_unstable();
    gone.dedup();
    gone.truncate(between.len() - 1);
    topology.without(&[], &gone).expect("a network")
}

/// What a weight of 1 loads a link with.
fn share(topology: &Topology, fabric: &Fabric, link: LinkId) -> u64 {
    fabric.reference().bytes_per_second() / topology.link(link).bandwidth.bytes_per_second()
}

/// The least maximum link load, by trying everything.
fn optimum(topology: &Topology, fabric: &Fabric, flows: &[Flow]) -> u64 {
    let mut loads = vec![0; topology.links().len()];
    let mut best = u64::MAX;
    try_all(topology, fabric, flows, &mut loads, 0, &mut best);
    best
}

fn try_all(
    topology: &Topology,
    fabric: &Fabric,
    flows: &[Flow],
    loads: &mut [u64],
    so_far: u64,
    best: &mut u64,
) {
    let Some((flow, rest)) = flows.split_first() else {
        *best = (*best).min(so_far);
        return;
    };
    for choice in fabric.choices_between(flow.src, flow.dst) {
        let mut path = Vec::new();
        assert!(fabric.route(flow.src, flow.dst, choice, &mut path));
        let mut largest = so_far;
        for &link in &path {
            loads[link.index()] += flow.weight * share(topology, fabric, link);
            largest = largest.max(loads[link.index()]);
        }
        if largest < *best {
            try_all(topology, fabric, rest, loads, largest, best);
        }
        for &link in &path {
            loads[link.index()] -= flow.weight * share(topology, fabric, link);
        }
    }
}

/// Algorithm 1 as it is written, over links by name.
fn algorithm_1(topology: &Topology, fabric: &Fabric, flows: &[Flow]) -> Vec<u32> {
    let mut loads = vec![0; topology.links().len()];
    let mut choices = Vec::new();
    for flow in flows {
        let mut best = (u64::MAX, 0, Vec::new());
        for choice in fabric.choices_between(flow.src, flow.dst) {
            let mut path = Vec::new();
            fabric.route(flow.src, flow.dst, choice, &mut path);
            let with =
                |&link: &LinkId| loads[link.index()] + flow.weight * share(topology, fabric, link);
            let busiest = path.iter().map(with).max().expect("a path has links");
            if busiest < best.0 {
                best = (busiest, choice, path);
            }
        }
        for link in best.2 {
            loads[link.index()] += flow.weight * share(topology, fabric, link);
        }
        choices.push(best.1);
    }
    choices
}

/// Every flow has a path of links that are there, and the loads are what those make.
fn check(topology: &Topology, fabric: &Fabric, flows: &[Flow], made: &Assignment) {
    let mut loads = vec![0; topology.links().len()];
    for (i, path) in made.paths(fabric, flows).iter().enumerate() {
        let Flow { src, dst, weight } = flows[i];
        let name = |id: DeviceId| topology.device(id).name.as_str();
        let mut names = vec![name(topology.link(path[0]).src)];
        for pair in path.windows(2) {
            assert_eq!(topology.link(pair[0]).dst, topology.link(pair[1]).src);
        }
        names.extend(path.iter().map(|&link| name(topology.link(link).dst)));
        let top = made.choices()[i];
        let [tor, above] = if fabric.levels() == 2 {
            ["tor", "spine"]
        } else {
            ["edge", "agg"]
        };
        assert_eq!(names[0], format!("{tor}{src}"));
        assert_eq!(names[path.len()], format!("{tor}{dst}"));
        let highest = if path.len() == 4 { "core" } else { above };
        assert_eq!(names[path.len() / 2], format!("{highest}{top}"));
        assert_eq!(path.len() == 2, fabric.pod_of(src) == fabric.pod_of(dst));
        for &link in path {
            loads[link.index()] += weight * share(topology, fabric, link);
        }
    }
    let largest = loads.iter().copied().max().unwrap_or(0);
    assert_eq!(made.max_link_load(), largest);
    for (link, load) in made.link_loads(fabric) {
        assert_eq!(load, loads[link.index()]);
    }
    assert!(made.load_bound().load <= largest);
    let again = assignment_of(fabric, flows, made.choices().to_vec());
    assert_eq!(again.as_ref(), Ok(made));
}

/// Checks all schemes.
fn check_all(topology: &Topology, fabric: &Fabric, flows: &[Flow]) {
    let cut = |flow: &Flow| fabric.choices_between(flow.src, flow.dst).next().is_none();
    let cut = flows.iter().any(cut);
    for scheme in SCHEMES {
        match assign(fabric, flows, scheme, Seed(3)) {
            Ok(made) => {
                assert!(!cut);
                check(topology, fabric, flows, &made);
                assert_eq!(Ok(made), assign(fabric, flows, scheme, Seed(3)));
            }
            Err(error) => assert!(cut && matches!(error, RoutingError::Cut { .. })),
        }
    }
    if cut {
        return;
    }
    let greedy = made(fabric, flows, Scheme::Greedy);
    assert_eq!(greedy.choices(), algorithm_1(topology, fabric, flows));
    assert_eq!(greedy, made(fabric, flows, Scheme::GreedyParallel));
    if !fabric.is_complete() {
        let colored = made(fabric, flows, Scheme::EdgeColoring);
        assert!(colored.max_link_load() <= greedy.max_link_load());
    }
}

/// Theorem 2 where links are missing: see `Scheme::Greedy`.
fn check_greedy_bound(fabric: &Fabric, flows: &[Flow]) {
    let heaviest = flows.iter().map(|flow| flow.weight).max().unwrap_or(0);
    let links = |tor: u32, up: bool| {
        let others = (0..narrow(fabric.tor_count())).flat_map(|other| match up {
            true => fabric.choices_between(tor, other).collect::<Vec<_>>(),
            false => fabric.choices_between(other, tor).collect(),
        });
        others.collect::<HashSet<_>>().len() as u64
    };
    let greedy = made(fabric, flows, Scheme::Greedy);
    let least = greedy.load_bound().load;
    let bound = |flow: &Flow| {
        let common = fabric.choices_between(flow.src, flow.dst).count() as u64;
        let both = links(flow.src, true) + links(flow.dst, false);
        heaviest + (least * both).saturating_sub(2 * flow.weight) / common
    };
    let bound = flows.iter().map(bound).max().unwrap_or(0);
    assert!(greedy.max_link_load() <= bound);
    assert!(made(fabric, flows, Scheme::EdgeColoring).max_link_load() <= bound);
}

fn made(fabric: &Fabric, flows: &[Flow], scheme: Scheme) -> Assignment {
    assign(fabric, flows, scheme, Seed(7)).expect("it can be assigned")
}

proptest! {
    #[test]
    fn greedy_is_at_most_twice_the_optimum((topology, flows) in instance(4, 5, 8, 1)) {
        let fabric = Fabric::new(&topology).expect("a Clos");
        let best = optimum(&topology, &fabric, &flows);
        let greedy = made(&fabric, &flows, Scheme::Greedy);
        prop_assert!(greedy.max_link_load() <= 2 * best);
        let colored = made(&fabric, &flows, Scheme::EdgeColoring);
        prop_assert_eq!(colored.max_link_load(), best);
    }

    #[test]
    fn colouring_meets_the_load_bound((topology, flows) in instance(11, 9, 200, 1), lost in 0..3u32) {
        let spines = topology.devices().iter().filter(|d| d.name.starts_with("spine")).count();
        let gone: Vec<DeviceId> = (0..lost.min(narrow(spines) - 1))
            .map(|spine| topology.device_by_name(&format!("spine{spine}")).expect("there"))
            .collect();
        let topology = topology.without(&gone, &[]).expect("a network");
        let fabric = Fabric::new(&topology).expect("a Clos");
        let colored = made(&fabric, &flows, Scheme::EdgeColoring);
        check(&topology, &fabric, &flows, &colored);
        prop_assert_eq!(colored.max_link_load(), colored.load_bound().load);
    }

    #[test]
    fn weights_cost_colouring_the_heaviest_flow_at_most((topology, flows) in instance(6, 6, 40, 50)) {
        let fabric = Fabric::new(&topology).expect("a Clos");
        let colored = made(&fabric, &flows, Scheme::EdgeColoring);
        let heaviest = flows.iter().map(|flow| flow.weight).max().unwrap_or(0);
        let least = colored.load_bound().load;
        prop_assert!(colored.max_link_load() <= least + heaviest);
    }

    #[test]
    fn no_assignment_beats_its_load_bound((topology, flows) in instance(3, 4, 7, 9)) {
        let fabric = Fabric::new(&topology).expect("a Clos");
        let least = made(&fabric, &flows, Scheme::Greedy).load_bound().load;
        prop_assert!(least <= optimum(&topology, &fabric, &flows));
    }

    #[test]
    fn failures_are_respected(
        (topology, flows) in instance(5, 5, 12, 3),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let topology = without(&topology, &lost);
        let fabric = Fabric::new(&topology).expect("a Clos");
        check_all(&topology, &fabric, &flows);
    }

    #[test]
    fn failures_keep_greedy_within_its_bound(
        (topology, flows) in instance(8, 6, 80, 3),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let topology = without(&topology, &lost);
        let fabric = Fabric::new(&topology).expect("a Clos");
        let joined = |flow: &&Flow| fabric.choices_between(flow.src, flow.dst).next().is_some();
        let flows: Vec<Flow> = flows.iter().filter(joined).copied().collect();
        check_greedy_bound(&fabric, &flows);
    }

    #[test]
    fn trees_are_served_by_all_schemes(
        (sizes, flows) in tree_instance([3, 3, 3, 3], 12, 3),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let whole = tree(sizes);
        let above = whole.devices().iter().position(|device| device.name == "agg0");
        let above: Vec<usize> = (above.expect("it is there")..whole.device_count()).collect();
        let gone: Vec<DeviceId> = gone.iter().map(|i| DeviceId::from(*i.get(&above))).collect();
        let left = whole.without(&gone, &[]).expect("a network");
        let joined = left.links().iter().any(|link| !left.is_npu(link.src) && !left.is_npu(link.dst));
        prop_assume!(joined);
        let topology = without(&left, &lost);
        let fabric = Fabric::new(&topology).expect("a tree");
        check_all(&topology, &fabric, &flows);
    }

    #[test]
    fn bandwidths_may_differ(
        (topology, flows) in instance(4, 5, 12, 5),
        (sizes, more) in tree_instance([3, 2, 2, 3], 12, 5),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        for (topology, flows) in [(topology, flows), (tree(sizes), more)] {
            let topology = without(&uneven(&topology, &[40, 100, 100, 400, 60]), &lost);
            let fabric = Fabric::new(&topology).expect("a fabric");
            check_all(&topology, &fabric, &flows);
        }
    }

    #[test]
    fn no_load_bound_is_above_the_optimum(
        (topology, flows) in instance(3, 4, 7, 9),
        (sizes, more) in tree_instance([2, 2, 2, 2], 6, 2),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        even in any::<bool>(),
    ) {
        for (topology, flows) in [(topology, flows), (tree(sizes), more)] {
            let bandwidths: &[u64] = if even { &[10] } else { &[40, 100, 60] };
            let topology = without(&uneven(&topology, bandwidths), &lost);
            let fabric = Fabric::new(&topology).expect("a fabric");
            if let Ok(made) = assign(&fabric, &flows, Scheme::Greedy, Seed(0)) {
                prop_assert!(made.load_bound().load <= optimum(&topology, &fabric, &flows));
            }
        }
    }

    #[test]
    fn colouring_is_the_optimum_of_trees((sizes, flows) in tree_instance([3, 2, 2, 2], 7, 1)) {
        let topology = tree(sizes);
        let fabric = Fabric::new(&topology).expect("a tree");
        let colored = made(&fabric, &flows, Scheme::EdgeColoring);
        let best = optimum(&topology, &fabric, &flows);
        prop_assert!(colored.max_link_load() >= best);
        let leave = flows.iter().all(|flow| fabric.pod_of(flow.src) != fabric.pod_of(flow.dst));
        if sizes[1] <= sizes[3] || leave {
            prop_assert_eq!(colored.max_link_load(), best);
        }
    }

    #[test]
    fn colouring_meets_the_load_bound_of_trees(
        (sizes, mut flows) in tree_instance([6, 7, 6, 4], 400, 1),
        leave in any::<bool>(),
    ) {
        let topology = tree(sizes);
        let fabric = Fabric::new(&topology).expect("a tree");
        if leave {
            flows.retain(|flow| fabric.pod_of(flow.src) != fabric.pod_of(flow.dst));
        }
        let greedy = made(&fabric, &flows, Scheme::Greedy);
        prop_assert!(greedy.max_link_load() <= 4 * greedy.load_bound().load);
        let colored = made(&fabric, &flows, Scheme::EdgeColoring);
        check(&topology, &fabric, &flows, &colored);
        if leave || sizes[1] <= sizes[3] {
            prop_assert_eq!(colored.max_link_load(), colored.load_bound().load);
        }
    }

    #[test]
    fn spraying_keeps_what_flows_weigh((sizes, flows) in tree_instance([3, 3, 3, 3], 20, 9)) {
        let topology = tree(sizes);
        let fabric = Fabric::new(&topology).expect("a tree");
        let sprayed = spray(&fabric, &flows).expect("every flow has a path");
        let total: u64 = flows.iter().map(|flow| flow.weight).sum();
        for loads in [sprayed.up_loads(), sprayed.down_loads()] {
            prop_assert!((loads.iter().sum::<f64>() - total as f64).abs() < 1e-6);
        }
        // Each of a ToR's links carries its share.
        for (tor, row) in sprayed.up_loads().chunks(fabric.column_count()).enumerate() {
            let of = flows.iter().filter(|flow| flow.src as usize == tor);
            let share = of.map(|flow| flow.weight).sum::<u64>() as f64 / row.len() as f64;
            prop_assert!(row.iter().all(|load| (load - share).abs() < 1e-6));
        }
    }
}

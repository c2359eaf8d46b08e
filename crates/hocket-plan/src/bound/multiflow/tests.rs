//! Routes against a linear program, closed forms, and the network itself.

use microlp::{ComparisonOp, OptimizationDirection, Problem};

use super::*;
use crate::bound::network::ArcNetwork;
use crate::bound::{BoundOptions, Fidelity, bound};
use crate::collective::{Collective, CollectiveKind, Demand, NpuSet};
use crate::id::{NpuId, narrow};
use crate::progress::{Progress, Silent};
use crate::topology::build::{self, RingWays};
use crate::topology::{Topology, TopologyBuilder};
use crate::units::{Bandwidth, Seed, Time};

fn gb_per_s(giga: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(giga * 1_000_000_000).expect("positive")
}

/// NPUs and switches joined by links that may lead one way only; NPUs may be cut off.
fn random(seed: &mut Seed, latency: Time) -> Topology {
    let npus = 2 + seed.below(4);
    let devices = npus + seed.below(3);
    let mut builder = TopologyBuilder::new("random");
    builder.npus(npus);
    for i in npus..devices {
        let limit = (seed.below(3) == 0).then(|| gb_per_s(4));
        builder.switch(format!("switch{i}"), limit);
    }
    for _ in 0..devices + seed.below(3 * devices) {
        let (a, b) = (seed.below(devices), seed.below(devices));
        let bandwidth = gb_per_s([1, 2, 3, 5, 8][seed.below(5)]);
        match (a == b, seed.below(2)) {
            (true, _) => {}
            (false, 0) => builder.link(a.into(), b.into(), bandwidth, latency),
            (false, _) => builder.both_ways(a.into(), b.into(), bandwidth, latency),
        }
    }
    builder.finish().expect("a network")
}

/// Data of some NPUs for some others, of unequal sizes.
fn some_flows(seed: &mut Seed, npus: usize) -> Vec<Flow> {
    let pairs = (0..npus).flat_map(|dst| (0..npus).map(move |src| (src, dst)));
    let mut flows = Vec::new();
    for (src, dst) in pairs.filter(|(src, dst)| src != dst) {
        if seed.below(4) > 0 {
            flows.push(Flow {
                demand: narrow(flows.len()),
                src: src.into(),
                dst: dst.into(),
                bytes: 1_000_000 * (1 + seed.below(8) as u64),
            });
        }
    }
    flows
}

fn routed(topology: &Topology, flows: &[Flow], pieces: u64) -> (ArcNetwork, Shares, Routing) {
    let network = ArcNetwork::new(topology, Fidelity::Link);
    let parts = Shares::new(flows, pieces);
    let routing = Routing::new(&network, flows, &parts, 0.0, &mut Silent).expect("a routing");
    (network, parts, routing)
}

fn all_to_all(topology: &Topology, bytes: u64) -> Vec<Flow> {
    let kind = CollectiveKind::AllToAll;
    let collective = Collective::among_all(kind, topology, bytes).expect("a collective");
    flows(&collective).expect("of one for one")
}

/// How long the busiest arc sends at least [s], by a linear program with a flow to each destination.
fn by_linear_program(network: &ArcNetwork, flows: &[Flow]) -> Option<f64> {
    let arcs = network.arcs();
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let time = problem.add_var(1.0, (0.0, f64::INFINITY));
    let mut loads = vec![Vec::new(); arcs.len()];
    for group in flows.chunk_by(|a, b| a.dst == b.dst) {
        let own: Vec<_> = arcs
            .iter()
            .map(|_| problem.add_var(0.0, (0.0, f64::INFINITY)))
            .collect();
        for (load, &own) in loads.iter_mut().zip(&own) {
            load.push((own, 1.0));
        }
        for node in 0..narrow(network.node_count()) {
            if node == group[0].dst.0 {
                continue;
            }
            let out = network
                .arcs_out(node)
                .iter()
                .map(|&arc| (own[arc as usize], 1.0));
            let into = network
                .arcs_in(node)
                .iter()
                .map(|&arc| (own[arc as usize], -1.0));
            let sent = group.iter().filter(|flow| flow.src.0 == node);
            let sent: f64 = sent.map(|flow| flow.bytes as f64 / 1e9).sum();
            let terms: Vec<_> = out.chain(into).collect();
            problem.add_constraint(&terms[..], ComparisonOp::Eq, sent);
        }
    }
    for (arc, load) in arcs.iter().zip(loads) {
        let mut terms = load;
        terms.push((time, -(arc.capacity as f64) / 1e9));
        problem.add_constraint(&terms[..], ComparisonOp::Le, 0.0);
    }
    Some(problem.solve().ok()?.into_solution().ok()?.objective())
}

#[test]
fn routes_come_near_the_best_of_a_linear_program() {
    let mut seed = Seed(11);
    let (mut routable, mut refused, mut above) = (0, 0, 0.0);
    for case in 0..150 {
        let topology = random(&mut seed, Time::from_ns(500));
        let network = ArcNetwork::new(&topology, Fidelity::Link);
        let flows = some_flows(&mut seed, topology.npu_count());
        if flows.is_empty() {
            continue;
        }
        let parts = Shares::new(&flows, 256);
        let routing = Routing::new(&network, &flows, &parts, 0.0, &mut Silent);
        let reached = |flow: &Flow| network.breadth_first(flow.src.0).contains(&flow.dst.0);
        let Some(cut_off) = flows.iter().find(|flow| !reached(flow)) else {
            let best = by_linear_program(&network, &flows).expect("it has a solution");
            let routing = routing.expect("all are reached");
            assert!(routing.least <= best * (1.0 + 1e-6), "case {case}");
            assert!(routing.least > 0.0, "case {case}");
            let ratio = routing.busiest / best;
            assert!((1.0 - 1e-6..1.1).contains(&ratio), "case {case}: {ratio}");
            above += ratio - 1.0;
            routable += 1;
            continue;
        };
        let why = routing.expect_err("somebody is cut off");
        let to_same = |flow: &&Flow| flow.dst == cut_off.dst && !reached(flow);
        let all: Vec<Unroutable> = flows
            .iter()
            .filter(to_same)
            .map(|flow| Unroutable::Unreachable(flow.src, flow.dst))
            .collect();
        assert!(all.contains(&why), "case {case}: {why:?}");
        refused += 1;
    }
    assert!(routable > 20 && refused > 20, "{routable}, {refused}");
    let above = above / f64::from(routable);
    assert!(above < 0.01, "by {above} on average");
}

#[test]
fn ways_lead_from_source_to_destination_and_add_up() {
    let mut seed = Seed(5);
    for _ in 0..40 {
        let torus = build::torus(&[3, 2 + narrow(seed.below(3))], gb_per_s(25), Time::ZERO)
            .expect("a torus");
        let flows = some_flows(&mut seed, torus.npu_count());
        let (network, parts, routing) = routed(&torus, &flows, 3);
        assert_eq!(routing.ways.len(), parts.flow.len());
        let mut load = vec![0; network.arcs().len()];
        for (part, way) in routing.ways.iter().enumerate() {
            let flow = flows[parts.flow[part] as usize];
            let mut at = flow.src.0;
            for &arc in way {
                assert_eq!(network.arcs()[arc as usize].src, at);
                at = network.arcs()[arc as usize].dst;
                load[arc as usize] += parts.bytes[part];
            }
            assert_eq!(at, flow.dst.0);
        }
        let most = load.into_iter().max().expect("arcs") as f64 / 25e9;
        assert!((routing.busiest - most).abs() < 1e-9 * most);
    }
}

#[test]
fn closed_forms() {
    let latency = Time::from_ns(500);
    let switch = build::switch(8, gb_per_s(10), latency, None).expect("a switch");
    let ring = build::ring(8, gb_per_s(10), latency, RingWays::Both).expect("a ring");
    let one_way = build::ring(5, gb_per_s(10), latency, RingWays::One).expect("a ring");
    let torus = build::torus(&[4, 4], gb_per_s(10), latency).expect("a torus");
    let mesh = build::mesh(&[4, 4], gb_per_s(10), latency).expect("a mesh");
    let cases = [
        // What an NPU sends.
        (switch, 7.0),
        // Each way half of all distances: 1 + 2 + 3, and 4 in halves.
        (ring, 8.0),
        (one_way, 10.0),
        // Over four links, distances that sum to 32.
        (torus, 8.0),
        // Eight blocks of each of eight NPUs cross the middle over four links.
        (mesh, 16.0),
    ];
    for (topology, blocks) in cases {
        let name = topology.name().to_owned();
        let bytes = 1_000_000 * topology.npu_count() as u64;
        let (_, _, routing) = routed(&topology, &all_to_all(&topology, bytes), 16);
        let best = blocks * 1e6 / 10e9;
        assert!(
            routing.least <= best * 1.000_001,
            "{name}: {}",
            routing.least
        );
        assert!(
            routing.busiest >= best * 0.999_999,
            "{name}: {}",
            routing.busiest
        );
        assert!(
            routing.busiest <= best * 1.02,
            "{name}: {}",
            routing.busiest
        );
    }
}

#[test]
fn parts_are_of_about_the_same_size() {
    let flow = |dst, bytes| Flow {
        demand: 0,
        src: NpuId(0),
        dst: NpuId(dst),
        bytes,
    };
    let flows = [flow(1, 100), flow(2, 50), flow(3, 1)];
    let parts = Shares::new(&flows, 4);
    assert_eq!([parts.of(0), parts.of(1), parts.of(2)], [0..4, 4..6, 6..7]);
    assert_eq!(parts.bytes, [25, 25, 25, 25, 25, 25, 1]);
}

#[test]
fn only_data_of_one_for_one_are_flows() {
    let ring = build::ring(4, gb_per_s(10), Time::ZERO, RingWays::One).expect("a ring");
    for (kind, count) in [
        (CollectiveKind::AllToAll, Ok(12)),
        (CollectiveKind::Scatter, Ok(3)),
        (CollectiveKind::Gather, Ok(3)),
        (CollectiveKind::AllGather, Err(0)),
        (CollectiveKind::AllReduce, Err(0)),
        (CollectiveKind::ReduceScatter, Err(0)),
    ] {
        let collective = Collective::among_all(kind, &ring, 400).expect("a collective");
        assert_eq!(flows(&collective).map(|flows| flows.len()), count, "{kind}");
    }
    let demand = |reduced| Demand {
        bytes: 8,
        reduced,
        holders: NpuSet::One(NpuId(2)),
        wanted: NpuSet::One(NpuId(1)),
    };
    let custom = Collective::custom(ring.npus().collect(), vec![demand(false), demand(true)]);
    assert_eq!(flows(&custom.expect("a collective")), Err(1));
}

/// Stops work at once.
struct Stop;

impl Progress for Stop {
    fn report(&mut self, _: &'static str, _: u64, _: u64) -> bool {
        false
    }
}

#[test]
fn stopped_routes_are_those_of_the_first_pass() {
    let mesh = build::mesh(&[4, 4], gb_per_s(10), Time::ZERO).expect("a mesh");
    let flows = all_to_all(&mesh, 16_000);
    let (network, parts, best) = routed(&mesh, &flows, 1);
    let first = Routing::new(&network, &flows, &parts, 0.0, &mut Stop).expect("a routing");
    assert_eq!(first.ways.len(), parts.flow.len());
    assert!(first.busiest >= best.busiest);
}

#[test]
fn bytes_in_proportion_come_nearer_the_best_of_a_linear_program() {
    let mut seed = Seed(17);
    let (mut tried, mut above) = (0, 0.0);
    for case in 0..100 {
        let topology = random(&mut seed, Time::from_ns(500));
        let network = ArcNetwork::new(&topology, Fidelity::Link);
        let flows = some_flows(&mut seed, topology.npu_count());
        let parts = Shares::new(&flows, 4);
        let routing = Routing::new(&network, &flows, &parts, 0.0, &mut Silent);
        let Some(routing) = routing.ok().filter(|_| !flows.is_empty()) else {
            continue;
        };
        let best = by_linear_program(&network, &flows).expect("it has a solution");
        let mut spread = Spread::new(&network, &flows, &parts, &routing);
        spread
            .balance(1.0, 1.0, &mut Silent)
            .expect("nobody stops it");
        let (parts, routing) = spread.cut(10_000.0);
        let mut load = vec![0; network.arcs().len()];
        for (f, flow) in flows.iter().enumerate() {
            let bytes = &parts.bytes[parts.of(f)];
            assert_eq!(bytes.iter().sum::<u64>(), flow.bytes, "case {case}");
            for part in parts.of(f) {
                let mut at = flow.src.0;
                for &arc in routing.ways.get(part) {
                    assert_eq!(network.arcs()[arc as usize].src, at, "case {case}");
                    at = network.arcs()[arc as usize].dst;
                    load[arc as usize] += parts.bytes[part];
                }
                assert_eq!(at, flow.dst.0, "case {case}");
            }
        }
        let busy = network.arcs().iter().zip(load);
        let busy = busy.map(|(arc, load)| load as f64 / arc.capacity as f64);
        let ratio = busy.fold(0.0, f64::max) / best;
        assert!(routing.least <= best * (1.0 + 1e-6), "case {case}");
        assert!((1.0 - 1e-6..1.03).contains(&ratio), "case {case}: {ratio}");
        above += ratio - 1.0;
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
    let above = above / f64::from(tried);
    assert!(above < 0.005, "by {above} on average");
}

#[test]
fn fluids_prove_the_best_of_a_linear_program() {
    let mut seed = Seed(31);
    let (mut tried, mut below, mut above) = (0, 0.0, 0.0);
    for case in 0..100 {
        let topology = random(&mut seed, Time::ZERO);
        let flows = some_flows(&mut seed, topology.npu_count());
        let network = ArcNetwork::new(&topology, Fidelity::Link);
        let Some(mut fluid) = Fluid::new(&network, &flows)
            .ok()
            .filter(|_| !flows.is_empty())
        else {
            continue;
        };
        let balanced = fluid.balance(1.0005, |_| false, &mut Silent);
        balanced.expect("nobody stops it");
        let best = by_linear_program(&network, &flows).expect("it has a solution");
        let (least, busiest) = (fluid.least / best, fluid.busiest / best);
        assert!((0.9..=1.0 + 1e-6).contains(&least), "case {case}: {least}");
        assert!(
            (1.0 - 1e-6..1.1).contains(&busiest),
            "case {case}: {busiest}"
        );
        below += 1.0 - least;
        above += busiest - 1.0;
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
    let [below, above] = [below, above].map(|sum| sum / f64::from(tried));
    assert!(below < 0.02 && above < 0.005, "{below}, {above}");
}

#[test]
fn a_fluid_of_64_npus_crosses_the_middle_of_a_mesh() {
    let mesh = build::mesh(&[8, 8], gb_per_s(1), Time::ZERO).expect("a mesh");
    let flows = all_to_all(&mesh, 64_000_000);
    let network = ArcNetwork::new(&mesh, Fidelity::Link);
    let mut fluid = Fluid::new(&network, &flows).expect("all are reached");
    let balanced = fluid.balance(1.005, |_| false, &mut Silent);
    balanced.expect("nobody stops it");
    // 32 x 32 blocks over eight links.
    assert!(
        (0.127..=0.128_000_1).contains(&fluid.least),
        "{}",
        fluid.least
    );
    assert!(
        (0.127_999..0.129).contains(&fluid.busiest),
        "{}",
        fluid.busiest
    );
}

#[test]
fn prices_prove_the_best_of_a_linear_program() {
    let mut seed = Seed(29);
    let (mut proved, mut by_prices) = (0, 0);
    for case in 0..200 {
        let topology = random(&mut seed, Time::ZERO);
        let flows = some_flows(&mut seed, topology.npu_count());
        let network = ArcNetwork::new(&topology, Fidelity::Link);
        let reached = |flow: &Flow| network.breadth_first(flow.src.0).contains(&flow.dst.0);
        if flows.is_empty() || !flows.iter().all(reached) {
            continue;
        }
        let demand = |flow: &Flow| Demand {
            bytes: flow.bytes,
            reduced: false,
            holders: NpuSet::One(flow.src),
            wanted: NpuSet::One(flow.dst),
        };
        let demands = flows.iter().map(demand).collect();
        let collective = Collective::custom(topology.npus().collect(), demands).expect("valid");
        let bound = bound(
            &topology,
            &collective,
            &BoundOptions::default(),
            &mut Silent,
        );
        let bound = bound.expect("nobody stops it");
        let best = by_linear_program(&network, &flows).expect("it has a solution");
        let ratio = bound.time.as_seconds() / best;
        assert!((0.99..=1.0 + 1e-6).contains(&ratio), "case {case}: {ratio}");
        proved += 1;
        by_prices += usize::from(bound.witness.describe(&topology).starts_with("prices: "));
    }
    assert!(proved > 40 && by_prices > 5, "{by_prices} of {proved}");
}

/// Okamura, Seymour, Multicommodity flows in planar graphs, 1981: cuts allow 1 ms, but the four pairs of each way need two
/// of the six links each. Another NPU, whose links nobody needs, hides that from lengths that count all links alike.
#[test]
fn prices_prove_what_no_cut_does() {
    let mut builder = TopologyBuilder::new("K2,3");
    builder.npus(6);
    for (a, b) in [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 5usize)] {
        builder.both_ways(a.into(), b.into(), gb_per_s(1), Time::ZERO);
    }
    let topology = builder.finish().expect("a network");
    let pairs = [(0, 1), (2, 3), (3, 4), (4, 2)];
    let both = pairs.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
    let demand = |(src, dst): (u32, u32)| Demand {
        bytes: 1_000_000,
        reduced: false,
        holders: NpuSet::One(NpuId(src)),
        wanted: NpuSet::One(NpuId(dst)),
    };
    let collective = Collective::custom(topology.npus().collect(), both.map(demand).collect());
    let options = BoundOptions::default();
    let bound = bound(
        &topology,
        &collective.expect("valid"),
        &options,
        &mut Silent,
    );
    let bound = bound.expect("nobody stops it");
    assert_eq!(bound.time, Time::from_ps(1_333_333_333));
    assert_eq!(
        bound.witness.describe(&topology),
        "prices: 16 MB x price over 12 GB/s x price of 1 x npu0 -> npu2, 1 x npu2 -> npu0, 1 x npu0 -> npu3, \
         1 x npu3 -> npu0, ... 1 x npu4 -> npu1 (12 in all)"
    );
}

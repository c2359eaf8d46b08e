//! Plans of Steiner trees on random networks, and on networks whose best time is known.

use std::sync::Arc;

use super::Relays;
use crate::bound::{BoundOptions, bound};
use crate::collective::{Collective, CollectiveKind, Demand, NpuSet};
use crate::id::{DeviceId, NpuId, TransferId, narrow};
use crate::plan::PlanError;
use crate::progress::Silent;
use crate::select::{SteinerOptions, SteinerPlan, steiner};
use crate::topology::{LatencyModel, Topology, TopologyBuilder, build};
use crate::units::{Bandwidth, Seed, Time};

fn gb_per_s(giga: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(giga * 1_000_000_000).expect("positive")
}

fn made(
    topology: &Arc<Topology>,
    collective: &Collective,
    relays: Relays,
) -> Result<SteinerPlan, PlanError> {
    let options = SteinerOptions {
        pieces: None,
        memory_limit: 1 << 32,
        latency: LatencyModel::default(),
        relays,
    };
    steiner(topology, collective, &options, &mut Silent)
}

fn least(topology: &Topology, collective: &Collective, relays: Relays) -> Time {
    let options = BoundOptions {
        relays,
        ..BoundOptions::default()
    };
    let found = bound(topology, collective, &options, &mut Silent);
    found.expect("a bound").time
}

/// One custom collective of several groups.
fn together(kind: CollectiveKind, groups: &[Vec<u32>], bytes: u64) -> Collective {
    let mut demands = Vec::new();
    let mut all = Vec::new();
    for group in groups {
        let npus: Vec<NpuId> = group.iter().map(|&npu| NpuId(npu)).collect();
        let one = Collective::new(kind, npus, bytes, None).expect("a collective");
        let members = one.npus().to_vec();
        for mut demand in one.demands() {
            let of = |set: &NpuSet| NpuSet::of(set.members(&members).iter().copied());
            (demand.holders, demand.wanted) = (of(&demand.holders), of(&demand.wanted));
            demands.push(demand);
        }
        all.extend(members);
    }
    all.sort_unstable();
    all.dedup();
    Collective::custom(all, demands).expect("a collective")
}

/// NPUs on a ring that may lead one way only, with more links, some of them to switches.
fn network(seed: &mut Seed) -> Topology {
    let mut builder = TopologyBuilder::new("random");
    let npus = 4 + seed.below(6);
    builder.npus(npus);
    let latency = Time::from_ns(1_000);
    let rate = |seed: &mut Seed| gb_per_s([5, 10, 25, 50][seed.below(4)]);
    let is_two_way = seed.below(3) > 0;
    for i in 0..npus {
        let (a, b) = (i.into(), ((i + 1) % npus).into());
        match is_two_way {
            true => builder.both_ways(a, b, rate(seed), latency),
            false => builder.link(a, b, rate(seed), latency),
        }
    }
    for i in 0..seed.below(3) {
        let switch = builder.switch(format!("switch{i}"), None);
        for _ in 0..2 + seed.below(4) {
            builder.both_ways(seed.below(npus).into(), switch, rate(seed), latency);
        }
    }
    for _ in 0..seed.below(npus) {
        let (a, b) = (seed.below(npus), seed.below(npus));
        if a != b {
            builder.both_ways(a.into(), b.into(), rate(seed), latency);
        }
    }
    builder.finish().expect("a network")
}

fn groups(npus: usize, seed: &mut Seed) -> Vec<Vec<u32>> {
    let mut order: Vec<u32> = (0..narrow(npus)).collect();
    for i in (1..npus).rev() {
        order.swap(i, seed.below(i + 1));
    }
    let mut found = Vec::new();
    for _ in 0..1 + seed.below(2) {
        let size = 2 + seed.below(3);
        if order.len() >= size {
            found.push(order.split_off(order.len() - size));
        }
    }
    found
}

/// Who takes no part in a demand does no more than relays may.
fn check_relays(topology: &Topology, plan: &SteinerPlan, collective: &Collective, relays: Relays) {
    let demands = collective.demands();
    let plan = plan.proof.plan();
    for number in 0..plan.len() {
        let transfer = plan.transfer(TransferId(narrow(number)));
        let demand = &demands[plan.chunks().demand()[transfer.chunk.index()] as usize];
        let members = |set: &NpuSet| set.members(collective.npus()).to_vec();
        let ends = [members(&demand.holders), members(&demand.wanted)].concat();
        let path = plan.paths().get(transfer.path.expect("a path") as usize);
        let inner = path.iter().map(|&link| topology.link(link).dst);
        let inner: Vec<_> = inner
            .filter(|&device| device != transfer.dst.device())
            .collect();
        let is_npu = |device: &DeviceId| device.index() < topology.npu_count();
        assert!(relays == Relays::Sum || ends.contains(&transfer.dst));
        assert!(relays == Relays::Forward || !inner.iter().any(is_npu));
    }
}

#[test]
fn plans_of_random_groups_are_proved_and_no_quicker_than_the_bound() {
    use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
    let mut seed = Seed(7);
    let mut planned = 0;
    for case in 0..60 {
        let network = Arc::new(network(&mut seed));
        let groups = groups(network.npu_count(), &mut seed);
        let kind = [AllReduce, AllGather, ReduceScatter][seed.below(3)];
        let bytes = [1_000, 40_000, 9_000_000][seed.below(3)];
        let collective = together(kind, &groups, bytes);
        let relays = [Relays::None, Relays::Forward, Relays::Sum, Relays::Sum][seed.below(4)];
        match made(&network, &collective, relays) {
            Ok(plan) => {
                planned += 1;
                let any = least(&network, &collective, Relays::Sum);
                let least = least(&network, &collective, relays);
                assert!(any <= least, "case {case}: {any} > {least}");
                assert!(
                    plan.run.time >= least,
                    "case {case}: {} < {least}",
                    plan.run.time
                );
                check_relays(&network, &plan, &collective, relays);
            }
            Err(PlanError::NotApplicable { why, .. }) => {
                assert_eq!(relays, Relays::None, "case {case}: {why}");
            }
            Err(why) => panic!("case {case}: {why}"),
        }
    }
    assert!(planned > 30, "{planned} plans");
}

#[test]
fn sums_of_some_may_go_to_others() {
    let mut seed = Seed(11);
    for case in 0..30 {
        let network = Arc::new(network(&mut seed));
        let npus: Vec<NpuId> = network.npus().collect();
        let some = |seed: &mut Seed| {
            let first = seed.below(npus.len());
            let count = 1 + seed.below(npus.len() - 1);
            NpuSet::of((0..count).map(|i| npus[(first + i * 2) % npus.len()]))
        };
        let demand = |seed: &mut Seed| Demand {
            bytes: 1 + seed.below(100_000) as u64,
            reduced: true,
            holders: some(seed),
            wanted: some(seed),
        };
        let demands = (0..3).map(|_| demand(&mut seed)).collect();
        let collective = Collective::custom(npus.clone(), demands).expect("a collective");
        match made(&network, &collective, Relays::Sum) {
            Ok(plan) => assert!(
                plan.run.time >= least(&network, &collective, Relays::Sum),
                "case {case}"
            ),
            Err(why) => assert!(why.to_string().contains("use flows"), "case {case}: {why}"),
        }
    }
}

#[test]
fn four_corners_gain_from_relays_that_sum() {
    let mesh = build::mesh(&[6, 6], gb_per_s(50), Time::from_ns(500)).expect("a mesh");
    let mesh = Arc::new(mesh);
    let npus = [0, 5, 30, 35].map(NpuId).to_vec();
    let kind = CollectiveKind::AllReduce;
    let collective = Collective::new(kind, npus, 64_000_000, None).expect("a collective");
    let time = |relays| made(&mesh, &collective, relays).expect("a plan").run.time;
    let forwarded = least(&mesh, &collective, Relays::Forward);
    assert_eq!(forwarded, Time::from_ns(961_000));
    // 3 x 64 MB over the two links of each corner, there and back; and 2 x 3 x 64 MB over them all without sums.
    assert!(time(Relays::Sum) < Time::from_ns(660_000));
    let forwarded = time(Relays::Forward);
    assert!(forwarded > Time::from_ns(960_000) && forwarded < Time::from_ns(990_000));
}

#[test]
fn others_behind_a_switch_sum() {
    let switch = build::switch(8, gb_per_s(50), Time::from_ns(500), None).expect("a switch");
    let switch = Arc::new(switch);
    let npus = [1, 4, 6].map(NpuId).to_vec();
    let kind = CollectiveKind::AllReduce;
    let collective = Collective::new(kind, npus, 64_000_000, None).expect("a collective");
    let time = |relays| made(&switch, &collective, relays).expect("a plan").run.time;
    // Five others have the middle of a tree each, which every member sends to and hears from once.
    assert!(time(Relays::Sum) < Time::from_ns(1_310_000));
    // Among themselves, two of three are at the end of a tree, and one is in the middle: 4 / 3.
    let alone = time(Relays::Forward);
    assert!(
        alone > Time::from_ns(1_706_000) && alone < Time::from_ns(1_730_000),
        "{alone}"
    );
}

#[test]
fn large_groups_behind_a_switch_do_not_wait_as_chains() {
    let rail = build::Rail {
        nodes: 48,
        npus: 2,
        spines: 0,
        node_bandwidth: gb_per_s(450),
        node_latency: Time::from_ns(500),
        bandwidth: gb_per_s(50),
        latency: Time::from_ns(2_000),
    };
    let rail = Arc::new(rail.build().expect("a rail"));
    let groups = [0, 1].map(|first| (first..96).step_by(2).collect());
    for kind in [CollectiveKind::AllReduce, CollectiveKind::AllGather] {
        for bytes in [1_000_000, 64_000_000] {
            let collective = together(kind, &groups, bytes);
            let plan = made(&rail, &collective, Relays::Sum).expect("a plan");
            let least = least(&rail, &collective, Relays::Sum).as_ps() as f64;
            let time = plan.run.time.as_ps() as f64;
            assert!(
                time < 1.03 * least + 2e7,
                "{kind}, {bytes}: {}",
                time / least
            );
        }
    }
}

/// Tokens of every NPU, each for some others; or the sums of what comes back.
fn tokens(npus: usize, each: usize, takers: usize, is_back: bool) -> Collective {
    let mut seed = Seed(5);
    let mut demands = Vec::new();
    for npu in 0..npus {
        for _ in 0..each {
            let others = (0..takers).map(|_| (npu + 1 + seed.below(npus - 1)) % npus);
            let them = NpuSet::of(others.map(|other| NpuId(narrow(other))));
            let own = NpuSet::One(NpuId(narrow(npu)));
            let (holders, wanted) = if is_back { (them, own) } else { (own, them) };
            demands.push(Demand {
                bytes: 200_000,
                reduced: !matches!(holders, NpuSet::One(_)),
                holders,
                wanted,
            });
        }
    }
    let npus = (0..narrow(npus)).map(NpuId).collect();
    Collective::custom(npus, demands).expect("a collective")
}

#[test]
fn tokens_enter_a_node_once() {
    let rail = build::Rail {
        nodes: 3,
        npus: 4,
        spines: 0,
        node_bandwidth: gb_per_s(450),
        node_latency: Time::from_ns(500),
        bandwidth: gb_per_s(50),
        latency: Time::from_ns(2_000),
    };
    let rail = Arc::new(rail.build().expect("a rail"));
    for is_back in [false, true] {
        let collective = tokens(rail.npu_count(), 24, 5, is_back);
        let plan = made(&rail, &collective, Relays::Sum).expect("a plan");
        let least = least(&rail, &collective, Relays::Sum).as_ps() as f64;
        let time = plan.run.time.as_ps() as f64;
        assert!(time < 1.06 * least, "{is_back}: {}", time / least);
    }
}

#[test]
fn nodes_without_an_end_relay_if_no_other_way_leads_there() {
    let mut builder = TopologyBuilder::new("three nodes in a row");
    builder.npus(6);
    for npu in 0..5u32 {
        let (a, b) = (DeviceId(npu), DeviceId(npu + 1));
        builder.both_ways(a, b, gb_per_s(50), Time::from_ns(500));
    }
    let nodes = [0, 2, 4].map(|npu| vec![NpuId(npu), NpuId(npu + 1)]);
    let row = builder.finish().expect("a row").with_groups(nodes.to_vec());
    let row = Arc::new(row.expect("three nodes"));
    let demand = |bytes| Demand {
        bytes,
        reduced: false,
        holders: NpuSet::One(NpuId(0)),
        wanted: NpuSet::of([NpuId(4), NpuId(5)]),
    };
    let demands = (0..8).map(|number| demand(10_000 + number)).collect();
    let collective = Collective::custom((0..6).map(NpuId).collect(), demands);
    assert!(made(&row, &collective.expect("a collective"), Relays::Sum).is_ok());
}

#[test]
fn groups_in_two_parts_of_a_network_are_planned() {
    let mut builder = TopologyBuilder::new("two rings");
    builder.npus(8);
    for npu in 0..8u32 {
        let next = npu / 4 * 4 + (npu + 1) % 4;
        let (a, b) = (DeviceId(npu), DeviceId(next));
        builder.both_ways(a, b, gb_per_s(50), Time::from_ns(500));
    }
    let rings = Arc::new(builder.finish().expect("two rings"));
    let kinds = [CollectiveKind::AllReduce, CollectiveKind::AllGather];
    for (kind, groups) in kinds.into_iter().flat_map(|kind| {
        let [some, all] = [
            [vec![0, 1, 2], vec![4, 6]],
            [vec![0, 1, 2, 3], vec![4, 5, 6, 7]],
        ];
        [(kind, some), (kind, all)]
    }) {
        let collective = together(kind, &groups, 64_000_000);
        let plan = made(&rings, &collective, Relays::Sum).expect("a plan");
        let least = least(&rings, &collective, Relays::Sum).as_ps();
        assert!(
            (least..least + least / 50).contains(&plan.run.time.as_ps()),
            "{kind} {groups:?}"
        );
    }
    let cut = together(
        CollectiveKind::AllReduce,
        &[vec![0, 1], vec![2, 5]],
        64_000_000,
    );
    assert!(made(&rings, &cut, Relays::Sum).is_err());
}

#[test]
fn what_it_does_not_do_is_refused() {
    let torus = build::torus(&[3, 3], gb_per_s(25), Time::ZERO).expect("a torus");
    let torus = Arc::new(torus);
    let why = |collective: &Collective, relays| {
        let made = made(&torus, collective, relays);
        made.expect_err("refused").to_string()
    };
    let kind = CollectiveKind::AllReduce;
    let all = Collective::among_all(kind, &torus, 900).expect("a collective");
    assert_eq!(
        why(&all, Relays::Sum),
        "steiner: every NPU takes part, so that none is left to relay; use trees"
    );
    let apart = Collective::new(kind, vec![NpuId(0), NpuId(4)], 900, None).expect("a collective");
    assert!(why(&apart, Relays::None).contains("over the NPUs that may relay"));
    let pairs = together(CollectiveKind::AllToAll, &[vec![0, 1], vec![2, 3]], 900);
    assert!(why(&pairs, Relays::Sum).contains("use flows"));
}

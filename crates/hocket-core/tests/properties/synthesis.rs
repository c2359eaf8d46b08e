//! Synthesis on any network, broken ones too: a plan that is right, or somebody cannot be reached.

use std::sync::Arc;

use hocket_core::bound::{BoundOptions, bound};
use hocket_core::collective::{Collective, CollectiveKind, Demand, NpuSet};
use hocket_core::id::{DeviceId, LinkId, NpuId, narrow};
use hocket_core::plan::{Plan, PlanError};
use hocket_core::progress::Silent;
use hocket_core::select::{Method, synthesize};
use hocket_core::simulate::{SimulateOptions, simulate};
use hocket_core::synthesis::{Problem, SynthesisOptions, Timetables, Unwinding, UnwoundNetwork};
use hocket_core::topology::build;
use hocket_core::topology::{Dimension, DimensionKind, LatencyModel, Topology, TopologyBuilder};
use hocket_core::units::{Bandwidth, Seed, Time};
use hocket_core::verify::verify;
use proptest::prelude::*;

use crate::networks::{collective_on, config};

const MEMORY: u64 = 1 << 30;

/// A network of 2 to 10 NPUs, most links alike and some not, of which some links and NPUs failed.
fn network() -> impl Strategy<Value = Topology> {
    any::<u64>().prop_map(|seed| {
        let mut seed = Seed(seed);
        let whole = match seed.below(3) {
            0 => product(&mut seed),
            _ => graph(&mut seed),
        };
        broken(whole, &mut seed)
    })
}

/// A link's cost: that of most links, or one of its own for one in five.
fn cost(seed: &mut Seed) -> (Bandwidth, Time) {
    let gigabytes = [1, 3, 10, 25, 50];
    let (rate, ns) = match seed.below(5) {
        0 => (gigabytes[seed.below(5)], [0, 20, 700, 2600][seed.below(4)]),
        _ => (10, 20),
    };
    let rate = Bandwidth::from_bytes_per_second(rate * 1_000_000_000);
    (rate.expect("positive"), Time::from_ns(ns))
}

/// A tree of links both ways, perhaps cut in two, and more links on top, parallel ones too.
fn graph(seed: &mut Seed) -> Topology {
    let (npus, switches) = (2 + seed.below(9), seed.below(4));
    let mut builder = TopologyBuilder::new("random");
    builder.npus(npus);
    for i in 0..switches {
        let limit = (seed.below(4) == 0).then(|| cost(seed).0);
        builder.switch(format!("switch{i}"), limit);
    }
    let devices = npus + switches;
    let mut order: Vec<usize> = (0..devices).collect();
    for i in (1..devices).rev() {
        order.swap(i, seed.below(i + 1));
    }
    let add = |builder: &mut TopologyBuilder, a: usize, b: usize, seed: &mut Seed| {
        let (rate, latency) = cost(seed);
        builder.link(DeviceId::from(a), DeviceId::from(b), rate, latency);
    };
    for i in 1..devices {
        if seed.below(20) > 0 {
            let (a, b) = (order[i], order[seed.below(i)]);
            add(&mut builder, a, b, seed);
            add(&mut builder, b, a, seed);
        }
    }
    for _ in 0..seed.below(12) {
        let a = seed.below(devices);
        let b = (a + 1 + seed.below(devices - 1)) % devices;
        add(&mut builder, a, b, seed);
    }
    builder.finish().expect("a network")
}

/// A product of two or three small dimensions of any kind, each with a cost of its own.
fn product(seed: &mut Seed) -> Topology {
    const KINDS: [DimensionKind; 4] = [
        DimensionKind::Ring,
        DimensionKind::Line,
        DimensionKind::FullyConnected,
        DimensionKind::Switch,
    ];
    let sizes: &[u32] = [&[2, 2][..], &[3, 3], &[5, 2], &[2, 2, 2], &[2, 4]][seed.below(5)];
    let dimension = |&size: &u32| {
        let (bandwidth, latency) = cost(seed);
        Dimension {
            kind: KINDS[seed.below(4)],
            size,
            bandwidth,
            latency,
            offload: false,
        }
    };
    let dimensions: Vec<Dimension> = sizes.iter().map(dimension).collect();
    build::product(&dimensions).expect("a product")
}

/// Every second network loses links; every fourth one NPU as well, or all links of some kind.
fn broken(whole: Topology, seed: &mut Seed) -> Topology {
    let mut devices = Vec::new();
    let mut links = Vec::new();
    if seed.below(2) == 0 {
        let count = seed.below(4).min(whole.links().len());
        links.extend((0..count).map(|_| LinkId::from(seed.below(whole.links().len()))));
        match seed.below(4) {
            0 if whole.npu_count() > 2 => {
                devices.push(DeviceId::from(seed.below(whole.npu_count())))
            }
            1 => {
                let apart = 1 << seed.below(3);
                let ends = |link: &hocket_core::topology::Link| link.src.0.abs_diff(link.dst.0);
                let ids = (0..whole.links().len()).map(LinkId::from);
                links.extend(ids.filter(|&id| ends(whole.link(id)) == apart));
            }
            _ => {}
        }
    }
    whole.without(&devices, &links).expect("a network")
}

fn any_unwinding() -> impl Strategy<Value = Unwinding> {
    prop_oneof![
        Just(Unwinding::Degree(1)),
        Just(Unwinding::Degree(2)),
        Just(Unwinding::BothWays),
        Just(Unwinding::Max),
    ]
}

fn any_latency() -> impl Strategy<Value = LatencyModel> {
    prop_oneof![
        Just(LatencyModel::Overlapped),
        Just(LatencyModel::Occupying)
    ]
}

/// For each NPU, whom it reaches over the network as unwound.
fn reach(network: &UnwoundNetwork) -> Vec<Vec<bool>> {
    let from = |start: usize| {
        let mut seen = vec![false; network.npus()];
        let mut stack = vec![start];
        seen[start] = true;
        while let Some(npu) = stack.pop() {
            for edge in network
                .edges()
                .iter()
                .filter(|edge| edge.src.index() == npu)
            {
                if !std::mem::replace(&mut seen[edge.dst.index()], true) {
                    stack.push(edge.dst.index());
                }
            }
        }
        seen
    };
    (0..network.npus()).map(from).collect()
}

/// Whether a demand can be met: a sum reaches each who wants it whole, a copy comes from somebody.
fn is_possible(demand: &Demand, among: &[NpuId], reach: &[Vec<bool>]) -> bool {
    let holders = demand.holders.members(among);
    let wanted = demand.wanted.members(among);
    let reaches = |a: &NpuId, b: &NpuId| reach[a.index()][b.index()];
    let met = |npu: &NpuId| match demand.reduced && holders.len() > 1 {
        true => {
            holders.iter().all(|holder| reaches(holder, npu))
                && wanted.iter().all(|other| reaches(npu, other))
        }
        false => holders.iter().any(|holder| reaches(holder, npu)),
    };
    wanted.iter().all(met)
}

/// Whether a refusal names a chunk, and two NPUs of its demand between which there is no way.
fn names_the_cut(why: &str, problem: &Problem, demands: &[Demand], among: &[NpuId]) -> bool {
    let reach = reach(problem.network());
    let words = why.split([' ', ',', ';']);
    let mut numbers = words.filter_map(|word| word.parse::<usize>().ok());
    let mut next = || numbers.next();
    let (Some(npu), Some(chunk), Some(other)) = (next(), next(), next()) else {
        return false;
    };
    let Some(&demand) = problem.work().chunks.demand().get(chunk) else {
        return false;
    };
    let demand = &demands[demand as usize];
    let named = |set: &NpuSet, npu: usize| {
        let members = set.members(among);
        members.contains(&NpuId::from(npu))
    };
    let (holders, wanted) = (&demand.holders, &demand.wanted);
    let as_copy = named(wanted, npu)
        && named(if demand.reduced { wanted } else { holders }, other)
        && !reach[other][npu];
    let as_sum =
        demand.reduced && named(holders, npu) && named(wanted, other) && !reach[npu][other];
    as_copy || as_sum
}

struct Case {
    topology: Arc<Topology>,
    collective: Collective,
    latency: LatencyModel,
    problem: Problem,
}

impl Case {
    fn new(
        topology: &Arc<Topology>,
        collective: Collective,
        pieces: usize,
        unwinding: Unwinding,
        latency: LatencyModel,
    ) -> Self {
        let unwinding = [unwinding];
        let problem = Problem::new(topology, &collective, pieces, &unwinding, latency, MEMORY);
        Self {
            topology: Arc::clone(topology),
            problem: problem.expect("it fits"),
            collective,
            latency,
        }
    }

    fn is_possible(&self) -> bool {
        let reach = reach(self.problem.network());
        let demands = self.collective.demands();
        let possible = |demand| is_possible(demand, self.collective.npus(), &reach);
        demands.iter().all(possible)
    }

    /// Checks one outcome: a refusal where there is no way, and only there; a plan that holds.
    fn check(&self, what: &str, found: Result<Plan, PlanError>, end: Option<(u64, &Timetables)>) {
        let what = format!("{what} {} {:?}", self.collective.kind(), self.latency);
        let plan = match found {
            Ok(plan) => plan,
            Err(PlanError::NotApplicable { why, .. }) => {
                assert!(!self.is_possible(), "{what}: refused: {why}");
                let demands = self.collective.demands();
                let is_named = names_the_cut(&why, &self.problem, &demands, self.collective.npus());
                assert!(is_named, "{what}: {why}");
                return;
            }
            Err(other) => panic!("{what}: {other}"),
        };
        assert!(self.is_possible(), "{what}: there is no way");
        let time = self.simulated(&what, plan);
        let bound = bound(
            &self.topology,
            &self.collective,
            &BoundOptions::default(),
            &mut Silent,
        )
        .expect("nobody stops it");
        assert!(time >= bound.time, "{what}: {time} < {}", bound.time);
        if let Some(end) = end {
            let network = self.problem.network();
            let is_direct = (0..network.edges().len()).all(|e| network.path(narrow(e)).len() == 1);
            let is_timed = is_direct && !self.is_relayed(end.1);
            assert!(
                !is_timed || time.as_ps() <= end.0,
                "{what}: {time} > {} ps",
                end.0
            );
        }
    }

    /// Whether somebody who has nothing to add to a sum gets several parts of it: these come one
    /// after the other, whatever the timetable says.
    fn is_relayed(&self, times: &Timetables) -> bool {
        let work = self.problem.work();
        let demands = self.collective.demands();
        let mut seen = std::collections::HashSet::new();
        times.sums.sends.iter().any(|send| {
            let npu = self.problem.network().edges()[send.edge as usize].dst;
            let chunk = work.sums.ids[send.chunk as usize];
            let demand = &demands[work.chunks.demand()[chunk as usize] as usize];
            let adds = demand
                .holders
                .members(self.collective.npus())
                .contains(&npu);
            !adds && !seen.insert((npu, chunk))
        })
    }

    fn simulated(&self, what: &str, plan: Plan) -> Time {
        let verified = match verify(Arc::new(plan), Arc::clone(&self.topology), &mut Silent) {
            Ok(verified) => verified,
            Err(error) => panic!("{what}: {error}"),
        };
        let options = SimulateOptions {
            latency: self.latency,
            ..SimulateOptions::default()
        };
        simulate(&verified, &options, &mut Silent)
            .expect("it runs")
            .time
    }

    fn check_times(&self, what: &str, found: Result<Timetables, PlanError>) {
        let plan = found.as_ref().map(|times| self.problem.plan(what, times));
        let plan = plan.map_err(Clone::clone);
        if let Ok(times) = &found {
            let kind = self.collective.kind();
            assert_free_of_clashes(&self.problem, times);
            let checked = self.problem.check(times);
            assert!(checked.is_ok(), "{what} {kind}: {checked:?}");
            let least = self.problem.least();
            assert!(
                times.end() >= least,
                "{what} {kind}: {} < {least}",
                times.end()
            );
        }
        let end = found.as_ref().ok().map(|times| (times.end(), times));
        self.check(what, plan, end);
    }
}

/// No edge holds two chunks at a time, sums and copies together.
fn assert_free_of_clashes(problem: &Problem, times: &Timetables) {
    let work = problem.work();
    let parts = [
        (&times.sums, &work.sums.spread, problem.sum_times()),
        (&times.copies, &work.copies.spread, problem.copy_times()),
    ];
    let mut held = Vec::new();
    for (is_sum, (timetable, spread, timings)) in [true, false].into_iter().zip(parts) {
        for send in &timetable.sends {
            let class = spread.class[send.chunk as usize] as usize;
            let timing = timings[send.edge as usize * spread.sizes.len() + class];
            held.push((
                send.edge,
                send.start,
                send.start + timing.occupied,
                timing,
                is_sum,
            ));
            assert!(send.start + timing.delay <= timetable.end, "{send:?}");
        }
    }
    held.sort_unstable();
    for pair in held.windows(2) {
        let clash = pair[0].0 == pair[1].0 && pair[1].1 < pair[0].2;
        assert!(!clash, "{:?} and {:?} share an edge", pair[0], pair[1]);
    }
}

fn check_all(case: &Case, seed: u64, trials: u64) {
    let problem = &case.problem;
    case.check_times("greedy", problem.greedy(seed, trials, &mut Silent));
    case.check_times("apart", problem.greedy_apart(seed, trials, &mut Silent));
    case.check("blind", problem.blind(seed), None);
}

/// Demands of any shape: of several holders, of some who want them, of different sizes.
fn any_demands(topology: &Topology, seed: u64) -> Option<Collective> {
    let mut seed = Seed(seed);
    let npus: Vec<NpuId> = topology.npus().collect();
    let demands = (0..1 + seed.below(5)).map(|_| {
        let mut set = || match seed.below(3) {
            0 => NpuSet::All,
            1 => NpuSet::One(npus[seed.below(npus.len())]),
            _ => NpuSet::of((0..3).map(|_| npus[seed.below(npus.len())])),
        };
        let (holders, wanted) = (set(), set());
        let reduced = seed.below(2) == 0;
        // Who wants a sum adds to it.
        let adding = || holders.members(&npus).iter().chain(wanted.members(&npus));
        Demand {
            bytes: [9_000, 10_000, 2_000_000][seed.below(3)],
            reduced,
            holders: match reduced {
                true => NpuSet::of(adding().copied()),
                false => holders,
            },
            wanted,
        }
    });
    let demands: Vec<Demand> = demands.collect();
    Collective::custom(npus, demands).ok()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_collective_is_right_or_out_of_reach(
        topology in network(),
        seed in any::<u64>(),
        pieces in 1usize..4,
        unwinding in any_unwinding(),
        latency in any_latency(),
        trials in 1u64..6,
    ) {
        prop_assume!(topology.npu_count() > 1);
        let topology = Arc::new(topology);
        for kind in CollectiveKind::NAMED {
            let collective = collective_on(&topology, kind, seed);
            let case = Case::new(&topology, collective, pieces, unwinding, latency);
            check_all(&case, seed, trials);
        }
        for kind in [CollectiveKind::AllReduce, CollectiveKind::AllGather] {
            let collective = Collective::among_all(kind, &topology, 1 << 20).expect("some");
            let case = Case::new(&topology, collective, pieces, unwinding, latency);
            check_all(&case, seed, trials);
        }
    }

    #[test]
    fn any_demands_are_met_or_out_of_reach(
        topology in network(),
        seed in any::<u64>(),
        pieces in 1usize..4,
        unwinding in any_unwinding(),
        latency in any_latency(),
        trials in 1u64..6,
    ) {
        prop_assume!(topology.npu_count() > 1);
        let topology = Arc::new(topology);
        for i in 0..4 {
            if let Some(collective) = any_demands(&topology, seed.wrapping_add(i)) {
                let case = Case::new(&topology, collective, pieces, unwinding, latency);
                check_all(&case, seed, trials);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_plan(topology in network(), seed in any::<u64>()) {
        prop_assume!(topology.npu_count() > 1);
        let kind = CollectiveKind::NAMED[(seed % 8) as usize];
        let collective = collective_on(&topology, kind, seed);
        let options = SynthesisOptions { seed, trials: 6, ..SynthesisOptions::default() };
        let on = Arc::new(topology);
        let found = || synthesize(&on, &collective, 2, Method::Greedy, &options, &mut Silent);
        match (found(), found()) {
            (Ok(one), Ok(other)) => {
                prop_assert_eq!(one.plan(), other.plan());
                prop_assert_eq!(one.end(), other.end());
                prop_assert_eq!(one.problem().least(), other.problem().least());
            }
            (Err(one), Err(other)) => prop_assert_eq!(one, other),
            _ => prop_assert!(false, "once a plan, once none"),
        }
    }
}

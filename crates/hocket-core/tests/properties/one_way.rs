//! Synthesis where links go one way only: what can be reached through the network is planned, and
//! what cannot is refused with a reason that is true of the network itself, not of edges made of it.

use std::sync::Arc;

use hocket_core::bound::{BoundOptions, bound};
use hocket_core::collective::{Collective, CollectiveKind, Demand, NpuSet};
use hocket_core::id::{DeviceId, NpuId};
use hocket_core::plan::{Plan, PlanError};
use hocket_core::progress::Silent;
use hocket_core::select::{Method, synthesize};
use hocket_core::simulate::{SimulateOptions, simulate};
use hocket_core::synthesis::{Problem, SynthesisOptions, Unwinding, unwindings};
use hocket_core::topology::{LatencyModel, Topology, TopologyBuilder};
use hocket_core::units::{Bandwidth, Seed, Time};
use hocket_core::verify::verify;
use proptest::prelude::*;

use crate::networks::{collective_on, config};

const MEMORY: u64 = 1 << 30;

/// A random network of 2 to 8 NPUs and up to 5 switches, some with limits, most links one way only.
fn network() -> impl Strategy<Value = Topology> {
    any::<u64>().prop_map(|seed| {
        let mut seed = Seed(seed);
        let (npus, switches) = (2 + seed.below(7), seed.below(6));
        let mut builder = TopologyBuilder::new("one way");
        builder.npus(npus);
        for i in 0..switches {
            let limit = (seed.below(4) == 0).then(|| rate(&mut seed));
            builder.switch(format!("switch{i}"), limit);
        }
        let devices = npus + switches;
        let most = [devices / 2, devices, 2 * devices][seed.below(3)];
        let tied = seed.below(3);
        for i in 0..devices + seed.below(most + 1) {
            // The first links leave nobody alone; NPUs hang on switches where there are any.
            let a = if i < devices { i } else { seed.below(devices) };
            let b = match switches > 0 && a < npus && seed.below(4) > 0 {
                true => npus + seed.below(switches),
                false => (a + 1 + seed.below(devices - 1)) % devices,
            };
            let (a, b) = if seed.below(2) == 0 { (a, b) } else { (b, a) };
            link(&mut builder, a, b, &mut seed);
            if seed.below(4) < tied {
                link(&mut builder, b, a, &mut seed);
            }
        }
        builder.finish().expect("a network")
    })
}

fn rate(seed: &mut Seed) -> Bandwidth {
    let gigabytes = [1, 10, 10, 25][seed.below(4)];
    Bandwidth::from_bytes_per_second(gigabytes * 1_000_000_000).expect("positive")
}

fn link(builder: &mut TopologyBuilder, src: usize, dst: usize, seed: &mut Seed) {
    let latency = Time::from_ns([0, 20, 700][seed.below(3)]);
    let rate = rate(seed);
    builder.link(DeviceId::from(src), DeviceId::from(dst), rate, latency);
}

/// Who can send to whom, over links alone: the closure of all devices.
struct Reach(Vec<Vec<bool>>);

impl Reach {
    fn of(topology: &Topology) -> Self {
        let count = topology.device_count();
        let mut reach = vec![vec![false; count]; count];
        (0..count).for_each(|i| reach[i][i] = true);
        for link in topology.links() {
            reach[link.src.index()][link.dst.index()] = true;
        }
        for via in 0..count {
            for from in 0..count {
                for to in 0..count {
                    reach[from][to] |= reach[from][via] && reach[via][to];
                }
            }
        }
        Self(reach)
    }

    fn has(&self, from: NpuId, to: NpuId) -> bool {
        self.0[from.index()][to.index()]
    }

    /// Whether every holder reaches everybody who wants a sum, or some holder whoever wants a copy.
    fn allows(&self, demand: &Demand, among: &[NpuId]) -> bool {
        let holders = demand.holders.members(among);
        let mut wanted = demand.wanted.members(among).iter();
        wanted.all(|&to| match demand.reduced {
            true => holders.iter().all(|&from| self.has(from, to)),
            false => holders.iter().any(|&from| self.has(from, to)),
        })
    }

    /// Whether a sum can be made at one NPU and copied from there.
    fn has_meeting(&self, demand: &Demand, among: &[NpuId], npus: usize) -> bool {
        let holders = demand.holders.members(among);
        let wanted = demand.wanted.members(among);
        (0..npus).map(NpuId::from).any(|site| {
            holders.iter().all(|&from| self.has(from, site))
                && wanted.iter().all(|&to| self.has(site, to))
        })
    }
}

struct Case<'a> {
    topology: &'a Arc<Topology>,
    reach: &'a Reach,
    collective: &'a Collective,
    latency: LatencyModel,
}

impl Case<'_> {
    /// Demands that no plan meets, and those that no plan with one site meets.
    fn impossible(&self) -> (Vec<Demand>, Vec<Demand>) {
        let (among, npus) = (self.collective.npus(), self.topology.npu_count());
        let demands = self.collective.demands();
        let (met, cut): (Vec<_>, _) = demands
            .into_iter()
            .partition(|demand| self.reach.allows(demand, among));
        let scattered = met.into_iter().filter(|demand| {
            demand.reduced
                && demand.holders.members(among).len() > 1
                && !self.reach.has_meeting(demand, among, npus)
        });
        (cut, scattered.collect())
    }

    fn check(&self, what: &str, found: Result<Plan, PlanError>) {
        let (cut, scattered) = self.impossible();
        let what = format!("{what} {}", self.collective.kind());
        match found {
            Ok(plan) => {
                assert!(cut.is_empty(), "{what}: planned what cannot be done");
                assert!(scattered.is_empty(), "{what}: summed nowhere");
                let time = self.simulated(&what, plan);
                let least = bound(
                    self.topology,
                    self.collective,
                    &BoundOptions::default(),
                    &mut Silent,
                )
                .expect("nobody stops it");
                assert!(time >= least.time, "{what}: {time} < {}", least.time);
            }
            Err(PlanError::NotApplicable { why, .. }) => {
                assert!(
                    self.is_true(&why, &cut, &scattered),
                    "{what}: {why}\n{:?}",
                    self.collective.demands()
                );
            }
            Err(other) => panic!("{what}: {other}"),
        }
    }

    /// Whether a refusal says what is so.
    fn is_true(&self, why: &str, cut: &[Demand], scattered: &[Demand]) -> bool {
        let words = why.split([' ', ',', ';']);
        let numbers: Vec<usize> = words.filter_map(|word| word.parse().ok()).collect();
        let named = |set: &NpuSet, npu| {
            let among = set.members(self.collective.npus());
            among.contains(&NpuId::from(npu))
        };
        let has_no_way = |from, to| !self.reach.has(NpuId::from(from), NpuId::from(to));
        match numbers[..] {
            [from, _, to] if why.contains("wants the sum") => cut.iter().any(|demand| {
                named(&demand.holders, from) && named(&demand.wanted, to) && has_no_way(from, to)
            }),
            [to, _, from, ..] if why.contains("no way to it") => cut.iter().any(|demand| {
                named(&demand.wanted, to) && named(&demand.holders, from) && has_no_way(from, to)
            }),
            [_, adding, wanting] if why.contains("is summed at one NPU") => {
                let among = self.collective.npus();
                let sizes = |demand: &Demand| {
                    let holders = demand.holders.members(among);
                    (holders.len(), demand.wanted.members(among).len())
                };
                scattered
                    .iter()
                    .any(|demand| sizes(demand) == (adding, wanting))
            }
            _ => false,
        }
    }

    fn simulated(&self, what: &str, plan: Plan) -> Time {
        let verified = match verify(Arc::new(plan), Arc::clone(self.topology), &mut Silent) {
            Ok(verified) => verified,
            Err(error) => panic!("{what}: {error}"),
        };
        let options = SimulateOptions {
            latency: self.latency,
            ..SimulateOptions::default()
        };
        let run = simulate(&verified, &options, &mut Silent);
        run.expect("it runs").time
    }

    fn check_all(&self, pieces: usize, seed: u64, trials: u64) {
        let mut unwindings = unwindings(self.topology);
        unwindings.push(vec![Unwinding::Degree(2)]);
        for unwinding in unwindings {
            let (topology, latency) = (self.topology, self.latency);
            let problem = Problem::new(
                topology,
                self.collective,
                pieces,
                &unwinding,
                latency,
                MEMORY,
            );
            let problem = problem.expect("it fits");
            let times = problem.greedy(seed, trials, &mut Silent);
            let plan = times.map(|times| {
                let checked = problem.check(&times);
                assert!(checked.is_ok(), "{unwinding:?}: {checked:?}");
                assert!(times.end() >= problem.least(), "{unwinding:?}");
                problem.plan("greedy", &times)
            });
            self.check(&format!("greedy {unwinding:?}"), plan);
            self.check(&format!("blind {unwinding:?}"), problem.blind(seed));
            let apart = problem.greedy_apart(seed, trials, &mut Silent);
            let apart = apart.map(|times| problem.plan("apart", &times));
            self.check(&format!("apart {unwinding:?}"), apart);
        }
        let options = SynthesisOptions {
            latency: self.latency,
            seed,
            trials,
            ..SynthesisOptions::default()
        };
        let found = synthesize(
            self.topology,
            self.collective,
            pieces,
            Method::Greedy,
            &options,
            &mut Silent,
        );
        self.check(
            "synthesize",
            found.map(|found| found.plan().as_ref().clone()),
        );
    }
}

/// Demands of any shape: who adds to a sum need not want it, nor the other way round.
fn any_demands(topology: &Topology, seed: &mut Seed) -> Option<Collective> {
    let npus: Vec<NpuId> = topology.npus().collect();
    let demands = (0..1 + seed.below(3)).map(|_| {
        let mut set = || match seed.below(4) {
            0 => NpuSet::All,
            1 => NpuSet::One(npus[seed.below(npus.len())]),
            _ => NpuSet::of((0..1 + seed.below(3)).map(|_| npus[seed.below(npus.len())])),
        };
        let (holders, wanted) = (set(), set());
        Demand {
            bytes: [9_000, 10_000, 2_000_000][seed.below(3)],
            reduced: seed.below(2) == 0,
            holders,
            wanted,
        }
    });
    let demands: Vec<Demand> = demands.collect();
    Collective::custom(npus, demands).ok()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_can_be_reached_is_planned_and_refusals_are_true(
        topology in network(),
        seed in any::<u64>(),
        pieces in 1usize..3,
        occupying in any::<bool>(),
        trials in 1u64..5,
    ) {
        let latency = match occupying {
            true => LatencyModel::Occupying,
            false => LatencyModel::Overlapped,
        };
        let topology = Arc::new(topology);
        let reach = Reach::of(&topology);
        let mut random = Seed(seed);
        let named = CollectiveKind::NAMED.map(|kind| collective_on(&topology, kind, seed));
        let custom = (0..4).filter_map(|_| any_demands(&topology, &mut random));
        for collective in named.into_iter().chain(custom) {
            let collective = &collective;
            let case = Case { topology: &topology, reach: &reach, collective, latency };
            case.check_all(pieces, seed, trials);
        }
    }
}

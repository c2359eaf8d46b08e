use std::sync::Arc;

use super::{
    ByScheme, ClusterError, ClusterOptions, Decision, FlowOrder, Job, Outage, Outcome, Pattern,
    Phase, Port, Reroute, Rounds, simulate,
};
use crate::algorithms::{Algorithm, PlanOptions, plan};
use crate::collective::{Collective, CollectiveKind};
use crate::id::{DeviceId, LinkId, NpuId, narrow};
use crate::progress::Silent;
use crate::routing::controller::{self, Command, Controller, Log, Policy, Reason, replay};
use crate::routing::{Annealing, Fabric, Scheme};
use crate::topology::Topology;
use crate::topology::build::{self, Clos, RingWays};
use crate::units::{Bandwidth, Seed, Time};

/// A ring all-reduce of `bytes` among so many ranks.
fn ring(ranks: u32, bytes: u64, rounds: Rounds) -> Arc<Pattern> {
    let rate = Bandwidth::from_bytes_per_second(1).unwrap();
    let topology = build::ring(ranks, rate, Time::ZERO, RingWays::One).unwrap();
    let collective = Collective::among_all(CollectiveKind::AllReduce, &topology, bytes).unwrap();
    let options = PlanOptions::new(Algorithm::Ring);
    let plan = plan(&Arc::new(topology), &collective, &options, &mut Silent).unwrap();
    Arc::new(Pattern::new(Arc::new(plan), rounds))
}

/// 12.5 GB/s everywhere.
fn clos(spines: u32, tors: u32, nics: u32, latency: Time) -> Topology {
    let rate = Bandwidth::from_bytes_per_second(12_500_000_000).unwrap();
    Clos {
        spines,
        tors,
        hosts_per_tor: nics,
        host_bandwidth: rate,
        bandwidth: rate,
        latency,
    }
    .build()
    .unwrap()
}

/// A group whose ranks are these NICs, each with a host to itself.
fn group(nics: &[u32]) -> Vec<Port> {
    let port = |&nic: &u32| Port {
        nic: NpuId(nic),
        host: nic,
    };
    nics.iter().map(port).collect()
}

fn job(arrival: Time, compute: &[u64], pattern: &Arc<Pattern>, groups: Vec<Vec<Port>>) -> Job {
    Job {
        name: "job".to_owned(),
        arrival,
        compute: compute.iter().map(|&ns| Time::from_ns(ns)).collect(),
        phase: Some(Phase {
            pattern: pattern.clone(),
            groups,
        }),
    }
}

fn run(topology: &Topology, jobs: &[Job], scheme: Scheme, options: &ClusterOptions) -> Outcome {
    try_run(topology, jobs, scheme, options).unwrap()
}

fn try_run(
    topology: &Topology,
    jobs: &[Job],
    scheme: Scheme,
    options: &ClusterOptions,
) -> Result<Outcome, ClusterError> {
    let fabric = Fabric::new(topology).unwrap();
    let mut router = ByScheme {
        scheme,
        seed: Seed(1),
        order: FlowOrder::Job,
    };
    simulate(topology, &fabric, jobs, &mut router, options, &mut Silent)
}

const MEGABYTE_PS: u64 = 80_000_000;

#[test]
fn a_job_alone_takes_its_closed_form() {
    let latency = Time::from_ns(500);
    let topology = clos(4, 4, 4, latency);
    for rounds in [Rounds::Data, Rounds::LockStep] {
        for ranks in [2, 4] {
            let pattern = ring(ranks, u64::from(ranks) * 1_000_000, rounds);
            let nics = |lane: u32| (0..ranks).map(|tor| 4 * tor + lane).collect::<Vec<u32>>();
            let groups = (0..4).map(|lane| group(&nics(lane))).collect();
            let job = job(Time::from_ns(7), &[1000, 2000], &pattern, groups);
            let outcome = run(
                &topology,
                &[job],
                Scheme::EdgeColoring,
                &ClusterOptions::default(),
            );
            // Up to the ToR, to the spine, down to the other ToR, down to the NIC.
            let step = MEGABYTE_PS + 4 * latency.as_ps();
            let all_reduce = u64::from(2 * (ranks - 1)) * step;
            let [first, second] = outcome.iterations[..] else {
                panic!("two iterations");
            };
            assert_eq!(first.start, Time::from_ns(1007));
            assert_eq!(first.end.saturating_sub(first.start).as_ps(), all_reduce);
            assert_eq!(second.compute_start, first.end);
            assert_eq!(second.start, first.end + Time::from_ns(2000));
            assert_eq!(outcome.time, second.start + Time::from_ps(all_reduce));
            let flows = u64::from(4 * ranks * 2 * (ranks - 1));
            assert_eq!(first.flows, flows);
            assert_eq!(first.completion_ps, u128::from(flows * step));
            assert_eq!(first.slowest.as_ps(), step);
        }
    }
}

#[test]
fn flows_that_share_a_link_take_twice_as_long_and_their_round_with_them() {
    // Two of the three flows out of ToR 0 share one of its two uplinks; so do those back.
    let topology = clos(2, 2, 3, Time::ZERO);
    let pattern = ring(2, 2_000_000, Rounds::LockStep);
    let groups = (0..3).map(|lane| group(&[lane, 3 + lane])).collect();
    let job = job(Time::ZERO, &[0], &pattern, groups);
    for scheme in [Scheme::Greedy, Scheme::EdgeColoring] {
        let outcome = run(
            &topology,
            std::slice::from_ref(&job),
            scheme,
            &ClusterOptions::default(),
        );
        assert_eq!(outcome.time.as_ps(), 2 * 2 * MEGABYTE_PS);
        let Decision {
            max_link_load,
            load_bound,
            flows,
            ..
        } = outcome.decisions[0];
        assert_eq!((max_link_load, load_bound.load, flows), (2, 2, 6));
    }
}

#[test]
fn what_needs_no_spine_or_no_nic_takes_none() {
    let topology = clos(1, 2, 4, Time::ZERO);
    let pattern = ring(2, 2_000_000, Rounds::Data);
    let below_one_tor = job(Time::ZERO, &[0], &pattern, vec![group(&[0, 1])]);
    let mut in_one_host = group(&[2, 3]);
    in_one_host[1].host = in_one_host[0].host;
    let in_one_host = job(Time::ZERO, &[0], &pattern, vec![in_one_host]);
    let jobs = [below_one_tor, in_one_host];
    let outcome = run(&topology, &jobs, Scheme::Greedy, &ClusterOptions::default());
    let ends: Vec<_> = outcome.iterations.iter().map(|i| (i.job, i.end)).collect();
    // 1 MB at 300 GB/s is 3 1/3 us, twice.
    assert_eq!(ends[0], (1, Time::from_ps(2 * 3_333_334)));
    assert_eq!(ends[1], (0, Time::from_ps(2 * MEGABYTE_PS)));
    assert_eq!(outcome.iterations[0].flows, 0);
    let fabric_links = &outcome.link_bytes[16..];
    assert!(fabric_links.iter().all(|&bytes| bytes == 0));
    assert_eq!(outcome.link_bytes.iter().sum::<u64>(), 4 * 2_000_000);
}

#[test]
fn bytes_are_conserved_while_flows_move() {
    let topology = clos(3, 6, 4, Time::from_ns(300));
    let mut seed = Seed(5);
    let mut moves = 0;
    for round in 0..20 {
        let mut nics: Vec<u32> = (0..24).collect();
        for i in (1..nics.len()).rev() {
            nics.swap(i, seed.below(i + 1));
        }
        let mut sent = vec![0; topology.links().len()];
        let jobs: Vec<Job> = [4u32, 3, 5]
            .into_iter()
            .map(|ranks| {
                let pattern = ring(ranks, 1_000_003 + seed.below(999) as u64, Rounds::Data);
                let nics: Vec<u32> = nics.drain(..2 * ranks as usize).collect();
                let groups: Vec<_> = nics.chunks(ranks as usize).map(group).collect();
                let compute = [seed.below(90_000) as u64, seed.below(90_000) as u64];
                for ports in &groups {
                    let bytes = pattern.bytes_by_channel();
                    for (&(src, dst), bytes) in pattern.channels().iter().zip(bytes) {
                        let [from, to] = [src, dst].map(|rank| ports[rank as usize].nic);
                        sent[2 * from.index()] += 2 * bytes;
                        sent[2 * to.index() + 1] += 2 * bytes;
                    }
                }
                job(Time::ZERO, &compute, &pattern, groups)
            })
            .collect();
        for reroute in [Reroute::Always, Reroute::AtStart, Reroute::Never] {
            let options = ClusterOptions {
                reroute,
                ..ClusterOptions::default()
            };
            let outcome = run(
                &topology,
                &jobs,
                Scheme::Annealing(Annealing { steps: None }),
                &options,
            );
            assert_eq!(outcome.link_bytes[..48], sent[..48], "round {round}");
            // What goes up to a spine comes down from it.
            let to_spines: u64 = outcome.link_bytes[48..].iter().step_by(2).sum();
            let from_spines: u64 = outcome.link_bytes[49..].iter().step_by(2).sum();
            assert_eq!(to_spines, from_spines);
            let moved: u32 = outcome
                .decisions
                .iter()
                .map(|decision| decision.moved)
                .sum();
            assert!(moved == 0 || reroute == Reroute::Always);
            moves += moved;
        }
    }
    assert!(moves > 100, "{moves}");
}

#[test]
fn what_is_foreseen_costs_no_time() {
    let topology = clos(4, 4, 4, Time::ZERO);
    let pattern = ring(4, 4_000_000, Rounds::Data);
    let rows = |lane: u32| group(&[lane, 4 + lane, 8 + lane, 12 + lane]);
    let jobs: Vec<Job> = [0, 100_000]
        .into_iter()
        .enumerate()
        .map(|(lane, arrival)| {
            let arrival = Time::from_ns(arrival);
            job(arrival, &[1_000_000; 5], &pattern, vec![rows(narrow(lane))])
        })
        .collect();
    let options = |look_ahead, answer| ClusterOptions {
        look_ahead,
        answer: Time::from_ns(answer),
        ..ClusterOptions::default()
    };
    let phase = 6 * MEGABYTE_PS;
    let free = run(&topology, &jobs, Scheme::Greedy, &options(0, 0));
    assert!(free.decisions.iter().all(|decision| !decision.foreseen));
    let late = run(&topology, &jobs, Scheme::Greedy, &options(0, 10_000));
    let early = run(&topology, &jobs, Scheme::Greedy, &options(3, 10_000));
    let all_reduce = |outcome: &Outcome| {
        let times = outcome
            .iterations
            .iter()
            .map(|i| i.end.saturating_sub(i.start).as_ps());
        times.collect::<Vec<u64>>()
    };
    assert!(all_reduce(&free).iter().all(|&time| time == phase));
    assert!(
        all_reduce(&late)
            .iter()
            .all(|&time| time == phase + 10_000_000)
    );
    // Of the first time that a job communicates nobody knows before.
    let hits: Vec<bool> = early
        .decisions
        .iter()
        .map(|decision| decision.foreseen)
        .collect();
    assert!(!hits[0] && hits.iter().skip(2).all(|&hit| hit), "{hits:?}");
    let waits = all_reduce(&early)
        .iter()
        .filter(|&&time| time > phase)
        .count();
    assert_eq!(waits, 2);
    assert!(early.computed_ahead > 0);
}

#[test]
fn sprayed_flows_share_all_uplinks_alike() {
    // Three flows over two uplinks: two thirds of a link each.
    let topology = clos(2, 2, 3, Time::ZERO);
    let pattern = ring(2, 2_000_000, Rounds::LockStep);
    let groups = (0..3).map(|lane| group(&[lane, 3 + lane])).collect();
    let job = job(Time::ZERO, &[0], &pattern, groups);
    let options = ClusterOptions {
        reroute: Reroute::Spray,
        ..ClusterOptions::default()
    };
    let jobs = std::slice::from_ref(&job);
    let outcome = run(&topology, jobs, Scheme::Greedy, &options);
    let time = outcome.time.as_ps();
    assert!(time.abs_diff(2 * MEGABYTE_PS * 3 / 2) <= 2, "{time}");
    assert!(outcome.decisions.is_empty());
    // Every link between switches has half of what its ToR sends.
    assert!(
        outcome.link_bytes[12..]
            .iter()
            .all(|&bytes| bytes == 3_000_000)
    );
}

#[test]
fn hosts_that_keep_to_their_share_leave_what_others_do_not_use() {
    let topology = clos(1, 3, 2, Time::ZERO);
    let pattern = ring(3, 3_000_000, Rounds::Data);
    let groups = [group(&[0, 2, 4]), group(&[1, 3, 5])];
    let jobs = [
        job(Time::ZERO, &[0], &pattern, groups[..1].to_vec()),
        job(
            Time::from_ns(50),
            &[0],
            &ring(3, 900_000, Rounds::Data),
            groups[1..].to_vec(),
        ),
    ];
    let time = |slack| {
        let options = ClusterOptions {
            rate_slack_ppm: slack,
            reroute: Reroute::AtStart,
            ..ClusterOptions::default()
        };
        run(&topology, &jobs, Scheme::Greedy, &options).time.as_ps()
    };
    // 50 ns alone, then half of every link until the small job's six tenths of a megabyte are there;
    // at AtStart nobody tells the hosts that it has ended.
    let (free, held, loose) = (time(None), time(Some(0)), time(Some(1_000_000)));
    let total = 4 * MEGABYTE_PS;
    assert_eq!(free, total + 4 * 3 * MEGABYTE_PS / 10);
    assert_eq!(held, 50_000 + 2 * (total - 50_000));
    assert_eq!(loose, free);
}

#[test]
fn hosts_are_told_their_new_share_after_a_repair() {
    let topology = clos(2, 4, 3, Time::ZERO);
    let (long, short) = (
        ring(2, 20_000_000, Rounds::Data),
        ring(2, 2_000_000, Rounds::Data),
    );
    let far = vec![group(&[0, 3]), group(&[1, 6])];
    let jobs = [
        job(Time::ZERO, &[0], &long, far),
        job(Time::ZERO, &[0], &short, vec![group(&[2, 9])]),
    ];
    let spine = around(&topology, "spine0");
    let mut links = around(&topology, "tor1");
    links.retain(|link| spine.contains(link));
    let time = Time::from_ns(40_000);
    let options = ClusterOptions {
        failover: true,
        rate_slack_ppm: Some(0),
        outages: vec![Outage { time, links }],
        ..ClusterOptions::default()
    };
    let outcome = run(&topology, &jobs, Scheme::Greedy, &options);
    // The short job shares its uplink with one to ToR 1 until that one has to leave spine 0.
    let end = outcome.iterations[0].end.as_ps();
    assert_eq!(end, 2 * MEGABYTE_PS + time.as_ps() / 2);
}

/// All links of a device.
fn around(topology: &Topology, device: &str) -> Vec<LinkId> {
    let named = |id: DeviceId| topology.device(id).name == device;
    let links = (0..).map(LinkId).zip(topology.links());
    let links = links.filter(|(_, link)| named(link.src) || named(link.dst));
    links.map(|(id, _)| id).collect()
}

#[test]
fn flows_leave_what_fails() {
    let topology = clos(3, 2, 2, Time::ZERO);
    let pattern = ring(2, 2_000_000, Rounds::Data);
    let groups = vec![group(&[0, 2]), group(&[1, 3])];
    let jobs = [job(Time::ZERO, &[0, 0], &pattern, groups)];
    let outage = |ns, device: &str| Outage {
        time: Time::from_ns(ns),
        links: around(&topology, device),
    };
    let options = |answer, failover, reroute| ClusterOptions {
        answer: Time::from_ns(answer),
        failover,
        reroute,
        outages: vec![outage(40_000, "spine1"), outage(10_000_000_000, "spine0")],
        ..ClusterOptions::default()
    };
    let phase = 2 * MEGABYTE_PS;
    // An answer is waited for at the start, and after the failure; not at the second iteration, which
    // follows at once. Switches that choose by themselves wait for none.
    for (answer, failover, reroute, late) in [
        (0, false, Reroute::Always, 0),
        (0, true, Reroute::Always, 0),
        (20_000, false, Reroute::Always, 40_000_000),
        (20_000, true, Reroute::Always, 20_000_000),
        (20_000, false, Reroute::AtStart, 0),
        (0, false, Reroute::Spray, 0),
    ] {
        let options = options(answer, failover, reroute);
        let outcome = run(&topology, &jobs, Scheme::Greedy, &options);
        let name = format!("{answer} ns, {failover}, {reroute:?}");
        assert_eq!(outcome.time.as_ps(), 2 * phase + late, "{name}");
        let repairs = outcome
            .decisions
            .iter()
            .filter(|decision| decision.is_repair);
        let foreseen = repairs.map(|repair| repair.foreseen).collect::<Vec<bool>>();
        let is_routed = reroute != Reroute::Spray;
        assert_eq!(foreseen, vec![failover; usize::from(is_routed)], "{name}");
        assert_eq!(outcome.computed_ahead > 0, failover);
    }
}

#[test]
fn what_cannot_be_survived_is_said() {
    let topology = clos(2, 2, 2, Time::ZERO);
    let pattern = ring(2, 2_000_000, Rounds::Data);
    let jobs = [job(
        Time::ZERO,
        &[0],
        &pattern,
        vec![group(&[0, 2]), group(&[1, 3])],
    )];
    let error = |devices: &[&str], reroute| {
        let outages = devices.iter().map(|device| Outage {
            time: Time::from_ns(1000),
            links: around(&topology, device),
        });
        let options = ClusterOptions {
            outages: outages.collect(),
            reroute,
            ..ClusterOptions::default()
        };
        try_run(&topology, &jobs, Scheme::Greedy, &options)
            .unwrap_err()
            .to_string()
    };
    for reroute in [
        Reroute::Always,
        Reroute::AtStart,
        Reroute::Never,
        Reroute::Spray,
    ] {
        assert_eq!(
            error(&["spine0", "spine1"], reroute),
            "job 'job': no path is left from ToR 0 to ToR 1, from ToR 1 to ToR 0, for 4 of its flows; keep a \
             spine that both ToRs reach, or place it elsewhere"
        );
        // Before anything has a path as well.
        let lost = error(&["npu3"], reroute);
        assert!(
            lost.starts_with("job 'job': loses the link of npu3 at 1 us"),
            "{lost}"
        );
    }
}

#[test]
fn the_controller_of_a_cluster_says_the_same_to_the_same_events() {
    let topology = clos(4, 6, 4, Time::from_ns(300));
    let fabric = Fabric::new(&topology).unwrap();
    let mut seed = Seed(11);
    for round in 0..12u32 {
        let mut nics: Vec<u32> = (0..24).collect();
        for i in (1..nics.len()).rev() {
            nics.swap(i, seed.below(i + 1));
        }
        let jobs: Vec<Job> = [4u32, 3, 5]
            .into_iter()
            .map(|ranks| {
                let pattern = ring(ranks, 1_000_003, Rounds::Data);
                let nics: Vec<u32> = nics.drain(..2 * ranks as usize).collect();
                let groups: Vec<_> = nics.chunks(ranks as usize).map(group).collect();
                let compute = [seed.below(90_000) as u64; 4];
                job(Time::ZERO, &compute, &pattern, groups)
            })
            .collect();
        let steady = controller::Options {
            policy: [Policy::Greedy, Policy::Balanced][round as usize % 2],
            look_ahead: round % 3,
            failover: round % 4 > 1,
            ..controller::Options::default()
        };
        let mut links = Vec::new();
        assert!(fabric.route(0, 1, 2, &mut links));
        let options = ClusterOptions {
            reroute: Reroute::Steady(steady),
            answer: Time::from_ns(u64::from(round % 2) * 10_000),
            outages: vec![Outage {
                time: Time::from_ns(150_000),
                links,
            }],
            ..ClusterOptions::default()
        };
        let outcome = run(&topology, &jobs, Scheme::Greedy, &options);
        assert_eq!(outcome.iterations.len(), 12);
        let record = outcome.record.unwrap();
        let log = Log::decode(&record.log.encode()).unwrap();
        for _ in 0..2 {
            let mut again = Controller::new(fabric.clone(), steady);
            assert_eq!(replay(&mut again, &log), record.commands);
        }
        let said = |is_wanted: fn(&Reason) -> bool| {
            let all = record.commands.iter().flatten();
            let reasons = all.filter_map(|command| match command {
                Command::Path { reason, .. } => Some(*reason),
                _ => None,
            });
            reasons.filter(is_wanted).count()
        };
        assert!(said(|reason| *reason == Reason::New) > 0);
        let is_failure = |reason: &Reason| matches!(reason, Reason::Failure | Reason::Failover);
        assert!(said(is_failure) <= 2 * jobs.len() * 10);
        if steady.look_ahead > 0 {
            assert!(said(|reason| *reason == Reason::Foreseen) > 0);
            assert!(outcome.decisions.iter().any(|decision| decision.foreseen));
        }
    }
}

#[test]
fn a_steady_controller_moves_less_than_one_that_decides_anew() {
    let topology = clos(4, 8, 4, Time::ZERO);
    let mut seed = Seed(3);
    let (mut steady_moves, mut anew_moves) = (0, 0);
    for _ in 0..6 {
        let mut nics: Vec<u32> = (0..32).collect();
        for i in (1..nics.len()).rev() {
            nics.swap(i, seed.below(i + 1));
        }
        let jobs: Vec<Job> = nics
            .chunks(8)
            .map(|nics| {
                let pattern = ring(8, 8_000_000, Rounds::Data);
                let compute = [0; 3].map(|_| seed.below(900_000) as u64);
                job(Time::ZERO, &compute, &pattern, vec![group(nics)])
            })
            .collect();
        let moves = |reroute, scheme| {
            let options = ClusterOptions {
                reroute,
                ..ClusterOptions::default()
            };
            let outcome = run(&topology, &jobs, scheme, &options);
            let decisions = outcome.decisions.iter();
            // Every NIC sends one flow and receives one: a link for each is enough.
            assert!(
                decisions
                    .clone()
                    .all(|decision| decision.max_link_load == 1)
            );
            decisions
                .map(|decision| u64::from(decision.moved))
                .sum::<u64>()
        };
        let steady = controller::Options {
            most_moves: u32::MAX,
            ..controller::Options::default()
        };
        steady_moves += moves(Reroute::Steady(steady), Scheme::Greedy);
        anew_moves += moves(Reroute::Always, Scheme::EdgeColoring);
    }
    assert!(5 * steady_moves < anew_moves, "{steady_moves} {anew_moves}");
}

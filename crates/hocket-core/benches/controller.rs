//! The routing controller: what an event takes, how many flows move when a job arrives, and what a
//! failed spine takes. Prints figures rather than comparing them, since percentiles are asked for.

mod common;

use std::time::{Duration, Instant};

use hocket_core::id::{NpuId, fit, narrow};
use hocket_core::routing::Fabric;
use hocket_core::routing::controller::{
    AnnouncedFlow, Command, Controller, Event, FlowId, JobId, Options, Policy,
};
use hocket_core::topology::build::Clos;
use hocket_core::units::{Seed, Time};

fn fabric(spines: u32, tors: u32, hosts: u32) -> Fabric {
    let parameters = Clos {
        spines,
        tors,
        hosts_per_tor: hosts,
        host_bandwidth: common::gigabytes(12),
        bandwidth: common::gigabytes(12),
        latency: Time::from_ns(500),
    };
    Fabric::new(&parameters.build().expect("a Clos")).expect("a Clos")
}

fn announced(id: u64, job: u32, src: u32, dst: u32) -> AnnouncedFlow {
    AnnouncedFlow {
        id: FlowId(id),
        job: JobId(job),
        src: NpuId(src),
        dst: NpuId(dst),
        bytes: 1 << 30,
        held: None,
        is_fixed: false,
    }
}

/// A flow between two ToRs, drawn.
fn drawn(id: u64, tors: u32, hosts: u32, seed: &mut Seed) -> AnnouncedFlow {
    let src = narrow(seed.below(tors as usize));
    let dst = (src + 1 + narrow(seed.below(tors as usize - 1))) % tors;
    let mut nic = |tor: u32| tor * hosts + narrow(seed.below(hosts as usize));
    let (src, dst) = (nic(src), nic(dst));
    announced(id, 0, src, dst)
}

fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    let at = (times.len() * percent / 100).min(times.len() - 1);
    times[at].as_secs_f64() * 1e6
}

/// Load after load: one flow ends, one starts, as two events timed together.
fn steps(spines: u32, tors: u32, live_flows: u64, policy: Policy, slack: u16) {
    const STEPS: u64 = 200_000;
    let hosts = 32;
    let options = Options {
        policy,
        slack,
        ..Options::default()
    };
    let mut controller = Controller::new(fabric(spines, tors, hosts), options);
    let mut seed = Seed(1);
    let first: Vec<_> = (0..live_flows)
        .map(|id| drawn(id, tors, hosts, &mut seed))
        .collect();
    let begun = Instant::now();
    controller.handle(Time::ZERO, &Event::FlowsStart(first));
    let loaded = begun.elapsed();
    let mut live: Vec<u64> = (0..live_flows).collect();
    let before = controller.tally().total_moves();
    let mut times = Vec::with_capacity(fit(STEPS));
    for next in live_flows..live_flows + STEPS {
        let place = seed.below(live.len());
        let end = Event::FlowsEnd(vec![FlowId(live[place])]);
        let start = Event::FlowsStart(vec![drawn(next, tors, hosts, &mut seed)]);
        live[place] = next;
        let begun = Instant::now();
        controller.handle(Time::ZERO, &end);
        controller.handle(Time::ZERO, &start);
        times.push(begun.elapsed());
    }
    let moves = controller.tally().total_moves() - before;
    println!(
        "{spines}x{tors}, {live_flows} flows, {policy:?}, slack {slack}: loaded in {:.1} ms; a flow for another p50 {:.2} us, \
         p99 {:.2} us; {:.4} moves each, {} flows above shares",
        loaded.as_secs_f64() * 1e3,
        percentile(&mut times, 50),
        percentile(&mut times, 99),
        moves as f64 / STEPS as f64,
        controller.excess(),
    );
    fail(&mut controller, tors);
}

/// Each of some spines fails and returns.
fn fail(controller: &mut Controller, tors: u32) {
    const SPINES: u32 = 16;
    let mut times = Vec::new();
    let mut moved = 0;
    for spine in 0..SPINES {
        let mut links = Vec::new();
        for tor in 0..tors {
            let next = (tor + 1) % tors;
            controller.fabric().route(tor, next, spine, &mut links);
        }
        let event = Event::LinksFail(links.clone());
        let begun = Instant::now();
        moved += controller.handle(Time::ZERO, &event).len();
        times.push(begun.elapsed());
        controller.handle(Time::ZERO, &Event::LinksReturn(links));
    }
    println!(
        "    a spine fails: {} flows take other paths in {:.2} ms (best of {SPINES} {:.2})",
        narrow(moved) / SPINES,
        percentile(&mut times, 50) / 1e3,
        percentile(&mut times, 0) / 1e3,
    );
}

/// Ring jobs on random free hosts, one replaced by another while `full` per cent of the hosts are taken.
fn jobs(spines: u32, tors: u32, ranks: usize, full: usize, options: Options) {
    const ARRIVALS: u32 = 60;
    let hosts = spines;
    let mut controller = Controller::new(fabric(spines, tors, hosts), options);
    let mut seed = Seed(2);
    let mut free: Vec<u32> = (0..tors * hosts).collect();
    let count = free.len() * full / 100 / ranks;
    let mut running: Vec<(u32, Vec<u32>)> = Vec::new();
    let (mut times, mut moved, mut live, mut over) = (Vec::new(), 0, 0, 0);
    for job in 0..narrow(count) + ARRIVALS {
        if running.len() == count {
            let (gone, nics) = running.swap_remove(seed.below(count));
            controller.handle(Time::ZERO, &Event::JobGoes(JobId(gone)));
            free.extend(nics);
        }
        let nics: Vec<u32> = (0..ranks)
            .map(|_| free.swap_remove(seed.below(free.len())))
            .collect();
        let next = |i: usize| nics[(i + 1) % ranks];
        let flows =
            (0..ranks).map(|i| announced(u64::from(job) << 32 | i as u64, job, nics[i], next(i)));
        let event = Event::FlowsStart(flows.collect());
        running.push((job, nics.clone()));
        let before = controller.tally().total_moves();
        let begun = Instant::now();
        let commands: Vec<Command> = controller.handle(Time::ZERO, &event);
        if job >= narrow(count) {
            times.push(begun.elapsed());
            assert!(!commands.is_empty());
            moved += controller.tally().total_moves() - before;
            live += controller.flow_count() as u64;
            over += controller.excess();
        }
    }
    let each = |sum: u64| sum as f64 / f64::from(ARRIVALS);
    println!(
        "{spines}x{tors}, {ranks}-host jobs, {full} % full, {:?}, most moves {}: {:.1} of {:.0} flows move \
         ({:.2} %), {:.1} above shares, p50 {:.0} us",
        options.policy,
        options.most_moves,
        each(moved),
        each(live),
        100.0 * moved as f64 / live as f64,
        each(over),
        percentile(&mut times, 50),
    );
}

/// Of `steps`, `large` and `jobs` those that are named, or all.
fn main() {
    let named = |part: &str| {
        let mut parts = std::env::args()
            .skip(1)
            .filter(|arg| !arg.starts_with('-'))
            .peekable();
        parts.peek().is_none() || parts.any(|named| named == part)
    };
    let sizes = [
        ("steps", 32, 64, 100_000),
        ("steps", 64, 512, 100_000),
        // 100,000 hosts with eight flows each.
        ("large", 64, 3_125, 800_000),
    ];
    for (_, spines, tors, live) in sizes.into_iter().filter(|size| named(size.0)) {
        steps(spines, tors, live, Policy::Greedy, 0);
        steps(spines, tors, live, Policy::Balanced, 0);
        steps(spines, tors, live, Policy::Balanced, 1);
    }
    let sizes = [(32, 64, 128), (64, 512, 512)].into_iter();
    for (spines, tors, ranks) in sizes.filter(|_| named("jobs")) {
        for full in [90, 100] {
            for (policy, most_moves) in [
                (Policy::Greedy, 8),
                (Policy::Balanced, 2),
                (Policy::Balanced, 8),
                (Policy::Balanced, u32::MAX),
            ] {
                let options = Options {
                    policy,
                    most_moves,
                    ..Options::default()
                };
                jobs(spines, tors, ranks, full, options);
            }
        }
    }
}

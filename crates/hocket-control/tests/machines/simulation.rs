//! Runs of both sides under faults, by seed.
//!
//! `HOCKET_FAULT_SEEDS=100000` runs as many, `HOCKET_FAULT_FROM` begins with another than 0.

use std::collections::{BTreeMap, BTreeSet};

use hocket_control::agent::Agent;
use hocket_control::directory::HostId;
use hocket_control::message::FlowName;
use hocket_control::server::Server;
use hocket_control::stages::Stages;

use super::disk::Random;
use super::faults::{self, BUSY, Fault, HOSTS};
use super::site::{BEAT, address, links, stages};
use super::world::World;

/// After two beats without faults everything is as both sides say it is.
fn run(seed: u64, faults: &[Fault], tally: &mut BTreeMap<&'static str, u64>) -> Result<(), String> {
    let last = faults.iter().map(|fault| fault.to).max().unwrap_or(0);
    let mut world = World::new(seed, faults.to_vec());
    let end = last.max(BUSY) + 2 * BEAT.as_millis() as u64;
    let outcome = world.run(end).and_then(|()| converged(&world));
    for (what, count) in &world.checks.tally {
        *tally.entry(what).or_default() += count;
    }
    outcome
}

fn tor(host: u32) -> u32 {
    host / 2
}

/// Both sides have the same flows, jobs and paths.
fn converged(world: &World) -> Result<(), String> {
    let holder = world.holder.ok_or("no server is active")?;
    let server = &world.servers[holder as usize].server;
    let server = server.as_ref().ok_or("the holder is not active")?;
    if !server.is_synced() {
        return Err("the controller has not recovered".to_owned());
    }
    if server.has_failed().contains(&true) {
        return Err("a link that works has failed for the controller".to_owned());
    }
    let mut stages = stages();
    let mut live = 0;
    let mut jobs = BTreeSet::new();
    for (host, row) in (0..).zip(&world.hosts) {
        let agent = row.agent.as_ref().ok_or("a host is down")?;
        if !agent.is_up() || agent.epoch() != server.epoch() {
            return Err(format!("host {host} is not with the controller"));
        }
        live += own(host, agent, server, &mut stages)?;
        live += patterns(host, agent, server)?;
        jobs.extend(
            agent
                .jobs()
                .map(|(job, is_live)| (job, HostId(host), is_live)),
        );
    }
    let theirs = server
        .jobs()
        .map(|(job, leader, _, is_live)| (job, leader, is_live));
    if theirs.collect::<BTreeSet<_>>() != jobs {
        return Err(format!("jobs are {jobs:?}, and not so for the controller"));
    }
    match server.policy().flow_count() {
        count if count == live => Ok(()),
        count => Err(format!("the policy has {count} flows, hosts have {live}")),
    }
}

/// How many live flows a host announced that are between ToRs; both sides have the same ones, with the same paths.
fn own(host: u32, agent: &Agent, server: &Server, stages: &mut Stages) -> Result<usize, String> {
    let mut live = 0;
    let theirs: BTreeMap<u64, _> = server
        .flows()
        .filter(|(of, ..)| *of == HostId(host))
        .map(|(_, said, told)| (said.id, (said, told)))
        .collect();
    let mut count = 0;
    for (id, name, opened) in agent.flows() {
        let given = agent.given(id);
        let choice = given.map(|path| path.choice);
        if agent.path(id).is_some_and(|path| Some(path) != given) {
            return Err(format!("host {host} uses for {id} what it was not given"));
        }
        let Some(name @ FlowName::Own(_)) = name else {
            continue;
        };
        count += 1;
        let Some((said, told)) = theirs.get(&id) else {
            if theirs.len() == server.options().most_host_flows {
                // It is tried again and again.
                count -= 1;
                continue;
            }
            return Err(format!("the controller does not have {id} of host {host}"));
        };
        if (said.opened.job, said.opened.src, said.opened.dst)
            != (opened.job, opened.src, opened.dst)
        {
            return Err(format!("{id} of host {host} is another flow"));
        }
        let policy = server.policy().choice(server.id(HostId(host), name));
        if *told != choice || policy != choice {
            return Err(format!(
                "{id} of host {host} has {choice:?}, told {told:?}, {policy:?}"
            ));
        }
        let dst = (0..HOSTS)
            .find(|&dst| address(dst) == said.opened.dst)
            .unwrap_or(host);
        if tor(dst) != tor(host) {
            live += 1;
            let path = choice.and_then(|choice| stages.path(tor(host), tor(dst), choice));
            if path.as_ref() != given {
                return Err(format!(
                    "{id} of host {host} is led by {given:?}, not {path:?}"
                ));
            }
        }
    }
    if count != theirs.len() {
        return Err(format!(
            "the controller has {} flows of host {host}, which has {count}",
            theirs.len()
        ));
    }
    Ok(live)
}

/// How many live flows of patterns a host has, which are those that the policy has.
fn patterns(host: u32, agent: &Agent, server: &Server) -> Result<usize, String> {
    let ours: BTreeMap<(u32, u32), Option<u32>> = agent
        .patterns()
        .map(|(key, path)| (key, path.map(|path| path.choice)))
        .collect();
    let mut theirs = BTreeMap::new();
    for (job, _, count, is_live) in server.jobs() {
        for index in (0..count as u32).filter(|&index| is_live && index == host) {
            let dst = (index + job) % HOSTS;
            if tor(dst) != tor(host) {
                let id = server.id(HostId(host), FlowName::Pattern { job, index });
                theirs.insert((job, index), server.policy().choice(id));
            }
        }
    }
    match ours == theirs {
        true => Ok(ours.len()),
        false => Err(format!(
            "patterns of host {host} are {ours:?}, and {theirs:?} for the controller"
        )),
    }
}

/// The fewest of these faults that still fail.
fn shrink(seed: u64, mut faults: Vec<Fault>) -> (Vec<Fault>, String) {
    let mut why = String::new();
    let mut at = 0;
    while at < faults.len() {
        let mut fewer = faults.clone();
        fewer.remove(at);
        match run(seed, &fewer, &mut BTreeMap::new()) {
            Ok(()) => at += 1,
            Err(found) => (faults, why, at) = (fewer, found, 0),
        }
    }
    (faults, why)
}

fn number(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn faults_break_no_promise() {
    let links = links(&stages());
    let mut tally = BTreeMap::new();
    let from = number("HOCKET_FAULT_FROM", 0);
    for seed in from..from + number("HOCKET_FAULT_SEEDS", 1_000) {
        let faults = faults::draw(&mut Random(seed), &links);
        if let Err(why) = run(seed, &faults, &mut tally) {
            let (fewer, then) = shrink(seed, faults);
            panic!("seed {seed}: {why}\nwith fewer faults: {then}\n{fewer:#?}");
        }
    }
    println!("{tally:?}");
    for what in [
        "elections",
        "hellos",
        "starts",
        "ends",
        "iterations",
        "link reports",
        "jobs taken",
        "fixed and failed",
        "hosts lost",
        "refusals",
        "answers to operators",
    ] {
        assert!(tally.contains_key(what), "{what} never happened");
    }
}

#[test]
fn a_seed_gives_the_same_run() {
    let links = links(&stages());
    let faults = faults::draw(&mut Random(7), &links);
    let once = || {
        let mut tally = BTreeMap::new();
        run(7, &faults, &mut tally).unwrap();
        tally
    };
    assert_eq!(once(), once());
}

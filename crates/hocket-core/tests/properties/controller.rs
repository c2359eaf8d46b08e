//! The controller against a slow account of what it said: loads counted from scratch, shares by their
//! definition, paths link by link.

use std::collections::{BTreeMap, BTreeSet};

use hocket_core::id::{LinkId, NpuId};
use hocket_core::routing::Fabric;
use hocket_core::routing::controller::{
    Announced, Command, Controller, Event, FlowId, JobId, Log, Options, Policy, Reason, replay,
};
use hocket_core::topology::{Topology, build};
use hocket_core::units::{Bandwidth, Time};
use proptest::prelude::*;
use proptest::sample::Index;

const HOSTS: u32 = 6;

fn clos(spines: u32, tors: u32) -> Topology {
    let bandwidth = Bandwidth::from_bytes_per_second(1_000_000).expect("positive");
    let parameters = build::Clos {
        spines,
        tors,
        hosts_per_tor: HOSTS,
        host_bandwidth: bandwidth,
        fabric_bandwidth: bandwidth,
        latency: Time::from_ns(1),
    };
    build::clos(&parameters).expect("a Clos")
}

/// What may happen; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Step {
    /// Number, ends, the path held, and whether it is fixed.
    Start(Vec<(u8, u32, u32, Option<u32>, bool)>),
    End(Vec<u8>),
    FailSpine(Index),
    ReturnSpine(Index),
    FailLink(Index),
    ReturnLink(Index),
    HostGoes(u32),
    HostComes(u32),
    JobComes(u8, Vec<(u32, u32)>),
    JobStarts(u8),
    JobStops(u8),
    JobGoes(u8),
    Recovery(bool),
    Prepare,
}

fn step(links_fail: bool) -> impl Strategy<Value = Step> {
    let flow = (
        any::<u8>(),
        0..64u32,
        0..64u32,
        prop::option::weighted(0.2, 0..6u32),
        prop::bool::weighted(0.3),
    );
    let links = move |index: Index, fails: bool| match (links_fail, fails) {
        (true, true) => Step::FailLink(index),
        (true, false) => Step::ReturnLink(index),
        (false, true) => Step::FailSpine(index),
        (false, false) => Step::ReturnSpine(index),
    };
    prop_oneof![
        12 => prop::collection::vec(flow, 1..12).prop_map(Step::Start),
        8 => prop::collection::vec(any::<u8>(), 1..12).prop_map(Step::End),
        1 => any::<Index>().prop_map(Step::FailSpine),
        2 => any::<Index>().prop_map(Step::ReturnSpine),
        4 => (any::<Index>(), any::<bool>()).prop_map(move |(index, fails)| links(index, fails)),
        1 => (0..64u32).prop_map(Step::HostGoes),
        1 => (0..64u32).prop_map(Step::HostComes),
        1 => (0..3u8, prop::collection::vec((0..64u32, 0..64u32), 0..8))
            .prop_map(|(job, flows)| Step::JobComes(job, flows)),
        2 => (0..3u8).prop_map(Step::JobStarts),
        2 => (0..3u8).prop_map(Step::JobStops),
        1 => (0..3u8).prop_map(Step::JobGoes),
        1 => any::<bool>().prop_map(Step::Recovery),
        2 => Just(Step::Prepare),
    ]
}

/// What somebody who only hears events and commands knows.
struct World {
    fabric: Fabric,
    spines: u32,
    tors: u32,
    /// Ends, and the path by commands.
    flows: BTreeMap<FlowId, ([u32; 2], Option<u32>)>,
    jobs: BTreeMap<FlowId, JobId>,
    senders: BTreeMap<FlowId, NpuId>,
    patterns: BTreeMap<JobId, Vec<Announced>>,
    gone: BTreeSet<NpuId>,
    dead: BTreeSet<LinkId>,
    /// Flows that are to keep their paths.
    fixed: BTreeSet<FlowId>,
    moves: u64,
}

impl World {
    fn new(spines: u32, tors: u32) -> Self {
        Self {
            fabric: Fabric::new(&clos(spines, tors)).expect("a Clos"),
            spines,
            tors,
            flows: BTreeMap::new(),
            jobs: BTreeMap::new(),
            senders: BTreeMap::new(),
            patterns: BTreeMap::new(),
            gone: BTreeSet::new(),
            dead: BTreeSet::new(),
            fixed: BTreeSet::new(),
            moves: 0,
        }
    }

    fn links(&self, [src, dst]: [u32; 2], spine: u32) -> Vec<LinkId> {
        let mut links = Vec::new();
        assert!(
            self.fabric.route(src, dst, spine, &mut links),
            "no path by {spine}"
        );
        links
    }

    fn works(&self, ends: [u32; 2], spine: u32) -> bool {
        spine < self.spines
            && self
                .links(ends, spine)
                .iter()
                .all(|link| !self.dead.contains(link))
    }

    fn of_spine(&self, spine: u32) -> Vec<LinkId> {
        let pairs = (0..self.tors).map(|tor| [tor, (tor + 1) % self.tors]);
        pairs.flat_map(|ends| self.links(ends, spine)).collect()
    }

    fn all_links(&self) -> Vec<LinkId> {
        (0..self.spines)
            .flat_map(|spine| self.of_spine(spine))
            .collect()
    }

    fn nic(&self, number: u32) -> NpuId {
        NpuId(number % (self.tors * HOSTS))
    }

    fn announced(&self, id: u64, job: u32, src: u32, dst: u32) -> Announced {
        Announced {
            id: FlowId(id),
            job: JobId(job),
            src: self.nic(src),
            dst: self.nic(dst),
            bytes: 1_000 + id,
            held: None,
            is_fixed: false,
        }
    }

    fn event(&self, step: &Step) -> Event {
        let live: Vec<FlowId> = self.flows.keys().copied().collect();
        let links = self.all_links();
        match step {
            Step::Start(flows) => {
                let flow = |&(id, src, dst, held, is_fixed): &(u8, u32, u32, _, bool)| Announced {
                    held,
                    is_fixed,
                    ..self.announced(id.into(), 10, src, dst)
                };
                let mut flows: Vec<Announced> = flows.iter().map(flow).collect();
                flows.sort_by_key(|flow| flow.id);
                flows.dedup_by_key(|flow| flow.id);
                Event::FlowsStart(flows)
            }
            Step::End(which) => {
                let pick = |&i: &u8| live.get(usize::from(i) % live.len().max(1)).copied();
                Event::FlowsEnd(which.iter().filter_map(pick).collect())
            }
            Step::FailSpine(i) => {
                Event::LinksFail(self.of_spine(i.index(self.spines as usize) as u32))
            }
            Step::ReturnSpine(i) => {
                Event::LinksReturn(self.of_spine(i.index(self.spines as usize) as u32))
            }
            Step::FailLink(i) => Event::LinksFail(vec![links[i.index(links.len())]]),
            Step::ReturnLink(i) => Event::LinksReturn(vec![links[i.index(links.len())]]),
            Step::HostGoes(nic) => Event::HostsGo(vec![self.nic(*nic)]),
            Step::HostComes(nic) => Event::HostsCome(vec![self.nic(*nic)]),
            Step::JobComes(job, flows) => {
                let number = |i: usize| 1_000 * (1 + u64::from(*job)) + i as u64;
                let flow = |(i, &(src, dst)): (usize, &(u32, u32))| {
                    self.announced(number(i), (*job).into(), src, dst)
                };
                let flows = flows.iter().enumerate().map(flow).collect();
                Event::JobComes(JobId((*job).into()), flows)
            }
            Step::JobStarts(job) => Event::JobStarts(JobId((*job).into())),
            Step::JobStops(job) => Event::JobStops(JobId((*job).into())),
            Step::JobGoes(job) => Event::JobGoes(JobId((*job).into())),
            Step::Recovery(true) => Event::Recovering,
            Step::Recovery(false) => Event::Recovered,
            Step::Prepare => Event::Prepare,
        }
    }

    /// The event of a step, less what hosts hold, which may be anything and stays while hosts are being heard, and
    /// less what is fixed.
    fn fresh(&self, step: &Step) -> Option<Event> {
        let mut event = self.event(step);
        match &mut event {
            Event::FlowsStart(flows) => flows.iter_mut().for_each(|flow| {
                flow.held = None;
                flow.is_fixed = false;
            }),
            Event::Recovering => return None,
            _ => {}
        }
        Some(event)
    }

    /// Flows that an event makes live or ends, without paths.
    fn hear(&mut self, event: &Event) {
        match event {
            Event::FlowsStart(flows) => flows.iter().for_each(|flow| self.start(flow)),
            Event::FlowsEnd(flows) => flows.iter().for_each(|flow| self.end(*flow)),
            Event::LinksFail(links) => self.dead.extend(links),
            Event::LinksReturn(links) => self.dead.retain(|link| !links.contains(link)),
            Event::HostsGo(nics) => {
                self.gone.extend(nics);
                let of = self.senders.iter().filter(|(_, nic)| nics.contains(nic));
                let of: Vec<FlowId> = of.map(|(&flow, _)| flow).collect();
                of.into_iter().for_each(|flow| self.end(flow));
            }
            Event::HostsCome(nics) => self.gone.retain(|nic| !nics.contains(nic)),
            Event::JobComes(job, flows) => {
                self.patterns.insert(*job, flows.clone());
            }
            Event::JobStarts(job) => {
                let flows = self.patterns.get(job).cloned().unwrap_or_default();
                flows.iter().for_each(|flow| self.start(flow));
            }
            Event::JobStops(job) | Event::JobGoes(job) => {
                let of = self.jobs.iter().filter(|(_, of)| *of == job);
                let of: Vec<FlowId> = of.map(|(&flow, _)| flow).collect();
                of.into_iter().for_each(|flow| self.end(flow));
                if matches!(event, Event::JobGoes(_)) {
                    self.patterns.remove(job);
                }
            }
            _ => {}
        }
    }

    fn start(&mut self, flow: &Announced) {
        let ends = [flow.src, flow.dst].map(|nic| nic.0 / HOSTS);
        let is_gone = [flow.src, flow.dst]
            .iter()
            .any(|nic| self.gone.contains(nic));
        if is_gone || ends[0] == ends[1] {
            return self.end(flow.id);
        }
        let is_same = self
            .flows
            .get(&flow.id)
            .is_some_and(|(known, _)| *known == ends)
            && self.senders[&flow.id] == flow.src
            && self.jobs[&flow.id] == flow.job;
        match flow.is_fixed {
            true => self.fixed.insert(flow.id),
            false => self.fixed.remove(&flow.id),
        };
        if !is_same {
            self.flows.insert(flow.id, (ends, None));
            self.senders.insert(flow.id, flow.src);
            self.jobs.insert(flow.id, flow.job);
        }
    }

    fn end(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
        self.senders.remove(&flow);
        self.fixed.remove(&flow);
        self.jobs.remove(&flow);
    }

    /// Takes commands to heart.
    fn obey(&mut self, event: &Event, commands: &[Command]) {
        let held = |id: FlowId| match event {
            Event::FlowsStart(flows) => flows.iter().find(|flow| flow.id == id)?.held,
            _ => None,
        };
        let mut told = BTreeSet::new();
        for &command in commands {
            match command {
                Command::Path {
                    flow,
                    choice,
                    reason,
                } => {
                    assert!(told.insert(flow), "{flow:?} is told twice");
                    let (ends, path) = self.flows[&flow];
                    assert!(self.works(ends, choice), "a path by what failed");
                    let had = path.or(held(flow).filter(|&held| held < self.spines));
                    if had.is_some_and(|had| had != choice) {
                        self.moves += 1;
                        assert!(!matches!(reason, Reason::New | Reason::Held), "{reason:?}");
                        let works = had.is_some_and(|had| self.works(ends, had));
                        assert!(!works || !self.fixed.contains(&flow), "a fixed flow moves");
                    } else if had == Some(choice) {
                        assert_eq!(reason, Reason::Held);
                    }
                    self.flows.insert(flow, (ends, Some(choice)));
                }
                Command::Revoke { flow, reason } => match self.flows.get_mut(&flow) {
                    Some((_, path)) => {
                        assert_eq!(reason, Reason::NoPath);
                        *path = None;
                    }
                    None => assert!(matches!(reason, Reason::Local | Reason::UnknownHost)),
                },
                Command::Ahead { .. } => assert_eq!(event, &Event::Prepare),
                Command::Rate { .. } => {}
            }
        }
        if let Event::FlowsStart(flows) = event {
            let is_of = |id: FlowId| {
                move |command: &&Command| match **command {
                    Command::Path { flow, .. } | Command::Revoke { flow, .. } => flow == id,
                    _ => false,
                }
            };
            let answered =
                |flow: &Announced| commands.iter().any(|command| is_of(flow.id)(&command));
            assert!(flows.iter().all(answered), "each is answered");
        }
    }

    fn loads(&self) -> BTreeMap<LinkId, u16> {
        let mut loads = BTreeMap::new();
        for (ends, path) in self.flows.values() {
            for link in path.iter().flat_map(|&spine| self.links(*ends, spine)) {
                *loads.entry(link).or_default() += 1;
            }
        }
        loads
    }

    /// The controller knows what hosts were told, no more and no less.
    fn agrees(&self, controller: &Controller) {
        let known: BTreeMap<FlowId, Option<u32>> = controller.choices().collect();
        let told = self.flows.iter().map(|(&flow, &(_, path))| (flow, path));
        assert_eq!(known, told.collect());
        let loads = self.loads();
        for link in self.all_links() {
            assert_eq!(
                controller.load(link),
                loads.get(&link).copied().unwrap_or(0)
            );
        }
        for (ends, path) in self.flows.values() {
            let can = (0..self.spines).any(|spine| self.works(*ends, spine));
            assert_eq!(path.is_some(), can, "a flow has a path where there is one");
        }
        assert_eq!(controller.tally().total_moves(), self.moves);
    }

    /// By how many flows links exceed what their ToRs' flows come to, spread evenly and rounded up.
    fn excess(&self, slack: u32) -> u64 {
        let loads = self.loads();
        let mut excess = 0;
        for side in 0..2 {
            for tor in 0..self.tors {
                let ends = |spine: u32| {
                    let other = (tor + 1) % self.tors;
                    let ends = if side == 0 {
                        [tor, other]
                    } else {
                        [other, tor]
                    };
                    self.links(ends, spine)[side]
                };
                let links: Vec<LinkId> = (0..self.spines).map(ends).collect();
                let there = links
                    .iter()
                    .filter(|link| !self.dead.contains(link))
                    .count() as u32;
                let of = self
                    .flows
                    .values()
                    .filter(|(ends, path)| ends[side] == tor && path.is_some());
                let share = (of.count() as u32).div_ceil(there.max(1)) + slack;
                for link in &links {
                    let load = u64::from(loads.get(link).copied().unwrap_or(0));
                    excess += load.saturating_sub(share.into());
                }
            }
        }
        excess
    }
}

fn options() -> impl Strategy<Value = Options> {
    let policy = prop_oneof![Just(Policy::Greedy), Just(Policy::Balanced)];
    let limit = prop_oneof![Just(u32::MAX), 0..4u32];
    let rate = prop::option::of(0..200_000u32);
    (
        policy,
        limit,
        1..20u32,
        prop_oneof![Just(u32::MAX), 0..3u32],
        0..2u16,
        rate,
        0..3u32,
        any::<bool>(),
    )
        .prop_map(
            |(policy, most_moves, tries, reliefs, slack, rate_slack_ppm, look_ahead, failover)| {
                Options {
                    policy,
                    most_moves,
                    tries,
                    reliefs,
                    slack,
                    rate_slack_ppm,
                    look_ahead,
                    failover,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever happens: no command names what failed, hosts and controller agree, loads are those of the
    /// flows, and every move is counted and has a reason.
    #[test]
    fn controller_and_hosts_agree(
        (spines, tors) in (1..5u32, 2..6u32),
        options in options(),
        steps in prop::collection::vec(step(true), 1..40),
    ) {
        let mut world = World::new(spines, tors);
        let mut controller = Controller::new(world.fabric.clone(), options);
        let mut log = Log::default();
        let mut said = Vec::new();
        for (now, step) in (0..).zip(&steps) {
            let now = Time::from_ns(now * 1_000);
            let event = world.event(step);
            world.hear(&event);
            let commands = controller.handle(now, &event);
            world.obey(&event, &commands);
            world.agrees(&controller);
            if let Some(slack) = options.rate_slack_ppm {
                check_rates(&world, &commands, slack);
            }
            log.events.push((now, event));
            said.push(commands);
        }
        let bytes = log.encode();
        prop_assert_eq!(Log::decode(&bytes), Ok(log.clone()));
        for end in 0..bytes.len() {
            // A part of a log is a log where an event ends, and refused elsewhere.
            if let Ok(part) = Log::decode(&bytes[..end]) {
                prop_assert_eq!(part.encode(), &bytes[..end]);
            }
        }
        for _ in 0..2 {
            let mut again = Controller::new(world.fabric.clone(), options);
            prop_assert_eq!(&replay(&mut again, &log), &said);
        }
    }

    /// Where moves cost nothing no link has more than its share, whole spines failing and returning.
    #[test]
    fn shares_are_kept(
        (spines, tors, slack) in (1..6u32, 2..6u32, 0..3u16),
        steps in prop::collection::vec(step(false), 1..40),
    ) {
        let options = Options {
            most_moves: u32::MAX,
            reliefs: u32::MAX,
            slack,
            ..Options::default()
        };
        let mut world = World::new(spines, tors);
        let mut controller = Controller::new(world.fabric.clone(), options);
        for step in &steps {
            let Some(event) = world.fresh(step) else { continue };
            world.hear(&event);
            let commands = controller.handle(Time::ZERO, &event);
            world.obey(&event, &commands);
            prop_assert_eq!(world.excess(slack.into()), controller.excess());
            prop_assert_eq!(controller.excess(), 0, "{:?}", event);
        }
    }

    /// Where few links are relieved at a time, what waits is relieved while other flows come and go.
    #[test]
    fn what_waits_is_relieved(
        (spines, tors, slack) in (1..6u32, 2..6u32, 0..3u16),
        steps in prop::collection::vec(step(false), 1..40),
    ) {
        const ROUNDS: usize = 400;
        let options = Options {
            most_moves: u32::MAX,
            slack,
            ..Options::default()
        };
        let mut world = World::new(spines, tors);
        let mut controller = Controller::new(world.fabric.clone(), options);
        let tell = |event: &Event, world: &mut World, controller: &mut Controller| {
            world.hear(event);
            let commands = controller.handle(Time::ZERO, event);
            world.obey(event, &commands);
        };
        for step in &steps {
            let Some(event) = world.fresh(step) else { continue };
            tell(&event, &mut world, &mut controller);
            prop_assert_eq!(world.excess(slack.into()), controller.excess());
        }
        let flow = world.announced(1 << 40, 0, 0, HOSTS);
        let come = Event::HostsCome(vec![flow.src, flow.dst]);
        tell(&come, &mut world, &mut controller);
        for _ in 0..ROUNDS {
            if controller.excess() == 0 {
                break;
            }
            tell(&Event::FlowsStart(vec![flow]), &mut world, &mut controller);
            tell(&Event::FlowsEnd(vec![flow.id]), &mut world, &mut controller);
        }
        prop_assert_eq!(world.excess(slack.into()), 0);
    }

    /// Greedy takes the path whose busiest link carries least, and nothing else moves.
    #[test]
    fn greedy_is_algorithm_1(
        (spines, tors) in (1..6u32, 2..6u32),
        steps in prop::collection::vec(step(true), 1..40),
    ) {
        let options = Options { policy: Policy::Greedy, ..Options::default() };
        let mut world = World::new(spines, tors);
        let mut controller = Controller::new(world.fabric.clone(), options);
        for step in &steps {
            let mut event = world.event(step);
            if let Event::FlowsStart(flows) = &mut event {
                flows.truncate(1);
                flows[0].held = None;
            }
            world.hear(&event);
            let loads = world.loads();
            let commands = controller.handle(Time::ZERO, &event);
            if let (Event::FlowsStart(flows), [Command::Path { choice, reason: Reason::New, .. }]) =
                (&event, &commands[..])
            {
                let (ends, _) = world.flows[&flows[0].id];
                let busiest = |spine: u32| {
                    let links = world.links(ends, spine);
                    links.iter().map(|link| loads.get(link).copied().unwrap_or(0)).max()
                };
                let ways = (0..spines).filter(|&spine| world.works(ends, spine));
                prop_assert_eq!(ways.map(busiest).min(), Some(busiest(*choice)));
            }
            world.obey(&event, &commands);
            for reason in [Reason::Room, Reason::Balance] {
                prop_assert_eq!(controller.tally().moves_for(reason), 0);
            }
        }
    }

    /// Where one flow that can move would keep a new flow from overloading a link, it moves.
    #[test]
    fn one_move_is_found_where_one_will_do(
        (spines, tors) in (2..6u32, 2..5u32),
        flows in prop::collection::vec((0..24u32, 0..24u32, prop::bool::weighted(0.3)), 1..16),
    ) {
        let options = Options {
            most_moves: 1,
            tries: u32::MAX,
            ..Options::default()
        };
        let mut world = World::new(spines, tors);
        let mut controller = Controller::new(world.fabric.clone(), options);
        for (id, &(src, dst, is_fixed)) in flows.iter().enumerate() {
            let flow = world.announced(id as u64, 0, src, dst);
            let flow = Announced { is_fixed, ..flow };
            let event = Event::FlowsStart(vec![flow]);
            let before = world.excess(0);
            world.hear(&event);
            let could = before == 0 && one_move_will_do(&mut world, flow.id);
            let commands = controller.handle(Time::ZERO, &event);
            world.obey(&event, &commands);
            if could {
                prop_assert_eq!(world.excess(0), 0);
            }
            prop_assert!(commands.len() <= 2);
        }
    }
}

/// Logs of version 1 do not say which flows are fixed: none is.
#[test]
fn logs_of_the_first_version_are_read() {
    let events = [5, 0, 1, 7, 1, 2, 3, 100, 4, 6, 2, 1, 7];
    let first = [b"hocket events 1\n", &events[..]].concat();
    let flow = Announced {
        id: FlowId(7),
        job: JobId(1),
        src: NpuId(2),
        dst: NpuId(3),
        bytes: 100,
        held: Some(3),
        is_fixed: false,
    };
    let log = Log {
        events: vec![
            (Time::from_ps(5), Event::FlowsStart(vec![flow])),
            (Time::from_ps(11), Event::FlowsEnd(vec![FlowId(7)])),
        ],
    };
    assert_eq!(Log::decode(&first), Ok(log.clone()));
    let mut second = log.encode();
    assert_eq!(Log::decode(&second), Ok(log));
    // The flow's last number says whether it is fixed.
    let flag = second.len() - 5;
    second[flag] = 2;
    let refused = Log::decode(&second).unwrap_err();
    assert_eq!(
        (refused.at, refused.why),
        (flag, "a flag is neither 0 nor 1")
    );
}

/// Tries every path of a flow, and every move of another with it that can move.
fn one_move_will_do(world: &mut World, new: FlowId) -> bool {
    let Some(&(ends, _)) = world.flows.get(&new) else {
        return false;
    };
    let others: Vec<FlowId> = world
        .flows
        .keys()
        .copied()
        .filter(|&flow| flow != new && !world.fixed.contains(&flow))
        .collect();
    let mut will_do = false;
    for spine in 0..world.spines {
        world.flows.insert(new, (ends, Some(spine)));
        will_do |= world.excess(0) == 0;
        for &other in &others {
            let (of, path) = world.flows[&other];
            for to in 0..world.spines {
                world.flows.insert(other, (of, Some(to)));
                will_do |= world.excess(0) == 0;
            }
            world.flows.insert(other, (of, path));
        }
    }
    world.flows.insert(new, (ends, None));
    will_do
}

/// Rates that were told are those of the loads.
fn check_rates(world: &World, commands: &[Command], slack: u32) {
    let loads = world.loads();
    for command in commands {
        let Command::Rate {
            flow,
            bytes_per_second,
        } = command
        else {
            continue;
        };
        let (ends, Some(spine)) = world.flows[flow] else {
            panic!("a rate without a path");
        };
        let fullest = world
            .links(ends, spine)
            .iter()
            .map(|link| loads[link])
            .max();
        let share = 1_000_000 / u64::from(fullest.expect("two links"));
        assert_eq!(
            *bytes_per_second,
            share * (1_000_000 + u64::from(slack)) / 1_000_000
        );
    }
}

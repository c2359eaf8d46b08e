//! What happens to a controller, and what somebody knows who only hears its commands.

use std::collections::{BTreeMap, BTreeSet};

use hocket_core::id::{LinkId, NpuId, narrow};
use hocket_core::routing::Fabric;
use hocket_core::routing::controller::{
    AnnouncedFlow, Command, Controller, Event, FlowId, JobId, Reason,
};
use hocket_core::topology::{Topology, build};
use hocket_core::units::{Bandwidth, Time};
use proptest::prelude::*;
use proptest::sample::Index;

pub(super) const HOSTS: u32 = 6;

pub(super) fn clos(spines: u32, tors: u32) -> Topology {
    let bandwidth = Bandwidth::from_bytes_per_second(1_000_000).expect("positive");
    let parameters = build::Clos {
        spines,
        tors,
        hosts_per_tor: HOSTS,
        host_bandwidth: bandwidth,
        bandwidth,
        latency: Time::from_ns(1),
    };
    parameters.build().expect("a Clos")
}

/// What may happen; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
pub(super) enum Step {
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

pub(super) fn step(links_fail: bool) -> impl Strategy<Value = Step> {
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
pub(super) struct World {
    pub(super) fabric: Fabric,
    pub(super) spines: u32,
    pub(super) tors: u32,
    /// Ends, and the path by commands.
    pub(super) flows: BTreeMap<FlowId, ([u32; 2], Option<u32>)>,
    pub(super) jobs: BTreeMap<FlowId, JobId>,
    pub(super) senders: BTreeMap<FlowId, NpuId>,
    pub(super) patterns: BTreeMap<JobId, Vec<AnnouncedFlow>>,
    pub(super) gone: BTreeSet<NpuId>,
    /// Flows whose receivers are gone.
    pub(super) waiting: BTreeMap<FlowId, AnnouncedFlow>,
    pub(super) dead: BTreeSet<LinkId>,
    /// Flows that are to keep their paths.
    pub(super) fixed: BTreeSet<FlowId>,
    pub(super) moves: u64,
}

impl World {
    pub(super) fn new(spines: u32, tors: u32) -> Self {
        Self {
            fabric: Fabric::new(&clos(spines, tors)).expect("a Clos"),
            spines,
            tors,
            flows: BTreeMap::new(),
            jobs: BTreeMap::new(),
            senders: BTreeMap::new(),
            patterns: BTreeMap::new(),
            gone: BTreeSet::new(),
            waiting: BTreeMap::new(),
            dead: BTreeSet::new(),
            fixed: BTreeSet::new(),
            moves: 0,
        }
    }

    pub(super) fn links(&self, [src, dst]: [u32; 2], spine: u32) -> Vec<LinkId> {
        let mut links = Vec::new();
        assert!(
            self.fabric.route(src, dst, spine, &mut links),
            "no path by {spine}"
        );
        links
    }

    pub(super) fn works(&self, ends: [u32; 2], spine: u32) -> bool {
        spine < self.spines
            && self
                .links(ends, spine)
                .iter()
                .all(|link| !self.dead.contains(link))
    }

    pub(super) fn of_spine(&self, spine: u32) -> Vec<LinkId> {
        let pairs = (0..self.tors).map(|tor| [tor, (tor + 1) % self.tors]);
        pairs.flat_map(|ends| self.links(ends, spine)).collect()
    }

    pub(super) fn all_links(&self) -> Vec<LinkId> {
        (0..self.spines)
            .flat_map(|spine| self.of_spine(spine))
            .collect()
    }

    pub(super) fn nic(&self, number: u32) -> NpuId {
        NpuId(number % (self.tors * HOSTS))
    }

    pub(super) fn announced(&self, id: u64, job: u32, src: u32, dst: u32) -> AnnouncedFlow {
        AnnouncedFlow {
            id: FlowId(id),
            job: JobId(job),
            src: self.nic(src),
            dst: self.nic(dst),
            bytes: 1_000 + id,
            held: None,
            is_fixed: false,
        }
    }

    pub(super) fn event(&self, step: &Step) -> Event {
        let live = self.flows.keys().chain(self.waiting.keys());
        let live: Vec<FlowId> = live.copied().collect();
        let links = self.all_links();
        match step {
            Step::Start(flows) => {
                let flow =
                    |&(id, src, dst, held, is_fixed): &(u8, u32, u32, _, bool)| AnnouncedFlow {
                        held,
                        is_fixed,
                        ..self.announced(id.into(), 10, src, dst)
                    };
                let mut flows: Vec<AnnouncedFlow> = flows.iter().map(flow).collect();
                flows.sort_by_key(|flow| flow.id);
                flows.dedup_by_key(|flow| flow.id);
                Event::FlowsStart(flows)
            }
            Step::End(which) => {
                let pick = |&i: &u8| live.get(usize::from(i) % live.len().max(1)).copied();
                Event::FlowsEnd(which.iter().filter_map(pick).collect())
            }
            Step::FailSpine(i) => {
                Event::LinksFail(self.of_spine(narrow(i.index(self.spines as usize))))
            }
            Step::ReturnSpine(i) => {
                Event::LinksReturn(self.of_spine(narrow(i.index(self.spines as usize))))
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
    pub(super) fn fresh(&self, step: &Step) -> Option<Event> {
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
    pub(super) fn hear(&mut self, event: &Event) {
        match event {
            Event::FlowsStart(flows) => flows.iter().for_each(|flow| self.start(flow)),
            Event::FlowsEnd(flows) => flows.iter().for_each(|flow| self.end(*flow)),
            Event::LinksFail(links) => self.dead.extend(links),
            Event::LinksReturn(links) => self.dead.retain(|link| !links.contains(link)),
            Event::HostsGo(nics) => {
                self.gone.extend(nics);
                self.waiting.retain(|_, flow| !nics.contains(&flow.src));
                let of = self.senders.iter().filter(|(_, nic)| nics.contains(nic));
                let of: Vec<FlowId> = of.map(|(&flow, _)| flow).collect();
                of.into_iter().for_each(|flow| self.end(flow));
            }
            Event::HostsCome(nics) => {
                self.gone.retain(|nic| !nics.contains(nic));
                let waiting: Vec<AnnouncedFlow> = self.waiting.values().copied().collect();
                waiting.iter().for_each(|flow| self.start(flow));
            }
            Event::JobComes(job, flows) => {
                self.patterns.insert(*job, flows.clone());
            }
            Event::JobStarts(job) => {
                let flows = self.patterns.get(job).cloned().unwrap_or_default();
                flows.iter().for_each(|flow| self.start(flow));
            }
            Event::JobStops(job) | Event::JobGoes(job) => {
                self.waiting.retain(|_, flow| flow.job != *job);
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

    pub(super) fn start(&mut self, flow: &AnnouncedFlow) {
        let ends = [flow.src, flow.dst].map(|nic| nic.0 / HOSTS);
        let is_gone = [flow.src, flow.dst]
            .iter()
            .any(|nic| self.gone.contains(nic));
        if is_gone || ends[0] == ends[1] {
            self.end(flow.id);
            if !self.gone.contains(&flow.src) && self.gone.contains(&flow.dst) {
                self.waiting.insert(flow.id, *flow);
            }
            return;
        }
        self.waiting.remove(&flow.id);
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

    pub(super) fn end(&mut self, flow: FlowId) {
        self.waiting.remove(&flow);
        self.flows.remove(&flow);
        self.senders.remove(&flow);
        self.fixed.remove(&flow);
        self.jobs.remove(&flow);
    }

    /// Takes commands to heart.
    pub(super) fn obey(&mut self, event: &Event, commands: &[Command]) {
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
                |flow: &AnnouncedFlow| commands.iter().any(|command| is_of(flow.id)(&command));
            assert!(flows.iter().all(answered), "each is answered");
        }
    }

    pub(super) fn loads(&self) -> BTreeMap<LinkId, u16> {
        let mut loads = BTreeMap::new();
        for (ends, path) in self.flows.values() {
            for link in path.iter().flat_map(|&spine| self.links(*ends, spine)) {
                *loads.entry(link).or_default() += 1;
            }
        }
        loads
    }

    /// The controller knows what hosts were told, no more and no less.
    pub(super) fn agrees(&self, controller: &Controller) {
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
    pub(super) fn excess(&self, slack: u32) -> u64 {
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
                let there = narrow(
                    links
                        .iter()
                        .filter(|link| !self.dead.contains(link))
                        .count(),
                );
                let of = self
                    .flows
                    .values()
                    .filter(|(ends, path)| ends[side] == tor && path.is_some());
                let share = narrow(of.count()).div_ceil(there.max(1)) + slack;
                for link in &links {
                    let load = u64::from(loads.get(link).copied().unwrap_or(0));
                    excess += load.saturating_sub(share.into());
                }
            }
        }
        excess
    }
}

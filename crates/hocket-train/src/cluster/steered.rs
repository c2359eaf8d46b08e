//! The routing controller as a cluster runs it, told what the simulated jobs do.

use super::control::Commodities;
use super::flows::Flows;
use crate::id::{LinkId, fit};
use crate::routing::Fabric;
use crate::routing::controller::{
    AnnouncedFlow, Command, Controller, Event, FlowId, JobId, Log, Options, Reason,
};
use crate::units::Time;

/// What a controller was told in a simulation, and what it said to each event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The events.
    pub log: Log,
    /// What it said to each.
    pub commands: Vec<Vec<Command>>,
}

pub(super) struct Steered {
    controller: Controller,
    pub(super) record: Record,
    /// Jobs that communicate, as it was told.
    live: Vec<u32>,
}

impl Steered {
    /// Returns a controller that knows the patterns of all jobs.
    pub(super) fn new(fabric: &Fabric, options: Options, jobs: u32, known: &Commodities) -> Self {
        let mut steered = Self {
            controller: Controller::new(fabric.clone(), options),
            record: Record::default(),
            live: Vec::new(),
        };
        for job in (0..jobs).filter(|&job| known.are_there(job)) {
            let flow = |(id, [src, dst], bytes): (u32, [_; 2], u64)| AnnouncedFlow {
                id: FlowId(id.into()),
                job: JobId(job),
                src,
                dst,
                bytes,
                held: None,
                is_fixed: false,
            };
            let flows = known.announced(job).map(flow).collect();
            steered.tell(0, Event::JobComes(JobId(job), flows));
        }
        steered
    }

    fn tell(&mut self, now: u64, event: Event) -> &[Command] {
        let now = Time::from_ps(now);
        let commands = self.controller.handle(now, &event);
        self.record.log.events.push((now, event));
        self.record.commands.push(commands);
        self.record.commands.last().map_or(&[], Vec::as_slice)
    }

    /// Returns the jobs that communicate now; says whether all that start were foreseen.
    pub(super) fn follow(&mut self, now: u64, active: &[u32]) -> bool {
        let before = std::mem::replace(&mut self.live, active.to_vec());
        for &job in before.iter().filter(|job| !active.contains(job)) {
            self.tell(now, Event::JobStops(JobId(job)));
        }
        let mut is_foreseen = true;
        for &job in active.iter().filter(|job| !before.contains(job)) {
            let commands = self.tell(now, Event::JobStarts(JobId(job)));
            is_foreseen &= are_paths_for(commands, Reason::Foreseen);
        }
        is_foreseen
    }

    /// Links fail: flows and their new paths, if these were ready.
    pub(super) fn fail(&mut self, now: u64, links: &[LinkId]) -> Option<Vec<(u32, u32)>> {
        let commands = self.tell(now, Event::LinksFail(links.to_vec()));
        are_paths_for(commands, Reason::Failover).then(|| paths(commands).collect())
    }

    /// There is time to compute ahead; says how much has been by now.
    pub(super) fn prepare(&mut self, now: u64, known: &Commodities, flows: &Flows) -> u64 {
        let Options {
            look_ahead,
            failover,
            ..
        } = *self.controller.options();
        if look_ahead > 0 {
            let of_live = self.live.iter().flat_map(|&job| known.of(job));
            let left = of_live.map(|&flow| (FlowId(flow.into()), flows.bytes_left(flow, now)));
            let left = left.collect();
            self.tell(now, Event::FlowsProgress(left));
        }
        if look_ahead > 0 || failover {
            self.tell(now, Event::Prepare);
        }
        self.controller.tally().computed_ahead
    }

    /// Returns the path that a live flow has.
    pub(super) fn choice(&self, flow: u32) -> Option<u32> {
        self.controller.choice(FlowId(flow.into()))
    }
}

fn paths(commands: &[Command]) -> impl Iterator<Item = (u32, u32)> {
    commands.iter().filter_map(|command| match *command {
        Command::Path { flow, choice, .. } => Some((fit(flow.0), choice)),
        _ => None,
    })
}

/// Returns whether nothing was said but paths for one reason.
fn are_paths_for(commands: &[Command], wanted: Reason) -> bool {
    commands.iter().all(|command| match command {
        Command::Path { reason, .. } => *reason == wanted,
        Command::Rate { .. } => true,
        Command::Ahead { .. } | Command::Revoke { .. } => false,
    })
}

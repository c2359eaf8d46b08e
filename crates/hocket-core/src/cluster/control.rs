//! The controller: which flows want paths, what the router gave them, and what will be asked next.

use std::rc::Rc;

use super::engine::Progressing;
use super::flows::Flows;
use super::forward::{Prediction, predict};
use super::router::{Problem, Router};
use super::{ClusterError, ClusterOptions, Decision, Reroute};
use crate::routing::{Assignment, Fabric, Flow};
use crate::units::Time;

/// The flows of each job that go from one ToR to another.
#[derive(Default)]
pub(super) struct Commodities {
    /// By job: numbers of the flows, and the flows as routing sees them.
    ids: Vec<Vec<u32>>,
    flows: Vec<Vec<Flow>>,
    /// By flow: what was chosen for it last, whether the answer is there or not.
    choices: Vec<Option<u32>>,
}

impl Commodities {
    pub(super) fn begin_job(&mut self) {
        self.ids.push(Vec::new());
        self.flows.push(Vec::new());
    }

    /// Whether a job has any.
    pub(super) fn are_there(&self, job: u32) -> bool {
        !self.ids[job as usize].is_empty()
    }

    /// Numbers of a job's flows.
    pub(super) fn of(&self, job: u32) -> &[u32] {
        &self.ids[job as usize]
    }

    /// A flow of the job begun last.
    pub(super) fn add(&mut self, id: u32, src: u32, dst: u32) {
        self.choices.resize(id as usize + 1, None);
        if let (Some(ids), Some(flows)) = (self.ids.last_mut(), self.flows.last_mut()) {
            ids.push(id);
            flows.push(Flow::new(src, dst));
        }
    }
}

/// Paths for all flows of some jobs.
pub(super) struct Decided {
    /// The jobs, in order.
    pub(super) jobs: Vec<u32>,
    /// Numbers of their flows.
    ids: Vec<u32>,
    /// How many of them, the first, keep their paths.
    kept: usize,
    assignment: Assignment,
}

impl Decided {
    /// Flows and their choices.
    pub(super) fn new_paths(&self) -> impl Iterator<Item = (u32, u32)> {
        let choices = self.assignment.spines().iter().copied();
        self.ids.iter().copied().zip(choices).skip(self.kept)
    }

    pub(super) fn decision(&self, now: u64, foreseen: bool) -> Decision {
        Decision {
            time: Time::from_ps(now),
            flows: self.ids.len() as u32,
            moved: 0,
            max_link_load: self.assignment.max_link_load(),
            bound: self.assignment.certificate().load,
            foreseen,
        }
    }
}

pub(super) struct Controller<'a> {
    fabric: &'a Fabric,
    pub(super) commodities: Commodities,
    options: &'a ClusterOptions,
    /// What has been computed ahead.
    table: Vec<Rc<Decided>>,
    pub(super) computed_ahead: u64,
    /// Flows that the router was given since somebody looked.
    pub(super) routed: usize,
}

impl<'a> Controller<'a> {
    pub(super) fn new(
        fabric: &'a Fabric,
        commodities: Commodities,
        options: &'a ClusterOptions,
    ) -> Self {
        Self {
            fabric,
            commodities,
            options,
            table: Vec::new(),
            computed_ahead: 0,
            routed: 0,
        }
    }

    /// Paths for the flows of the jobs that communicate, and whether they were there already.
    pub(super) fn decide(
        &mut self,
        now: u64,
        active: &[u32],
        starting: &[u32],
        flows: &Flows,
        router: &mut dyn Router,
    ) -> Result<(Rc<Decided>, bool), ClusterError> {
        let known = self.table.iter().find(|decided| decided.jobs == active);
        if let Some(known) = known {
            return Ok((known.clone(), true));
        }
        let starting = match self.options.reroute {
            Reroute::AtStart => starting,
            _ => active,
        };
        let decided = self.route(now, active, starting, flows, (router, false))?;
        for (flow, choice) in decided.new_paths() {
            self.commodities.choices[flow as usize] = Some(choice);
        }
        Ok((Rc::new(decided), false))
    }

    /// Asks the router; jobs that are not starting keep their paths.
    fn route(
        &mut self,
        now: u64,
        active: &[u32],
        starting: &[u32],
        flows: &Flows,
        (router, is_ahead): (&mut dyn Router, bool),
    ) -> Result<Decided, ClusterError> {
        let (kept, new): (Vec<u32>, Vec<u32>) =
            active.iter().partition(|job| !starting.contains(job));
        let mut ids = Vec::new();
        let mut wanted: Vec<Flow> = Vec::new();
        let mut jobs = Vec::new();
        for &job in kept.iter().chain(&new) {
            let of_job = &self.commodities.ids[job as usize];
            ids.extend(of_job);
            wanted.extend(&self.commodities.flows[job as usize]);
            jobs.resize(ids.len(), job);
        }
        if self.options.by_bytes {
            for (flow, &id) in wanted.iter_mut().zip(&ids) {
                flow.weight = flows.bytes_left(id, now);
            }
        }
        let is_kept = |job: &&u32| kept.contains(job);
        let kept_flows = jobs.iter().take_while(is_kept).count();
        let choices = ids[..kept_flows]
            .iter()
            .map_while(|&id| self.commodities.choices[id as usize]);
        let fixed: Vec<u32> = choices.collect();
        self.routed += wanted.len();
        let assignment = router.route(&Problem {
            fabric: self.fabric,
            flows: &wanted,
            jobs: &jobs,
            fixed: &fixed,
            is_ahead,
        })?;
        Ok(Decided {
            jobs: active.to_vec(),
            kept: fixed.len(),
            ids,
            assignment,
        })
    }

    /// Computes assignments for the events that are likely to come next.
    pub(super) fn look_ahead(
        &mut self,
        now: u64,
        jobs: &[Progressing<'_>],
        flows: &Flows,
        router: &mut dyn Router,
    ) -> Result<(), ClusterError> {
        let known = std::mem::take(&mut self.table);
        let mut table: Vec<Rc<Decided>> = Vec::new();
        let Prediction { sets } = predict(now, jobs, &self.commodities, flows, self.options);
        for active in sets {
            if active.is_empty() || table.iter().any(|decided| decided.jobs == active) {
                continue;
            }
            let kept = known.iter().find(|decided| decided.jobs == active);
            let decided = match kept {
                Some(kept) => kept.clone(),
                None => {
                    self.computed_ahead += 1;
                    Rc::new(self.route(now, &active, &active, flows, (router, true))?)
                }
            };
            table.push(decided);
        }
        self.table = table;
        Ok(())
    }
}

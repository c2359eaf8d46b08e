//! The controller: which flows want paths, what the router gave them, and what will be asked next.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::engine::Progressing;
use super::flows::Flows;
use super::forward::predict;
use super::router::{Problem, Router};
use super::steered::{Record, Steered};
use super::{ClusterError, ClusterOptions, Decision, Job, Reroute};
use crate::id::{LinkId, NpuId, narrow};
use crate::routing::controller::failover::{self, Chosen, Repairs};
use crate::routing::{Assignment, Fabric, Flow, assignment_of};
use crate::topology::Topology;
use crate::units::Time;

/// The flows of each job that go from one ToR to another.
#[derive(Default)]
pub(super) struct Commodities {
    /// By job: numbers of the flows, and the flows as routing sees them.
    ids: Vec<Vec<u32>>,
    flows: Vec<Vec<Flow>>,
    /// By job and flow: the NICs, and bytes of an iteration.
    ends: Vec<Vec<([NpuId; 2], u64)>>,
    /// By flow: what was chosen for it last, whether the answer is there or not.
    choices: Vec<Option<u32>>,
}

impl Commodities {
    pub(super) fn begin_job(&mut self) {
        self.ids.push(Vec::new());
        self.flows.push(Vec::new());
        self.ends.push(Vec::new());
    }

    /// Returns the flows of a job between ToRs, and their numbers.
    pub(super) fn rows(&self, job: u32) -> impl Iterator<Item = (u32, Flow)> {
        let ids = self.ids[job as usize].iter().copied();
        ids.zip(self.flows[job as usize].iter().copied())
    }

    /// Returns whether a job has any.
    pub(super) fn are_there(&self, job: u32) -> bool {
        !self.ids[job as usize].is_empty()
    }

    /// Returns the numbers of a job's flows.
    pub(super) fn of(&self, job: u32) -> &[u32] {
        &self.ids[job as usize]
    }

    /// A flow of the job begun last: its ToRs, its NICs and its bytes.
    pub(super) fn add(&mut self, id: u32, tors: [u32; 2], nics: [NpuId; 2], bytes: u64) {
        self.choices.resize(id as usize + 1, None);
        if let (Some(ids), Some(flows)) = (self.ids.last_mut(), self.flows.last_mut()) {
            ids.push(id);
            flows.push(Flow::new(tors[0], tors[1]));
        }
        if let Some(ends) = self.ends.last_mut() {
            ends.push((nics, bytes));
        }
    }

    /// Returns a job's flows, their NICs and their bytes.
    pub(super) fn announced(&self, job: u32) -> impl Iterator<Item = (u32, [NpuId; 2], u64)> {
        let ids = self.ids[job as usize].iter();
        let ends = self.ends[job as usize].iter();
        ids.zip(ends).map(|(&id, &(nics, bytes))| (id, nics, bytes))
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
    /// Returns the flows and their choices.
    pub(super) fn new_paths(&self) -> impl Iterator<Item = (u32, u32)> {
        let choices = self.assignment.choices().iter().copied();
        self.ids.iter().copied().zip(choices).skip(self.kept)
    }

    pub(super) fn decision(&self, now: u64, foreseen: bool) -> Decision {
        Decision {
            time: Time::from_ps(now),
            flows: narrow(self.ids.len()),
            moved: 0,
            max_link_load: self.assignment.max_link_load(),
            load_bound: *self.assignment.load_bound(),
            foreseen,
            is_repair: false,
        }
    }
}

pub(super) struct Controller<'a> {
    jobs: &'a [Job],
    whole: &'a Fabric,
    /// Less what has failed.
    fabric: Cow<'a, Fabric>,
    pub(super) commodities: Commodities,
    options: &'a ClusterOptions,
    /// What has been computed ahead.
    table: Vec<Rc<Decided>>,
    /// Links that may fail together; none where nothing is computed for that.
    outages: Vec<Vec<LinkId>>,
    repairs: Repairs,
    steered: Option<Steered>,
    /// By link.
    is_dead: Vec<bool>,
    pub(super) computed_ahead: u64,
    /// Flows that the router was given since somebody looked.
    pub(super) routed: usize,
}

impl<'a> Controller<'a> {
    pub(super) fn new(
        topology: &'a Topology,
        fabric: &'a Fabric,
        jobs: &'a [Job],
        commodities: Commodities,
        options: &'a ClusterOptions,
    ) -> Self {
        let has_failover = options.failover && options.reroute == Reroute::Always;
        let steered = match options.reroute {
            Reroute::Steady(steady) => Some(Steered::new(
                fabric,
                steady,
                narrow(jobs.len()),
                &commodities,
            )),
            _ => None,
        };
        Self {
            jobs,
            whole: fabric,
            fabric: Cow::Borrowed(fabric),
            commodities,
            options,
            table: Vec::new(),
            outages: match has_failover {
                true => failover::outages(fabric),
                false => Vec::new(),
            },
            repairs: Repairs::new(),
            steered,
            is_dead: vec![false; topology.links().len()],
            computed_ahead: 0,
            routed: 0,
        }
    }

    /// Links fail. Gives those that had not, sorted, and what was to be done then, if that is known.
    pub(super) fn fail(
        &mut self,
        now: u64,
        links: &[LinkId],
    ) -> (Vec<LinkId>, Option<Vec<(u32, u32)>>) {
        let mut fresh = links.to_vec();
        fresh.retain(|link| !self.is_dead[link.index()]);
        fresh.sort_unstable();
        fresh.dedup();
        let repair = match &mut self.steered {
            Some(steered) => steered.fail(now, &fresh),
            None => self.repairs.remove(&fresh),
        };
        for link in &fresh {
            self.is_dead[link.index()] = true;
        }
        self.fabric = Cow::Owned(self.whole.without(&self.is_dead));
        self.table.clear();
        self.repairs.clear();
        (fresh, repair)
    }

    /// Returns the flows without a path of the first of these jobs that has any.
    pub(super) fn check(&self, jobs: &[u32]) -> Result<(), ClusterError> {
        const NAMED: usize = 4;
        let is_cut = |flow: &Flow| {
            let mut choices = self.fabric.choices_between(flow.src, flow.dst);
            choices.next().is_none()
        };
        for &job in jobs {
            let flows = self.commodities.rows(job).map(|(_, flow)| flow);
            let cut: Vec<Flow> = flows.filter(is_cut).collect();
            if cut.is_empty() {
                continue;
            }
            let pairs: BTreeSet<(u32, u32)> = cut.iter().map(|flow| (flow.src, flow.dst)).collect();
            let named = pairs.iter().take(NAMED);
            let named = named.map(|(src, dst)| format!("from ToR {src} to ToR {dst}"));
            let named = named.collect::<Vec<String>>().join(", ");
            let more = match pairs.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and between {more} more pairs"),
            };
            let flows = format!("{named}{more}, for {} of its flows", cut.len());
            return Err(ClusterError::Cut {
                job: self.jobs[job as usize].name.clone(),
                flows,
            });
        }
        Ok(())
    }

    pub(super) fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Computes what to do where one thing fails, for the jobs that communicate.
    pub(super) fn prepare(&mut self, now: u64, active: &[u32], flows: &Flows) {
        if let Some(steered) = &mut self.steered {
            self.computed_ahead = steered.prepare(now, &self.commodities, flows);
        }
        if self.outages.is_empty() {
            return;
        }
        let chosen = active.iter().flat_map(|&job| self.commodities.rows(job));
        let chosen = chosen.filter_map(|(id, Flow { src, dst, .. })| {
            let choice = self.commodities.choices[id as usize]?;
            Some(Chosen {
                id,
                src,
                dst,
                choice,
            })
        });
        let chosen: Vec<Chosen> = chosen.collect();
        self.repairs = failover::repairs(self.whole, &self.outages, &chosen, &self.is_dead);
        self.computed_ahead += self.repairs.len() as u64;
    }

    /// Notes the paths that flows take after a failure, and gives the decision that this is.
    pub(super) fn repaired(
        &mut self,
        now: u64,
        active: &[u32],
        repair: &[(u32, u32)],
    ) -> Result<Decision, ClusterError> {
        self.choose(repair.iter().copied());
        let choices = &self.commodities.choices;
        let rows = active.iter().flat_map(|&job| self.commodities.rows(job));
        let rows = rows.filter_map(|(id, flow)| Some((flow, choices[id as usize]?)));
        let (given, choices): (Vec<Flow>, Vec<u32>) = rows.unzip();
        let assignment = assignment_of(&self.fabric, &given, choices)?;
        Ok(Decision {
            time: Time::from_ps(now),
            flows: 0,
            moved: 0,
            max_link_load: assignment.max_link_load(),
            load_bound: *assignment.load_bound(),
            foreseen: true,
            is_repair: true,
        })
    }

    /// Returns the paths for the flows of the jobs that communicate, and whether they were there already.
    pub(super) fn decide(
        &mut self,
        now: u64,
        active: &[u32],
        starting: &[u32],
        flows: &Flows,
        router: &mut dyn Router,
    ) -> Result<(Rc<Decided>, bool), ClusterError> {
        if let Some(steered) = &mut self.steered {
            let foreseen = steered.follow(now, active);
            let decided = self.steered_paths(active)?;
            self.choose(decided.new_paths());
            return Ok((Rc::new(decided), foreseen));
        }
        let known = self.table.iter().find(|decided| decided.jobs == active);
        if let Some(known) = known.cloned() {
            self.choose(known.new_paths());
            return Ok((known, true));
        }
        let starting = match self.options.reroute {
            Reroute::AtStart => starting,
            _ => active,
        };
        let decided = self.route(now, active, starting, flows, (router, false))?;
        self.choose(decided.new_paths());
        Ok((Rc::new(decided), false))
    }

    /// Returns the paths that the controller has given, as an assignment.
    fn steered_paths(&self, active: &[u32]) -> Result<Decided, ClusterError> {
        let rows = active.iter().flat_map(|&job| self.commodities.rows(job));
        let steered = self.steered.as_ref();
        let chosen = rows.filter_map(|(id, flow)| Some((id, (flow, steered?.choice(id)?))));
        let (ids, paths): (Vec<u32>, Vec<(Flow, u32)>) = chosen.unzip();
        let (flows, choices): (Vec<Flow>, Vec<u32>) = paths.into_iter().unzip();
        Ok(Decided {
            jobs: active.to_vec(),
            ids,
            kept: 0,
            assignment: assignment_of(&self.fabric, &flows, choices)?,
        })
    }

    /// No job communicates any more.
    pub(super) fn stop_all(&mut self, now: u64) {
        if let Some(steered) = &mut self.steered {
            steered.follow(now, &[]);
        }
    }

    /// Returns what the controller was told and said.
    pub(super) fn record(self) -> Option<Record> {
        self.steered.map(|steered| steered.record)
    }

    /// Other paths for flows that lost theirs, all else as it is.
    pub(super) fn reroute(
        &mut self,
        now: u64,
        jobs: &[u32],
        cut: &[u32],
        flows: &Flows,
        router: &mut dyn Router,
    ) -> Result<Vec<(u32, u32)>, ClusterError> {
        let decided = self.route(now, jobs, jobs, flows, (router, false))?;
        let is_cut = |(flow, _): &(u32, u32)| cut.binary_search(flow).is_ok();
        Ok(decided.new_paths().filter(is_cut).collect())
    }

    fn choose(&mut self, paths: impl Iterator<Item = (u32, u32)>) {
        for (flow, choice) in paths {
            self.commodities.choices[flow as usize] = Some(choice);
        }
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
            fabric: &self.fabric,
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
        let sets = predict(now, jobs, &self.commodities, flows, self.options);
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

//! One synthesized plan, proved and simulated when somebody asks when it ends.

use std::sync::{Arc, OnceLock};

use crate::plan::{Plan, PlanError, Routing};
use crate::progress::Progress;
use crate::simulate::{Run, SimulateOptions, simulate};
use crate::synthesis::{GREEDY, Problem, Timetables, Unwinding};
use crate::topology::equal::EqualPaths;
use crate::topology::{LatencyModel, Topology};
use crate::units::Time;
use crate::verify::{Verified, verify};

/// Transfers up to which plans are simulated, to choose among them and to say when they end.
const MAX_SIMULATED: u128 = 300_000;

/// When a plan ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Its time.
    pub time: Time,
    /// Whether that was simulated, at link fidelity; else it is when the timetable ends.
    pub is_simulated: bool,
}

/// A plan that was synthesized with one unwinding.
#[derive(Clone, Debug)]
pub struct Candidate {
    topology: Arc<Topology>,
    problem: Arc<Problem>,
    unwinding: Vec<Unwinding>,
    latency: LatencyModel,
    /// None of a plan made without.
    times: Option<Timetables>,
    algorithm: String,
    plan: OnceLock<Arc<Plan>>,
    proof: OnceLock<Arc<Verified>>,
    run: OnceLock<Arc<Run>>,
    ending: OnceLock<Ending>,
}

/// Where a plan runs: the network, how its switches are unwound, what latency does to a link.
pub(crate) type On = (Arc<Topology>, Vec<Unwinding>, LatencyModel);

impl Candidate {
    /// Returns a plan still to be made of timetables, by the name of `greedy`.
    pub fn of_timetables(on: On, problem: Arc<Problem>, times: Timetables) -> Self {
        let (topology, unwinding, latency) = on;
        Self {
            topology,
            problem,
            unwinding,
            latency,
            times: Some(times),
            algorithm: GREEDY.to_owned(),
            plan: OnceLock::new(),
            proof: OnceLock::new(),
            run: OnceLock::new(),
            ending: OnceLock::new(),
        }
    }

    /// Returns a plan that was made without a timetable.
    pub fn of_plan(on: On, problem: Arc<Problem>, plan: Plan) -> Self {
        let (topology, unwinding, latency) = on;
        Self {
            topology,
            problem,
            unwinding,
            latency,
            times: None,
            algorithm: plan.algorithm().to_owned(),
            plan: OnceLock::from(Arc::new(plan)),
            proof: OnceLock::new(),
            run: OnceLock::new(),
            ending: OnceLock::new(),
        }
    }

    /// Returns the same under the name of another algorithm; a plan that is made already keeps its own.
    pub fn named(mut self, algorithm: &str) -> Self {
        algorithm.clone_into(&mut self.algorithm);
        self
    }

    /// Returns the problem that it solves.
    pub fn problem(&self) -> &Arc<Problem> {
        &self.problem
    }

    /// Returns how switches were unwound.
    pub fn unwinding(&self) -> &[Unwinding] {
        &self.unwinding
    }

    /// Returns the network.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// Returns the plan, made now where it was not made before.
    pub fn plan(&self) -> &Arc<Plan> {
        self.plan.get_or_init(|| {
            let times = self.times.as_ref().expect("it has a plan or timetables");
            Arc::new(self.problem.plan(&self.algorithm, times))
        })
    }

    /// Returns the proof of the plan, where there is one by now.
    pub fn proof(&self) -> Option<&Arc<Verified>> {
        self.proof.get()
    }

    /// Returns the run of the plan at link fidelity, where it was simulated by now.
    pub fn run(&self) -> Option<&Arc<Run>> {
        self.run.get()
    }

    /// Returns what latency does to links in its simulation.
    pub fn latency(&self) -> LatencyModel {
        self.latency
    }

    /// When the timetable ends; `None` of a plan made without one.
    pub fn end(&self) -> Option<Time> {
        self.times.as_ref().map(|times| Time::from_ps(times.end()))
    }

    /// Returns whether [`ending`](Self::ending) simulates: plans of up to 300,000 transfers, and those without a
    /// timetable.
    pub fn is_simulated(&self) -> bool {
        match self.ending.get() {
            Some(ending) => ending.is_simulated,
            None => self.times.is_none() || self.problem.work().transfers() <= MAX_SIMULATED,
        }
    }

    /// When the plan ends on the network itself, proved and simulated; of a large one, when its timetable does.
    ///
    /// # Errors
    /// [`PlanError::Interrupted`]; [`PlanError::TooLong`]; [`PlanError::Malformed`] for a plan that is wrong.
    pub fn ending(&self, progress: &mut dyn Progress) -> Result<Ending, PlanError> {
        if let Some(ending) = self.ending.get() {
            return Ok(*ending);
        }
        let found = match self.end() {
            Some(time) if !self.is_simulated() => Ending {
                time,
                is_simulated: false,
            },
            _ => self.simulated(progress)?,
        };
        Ok(*self.ending.get_or_init(|| found))
    }

    fn simulated(&self, progress: &mut dyn Progress) -> Result<Ending, PlanError> {
        let plan = Arc::clone(self.plan());
        let proof = Arc::new(verify(plan, Arc::clone(&self.topology), progress)?);
        let options = SimulateOptions {
            latency: self.latency,
            ..SimulateOptions::default()
        };
        let run = simulate(&proof, &options, progress)?;
        let time = run.time;
        self.proof.get_or_init(|| proof);
        self.run.get_or_init(|| Arc::new(run));
        Ok(Ending {
            time,
            is_simulated: true,
        })
    }

    /// Returns the plan spread over equal paths: balanced only where that is no slower, since unwinding has spread what
    /// shares links; large plans stay as they are then, and so does a plan whose simulation is stopped.
    ///
    /// # Errors
    /// As [`ending`](Self::ending).
    pub fn routed(self, routing: Routing, progress: &mut dyn Progress) -> Result<Self, PlanError> {
        if routing == Routing::Single || !EqualPaths::may_exist(&self.topology) {
            return Ok(self);
        }
        let before = match self.ending(progress) {
            Err(PlanError::Interrupted(_)) if routing == Routing::Balanced => return Ok(self),
            before => before?,
        };
        if routing == Routing::Balanced && !before.is_simulated {
            return Ok(self);
        }
        let plan = Plan::clone(self.plan()).released(&self.topology);
        let spread = Self {
            topology: Arc::clone(&self.topology),
            problem: Arc::clone(&self.problem),
            unwinding: self.unwinding.clone(),
            times: None,
            algorithm: self.algorithm.clone(),
            plan: OnceLock::from(Arc::new(plan.routed(&self.topology, routing))),
            proof: OnceLock::new(),
            run: OnceLock::new(),
            ending: OnceLock::new(),
            latency: self.latency,
        };
        // At link fidelity nobody can tell when a sprayed plan ends.
        if routing == Routing::Spray || !before.is_simulated {
            let is_simulated = false;
            spread.ending.get_or_init(|| Ending {
                is_simulated,
                ..before
            });
            return Ok(spread);
        }
        match spread.ending(progress) {
            Err(PlanError::Interrupted(_)) if routing == Routing::Balanced => Ok(self),
            Ok(after) if routing == Routing::Balanced && after.time > before.time => Ok(self),
            Err(why) => Err(why),
            Ok(_) => Ok(spread),
        }
    }
}

//! A schedule: lanes, and the order in which each rail serves them.

use super::dimension::{Model, Policy, Tasks, Timeline, replay, simulate};
use super::rail::is_too_long;
use super::{Lane, Rail};
use crate::collective::CollectiveKind;
use crate::explain::Explain;
use crate::id::fit;

/// Parts that a lane travels in: while one waits for a step's latency, the other sends. On a ring each
/// goes its own way.
pub const PARTS: usize = 2;

/// Lanes of a user's own that make no schedule.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[explain(why("{why}"), remedy("{remedy}"))]
pub struct BadLanes {
    why: String,
    remedy: String,
}

impl BadLanes {
    fn new(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            remedy: remedy.into(),
        }
    }
}

/// Lanes on rails, and the order in which each rail serves their steps.
///
/// The order comes from a simulation, is the same on every NPU, and holds whatever the timing turns out
/// to be: a step that is ready early waits for its turn.
///
/// # Source
/// Themis, section 4.6.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Name of the algorithm that made the schedule.
    pub algorithm: &'static str,
    /// All-reduce, reduce-scatter or all-gather.
    pub kind: CollectiveKind,
    /// Rails that the lanes travel on.
    pub rails: Vec<Rail>,
    /// The chunks.
    pub lanes: Vec<Lane>,
    /// Which of the operations that are ready a rail begins.
    pub policy: Policy,
    /// Model that the schedule was made for.
    pub model: Model,
    /// When each task starts and ends, and each rail's order.
    pub timeline: Timeline,
}

impl Schedule {
    /// Returns the schedule that a policy makes of lanes.
    pub fn new(
        kind: CollectiveKind,
        rails: Vec<Rail>,
        lanes: Vec<Lane>,
        policy: Policy,
        model: Model,
    ) -> Self {
        let timeline = simulate(&rails, &lanes, PARTS, policy, model);
        Self {
            algorithm: "schedule",
            kind,
            rails,
            lanes,
            policy,
            model,
            timeline,
        }
    }

    /// Returns the same, made by another name.
    pub fn named(mut self, algorithm: &'static str) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Returns the schedule of lanes that a user gives, as from a file.
    ///
    /// # Errors
    /// [`BadLanes`]: what is wrong with them.
    pub fn of_lanes(
        kind: CollectiveKind,
        rails: Vec<Rail>,
        lanes: Vec<Lane>,
        policy: Policy,
        model: Model,
    ) -> Result<Self, BadLanes> {
        if rails.is_empty() {
            let why = "the topology has no dimension of more than one NPU";
            return Err(BadLanes::new(why, "use a product that has one"));
        }
        let bytes = lanes
            .iter()
            .map(|lane| lane.bytes)
            .fold(0, u64::saturating_add);
        if is_too_long(&rails, bytes, lanes.len()) {
            let why = "it could take longer than 46 days";
            return Err(BadLanes::new(
                why,
                "make sizes smaller or bandwidths larger",
            ));
        }
        const MAX_STEPS: usize = 1 << 26;
        let steps: usize = rails.iter().map(Rail::step_count).sum();
        let all = lanes.len().saturating_mul(2 * PARTS).saturating_mul(steps);
        if all > MAX_STEPS {
            let why = format!("{} lanes of {steps} steps a pass are too many", lanes.len());
            return Err(BadLanes::new(why, "give fewer lanes"));
        }
        if lanes.is_empty() {
            return Err(BadLanes::new("there is no lane", "give one or more"));
        }
        for (i, lane) in lanes.iter().enumerate() {
            let passes = [
                (
                    "reduce_scatter",
                    &lane.reduce_scatter,
                    kind != CollectiveKind::AllGather,
                ),
                (
                    "all_gather",
                    &lane.all_gather,
                    kind != CollectiveKind::ReduceScatter,
                ),
            ];
            for (name, order, is_due) in passes {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                let right = if is_due { fit(rails.len()) } else { 0 };
                if !sorted.iter().copied().eq(0..right) {
                    let remedy = format!("a lane of {kind} names each of {right} dimensions once");
                    let why = format!("lane {i}: {name} is {order:?}");
                    return Err(BadLanes::new(why, remedy));
                }
            }
            if lane.bytes == 0 {
                let why = format!("lane {i} has 0 bytes");
                return Err(BadLanes::new(why, "give it some, or leave it out"));
            }
        }
        Ok(Self::new(kind, rails, lanes, policy, model))
    }

    /// Operations of each lane.
    pub fn stages(&self) -> usize {
        self.lanes.first().map_or(0, Lane::len)
    }

    /// Runs it in another model, with every rail's order as it is.
    pub fn simulate(&self, model: Model) -> Timeline {
        let tasks = Tasks::of(&self.rails, &self.lanes, PARTS);
        replay(&tasks, &self.timeline.served, model)
    }
}

//! A schedule: lanes, and the order in which each rail serves them.

use super::dimension::{Model, Policy, Tasks, Timeline, replay, simulate};
use super::{Lane, Rail};
use crate::collective::CollectiveKind;

/// Parts that a lane travels in: while one waits for a step's latency, the other sends. On a ring each
/// goes its own way.
pub const PARTS: usize = 2;

/// Lanes on rails, and the order in which each rail serves their steps.
///
/// The order comes from a simulation, is the same on every NPU, and holds whatever the timing turns out
/// to be: a step that is ready early waits for its turn.
///
/// # Source
/// Themis, section 4.6.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// What made it.
    pub algorithm: &'static str,
    /// All-reduce, reduce-scatter or all-gather.
    pub kind: CollectiveKind,
    /// What the lanes travel on.
    pub rails: Vec<Rail>,
    /// The chunks.
    pub lanes: Vec<Lane>,
    /// Which of the operations that are ready a rail begins.
    pub policy: Policy,
    /// What it was made for.
    pub model: Model,
    /// When each task starts and ends, and each rail's order.
    pub timeline: Timeline,
}

impl Schedule {
    /// The schedule that a policy makes of lanes.
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

    /// The same, made by another name.
    pub fn named(mut self, algorithm: &'static str) -> Self {
        self.algorithm = algorithm;
        self
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

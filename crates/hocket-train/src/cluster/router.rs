//! Who gives flows their paths, and when.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::ClusterError;
use crate::id::narrow;
use crate::routing::controller;
use crate::routing::{Assignment, Fabric, Flow, Scheme, add_least_loaded, assign, assignment_of};
use crate::units::Seed;

/// When flows are given paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reroute {
    /// All flows that communicate, whenever a job starts or stops to: what a controller does.
    #[default]
    Always,
    /// A job's flows when it starts to communicate, by the controller that clusters run: others keep their
    /// paths but for the few that make room for them. The router is not asked.
    Steady(controller::Options),
    /// A job's flows when it starts to communicate; they keep their paths until it stops.
    AtStart,
    /// All flows of all jobs, once and for ever: what hashing switches do.
    Never,
    /// Never: packets of every flow take all its paths in turn.
    Spray,
}

/// Flows that want paths.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// The fabric, less what has failed.
    pub fabric: &'a Fabric,
    /// Flows between ToRs, job by job.
    pub flows: &'a [Flow],
    /// Job that each flow belongs to.
    pub jobs: &'a [u32],
    /// Choices of the first of them, which keep their paths ([`Reroute::AtStart`]). Of the schemes only
    /// least-loaded uses what they load.
    pub fixed: &'a [u32],
    /// `true` if the answer is computed ahead and may never be needed.
    pub is_ahead: bool,
}

/// A controller that gives flows their paths.
pub trait Router {
    /// Assigns every flow a path, those that are fixed the one that they have.
    ///
    /// # Errors
    /// Any error that [`super::simulate`] is to return.
    fn route(&mut self, problem: &Problem<'_>) -> Result<Assignment, ClusterError>;
}

/// One of the schemes of [`crate::routing`].
#[derive(Clone, Copy, Debug)]
pub struct ByScheme {
    /// The scheme.
    pub scheme: Scheme,
    /// Its seed, the same each time.
    pub seed: Seed,
    /// The order in which flows are taken, for schemes to which it matters.
    pub order: FlowOrder,
}

/// In what order a scheme takes flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowOrder {
    /// Job by job, group by group.
    #[default]
    Job,
    /// ToR by ToR, what leaves one and what enters one apart, the side with most flows first: as in the
    /// code released with the paper.
    Tor,
}

impl Router for ByScheme {
    fn route(&mut self, problem: &Problem<'_>) -> Result<Assignment, ClusterError> {
        let Problem {
            fabric,
            flows,
            fixed,
            ..
        } = *problem;
        if self.scheme == Scheme::LeastLoaded {
            return Ok(add_least_loaded(fabric, flows, fixed)?);
        }
        let mut choices = match self.order {
            FlowOrder::Job if fixed.is_empty() => {
                return Ok(assign(fabric, flows, self.scheme, self.seed)?);
            }
            FlowOrder::Job => assign(fabric, flows, self.scheme, self.seed)?
                .choices()
                .to_vec(),
            FlowOrder::Tor => {
                let order = by_tor(flows);
                let reordered: Vec<Flow> = order.iter().map(|&i| flows[i as usize]).collect();
                let made = assign(fabric, &reordered, self.scheme, self.seed)?;
                let mut choices = vec![0; flows.len()];
                for (&i, &choice) in order.iter().zip(made.choices()) {
                    choices[i as usize] = choice;
                }
                choices
            }
        };
        choices[..fixed.len()].copy_from_slice(fixed);
        Ok(assignment_of(fabric, flows, choices)?)
    }
}

/// Returns the flows in the order [`FlowOrder::Tor`]; of sides with as many flows the leaving ones of the lowest ToR
/// come first.
fn by_tor(flows: &[Flow]) -> Vec<u32> {
    let mut sides: BTreeMap<(bool, u32), Vec<u32>> = BTreeMap::new();
    for (i, flow) in flows.iter().enumerate() {
        sides.entry((false, flow.src)).or_default().push(narrow(i));
        sides.entry((true, flow.dst)).or_default().push(narrow(i));
    }
    let mut sides: Vec<Vec<u32>> = sides.into_values().collect();
    sides.sort_by_key(|side| Reverse(side.len()));
    let mut is_taken = vec![false; flows.len()];
    let mut order: Vec<u32> = sides.concat();
    order.retain(|&i| !std::mem::replace(&mut is_taken[i as usize], true));
    order
}

//! A path for each flow, and what that loads.

use super::{Fabric, Flow, LoadBound, Paths, RoutingError, hops, load_bound};
use crate::id::LinkId;

/// A choice for each flow, and what they load.
///
/// Loads are in the unit of the weights: what a flow weighs on links of [`Fabric::reference`], which
/// is all of them where they are alike, and as often more on a link as it is narrower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    choices: Vec<u32>,
    /// By slot of the fabric.
    loads: Vec<u64>,
    /// Slots of links up from ToRs.
    lower: usize,
    max_link_load: u64,
    load_bound: LoadBound,
}

impl Assignment {
    pub(super) fn new(
        fabric: &Fabric,
        flows: &[Flow],
        choices: Vec<u32>,
        load_bound: LoadBound,
    ) -> Self {
        let loads = loads(fabric, flows, &choices);
        Self {
            choices,
            max_link_load: loads.iter().copied().max().unwrap_or(0),
            loads,
            lower: fabric.blocks()[1],
            load_bound,
        }
    }

    /// Returns the number of the highest switch that each flow crosses: a spine; on three levels a core, and an
    /// aggregation switch for flows within a pod.
    pub fn choices(&self) -> &[u32] {
        &self.choices
    }

    /// Load of the link from each ToR to each spine, or to its aggregation switch of each plane, rows
    /// of ToRs; 0 where there is no link.
    pub fn up_loads(&self) -> &[u64] {
        &self.loads[..self.lower]
    }

    /// Load of the link to each ToR from each spine, or from its aggregation switch of each plane,
    /// rows of ToRs; 0 where there is no link.
    pub fn down_loads(&self) -> &[u64] {
        &self.loads[self.lower..2 * self.lower]
    }

    /// Returns the links between switches with their loads, in no order of note.
    ///
    /// # Panics
    /// If `fabric` is not that of the assignment.
    pub fn link_loads(&self, fabric: &Fabric) -> impl Iterator<Item = (LinkId, u64)> {
        assert_eq!(fabric.links.len(), self.loads.len(), "another fabric");
        let loaded = |(link, &load): (&Option<LinkId>, &u64)| Some(((*link)?, load));
        fabric.links.iter().zip(&self.loads).filter_map(loaded)
    }

    /// Returns the largest load of a link.
    pub fn max_link_load(&self) -> u64 {
        self.max_link_load
    }

    /// Returns a load that no assignment can keep every link below, and why.
    pub fn load_bound(&self) -> &LoadBound {
        &self.load_bound
    }

    /// Returns the links that each flow takes, from source to destination: two, or four through a core.
    ///
    /// # Panics
    /// If `fabric` or `flows` are not those of the assignment.
    pub fn paths(&self, fabric: &Fabric, flows: &[Flow]) -> Paths {
        let mut paths = Paths::with_capacity(flows.len());
        for (flow, &choice) in flows.iter().zip(&self.choices) {
            paths.push(|links| {
                let there = fabric.route(flow.src, flow.dst, choice, links);
                assert!(there, "an assignment only uses paths that are there");
            });
        }
        paths
    }
}

/// Returns the assignment that choices from elsewhere make.
///
/// # Errors
/// As [`super::assign`]; [`RoutingError::BadChoices`] for another number of choices than flows, or
/// one that a flow does not have.
pub fn assignment_of(
    fabric: &Fabric,
    flows: &[Flow],
    choices: Vec<u32>,
) -> Result<Assignment, RoutingError> {
    fabric.check(flows)?;
    check_choices(fabric, flows, &choices)?;
    if choices.len() < flows.len() {
        let why = format!("{} choices for {} flows", choices.len(), flows.len());
        return Err(RoutingError::BadChoices { why });
    }
    let load_bound = load_bound::least_load(fabric, flows);
    Ok(Assignment::new(fabric, flows, choices, load_bound))
}

/// Assigns flows that come to others the least loaded paths, as [`super::Scheme::LeastLoaded`] does: the first flows
/// have their choices, `fixed`, and keep them.
///
/// # Errors
/// As [`super::assign`]; [`RoutingError::BadChoices`] for more choices than flows, or one that a flow
/// does not have.
pub fn add_least_loaded(
    fabric: &Fabric,
    flows: &[Flow],
    fixed: &[u32],
) -> Result<Assignment, RoutingError> {
    fabric.check(flows)?;
    check_choices(fabric, flows, fixed)?;
    let load_bound = load_bound::least_load(fabric, flows);
    let choices = hops::least_loaded(fabric, flows, fixed);
    Ok(Assignment::new(fabric, flows, choices, load_bound))
}

/// Whether the first flows have these choices.
fn check_choices(fabric: &Fabric, flows: &[Flow], choices: &[u32]) -> Result<(), RoutingError> {
    if choices.len() > flows.len() {
        let why = format!("{} choices for {} flows", choices.len(), flows.len());
        return Err(RoutingError::BadChoices { why });
    }
    for (i, (flow, &choice)) in flows.iter().zip(choices).enumerate() {
        if fabric.slots(flow.src, flow.dst, choice).is_none() {
            let Flow { src, dst, .. } = flow;
            let why = format!("flow {i}: no path joins ToRs {src} and {dst} by choice {choice}");
            return Err(RoutingError::BadChoices { why });
        }
    }
    Ok(())
}

/// Loads by slot.
pub(super) fn loads(fabric: &Fabric, flows: &[Flow], choices: &[u32]) -> Vec<u64> {
    let mut loads = vec![0; fabric.blocks()[4]];
    if fabric.levels() == 2 && fabric.is_even() {
        let (up, down) = loads.split_at_mut(fabric.blocks()[1]);
        for (flow, &spine) in flows.iter().zip(choices) {
            let slot = |tor: u32| tor as usize * fabric.columns + spine as usize;
            up[slot(flow.src)] += flow.weight;
            down[slot(flow.dst)] += flow.weight;
        }
        return loads;
    }
    for (flow, &choice) in flows.iter().zip(choices) {
        for slot in fabric.slots_of(flow.src, flow.dst, choice).iter() {
            loads[slot] += flow.weight * fabric.scale(slot);
        }
    }
    loads
}

//! Packets of a flow sprayed over all its paths: no choice, and loads that are no whole numbers.

use super::{Fabric, Flow, LoadBound, RoutingError, load_bound};
use crate::id::LinkId;

/// What every link carries when every flow is spread evenly over all its choices.
#[derive(Clone, Debug, PartialEq)]
pub struct Sprayed {
    loads: Vec<f64>,
    lower: usize,
    load_bound: LoadBound,
}

impl Sprayed {
    /// Load of the link from each ToR to each spine or plane, rows of ToRs; 0 where there is no link.
    pub fn up_loads(&self) -> &[f64] {
        &self.loads[..self.lower]
    }

    /// Load of the link to each ToR from each spine or plane, rows of ToRs; 0 where there is no link.
    pub fn down_loads(&self) -> &[f64] {
        &self.loads[self.lower..2 * self.lower]
    }

    /// Returns the links between switches with their loads, in no order of note.
    ///
    /// # Panics
    /// If `fabric` is not the one that was loaded.
    pub fn link_loads(&self, fabric: &Fabric) -> impl Iterator<Item = (LinkId, f64)> {
        assert_eq!(fabric.links.len(), self.loads.len(), "another fabric");
        let loaded = |(link, &load): (&Option<LinkId>, &f64)| Some(((*link)?, load));
        fabric.links.iter().zip(&self.loads).filter_map(loaded)
    }

    /// Returns the largest load of a link, in the unit of the weights.
    pub fn max_link_load(&self) -> f64 {
        self.loads.iter().copied().fold(0.0, f64::max)
    }

    /// Returns a load that no assignment of whole flows can keep every link below. Spraying can.
    pub fn load_bound(&self) -> &LoadBound {
        &self.load_bound
    }
}

/// Spreads every flow evenly over all its choices; sums are rounded to `f64` in the order of flows.
///
/// # Complexity
/// O(n S) for n flows of S choices.
///
/// # Errors
/// As [`super::assign`].
pub fn spray(fabric: &Fabric, flows: &[Flow]) -> Result<Sprayed, RoutingError> {
    fabric.check(flows)?;
    let mut loads = vec![0.0; fabric.blocks()[4]];
    for &Flow { src, dst, weight } in flows {
        let share = weight as f64 / fabric.choices_between(src, dst).count() as f64;
        for choice in fabric.choices_between(src, dst) {
            for slot in fabric.slots_of(src, dst, choice).iter() {
                loads[slot] += share * fabric.scale(slot) as f64;
            }
        }
    }
    Ok(Sprayed {
        loads,
        lower: fabric.blocks()[1],
        load_bound: load_bound::least_load(fabric, flows),
    })
}

//! Path assignment on a two-level Clos: which spine each flow between two ToRs crosses.
//!
//! ```text
//! Topology -> Fabric --+
//!                      +- assign (a scheme) -> Assignment: spines, loads, certificate
//! Flows ---------------+
//! ```
//!
//! # Source
//! Cohen, Yallouz, Schapira, Belkar, Mizrahi: Routing for large ML models, sections 3 to 5. What
//! differs: flows may have weights (the paper's weigh 1), links may fail one by one, and every
//! assignment comes with a lower bound.

mod annealing;
mod certificate;
mod coloring;
mod ecmp;
mod exchange;
mod fabric;
mod greedy;

pub use certificate::{Certificate, Witness};
pub use ecmp::{Ecmp, Hash};
pub use fabric::Fabric;

use crate::id::LinkId;
use crate::units::Seed;

/// Data that goes from below one ToR to below another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Number of the ToR where it starts.
    pub src: u32,
    /// Number of the ToR where it ends.
    pub dst: u32,
    /// Its share of a link, in any unit that all flows share: 1, bytes, bytes per second.
    pub weight: u64,
}

impl Flow {
    /// A flow that weighs 1.
    pub const fn new(src: u32, dst: u32) -> Self {
        Self {
            src,
            dst,
            weight: 1,
        }
    }
}

/// How flows are given their spines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Algorithm 1 of the paper: flows in order, each to the path whose busiest link is the least
    /// loaded so far, the lowest spine where several are. At most twice the optimum on a whole
    /// fabric with flows of weight 1 (Theorem 2).
    Greedy,
    /// By a hash of the header, as switches do.
    Ecmp(Ecmp),
    /// Flows in order, each to the least loaded uplink of its own ToR, which knows no other switch's
    /// links; the lowest spine where several are.
    LeastLoaded,
    /// Simulated annealing over one spine for each destination host, as Hedera has it.
    Annealing,
    /// Balanced colouring by Euler splits where every ToR reaches every spine: the least maximum
    /// for flows of one weight, and at most the heaviest flow above the mean of a ToR's links for
    /// others, less what exchanges then gain. Greedy and exchanges where links are missing: never
    /// worse than greedy.
    EdgeColoring,
}

/// Why flows could not be assigned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoutingError {
    /// A network that is no two-level Clos.
    #[error(
        "{name:?} is no two-level Clos: {why}; make one with clos, less switches or links if they failed"
    )]
    NotClos {
        /// The network.
        name: String,
        /// What is not as in a Clos.
        why: String,
    },
    /// A ToR that was never there.
    #[error("flow {flow}: there is no ToR {tor}; ToRs are 0 to {last}")]
    UnknownTor {
        /// Position of the flow.
        flow: usize,
        /// The number asked for.
        tor: u32,
        /// The highest number.
        last: u32,
    },
    /// A flow that does not leave its ToR.
    #[error("flow {flow} goes from ToR {tor} to itself and needs no spine; leave it out")]
    SameTor {
        /// Position of the flow.
        flow: usize,
        /// The ToR.
        tor: u32,
    },
    /// Weights whose sum is no 64-bit number.
    #[error("the weights of all flows together pass 2^63; give them in a larger unit")]
    TooHeavy,
    /// Failures that leave flows without a path.
    #[error(
        "no spine joins the ends of {flows}; leave them out or keep a spine that both ToRs reach"
    )]
    Cut {
        /// The flows, in words.
        flows: String,
    },
    /// Spines that do not fit the flows.
    #[error("{why}")]
    BadSpines {
        /// What is wrong.
        why: String,
    },
}

/// A spine for each flow, and what that loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    spines: Vec<u32>,
    up: Vec<u64>,
    down: Vec<u64>,
    max_link_load: u64,
    certificate: Certificate,
}

impl Assignment {
    /// Number of the spine that each flow crosses.
    pub fn spines(&self) -> &[u32] {
        &self.spines
    }

    /// Load of the link from each ToR to each spine, rows of ToRs; 0 where there is no link.
    pub fn up_loads(&self) -> &[u64] {
        &self.up
    }

    /// Load of the link to each ToR from each spine, rows of ToRs; 0 where there is no link.
    pub fn down_loads(&self) -> &[u64] {
        &self.down
    }

    /// The largest load of a link, in the unit of the weights.
    pub fn max_link_load(&self) -> u64 {
        self.max_link_load
    }

    /// A load that no assignment can keep every link below, and why.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The two links that each flow takes: up to its spine and down again.
    ///
    /// # Panics
    /// If `fabric` or `flows` are not those of the assignment.
    pub fn paths(&self, fabric: &Fabric, flows: &[Flow]) -> Vec<[LinkId; 2]> {
        let path = |(flow, &spine): (&Flow, &u32)| {
            let path = fabric.path(flow.src, flow.dst, spine);
            path.expect("an assignment only uses paths that are there")
        };
        flows.iter().zip(&self.spines).map(path).collect()
    }
}

/// Gives every flow a spine.
///
/// # Complexity
/// With n flows, S spines and T ToRs: greedy and least-loaded O(n S), ECMP O(n), edge colouring
/// O((n + T) log S) for S a power of two, else a shifted chain for each flow of the smallest colour
/// class on top; annealing O(flows moved) for each of its steps.
///
/// # Errors
/// [`RoutingError`] for ToRs that are not there, a flow from a ToR to itself, weights that do not
/// add up, and flows without a path.
pub fn assign(
    fabric: &Fabric,
    flows: &[Flow],
    scheme: Scheme,
    seed: Seed,
) -> Result<Assignment, RoutingError> {
    assign_after(fabric, flows, &[], scheme, seed)
}

/// Gives a spine to every flow after the first, `fixed`, which keep the spines that they have.
///
/// Greedy and least-loaded heed what the first flows load; the other schemes spread all flows as if
/// none were fixed, and what is fixed then stays where it is.
///
/// # Complexity
/// As [`assign`].
///
/// # Errors
/// As [`assign`]; [`RoutingError::BadSpines`] for more fixed spines than flows, or one that a flow
/// cannot cross.
pub fn assign_after(
    fabric: &Fabric,
    flows: &[Flow],
    fixed: &[u32],
    scheme: Scheme,
    seed: Seed,
) -> Result<Assignment, RoutingError> {
    check(fabric, flows)?;
    check_spines(fabric, flows, fixed)?;
    let certificate = certificate::certify(fabric, flows);
    let mut spines = match scheme {
        Scheme::Greedy => greedy::greedy_after(fabric, flows, fixed),
        Scheme::Ecmp(options) => ecmp::ecmp(fabric, flows, options, seed),
        Scheme::LeastLoaded => greedy::least_loaded(fabric, flows, fixed),
        Scheme::Annealing => annealing::anneal(fabric, flows, certificate.load, seed),
        Scheme::EdgeColoring => {
            let start = match fabric.is_complete() {
                true => coloring::color(fabric, flows),
                false => greedy::greedy(fabric, flows),
            };
            exchange::improve(fabric, flows, start, certificate.load)
        }
    };
    spines[..fixed.len()].copy_from_slice(fixed);
    Ok(loaded(fabric, flows, spines, certificate))
}

/// The assignment that spines from elsewhere make.
///
/// # Errors
/// As [`assign`]; [`RoutingError::BadSpines`] for another number of spines than flows, or a spine
/// that a flow cannot cross.
pub fn assignment_of(
    fabric: &Fabric,
    flows: &[Flow],
    spines: Vec<u32>,
) -> Result<Assignment, RoutingError> {
    check(fabric, flows)?;
    if spines.len() != flows.len() {
        let why = format!("{} spines for {} flows", spines.len(), flows.len());
        return Err(RoutingError::BadSpines { why });
    }
    check_spines(fabric, flows, &spines)?;
    let certificate = certificate::certify(fabric, flows);
    Ok(loaded(fabric, flows, spines, certificate))
}

/// Whether the first flows can cross these spines.
fn check_spines(fabric: &Fabric, flows: &[Flow], spines: &[u32]) -> Result<(), RoutingError> {
    if spines.len() > flows.len() {
        let why = format!("{} spines for {} flows", spines.len(), flows.len());
        return Err(RoutingError::BadSpines { why });
    }
    for (i, (flow, &spine)) in flows.iter().zip(spines).enumerate() {
        if fabric.path(flow.src, flow.dst, spine).is_none() {
            let Flow { src, dst, .. } = flow;
            let why = format!("flow {i}: spine {spine} does not join ToRs {src} and {dst}");
            return Err(RoutingError::BadSpines { why });
        }
    }
    Ok(())
}

fn loaded(
    fabric: &Fabric,
    flows: &[Flow],
    spines: Vec<u32>,
    certificate: Certificate,
) -> Assignment {
    let [up, down] = loads(fabric, flows, &spines);
    let max_link_load = up.iter().chain(&down).copied().max().unwrap_or(0);
    Assignment {
        spines,
        up,
        down,
        max_link_load,
        certificate,
    }
}

/// Loads of up- and downlinks.
fn loads(fabric: &Fabric, flows: &[Flow], spines: &[u32]) -> [Vec<u64>; 2] {
    let links = fabric.tor_count() * fabric.spine_count();
    let mut loads = [vec![0; links], vec![0; links]];
    for (flow, &spine) in flows.iter().zip(spines) {
        loads[0][fabric.slot(flow.src, spine)] += flow.weight;
        loads[1][fabric.slot(flow.dst, spine)] += flow.weight;
    }
    loads
}

fn check(fabric: &Fabric, flows: &[Flow]) -> Result<(), RoutingError> {
    let count = fabric.tor_count() as u32;
    let mut total = 0u64;
    for (flow, &Flow { src, dst, weight }) in flows.iter().enumerate() {
        if let Some(tor) = [src, dst].into_iter().find(|&tor| tor >= count) {
            let last = count - 1;
            return Err(RoutingError::UnknownTor { flow, tor, last });
        }
        if src == dst {
            return Err(RoutingError::SameTor { flow, tor: src });
        }
        total = total.saturating_add(weight);
    }
    if total >= 1 << 63 {
        return Err(RoutingError::TooHeavy);
    }
    let cut: Vec<usize> = (0..flows.len())
        .filter(|&i| {
            let mut spines = fabric.spines_between(flows[i].src, flows[i].dst);
            spines.next().is_none()
        })
        .collect();
    if cut.is_empty() {
        return Ok(());
    }
    Err(RoutingError::Cut {
        flows: listed(&cut, flows),
    })
}

/// `flows 3 (0 -> 5), 7 (1 -> 5) and 4 more`.
fn listed(which: &[usize], flows: &[Flow]) -> String {
    const NAMED: usize = 8;
    let name = |&i: &usize| format!("{i} ({} -> {})", flows[i].src, flows[i].dst);
    let named: Vec<String> = which.iter().take(NAMED).map(name).collect();
    let kind = if which.len() == 1 { "flow" } else { "flows" };
    let more = match which.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{kind} {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests;

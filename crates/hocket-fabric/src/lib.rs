//! Path assignment on a two-level Clos or a three-level fat tree: which switches each flow between
//! two ToRs crosses.
//!
//! ```text
//! Topology -> Fabric --+
//!                      +- assign (a scheme) -> Assignment: choices, loads, certificate
//! Flows ---------------+
//! ```
//!
//! A path goes up and down again, so that it is known by its highest switch: that is a flow's choice.
//!
//! # Source
//! Cohen, Yallouz, Schapira, Belkar, Mizrahi: Routing for large ML models, sections 3 to 5. What
//! differs: flows may have weights (the paper's weigh 1) and links bandwidths, there may be three
//! levels, links may fail one by one, and every assignment comes with a lower bound.

#![forbid(unsafe_code)]

mod error;
mod sets;
mod fabric;
mod pods;
mod read;
mod paths;
mod load_bound;
mod hops;
mod assignment;
mod ecmp;
mod greedy;
mod parallel;
mod exchange;
mod coloring;
mod balance;
mod annealing;
mod spray;
mod identify;
pub mod controller;

pub use annealing::Annealing;
pub use assignment::{Assignment, add_least_loaded, assignment_of};
pub use ecmp::{Ecmp, Hash, hashed, switch_seed};
pub use error::RoutingError;
pub use fabric::Fabric;
pub use load_bound::{LoadBound, Share, Witness};
pub use paths::Paths;
pub use spray::{Sprayed, spray};

// Of the crates below: `crate::id` and so on.
use hocket_base::{explain, graph, id, progress, units};
use hocket_topology as topology;

/// How a path is expressed in what a host sends, and which hash a switch has.
pub mod steering {
    pub use hocket_steering::*;

    pub use crate::identify::{Identified, Observed, identify};
}

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
    /// Returns a flow that weighs 1.
    pub const fn new(src: u32, dst: u32) -> Self {
        Self {
            src,
            dst,
            weight: 1,
        }
    }
}

/// How flows are given their paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Algorithm 1 of the paper: flows in order, each to the path whose busiest link would carry
    /// least, the lowest choice where several would.
    ///
    /// Of flows of weight w or less on equal links, let one of weight x, from u to v, raise a link to L.
    /// It finds L - x or more on one link of each of its k choices. On two levels that is an uplink of
    /// u or a downlink of v, so that k (L - x) is at most what u sends and v receives besides,
    /// B (a + b) - 2 x, where the certificate is B and u and v have a and b links. For k >= 2 that
    /// allows most at x = w: L <= w + (B (a + b) - 2 w) / k; for k = 1 the same holds since a link of u
    /// or v carries B a or B b at most. Where only whole switches failed a = b = k, and it is below
    /// 2 B + w: for flows that all weigh 1 at most twice the optimum, the paper's Theorem 2. On three
    /// levels where nothing failed four links may be the busy one, and it is below 4 B + w.
    Greedy,
    /// The same result, parts that can share no link at once on all cores (section 3.4.3).
    GreedyParallel,
    /// By a hash of the header, as switches do.
    Ecmp(Ecmp),
    /// Flows in order, each switch on the way up to its least loaded link that leads on, as it knows no
    /// other switch's; the lowest where several are.
    LeastLoaded,
    /// Simulated annealing over one choice for each destination host.
    Annealing(Annealing),
    /// Balanced colouring by Euler splits where every ToR reaches every spine by links alike, then
    /// exchanges: on two levels the least maximum for flows of one weight, and at most the heaviest
    /// flow above the mean of a ToR's links for others. On three levels the least maximum for flows of
    /// one weight where a pod has no more ToRs than a plane has cores, as in `fat_tree`, or where every
    /// flow leaves its pod and planes are alike. Greedy and exchanges where links are missing or
    /// differ: the best of
    /// several orders of the flows, never worse than greedy, so that its bound holds.
    EdgeColoring,
}

/// Assigns a path to every flow.
///
/// # Complexity
/// With n flows, S choices of a flow and T ToRs:
///
/// - greedy and least-loaded take O(n S);
/// - ECMP takes O(n) on whole Clos fabrics, else O(n S);
/// - edge colouring takes O((n + T) log S) for S a power of two, else a shifted chain for each flow of the
///   smallest colour class on top;
/// - annealing takes O(flows moved) for each of its steps.
///
/// # Errors
/// [`RoutingError`] for ToRs that are not there, a flow from a ToR to itself, weights that do not
/// add up, and flows without a path.
///
/// # Examples
/// ```
/// use hocket_fabric::{Fabric, Flow, Scheme, assign};
/// use hocket_topology::build::Clos;
/// use hocket_base::units::{Bandwidth, Seed, Time};
///
/// let bandwidth = Bandwidth::from_bytes_per_second(50_000_000_000).unwrap();
/// let clos = Clos {
///     spines: 2,
///     tors: 3,
///     hosts_per_tor: 2,
///     host_bandwidth: bandwidth,
///     bandwidth,
///     latency: Time::from_ns(500),
/// }.build()?;
/// let fabric = Fabric::new(&clos)?;
/// // Each ToR sends to both others: a flow for every one of its two uplinks.
/// let pairs = [(0, 1), (1, 2), (2, 0), (0, 2), (2, 1), (1, 0)];
/// let flows = pairs.map(|(src, dst)| Flow::new(src, dst));
/// let best = assign(&fabric, &flows, Scheme::EdgeColoring, Seed(0))?;
/// assert_eq!(best.max_link_load(), 1);
/// assert_eq!(best.load_bound().load, 1); // and no assignment has less
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn assign(
    fabric: &Fabric,
    flows: &[Flow],
    scheme: Scheme,
    seed: Seed,
) -> Result<Assignment, RoutingError> {
    fabric.check(flows)?;
    let load_bound = load_bound::least_load(fabric, flows);
    let bound = load_bound.load;
    let choices = match scheme {
        Scheme::Greedy => greedy::greedy(fabric, flows.iter()),
        Scheme::GreedyParallel => parallel::greedy_parallel(fabric, flows),
        Scheme::Ecmp(options) => ecmp::ecmp(fabric, flows, options, seed),
        Scheme::LeastLoaded => hops::least_loaded(fabric, flows, &[]),
        Scheme::Annealing(options) => annealing::anneal(fabric, flows, bound, options, seed),
        Scheme::EdgeColoring => {
            let start = if fabric.is_complete() && fabric.is_even() {
                balance::color(fabric, flows, 0)
            } else {
                greedy::greedy(fabric, flows.iter())
            };
            exchange::improve(fabric, flows, start, bound)
        }
    };
    Ok(Assignment::new(fabric, flows, choices, load_bound))
}

/// Returns the choices of a balanced colouring, see [`Scheme::EdgeColoring`]; `None` where links are missing or differ,
/// and for flows that [`assign`] would refuse. Switches that are used more than others take `turn`s.
pub fn colored(fabric: &Fabric, flows: &[Flow], turn: usize) -> Option<Vec<u32>> {
    let whole = fabric.is_complete() && fabric.is_even();
    (whole && fabric.check(flows).is_ok()).then(|| balance::color(fabric, flows, turn))
}

#[cfg(test)]
mod tests;

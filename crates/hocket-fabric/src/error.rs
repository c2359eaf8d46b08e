//! What is wrong with a fabric or with flows, and the check.

use super::{Fabric, Flow};
use crate::explain::Explain;
use crate::id::narrow;

/// Why flows could not be assigned.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum RoutingError {
    /// A network that is neither a two-level Clos nor a three-level fat tree.
    #[explain(
        why("{name:?} is not a Clos or fat tree: {why}"),
        remedy("make one with clos or fat_tree, less switches or links if they failed")
    )]
    NotClos {
        /// The network.
        name: String,
        /// What is not as in a Clos.
        why: String,
    },
    /// A ToR that was never there.
    #[explain(
        origin("flow {flow}"),
        why("there is no ToR {tor}"),
        remedy("ToRs are 0 to {last}")
    )]
    UnknownTor {
        /// Position of the flow.
        flow: usize,
        /// The number asked for.
        tor: u32,
        /// The highest number.
        last: u32,
    },
    /// A flow that does not leave its ToR.
    #[explain(
        why("flow {flow} goes from ToR {tor} to itself and needs no path"),
        remedy("leave it out")
    )]
    SameTor {
        /// Position of the flow.
        flow: usize,
        /// The ToR.
        tor: u32,
    },
    /// Weights whose sum is no 64-bit number.
    #[explain(
        why("the weights of all flows together pass 2^63{}", times(*scale)),
        remedy("give them in a larger unit")
    )]
    TooHeavy {
        /// What a weight of 1 loads the narrowest link with.
        scale: u64,
    },
    /// Failures that leave flows without a path.
    #[explain(
        why("no path joins the ends of {flows}"),
        remedy("leave them out or keep switches that both ToRs reach")
    )]
    Cut {
        /// The flows, in words.
        flows: String,
    },
    /// Choices that do not fit the flows.
    #[explain(why("{why}"))]
    BadChoices {
        /// What is wrong with the choices, as a sentence.
        why: String,
    },
}

fn times(scale: u64) -> String {
    match scale {
        1 => String::new(),
        _ => format!(" / {scale}, the share of the narrowest link"),
    }
}

/// Checks that every flow joins two ToRs that are there, has a path, and that loads stay below 2^63.
pub(super) fn check(fabric: &Fabric, flows: &[Flow]) -> Result<(), RoutingError> {
    let count = narrow(fabric.tor_count());
    let scale = fabric.scales.iter().copied().max().unwrap_or(1);
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
    if total.saturating_mul(scale) >= 1 << 63 {
        return Err(RoutingError::TooHeavy { scale });
    }
    let cut: Vec<usize> = (0..flows.len())
        .filter(|&i| !fabric.joins(flows[i].src, flows[i].dst))
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

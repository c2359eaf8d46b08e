//! What is wrong with a fabric or with flows.

use crate::explain::Explain;

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

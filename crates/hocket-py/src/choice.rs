//! Choices of the core by their names in Python.

use hocket_core::multirail::Policy;
use hocket_core::plan::Routing;
use hocket_core::simulate::{LatencyModel, LinkOrder, Switching};
use hocket_core::units::Seed;

use crate::error::CoreError;

pub(crate) type Names<T> = [(&'static str, T)];

pub(crate) const ORDERS: &Names<LinkOrder> =
    &[("ready", LinkOrder::Ready), ("plan", LinkOrder::Plan)];
pub(crate) const SWITCHINGS: &Names<Switching> = &[
    ("store-and-forward", Switching::StoreAndForward),
    ("cut-through", Switching::CutThrough),
];
pub(crate) const LATENCIES: &Names<LatencyModel> = &[
    ("overlapped", LatencyModel::Overlapped),
    ("occupying", LatencyModel::Occupying),
];

pub(crate) const POLICIES: &Names<Policy> = &[
    ("first-come", Policy::Fifo),
    ("smallest-first", Policy::SmallestFirst),
];

const ROUTINGS: &Names<Routing> = &[
    ("balanced", Routing::Balanced),
    ("ecmp", Routing::Ecmp(Seed(0))),
    ("spray", Routing::Spray),
    ("single", Routing::Single),
];

/// A routing by its name; the seed is of `ecmp`.
pub(crate) fn routing(name: &str, seed: u64) -> Result<Routing, CoreError> {
    let chosen = choose("routing", name, ROUTINGS)?;
    Ok(match chosen {
        Routing::Ecmp(_) => Routing::Ecmp(Seed(seed)),
        other => other,
    })
}

/// A routing's name, and the seed of `ecmp` (0 of others).
pub(crate) fn name_of_routing(routing: Routing) -> (&'static str, u64) {
    match routing {
        Routing::Ecmp(seed) => (name_of(&Routing::Ecmp(Seed(0)), ROUTINGS), seed.0),
        other => (name_of(&other, ROUTINGS), 0),
    }
}

/// The choice of a name; `what` is chosen.
pub(crate) fn choose<T: Copy>(what: &str, name: &str, choices: &Names<T>) -> Result<T, CoreError> {
    match choices.iter().find(|(known, _)| *known == name) {
        Some((_, choice)) => Ok(*choice),
        None => {
            let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
            let known = known.join(" or ");
            Err(CoreError::Spec(format!(
                "{what} is {name:?}; it is {known}"
            )))
        }
    }
}

/// The name of a choice.
pub(crate) fn name_of<T: PartialEq>(choice: &T, choices: &Names<T>) -> &'static str {
    let named = choices.iter().find(|(_, known)| known == choice);
    named.expect("every choice has a name").0
}

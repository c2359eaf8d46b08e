//! Choices of the core by their names in Python.

use hocket_core::multirail::Policy;
use hocket_core::simulate::{LatencyModel, LinkOrder, Switching};
use hocket_core::steiner::Relays;

use crate::error::{CoreError, Parts};

pub(crate) type Names<T> = [(&'static str, T)];

pub(crate) const ORDERS: &Names<LinkOrder> = &[
    ("ready", LinkOrder::Ready),
    ("plan", LinkOrder::Plan),
    ("priority", LinkOrder::Priority),
];
pub(crate) const SWITCHINGS: &Names<Switching> = &[
    ("store-and-forward", Switching::StoreAndForward),
    ("cut-through", Switching::CutThrough),
];
pub(crate) const LATENCIES: &Names<LatencyModel> = &[
    ("overlapped", LatencyModel::Overlapped),
    ("occupying", LatencyModel::Occupying),
];

pub(crate) const RELAYS: &Names<Relays> = &[
    ("none", Relays::None),
    ("forward", Relays::Forward),
    ("sum", Relays::Sum),
];

pub(crate) const FIDELITIES: &Names<&str> =
    &[("link", "link"), ("flow", "flow"), ("packet", "packet")];

pub(crate) const POLICIES: &Names<Policy> = &[
    ("first-come", Policy::Fifo),
    ("smallest-first", Policy::SmallestFirst),
];

/// The choice of a name; `what` is chosen.
pub(crate) fn choose<T: Copy>(what: &str, name: &str, choices: &Names<T>) -> Result<T, CoreError> {
    match choices.iter().find(|(known, _)| *known == name) {
        Some((_, choice)) => Ok(*choice),
        None => {
            let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
            let known = known.join(" or ");
            let wrong = Parts::new(format!("{what} is {name:?}"));
            Err(wrong.remedy(format!("it is {known}")).into())
        }
    }
}

/// The name of a choice.
pub(crate) fn name_of<T: PartialEq>(choice: &T, choices: &Names<T>) -> &'static str {
    let named = choices.iter().find(|(_, known)| known == choice);
    named.expect("every choice has a name").0
}

//! Every algorithm by name: those of [`Algorithm`], and those whose plans this crate does not make alone.
//!
//! Whoever asks what an algorithm is (names, refusals, `compare`, `auto`, Python) looks here.

pub use super::recipe::{About, Origin, SearchOption};
use super::{Algorithm, greedy};
use crate::plan::PlanError;

/// The shortest plan by a solver, which starts from that of greedy.
const EXACT: About = About {
    uses: &[
        SearchOption::Seed,
        SearchOption::Unwind,
        SearchOption::Trials,
        SearchOption::Slot,
        SearchOption::Window,
    ],
    is_compared: false,
    is_general: false,
    ..greedy::searched(
        "exact",
        "the shortest plan in slots, proved by a solver, or the best in time with its gap",
    )
    .made_by(Origin::Solver)
};

/// The best of all.
const AUTO: About = About {
    summary: "the best plan that any method finds within the time limit",
    name: "auto",
    making: Origin::Choice,
    ..EXACT
};

/// An algorithm that has a name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What is known of it.
    pub about: About,
    /// What [`super::plan`] makes it by; `None` where it takes more than that function: a solver, or all others.
    pub algorithm: Option<Algorithm>,
    /// The algorithm that has as many transfers and whose numbers of chunks it takes: itself, where there is one;
    /// `None` of `auto`, whose plan is any.
    pub counts_as: Option<Algorithm>,
}

/// Returns every algorithm, those of [`Algorithm`] first and in its order.
pub fn entries() -> impl Iterator<Item = Entry> {
    let planned = Algorithm::ALL.into_iter().map(|algorithm| Entry {
        about: algorithm.about(),
        algorithm: Some(algorithm),
        counts_as: Some(algorithm),
    });
    let others = [(EXACT, Some(Algorithm::Greedy)), (AUTO, None)];
    planned.chain(others.into_iter().map(|(about, counts_as)| Entry {
        about,
        algorithm: None,
        counts_as,
    }))
}

/// Returns the algorithm of a name.
///
/// # Errors
/// [`PlanError::UnknownAlgorithm`] with the names that there are.
pub fn entry(name: &str) -> Result<Entry, PlanError> {
    let found = entries().find(|each| each.about.name == name);
    found.ok_or_else(|| unknown(name, entries().map(|each| each.about.name)))
}

/// Returns the refusal of a name that none of them has.
pub(super) fn unknown(name: &str, known: impl Iterator<Item = &'static str>) -> PlanError {
    PlanError::UnknownAlgorithm {
        name: name.to_owned(),
        known: known.collect::<Vec<_>>().join(", "),
    }
}

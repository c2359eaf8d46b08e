//! Multi-rail scheduling: which way each chunk of a collective goes through the dimensions of a product
//! topology, and when.
//!
//! A [`Rail`] is a dimension as a scheduler sees it, a [`Lane`] is a chunk with an order of rails.
//! [`fixed_order`], [`themis()`] and [`optimal()`] choose orders; [`simulate`] runs them at dimension
//! fidelity, which fixes the order in which each rail serves them: a [`Schedule`].
//! [`crate::algorithms`] makes plans of schedules.

mod balance;
mod desk;
mod dimension;
mod lane;
mod optimal;
mod rail;
mod schedule;
mod themis;

pub use balance::{Balance, balance};
pub(crate) use desk::earliest;
pub use dimension::{Model, Policy, Served, Timeline, simulate};
pub(crate) use dimension::{Operation, Port, Tasks, servers};
pub use lane::{Lane, Stage};
pub use optimal::{EFFORT, Problem, optimal};
pub use rail::Rail;
pub(crate) use rail::is_too_long;
pub use schedule::{PARTS, Schedule};
pub use themis::{fixed_order, themis};

#[cfg(test)]
pub(crate) mod tests;

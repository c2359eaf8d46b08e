//! Multi-rail scheduling.
mod rail;
mod lane;
mod themis;
mod dimension;
mod schedule;
pub use rail::Rail;
pub use schedule::{PARTS, Schedule};
pub use lane::{Lane, Stage};
pub use themis::{fixed_order, themis};
pub use dimension::{Model, Policy, Timeline, simulate};
#[cfg(test)]
mod tests;

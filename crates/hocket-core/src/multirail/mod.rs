//! Multi-rail scheduling.
mod rail;
mod lane;
mod themis;
mod dimension;
mod schedule;
pub use dimension::{Model, Policy, Timeline, simulate};
pub use lane::{Lane, Stage};
pub use rail::Rail;
pub use schedule::{PARTS, Schedule};
pub use themis::{fixed_order, themis};
#[cfg(test)]
mod tests;

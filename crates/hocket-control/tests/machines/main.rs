//! The machines as a whole: their store on a disk that fails, both sides under faults, and doors that anything may
//! be said to.

#![allow(
    clippy::cast_lossless,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is drawn is small"
)]

mod disk;
mod store;
mod faults;
mod story;
mod check;
mod programs;
mod outages;
mod site;
mod world;
mod simulation;
mod connected;
mod hosts;
mod jobs;
mod segments;
mod limits;
mod restarts;
mod entry_points;

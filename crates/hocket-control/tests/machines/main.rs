//! The machines as a whole: their store on a disk that fails, both sides under faults, and doors that anything may
//! be said to.

mod disk;
mod store;
mod faults;
mod check;
mod programs;
mod world;
mod simulation;

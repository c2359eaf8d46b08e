//! Simulated times against closed forms, to the picosecond.

mod bigraph;
mod forms;
mod mesh;
mod run;

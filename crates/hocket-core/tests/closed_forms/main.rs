//! Simulated times against closed forms, to the picosecond.

mod forms;
mod mesh;
mod run;

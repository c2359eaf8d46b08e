//! Simulated times against closed forms, to the picosecond, and against ASTRA-sim's, measured.
//!
//! The longest case is left out unless asked for: `cargo test --release --test peer -- --ignored`.

mod astra_sim;
mod closed_forms;
mod run;

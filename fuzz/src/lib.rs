//! The doors of the core as functions of bytes: whatever the bytes are, a door gives a result or a refusal.
//!
//! A target draws values from bytes ([`draw`]), gives them to the core, and panics where the core does or
//! where what it gives contradicts itself. `fuzz_targets` hands the functions to libFuzzer; the tests of
//! the core include this file and run them over the corpus, so that nothing here knows the engine.

pub mod draw;
pub mod network;
pub mod runs;
pub mod topology;
pub mod plan;
pub mod algorithms;
pub mod synthesis;
pub mod schedule;
pub mod routing;
pub mod cluster;
pub mod iteration;
pub mod protobuf;
pub mod trace;

/// A door: what it is called, and what runs it.
pub type Target = (&'static str, fn(&[u8]));

/// Every target, by the name of its binary and of its archive in the corpus.
pub const TARGETS: [Target; 9] = [
    ("topology", topology::run),
    ("plan", plan::run),
    ("algorithms", algorithms::run),
    ("synthesis", synthesis::run),
    ("schedule", schedule::run),
    ("routing", routing::run),
    ("cluster", cluster::run),
    ("iteration", iteration::run),
    ("trace", trace::run),
];

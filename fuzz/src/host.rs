//! The doors of the agent on a host, as `service.rs` has those of the machines, which are built without it.

#[allow(dead_code, reason = "the core's doors draw more")]
pub mod draw;
pub mod settings;

/// A door: what it is called, and what runs it.
pub type Target = (&'static str, fn(&[u8]));

/// Every target, by the name of its binary and of its archive in the corpus.
pub const TARGETS: [Target; 1] = [("settings", settings::run)];

//! The doors of the controller's service and of its agents, as `lib.rs` has those of the core, which are built
//! without the service.

#[allow(dead_code, reason = "the core's doors draw more")]
pub mod draw;
pub mod messages;
pub mod control;
pub mod store;

/// A door: what it is called, and what runs it.
pub type Target = (&'static str, fn(&[u8]));

/// Every target, by the name of its binary and of its archive in the corpus.
pub const TARGETS: [Target; 2] = [("control", control::run), ("store", store::run)];

//! The door of the protocol between hosts and the controller, as `service.rs` has those of the machines, which are
//! built without it.

#[allow(dead_code, reason = "the core's doors draw more")]
pub mod draw;
#[allow(dead_code, reason = "the machines' door draws more")]
pub mod messages;
pub mod wire;

/// A door: what it is called, and what runs it.
pub type Target = (&'static str, fn(&[u8]));

/// Every target, by the name of its binary and of its archive in the corpus.
pub const TARGETS: [Target; 1] = [("wire", wire::run)];

//! The door of what ranks say to each other and to their store, as `protocol.rs` has that of the controller.

pub mod frames;

/// A door: what it is called, and what runs it.
pub type Target = (&'static str, fn(&[u8]));

/// Every target, by the name of its binary and of its archive in the corpus.
pub const TARGETS: [Target; 1] = [("frames", frames::run)];

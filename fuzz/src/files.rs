//! The doors of files of other runtimes, as `service.rs` has those of the machines, which are built without them.

pub mod runtimes;

/// A door: what it is called, and what runs it.
pub type Target = (&'static str, fn(&[u8]));

/// Every target, by the name of its binary and of its archive in the corpus.
pub const TARGETS: [Target; 2] = [("msccl", runtimes::msccl), ("mscclpp", runtimes::mscclpp)];

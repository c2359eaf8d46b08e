//! Files of other runtimes, as bytes, to and from what the core knows.
//!
//! Nothing here opens a file: callers pass text or bytes in and get text or bytes back. Whatever a
//! file says is checked before memory is taken for it, and an error names the line.

#![forbid(unsafe_code)]

#[cfg(test)]
mod files;
mod finding;
pub mod msccl_xml;
pub mod mscclpp_json;

pub use finding::{Finding, FormatError, Verdict};

//! Files of other runtimes, as bytes, to and from what the core knows.
//!
//! Nothing here opens a file: callers pass text or bytes in and get text or bytes back. Whatever a
//! file says is checked before memory is taken for it, and an error names the line.

#![forbid(unsafe_code)]

mod finding;
pub mod msccl_xml;

pub use finding::{Finding, FormatError, Verdict};

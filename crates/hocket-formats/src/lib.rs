//! Files of other runtimes, as bytes, to and from what the core knows.
//!
//! Nothing here opens a file: callers pass text or bytes in and get text or bytes back. Whatever a
//! file says is checked before memory is taken for it, and an error names the line.

#![forbid(unsafe_code)]

#[cfg(feature = "core")]
pub mod chakra;
mod error;
mod elements;
#[cfg(feature = "core")]
mod finding;
#[cfg(feature = "core")]
pub mod msccl_xml;
#[cfg(feature = "core")]
pub mod mscclpp_json;
#[cfg(feature = "core")]
mod facts;
#[cfg(all(test, feature = "core"))]
mod files;
pub mod nccl_graph;
pub mod nccl_topology;
pub mod nccl_tuner;
#[cfg(feature = "core")]
pub mod perfetto;
#[cfg(feature = "core")]
mod trial;

pub use elements::LARGEST;
pub use error::FormatError;
#[cfg(feature = "core")]
pub use facts::Facts;
#[cfg(feature = "core")]
pub use finding::{Finding, Verdict};
#[cfg(feature = "core")]
pub use trial::run;

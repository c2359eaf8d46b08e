//! What the routing controller and its host agents share: the protocol between them, certificates, files of
//! settings.
//!
//! ```text
//! proto/hocket/v1/controller.proto -> v1 (generated) <- convert -> hocket_control::message
//! ```

#![forbid(unsafe_code)]

mod codec;
/// The generated code of version 1.
#[allow(missing_docs, clippy::all)]
pub mod v1;
mod fragments;
mod from_host;
pub mod setup;
pub mod settings;
pub mod tls;
mod to_host;

pub use fragments::BadMessage;

use hocket_control::message::{FromHost, ToHost};

/// Most bytes of a batch; a longer one ends the session.
pub const MOST_BATCH_BYTES: usize = 8 << 20;
/// Most messages of a batch.
pub const MOST_MESSAGES: usize = 1 << 12;

/// Returns what a host says, as it is sent.
pub fn host_batch<'a>(messages: impl IntoIterator<Item = &'a FromHost>) -> v1::HostBatch {
    v1::HostBatch {
        messages: messages.into_iter().map(from_host::write).collect(),
    }
}

/// Returns what the controller says, as it is sent.
pub fn controller_batch<'a>(messages: impl IntoIterator<Item = &'a ToHost>) -> v1::ControllerBatch {
    v1::ControllerBatch {
        messages: messages.into_iter().map(to_host::write).collect(),
    }
}

/// Returns what a host has sent.
///
/// # Errors
/// [`BadMessage`] for the first message that is none: a kind that is not known, an address that is none, more
/// flows, links or jobs than a message may have, numbers out of range.
pub fn read_host_batch(batch: v1::HostBatch) -> Result<Vec<FromHost>, BadMessage> {
    fragments::at_most(batch.messages.len(), MOST_MESSAGES, "messages in a batch")?;
    batch.messages.into_iter().map(from_host::read).collect()
}

/// Returns what the controller has sent.
///
/// # Errors
/// [`BadMessage`] as [`read_host_batch`].
pub fn read_controller_batch(batch: v1::ControllerBatch) -> Result<Vec<ToHost>, BadMessage> {
    fragments::at_most(batch.messages.len(), MOST_MESSAGES, "messages in a batch")?;
    batch.messages.into_iter().map(to_host::read).collect()
}

//! Which of several controllers is the active one, and the epoch that it has: higher than that of any before it, so
//! that hosts obey no controller that has been deposed and does not know yet.

mod etcd;
#[allow(missing_docs, dead_code, unreachable_pub, clippy::all)]
mod etcd_api;

use std::path::Path;
use std::time::Duration;

use hocket_wire::setup::SetupError;
use tokio::time::sleep;
use tracing::info;

use crate::config::Standby;
use crate::disk::Folder;
pub use etcd::Held;

/// How often a waiting controller tries to get the lock.
const POLL: Duration = Duration::from_millis(200);

/// What makes a controller the active one.
#[derive(Debug)]
pub struct Active {
    /// The folder of its state.
    pub folder: Folder,
    /// Its epoch, where etcd gives it; else it is one more than the last that the folder has seen.
    pub epoch: Option<u64>,
    /// What it holds in etcd.
    pub held: Option<Held>,
}

/// Waits until this controller is the active one.
///
/// # Errors
/// [`SetupError`] where the folder cannot be written or is in use, and where etcd is away.
pub async fn become_active(standby: &Standby, state: &Path) -> Result<Active, SetupError> {
    Folder::prepare(state)?;
    let in_use = || {
        let remedy = "stop it, or name another folder, or set standby.kind";
        SetupError::new(
            state.display().to_string(),
            "another controller has it",
            remedy,
        )
    };
    match standby {
        Standby::Alone => Ok(Active {
            folder: Folder::lock(state)?.ok_or_else(in_use)?,
            epoch: None,
            held: None,
        }),
        Standby::Lock => {
            let mut waits = false;
            loop {
                if let Some(folder) = Folder::lock(state)? {
                    return Ok(Active {
                        folder,
                        epoch: None,
                        held: None,
                    });
                }
                if !std::mem::replace(&mut waits, true) {
                    info!("another controller is active; this one waits for its lock");
                }
                sleep(POLL).await;
            }
        }
        Standby::Etcd { endpoint, key, ttl } => {
            let folder = Folder::lock(state)?.ok_or_else(in_use)?;
            let held = etcd::win(*endpoint, key, *ttl).await?;
            Ok(Active {
                folder,
                epoch: Some(held.epoch),
                held: Some(held),
            })
        }
    }
}

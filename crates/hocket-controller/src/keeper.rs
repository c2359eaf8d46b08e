//! A thread that writes to disk what outlives a restart, so that no answer waits for a disk.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use hocket_control::server::Input;
use hocket_control::store::{Disk, Store};
use tracing::{error, warn};

use crate::desk::{Desk, Keep};
use crate::events;
use crate::fabric::Network;
use crate::metrics::Metrics;

/// What comes within this time is brought to disk at once.
const TOGETHER: Duration = Duration::from_millis(10);

/// Where events go, and how many bytes of them are kept.
#[derive(Debug)]
pub struct Events {
    file: File,
    left: u64,
}

impl Events {
    /// A new file for a fabric, of so many bytes at most.
    ///
    /// # Errors
    /// What the system says.
    pub fn create(path: &Path, network: &Network, most_bytes: u64) -> std::io::Result<Self> {
        let mut file = File::create(path)?;
        let header = events::header(network);
        file.write_all(&header)?;
        let left = most_bytes.saturating_sub(header.len() as u64);
        Ok(Self { file, left })
    }

    /// Writes a piece; `None`: no more are kept.
    fn write(mut self, piece: &[u8]) -> Option<Self> {
        match self.left.checked_sub(piece.len() as u64) {
            Some(left) => self.left = left,
            None => {
                warn!("the event log is as long as it may be; later events are not in it");
                return None;
            }
        }
        match self.file.write_all(piece) {
            Ok(()) => Some(self),
            Err(error) => {
                warn!(%error, "the event log cannot be written; later events are not in it");
                None
            }
        }
    }
}

/// Writes until nobody is left who might send.
pub fn keep<D: Disk>(
    kept: &Receiver<Keep>,
    mut store: Store<D>,
    mut events: Option<Events>,
    metrics: &Metrics,
    stored: impl Fn(u64),
) {
    let mut first_unkept = None;
    loop {
        let next = match first_unkept {
            None => kept.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => kept.recv_timeout(TOGETHER),
        };
        match next {
            Ok(Keep::Record(number, record)) => {
                store.append(&record);
                metrics.log_records.add(1);
                first_unkept = Some(number);
            }
            Ok(Keep::Events(log)) => {
                events = events.and_then(|events| events.write(&events::piece(&log)));
            }
            Err(ended) => {
                if let Some(number) = first_unkept.take() {
                    metrics.log_syncs.add(1);
                    let is_kept = store.commit();
                    metrics.log_failed.set(u64::from(is_kept.is_err()));
                    if let Err(error) = is_kept {
                        // Hosts are answered on: what is new would be forgotten by a restart, and hosts bring it
                        // back. The next commit begins another file.
                        error!(%error, "the state cannot be written");
                    }
                    stored(number);
                }
                if ended == RecvTimeoutError::Disconnected {
                    return;
                }
            }
        }
    }
}

/// Tells the server what is stored, as long as it is there.
pub fn teller(desk: &Arc<Desk>) -> impl Fn(u64) + use<> {
    let desk = Arc::downgrade(desk);
    move |record| {
        if let Some(desk) = desk.upgrade() {
            desk.tell(Input::Stored { record });
        }
    }
}

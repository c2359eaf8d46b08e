//! A thread that writes to disk what outlives a restart, so that no answer waits for a disk but those that promise it.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use hocket_control::server::Input;
use hocket_control::store::{Disk, Store};
use tracing::{error, info, warn};

use crate::cluster::Network;
use crate::events;
use crate::metrics::Metrics;
use crate::server_owner::{Keep, ServerOwner};

/// What comes while the disk is busy is brought there together, and so is what comes within this time without a pause.
const TOGETHER: Duration = Duration::from_millis(10);
/// A disk that fails is tried again after so long.
const AGAIN: Duration = Duration::from_secs(1);

/// Where events go, and how many bytes of them are kept.
#[derive(Debug)]
pub struct Events {
    file: File,
    left: u64,
}

impl Events {
    /// Returns a new file for a fabric, of so many bytes at most.
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

/// Writes until nobody is left who might send, and tells the server what is on disk and what is not.
pub fn keep<D: Disk>(
    kept: &Receiver<Keep>,
    mut store: Store<D>,
    mut events: Option<Events>,
    metrics: &Metrics,
    tell: impl Fn(Input),
) {
    // The last record that is not on disk; and where that has failed, when it is tried again.
    let mut unkept = None;
    let mut again: Option<Instant> = None;
    loop {
        let mut next = match again {
            Some(at) => kept.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => kept.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let until = Instant::now() + TOGETHER;
        let has_ended = loop {
            match next {
                Ok(Keep::Record(number, record)) => {
                    store.append(&record);
                    metrics.log_records.add(1);
                    unkept = Some(number);
                }
                Ok(Keep::Events(log)) => {
                    events = events.and_then(|events| events.write(&events::piece(&log)));
                }
                Err(ended) => break ended == RecvTimeoutError::Disconnected,
            }
            // Events may never pause.
            next = match Instant::now() < until {
                true => kept.recv_timeout(Duration::ZERO),
                false => break false,
            };
        };
        let is_due = has_ended || again.is_none_or(|at| Instant::now() >= at);
        if let Some(record) = unkept.filter(|_| is_due) {
            let is_kept = commit(&mut store, metrics);
            unkept = (!is_kept).then_some(record);
            again = (!is_kept).then(|| Instant::now() + AGAIN);
            tell(match is_kept {
                true => Input::Stored { record },
                false => Input::Unstored { record },
            });
        }
        if has_ended {
            return;
        }
    }
}

/// Brings all that was noted to disk; false where it is not there.
fn commit<D: Disk>(store: &mut Store<D>, metrics: &Metrics) -> bool {
    metrics.log_syncs.add(1);
    let has_failed = metrics.log_failed.get() > 0;
    match store.commit() {
        Ok(_) if has_failed => info!("the state is written again"),
        Ok(_) => {}
        Err(_) if has_failed => return false,
        Err(error) => {
            // Hosts are answered on: what is new would be forgotten by a restart, and hosts bring it back.
            // Operators are told.
            error!(%error, "the state cannot be written");
            metrics.log_failed.set(1);
            return false;
        }
    }
    metrics.log_failed.set(0);
    true
}

/// Tells the server, as long as it is there.
pub fn teller(server_owner: &Arc<ServerOwner>) -> impl Fn(Input) + use<> {
    let server_owner = Arc::downgrade(server_owner);
    move |input| {
        if let Some(server_owner) = server_owner.upgrade() {
            server_owner.tell(input);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use hocket_control::store::{DiskError, OnDamage, Record};
    use hocket_fabric::controller::Log;

    use super::*;

    /// Files in memory; the first so many syncs fail.
    #[derive(Default)]
    struct Memory {
        files: BTreeMap<String, Vec<u8>>,
        fails: u32,
    }

    impl Disk for Memory {
        fn list(&mut self) -> Result<Vec<String>, DiskError> {
            Ok(self.files.keys().cloned().collect())
        }

        fn read(&mut self, name: &str) -> Result<Vec<u8>, DiskError> {
            self.files.get(name).cloned().ok_or(DiskError::NotFound)
        }

        fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), DiskError> {
            self.files.entry(name.to_owned()).or_default().extend(bytes);
            Ok(())
        }

        fn sync(&mut self, _: &str) -> Result<(), DiskError> {
            match self.fails {
                0 => return Ok(()),
                _ => self.fails -= 1,
            }
            Err(DiskError::Full)
        }

        fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
            let file = self.files.remove(from).ok_or(DiskError::NotFound)?;
            self.files.insert(to.to_owned(), file);
            Ok(())
        }

        fn remove(&mut self, name: &str) -> Result<(), DiskError> {
            self.files.remove(name);
            Ok(())
        }

        fn sync_names(&mut self) -> Result<(), DiskError> {
            Ok(())
        }
    }

    fn record(number: u64) -> Keep {
        let links = vec![u32::try_from(number).unwrap()];
        Keep::Record(number, Record::LinksFail { links })
    }

    fn store(fails: u32) -> Store<Memory> {
        let disk = Memory {
            fails,
            ..Memory::default()
        };
        Store::open(disk, None, OnDamage::Refuse).unwrap()
    }

    #[test]
    fn what_comes_together_is_brought_to_disk_together() {
        let (store_writer, kept) = mpsc::channel();
        (1..=100).for_each(|number| store_writer.send(record(number)).unwrap());
        drop(store_writer);
        let metrics = Metrics::default();
        let told = RefCell::new(Vec::new());
        keep(&kept, store(0), None, &metrics, |input| {
            told.borrow_mut().push(input);
        });
        assert_eq!(told.take().last(), Some(&Input::Stored { record: 100 }));
        assert_eq!(metrics.log_records.get(), 100);
        assert!(metrics.log_syncs.get() < 10);
    }

    #[test]
    fn a_disk_that_fails_is_tried_again_though_nothing_more_comes() {
        let (store_writer, kept) = mpsc::channel();
        store_writer.send(record(1)).unwrap();
        let metrics = Metrics::default();
        // Once it is stored nobody is left.
        let store_writer = RefCell::new(Some(store_writer));
        let told = RefCell::new(Vec::new());
        keep(&kept, store(1), None, &metrics, |input| {
            let is_failing = matches!(input, Input::Unstored { .. });
            assert_eq!(metrics.log_failed.get(), u64::from(is_failing));
            if !is_failing {
                store_writer.take();
            }
            told.borrow_mut().push(input);
        });
        let record = 1;
        assert_eq!(
            told.take(),
            [Input::Unstored { record }, Input::Stored { record }]
        );
    }

    #[test]
    fn events_without_a_pause_hold_nothing_up() {
        let (store_writer, kept) = mpsc::channel();
        let is_stored = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let is_stored = &is_stored;
            scope.spawn(move || {
                keep(&kept, store(0), None, &Metrics::default(), |_| {
                    is_stored.store(true, Ordering::SeqCst);
                });
            });
            store_writer.send(record(1)).unwrap();
            let start = Instant::now();
            while !is_stored.load(Ordering::SeqCst) && start.elapsed() < Duration::from_secs(20) {
                store_writer.send(Keep::Events(Log::default())).unwrap();
                std::thread::sleep(Duration::from_micros(100));
            }
            assert!(is_stored.load(Ordering::SeqCst));
            drop(store_writer);
        });
    }
}

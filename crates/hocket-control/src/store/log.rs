//! Snapshots and logs in a folder.

use super::disk::{Disk, DiskError};
use super::frame::{self, Frames, HEADER, Header, Tail, frames};
use super::record::{Record, Saved};
use hocket_base::explain::Explain;

/// Bytes of a log after which the next commit starts another generation.
const LONGEST_LOG: usize = 16 << 20;
/// The last record of a snapshot.
const END: &[u8] = b"end";

/// What opening does where records in the middle of a file are damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDamage {
    /// It fails, and says where.
    Refuse,
    /// It takes what stands before the damage.
    Repair,
}

/// Why the store could not be opened, or does not keep what it was given.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
pub enum StoreError {
    /// The folder failed.
    #[explain(why("{doing} {file}: {why}"))]
    Disk {
        /// What was done.
        doing: &'static str,
        /// With which file.
        file: String,
        /// What the folder said.
        why: DiskError,
    },
    /// Records were changed after they had been written.
    #[explain(
        why("{file}: byte {at} is no record, and more stand after it"),
        remedy("repair takes what stands before")
    )]
    Damaged {
        /// The file.
        file: String,
        /// Where.
        at: usize,
    },
    /// There is a log without the snapshot that it continues.
    #[explain(
        why("{file} continues a snapshot that is not there"),
        remedy("repair begins with nothing")
    )]
    NoSnapshot {
        /// The log.
        file: String,
    },
    /// The epoch is not above the last that the folder has seen.
    #[explain(why("epoch {given} is not above {last}, which the folder has seen"))]
    OldEpoch {
        /// What was given.
        given: u64,
        /// The last.
        last: u64,
    },
    /// Another controller has claimed the folder since.
    #[explain(why("epoch {_0} has claimed the folder: another controller is active"))]
    Deposed(u64),
}

/// Returns what opening found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The file with a torn tail, which a crash leaves, and where it begins.
    pub torn: Option<(String, usize)>,
    /// Damage that was repaired: files, and where it begins.
    pub damaged: Vec<(String, usize)>,
}

/// A folder with what outlives a restart.
#[derive(Clone, Debug)]
pub struct Store<D> {
    disk: D,
    saved: Saved,
    recovered: Recovered,
    epoch: u64,
    generation: u64,
    /// Number of the last record, and of the last that is kept for certain; bytes of the log.
    last: u64,
    kept: u64,
    length: usize,
    /// Records that were not written yet.
    buffer: Vec<u8>,
    /// Whether something went wrong with the generation.
    is_suspect: bool,
}

impl<D: Disk> Store<D> {
    /// Claims a folder for an epoch, for the one after the last where none is given, and reads it. Whoever had
    /// claimed it before can keep nothing more in it, so that all is read that was ever said to be kept.
    ///
    /// # Errors
    /// [`StoreError::OldEpoch`]; [`StoreError::Disk`] where the folder cannot be claimed or read;
    /// [`StoreError::Damaged`] and [`StoreError::NoSnapshot`] where it is damaged and that is to be refused.
    pub fn open(mut disk: D, epoch: Option<u64>, on_damage: OnDamage) -> Result<Self, StoreError> {
        let last = last_epoch(&mut disk)?;
        let given = epoch.unwrap_or(last.saturating_add(1));
        if given <= last {
            return Err(StoreError::OldEpoch { given, last });
        }
        let claim = format!("claim-{given:016x}");
        disk.append(&claim, &[]).map_err(failed("write", &claim))?;
        disk.sync_names().map_err(failed("sync", &claim))?;
        let mut store = Self {
            disk,
            saved: Saved::default(),
            recovered: Recovered::default(),
            epoch: given,
            generation: 0,
            last: 0,
            kept: 0,
            length: 0,
            buffer: Vec::new(),
            is_suspect: true,
        };
        store.read_all(on_damage)?;
        Ok(store)
    }

    fn read_all(&mut self, on_damage: OnDamage) -> Result<(), StoreError> {
        let names = self.disk.list().map_err(failed("list", "the folder"))?;
        let of = |kind: &str| {
            let found = names.iter().filter_map(|name| parse(name, kind));
            found.max()
        };
        let (snapshot, log) = (of("snapshot"), of("log"));
        if log > snapshot {
            let file = log.map(|log| name("log", log)).unwrap_or_default();
            match on_damage {
                OnDamage::Refuse => return Err(StoreError::NoSnapshot { file }),
                OnDamage::Repair => self.recovered.damaged.push((file, 0)),
            }
        }
        if let Some(snapshot) = snapshot {
            self.load("snapshot", snapshot, on_damage)?;
            if names.contains(&name("log", snapshot)) {
                self.load("log", snapshot, on_damage)?;
            }
        }
        Ok(())
    }

    fn load(&mut self, kind: &str, id: (u64, u64), on_damage: OnDamage) -> Result<(), StoreError> {
        let file = name(kind, id);
        let bytes = self.disk.read(&file).map_err(failed("read", &file))?;
        let Frames {
            written,
            mut payloads,
            tail,
            ..
        } = frames(&bytes);
        let is_snapshot = kind == "snapshot";
        let is_other = written.is_some_and(|written| written != id);
        let mut damage = match tail {
            _ if is_other => Some(0),
            // A snapshot has its name only when it is whole.
            Tail::Torn(at) if is_snapshot => Some(at),
            Tail::Damaged(at) => Some(at),
            Tail::Torn(at) => {
                self.recovered.torn = Some((file.clone(), at));
                None
            }
            Tail::Whole => None,
        };
        if is_other {
            payloads.clear();
        }
        let mut at = HEADER;
        let mut has_end = false;
        for payload in payloads {
            match Record::decode(payload) {
                _ if has_end => {}
                Some(record) => self.saved.apply(&record),
                None if is_snapshot && payload == END => has_end = true,
                None => {
                    damage = Some(damage.map_or(at, |damage| damage.min(at)));
                    break;
                }
            }
            at += frame::length(payload);
        }
        if is_snapshot && !has_end {
            damage = damage.or(Some(at));
        }
        match damage {
            Some(at) if on_damage == OnDamage::Refuse => Err(StoreError::Damaged { file, at }),
            Some(at) => {
                self.recovered.damaged.push((file, at));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Notes a change, and gives its number. [`Store::commit`] keeps it.
    pub fn append(&mut self, record: &Record) -> u64 {
        self.saved.apply(record);
        self.last += 1;
        frame::write(&mut self.buffer, self.last, &record.encode());
        self.last
    }

    /// Keeps all that was noted, and gives the number of the last change that is kept. The first call writes all
    /// that was read anew.
    ///
    /// # Errors
    /// [`StoreError::Disk`], after which the next call starts a new generation; [`StoreError::Deposed`], after
    /// which nothing is kept any more.
    pub fn commit(&mut self) -> Result<u64, StoreError> {
        if self.is_suspect || self.length > LONGEST_LOG {
            self.renew()?;
        }
        if !self.buffer.is_empty() {
            let file = name("log", (self.epoch, self.generation));
            self.is_suspect = true;
            self.write(&file)?;
            self.is_suspect = false;
            self.length += self.buffer.len();
            self.buffer.clear();
        }
        if self.kept < self.last {
            // Whoever claimed the folder before it was written has not read it.
            let names = self.disk.list().map_err(failed("list", "the folder"))?;
            let last = names.iter().filter_map(|name| epoch_of(name)).max();
            match last.filter(|&last| last > self.epoch) {
                Some(last) => return Err(StoreError::Deposed(last)),
                None => self.kept = self.last,
            }
        }
        Ok(self.kept)
    }

    fn write(&mut self, file: &str) -> Result<(), StoreError> {
        let written = self.disk.append(file, &self.buffer);
        written.map_err(failed("write to", file))?;
        self.disk.sync(file).map_err(failed("sync", file))
    }

    /// Starts a generation: a snapshot, and an empty log after it.
    fn renew(&mut self) -> Result<(), StoreError> {
        self.is_suspect = true;
        // A number that was tried is not tried again.
        self.generation += 1;
        let id = (self.epoch, self.generation);
        let (file, log) = (name("snapshot", id), name("log", id));
        let beside = format!("{file}.tmp");
        let placed = self.place(&beside, &file);
        if placed.is_err() {
            // It may be what fills the disk.
            let _ = self.disk.remove(&beside);
        }
        placed?;
        let header = self.header(self.last + 1).encode();
        let made = self.disk.append(&log, &header);
        made.map_err(failed("write to", &log))?;
        self.disk.sync(&log).map_err(failed("sync", &log))?;
        self.disk.sync_names().map_err(failed("sync", &log))?;
        self.is_suspect = false;
        self.length = header.len();
        self.buffer.clear();
        self.clear_up(id);
        Ok(())
    }

    fn place(&mut self, beside: &str, file: &str) -> Result<(), StoreError> {
        let bytes = self.snapshot();
        let written = self.disk.append(beside, &bytes);
        written.map_err(failed("write to", beside))?;
        self.disk.sync(beside).map_err(failed("sync", beside))?;
        let renamed = self.disk.rename(beside, file);
        renamed.map_err(failed("rename", beside))?;
        self.disk.sync_names().map_err(failed("sync", file))
    }

    fn snapshot(&self) -> Vec<u8> {
        let mut bytes = self.header(0).encode();
        let records = self.saved.records();
        for (record, number) in records.iter().zip(0..) {
            frame::write(&mut bytes, number, &record.encode());
        }
        frame::write(&mut bytes, records.len() as u64, END);
        bytes
    }

    fn header(&self, first: u64) -> Header {
        Header {
            epoch: self.epoch,
            generation: self.generation,
            first,
        }
    }

    /// Removes older generations. Nothing depends on it.
    fn clear_up(&mut self, current: (u64, u64)) {
        for file in self.disk.list().unwrap_or_default() {
            let bare = file.strip_suffix(".tmp").unwrap_or(&file);
            let id = parse(bare, "snapshot").or_else(|| parse(bare, "log"));
            let is_old = match id {
                Some(id) => id < current,
                None => epoch_of(&file).is_some_and(|epoch| epoch < current.0),
            };
            if is_old {
                let _ = self.disk.remove(&file);
            }
        }
    }

    /// Returns what is stored.
    pub fn saved(&self) -> &Saved {
        &self.saved
    }

    /// Returns the epoch that it has claimed the folder for.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns what opening found.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Returns the folder.
    pub fn into_disk(self) -> D {
        self.disk
    }
}

/// Returns the last epoch that a folder was claimed for; 0: none.
///
/// # Errors
/// [`StoreError::Disk`] where the folder cannot be listed.
pub fn last_epoch(disk: &mut impl Disk) -> Result<u64, StoreError> {
    let names = disk.list().map_err(failed("list", "the folder"))?;
    let last = names.iter().filter_map(|name| epoch_of(name)).max();
    Ok(last.unwrap_or(0))
}

fn failed<'a>(doing: &'static str, file: &'a str) -> impl FnOnce(DiskError) -> StoreError + 'a {
    move |why| StoreError::Disk {
        doing,
        file: file.to_owned(),
        why,
    }
}

fn name(kind: &str, (epoch, generation): (u64, u64)) -> String {
    format!("{kind}-{epoch:016x}-{generation:016x}")
}

/// Epoch and generation of a file of a kind.
fn parse(file: &str, kind: &str) -> Option<(u64, u64)> {
    let rest = file.strip_prefix(kind)?.strip_prefix('-')?;
    let (epoch, generation) = rest.split_once('-')?;
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let id = (number(epoch)?, number(generation)?);
    (name(kind, id) == file).then_some(id)
}

/// Returns the epoch of any of the store's files.
fn epoch_of(file: &str) -> Option<u64> {
    let bare = file.strip_suffix(".tmp").unwrap_or(file);
    let of_claim = || u64::from_str_radix(bare.strip_prefix("claim-")?, 16).ok();
    let id = parse(bare, "snapshot").or_else(|| parse(bare, "log"));
    id.map(|(epoch, _)| epoch).or_else(of_claim)
}

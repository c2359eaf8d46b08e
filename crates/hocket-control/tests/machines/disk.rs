//! A folder in memory that fails as folders do: what was not synced is lost or torn, it fills, it refuses.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use hocket_control::store::{Disk, DiskError};

/// Draws numbers: SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub u64);

impl Random {
    /// Any number.
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `count`.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.word() % count.max(1)
    }

    /// Whether something happens that does in one of `count` cases.
    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct File {
    bytes: Vec<u8>,
    synced: usize,
    writer: u32,
}

/// A change of names that is not synced, and what undoes it.
#[derive(Clone, Debug)]
enum Undo {
    Made(u32, String),
    Renamed(u32, String, String, Option<File>),
    Removed(u32, String, File),
}

impl Undo {
    fn writer(&self) -> u32 {
        match self {
            Self::Made(writer, _) | Self::Renamed(writer, ..) | Self::Removed(writer, ..) => {
                *writer
            }
        }
    }
}

/// A folder that several writers share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folder {
    files: BTreeMap<String, File>,
    undo: Vec<Undo>,
    /// Bytes that still fit; `None`: any number.
    pub room: Option<usize>,
    /// Whether syncs fail, and lose what they were to keep.
    pub loses_syncs: bool,
    /// Calls left before each fails.
    pub calls: Option<u32>,
}

impl Folder {
    /// The bytes of a file.
    pub(crate) fn bytes(&mut self, name: &str) -> &mut Vec<u8> {
        &mut self.files.get_mut(name).expect("the file is there").bytes
    }

    /// The names of all files.
    pub(crate) fn names(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }

    /// Nothing fails any longer.
    pub(crate) fn heal(&mut self) {
        (self.room, self.loses_syncs, self.calls) = (None, false, None);
    }

    /// A writer is gone: of what it did not sync, any first part is there.
    pub(crate) fn crash(&mut self, writer: u32, random: &mut Random) {
        let mine = self
            .undo
            .iter()
            .filter(|undo| undo.writer() == writer)
            .count() as u64;
        let mut lost = random.below(mine + 1);
        let undo = std::mem::take(&mut self.undo);
        for each in undo.into_iter().rev() {
            match each {
                _ if each.writer() != writer => self.undo.push(each),
                _ if lost == 0 => {}
                Undo::Made(_, name) => {
                    self.files.remove(&name);
                    lost -= 1;
                }
                Undo::Renamed(_, from, to, before) => {
                    if let Some(file) = self.files.remove(&to) {
                        self.files.insert(from, file);
                    }
                    before.into_iter().for_each(|file| {
                        self.files.insert(to.clone(), file);
                    });
                    lost -= 1;
                }
                Undo::Removed(_, name, file) => {
                    self.files.insert(name, file);
                    lost -= 1;
                }
            }
        }
        self.undo.reverse();
        for file in self.files.values_mut().filter(|file| file.writer == writer) {
            let torn = (file.bytes.len() - file.synced) as u64;
            let kept = file.synced + random.below(torn + 1) as usize;
            file.bytes.truncate(kept);
            if torn > 0 && random.one_in(4) {
                // The file is longer than what reached it.
                file.bytes.resize(kept + random.below(64) as usize, 0);
            }
            file.synced = file.bytes.len();
        }
    }

    fn is_failing(&mut self) -> Result<(), DiskError> {
        match &mut self.calls {
            Some(0) => Err(DiskError::Other("input/output error".to_owned())),
            Some(calls) => {
                *calls -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// A writer's view of a folder.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// The folder.
    pub folder: Rc<RefCell<Folder>>,
    /// Who writes.
    pub writer: u32,
}

impl Shared {
    /// A folder of its own.
    pub(crate) fn new() -> Self {
        Self {
            folder: Rc::default(),
            writer: 0,
        }
    }
}

impl Disk for Shared {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        Ok(self.folder.borrow().names())
    }

    fn read(&mut self, name: &str) -> Result<Vec<u8>, DiskError> {
        let folder = self.folder.borrow();
        let file = folder.files.get(name).ok_or(DiskError::NotFound)?;
        Ok(file.bytes.clone())
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), DiskError> {
        let mut folder = self.folder.borrow_mut();
        folder.is_failing()?;
        let fits = folder
            .room
            .map_or(bytes.len(), |room| room.min(bytes.len()));
        folder.room = folder.room.map(|room| room - fits);
        if !folder.files.contains_key(name) {
            folder.undo.push(Undo::Made(self.writer, name.to_owned()));
        }
        let file = folder.files.entry(name.to_owned()).or_default();
        file.writer = self.writer;
        file.bytes.extend(&bytes[..fits]);
        if fits < bytes.len() {
            return Err(DiskError::Full);
        }
        Ok(())
    }

    fn sync(&mut self, name: &str) -> Result<(), DiskError> {
        let mut folder = self.folder.borrow_mut();
        folder.is_failing()?;
        let loses = folder.loses_syncs;
        let file = folder.files.get_mut(name).ok_or(DiskError::NotFound)?;
        if loses {
            // The pages are taken for clean: a second sync would say that all is well.
            file.bytes.truncate(file.synced);
            return Err(DiskError::Other("input/output error".to_owned()));
        }
        file.synced = file.bytes.len();
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut folder = self.folder.borrow_mut();
        folder.is_failing()?;
        let file = folder.files.remove(from).ok_or(DiskError::NotFound)?;
        let before = folder.files.insert(to.to_owned(), file);
        let undo = Undo::Renamed(self.writer, from.to_owned(), to.to_owned(), before);
        folder.undo.push(undo);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        let mut folder = self.folder.borrow_mut();
        folder.is_failing()?;
        let file = folder.files.remove(name).ok_or(DiskError::NotFound)?;
        folder.room = folder.room.map(|room| room + file.bytes.len());
        let undo = Undo::Removed(self.writer, name.to_owned(), file);
        folder.undo.push(undo);
        Ok(())
    }

    fn sync_names(&mut self) -> Result<(), DiskError> {
        let mut folder = self.folder.borrow_mut();
        folder.is_failing()?;
        let writer = self.writer;
        folder.undo.retain(|undo| undo.writer() != writer);
        Ok(())
    }
}

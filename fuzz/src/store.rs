//! Any bytes in the folder that outlives a restart, and as a log of events.

use std::collections::BTreeMap;

use hocket_control::store::{Disk, DiskError, OnDamage, Store, StoreError, frames};
use hocket_core::routing::controller::Log;

use super::draw::Draw;
use super::messages::record;

/// Reads the bytes as a log, or as changes of a folder.
pub fn run(bytes: &[u8]) {
    log(bytes);
    let mut draw = Draw::new(bytes);
    match draw.below(4) {
        0 => log(&[b"hocket events 1\n", draw.rest()].concat()),
        1 => log(&[b"hocket events 2\n", draw.rest()].concat()),
        _ => folder(&mut draw),
    }
}

/// What is read of a log is written and read again as it is.
fn log(bytes: &[u8]) {
    match Log::decode(bytes) {
        Ok(log) => assert_eq!(Log::decode(&log.encode()), Ok(log)),
        Err(error) => {
            assert!(error.at <= bytes.len());
            assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}

/// A folder that takes all.
#[derive(Clone, Default)]
struct Memory(BTreeMap<String, Vec<u8>>);

impl Disk for Memory {
    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        Ok(self.0.keys().cloned().collect())
    }

    fn read(&mut self, name: &str) -> Result<Vec<u8>, DiskError> {
        self.0.get(name).cloned().ok_or(DiskError::NotFound)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), DiskError> {
        self.0.entry(name.to_owned()).or_default().extend(bytes);
        Ok(())
    }

    fn sync(&mut self, _: &str) -> Result<(), DiskError> {
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let bytes = self.0.remove(from).ok_or(DiskError::NotFound)?;
        self.0.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        self.0.remove(name).map(|_| ()).ok_or(DiskError::NotFound)
    }

    fn sync_names(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
}

fn open(disk: Memory, on_damage: OnDamage) -> Result<Store<Memory>, StoreError> {
    Store::open(disk, None, on_damage)
}

/// A folder that the store wrote, a snapshot and a log, with bytes of a file changed. What is read of a log is a first
/// part of what was written; repair always opens, and what it takes is kept from then on.
fn folder(draw: &mut Draw<'_>) {
    let mut store = open(Memory::default(), OnDamage::Refuse).expect("nothing is there");
    (0..draw.below(4)).for_each(|_| {
        store.append(&record(draw));
    });
    store.commit().expect("memory takes all");
    let mut store = open(store.into_disk(), OnDamage::Refuse).expect("it was written");
    store.commit().expect("memory takes all");
    let mut written = vec![store.saved().clone()];
    for _ in 0..draw.below(6) {
        store.append(&record(draw));
        written.push(store.saved().clone());
        store.commit().expect("memory takes all");
    }
    let mut disk = store.into_disk();
    let kind = draw.one_of(&["log", "log", "snapshot"]);
    let name = disk.0.keys().find(|name| name.starts_with(kind)).cloned();
    let name = name.expect("a snapshot and its log");
    if draw.below(16) == 0 {
        disk.0.remove(&name);
    }
    let is_any = kind != "log" || !disk.0.contains_key(&name) || draw.below(4) == 0;
    if let Some(file) = disk.0.get_mut(&name) {
        change(draw, file);
    }
    let repaired = open(disk.clone(), OnDamage::Repair).expect("repair takes what there is");
    let saved = repaired.saved().clone();
    assert!(is_any || written.contains(&saved));
    match open(disk, OnDamage::Refuse) {
        Ok(mut opened) => {
            assert_eq!(opened.saved(), &saved);
            opened.commit().expect("memory takes all");
            let again = open(opened.into_disk(), OnDamage::Refuse).expect("it was written anew");
            assert_eq!(again.saved(), &saved);
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
}

fn change(draw: &mut Draw<'_>, file: &mut Vec<u8>) {
    for _ in 0..draw.below(4) {
        let at = draw.word() as usize % file.len().max(1);
        match draw.below(3) {
            0 => file.truncate(at),
            1 => file.extend(draw.take(8)),
            _ => file
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|byte| *byte ^= 1 << (at % 8)),
        }
    }
    if draw.below(8) == 0 {
        *file = draw.rest().to_vec();
    }
    frames(file);
}

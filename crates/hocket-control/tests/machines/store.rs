//! The store recovers exactly what was kept, whatever happened to the folder.

use proptest::prelude::*;

use super::disk::{Random, Shared};
use hocket_control::message::PatternFlow;
use hocket_control::store::{OnDamage, Record, Saved, Store, StoreError, frames};

fn record(number: u32) -> Record {
    match number % 4 {
        0 => Record::LinksFail {
            links: vec![number, number + 1],
        },
        1 => Record::JobComes {
            job: number,
            leader: format!("host{number}"),
            pattern: vec![PatternFlow {
                src: [10, 0, 0, 1].into(),
                dst: [10, 0, 0, number as u8].into(),
                bytes: u64::from(number) << 20,
            }],
        },
        2 => Record::LinksReturn {
            links: vec![number - 2],
        },
        _ => Record::JobGoes { job: number - 6 },
    }
}

fn saved(count: u32) -> Saved {
    let mut saved = Saved::default();
    (0..count).for_each(|number| saved.apply(&record(number + 4)));
    saved
}

fn open(disk: &Shared) -> Result<Store<Shared>, StoreError> {
    Store::open(disk.clone(), None, OnDamage::Refuse)
}

/// A folder whose log has so many records, each committed alone; and where each ends in the log.
fn written(count: u32) -> (Shared, String, Vec<usize>) {
    let disk = Shared::new();
    let mut store = open(&disk).unwrap();
    store.commit().unwrap();
    let names = disk.folder.borrow().names();
    let log = names
        .into_iter()
        .find(|name| name.starts_with("log"))
        .unwrap();
    let mut ends = vec![disk.folder.borrow_mut().bytes(&log).len()];
    for number in 0..count {
        assert_eq!(store.append(&record(number + 4)), u64::from(number) + 1);
        assert_eq!(store.commit(), Ok(u64::from(number) + 1));
        ends.push(disk.folder.borrow_mut().bytes(&log).len());
    }
    (disk, log, ends)
}

/// The folder with other bytes in the log, opened.
fn with(
    disk: &Shared,
    log: &str,
    bytes: &[u8],
    on_damage: OnDamage,
) -> Result<Store<Shared>, StoreError> {
    let folder = disk.folder.borrow().clone();
    let mut copy = Shared::new();
    *copy.folder.borrow_mut() = folder;
    *copy.folder.borrow_mut().bytes(log) = bytes.to_vec();
    copy.writer = 1;
    Store::open(copy, None, on_damage)
}

#[test]
fn what_was_kept_is_there_again() {
    let (disk, _, _) = written(9);
    let mut store = open(&disk).unwrap();
    assert_eq!(store.saved(), &saved(9));
    assert_eq!(store.epoch(), 2);
    assert_eq!(store.recovered().torn, None);
    store.commit().unwrap();
    let again = open(&disk).unwrap();
    assert_eq!((again.saved(), again.epoch()), (&saved(9), 3));
}

#[test]
fn every_cut_leaves_the_records_before_it() {
    let (disk, log, ends) = written(9);
    let whole = disk.folder.borrow_mut().bytes(&log).clone();
    for cut in 0..whole.len() {
        for zeros in [0, 1, 15, 16, 40, 400] {
            let mut bytes = whole[..cut].to_vec();
            bytes.resize(cut + zeros, 0);
            // Zeros that were there stand for themselves.
            let intact = bytes.iter().zip(&whole).take_while(|(a, b)| a == b).count();
            let count = ends
                .iter()
                .filter(|&&end| end <= intact)
                .count()
                .saturating_sub(1);
            let store = with(&disk, &log, &bytes, OnDamage::Refuse).unwrap();
            assert_eq!(
                store.saved(),
                &saved(count as u32),
                "cut at {cut}, {zeros} zeros"
            );
            let at = ends[..=count]
                .last()
                .copied()
                .filter(|&end| end <= intact)
                .unwrap_or(0);
            let torn = (at == 0 || at != bytes.len()).then(|| (log.clone(), at));
            assert_eq!(store.recovered().torn, torn, "cut at {cut}, {zeros} zeros");
        }
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let (disk, log, ends) = written(6);
    let whole = disk.folder.borrow_mut().bytes(&log).clone();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let count = ends
            .iter()
            .filter(|&&end| end <= bit / 8)
            .count()
            .saturating_sub(1);
        let at = ends
            .iter()
            .rfind(|&&end| end <= bit / 8)
            .copied()
            .unwrap_or(0);
        let refused = with(&disk, &log, &bytes, OnDamage::Refuse);
        if at == ends[ends.len() - 2] {
            // Nothing stands after it: a crash during the last write looks the same.
            assert_eq!(refused.unwrap().saved(), &saved(count as u32), "bit {bit}");
            continue;
        }
        let file = log.clone();
        assert_eq!(
            refused.unwrap_err(),
            StoreError::Damaged { file, at },
            "bit {bit}"
        );
        let repaired = with(&disk, &log, &bytes, OnDamage::Repair).unwrap();
        assert_eq!(repaired.saved(), &saved(count as u32), "bit {bit}");
        assert_eq!(
            repaired.recovered().damaged,
            [(log.clone(), at)],
            "bit {bit}"
        );
    }
}

#[test]
fn a_damaged_snapshot_is_refused() {
    let (disk, _, _) = written(6);
    let mut store = open(&disk).unwrap();
    store.commit().unwrap();
    let names = disk.folder.borrow().names();
    let name = names
        .iter()
        .find(|name| name.starts_with("snapshot"))
        .unwrap();
    let whole = disk.folder.borrow_mut().bytes(name).clone();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let refused = with(&disk, name, &bytes, OnDamage::Refuse);
        assert!(
            matches!(refused, Err(StoreError::Damaged { .. })),
            "byte {at}"
        );
        with(&disk, name, &bytes, OnDamage::Repair).unwrap();
        let cut = with(&disk, name, &whole[..at], OnDamage::Refuse);
        assert!(
            matches!(cut, Err(StoreError::Damaged { .. })),
            "cut at {at}"
        );
    }
}

#[test]
fn bytes_of_a_file_before_are_no_records() {
    let (disk, log, ends) = written(6);
    let whole = disk.folder.borrow_mut().bytes(&log).clone();
    // A record of an older file of the same name stands behind the first two.
    let mut bytes = whole[..ends[2]].to_vec();
    bytes.extend(&whole[ends[0]..ends[1]]);
    let store = with(&disk, &log, &bytes, OnDamage::Refuse).unwrap();
    assert_eq!(store.saved(), &saved(2));
    assert_eq!(store.recovered().torn, Some((log, ends[2])));
}

#[test]
fn a_full_disk_loses_nothing_that_was_kept() {
    for room in 0..1500 {
        let disk = Shared::new();
        let mut store = open(&disk).unwrap();
        disk.folder.borrow_mut().room = Some(room);
        let mut kept = 0;
        for number in 0..12 {
            store.append(&record(number + 4));
            kept = store.commit().unwrap_or(kept);
        }
        let last = open(&disk).unwrap().saved().clone();
        assert!(
            (kept..=12).any(|count| last == saved(count as u32)),
            "room {room}"
        );
        // With room again, all that was noted is kept.
        disk.folder.borrow_mut().room = None;
        assert_eq!(
            Store::open(disk.clone(), Some(1), OnDamage::Refuse).unwrap_err(),
            StoreError::OldEpoch { given: 1, last: 2 }
        );
    }
}

#[test]
fn what_a_full_disk_did_not_take_is_kept_when_there_is_room() {
    for room in 0..600 {
        let disk = Shared::new();
        let mut store = open(&disk).unwrap();
        disk.folder.borrow_mut().room = Some(room);
        for number in 0..12 {
            store.append(&record(number + 4));
            let _ = store.commit();
        }
        disk.folder.borrow_mut().room = None;
        assert_eq!(store.commit(), Ok(12), "room {room}");
        assert_eq!(open(&disk).unwrap().saved(), &saved(12), "room {room}");
    }
}

#[test]
fn a_sync_that_failed_is_not_tried_again_on_the_same_file() {
    let (disk, log, _) = written(3);
    let mut store = Store::open(disk.clone(), None, OnDamage::Refuse).unwrap();
    store.commit().unwrap();
    store.append(&record(7));
    disk.folder.borrow_mut().loses_syncs = true;
    assert!(matches!(
        store.commit(),
        Err(StoreError::Disk { doing: "sync", .. })
    ));
    disk.folder.borrow_mut().loses_syncs = false;
    assert_eq!(store.commit(), Ok(1));
    let names = disk.folder.borrow().names();
    assert!(!names.contains(&log));
    assert_eq!(open(&disk).unwrap().saved(), &saved(4));
}

#[test]
fn a_controller_that_was_deposed_keeps_nothing() {
    let disk = Shared::new();
    let mut before = open(&disk).unwrap();
    before.append(&record(4));
    assert_eq!(before.commit(), Ok(1));
    let mut after = Store::open(
        Shared {
            writer: 1,
            ..disk.clone()
        },
        None,
        OnDamage::Refuse,
    )
    .unwrap();
    // Between the claim and the first snapshot, and after it.
    for _ in 0..2 {
        before.append(&record(5));
        assert_eq!(before.commit(), Err(StoreError::Deposed(2)));
        after.commit().unwrap();
    }
    assert_eq!(open(&disk).unwrap().saved(), &saved(1));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    /// A crash after any calls that failed or did not leaves a first part of what was noted, and no less
    /// than what was kept.
    #[test]
    fn a_crash_leaves_what_was_kept(seed: u64) {
        let mut random = Random(seed);
        let disk = Shared::new();
        let mut noted = 0;
        let mut least = 0;
        for epoch in 1..6 {
            disk.folder.borrow_mut().calls = None;
            let mut store = Store::open(disk.clone(), Some(epoch), OnDamage::Refuse).unwrap();
            let found = (least..=noted).find(|&count| store.saved() == &saved(count));
            prop_assert!(found.is_some(), "epoch {epoch}: kept {least}, noted {noted}");
            let base = found.unwrap_or(0);
            (least, noted) = (base, base);
            for _ in 0..random.below(12) {
                let mut folder = disk.folder.borrow_mut();
                folder.calls = random.one_in(3).then(|| random.below(4) as u32);
                folder.loses_syncs = random.one_in(6);
                folder.room = random.one_in(6).then(|| random.below(300) as usize);
                drop(folder);
                for _ in 0..random.below(3) {
                    store.append(&record(noted + 4));
                    noted += 1;
                }
                if let Ok(kept) = store.commit() {
                    least = base + kept as u32;
                }
            }
            let mut folder = disk.folder.borrow_mut();
            (folder.loses_syncs, folder.room) = (false, None);
            folder.crash(0, &mut random);
        }
    }

    #[test]
    fn any_bytes_are_read(mut bytes: Vec<u8>, at: usize, whole: bool) {
        let (disk, log, _) = written(3);
        if whole {
            let mut real = disk.folder.borrow_mut().bytes(&log).clone();
            let at = at % real.len();
            let end = (at + bytes.len()).min(real.len());
            real.splice(at..end, bytes.drain(..));
            bytes = real;
        }
        frames(&bytes);
        for on_damage in [OnDamage::Refuse, OnDamage::Repair] {
            let opened = with(&disk, &log, &bytes, on_damage);
            prop_assert!(opened.is_ok() || on_damage == OnDamage::Refuse);
        }
    }
}

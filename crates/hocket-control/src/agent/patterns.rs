//! Flows of patterns that this host sends, as the controller named them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::message::{HeldPattern, Path, Reason};

type Key = (u32, u32);

/// A flow of a pattern.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    ends: [IpAddr; 2],
    /// Its path in the iteration that is under way, or in the last; and the one ahead of the next.
    path: Option<Arc<Path>>,
    ahead: Option<Arc<Path>>,
    is_live: bool,
    is_confirmed: bool,
    pub(super) rate: Option<u64>,
    /// The program's flow that it is.
    pub(super) flow: Option<u64>,
}

impl Entry {
    /// Returns the path that its flow takes now.
    pub(super) fn current(&self) -> Option<&Arc<Path>> {
        self.path.as_ref().or(self.ahead.as_ref())
    }
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns {
    entries: BTreeMap<Key, Entry>,
    by_ends: BTreeMap<(u32, [IpAddr; 2]), BTreeSet<u32>>,
}

impl Patterns {
    pub(super) fn get(&self, key: Key) -> Option<&Entry> {
        self.entries.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Entry> {
        self.entries.get_mut(&key)
    }

    /// Returns a flow of a job from one address to another that no program's flow is yet becomes this one.
    pub(super) fn bind(&mut self, job: u32, ends: [IpAddr; 2], flow: u64) -> Option<Key> {
        let indices = self.by_ends.get(&(job, ends))?;
        let is_free = |index: &&u32| self.entries[&(job, **index)].flow.is_none();
        let index = *indices.iter().find(is_free)?;
        self.entries.get_mut(&(job, index))?.flow = Some(flow);
        Some((job, index))
    }

    /// Returns the controller names a flow. Gives the program's flow that was bound to another with this place.
    fn name(&mut self, key: Key, ends: [IpAddr; 2]) -> Option<u64> {
        let mut unbound = None;
        if self
            .entries
            .get(&key)
            .is_some_and(|known| known.ends != ends)
        {
            unbound = self.remove(key);
        }
        let entry = self.entries.entry(key).or_insert(Entry {
            ends,
            path: None,
            ahead: None,
            is_live: false,
            is_confirmed: true,
            rate: None,
            flow: None,
        });
        entry.is_confirmed = true;
        self.by_ends.entry((key.0, ends)).or_default().insert(key.1);
        unbound
    }

    pub(super) fn take(&mut self, key: Key, ends: [IpAddr; 2], path: &Arc<Path>) -> Option<u64> {
        let unbound = self.name(key, ends);
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.path = Some(path.clone());
            entry.ahead = None;
            entry.is_live = true;
        }
        unbound
    }

    pub(super) fn foresee(&mut self, key: Key, ends: [IpAddr; 2], path: &Arc<Path>) -> Option<u64> {
        let unbound = self.name(key, ends);
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.ahead = Some(path.clone());
            // Nothing is foreseen of an iteration that is under way.
            entry.path = None;
            entry.is_live = false;
        }
        unbound
    }

    /// A flow has no path; it is live unless it cannot have one.
    pub(super) fn revoke(&mut self, key: Key, reason: Reason) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.path = None;
            entry.ahead = None;
            entry.is_live = !matches!(reason, Reason::Local | Reason::UnknownHost);
            entry.is_confirmed = true;
        }
    }

    /// An iteration has ended: its flows keep their paths for the next.
    pub(super) fn stop(&mut self, job: u32) {
        for (_, entry) in self.entries.range_mut((job, 0)..=(job, u32::MAX)) {
            entry.is_live = false;
            entry.is_confirmed = true;
        }
    }

    /// A job is gone; gives the programs' flows that were of it.
    pub(super) fn go(&mut self, job: u32) -> Vec<u64> {
        let keys = self.entries.range((job, 0)..=(job, u32::MAX));
        let keys: Vec<Key> = keys.map(|(&key, _)| key).collect();
        keys.into_iter()
            .filter_map(|key| self.remove(key))
            .collect()
    }

    /// A controller says all anew.
    pub(super) fn doubt(&mut self) {
        self.entries
            .values_mut()
            .for_each(|entry| entry.is_confirmed = false);
    }

    /// Returns what the controller has not named since is void; gives the programs' flows that were of it.
    pub(super) fn drop_doubted(&mut self) -> Vec<u64> {
        let doubted = self.entries.iter().filter(|(_, entry)| !entry.is_confirmed);
        let doubted: Vec<Key> = doubted.map(|(&key, _)| key).collect();
        doubted
            .into_iter()
            .filter_map(|key| self.remove(key))
            .collect()
    }

    fn remove(&mut self, key: Key) -> Option<u64> {
        let entry = self.entries.remove(&key)?;
        let ends = (key.0, entry.ends);
        if let Some(indices) = self.by_ends.get_mut(&ends) {
            indices.remove(&key.1);
            if indices.is_empty() {
                self.by_ends.remove(&ends);
            }
        }
        entry.flow
    }

    /// Returns the paths that are held, for [`crate::message::Hello`].
    pub(super) fn held(&self) -> Vec<HeldPattern> {
        let held = self.entries.iter().filter_map(|(&(job, index), entry)| {
            let choice = entry.current()?.choice;
            Some(HeldPattern { job, index, choice })
        });
        held.collect()
    }

    /// Live ones, each with its path.
    pub(super) fn live(&self) -> impl Iterator<Item = (Key, Option<&Arc<Path>>)> {
        let live = self.entries.iter().filter(|(_, entry)| entry.is_live);
        live.map(|(&key, entry)| (key, entry.path.as_ref()))
    }
}

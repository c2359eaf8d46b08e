//! Which links have failed, and who says so.
//!
//! A link has failed as long as operators say so, or as many hosts' probes as the options ask for. A host withdraws
//! what it said by saying that the link works, and by being gone.

use std::collections::{BTreeMap, BTreeSet};

use hocket_base::id::LinkId;

use crate::directory::HostId;

/// What is said of links.
#[derive(Clone, Debug)]
pub(super) struct Links {
    operators: BTreeSet<u32>,
    reports: BTreeMap<u32, BTreeSet<HostId>>,
    /// By link.
    has_failed: Vec<bool>,
}

impl Links {
    pub(super) fn new(count: usize) -> Self {
        Self {
            operators: BTreeSet::new(),
            reports: BTreeMap::new(),
            has_failed: vec![false; count],
        }
    }

    pub(super) fn is_link(&self, link: u32) -> bool {
        (link as usize) < self.has_failed.len()
    }

    pub(super) fn has_failed(&self) -> &[bool] {
        &self.has_failed
    }

    /// Notes what operators report of a link; returns whether they reported otherwise before.
    pub(super) fn operate(&mut self, link: u32, has_failed: bool) -> bool {
        match has_failed {
            true => self.operators.insert(link),
            false => self.operators.remove(&link),
        }
    }

    /// Notes what a host reports of a link.
    pub(super) fn report(&mut self, host: HostId, link: u32, has_failed: bool) {
        if has_failed {
            self.reports.entry(link).or_default().insert(host);
        } else if let Some(hosts) = self.reports.get_mut(&link) {
            hosts.remove(&host);
            if hosts.is_empty() {
                self.reports.remove(&link);
            }
        }
    }

    /// Of these links, those that have now failed, and those that have returned.
    pub(super) fn settle(&mut self, links: &[u32], reporters: usize) -> [Vec<LinkId>; 2] {
        let mut changed = [Vec::new(), Vec::new()];
        for &link in links {
            let reports = self.reports.get(&link).map_or(0, BTreeSet::len);
            let has_failed = self.operators.contains(&link) || reports >= reporters.max(1);
            let known = &mut self.has_failed[link as usize];
            if std::mem::replace(known, has_failed) != has_failed {
                changed[usize::from(!has_failed)].push(LinkId(link));
            }
        }
        changed
    }
}

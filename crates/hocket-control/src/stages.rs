//! A choice of the policy as what switches on the path are to choose.
//!
//! A switch spreads packets over its equal ways to a receiver's ToR: those that still lead there. A link that
//! fails thus changes what must be asked of a switch for paths that do not cross it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hocket_core::id::{DeviceId, LinkId};
use hocket_core::routing::Fabric;
use hocket_core::routing::steering::{Stage, SwitchHash};
use hocket_core::topology::Topology;

use crate::message::Path;

/// Most paths that are kept once they are made.
const MOST_KEPT: usize = 1 << 16;

/// Makes paths of choices. A switch's ways count in the order of the choices that they lead to.
#[derive(Clone, Debug)]
pub struct Stages {
    whole: Arc<Fabric>,
    /// Less what has failed.
    working: Arc<Fabric>,
    /// By link: the hash of the switch that it starts at.
    hashes: Arc<[SwitchHash]>,
    are_both_ways: bool,
    kept: BTreeMap<(u32, u32, u32), Arc<Path>>,
}

impl Stages {
    /// For a fabric and its network, with each switch's hash. `are_both_ways`: packets that come back are to take
    /// the same switches, as far as links lead back.
    pub fn new(
        fabric: Fabric,
        topology: &Topology,
        hash_of: impl Fn(DeviceId) -> SwitchHash,
        are_both_ways: bool,
    ) -> Self {
        let links = topology.links().iter();
        let whole = Arc::new(fabric);
        Self {
            working: whole.clone(),
            whole,
            hashes: links.map(|link| hash_of(link.src)).collect(),
            are_both_ways,
            kept: BTreeMap::new(),
        }
    }

    /// The fabric, nothing failed.
    pub fn fabric(&self) -> &Fabric {
        &self.whole
    }

    /// Number of links of the network.
    pub fn link_count(&self) -> usize {
        self.hashes.len()
    }

    /// These links have failed, by link, and no others. Gives the stages as they were.
    pub fn set_failed(&mut self, has_failed: &[bool]) -> Self {
        let after = Self {
            whole: self.whole.clone(),
            working: Arc::new(self.whole.without(has_failed)),
            hashes: self.hashes.clone(),
            are_both_ways: self.are_both_ways,
            kept: BTreeMap::new(),
        };
        std::mem::replace(self, after)
    }

    /// The path from one ToR to another by a choice; `None` where links of it have failed or were never there.
    ///
    /// # Complexity
    /// O(choices between the ToRs x ways) the first time, O(log kept) afterwards.
    pub fn path(&mut self, src: u32, dst: u32, choice: u32) -> Option<Arc<Path>> {
        if let Some(path) = self.kept.get(&(src, dst, choice)) {
            return Some(path.clone());
        }
        let mut links = Vec::new();
        let forth = self.one_way(src, dst, choice, &mut links)?;
        let back = match self.are_both_ways {
            // Where the way back has failed, packets come back as switches hash them.
            true => self
                .one_way(dst, src, choice, &mut Vec::new())
                .unwrap_or_default(),
            false => Vec::new(),
        };
        let links = links.iter().map(|link| link.0).collect();
        let path = Arc::new(Path {
            choice,
            links,
            forth,
            back,
        });
        if self.kept.len() >= MOST_KEPT {
            self.kept.clear();
        }
        self.kept.insert((src, dst, choice), path.clone());
        Some(path)
    }

    /// What each switch that has several ways is to choose; the links are appended.
    fn one_way(
        &self,
        src: u32,
        dst: u32,
        choice: u32,
        links: &mut Vec<LinkId>,
    ) -> Option<Vec<Stage>> {
        if !self.working.route(src, dst, choice, links) {
            return None;
        }
        // By place on the path: the ways of its switch, in order.
        let mut ways: Vec<Vec<LinkId>> = vec![Vec::new(); links.len()];
        let mut other = Vec::with_capacity(links.len());
        for each in self.working.choices_between(src, dst) {
            other.clear();
            self.working.route(src, dst, each, &mut other);
            for ((ways, link), mine) in ways.iter_mut().zip(&other).zip(&*links) {
                if !ways.contains(link) {
                    ways.push(*link);
                }
                if link != mine {
                    break;
                }
            }
        }
        let stages = links.iter().zip(ways).filter(|(_, ways)| ways.len() > 1);
        let stages = stages.map(|(link, ways)| Stage {
            hash: self.hashes[link.index()],
            ways: ways.len() as u32,
            wanted: ways.iter().position(|way| way == link).unwrap_or(0) as u32,
        });
        Some(stages.collect())
    }
}

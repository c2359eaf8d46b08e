//! A choice of the policy as what switches on the path are to choose.
//!
//! A switch spreads packets over its equal ways to a receiver's ToR: those that still lead there. A link that
//! fails thus changes what must be asked of a switch for paths that do not cross it.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::Arc;

use hocket_base::id::{DeviceId, LinkId, narrow};
use hocket_fabric::Fabric;
use hocket_steering::{Header, Stage, SwitchHash};
use hocket_topology::Topology;

use crate::message::Path;

/// Most paths that are kept once they are made.
const MOST_KEPT: usize = 1 << 14;

/// Makes paths of choices. A switch's ways count in the order of the choices that they lead to.
#[derive(Clone, Debug)]
pub struct Stages {
    whole: Arc<Fabric>,
    /// Less what has failed.
    working: Arc<Fabric>,
    /// By link: the hash of the switch that it starts at.
    hashes: Arc<[SwitchHash]>,
    /// By link: the segment of the switch that it ends at.
    segments: Arc<[Option<Ipv6Addr>]>,
    are_both_ways: bool,
    /// On three levels; on two, making one takes no longer than finding it.
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
            segments: vec![None; topology.links().len()].into(),
            are_both_ways,
            kept: BTreeMap::new(),
        }
    }

    /// Paths carry the segments of switches, where each switch on the way up has one: from the highest on, switches have
    /// one way down each.
    #[must_use]
    pub fn with_segments(
        mut self,
        topology: &Topology,
        segment_of: impl Fn(DeviceId) -> Option<Ipv6Addr>,
    ) -> Self {
        let links = topology.links().iter();
        self.segments = links.map(|link| segment_of(link.dst)).collect();
        self
    }

    /// Returns whether switches have segments.
    pub fn have_segments(&self) -> bool {
        self.segments.iter().any(Option::is_some)
    }

    /// Returns the fabric, nothing failed.
    pub fn fabric(&self) -> &Fabric {
        &self.whole
    }

    /// Returns the number of links of the network.
    pub fn link_count(&self) -> usize {
        self.hashes.len()
    }

    /// These links have failed, by link, and no others. Gives the stages as they were.
    pub fn set_failed(&mut self, has_failed: &[bool]) -> Self {
        let after = Self {
            whole: self.whole.clone(),
            working: Arc::new(self.whole.without(has_failed)),
            hashes: self.hashes.clone(),
            segments: self.segments.clone(),
            are_both_ways: self.are_both_ways,
            kept: BTreeMap::new(),
        };
        std::mem::replace(self, after)
    }

    /// Returns the path from one ToR to another by a choice; `None` where links of it have failed or were never there.
    ///
    /// # Complexity
    /// On two levels O(choices between the ToRs); on three O(choices x ways) the first time, O(log kept) afterwards.
    pub fn path(&mut self, src: u32, dst: u32, choice: u32) -> Option<Arc<Path>> {
        if self.working.levels() == 2 {
            return self.make(src, dst, choice).map(Arc::new);
        }
        if let Some(path) = self.kept.get(&(src, dst, choice)) {
            return Some(path.clone());
        }
        let path = Arc::new(self.make(src, dst, choice)?);
        if self.kept.len() >= MOST_KEPT {
            self.kept.clear();
        }
        self.kept.insert((src, dst, choice), path.clone());
        Some(path)
    }

    fn make(&self, src: u32, dst: u32, choice: u32) -> Option<Path> {
        let mut links = Vec::new();
        let forth = self.one_way(src, dst, choice, &mut links)?;
        let back = match self.are_both_ways {
            // Where the way back has failed, packets come back as switches hash them.
            true => self
                .one_way(dst, src, choice, &mut Vec::new())
                .unwrap_or_default(),
            false => Vec::new(),
        };
        let up = links[..links.len() / 2].iter();
        let segments = up.map(|link| self.segments[link.index()]).collect();
        let links = links.iter().map(|link| link.0).collect();
        Some(Path {
            choice,
            links,
            forth,
            back,
            segments: Option::unwrap_or_default(segments),
        })
    }

    /// Returns the choice that a packet takes where nobody steers it: at each switch the way that it hashes to. `None`
    /// where no path leads to the receiver's ToR.
    ///
    /// # Complexity
    /// O(choices between the ToRs).
    pub fn hashed(&self, src: u32, dst: u32, header: &Header) -> Option<u32> {
        let links_of = |choice| {
            let mut links = Vec::new();
            self.working.route(src, dst, choice, &mut links);
            (choice, links)
        };
        let mut left: Vec<(u32, Vec<LinkId>)> = self
            .working
            .choices_between(src, dst)
            .map(links_of)
            .collect();
        let mut place = 0;
        while left.len() > 1 {
            let mut ways: Vec<LinkId> = Vec::new();
            for (_, links) in &left {
                if !ways.contains(&links[place]) {
                    ways.push(links[place]);
                }
            }
            let hash = self.hashes[ways[0].index()];
            let way = ways[hash.way(header, narrow(ways.len())) as usize];
            left.retain(|(_, links)| links[place] == way);
            place += 1;
        }
        left.first().map(|&(choice, _)| choice)
    }

    /// Returns what each switch that has several ways is to choose; the links are appended.
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
        if self.working.levels() == 2 {
            // Only the first ToR has several ways, one for each choice.
            let (mut ways, mut wanted) = (0, 0);
            for each in self.working.choices_between(src, dst) {
                ways += 1;
                wanted += u32::from(each < choice);
            }
            let hash = self.hashes[links[0].index()];
            let stage = Stage { hash, ways, wanted };
            return Some(Vec::from_iter((ways > 1).then_some(stage)));
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
            ways: narrow(ways.len()),
            wanted: narrow(ways.iter().position(|way| way == link).unwrap_or(0)),
        });
        Some(stages.collect())
    }
}

#[cfg(test)]
mod tests {
    use hocket_base::units::{Bandwidth, Time};
    use hocket_steering::{Algorithm, Fields, SourcePort};
    use hocket_topology::build;
    use proptest::prelude::*;

    use super::*;

    /// Returns a fat tree of 4 ports, or a Clos of as many ToRs, less some links; each switch has a seed of its own.
    fn stages(is_tree: bool, failed: &[prop::sample::Index]) -> Stages {
        let bandwidth = Bandwidth::from_bytes_per_second(1_000).unwrap();
        let clos = build::Clos {
            spines: 4,
            tors: 8,
            hosts_per_tor: 2,
            host_bandwidth: bandwidth,
            bandwidth,
            latency: Time::from_ns(1),
        };
        let topology = match is_tree {
            true => build::fat_tree(4, bandwidth, Time::from_ns(1)).unwrap(),
            false => clos.build().unwrap(),
        };
        let hash = |switch: DeviceId| SwitchHash {
            algorithm: Algorithm::Toeplitz(Fields::FIVE),
            seed: switch.0,
            offset: 0,
        };
        let fabric = Fabric::new(&topology).unwrap();
        let mut stages = Stages::new(fabric, &topology, hash, false);
        let mut has_failed = vec![false; topology.links().len()];
        for link in failed {
            has_failed[link.index(topology.links().len())] = true;
        }
        stages.set_failed(&has_failed);
        stages
    }

    #[test]
    fn a_path_has_the_segments_of_switches_on_its_way_up() {
        let bandwidth = Bandwidth::from_bytes_per_second(1_000).unwrap();
        let topology = build::fat_tree(4, bandwidth, Time::ZERO).unwrap();
        let hash = |_| SwitchHash {
            algorithm: Algorithm::Toeplitz(Fields::FIVE),
            seed: 0,
            offset: 0,
        };
        let stages = Stages::new(Fabric::new(&topology).unwrap(), &topology, hash, false);
        let segment = |device: DeviceId| Ipv6Addr::from(u128::from(device.0));
        let mut all = stages
            .clone()
            .with_segments(&topology, |device| Some(segment(device)));
        all.set_failed(&vec![false; topology.links().len()]);
        // Below one pod by an aggregation switch alone, else by a core as well.
        for (dst, levels) in [(1, 1), (7, 2)] {
            let choice = all.working.choices_between(0, dst).last().unwrap();
            let path = all.path(0, dst, choice).unwrap();
            let crossed = path.links[..levels].iter();
            let crossed = crossed.map(|&link| segment(topology.link(LinkId(link)).dst));
            assert_eq!(path.segments, crossed.collect::<Vec<_>>());
        }
        // One that is on the way up to the receiver has none.
        let core = topology.device_by_name("core0").unwrap();
        let mut some = stages.with_segments(&topology, |device| {
            (device != core).then(|| segment(device))
        });
        let mut count = |choice| some.path(0, 7, choice).unwrap().segments.len();
        assert_eq!([count(0), count(1)], [0, 2]);
    }

    proptest! {
        #[test]
        fn a_port_that_leads_along_a_path_is_hashed_onto_it(
            is_tree: bool,
            failed in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
            src in 0..8_u8,
            ahead in 1..8_u8,
            sport in 0xc000..=0xffff_u16,
        ) {
            let mut stages = stages(is_tree, &failed);
            let dst = (src + ahead) % 8;
            let mut header = Header {
                src: [10, 0, src, 1].into(),
                dst: [10, 0, dst, 1].into(),
                protocol: 17,
                sport,
                dport: 4791,
                label: 0,
            };
            let [src, dst] = [src, dst].map(u32::from);
            let choices: Vec<u32> = stages.working.choices_between(src, dst).collect();
            let taken = stages.hashed(src, dst, &header);
            prop_assert_eq!(taken.is_some(), !choices.is_empty());
            prop_assert!(taken.is_none_or(|choice| choices.contains(&choice)));
            for choice in choices {
                let path = stages.path(src, dst, choice).unwrap();
                let forth = hocket_steering::Stages { forth: &path.forth, back: &[] };
                let Ok(port) = SourcePort::among(SourcePort::ROCE).find(&header, forth) else {
                    continue;
                };
                header.sport = port;
                prop_assert_eq!(stages.hashed(src, dst, &header), Some(choice));
            }
        }
    }
}

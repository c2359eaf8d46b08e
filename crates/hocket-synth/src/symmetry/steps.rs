//! The ways by which data gets from the first NPU to another without passing a third, and what they use.

use std::collections::{HashMap, HashSet};

use super::NoSymmetry;
use super::group::Symmetry;
use crate::graph::ShortestPaths;
use crate::id::{DeviceId, LinkId, NpuId, narrow};
use crate::topology::Topology;

/// A way from the first NPU over a link, or through switches, and the same from every NPU, shifted.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// By how much it shifts.
    pub by: u32,
    /// The links, in the direction in which trees grow.
    pub links: Vec<LinkId>,
    /// Position in [`Steps::profiles`].
    pub profile: u32,
}

/// All steps, and the sets of orbits of links that they take.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    pub steps: Vec<Step>,
    pub profiles: Vec<Vec<u32>>,
    /// Why a way was left out.
    pub left_out: Option<NoSymmetry>,
}

/// How trees grow over links: along them, or against them where data is summed towards the root.
#[derive(Clone, Copy)]
pub(super) struct Growth<'a> {
    pub topology: &'a Topology,
    pub turned: bool,
}

impl<'a> Growth<'a> {
    fn onward(self, device: DeviceId) -> &'a [LinkId] {
        match self.turned {
            true => self.topology.in_links(device),
            false => self.topology.out_links(device),
        }
    }

    fn end(self, link: LinkId) -> DeviceId {
        let link = self.topology.link(link);
        if self.turned { link.src } else { link.dst }
    }

    fn start(self, link: LinkId) -> DeviceId {
        let link = self.topology.link(link);
        if self.turned { link.dst } else { link.src }
    }
}

impl Steps {
    /// Returns the quickest way for each first link, last link and NPU at its end; one for each NPU and set of orbits.
    ///
    /// Ways are left out that take two links of an orbit, a link that other elements leave in place, or a switch with
    /// a limit of its own: there data of several NPUs would queue, and only one of them could be first.
    pub(super) fn new(growth: Growth, symmetry: &Symmetry) -> Self {
        let mut finder = Finder {
            growth,
            symmetry,
            found: Self::default(),
            seen: HashSet::new(),
            names: HashMap::new(),
        };
        let mut paths = ShortestPaths::new((u64::MAX, u32::MAX), LinkId(u32::MAX));
        for &first in growth.onward(symmetry.npu(0).device()) {
            if finder.is_own(first) {
                finder.go_on(first, &mut paths);
            }
        }
        finder.found
    }
}

struct Finder<'a> {
    growth: Growth<'a>,
    symmetry: &'a Symmetry,
    found: Steps,
    /// What each step shifts by, with its profile.
    seen: HashSet<(u32, u32)>,
    names: HashMap<Vec<u32>, u32>,
}

impl Finder<'_> {
    /// Returns whether a link can be used: no other elements leave it in place, and it does not leave a switch with a
    /// limit.
    fn is_own(&mut self, id: LinkId) -> bool {
        let (topology, orbits) = (self.growth.topology, self.symmetry.orbits());
        let switch = topology.device(topology.link(id).src);
        let why = if orbits.size(orbits.of(id)) as usize != self.symmetry.len() {
            Some(shared(topology, id))
        } else {
            let switch = switch.limit.map(|_| switch.name.clone());
            switch.map(|switch| NoSymmetry::Limit { switch })
        };
        let is_own = why.is_none();
        self.found.left_out = self.found.left_out.take().or(why);
        is_own
    }

    /// All ways that begin with a link.
    fn go_on(&mut self, first: LinkId, paths: &mut ShortestPaths<(u64, u32), LinkId>) {
        let growth = self.growth;
        let topology = growth.topology;
        let start = growth.end(first);
        if topology.is_npu(start) {
            self.offer(vec![first]);
            return;
        }
        let arcs = |device: u32| {
            let links = growth.onward(DeviceId(device)).iter();
            let ends = links.map(|&link| (growth.end(link), link));
            ends.filter(|&(end, _)| !topology.is_npu(end))
                .map(|(end, link)| (end.0, link))
        };
        paths.run(
            topology.device_count(),
            [(start.0, (0, 0))],
            arcs,
            |(time, hops), link, _| {
                let more = topology.link(link).latency.as_ps();
                let cost = (time.saturating_add(more), hops + 1);
                self.is_own(link).then_some((cost, link))
            },
        );
        for device in (topology.npu_count()..topology.device_count()).map(DeviceId::from) {
            if paths.costs()[device.index()].1 == u32::MAX {
                continue;
            }
            let mut way = Vec::new();
            let mut at = device;
            while at != start {
                let link = paths.via(at.0);
                way.push(link);
                at = growth.start(link);
            }
            way.push(first);
            way.reverse();
            for &last in growth.onward(device) {
                let end = growth.end(last);
                if topology.is_npu(end) && end != self.symmetry.npu(0).device() && self.is_own(last)
                {
                    self.offer(way.iter().copied().chain([last]).collect());
                }
            }
        }
    }

    /// Adds a way, unless it takes two links of an orbit, or there is one like it.
    fn offer(&mut self, links: Vec<LinkId>) {
        let (topology, orbits) = (self.growth.topology, self.symmetry.orbits());
        let mut profile: Vec<u32> = links.iter().map(|&link| orbits.of(link)).collect();
        profile.sort_unstable();
        if profile.windows(2).any(|pair| pair[0] == pair[1]) {
            self.found.left_out = Some(shared(topology, links[0]));
            return;
        }
        let end = self.growth.end(links[links.len() - 1]);
        let by = self.symmetry.element(NpuId(end.0));
        let profiles = &mut self.found.profiles;
        let profile = *self.names.entry(profile).or_insert_with_key(|profile| {
            profiles.push(profile.clone());
            narrow(profiles.len()) - 1
        });
        if self.seen.insert((by, profile)) {
            self.found.steps.push(Step { by, links, profile });
        }
    }
}

fn shared(topology: &Topology, link: LinkId) -> NoSymmetry {
    let link = topology.link(link);
    let name = |device: DeviceId| topology.device(device).name.clone();
    NoSymmetry::Shared {
        src: name(link.src),
        dst: name(link.dst),
    }
}

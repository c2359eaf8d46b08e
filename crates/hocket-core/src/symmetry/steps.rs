//! The ways by which data gets from the first NPU to another without passing a third, and what they use.

use std::collections::HashMap;

use super::NoSymmetry;
use super::group::Symmetry;
use crate::graph::ShortestPaths;
use crate::id::{DeviceId, LinkId};
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
}

impl Steps {
    /// The quickest way for each first link, last link and NPU at its end; one for each NPU and set of orbits.
    ///
    /// Ways are left out that take two links of an orbit, a link that other elements leave in place, or a switch with
    /// a limit of its own: there data of several NPUs would queue, and only one of them could be first.
    pub(super) fn new(growth: Growth, symmetry: &Symmetry) -> Self {
        let mut found = Self::default();
        let mut seen = HashMap::new();
        let mut names = HashMap::new();
        let root = symmetry.npu(0).device();
        let mut paths = ShortestPaths::new((u64::MAX, u32::MAX), LinkId(u32::MAX));
        for &first in growth.onward(root) {
            let topology = growth.topology;
            let start = growth.end(first);
            if topology.is_npu(start) {
                found.offer(growth, symmetry, (&mut seen, &mut names), vec![first]);
                continue;
            }
            let arcs = |device: u32| {
                let links = growth.onward(DeviceId(device)).iter();
                links
                    .map(|&link| (growth.end(link), link))
                    .filter(|&(end, _)| !topology.is_npu(end))
                    .map(|(end, link)| (end.0, link))
            };
            paths.run(
                topology.device_count(),
                [(start.0, (0, 0))],
                arcs,
                |(time, hops): (u64, u32), link, _| {
                    let more = topology.link(link).latency.as_ps();
                    Some(((time.saturating_add(more), hops + 1), link))
                },
            );
            for device in topology.npu_count()..topology.device_count() {
                let device = DeviceId::from(device);
                if paths.costs()[device.index()].1 == u32::MAX {
                    continue;
                }
                let mut way = Vec::new();
                let mut at = device;
                while at != start {
                    let link = paths.via(at.0);
                    way.push(link);
                    let link = topology.link(link);
                    at = if growth.turned { link.dst } else { link.src };
                }
                way.push(first);
                way.reverse();
                for &last in growth.onward(device) {
                    let end = growth.end(last);
                    if topology.is_npu(end) && end != root {
                        let links = way.iter().copied().chain([last]).collect();
                        found.offer(growth, symmetry, (&mut seen, &mut names), links);
                    }
                }
            }
        }
        found
    }

    fn offer(
        &mut self,
        growth: Growth,
        symmetry: &Symmetry,
        (seen, names): (&mut HashMap<(u32, u32), ()>, &mut HashMap<Vec<u32>, u32>),
        links: Vec<LinkId>,
    ) {
        let topology = growth.topology;
        let orbits = symmetry.orbits();
        let name = |device: DeviceId| topology.device(device).name.clone();
        let shared = links
            .iter()
            .find(|&&link| orbits.size(orbits.of(link)) as usize != symmetry.len());
        let mut profile: Vec<u32> = links.iter().map(|&link| orbits.of(link)).collect();
        profile.sort_unstable();
        let twice = profile
            .windows(2)
            .any(|pair| pair[0] == pair[1])
            .then_some(&links[0]);
        if let Some(&link) = shared.or(twice) {
            let link = topology.link(link);
            self.left_out = Some(NoSymmetry::Shared {
                src: name(link.src),
                dst: name(link.dst),
            });
            return;
        }
        let inner = links[..links.len() - 1]
            .iter()
            .map(|&link| growth.end(link));
        if let Some(limited) = inner
            .clone()
            .find(|&device| topology.device(device).limit.is_some())
        {
            self.left_out = Some(NoSymmetry::Limit {
                switch: name(limited),
            });
            return;
        }
        let end = growth.end(links[links.len() - 1]);
        let by = symmetry.element(crate::id::NpuId(end.0));
        let count = self.profiles.len() as u32;
        let number = *names.entry(profile).or_insert_with_key(|profile| {
            self.profiles.push(profile.clone());
            count
        });
        if seen.insert((by, number), ()).is_none() {
            self.steps.push(Step {
                by,
                links,
                profile: number,
            });
        }
    }
}

//! Where switches and links are taken when it is known where NPUs are.

use std::collections::HashSet;

use super::NoSymmetry;
use super::group::Shift;
use crate::id::{DeviceId, LinkId, narrow};
use crate::topology::{Link, Topology};
use crate::units::Seed;

/// Tells switches apart by the NPUs around them, near and far.
pub(super) struct Extender<'a> {
    topology: &'a Topology,
    /// How many links away NPUs are looked at until no more switches are told apart.
    rounds: usize,
    colors: Vec<u64>,
}

/// Rounds after which switches that look alike are taken to be alike.
const MOST_ROUNDS: usize = 16;

impl<'a> Extender<'a> {
    pub(super) fn new(topology: &'a Topology) -> Self {
        let npus: Vec<u32> = (0..narrow(topology.npu_count())).collect();
        let mut colors = first(topology, &npus);
        let (mut rounds, mut count) = (0, distinct(&colors));
        if topology.device_count() > topology.npu_count() {
            while rounds < MOST_ROUNDS {
                colors = refine(topology, &colors);
                rounds += 1;
                let now = distinct(&colors);
                // One round tells switches by their NPUs, which the count before did not.
                if now == count && rounds > 1 {
                    break;
                }
                count = now;
            }
        }
        Self {
            topology,
            rounds,
            colors,
        }
    }

    /// Returns the shift that takes each NPU where `npus` says, if switches and links can follow.
    ///
    /// Switches that are joined alike to the same NPUs keep their order.
    ///
    /// # Errors
    /// [`NoSymmetry`] that names a link, or a switch, that cannot follow.
    pub(super) fn extend(&self, npus: &[u32]) -> Result<Shift, NoSymmetry> {
        let topology = self.topology;
        let mut colors = first(topology, &inverse(npus));
        for _ in 0..self.rounds {
            colors = refine(topology, &colors);
        }
        let switches = narrow(topology.npu_count())..narrow(topology.device_count());
        let sorted = |colors: &[u64]| {
            let mut switches: Vec<u32> = switches.clone().collect();
            switches.sort_by_key(|&switch| (colors[switch as usize], switch));
            switches
        };
        let mut devices: Vec<u32> = npus.to_vec();
        devices.resize(topology.device_count(), u32::MAX);
        for (from, to) in sorted(&self.colors).into_iter().zip(sorted(&colors)) {
            if self.colors[from as usize] != colors[to as usize] {
                return Err(NoSymmetry::Switch {
                    switch: topology.devices()[from as usize].name.clone(),
                });
            }
            devices[from as usize] = to;
        }
        self.links(devices)
    }

    fn links(&self, devices: Vec<u32>) -> Result<Shift, NoSymmetry> {
        let topology = self.topology;
        let mut links = vec![u32::MAX; topology.links().len()];
        let taken = |device: DeviceId| DeviceId(devices[device.index()]);
        for (i, link) in topology.links().iter().enumerate() {
            if links[i] != u32::MAX {
                continue;
            }
            let ends = (taken(link.src), taken(link.dst));
            let from = alike(topology, (link.src, link.dst));
            let to = alike(topology, ends);
            let fits = from.len() == to.len();
            for (&a, &b) in from.iter().zip(&to) {
                let (a_link, b_link) = (topology.link(a), topology.link(b));
                if !fits || class(a_link) != class(b_link) {
                    return Err(NoSymmetry::link(topology, (link.src, link.dst), ends));
                }
                links[a.index()] = b.0;
            }
            if !fits {
                return Err(NoSymmetry::link(topology, (link.src, link.dst), ends));
            }
        }
        Ok(Shift { devices, links })
    }
}

/// Bandwidth and latency.
pub(super) fn class(link: &Link) -> (u64, u64) {
    (link.bandwidth.bytes_per_second(), link.latency.as_ps())
}

/// Parallel links, those that are alike by number.
fn alike(topology: &Topology, (src, dst): (DeviceId, DeviceId)) -> Vec<LinkId> {
    let mut links = topology.links_from_to(src, dst).to_vec();
    links.sort_by_key(|&id| (class(topology.link(id)), id));
    links
}

/// Returns the NPUs by their labels, all switches alike.
fn first(topology: &Topology, labels: &[u32]) -> Vec<u64> {
    let mut colors: Vec<u64> = labels.iter().map(|&label| mix(u64::from(label))).collect();
    let switches = topology.devices()[topology.npu_count()..].iter();
    let limit = |limit: crate::units::Bandwidth| limit.bytes_per_second();
    colors.extend(switches.map(|switch| mix(switch.limit.map_or(0, limit) ^ u64::MAX)));
    colors
}

/// Returns every switch also by what it is joined to.
fn refine(topology: &Topology, colors: &[u64]) -> Vec<u64> {
    let mut next = colors.to_vec();
    for (i, color) in next.iter_mut().enumerate().skip(topology.npu_count()) {
        let device = DeviceId::from(i);
        let out = topology.out_links(device).iter();
        let out = out.map(|&id| (1, topology.link(id), topology.link(id).dst));
        let into = topology.in_links(device).iter();
        let into = into.map(|&id| (2, topology.link(id), topology.link(id).src));
        let each = out.chain(into).map(|(side, link, other)| {
            let (bandwidth, latency) = class(link);
            let link = mix(bandwidth ^ mix(latency ^ mix(side)));
            mix(colors[other.index()] ^ link)
        });
        *color = mix(colors[i] ^ each.fold(0, u64::wrapping_add));
    }
    next
}

fn mix(value: u64) -> u64 {
    Seed(value).next_u64()
}

fn distinct(colors: &[u64]) -> usize {
    colors.iter().collect::<HashSet<_>>().len()
}

fn inverse(npus: &[u32]) -> Vec<u32> {
    let mut inverse = vec![0; npus.len()];
    for (from, &to) in (0..).zip(npus) {
        inverse[to as usize] = from;
    }
    inverse
}

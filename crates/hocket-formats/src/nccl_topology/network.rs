//! A network of one machine or of several, without what no collective uses.

use std::collections::BTreeSet;

use hocket_base::id::fit;

use super::rates::Medium;
use super::{Kind, Link, System};
use crate::error::FormatError;

/// A network: NPUs first, then switches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Names of all devices; with several machines `n1.gpu0`.
    pub names: Vec<String>,
    /// How many of them are NPUs.
    pub npus: usize,
    /// All links.
    pub links: Vec<Link>,
    /// For each machine its NPUs, by rank.
    pub nodes: Vec<Vec<usize>>,
    /// For each machine the devices of its NICs, in the order of [`System::nets`]; none where it is alone.
    pub nics: Vec<Vec<usize>>,
    /// Switches that sum and multicast.
    pub sums: Vec<usize>,
    /// What a reader should know, a sentence each.
    pub notes: Vec<String>,
}

/// Joins machines by one switch at which every NIC has its full rate. Of a machine that is alone the NICs are left
/// out, and PCI too where NVLink joins all its GPUs.
///
/// # Errors
/// A fault where a machine of several has no NIC.
pub fn join(systems: &[&System]) -> Result<Network, FormatError> {
    let is_alone = systems.len() == 1;
    let kept: Vec<Kept> = systems.iter().map(|it| Kept::of(it, !is_alone)).collect();
    let mut network = Network::default();
    let mut places: Vec<Vec<Option<usize>>> = Vec::new();
    for (node, system) in systems.iter().enumerate() {
        let mut place = vec![None; system.devices.len()];
        let mut members = Vec::new();
        for gpu in &system.gpus {
            place[gpu.device] = Some(network.names.len());
            members.push(network.names.len());
            network
                .names
                .push(named(system, gpu.device, node, is_alone));
        }
        network.nodes.push(members);
        places.push(place);
    }
    network.npus = network.names.len();
    for (node, system) in systems.iter().enumerate() {
        for (device, place) in places[node].iter_mut().enumerate() {
            if kept[node].devices.contains(&device) && place.is_none() {
                *place = Some(network.names.len());
                if system.devices[device].kind == Kind::NvSwitch && system.sums() {
                    network.sums.push(network.names.len());
                }
                network.names.push(named(system, device, node, is_alone));
            }
        }
        for note in &system.notes {
            let at = if is_alone {
                String::new()
            } else {
                format!("node {node}: ")
            };
            network.notes.push(format!("{at}{note}"));
        }
        let place = |device: usize| places[node][device].expect("a device that is kept");
        network
            .links
            .extend(kept[node].links.iter().map(|link| Link {
                src: place(link.src),
                dst: place(link.dst),
                ..*link
            }));
        let nets = system.nets.iter().filter(|_| !is_alone);
        network
            .nics
            .push(nets.map(|net| place(net.device)).collect());
    }
    if !is_alone {
        let fabric = network.names.len();
        network.names.push("fabric".to_owned());
        for (node, system) in systems.iter().enumerate() {
            if system.nets.is_empty() {
                let why = format!("node {node} has no NIC that the file tells of");
                return Err(FormatError::new(why).remedy(
                    "give what NCCL writes to NCCL_TOPO_DUMP_FILE in a run over several nodes",
                ));
            }
            for (net, &device) in system.nets.iter().zip(&network.nics[node]) {
                for (src, dst) in [(device, fabric), (fabric, device)] {
                    network.links.push(Link {
                        src,
                        dst,
                        bandwidth: fit::<u64, _>(net.mbps) * 125_000,
                        medium: Medium::Net,
                    });
                }
            }
        }
        let note = "of the network between nodes a dump says nothing: one switch joins all NICs at their full rate";
        network.notes.push(note.to_owned());
    }
    Ok(network)
}

fn named(system: &System, device: usize, node: usize, is_alone: bool) -> String {
    let name = &system.devices[device].name;
    match is_alone {
        true => name.clone(),
        false => format!("n{node}.{name}"),
    }
}

/// What of a machine is kept.
struct Kept {
    devices: BTreeSet<usize>,
    links: Vec<Link>,
}

impl Kept {
    fn of(system: &System, with_nics: bool) -> Self {
        let is_fast = |link: &&Link| {
            matches!(
                link.medium,
                Medium::NvLink | Medium::NvSwitch | Medium::Xgmi
            )
        };
        let fast: Vec<Link> = system.links.iter().filter(is_fast).copied().collect();
        let is_joined = joins(system, &fast);
        let mut kept = match is_joined && !with_nics {
            true => Self {
                devices: fast.iter().flat_map(|it| [it.src, it.dst]).collect(),
                links: fast,
            },
            false => Self {
                devices: (0..system.devices.len()).collect(),
                links: system.links.clone(),
            },
        };
        let mut fixed: BTreeSet<usize> = system.gpus.iter().map(|gpu| gpu.device).collect();
        if with_nics {
            fixed.extend(system.nets.iter().map(|net| net.device));
        }
        kept.devices.extend(&fixed);
        kept.prune(&fixed);
        kept.shorten(system);
        kept
    }

    fn neighbours(&self, count: usize) -> Vec<BTreeSet<usize>> {
        let mut found = vec![BTreeSet::new(); count];
        for link in &self.links {
            found[link.src].insert(link.dst);
            found[link.dst].insert(link.src);
        }
        found
    }

    /// Removes what leads nowhere, until nothing does.
    fn prune(&mut self, fixed: &BTreeSet<usize>) {
        let count = self.devices.last().map_or(0, |last| last + 1);
        let mut next = self.neighbours(count);
        let mut idle: Vec<usize> = self.devices.iter().copied().collect();
        while let Some(device) = idle.pop() {
            let is_end = next[device].len() < 2 && !fixed.contains(&device);
            if !is_end || !self.devices.remove(&device) {
                continue;
            }
            for other in std::mem::take(&mut next[device]) {
                next[other].remove(&device);
                idle.push(other);
            }
        }
        let devices = &self.devices;
        self.links
            .retain(|link| devices.contains(&link.src) && devices.contains(&link.dst));
    }

    /// Replaces PCI bridges between two devices by one link, as narrow as the narrower of both.
    fn shorten(&mut self, system: &System) {
        let count = self.devices.last().map_or(0, |last| last + 1);
        for device in 0..count {
            let is_bridge = system.devices[device].kind == Kind::Pci;
            let at = self.links.iter();
            let ends: BTreeSet<usize> = at
                .filter(|link| link.src == device || link.dst == device)
                .flat_map(|link| [link.src, link.dst])
                .filter(|&end| end != device)
                .collect();
            if !is_bridge || ends.len() != 2 || !self.devices.remove(&device) {
                continue;
            }
            let rates = self.links.iter();
            let rate = rates
                .filter(|link| link.src == device || link.dst == device)
                .map(|link| link.bandwidth)
                .min();
            self.links
                .retain(|link| link.src != device && link.dst != device);
            let ends: Vec<usize> = ends.into_iter().collect();
            for (src, dst) in [(ends[0], ends[1]), (ends[1], ends[0])] {
                self.links.push(Link {
                    src,
                    dst,
                    bandwidth: rate.expect("it has links"),
                    medium: Medium::Pcie,
                });
            }
        }
    }
}

/// Returns whether links join all GPUs of a machine.
pub(super) fn joins(system: &System, links: &[Link]) -> bool {
    let mut next = vec![Vec::new(); system.devices.len()];
    for link in links {
        next[link.src].push(link.dst);
        next[link.dst].push(link.src);
    }
    let mut is_reached = vec![false; system.devices.len()];
    let mut stack = vec![system.gpus[0].device];
    while let Some(device) = stack.pop() {
        if !std::mem::replace(&mut is_reached[device], true) {
            stack.extend(&next[device]);
        }
    }
    system.gpus.iter().all(|gpu| is_reached[gpu.device])
}

//! Puts a [`Topology`] together, device by device and link by link.

use std::collections::HashSet;

use super::{Device, DeviceKind, Dimension, Link, Offload, Switching, Topology, TopologyError};
use crate::graph::Lists;
use crate::id::{DeviceId, LinkId, narrow};
use crate::units::{Bandwidth, Time};

/// Collects devices and links; [`finish`](Self::finish) checks and indexes them.
///
/// Every NPU is added before the first switch, so that NPU `i` is device `i`.
#[derive(Clone, Debug, Default)]
pub struct TopologyBuilder {
    name: String,
    devices: Vec<Device>,
    links: Vec<Link>,
    dimensions: Vec<Dimension>,
    switching: Switching,
}

impl TopologyBuilder {
    /// Returns an empty topology with a name for reports.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Adds an NPU.
    ///
    /// # Panics
    /// If a switch was added before it.
    pub fn npu(&mut self, name: impl Into<String>) -> DeviceId {
        assert!(
            self.devices
                .last()
                .is_none_or(|d| d.kind == DeviceKind::Npu),
            "NPUs are added before switches"
        );
        self.device(name.into(), DeviceKind::Npu, None)
    }

    /// Adds `count` NPUs named `npu0`, `npu1`, ...
    pub fn npus(&mut self, count: usize) {
        for i in 0..count {
            self.npu(format!("npu{i}"));
        }
    }

    /// Adds a switch, with a bandwidth limit of its own or none.
    pub fn switch(&mut self, name: impl Into<String>, limit: Option<Bandwidth>) -> DeviceId {
        self.device(name.into(), DeviceKind::Switch, limit)
    }

    fn device(&mut self, name: String, kind: DeviceKind, limit: Option<Bandwidth>) -> DeviceId {
        self.devices.push(Device {
            name,
            kind,
            limit,
            offload: None,
        });
        DeviceId::from(self.devices.len() - 1)
    }

    /// Makes a switch added before do more than forward, or, for `None`, no more.
    ///
    /// # Panics
    /// If there is no such device.
    pub fn offload(&mut self, switch: DeviceId, offload: Option<Offload>) {
        self.devices[switch.index()].offload = offload;
    }

    /// Adds a directed link. Parallel links are allowed.
    pub fn link(&mut self, src: DeviceId, dst: DeviceId, bandwidth: Bandwidth, latency: Time) {
        self.links.push(Link {
            src,
            dst,
            bandwidth,
            latency,
        });
    }

    /// Adds a link each way.
    pub fn both_ways(&mut self, a: DeviceId, b: DeviceId, bandwidth: Bandwidth, latency: Time) {
        self.link(a, b, bandwidth, latency);
        self.link(b, a, bandwidth, latency);
    }

    /// States the dimensions of a product. The caller vouches that devices and links follow them.
    pub fn dimensions(&mut self, dimensions: Vec<Dimension>) {
        self.dimensions = dimensions;
    }

    /// Sets how devices pass messages on; store-and-forward by default.
    pub fn switching(&mut self, switching: Switching) {
        self.switching = switching;
    }

    /// Checks and indexes.
    ///
    /// # Errors
    /// [`TopologyError::DuplicateDevice`], [`TopologyError::SelfLoop`], or
    /// [`TopologyError::BadParameter`] for no NPU at all, a link end that is not a device, a name that cannot
    /// be shown in a line, or as [`Topology::with_offload`].
    pub fn finish(self) -> Result<Topology, TopologyError> {
        let npu_count = self
            .devices
            .iter()
            .filter(|d| d.kind == DeviceKind::Npu)
            .count();
        if npu_count == 0 {
            return Err(TopologyError::BadParameter {
                what: format!("topology {:?}", self.name),
                why: "has no NPU; give it at least one".to_owned(),
            });
        }
        if let Some(why) = name_fault(&self.name) {
            return Err(TopologyError::BadParameter {
                what: "name of the topology".to_owned(),
                why,
            });
        }
        let mut names = HashSet::with_capacity(self.devices.len());
        for (id, device) in self.devices.iter().enumerate() {
            if let Some(why) = name_fault(&device.name) {
                return Err(TopologyError::BadParameter {
                    what: format!("name of device {id}"),
                    why,
                });
            }
            if !names.insert(device.name.as_str()) {
                return Err(TopologyError::DuplicateDevice {
                    name: device.name.clone(),
                });
            }
        }
        for link in &self.links {
            for end in [link.src, link.dst] {
                if end.index() >= self.devices.len() {
                    return Err(TopologyError::BadParameter {
                        what: format!("link {} -> {}", link.src, link.dst),
                        why: format!("there are {} devices", self.devices.len()),
                    });
                }
            }
            if link.src == link.dst {
                return Err(TopologyError::SelfLoop {
                    name: self.devices[link.src.index()].name.clone(),
                });
            }
        }
        let count = self.devices.len();
        let out = adjacency(count, &self.links, |link| (link.src, link.dst));
        let into = adjacency(count, &self.links, |link| (link.dst, link.src));
        let offloads: Vec<(DeviceId, Offload)> = (0..count)
            .map(DeviceId::from)
            .filter_map(|id| Some((id, self.devices[id.index()].offload?)))
            .collect();
        let plain = Topology {
            name: self.name,
            npu_count: narrow(npu_count),
            devices: self.devices,
            links: self.links,
            dimensions: self.dimensions,
            groups: Vec::new(),
            switching: self.switching,
            has_offload: false,
            out,
            into,
        };
        offloads.into_iter().try_fold(plain, |made, (id, offload)| {
            made.with_offload(id, Some(offload))
        })
    }
}

/// Returns why a name would not show as what it is, in one line: it is empty or very long, or has a character that ends
/// a line, hides, turns the text round or steers a terminal.
pub fn name_fault(name: &str) -> Option<String> {
    const LONGEST: usize = 10_000;
    let hides = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            || c == '\u{feff}'
    };
    if name.is_empty() {
        return Some("is empty; give it a letter at least".to_owned());
    }
    if name.len() > LONGEST {
        return Some(format!("is longer than {LONGEST} bytes; shorten it"));
    }
    let hidden = name.chars().find(|&c| hides(c))?;
    Some(format!(
        "has the character U+{:04X}, which cannot be shown; remove it",
        u32::from(hidden)
    ))
}

/// Returns the links grouped by their near end, by far end and link id within a group; `ends` gives (near, far).
fn adjacency(
    device_count: usize,
    links: &[Link],
    ends: impl Fn(&Link) -> (DeviceId, DeviceId),
) -> Lists<LinkId> {
    let ends = |id: LinkId| ends(&links[id.index()]);
    let all = (0..links.len()).map(LinkId::from);
    let by_far = Lists::grouped(device_count, all.map(|id| (ends(id).1.index(), id)));
    let by_far = by_far.items().iter().copied();
    Lists::grouped(device_count, by_far.map(|id| (ends(id).0.index(), id)))
}

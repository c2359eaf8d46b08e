//! The network: a directed multigraph of NPUs and switches, with a bandwidth and a latency per link.

#![forbid(unsafe_code)]

mod crossing;
mod offload;
mod builder;
pub mod build;
pub mod shortest;
pub mod embedding;
pub mod equal;
mod groups;
pub mod failures;
pub mod inspect;
mod link_dimensions;

pub use builder::TopologyBuilder;
pub use builder::name_fault;
pub use crossing::{LatencyModel, Switching};
pub use offload::Offload;

// Of the crates below: `crate::id` and so on.
use hocket_base::{explain, graph, id, units};

use crate::explain::Explain;
use crate::graph::Lists;
use crate::id::{DeviceId, LinkId, NpuId};
use crate::units::{Bandwidth, Memory, Time};

/// Kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// An endpoint that holds data.
    Npu,
    /// A device that forwards, and where it can sums and multicasts: see [`Offload`].
    Switch,
}

/// An NPU or a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Unique in its topology.
    pub name: String,
    /// NPU or switch.
    pub kind: DeviceKind,
    /// A switch's own limit on what crosses it, all ports together; `None`: only its links limit it.
    pub limit: Option<Bandwidth>,
    /// What it can do as a switch besides forwarding; `None` for NPUs and for switches that cannot.
    pub offload: Option<Offload>,
}

/// A directed link. A message of n bytes takes `latency + n / bandwidth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Device at which the link starts.
    pub src: DeviceId,
    /// Device at which the link ends.
    pub dst: DeviceId,
    /// Bandwidth of the link.
    pub bandwidth: Bandwidth,
    /// Alpha of the alpha-beta model.
    pub latency: Time,
}

/// Building block of one dimension of a product topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DimensionKind {
    /// Links both ways between neighbours, closed.
    Ring,
    /// Links both ways between neighbours, open: a mesh is a product of lines.
    Line,
    /// A link each way between every pair.
    FullyConnected,
    /// One switch per group, a link each way between it and every NPU.
    Switch,
}

/// One dimension of a product topology. NPU ids vary fastest in the first dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Building block.
    pub kind: DimensionKind,
    /// Number of NPUs along the dimension.
    pub size: u32,
    /// Bandwidth of each link of the dimension.
    pub bandwidth: Bandwidth,
    /// Latency of each link of the dimension; crossing a switch takes two links.
    pub latency: Time,
    /// Whether its switches sum and multicast (in-network collective offload): [`Offload::FULL`] of each.
    pub offload: bool,
}

/// Why a topology could not be made or changed.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum TopologyError {
    /// A name that no device bears.
    #[explain(why("no device is called {name:?}"), remedy("{hint}"))]
    UnknownDevice {
        /// The name asked for.
        name: String,
        /// The closest names there are.
        hint: String,
    },
    /// Two devices with one name.
    #[explain(
        why("device {name:?} is listed twice"),
        remedy("give each device a name of its own")
    )]
    DuplicateDevice {
        /// The name.
        name: String,
    },
    /// A link from a device to itself.
    #[explain(
        why("link {name:?} -> {name:?} joins a device to itself"),
        remedy("remove it")
    )]
    SelfLoop {
        /// The device.
        name: String,
    },
    /// A link that is not there.
    #[explain(
        why("there is no link {src:?} -> {dst:?}"),
        remedy("links of {src:?} go to: {neighbours}")
    )]
    UnknownLink {
        /// Name of the device at which the link would start.
        src: String,
        /// Name of the device at which the link would end.
        dst: String,
        /// Names of the devices that `src` has links to.
        neighbours: String,
    },
    /// A builder's parameter that makes no network.
    #[explain(why("{what}: {why}"))]
    BadParameter {
        /// The parameter.
        what: String,
        /// What is wrong and what would be right.
        why: String,
    },
    /// A network that does not fit in memory.
    #[explain(
        why("{what} needs about {} of memory, more than the limit of {}", Memory(*bytes), Memory(u128::from(*limit))),
        remedy("make it smaller")
    )]
    TooLarge {
        /// Network that was asked for.
        what: String,
        /// Bytes that the network would take.
        bytes: u128,
        /// Bytes that it may take.
        limit: u64,
    },
}

/// A directed multigraph of NPUs and switches. Immutable; made by [`TopologyBuilder`].
///
/// Devices are numbered NPUs first, so that NPU `i` is device `i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    name: String,
    devices: Vec<Device>,
    npu_count: u32,
    links: Vec<Link>,
    dimensions: Vec<Dimension>,
    groups: Vec<Vec<NpuId>>,
    switching: Switching,
    has_offload: bool,
    out: Lists<LinkId>,
    into: Lists<LinkId>,
}

impl Topology {
    /// Name of the network in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns how devices pass messages on.
    pub fn switching(&self) -> Switching {
        self.switching
    }

    /// Returns the same network, whose devices pass messages on in another way.
    pub fn with_switching(mut self, switching: Switching) -> Self {
        self.switching = switching;
        self
    }

    /// Returns the number of NPUs.
    pub fn npu_count(&self) -> usize {
        self.npu_count as usize
    }

    /// Returns the number of devices: NPUs and switches.
    pub fn device_count(&self) -> usize {
        self.devices.len()
    }

    /// Returns every device, NPUs first.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// One device.
    pub fn device(&self, id: DeviceId) -> &Device {
        &self.devices[id.index()]
    }

    /// Returns every NPU.
    pub fn npus(&self) -> impl ExactSizeIterator<Item = NpuId> + use<> {
        (0..self.npu_count).map(NpuId)
    }

    /// Returns `true` if a device is an NPU.
    #[inline]
    pub fn is_npu(&self, id: DeviceId) -> bool {
        id.0 < self.npu_count
    }

    /// Returns every link.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// One link.
    #[inline]
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.index()]
    }

    /// Returns the links that start at a device, by where they end, parallel ones by id.
    #[inline]
    pub fn out_links(&self, id: DeviceId) -> &[LinkId] {
        self.out.get(id.index())
    }

    /// Returns the links that end at a device, by where they start, parallel ones by id.
    #[inline]
    pub fn in_links(&self, id: DeviceId) -> &[LinkId] {
        self.into.get(id.index())
    }

    /// Parallel links from one device to another, by id; none where they are not joined.
    pub fn links_from_to(&self, src: DeviceId, dst: DeviceId) -> &[LinkId] {
        let links = self.out_links(src);
        let start = links.partition_point(|&id| self.link(id).dst < dst);
        let end = links.partition_point(|&id| self.link(id).dst <= dst);
        &links[start..end]
    }

    /// Returns the product's dimensions, first the one in which NPU ids vary fastest; empty where the topology is not a
    /// product.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// Returns the device of a name.
    ///
    /// # Errors
    /// [`TopologyError::UnknownDevice`], with the closest names.
    pub fn device_by_name(&self, name: &str) -> Result<DeviceId, TopologyError> {
        match self.devices.iter().position(|device| device.name == name) {
            Some(index) => Ok(DeviceId::from(index)),
            None => Err(TopologyError::UnknownDevice {
                name: name.to_owned(),
                hint: self.names_hint(),
            }),
        }
    }

    /// Returns all names where they are few; else the first and the last of those that differ in numbers alone.
    fn names_hint(&self) -> String {
        const FEW: usize = 12;
        let names = || self.devices.iter().map(|device| device.name.as_str());
        if self.devices.len() <= FEW {
            return format!("devices are: {}", names().collect::<Vec<_>>().join(", "));
        }
        let mut kinds: Vec<(String, &str, &str)> = Vec::new();
        for name in names() {
            let kind: String = name.chars().filter(|c| !c.is_ascii_digit()).collect();
            match kinds.iter_mut().find(|(known, ..)| *known == kind) {
                Some((_, _, last)) => *last = name,
                None => kinds.push((kind, name, name)),
            }
            if kinds.len() > FEW {
                break;
            }
        }
        let more = if kinds.len() > FEW { ", ..." } else { "" };
        let shown = kinds
            .iter()
            .take(FEW)
            .map(|&(_, first, last)| match first == last {
                true => first.to_owned(),
                false => format!("{first} to {last}"),
            });
        format!(
            "devices are: {}{more}",
            shown.collect::<Vec<_>>().join(", ")
        )
    }
}

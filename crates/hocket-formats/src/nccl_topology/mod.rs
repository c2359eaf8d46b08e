//! Machines as NCCL and RCCL see them: what `NCCL_TOPO_DUMP_FILE` writes.
//!
//! A dump is a tree of processors, PCI devices, GPUs with their NVLinks (xGMI of RCCL), and NICs. [`System`] is what
//! it says; [`join`] makes a network of one machine or of several. What `nvidia-smi` prints is read to a [`System`] too.
//!
//! # Source
//! NVIDIA NCCL 2.30.7, `src/graph/xml.cc` and `topo.cc`; ROCm RCCL 2.21.5, the same files, for version 2 of a dump.

mod dump;
mod network;
mod rates;
mod smi;

pub use network::{Network, join};
pub use rates::Medium;
pub use smi::read_smi;

use std::collections::BTreeSet;

use strum::IntoStaticStr;

use crate::error::FormatError;

/// What a device of a machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A GPU.
    Gpu,
    /// All NVSwitches of a machine, as NCCL sees them: one.
    NvSwitch,
    /// A processor, or a part of one with its own memory.
    Cpu,
    /// A PCI bridge, or a NIC with several ports.
    Pci,
    /// A port of a NIC.
    Net,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Such as `gpu0`; with several hosts in one dump `h1.gpu0`.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its device.
    pub device: usize,
    /// Which host it is in, where one NVLink domain has several.
    pub host: usize,
    /// Its number in that host, as NVML has it.
    pub dev: i64,
    /// Its rank in the communicator whose dump it is.
    pub rank: i64,
    /// Compute capability times ten; of RCCL the number of compute units.
    pub sm: i64,
    /// RCCL's name of its architecture, as `gfx942`.
    pub arch: Option<String>,
    /// NVLinks or xGMI links that it has in all.
    pub links: u32,
    /// Its PCI bus id, as `0000:1a:00.0`, where a file has one.
    pub bus: Option<String>,
}

impl Gpu {
    /// Returns its number in files of graphs.
    pub fn id(&self) -> i64 {
        ((self.host as i64) << 56) + self.dev
    }
}

/// A port of a NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Net {
    /// Its device.
    pub device: usize,
    /// Which host it is in.
    pub host: usize,
    /// Its number there, as NCCL counts.
    pub dev: i64,
    /// Such as `mlx5_0`.
    pub name: String,
    /// What it carries [Mb/s].
    pub mbps: i64,
}

impl Net {
    /// Returns its number in files of graphs.
    pub fn id(&self) -> i64 {
        ((self.host as i64) << 56) + self.dev
    }
}

/// Whose processors a machine has, as far as NCCL's model of costs tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Processor {
    /// Intel's, of the architecture x86.
    Intel,
    /// AMD's, of the architecture x86.
    Amd,
    /// Any other.
    Other,
    /// Those of some hosts differ from those of others.
    Mixed,
}

impl Processor {
    /// Returns the kind by the architecture and the vendor that a dump states.
    #[must_use]
    pub fn of(arch: &str, vendor: &str) -> Self {
        match (arch, vendor) {
            ("x86_64", "GenuineIntel") => Self::Intel,
            ("x86_64", "AuthenticAMD") => Self::Amd,
            _ => Self::Other,
        }
    }

    /// Returns what two machines have together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        if self == other { self } else { Self::Mixed }
    }

    /// Returns its name in small letters.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A link, one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// From this device.
    pub src: usize,
    /// To this one.
    pub dst: usize,
    /// What it carries [bytes/s].
    pub bandwidth: u64,
    /// What it is made of.
    pub medium: Medium,
}

/// A machine, or several that NVLink joins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// All devices.
    pub devices: Vec<Device>,
    /// The GPUs, by rank.
    pub gpus: Vec<Gpu>,
    /// The ports of NICs, by host and number.
    pub nets: Vec<Net>,
    /// Its processors, by the first of each host, as NCCL goes by; none where nothing says it.
    pub processor: Option<Processor>,
    /// All links, each direction by itself.
    pub links: Vec<Link>,
    /// What a reader should know, a sentence each.
    pub notes: Vec<String>,
}

impl System {
    /// Reads a dump.
    ///
    /// # Errors
    /// A fault with the line, for what is no dump of a version that is known, or contradicts itself.
    ///
    /// # Examples
    /// ```
    /// use hocket_formats::nccl_topology::System;
    ///
    /// let gpu = |dev: usize| {
    ///     format!(
    ///         "<pci busid=\"0000:0{dev}:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\">\
    ///          <gpu dev=\"{dev}\" sm=\"80\" rank=\"{dev}\" gdr=\"1\">\
    ///          <nvlink target=\"ffff:ff:ff.0\" count=\"12\" tclass=\"0x068000\"/></gpu></pci>"
    ///     )
    /// };
    /// let text = format!(
    ///     "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\">{}{}</cpu></system>",
    ///     gpu(0), gpu(1)
    /// );
    /// let system = System::parse(text.as_bytes())?;
    /// assert_eq!(system.gpus.len(), 2);
    /// assert_eq!(system.gpus[0].links, 12);
    /// # Ok::<(), hocket_formats::FormatError>(())
    /// ```
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        dump::read(bytes)
    }

    /// Returns whether the switches of the machine sum and multicast: NVSwitches, and GPUs from Hopper on.
    pub fn sums(&self) -> bool {
        let has_switch = self.devices.iter().any(|it| it.kind == Kind::NvSwitch);
        has_switch
            && self
                .gpus
                .iter()
                .all(|gpu| gpu.arch.is_none() && gpu.sm >= 90)
    }

    /// Returns the machine as a communicator of some of its GPUs sees it: those of these numbers, in every host.
    ///
    /// # Errors
    /// A fault where no GPU has such a number.
    pub fn only(&self, devs: &[i64]) -> Result<Self, FormatError> {
        let known: BTreeSet<i64> = self.gpus.iter().map(|gpu| gpu.dev).collect();
        if let Some(dev) = devs.iter().find(|dev| !known.contains(dev)) {
            let known: Vec<String> = known.iter().map(i64::to_string).collect();
            let right = format!("its GPUs are {}", known.join(", "));
            return Err(FormatError::new(format!("there is no GPU {dev}")).remedy(right));
        }
        let mut part = self.clone();
        part.gpus.retain(|gpu| devs.contains(&gpu.dev));
        let others = self.gpus.iter().filter(|gpu| !devs.contains(&gpu.dev));
        let others: BTreeSet<usize> = others.map(|gpu| gpu.device).collect();
        part.links
            .retain(|link| !others.contains(&link.src) && !others.contains(&link.dst));
        Ok(part)
    }

    fn device(&mut self, name: String, kind: Kind) -> usize {
        self.devices.push(Device { name, kind });
        self.devices.len() - 1
    }

    fn both_ways(&mut self, a: usize, b: usize, bandwidth: u64, medium: Medium) {
        for (src, dst) in [(a, b), (b, a)] {
            self.links.push(Link {
                src,
                dst,
                bandwidth,
                medium,
            });
        }
    }
}

#[cfg(test)]
mod tests;

//! The fabric from a file: what `hocket topology show --json` prints.
//!
//! A switch's tier follows from what it is joined to, never from its name: a ToR has NPUs below it, a spine or
//! aggregation switch ToRs, a core aggregation switches.

mod steering;
mod tiers;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use hocket_base::id::{DeviceId, LinkId, NpuId};
use hocket_base::units::{Bandwidth, Time};
use hocket_fabric::Fabric;
use hocket_topology::{Topology, TopologyBuilder};
use hocket_wire::setup::SetupError;
use serde::Deserialize;

pub use steering::Hashes;
use tiers::Switches;
pub use tiers::Tier;

const REMEDY: &str = "write it with: hocket topology show NETWORK --json";

/// A network with tiers, and what its parts are called.
#[derive(Clone, Debug)]
pub struct Network {
    /// What routing sees of it.
    pub fabric: Fabric,
    topology: Topology,
    /// By device: the name in the file.
    names: Vec<String>,
    /// By device.
    tiers: Vec<Tier>,
    by_name: HashMap<String, DeviceId>,
}

/// A network as the file has it.
struct Plain {
    name: String,
    npus: Vec<String>,
    switches: Vec<String>,
    links: Vec<(usize, usize, Bandwidth, Time)>,
}

impl Network {
    /// Reads a file.
    ///
    /// # Errors
    /// [`SetupError`] for a file that cannot be read or is no network, a network without tiers, and an NPU that is
    /// joined to several ToRs.
    pub fn read(path: &Path) -> Result<Self, SetupError> {
        let origin = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            SetupError::new(&origin, error.to_string(), "name a file that can be read")
        })?;
        Self::parse(&origin, &text)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// As [`Network::read`].
    pub fn parse(origin: &str, text: &str) -> Result<Self, SetupError> {
        let file: File<'_> = serde_json::from_str(text)
            .map_err(|error| SetupError::new(origin, error.to_string(), REMEDY))?;
        let plain = plain(file).map_err(|why| SetupError::new(origin, why, REMEDY))?;
        Self::new(origin, plain)
    }

    fn new(origin: &str, plain: Plain) -> Result<Self, SetupError> {
        let wrong = |why: String, remedy: &str| SetupError::new(origin, why, remedy);
        let ends = plain.links.iter().map(|&(src, dst, ..)| [src, dst]);
        let switches = Switches::new(plain.npus.len(), plain.switches.len(), ends);
        let names: Vec<String> = plain.npus.iter().chain(&plain.switches).cloned().collect();
        let tiers = switches
            .tiers()
            .map_err(|fault| wrong(fault.why(&names), fault.remedy()))?;
        let mut builder = TopologyBuilder::new(&plain.name);
        builder.npus(plain.npus.len());
        for name in switches.canonical(&tiers) {
            builder.switch(name, None);
        }
        for &(src, dst, bandwidth, latency) in &plain.links {
            builder.link(DeviceId::from(src), DeviceId::from(dst), bandwidth, latency);
        }
        let topology = builder
            .finish()
            .map_err(|error| wrong(error.to_string(), REMEDY))?;
        let fabric = Fabric::new(&topology).map_err(|error| {
            use hocket_base::explain::Explain;
            wrong(
                error.parts().why,
                "give a two-level Clos or a three-level fat tree",
            )
        })?;
        let numbered = names.iter().enumerate();
        let by_name: HashMap<_, _> = numbered
            .map(|(id, name)| (name.clone(), DeviceId::from(id)))
            .collect();
        if by_name.len() < names.len() {
            let twice = names
                .iter()
                .enumerate()
                .find(|&(id, name)| by_name[name].index() != id);
            let name = twice.map_or("", |(_, name)| name);
            return Err(wrong(
                format!("device {name:?} is there twice"),
                "give each a name of its own",
            ));
        }
        Ok(Self {
            fabric,
            topology,
            names,
            tiers,
            by_name,
        })
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        self.topology.name()
    }

    /// Returns the NPU of a name.
    pub fn npu(&self, name: &str) -> Option<NpuId> {
        let id = *self.by_name.get(name)?;
        self.topology.is_npu(id).then_some(NpuId(id.0))
    }

    /// Returns the switch of a name.
    pub fn switch(&self, name: &str) -> Option<DeviceId> {
        let id = *self.by_name.get(name)?;
        (!self.topology.is_npu(id)).then_some(id)
    }

    /// Returns its NPUs, in order.
    pub fn npus(&self) -> impl Iterator<Item = (NpuId, &str)> {
        let npus = self.topology.npu_count();
        let named = self.names[..npus].iter().enumerate();
        named.map(|(id, name)| (NpuId::from(id), name.as_str()))
    }

    /// Returns its switches with their tiers, in order.
    pub fn switches(&self) -> impl Iterator<Item = (DeviceId, &str, Tier)> {
        let ids = self.topology.npu_count()..self.names.len();
        ids.map(|id| (DeviceId::from(id), self.names[id].as_str(), self.tiers[id]))
    }

    /// Returns a device's name.
    pub fn device(&self, id: DeviceId) -> &str {
        &self.names[id.index()]
    }

    /// Where a link starts and ends.
    pub fn ends(&self, link: LinkId) -> [DeviceId; 2] {
        let link = self.topology.link(link);
        [link.src, link.dst]
    }

    /// Returns a number that another network most likely does not have: of the names in their order, and of the links.
    pub fn digest(&self) -> u32 {
        let mut digest = crc32fast::Hasher::new();
        for name in &self.names {
            digest.update(name.as_bytes());
            digest.update(&[0]);
        }
        for link in self.topology.links() {
            digest.update(&link.src.0.to_le_bytes());
            digest.update(&link.dst.0.to_le_bytes());
        }
        digest.finalize()
    }

    /// Returns whether a switch has several links to choose from: upwards, or to one neighbour.
    pub fn chooses(&self, switch: DeviceId) -> bool {
        let out = self.topology.out_links(switch).iter();
        let next: Vec<DeviceId> = out.map(|&link| self.ends(link)[1]).collect();
        let up = next
            .iter()
            .filter(|next| self.tier(**next) > self.tier(switch));
        let distinct: BTreeSet<&DeviceId> = next.iter().collect();
        up.count() > 1 || distinct.len() < next.len()
    }

    /// Returns what it is made of.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns a device's tier.
    pub fn tier(&self, id: DeviceId) -> Tier {
        self.tiers[id.index()]
    }

    /// The first few of several links by their ends: `A,B` where they are the links of both ways between two devices,
    /// `A to B` where they are those of one way.
    pub fn by_ends(&self, links: &[u32], most: usize) -> String {
        let ends: BTreeSet<[DeviceId; 2]> =
            links.iter().map(|&link| self.ends(LinkId(link))).collect();
        let named = ends.iter().filter_map(|&[src, dst]| {
            let are_both = ends.contains(&[dst, src]);
            let [a, b] = [src, dst].map(|end| self.device(end));
            match are_both {
                true => (src < dst).then(|| format!("{a},{b}")),
                false => Some(format!("{a} to {b}")),
            }
        });
        some(&named.collect::<Vec<_>>(), most)
    }

    /// Returns the links that a text names: `A,B` both links between two devices, `A` all links of a switch.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn links_named(&self, text: &str) -> Result<Vec<LinkId>, String> {
        let device = |name: &str| {
            let name = name.trim();
            let found = self.by_name.get(name).copied();
            found.ok_or_else(|| format!("no device is called {name:?}"))
        };
        let both = |a: DeviceId, b: DeviceId| {
            let forth = self.topology.links_from_to(a, b).iter().copied();
            let back = self.topology.links_from_to(b, a).iter().copied();
            forth.chain(back).collect::<Vec<_>>()
        };
        let found = match text.split_once(',') {
            Some((a, b)) => both(device(a)?, device(b)?),
            None => {
                let id = device(text)?;
                let out = self.topology.out_links(id).iter();
                out.chain(self.topology.in_links(id)).copied().collect()
            }
        };
        match found.is_empty() {
            true => Err(format!("there is no link {text:?}")),
            false => Ok(found),
        }
    }
}

/// Returns the first few of several names.
pub fn some(names: &[impl AsRef<str>], most: usize) -> String {
    let named = names.iter().take(most).map(AsRef::as_ref);
    let named = named.collect::<Vec<_>>().join(", ");
    match names.len() > most {
        true => format!("{named} and {} more", names.len() - most),
        false => named,
    }
}

/// The file, as far as it is needed.
#[derive(Deserialize)]
struct File<'a> {
    format: &'a str,
    version: u64,
    name: String,
    npus: Vec<String>,
    switches: Vec<String>,
    #[serde(borrow)]
    links: Vec<FileLink<'a>>,
}

#[derive(Deserialize)]
struct FileLink<'a> {
    #[serde(borrow)]
    src: Cow<'a, str>,
    #[serde(borrow)]
    dst: Cow<'a, str>,
    bandwidth_bytes_per_s: u64,
    latency_ps: u64,
}

fn plain(file: File<'_>) -> Result<Plain, String> {
    if file.format != "hocket.topology" {
        return Err("it is not a topology: its \"format\" is not \"hocket.topology\"".to_owned());
    }
    if file.version != 1 {
        return Err("its \"version\" is not 1".to_owned());
    }
    let names = file.npus.iter().chain(&file.switches).enumerate();
    let numbers: HashMap<&str, usize> = names.map(|(id, name)| (name.as_str(), id)).collect();
    let link = |(at, link): (usize, &FileLink<'_>)| {
        let end = |name: &str| {
            let known = numbers.get(name).copied();
            known.ok_or_else(|| format!("link {at}: no device is called {name:?}"))
        };
        let bandwidth = Bandwidth::from_bytes_per_second(link.bandwidth_bytes_per_s);
        let bandwidth = bandwidth.ok_or_else(|| format!("link {at}: its bandwidth is 0"))?;
        let latency = Time::from_ps(link.latency_ps);
        Ok((end(&link.src)?, end(&link.dst)?, bandwidth, latency))
    };
    let links = file.links.iter().enumerate().map(link);
    let links = links.collect::<Result<_, String>>()?;
    Ok(Plain {
        name: file.name,
        npus: file.npus,
        switches: file.switches,
        links,
    })
}

#[cfg(test)]
pub(crate) mod tests;

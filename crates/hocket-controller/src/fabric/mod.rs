//! The fabric from a file: what `hocket topology show --json` prints.
//!
//! A switch's tier follows from what it is joined to, never from its name: a ToR has NPUs below it, a spine or
//! aggregation switch ToRs, a core aggregation switches.

mod steering;
mod tiers;

use std::collections::HashMap;
use std::path::Path;

use hocket_core::id::{DeviceId, LinkId, NpuId};
use hocket_core::routing::Fabric;
use hocket_core::topology::{Topology, TopologyBuilder};
use hocket_core::units::{Bandwidth, Time};
use hocket_wire::setup::SetupError;
use serde_json::Value;

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
        let value: Value = serde_json::from_str(text)
            .map_err(|error| SetupError::new(origin, error.to_string(), REMEDY))?;
        let plain = plain(&value).map_err(|why| SetupError::new(origin, why, REMEDY))?;
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
            use hocket_core::explain::Explain;
            wrong(
                error.why(),
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

    /// Its name.
    pub fn name(&self) -> &str {
        self.topology.name()
    }

    /// The NPU of a name.
    pub fn npu(&self, name: &str) -> Option<NpuId> {
        let id = *self.by_name.get(name)?;
        self.topology.is_npu(id).then_some(NpuId(id.0))
    }

    /// The switch of a name.
    pub fn switch(&self, name: &str) -> Option<DeviceId> {
        let id = *self.by_name.get(name)?;
        (!self.topology.is_npu(id)).then_some(id)
    }

    /// Its NPUs, in order.
    pub fn npus(&self) -> impl Iterator<Item = (NpuId, &str)> {
        let npus = self.topology.npu_count();
        let named = self.names[..npus].iter().enumerate();
        named.map(|(id, name)| (NpuId::from(id), name.as_str()))
    }

    /// Its switches with their tiers, in order.
    pub fn switches(&self) -> impl Iterator<Item = (DeviceId, &str, Tier)> {
        let ids = self.topology.npu_count()..self.names.len();
        ids.map(|id| (DeviceId::from(id), self.names[id].as_str(), self.tiers[id]))
    }

    /// A device's name.
    pub fn device(&self, id: DeviceId) -> &str {
        &self.names[id.index()]
    }

    /// Where a link starts and ends.
    pub fn ends(&self, link: LinkId) -> [DeviceId; 2] {
        let link = self.topology.link(link);
        [link.src, link.dst]
    }

    /// What it is made of.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// A device's tier.
    pub fn tier(&self, id: DeviceId) -> Tier {
        self.tiers[id.index()]
    }

    /// The links that a text names: `A,B` both links between two devices, `A` all links of a switch.
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

fn plain(value: &Value) -> Result<Plain, String> {
    if value["format"] != "hocket.topology" {
        return Err("it is not a topology: its \"format\" is not \"hocket.topology\"".to_owned());
    }
    if value["version"] != 1 {
        return Err("its \"version\" is not 1".to_owned());
    }
    let texts = |key: &str| {
        let list = value[key].as_array();
        let texts = list.and_then(|list| {
            let texts = list.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>()
        });
        texts.ok_or_else(|| format!("{key:?} is not a list of names"))
    };
    let (npus, switches) = (texts("npus")?, texts("switches")?);
    let numbers: HashMap<&str, usize> = npus
        .iter()
        .chain(&switches)
        .enumerate()
        .map(|(id, name)| (name.as_str(), id))
        .collect();
    let entries = value["links"].as_array();
    let entries = entries.ok_or("\"links\" is not a list")?;
    let link = |(at, entry): (usize, &Value)| {
        let wrong = |what: &str| format!("link {at}: {what}");
        let end = |key: &str| {
            let name = entry[key].as_str();
            let name = name.ok_or_else(|| wrong(&format!("{key:?} is not a name")))?;
            let known = numbers.get(name).copied();
            known.ok_or_else(|| wrong(&format!("no device is called {name:?}")))
        };
        let bandwidth = entry["bandwidth_bytes_per_s"].as_u64();
        let bandwidth = bandwidth.and_then(Bandwidth::from_bytes_per_second);
        let bandwidth =
            bandwidth.ok_or_else(|| wrong("\"bandwidth_bytes_per_s\" is not a number above 0"))?;
        let latency = entry["latency_ps"].as_u64().map(Time::from_ps);
        let latency = latency.ok_or_else(|| wrong("\"latency_ps\" is not a number"))?;
        Ok((end("src")?, end("dst")?, bandwidth, latency))
    };
    let links = entries
        .iter()
        .enumerate()
        .map(link)
        .collect::<Result<_, String>>()?;
    Ok(Plain {
        name: value["name"].as_str().unwrap_or("fabric").to_owned(),
        npus,
        switches,
        links,
    })
}

#[cfg(test)]
mod tests;

//! Reads a dump: the tree of its elements, then the links between GPUs.

use std::collections::HashMap;

use hocket_base::id::fit;

use super::rates::{self, Medium};
use super::{Gpu, Kind, Link, Net, Processor, System};
use crate::elements::{Document, Element, quoted};
use crate::error::FormatError;

/// Versions of a dump: that of NCCL, and that of RCCL.
const VERSIONS: [i64; 2] = [1, 2];
/// GPUs of a dump at most, and NICs: `NCCL_TOPO_MAX_NODES` of NCCL 2.30.
const MOST: usize = 640;
const LARGEST_DEV: i64 = (1 << 31) - 1;
/// Speed of a NIC that says none [Mb/s], as NCCL has it.
const SLOW: i64 = 10_000;

pub(super) fn read(bytes: &[u8]) -> Result<System, FormatError> {
    let document = Document::parse(bytes)?;
    let root = document.root();
    if root.name != "system" {
        let why = format!("it begins with <{}>, not with <system>", root.name);
        let right = match root.name.as_str() {
            "graphs" => "that is a file of graphs (NCCL_GRAPH_DUMP_FILE); give the topology",
            _ => "give what NCCL writes to NCCL_TOPO_DUMP_FILE",
        };
        return Err(FormatError::at(root.line, why).remedy(right));
    }
    let version = root.whole("version", 0..=LARGEST_DEV)?;
    if !VERSIONS.contains(&version) {
        let why = format!("it is of version {version}");
        let right = "versions that are known are 1, of NCCL, and 2, of RCCL";
        return Err(FormatError::at(root.line, why).remedy(right));
    }
    let mut reading = Reading {
        document: &document,
        system: System::default(),
        hosts: Vec::new(),
        by_bus: HashMap::new(),
        links: Vec::new(),
        cpus: Vec::new(),
        pci_count: 0,
    };
    for cpu in document.within(root).filter(|it| it.name == "cpu") {
        reading.cpu(cpu)?;
    }
    if reading.system.gpus.is_empty() {
        let right = "it is one for NCCL_TOPO_FILE, which NCCL completes; give what NCCL writes to NCCL_TOPO_DUMP_FILE";
        return Err(FormatError::at(root.line, "it has no GPUs with ranks").remedy(right));
    }
    reading.between_processors();
    reading.between_gpus()?;
    reading.finish()
}

/// NVLinks or xGMI links of a GPU to one target.
struct Links<'a> {
    element: &'a Element,
    gpu: usize,
    cpu: usize,
}

/// A processor: its device, host, and rate to others.
struct Cpu {
    device: usize,
    host: usize,
    rate: u64,
}

struct Reading<'a> {
    document: &'a Document,
    system: System,
    /// Hashes of hosts, in order of appearance.
    hosts: Vec<String>,
    /// GPUs, by host and address.
    by_bus: HashMap<(usize, String), usize>,
    links: Vec<Links<'a>>,
    cpus: Vec<Cpu>,
    pci_count: usize,
}

impl<'a> Reading<'a> {
    fn cpu(&mut self, element: &'a Element) -> Result<(), FormatError> {
        let hash = element.get("host_hash").unwrap_or("0");
        let known = self.hosts.iter().position(|it| it == hash);
        let host = known.unwrap_or(self.hosts.len());
        let text = |name: &str| element.get(name).unwrap_or_default();
        if known.is_none() {
            self.hosts.push(hash.to_owned());
            let own = Processor::of(text("arch"), text("vendor"));
            let before = self.system.processor;
            self.system.processor = Some(before.map_or(own, |it| it.with(own)));
        }
        let number = element.whole("numaid", -1..=LARGEST_DEV)?;
        let device = self
            .system
            .device(named(host, &format!("cpu{}", number.max(0))), Kind::Cpu);
        let family = element.whole_or("familyid", 0, 0..=LARGEST_DEV)?;
        let model = element.whole_or("modelid", 0, 0..=LARGEST_DEV)?;
        let rate = rates::between_processors(text("arch"), text("vendor"), family, model);
        let cpu = self.cpus.len();
        if cpu == MOST {
            let why = format!("it has more than {MOST} processors");
            return Err(FormatError::at(element.line, why));
        }
        self.cpus.push(Cpu { device, host, rate });
        for child in self.document.within(element) {
            match child.name.as_str() {
                "pci" => self.pci(child, (device, cpu, host))?,
                "nic" => self.nic(child, (device, u64::MAX, host))?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A PCI device below another, with its processor and host.
    fn pci(
        &mut self,
        element: &'a Element,
        (parent, cpu, host): (usize, usize, usize),
    ) -> Result<(), FormatError> {
        let width = element.whole_or("link_width", 0, 0..=64)?;
        let speed = element.get("link_speed").unwrap_or_default();
        let rate = rates::pcie(speed, width);
        let within: Vec<&Element> = self.document.within(element).collect();
        let mut is_end = false;
        for child in &within {
            match child.name.as_str() {
                "gpu" if child.get("rank").is_some() => {
                    let bus = element.text("busid")?;
                    self.gpu(child, (bus, parent, rate), (cpu, host))?;
                    is_end = true;
                }
                "nic" => {
                    self.nic(child, (parent, rate, host))?;
                    is_end = true;
                }
                _ => {}
            }
        }
        let bridges: Vec<&&Element> = within.iter().filter(|it| it.name == "pci").collect();
        if is_end || bridges.is_empty() {
            return Ok(());
        }
        let name = named(host, &format!("pci{}", self.pci_count));
        self.pci_count += 1;
        let device = self.system.device(name, Kind::Pci);
        self.system.both_ways(device, parent, rate, Medium::Pcie);
        for bridge in bridges {
            self.pci(bridge, (device, cpu, host))?;
        }
        Ok(())
    }

    fn gpu(
        &mut self,
        element: &'a Element,
        (bus, parent, rate): (&str, usize, u64),
        (cpu, host): (usize, usize),
    ) -> Result<(), FormatError> {
        let dev = element.whole("dev", 0..=LARGEST_DEV)?;
        let gpu = Gpu {
            device: self
                .system
                .device(named(host, &format!("gpu{dev}")), Kind::Gpu),
            host,
            dev,
            rank: element.whole("rank", 0..=LARGEST_DEV)?,
            sm: element.whole_or("sm", 0, 0..=LARGEST_DEV)?,
            arch: element.get("gcn").map(str::to_owned),
            links: 0,
            bus: Some(bus.to_lowercase()),
        };
        let gpus = &self.system.gpus;
        if gpus.len() == MOST {
            let why = format!("it has more than {MOST} GPUs, the most that NCCL has in a node");
            return Err(FormatError::at(element.line, why));
        }
        if let Some(twin) = gpus.iter().find(|it| it.rank == gpu.rank) {
            let why = format!("two GPUs have rank {}", twin.rank);
            return Err(FormatError::at(element.line, why).remedy("give each its own"));
        }
        if gpus.iter().any(|it| it.id() == gpu.id()) {
            let why = format!("two GPUs have dev {dev}");
            return Err(FormatError::at(element.line, why).remedy("give each its own"));
        }
        let number = gpus.len();
        self.system
            .both_ways(gpu.device, parent, rate, Medium::Pcie);
        self.by_bus.insert((host, bus.to_lowercase()), number);
        self.system.gpus.push(gpu);
        for child in self.document.within(element) {
            if matches!(child.name.as_str(), "nvlink" | "xgmi") {
                let links = Links {
                    element: child,
                    gpu: number,
                    cpu,
                };
                self.links.push(links);
            } else if child.name == "c2c" {
                let count = child.whole("count", 0..=1000)?;
                let megabytes = child.whole("bw", 0..=10_000_000)?;
                let rate = fit::<u64, _>(count * megabytes) * 1_000_000;
                let (src, to) = (self.system.gpus[number].device, self.cpus[cpu].device);
                if rate > 0 {
                    self.system.both_ways(src, to, rate, Medium::C2c);
                }
            }
        }
        Ok(())
    }

    /// A NIC below a device, over a link of some rate.
    fn nic(
        &mut self,
        element: &'a Element,
        (parent, rate, host): (usize, u64, usize),
    ) -> Result<(), FormatError> {
        let is_port = |it: &&Element| {
            it.name == "net" && it.get("dev").is_some() && it.get("net") != Some("0")
        };
        let ports: Vec<&Element> = self.document.within(element).filter(is_port).collect();
        let mut at = parent;
        if ports.len() > 1 {
            let name = named(host, &format!("pci{}", self.pci_count));
            self.pci_count += 1;
            at = self.system.device(name, Kind::Pci);
            if rate < u64::MAX {
                self.system.both_ways(at, parent, rate, Medium::Pcie);
            }
        }
        for port in ports {
            let dev = port.whole("dev", 0..=LARGEST_DEV)?;
            let mbps = port.whole_or("speed", SLOW, -1..=LARGEST_DEV)?;
            let mbps = if mbps <= 0 { SLOW } else { mbps };
            let net = Net {
                device: self
                    .system
                    .device(named(host, &format!("net{dev}")), Kind::Net),
                host,
                dev,
                name: port.get("name").unwrap_or_default().to_owned(),
                mbps,
            };
            if self.system.nets.len() == MOST {
                return Err(FormatError::at(
                    port.line,
                    format!("it has more than {MOST} NICs"),
                ));
            }
            if self.system.nets.iter().any(|it| it.id() == net.id()) {
                let why = format!("two NICs have dev {dev}");
                return Err(FormatError::at(port.line, why).remedy("give each its own"));
            }
            // What is below a processor itself has no link of its own: its port is what limits it.
            let own = rate.min(fit::<u64, _>(mbps) * 125_000);
            let link = if rate == u64::MAX { own } else { rate };
            self.system.both_ways(net.device, at, link, Medium::Pcie);
            self.system.nets.push(net);
        }
        Ok(())
    }

    /// Every processor of a host to every other, as slow as the first one says.
    fn between_processors(&mut self) {
        for a in 0..self.cpus.len() {
            for b in a + 1..self.cpus.len() {
                let (one, other) = (&self.cpus[a], &self.cpus[b]);
                if one.host == other.host {
                    let (a, b, rate) = (one.device, other.device, one.rate);
                    self.system.both_ways(a, b, rate, Medium::Upi);
                }
            }
        }
    }

    fn between_gpus(&mut self) -> Result<(), FormatError> {
        let mut switch = None;
        let mut loops = Vec::new();
        for links in std::mem::take(&mut self.links) {
            let element = links.element;
            let count = element.whole("count", 0..=1000)?;
            if count == 0 {
                continue;
            }
            let gpu = &mut self.system.gpus[links.gpu];
            gpu.links += fit::<u32, _>(count);
            let (src, host, arch) = (gpu.device, gpu.host, gpu.arch.clone());
            let each = match (&arch, element.name.as_str()) {
                (Some(arch), "xgmi") => rates::xgmi(arch).ok_or_else(|| {
                    let why = format!("there is no rate of xGMI for gcn {}", quoted(arch));
                    FormatError::at(element.line, why)
                        .remedy("known are 906, 908, 910, 90a, gfx940 to gfx950")
                })?,
                _ => rates::nvlink(gpu.sm),
            };
            if each == 0 {
                let why = format!("a GPU of sm {} has no NVLink", gpu.sm);
                return Err(FormatError::at(element.line, why)
                    .remedy("sm of one with NVLink is 60 or more"));
            }
            let bandwidth = each * fit::<u64, _>(count);
            let class = element.text("tclass")?;
            let is_gpu = class.starts_with("0x03") || element.name == "xgmi";
            if !is_gpu {
                let is_bridge = class.starts_with("0x068001");
                let device = match (is_bridge, switch) {
                    (true, _) => self.cpus[links.cpu].device,
                    (false, Some(device)) => device,
                    (false, None) => {
                        let device = self.system.device("nvs".to_owned(), Kind::NvSwitch);
                        switch = Some(device);
                        device
                    }
                };
                self.system
                    .both_ways(src, device, bandwidth, Medium::NvSwitch);
                continue;
            }
            let bus = element.text("target")?.to_lowercase();
            match self.by_bus.get(&(host, bus)) {
                Some(&other) if other == links.gpu => {
                    loops.push(self.system.devices[src].name.clone())
                }
                Some(&other) => {
                    let medium = match element.name.as_str() {
                        "xgmi" => Medium::Xgmi,
                        _ => Medium::NvLink,
                    };
                    let dst = self.system.gpus[other].device;
                    self.system.links.push(Link {
                        src,
                        dst,
                        bandwidth,
                        medium,
                    });
                }
                // A GPU that takes no part: NCCL leaves the link out too.
                None => {}
            }
        }
        if !loops.is_empty() {
            let which = loops.join(", ");
            let note = format!("NVLinks of {which} lead to the GPU itself and are left out");
            self.system.notes.push(note);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<System, FormatError> {
        self.system.gpus.sort_by_key(|gpu| gpu.rank);
        self.system.nets.sort_by_key(|net| (net.host, net.dev));
        merged(&mut self.system.links);
        Ok(self.system)
    }
}

/// Returns a name in a host; the first one's need no prefix.
fn named(host: usize, name: &str) -> String {
    match host {
        0 => name.to_owned(),
        _ => format!("h{host}.{name}"),
    }
}

/// Makes one link of several of one medium between the same devices, as several groups of NVLinks to a switch are.
fn merged(links: &mut Vec<Link>) {
    let mut places: HashMap<(usize, usize, Medium), usize> = HashMap::new();
    let mut found: Vec<Link> = Vec::new();
    for link in links.drain(..) {
        let key = (link.src, link.dst, link.medium);
        match places.get(&key) {
            Some(&place) => found[place].bandwidth += link.bandwidth,
            None => {
                places.insert(key, found.len());
                found.push(link);
            }
        }
    }
    *links = found;
}

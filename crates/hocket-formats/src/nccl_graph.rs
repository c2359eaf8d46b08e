//! NCCL's graphs: what `NCCL_GRAPH_DUMP_FILE` writes and `NCCL_GRAPH_FILE` reads.
//!
//! [`Graphs::parse`] reads what any version since 2.7 writes. [`Graphs::write`] writes a file that NCCL's own reader,
//! which is not a reader of XML in general, takes; what that reader or the code behind it would not take, or would take
//! without a word and overrun, is refused.
//!
//! # Source
//! NVIDIA NCCL 2.30.7, `src/graph/xml.{h,cc}` (the reader and its limits), `search.cc` (`ncclTopoGetGraphFromXml`),
//! `connect.cc` (what channels must have in common) and `rings.cc`.

use std::fmt::Write as _;

use crate::elements::{Document, Element, quoted};
use crate::error::FormatError;

/// Channels of a graph at most: half of `MAXCHANNELS`, as NCCL doubles them.
pub const MOST_CHANNELS: usize = 32;
/// Elements within another at most, `MAX_SUBS`: GPUs and two NICs of a channel.
const MOST_WITHIN: usize = 640;
/// Elements of a file at most: `NCCL_GRAPH_XML_MAX_NODES`.
const MOST_ELEMENTS: usize = 65536;
/// The version of files.
const VERSION: i64 = 1;
/// Types of paths, the nearest first.
pub const TYPES: [&str; 9] = [
    "LOC", "NVL", "NVB", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS",
];
const LARGEST: i64 = (1 << 31) - 1;

/// A GPU of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuRef {
    /// Its number: that of its host in the highest byte, and its own in that host.
    pub dev: i64,
    /// Its rank, which newer dumps have, and which overrides its number when it is read by NCCL 2.30.
    pub rank: Option<i64>,
}

/// What a channel does in one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channel {
    /// NICs: none, or by which data comes in and goes out.
    pub nets: Vec<i64>,
    /// The GPUs in order; of sums in switches the head alone.
    pub gpus: Vec<GpuRef>,
    /// Where it stands in the file; 0 where it is of no file.
    pub line: u64,
}

/// A graph: all channels of an algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// 0 ring, 1 tree, 2 CollNet chain, 3 sums in switches (NVLS), 4 CollNet direct.
    pub id: i64,
    /// 1 balanced tree, 2 split tree, 3 tree, 4 ring, 5 NVLS, 6 CollNet direct.
    pub pattern: i64,
    /// Whether a ring may leave a node by another NIC than it came in by.
    pub cross_nic: i64,
    /// Bandwidth of a channel in a node, in GB/s.
    pub speed_intra: f64,
    /// Bandwidth of a channel between nodes, in GB/s.
    pub speed_inter: f64,
    /// What the network adds to latencies, in microseconds.
    pub latency_inter: f64,
    /// How far apart GPUs are that follow one another.
    pub type_intra: String,
    /// How far apart GPUs and their NICs are.
    pub type_inter: String,
    /// Whether all channels have one order.
    pub same_channels: i64,
    /// The channels.
    pub channels: Vec<Channel>,
    /// Where it stands in the file; 0 where it is of no file.
    pub line: u64,
}

/// A file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graphs {
    /// The graphs, each id once.
    pub graphs: Vec<Graph>,
}

impl Graphs {
    /// Reads a file.
    ///
    /// # Errors
    /// A fault with the line, for what is no such file, or contradicts itself.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let document = Document::parse(bytes)?;
        let root = document.root();
        if root.name != "graphs" {
            let why = format!("it begins with <{}>, not with <graphs>", root.name);
            let right = match root.name.as_str() {
                "system" => "that is a topology (NCCL_TOPO_DUMP_FILE); give the graphs",
                _ => "give what NCCL writes to NCCL_GRAPH_DUMP_FILE",
            };
            return Err(FormatError::at(root.line, why).remedy(right));
        }
        let version = root.whole("version", 0..=LARGEST)?;
        if version != VERSION {
            let why = format!("it is of version {version}");
            return Err(FormatError::at(root.line, why).remedy("the version that is known is 1"));
        }
        let mut graphs: Vec<Graph> = Vec::new();
        for element in document.within(root).filter(|it| it.name == "graph") {
            let graph = graph(&document, element)?;
            if graphs.iter().any(|it| it.id == graph.id) {
                let why = format!("there are two graphs of id {}", graph.id);
                return Err(FormatError::at(graph.line, why).remedy("keep one"));
            }
            graphs.push(graph);
        }
        match graphs.is_empty() {
            true => {
                Err(FormatError::at(root.line, "it has no graph").remedy("give one with channels"))
            }
            false => Ok(Self { graphs }),
        }
    }

    /// The graph of an id, if it has channels.
    pub fn of(&self, id: i64) -> Option<&Graph> {
        let mut all = self.graphs.iter();
        all.find(|it| it.id == id && !it.channels.is_empty())
    }

    /// Writes a file for NCCL.
    ///
    /// # Errors
    /// A fault that says which limit is not kept, as [`check`](Self::check).
    pub fn write(&self) -> Result<String, FormatError> {
        self.check()?;
        let mut out = format!("<graphs version=\"{VERSION}\">\n");
        for graph in &self.graphs {
            let numbers = [graph.speed_intra, graph.speed_inter, graph.latency_inter];
            let [intra, inter, latency] = numbers.map(short);
            let _ = writeln!(
                out,
                "  <graph id=\"{}\" pattern=\"{}\" crossnic=\"{}\" nchannels=\"{}\" speedintra=\"{intra}\" \
                 speedinter=\"{inter}\" latencyinter=\"{latency}\" typeintra=\"{}\" typeinter=\"{}\" \
                 samechannels=\"{}\">",
                graph.id,
                graph.pattern,
                graph.cross_nic,
                graph.channels.len(),
                graph.type_intra,
                graph.type_inter,
                graph.same_channels,
            );
            for channel in &graph.channels {
                out.push_str("    <channel>\n");
                let net = |dev: &i64| format!("      <net dev=\"{dev:#x}\"/>\n");
                out.extend(channel.nets.first().map(net));
                for gpu in &channel.gpus {
                    let _ = match gpu.rank {
                        Some(rank) => {
                            writeln!(out, "      <gpu dev=\"{:#x}\" rank=\"{rank}\"/>", gpu.dev)
                        }
                        None => writeln!(out, "      <gpu dev=\"{:#x}\"/>", gpu.dev),
                    };
                }
                out.extend(channel.nets.get(1).map(net));
                out.push_str("    </channel>\n");
            }
            out.push_str("  </graph>\n");
        }
        out.push_str("</graphs>\n");
        Ok(out)
    }

    /// Whether NCCL takes such a file: numbers of channels and of elements, both rings and trees with as many
    /// channels, every GPU once in a channel, the same GPUs in all.
    ///
    /// # Errors
    /// A fault that says which limit is not kept.
    pub fn check(&self) -> Result<(), FormatError> {
        let elements: usize = self.graphs.iter().map(elements_of).sum();
        if elements + 1 > MOST_ELEMENTS {
            let why = format!("the file would have {} elements", elements + 1);
            let right = format!("NCCL reads {MOST_ELEMENTS} at most; use fewer channels");
            return Err(FormatError::new(why).remedy(right));
        }
        let counts = [0, 1].map(|id| self.of(id).map(|graph| graph.channels.len()));
        let [Some(rings), Some(trees)] = counts else {
            let missing = if counts[0].is_none() {
                "ring (id 0)"
            } else {
                "tree (id 1)"
            };
            let why = format!("it has no graph of a {missing}");
            return Err(FormatError::new(why)
                .remedy("give both: NCCL would search for the other, and use the fewer channels"));
        };
        if rings != trees {
            let why = format!("rings have {rings} channels and trees {trees}");
            return Err(FormatError::new(why).remedy("give both as many: NCCL uses the fewer"));
        }
        let mut all: Option<Vec<i64>> = None;
        for graph in &self.graphs {
            graph.check()?;
            for (number, channel) in graph.channels.iter().enumerate().filter(|_| graph.id < 2) {
                let mut devs: Vec<i64> = channel.gpus.iter().map(|gpu| gpu.dev).collect();
                devs.sort_unstable();
                let known = all.get_or_insert_with(|| devs.clone());
                if *known != devs {
                    let why = format!("channel {number} of graph {} has other GPUs", graph.id);
                    return Err(FormatError::new(why)
                        .remedy("every channel passes every GPU of the node once"));
                }
            }
        }
        Ok(())
    }
}

impl Graph {
    fn check(&self) -> Result<(), FormatError> {
        let id = self.id;
        let wrong = |why: String, right: &str| {
            Err(FormatError::new(format!("graph {id}: {why}")).remedy(right))
        };
        let count = self.channels.len();
        if count > MOST_CHANNELS {
            let why = format!("it has {count} channels");
            return wrong(
                why,
                "give 32 at most: NCCL doubles them, has room for 64, and does not look",
            );
        }
        let patterns: &[i64] = match id {
            0 => &[4],
            1 => &[1, 2, 3],
            3 => &[5],
            _ => &[1, 2, 3, 6],
        };
        if !patterns.contains(&self.pattern) {
            return wrong(
                format!("its pattern is {}", self.pattern),
                "rings have 4, trees 1 to 3, NVLS 5",
            );
        }
        for name in [&self.type_intra, &self.type_inter] {
            if !TYPES.contains(&name.as_str()) {
                return wrong(
                    format!("there is no type {}", quoted(name)),
                    "types are LOC, NVL, NVB, PIX, PXB, P2C, PXN, PHB and SYS",
                );
            }
        }
        for speed in [self.speed_intra, self.speed_inter] {
            if !(speed > 0.0 && speed <= 10_000.0) {
                return wrong(
                    format!("a channel of {speed} GB/s"),
                    "give more than 0: NCCL's choice of algorithms divides by it",
                );
            }
        }
        if !(0..=2).contains(&self.cross_nic) {
            return wrong(format!("crossnic is {}", self.cross_nic), "give 0, 1 or 2");
        }
        let is_joined = self.channels.iter().any(|it| !it.nets.is_empty());
        for (number, channel) in self.channels.iter().enumerate() {
            let at = |why: &str| format!("channel {number} {why}");
            let mut devs: Vec<i64> = channel.gpus.iter().map(|gpu| gpu.dev).collect();
            devs.sort_unstable();
            if devs.is_empty() || (id == 3 && devs.len() > 1) {
                return wrong(
                    at("has no GPU, or more than its head"),
                    "give the GPUs of the node; of NVLS the head alone",
                );
            }
            if devs.windows(2).any(|pair| pair[0] == pair[1]) {
                return wrong(at("passes a GPU twice"), "give every GPU of the node once");
            }
            if devs[0] < 0 || channel.nets.iter().any(|&net| net < 0) {
                return wrong(
                    at("has a negative number"),
                    "numbers of GPUs and NICs are 0 or more",
                );
            }
            if channel.gpus.len() + channel.nets.len() > MOST_WITHIN {
                return wrong(
                    at("has more than 640 GPUs and NICs"),
                    "NCCL reads 640 at most",
                );
            }
            if channel.nets.len() != if is_joined { 2 } else { 0 } {
                return wrong(
                    at("has not two NICs, as others have"),
                    "give the NIC in and the NIC out, or none in all",
                );
            }
            if self.cross_nic == 0 && is_joined && channel.nets[0] != channel.nets[1] && id == 0 {
                return wrong(
                    at("goes out by another NIC than it came in by"),
                    "set crossnic to 1",
                );
            }
        }
        Ok(())
    }
}

fn elements_of(graph: &Graph) -> usize {
    let within = graph.channels.iter();
    1 + within
        .map(|it| 1 + it.gpus.len() + it.nets.len())
        .sum::<usize>()
}

/// A number as short as it can be.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn graph(document: &Document, element: &Element) -> Result<Graph, FormatError> {
    let id = element.whole("id", 0..=4)?;
    let name = |key: &str| -> Result<String, FormatError> {
        let text = element.text(key)?;
        match TYPES.contains(&text) || text == "C2C" {
            true => Ok(text.to_owned()),
            false => Err(FormatError::at(
                element.line,
                format!("there is no type {}", quoted(text)),
            )
            .remedy(format!("types are {}", TYPES.join(", ")))),
        }
    };
    let mut graph = Graph {
        id,
        pattern: element.whole("pattern", 1..=6)?,
        cross_nic: element.whole("crossnic", 0..=2)?,
        speed_intra: element.real("speedintra")?,
        speed_inter: element.real("speedinter")?,
        latency_inter: match element.get("latencyinter") {
            Some(_) => element.real("latencyinter")?,
            None => 0.0,
        },
        type_intra: name("typeintra")?,
        type_inter: name("typeinter")?,
        same_channels: element.whole("samechannels", 0..=1)?,
        channels: Vec::new(),
        line: element.line,
    };
    let count = element.whole("nchannels", 0..=64)?;
    for child in document.within(element).filter(|it| it.name == "channel") {
        graph.channels.push(channel(document, child)?);
    }
    if graph.channels.len() as i64 != count {
        let why = format!(
            "nchannels is {count}, but there are {} channels",
            graph.channels.len()
        );
        return Err(FormatError::at(element.line, why)
            .remedy("NCCL takes nchannels at its word; make both the same"));
    }
    Ok(graph)
}

fn channel(document: &Document, element: &Element) -> Result<Channel, FormatError> {
    let mut channel = Channel {
        line: element.line,
        ..Channel::default()
    };
    for child in document.within(element) {
        match child.name.as_str() {
            "net" => channel.nets.push(hexadecimal(child)?),
            "gpu" => channel.gpus.push(GpuRef {
                dev: hexadecimal(child)?,
                rank: match child.get("rank") {
                    Some(_) => Some(child.whole("rank", 0..=LARGEST)?),
                    None => None,
                },
            }),
            _ => {}
        }
    }
    if channel.nets.len() > 2 {
        let why = format!("a channel has {} NICs", channel.nets.len());
        return Err(FormatError::at(element.line, why).remedy("it has one in and one out, or none"));
    }
    if channel.gpus.is_empty() {
        return Err(FormatError::at(element.line, "a channel has no GPU")
            .remedy("give those of the node in order"));
    }
    Ok(channel)
}

/// The number of a GPU or NIC, which is hexadecimal with or without `0x`.
fn hexadecimal(element: &Element) -> Result<i64, FormatError> {
    let text = element.text("dev")?;
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let read = i64::from_str_radix(digits, 16).ok();
    read.filter(|&value| value >= 0).ok_or_else(|| {
        let why = format!("dev of <{}> is {}", element.name, quoted(text));
        FormatError::at(element.line, why).remedy("it is a hexadecimal number, as 0x7")
    })
}

#[cfg(test)]
mod tests;

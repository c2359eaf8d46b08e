//! NCCL's graphs: what `NCCL_GRAPH_DUMP_FILE` writes and `NCCL_GRAPH_FILE` reads.
//!
//! [`Graphs::parse`] reads what any version since 2.7 writes. [`Graphs::write`] writes a file that NCCL's own reader,
//! which is not a reader of XML in general, takes. What that reader or the code behind it would not take, or would take
//! without a word and overrun, is refused.
//!
//! # Source
//! NVIDIA NCCL 2.30.7, `src/graph/xml.{h,cc}` (the reader and its limits), `search.cc` (`ncclTopoGetGraphFromXml`),
//! `connect.cc` (what channels must have in common) and `rings.cc`.

mod reader;
mod rules;

use std::fmt::Write as _;

use crate::elements::{Document, Element, quoted};
use crate::error::FormatError;

/// Channels of a graph at most: half of `MAXCHANNELS`, as NCCL doubles them.
pub const MOST_CHANNELS: usize = 32;
/// The version of files.
const VERSION: i64 = 1;
/// Types of paths, the nearest first.
pub const TYPES: [&str; 9] = [
    "LOC", "NVL", "NVB", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS",
];
const LARGEST: i64 = (1 << 31) - 1;

pub use reader::reader_fault;
pub use rules::GraphFault;

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

    /// Returns the graph of an id, if it has channels.
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
}

/// Returns a number as short as it can be.
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

/// Returns the number of a GPU or NIC, which is hexadecimal with or without `0x`.
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

//! What NCCL does not take of a file of graphs, or takes without a word and goes wrong with.

use super::{Graph, Graphs, MOST_CHANNELS, TYPES};
use crate::elements::quoted;
use crate::error::FormatError;

/// Elements within another at most, `MAX_SUBS`: GPUs and two NICs of a channel.
pub(super) const MOST_WITHIN: usize = 640;
/// Elements of a file at most: `NCCL_GRAPH_XML_MAX_NODES`.
pub(super) const MOST_ELEMENTS: usize = 65536;

/// A rule that a file does not keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphFault {
    /// A stable name of the rule.
    pub code: &'static str,
    /// Where in the file; 0 without one.
    pub line: u64,
    /// What is wrong.
    pub why: String,
    /// What would be right.
    pub remedy: String,
}

impl GraphFault {
    pub(super) fn new(
        code: &'static str,
        line: u64,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (why, remedy) = (why.into(), remedy.into());
        Self {
            code,
            line,
            why,
            remedy,
        }
    }
}

impl Graphs {
    /// Whether NCCL takes such a file: numbers of channels and of elements, both rings and trees with as many
    /// channels, every GPU once in a channel, the same GPUs in all.
    ///
    /// # Errors
    /// A fault that says which limit is not kept.
    pub fn check(&self) -> Result<(), FormatError> {
        let first = self.advice().into_iter().chain(self.faults()).next();
        first.map_or(Ok(()), |fault| {
            Err(FormatError::new(fault.why).remedy(fault.remedy))
        })
    }

    /// Returns what is better otherwise though NCCL takes it: it has no graph of rings or of trees, or more of one than
    /// of the other, as what NCCL writes may have.
    pub fn advice(&self) -> Option<GraphFault> {
        let of = [0, 1].map(|id| self.of(id));
        let [Some(rings), Some(trees)] = of else {
            let missing = if of[0].is_none() {
                "ring (id 0)"
            } else {
                "tree (id 1)"
            };
            return Some(GraphFault::new(
                "missing",
                0,
                format!("it has no graph of a {missing}"),
                "give both: NCCL would search for the other, and use the fewer channels",
            ));
        };
        let [rings, trees] = [rings, trees].map(|graph| graph.channels.len());
        (rings != trees).then(|| {
            let why = format!("rings have {rings} channels and trees {trees}");
            GraphFault::new("unequal", 0, why, "give both as many: NCCL uses the fewer")
        })
    }

    /// Returns all rules that it does not keep, in the order of the file.
    pub fn faults(&self) -> Vec<GraphFault> {
        let mut found = Vec::new();
        let elements: usize = self.graphs.iter().map(elements_of).sum();
        if elements + 1 > MOST_ELEMENTS {
            let why = format!("the file would have {} elements", elements + 1);
            let right = format!("NCCL reads {MOST_ELEMENTS} at most; use fewer channels");
            found.push(GraphFault::new("elements", 0, why, right));
        }
        let mut all: Option<Vec<i64>> = None;
        for graph in self.graphs.iter().filter(|it| !it.channels.is_empty()) {
            graph.faults(&mut found);
            for (number, channel) in graph.channels.iter().enumerate().filter(|_| graph.id < 2) {
                let mut devs: Vec<i64> = channel.gpus.iter().map(|gpu| gpu.dev).collect();
                devs.sort_unstable();
                let known = all.get_or_insert_with(|| devs.clone());
                if *known != devs {
                    found.push(GraphFault::new(
                        "other_gpus",
                        channel.line,
                        format!("channel {number} of graph {} has other GPUs", graph.id),
                        "every channel passes every GPU of the node once",
                    ));
                }
            }
        }
        found
    }
}

impl Graph {
    fn faults(&self, found: &mut Vec<GraphFault>) {
        let (id, line) = (self.id, self.line);
        let mut wrong = |code, line, why: String, right: &str| {
            found.push(GraphFault::new(
                code,
                line,
                format!("graph {id}: {why}"),
                right,
            ));
        };
        let count = self.channels.len();
        if count > MOST_CHANNELS {
            wrong(
                "channels",
                line,
                format!("it has {count} channels"),
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
            wrong(
                "pattern",
                line,
                format!("its pattern is {}", self.pattern),
                "rings have 4, trees 1 to 3, NVLS 5",
            );
        }
        for name in [&self.type_intra, &self.type_inter] {
            if !TYPES.contains(&name.as_str()) {
                wrong(
                    "type",
                    line,
                    format!("there is no type {}", quoted(name)),
                    "types are LOC, NVL, NVB, PIX, PXB, P2C, PXN, PHB and SYS",
                );
            }
        }
        for speed in [self.speed_intra, self.speed_inter] {
            if !(speed > 0.0 && speed <= 10_000.0) {
                wrong(
                    "speed",
                    line,
                    format!("a channel of {speed} GB/s"),
                    "give more than 0: NCCL's choice of algorithms divides by it",
                );
            }
        }
        if !(0..=2).contains(&self.cross_nic) {
            let why = format!("crossnic is {}", self.cross_nic);
            wrong("crossnic", line, why, "give 0, 1 or 2");
        }
        let is_joined = self.channels.iter().any(|it| !it.nets.is_empty());
        for (number, channel) in self.channels.iter().enumerate() {
            let (line, at) = (channel.line, |why: &str| format!("channel {number} {why}"));
            let mut devs: Vec<i64> = channel.gpus.iter().map(|gpu| gpu.dev).collect();
            devs.sort_unstable();
            if devs.is_empty() || (id == 3 && devs.len() > 1) {
                wrong(
                    "head",
                    line,
                    at("has no GPU, or more than its head"),
                    "give the GPUs of the node; of NVLS the head alone",
                );
            }
            if devs.windows(2).any(|pair| pair[0] == pair[1]) {
                wrong(
                    "twice",
                    line,
                    at("passes a GPU twice"),
                    "give every GPU of the node once",
                );
            }
            if devs.first().is_some_and(|&dev| dev < 0) || channel.nets.iter().any(|&net| net < 0) {
                wrong(
                    "negative",
                    line,
                    at("has a negative number"),
                    "numbers of GPUs and NICs are 0 or more",
                );
            }
            if channel.gpus.len() + channel.nets.len() > MOST_WITHIN {
                wrong(
                    "within",
                    line,
                    at("has more than 640 GPUs and NICs"),
                    "NCCL reads 640 at most",
                );
            }
            if channel.nets.len() != if is_joined { 2 } else { 0 } {
                wrong(
                    "nics",
                    line,
                    at("has not two NICs, as others have"),
                    "give the NIC in and the NIC out, or none in all",
                );
            } else if self.cross_nic == 0
                && is_joined
                && channel.nets[0] != channel.nets[1]
                && id == 0
            {
                wrong(
                    "crossing",
                    line,
                    at("goes out by another NIC than it came in by"),
                    "set crossnic to 1",
                );
            }
        }
    }
}

fn elements_of(graph: &Graph) -> usize {
    let within = graph.channels.iter();
    1 + within
        .map(|it| 1 + it.gpus.len() + it.nets.len())
        .sum::<usize>()
}

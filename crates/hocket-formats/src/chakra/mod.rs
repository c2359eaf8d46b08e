//! Execution traces of MLCommons Chakra as ASTRA-sim runs them: node by node, and those of a plan.
//!
//! A file belongs to one rank. It is a sequence of messages, each after its length: what version it has, then the
//! nodes. `hocket_train::trace` reads them.
//!
//! # Source
//! MLCommons Chakra, `schema/protobuf/et_def.proto`: field numbers and kinds of values. ASTRA-sim,
//! `astra-sim/workload/Workload.cc`: which attributes it looks at.

mod plan;
#[cfg(test)]
mod tests;

use hocket_plan::collective::CollectiveKind;
use prost::encoding::{WireType, encode_key, encode_varint, uint64};

pub use plan::{PlanFiles, Refused};

const VERSION: &str = "0.0.4";

/// Numbers of kinds of nodes.
const COMPUTE: u64 = 4;
const SEND: u64 = 5;
const RECEIVE: u64 = 6;
const COLLECTIVE: u64 = 7;

/// What a node does; sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Computes.
    Compute {
        /// How long, in microseconds.
        micros: u64,
    },
    /// Takes part in a collective.
    Call {
        /// Number of its kind in the format ([`comm_type`]).
        kind: u64,
        /// As the format counts it: what goes in at one rank.
        bytes: u64,
        /// Number of its group; all ranks if there is none.
        group: Option<u64>,
    },
    /// Sends a message.
    Send {
        /// To which rank.
        to: u64,
        /// How much.
        bytes: u64,
        /// The receive's.
        tag: u64,
    },
    /// Receives a message.
    Receive {
        /// From which rank.
        from: u64,
        /// How much.
        bytes: u64,
        /// The send's.
        tag: u64,
    },
}

/// Returns the number that the format has for a collective.
pub fn comm_type(kind: CollectiveKind) -> Option<u64> {
    Some(match kind {
        CollectiveKind::AllReduce => 0,
        CollectiveKind::Reduce => 1,
        CollectiveKind::AllGather => 2,
        CollectiveKind::Gather => 3,
        CollectiveKind::Scatter => 4,
        CollectiveKind::Broadcast => 5,
        CollectiveKind::AllToAll => 6,
        CollectiveKind::ReduceScatter => 7,
        _ => return None,
    })
}

/// Writes the file of a rank, node by node.
#[derive(Debug)]
pub struct Writer {
    out: Vec<u8>,
    nodes: u64,
    /// The node and the attribute at hand, kept for their room.
    node: Vec<u8>,
    attribute: Vec<u8>,
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    /// Returns a file without nodes.
    pub fn new() -> Self {
        let mut writer = Self {
            out: Vec::new(),
            nodes: 0,
            node: Vec::new(),
            attribute: Vec::new(),
        };
        writer.begin();
        writer
    }

    /// Adds a node that starts when those of the ids in `after` have ended.
    pub fn node(&mut self, id: u64, name: &str, after: &[u64], does: Does) {
        self.node.clear();
        uint64::encode(1, &id, &mut self.node);
        string_field(2, name, &mut self.node);
        uint64::encode(3, &does.kind(), &mut self.node);
        uint64::encode_packed(5, after, &mut self.node);
        match does {
            Does::Compute { micros } => uint64::encode(7, &micros, &mut self.node),
            Does::Call { kind, bytes, group } => {
                self.number("comm_type", kind);
                self.number("comm_size", bytes);
                if let Some(group) = group {
                    self.text("pg_name", &group.to_string());
                }
            }
            Does::Send { to, bytes, tag } => {
                self.number("comm_dst", to);
                self.number("comm_size", bytes);
                self.number("comm_tag", tag);
            }
            Does::Receive { from, bytes, tag } => {
                self.number("comm_src", from);
                self.number("comm_size", bytes);
                self.number("comm_tag", tag);
            }
        }
        encode_varint(self.node.len() as u64, &mut self.out);
        self.out.extend_from_slice(&self.node);
        self.nodes += 1;
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Returns the file, and begins the next.
    pub fn take(&mut self) -> Vec<u8> {
        let file = std::mem::take(&mut self.out);
        self.nodes = 0;
        self.begin();
        file
    }

    fn begin(&mut self) {
        self.node.clear();
        string_field(1, VERSION, &mut self.node);
        encode_varint(self.node.len() as u64, &mut self.out);
        self.out.extend_from_slice(&self.node);
    }

    /// An attribute that is an `int64`; ASTRA-sim converts between kinds of whole numbers.
    fn number(&mut self, name: &str, value: u64) {
        self.attribute.clear();
        string_field(1, name, &mut self.attribute);
        uint64::encode(9, &value, &mut self.attribute);
        self.add_attribute();
    }

    /// An attribute that is a text, as ASTRA-sim asks for names of groups to be.
    fn text(&mut self, name: &str, value: &str) {
        self.attribute.clear();
        string_field(1, name, &mut self.attribute);
        string_field(29, value, &mut self.attribute);
        self.add_attribute();
    }

    fn add_attribute(&mut self) {
        encode_key(10, WireType::LengthDelimited, &mut self.node);
        encode_varint(self.attribute.len() as u64, &mut self.node);
        self.node.extend_from_slice(&self.attribute);
    }
}

fn string_field(tag: u32, text: &str, out: &mut Vec<u8>) {
    encode_key(tag, WireType::LengthDelimited, out);
    encode_varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

impl Does {
    fn kind(self) -> u64 {
        match self {
            Does::Compute { .. } => COMPUTE,
            Does::Call { .. } => COLLECTIVE,
            Does::Send { .. } => SEND,
            Does::Receive { .. } => RECEIVE,
        }
    }
}

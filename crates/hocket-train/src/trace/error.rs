//! What is wrong with a trace, and where.

use std::borrow::Cow;
use std::fmt;

use crate::explain::Explain;

use super::{CallKind, LARGEST_SIZE, LONGEST_MICROS};

const SHOWN_NAME: usize = 80;
const SHOWN_GROUPS: usize = 8;
const KNOWN_TYPES: &str = "types are 1 (metadata), 2 (memory load), 3 (memory store), 4 (compute), 5 \
                           (send), 6 (receive), 7 (collective)";

/// Why files are no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// No file at all.
    #[error("a trace has a file for each rank, none given; give one or more")]
    NoFiles,
    /// A file of 0 bytes.
    #[error("{file}: is empty; a Chakra trace begins with its metadata")]
    Empty {
        /// The file.
        file: String,
    },
    /// A file that begins with something else.
    #[error(
        "{file}: does not begin as a Chakra trace ({why}); give a .et file as Chakra writes it"
    )]
    NoMetadata {
        /// The file.
        file: String,
        /// What its first message is not.
        why: String,
    },
    /// A file that ends within the length of a message, or a length that is none.
    #[error("{file}: cut short at byte {byte}, {}; {}", place(*.after), remedy(*.after))]
    Truncated {
        /// The file.
        file: String,
        /// Where the message starts.
        byte: usize,
        /// Id of the node before it.
        after: Option<u64>,
    },
    /// A message that does not end before its file.
    #[error(
        "{file}: the message at byte {byte}, {}, has {length} bytes and {left} are left; {}",
        place(*.after), remedy(*.after)
    )]
    Overrun {
        /// The file.
        file: String,
        /// Where the message starts.
        byte: usize,
        /// Id of the node before it.
        after: Option<u64>,
        /// Bytes that it should have.
        length: usize,
        /// Bytes that there are.
        left: usize,
    },
    /// A message that is not a node.
    #[error("{file}: the message at byte {byte}, {}, is not a node: {why}", place(*.after))]
    Message {
        /// The file.
        file: String,
        /// Where it starts.
        byte: usize,
        /// Id of the node before it.
        after: Option<u64>,
        /// What does not fit.
        why: String,
    },
    /// A node that makes no sense.
    #[error("{file}: node {id} {name:?}: {fault}")]
    Node {
        /// The file.
        file: String,
        /// The node's id.
        id: u64,
        /// Its name, shortened.
        name: String,
        /// What is wrong.
        fault: Box<Fault>,
    },
    /// A group of ranks that makes no sense.
    #[error("group {id}: {why}; {remedy}")]
    Group {
        /// The group.
        id: u64,
        /// What is wrong.
        why: String,
        /// What would be right.
        remedy: String,
    },
    /// Ranks of a group that do not do the same.
    #[error(
        "group {group}, collective {index}: {first} is {first_call}, {second} is {second_call}; all \
         ranks of a group issue the same collectives in the same order"
    )]
    Mismatch {
        /// The group's id.
        group: u64,
        /// Which of its collectives, from 0.
        index: usize,
        /// A node of one rank: its file, id and name.
        first: String,
        /// What it does.
        first_call: Call,
        /// A node of another.
        second: String,
        /// What that does.
        second_call: Call,
    },
    /// Ranks of a group that do not do as much.
    #[error(
        "group {group}: rank {more} issues {more_count} collectives and rank {fewer} {fewer_count}; the \
         first without a counterpart is {node}"
    )]
    Missing {
        /// The group's id.
        group: u64,
        /// A rank that issues more.
        more: u32,
        /// Number of calls that this rank issues.
        more_count: usize,
        /// A rank that issues fewer.
        fewer: u32,
        /// Number of calls that this rank issues.
        fewer_count: usize,
        /// File, id and name of the node.
        node: String,
    },
    /// Columns that are none of a trace.
    #[error("columns of a trace: {why}; read the trace again")]
    Malformed {
        /// What does not fit.
        why: String,
    },
    /// More than 32 bits can number.
    #[error("the trace has 2^32 {what} or more; split it")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
    },
}

impl Explain for TraceError {
    fn origin(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Empty { file }
            | Self::NoMetadata { file, .. }
            | Self::Truncated { file, .. }
            | Self::Overrun { file, .. }
            | Self::Message { file, .. } => Some(file.into()),
            Self::Node { file, id, name, .. } => Some(format!("{file}: node {id} {name:?}").into()),
            Self::Group { id: group, .. } | Self::Missing { group, .. } => {
                Some(format!("group {group}").into())
            }
            Self::Mismatch { group, index, .. } => {
                Some(format!("group {group}, collective {index}").into())
            }
            Self::Malformed { .. } => Some("columns of a trace".into()),
            Self::NoFiles | Self::TooLarge { .. } => None,
        }
    }

    fn remedy(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::NoFiles => Some("give one or more".into()),
            Self::Empty { .. } => Some("a Chakra trace begins with its metadata".into()),
            Self::NoMetadata { .. } => Some("give a .et file as Chakra writes it".into()),
            Self::Truncated { after, .. } | Self::Overrun { after, .. } => {
                Some(remedy(*after).into())
            }
            Self::Node { fault, .. } => fault.remedy(),
            Self::Group { remedy, .. } => Some(remedy.into()),
            Self::Mismatch { .. } => {
                Some("all ranks of a group issue the same collectives in the same order".into())
            }
            Self::Malformed { .. } => Some("read the trace again".into()),
            Self::TooLarge { .. } => Some("split it".into()),
            Self::Message { .. } | Self::Missing { .. } => None,
        }
    }
}

/// What is wrong with one node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A type that nothing is known of.
    #[error("there is no node type {given}; {KNOWN_TYPES}")]
    UnknownType {
        /// The number.
        given: i32,
    },
    /// A collective that nothing is known of.
    #[error("there is no comm_type {given}; types are {}", known_calls())]
    UnknownCall {
        /// The number or the word.
        given: String,
    },
    /// An attribute that a send or a receive cannot do without.
    #[error("has no {attribute}; a send or a receive needs it")]
    NoAttribute {
        /// Name of the attribute.
        attribute: &'static str,
    },
    /// An attribute of the wrong kind.
    #[error("{attribute} is {given}; write it as {right}")]
    WrongKind {
        /// Name of the attribute.
        attribute: &'static str,
        /// Kind that the attribute has.
        given: &'static str,
        /// Kind that it should have.
        right: &'static str,
    },
    /// A number that is negative or too large.
    #[error("{attribute} is {given}; give 0 to {most}")]
    OutOfRange {
        /// Attribute or field.
        attribute: &'static str,
        /// Its value.
        given: i128,
        /// The largest that will do.
        most: u64,
    },
    /// A group id that is not a number.
    #[error("pg_name is {given:?}; write a group's number, or leave it out for all ranks")]
    BadGroup {
        /// What it is, shortened.
        given: String,
    },
    /// A group that there is not.
    #[error("there is no group {group}; groups are {known}")]
    UnknownGroup {
        /// Its id.
        group: u64,
        /// Those that there are.
        known: String,
    },
    /// A rank that does not belong to the group whose collective it issues.
    #[error("rank {rank} is not in group {group}; add it, or give the node another group")]
    NotInGroup {
        /// The rank.
        rank: u32,
        /// The group's id.
        group: u64,
    },
    /// A collective that takes place along some dimensions only.
    #[error(
        "involved_dim leaves dimensions out; a trace does not say which ranks those join: give the ranks \
         as a group (pg_name)"
    )]
    SomeDimensions,
    /// A collective whose bytes over all ranks pass the largest size.
    #[error(
        "comm_size is {given} at each of {ranks} ranks, more than {LARGEST_SIZE} in all; make it smaller"
    )]
    TooMuch {
        /// The attribute.
        given: u64,
        /// Ranks of the group.
        ranks: usize,
    },
    /// Two nodes of one id.
    #[error("has the id of an earlier node, {first:?}; ids within a file differ")]
    Duplicate {
        /// Name of the earlier one, shortened.
        first: String,
    },
    /// A dependency on a node that is not there.
    #[error(
        "its {kind} dependency {on} is not in the file; {}",
        write_that_node(kind)
    )]
    Dangling {
        /// Control or data.
        kind: &'static str,
        /// The id.
        on: u64,
    },
    /// A node that would have to end before it starts.
    #[error(
        "waits for itself: it depends on {path}; break the cycle, or read data dependencies alone \
         (--dependencies data)"
    )]
    Cycle {
        /// The next nodes of the cycle.
        path: String,
    },
    /// A send or receive that names another rank than its own.
    #[error(
        "{attribute} is {given}, in the file of rank {rank}; a {what} is in the file of its own rank"
    )]
    NotOwn {
        /// Send or receive.
        what: &'static str,
        /// Attribute that says so.
        attribute: &'static str,
        /// What it says.
        given: u64,
        /// Rank of the file.
        rank: u32,
    },
    /// A send or receive whose other end does not exist.
    #[error("{attribute} is {given}; ranks are 0 to {last}")]
    NoSuchRank {
        /// Attribute that says so.
        attribute: &'static str,
        /// What it says.
        given: u64,
        /// The highest rank.
        last: usize,
    },
    /// A send or receive without its counterpart.
    #[error(
        "this {what} from rank {src} to rank {dst} with tag {tag} has no matching {other}; write one for \
         each"
    )]
    Unmatched {
        /// Send or receive.
        what: &'static str,
        /// The other of the two.
        other: &'static str,
        /// Rank that sends.
        src: u32,
        /// Rank that receives.
        dst: u32,
        /// The tag.
        tag: u64,
    },
    /// A send and its receive that do not agree.
    #[error("sends {sent} bytes, and {receive} expects {expected}; give both one comm_size")]
    Sizes {
        /// Bytes sent.
        sent: u64,
        /// The receive: file, id and name.
        receive: String,
        /// Bytes expected.
        expected: u64,
    },
}

impl Explain for Fault {
    fn remedy(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::UnknownType { .. } => KNOWN_TYPES.into(),
            Self::UnknownCall { .. } => format!("types are {}", known_calls()).into(),
            Self::NoAttribute { .. } => "a send or a receive needs it".into(),
            Self::WrongKind { right, .. } => format!("write it as {right}").into(),
            Self::OutOfRange { most, .. } => format!("give 0 to {most}").into(),
            Self::BadGroup { .. } => "write a group's number, or leave it out for all ranks".into(),
            Self::UnknownGroup { known, .. } => format!("groups are {known}").into(),
            Self::NotInGroup { .. } => "add it, or give the node another group".into(),
            Self::SomeDimensions => "a trace does not say which ranks those join: give the ranks \
                                     as a group (pg_name)"
                .into(),
            Self::TooMuch { .. } => "make it smaller".into(),
            Self::Duplicate { .. } => "ids within a file differ".into(),
            Self::Dangling { kind, .. } => write_that_node(kind).into(),
            Self::Cycle { .. } => "break the cycle, or read data dependencies alone \
                                   (--dependencies data)"
                .into(),
            Self::NotOwn { what, .. } => format!("a {what} is in the file of its own rank").into(),
            Self::NoSuchRank { last, .. } => format!("ranks are 0 to {last}").into(),
            Self::Unmatched { .. } => "write one for each".into(),
            Self::Sizes { .. } => "give both one comm_size".into(),
        })
    }
}

/// A collective as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Kind of the call.
    pub kind: CallKind,
    /// Its `comm_size`.
    pub bytes: u64,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.kind.name(), self.bytes)
    }
}

/// Returns a name or a text from a file, shortened.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_NAME) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// Ids for a message, the first few.
pub(super) fn listed(ids: &[u64]) -> String {
    let shown: Vec<String> = ids.iter().take(SHOWN_GROUPS).map(u64::to_string).collect();
    let more = if ids.len() > SHOWN_GROUPS {
        ", ..."
    } else {
        ""
    };
    format!("{}{more}", shown.join(", "))
}

/// Checks a number that may not be negative.
pub(super) fn within(attribute: &'static str, given: i128, most: u64) -> Result<u64, Fault> {
    match u64::try_from(given) {
        Ok(number) if number <= most => Ok(number),
        _ => Err(Fault::OutOfRange {
            attribute,
            given,
            most,
        }),
    }
}

/// Picoseconds of a duration in microseconds.
pub(super) fn picoseconds(micros: u64) -> Result<u64, Fault> {
    // A negative number is written as one of 2^63 or more.
    let given = i128::from(micros as i64);
    Ok(within("duration_micros", given, LONGEST_MICROS)? * 1_000_000)
}

fn place(after: Option<u64>) -> String {
    match after {
        Some(id) => format!("after node {id}"),
        None => "before the first node".to_owned(),
    }
}

fn remedy(after: Option<u64>) -> &'static str {
    match after {
        Some(_) => "copy the file anew",
        None => "copy the file anew, or give one that is a Chakra trace",
    }
}

fn write_that_node(kind: &str) -> &'static str {
    match kind {
        "control" => "write that node too, or read data dependencies alone (--dependencies data)",
        _ => "write that node too",
    }
}

fn known_calls() -> String {
    let name = |kind: &CallKind| format!("{} ({})", *kind as u8, kind.chakra_name());
    CallKind::KNOWN
        .iter()
        .map(name)
        .collect::<Vec<_>>()
        .join(", ")
}

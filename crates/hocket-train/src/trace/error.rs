//! What is wrong with a trace, and where.

use std::fmt;

use crate::explain::Explain;

use super::{CallKind, LARGEST_SIZE, LONGEST_MICROS};

const SHOWN_NAME: usize = 80;
const SHOWN_GROUPS: usize = 8;
const KNOWN_TYPES: &str = "types are 1 (metadata), 2 (memory load), 3 (memory store), 4 (compute), 5 \
                           (send), 6 (receive), 7 (collective)";

/// Why files are no trace.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum TraceError {
    /// No file at all.
    #[explain(
        why("a trace has a file for each rank, none given"),
        remedy("give one or more")
    )]
    NoFiles,
    /// A file of 0 bytes.
    #[explain(
        origin("{file}"),
        why("is empty"),
        remedy("a Chakra trace begins with its metadata")
    )]
    Empty {
        /// The file.
        file: String,
    },
    /// A file that begins with something else.
    #[explain(
        origin("{file}"),
        why("does not begin as a Chakra trace ({why})"),
        remedy("give a .et file as Chakra writes it")
    )]
    NoMetadata {
        /// The file.
        file: String,
        /// What its first message is not.
        why: String,
    },
    /// A file that ends within the length of a message, or a length that is none.
    #[explain(
        origin("{file}"),
        why("cut short at byte {byte}, {}", place(*after)),
        remedy("{}", remedy(*after))
    )]
    Truncated {
        /// The file.
        file: String,
        /// Where the message starts.
        byte: usize,
        /// Id of the node before it.
        after: Option<u64>,
    },
    /// A message that does not end before its file.
    #[explain(
        origin("{file}"),
        why("the message at byte {byte}, {}, has {length} bytes and {left} are left", place(*after)),
        remedy("{}", remedy(*after))
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
    #[explain(
        origin("{file}"),
        why("the message at byte {byte}, {}, is not a node: {why}", place(*after))
    )]
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
    #[explain(of(fault.parts()), origin("{file}: node {id} {name:?}"))]
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
    #[explain(origin("group {id}"), why("{why}"), remedy("{remedy}"))]
    Group {
        /// The group.
        id: u64,
        /// What is wrong.
        why: String,
        /// What would be right.
        remedy: String,
    },
    /// Ranks of a group that do not do the same.
    #[explain(
        origin("group {group}, collective {index}"),
        why("{first} is {first_call}, {second} is {second_call}"),
        remedy("all ranks of a group issue the same collectives in the same order")
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
    #[explain(
        origin("group {group}"),
        why(
            "rank {more} issues {more_count} collectives and rank {fewer} {fewer_count}; the first without a counterpart is {node}"
        )
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
    #[explain(
        origin("columns of a trace"),
        why("{why}"),
        remedy("read the trace again")
    )]
    Malformed {
        /// What does not fit.
        why: String,
    },
    /// More than 32 bits can number.
    #[explain(why("the trace has 2^32 {what} or more"), remedy("split it"))]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
    },
}

/// What is wrong with one node.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum Fault {
    /// A type that nothing is known of.
    #[explain(why("there is no node type {given}"), remedy("{KNOWN_TYPES}"))]
    UnknownType {
        /// The number.
        given: i32,
    },
    /// A collective that nothing is known of.
    #[explain(
        why("there is no comm_type {given}"),
        remedy("types are {}", known_calls())
    )]
    UnknownCall {
        /// The number or the word.
        given: String,
    },
    /// An attribute that a send or a receive cannot do without.
    #[explain(why("has no {attribute}"), remedy("a send or a receive needs it"))]
    NoAttribute {
        /// Name of the attribute.
        attribute: &'static str,
    },
    /// An attribute of the wrong kind.
    #[explain(why("{attribute} is {given}"), remedy("write it as {right}"))]
    WrongKind {
        /// Name of the attribute.
        attribute: &'static str,
        /// Kind that the attribute has.
        given: &'static str,
        /// Kind that it should have.
        right: &'static str,
    },
    /// A number that is negative or too large.
    #[explain(why("{attribute} is {given}"), remedy("give 0 to {most}"))]
    OutOfRange {
        /// Attribute or field.
        attribute: &'static str,
        /// Its value.
        given: i128,
        /// The largest that will do.
        most: u64,
    },
    /// A group id that is not a number.
    #[explain(
        why("pg_name is {given:?}"),
        remedy("write a group's number, or leave it out for all ranks")
    )]
    BadGroup {
        /// What it is, shortened.
        given: String,
    },
    /// A group that there is not.
    #[explain(why("there is no group {group}"), remedy("groups are {known}"))]
    UnknownGroup {
        /// Its id.
        group: u64,
        /// Those that there are.
        known: String,
    },
    /// A rank that does not belong to the group whose collective it issues.
    #[explain(
        why("rank {rank} is not in group {group}"),
        remedy("add it, or give the node another group")
    )]
    NotInGroup {
        /// The rank.
        rank: u32,
        /// The group's id.
        group: u64,
    },
    /// A collective that takes place along some dimensions only.
    #[explain(
        why("involved_dim leaves dimensions out"),
        remedy("a trace does not say which ranks those join: give the ranks as a group (pg_name)")
    )]
    SomeDimensions,
    /// A collective whose bytes over all ranks pass the largest size.
    #[explain(
        why("comm_size is {given} at each of {ranks} ranks, more than {LARGEST_SIZE} in all"),
        remedy("make it smaller")
    )]
    TooMuch {
        /// The attribute.
        given: u64,
        /// Ranks of the group.
        ranks: usize,
    },
    /// Two nodes of one id.
    #[explain(
        why("has the id of an earlier node, {first:?}"),
        remedy("ids within a file differ")
    )]
    Duplicate {
        /// Name of the earlier one, shortened.
        first: String,
    },
    /// A dependency on a node that is not there.
    #[explain(
        why("its {kind} dependency {on} is not in the file"),
        remedy("{}", write_that_node(kind))
    )]
    Dangling {
        /// Control or data.
        kind: &'static str,
        /// The id.
        on: u64,
    },
    /// A node that would have to end before it starts.
    #[explain(
        why("waits for itself: it depends on {path}"),
        remedy("break the cycle, or read data dependencies alone (--dependencies data)")
    )]
    Cycle {
        /// The next nodes of the cycle.
        path: String,
    },
    /// A send or receive that names another rank than its own.
    #[explain(
        why("{attribute} is {given}, in the file of rank {rank}"),
        remedy("a {what} is in the file of its own rank")
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
    #[explain(why("{attribute} is {given}"), remedy("ranks are 0 to {last}"))]
    NoSuchRank {
        /// Attribute that says so.
        attribute: &'static str,
        /// What it says.
        given: u64,
        /// The highest rank.
        last: usize,
    },
    /// A send or receive without its counterpart.
    #[explain(
        why("this {what} from rank {src} to rank {dst} with tag {tag} has no matching {other}"),
        remedy("write one for each")
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
    #[explain(
        why("sends {sent} bytes, and {receive} expects {expected}"),
        remedy("give both one comm_size")
    )]
    Sizes {
        /// Bytes sent.
        sent: u64,
        /// The receive: file, id and name.
        receive: String,
        /// Bytes expected.
        expected: u64,
    },
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

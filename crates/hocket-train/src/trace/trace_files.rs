//! Files to columns: what each node says by itself, and what waits for what within a rank.

use std::collections::HashMap;

use super::chakra::{Node, Nodes, Value};
use super::error::{picoseconds, shortened, within};
use super::order::{self, Waits};
use super::{CallKind, Fault, LARGEST_SIZE, NONE, NodeKind, Trace, TraceError};
use crate::id::{fit, narrow};
use crate::units::Time;

/// One rank's file.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// What errors call it.
    pub name: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// Which dependencies count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Control and data, as ASTRA-sim has it.
    All,
    /// Data alone. Control dependencies of PyTorch traces may be the stack of calls, whose nodes
    /// need not be in the file and of which some wait for each other.
    Data,
}

/// A trace whose groups of ranks are not known yet.
#[derive(Clone, Debug)]
#[doc(alias = "Draft")]
pub struct UngroupedTrace {
    /// Without groups, calls and partners; `group` is a row of `group_ids`.
    pub(super) trace: Trace,
    pub(super) files: Vec<String>,
    pub(super) group_ids: Vec<u64>,
    process_groups: Vec<(u32, String)>,
}

impl UngroupedTrace {
    /// Reads a file for each rank, in the order of ranks.
    ///
    /// # Errors
    /// [`TraceError`], naming file and node.
    pub fn read(files: &[File<'_>], follow: Follow) -> Result<Self, TraceError> {
        if files.is_empty() {
            return Err(TraceError::NoFiles);
        }
        let mut maker = Maker {
            draft: UngroupedTrace::of(
                Trace::default(),
                files.iter().map(|file| file.name.to_owned()).collect(),
                Vec::new(),
            ),
            follow,
            name_rows: HashMap::new(),
            group_rows: HashMap::new(),
        };
        maker.draft.trace.rank_first.push(0);
        maker.draft.trace.dependency_first.push(0);
        maker.draft.trace.names.first.push(0);
        for (rank, file) in files.iter().enumerate() {
            maker.read_rank(narrow(rank), file)?;
        }
        Ok(maker.draft)
    }

    /// Returns a draft of nodes, with what errors call the ranks and the ids of the groups that nodes name.
    pub(super) fn of(trace: Trace, files: Vec<String>, group_ids: Vec<u64>) -> Self {
        Self {
            trace,
            files,
            group_ids,
            process_groups: Vec::new(),
        }
    }

    /// Returns what metadata nodes are given as inputs, with their rank: in PyTorch traces, groups of ranks in JSON.
    pub fn process_groups(&self) -> &[(u32, String)] {
        &self.process_groups
    }

    /// Returns an error about a row.
    pub(super) fn wrong(&self, row: u32, fault: Fault) -> TraceError {
        TraceError::Node {
            file: self.files[self.trace.rank_of(row) as usize].clone(),
            id: self.trace.id[row as usize],
            name: shortened(self.trace.names.of_row(row)),
            fault: Box::new(fault),
        }
    }

    /// Returns a row as messages name it.
    pub(super) fn describe(&self, row: u32) -> String {
        let file = &self.files[self.trace.rank_of(row) as usize];
        format!("{} of {file}", self.describe_within(row))
    }

    /// Returns a row as messages about its file name it.
    pub(super) fn describe_within(&self, row: u32) -> String {
        let name = shortened(self.trace.names.of_row(row));
        format!("node {} {name:?}", self.trace.id[row as usize])
    }
}

/// Reads files one after the other.
struct Maker {
    draft: UngroupedTrace,
    follow: Follow,
    name_rows: HashMap<String, u32>,
    group_rows: HashMap<u64, u32>,
}

/// What a node says, besides its id, name and dependencies.
struct Row {
    kind: NodeKind,
    duration: Time,
    operations: u64,
    tensor_bytes: u64,
    is_cpu: bool,
    call_kind: CallKind,
    bytes: u64,
    group: Option<u64>,
    peer: u32,
    tag: u64,
    priority: u32,
}

impl Maker {
    fn read_rank(&mut self, rank: u32, file: &File<'_>) -> Result<(), TraceError> {
        let mut nodes = Nodes::new(file.name, file.bytes)?;
        let mut waits = Waits::default();
        while let Some(mut node) = nodes.next_node()? {
            let row = Row::of(&node, rank, self.draft.files.len());
            let row = row.map_err(|fault| TraceError::Node {
                file: file.name.to_owned(),
                id: node.id,
                name: shortened(&node.name),
                fault: Box::new(fault),
            })?;
            if self.follow == Follow::Data {
                node.control.clear();
            }
            waits.push(&node.control, &node.data);
            self.push(rank, node, &row)?;
        }
        let rows = fits(self.draft.trace.len(), "nodes")?;
        self.draft.trace.rank_first.push(rows);
        order::resolve(&mut self.draft, &waits)
    }

    fn push(&mut self, rank: u32, node: Node, row: &Row) -> Result<(), TraceError> {
        if let (NodeKind::Metadata, Some(inputs)) = (row.kind, node.inputs)
            && !inputs.values.is_empty()
        {
            self.draft.process_groups.push((rank, inputs.values));
        }
        let name = self.name_row(node.name)?;
        let group = row.group.map_or(NONE, |id| self.group_row(id));
        let trace = &mut self.draft.trace;
        trace.names.of.push(name);
        trace.group.push(group);
        trace.id.push(node.id);
        trace.kind.push(row.kind);
        trace.duration.push(row.duration);
        trace.operations.push(row.operations);
        trace.tensor_bytes.push(row.tensor_bytes);
        trace.is_cpu.push(row.is_cpu.into());
        trace.call_kind.push(row.call_kind);
        trace.bytes.push(row.bytes);
        trace.peer.push(row.peer);
        trace.tag.push(row.tag);
        trace.priority.push(row.priority);
        Ok(())
    }

    fn name_row(&mut self, name: String) -> Result<u32, TraceError> {
        if let Some(&row) = self.name_rows.get(&name) {
            return Ok(row);
        }
        let names = &mut self.draft.trace.names;
        let row = narrow(names.first.len() - 1);
        names.text.push_str(&name);
        names.first.push(fits(names.text.len(), "bytes of names")?);
        self.name_rows.insert(name, row);
        Ok(row)
    }

    fn group_row(&mut self, id: u64) -> u32 {
        let ids = &mut self.draft.group_ids;
        *self.group_rows.entry(id).or_insert_with(|| {
            ids.push(id);
            narrow(ids.len() - 1)
        })
    }
}

impl Row {
    fn of(node: &Node, rank: u32, ranks: usize) -> Result<Self, Fault> {
        let mut row = Self {
            kind: kind_of(node.kind)?,
            duration: Time::from_ps(picoseconds(node.duration_micros)?),
            operations: 0,
            tensor_bytes: 0,
            is_cpu: number(node, "is_cpu_op", u64::MAX)?.is_some_and(|truth| truth != 0),
            call_kind: CallKind::None,
            bytes: 0,
            group: None,
            peer: NONE,
            tag: 0,
            priority: 0,
        };
        match row.kind {
            NodeKind::Metadata => {}
            NodeKind::MemoryLoad | NodeKind::MemoryStore | NodeKind::Compute => {
                row.operations = number(node, "num_ops", LARGEST_SIZE)?.unwrap_or(0);
                row.tensor_bytes = number(node, "tensor_size", LARGEST_SIZE)?.unwrap_or(0);
            }
            NodeKind::Send => {
                row.set_message(node, ["comm_src", "comm_dst"], "send", rank, ranks)?
            }
            NodeKind::Receive => {
                row.set_message(node, ["comm_dst", "comm_src"], "receive", rank, ranks)?;
            }
            NodeKind::Collective => row.set_call(node)?,
        }
        Ok(row)
    }

    /// Reads a send or receive; `ends` are the attributes for its own rank and for the other.
    fn set_message(
        &mut self,
        node: &Node,
        ends: [&'static str; 2],
        what: &'static str,
        rank: u32,
        ranks: usize,
    ) -> Result<(), Fault> {
        let needed = |attribute, most| {
            number(node, attribute, most)?.ok_or(Fault::NoAttribute { attribute })
        };
        let [own, other] = ends;
        if let Some(given) = number(node, own, u64::MAX)?.filter(|&given| given != u64::from(rank))
        {
            return Err(Fault::NotOwn {
                what,
                attribute: own,
                given,
                rank,
            });
        }
        let peer = needed(other, u64::MAX)?;
        if peer >= ranks as u64 {
            return Err(Fault::NoSuchRank {
                attribute: other,
                given: peer,
                last: ranks - 1,
            });
        }
        self.peer = fit(peer);
        self.bytes = needed("comm_size", LARGEST_SIZE)?;
        self.tag = needed("comm_tag", u64::MAX)?;
        Ok(())
    }

    fn set_call(&mut self, node: &Node) -> Result<(), Fault> {
        let call_kind = call_kind_of(node)?;
        let bytes = number(node, "comm_size", LARGEST_SIZE)?;
        let (call_kind, bytes) = match (call_kind, bytes) {
            (Some(CallKind::Barrier), _) => (CallKind::Barrier, 0),
            (Some(call_kind), Some(bytes)) => (call_kind, bytes),
            _ => (CallKind::Unspecified, bytes.unwrap_or(0)),
        };
        self.call_kind = call_kind;
        self.bytes = bytes;
        if call_kind == CallKind::Unspecified {
            return Ok(());
        }
        self.priority = fit(number(node, "comm_priority", u32::MAX.into())?.unwrap_or(0));
        self.group = Some(group_of(node)?);
        match node.attribute("involved_dim") {
            None => Ok(()),
            Some(Value::Bools(dimensions)) => match dimensions.values.contains(&false) {
                true => Err(Fault::SomeDimensions),
                false => Ok(()),
            },
            Some(other) => Err(Fault::WrongKind {
                attribute: "involved_dim",
                given: other.describe(),
                right: "a list of truths",
            }),
        }
    }
}

fn kind_of(given: i32) -> Result<NodeKind, Fault> {
    // Metadata is 1, and what Chakra calls invalid 0.
    let number = if given == 0 { 1 } else { given };
    let known = u8::try_from(number).ok().and_then(NodeKind::from_repr);
    known.ok_or(Fault::UnknownType { given })
}

/// Returns what a collective does, given as Chakra's number or as its word.
fn call_kind_of(node: &Node) -> Result<Option<CallKind>, Fault> {
    const BLOCK: i128 = 8;
    let Some(value) = node.attribute("comm_type") else {
        return Ok(None);
    };
    let mut known = CallKind::KNOWN.iter().copied();
    let (found, given) = match (value, value.integer()) {
        (_, Some(BLOCK)) => (Some(CallKind::ReduceScatter), String::new()),
        (_, Some(given)) => {
            let found = known.find(|&kind| i128::from(kind as u8) == given);
            (found, given.to_string())
        }
        (Value::Text(word), None) => {
            let name = word.to_ascii_uppercase().replace('-', "_");
            (
                known.find(|kind| kind.chakra_name() == name),
                shortened(word),
            )
        }
        (other, None) => {
            return Err(Fault::WrongKind {
                attribute: "comm_type",
                given: other.describe(),
                right: "a whole number",
            });
        }
    };
    found.map(Some).ok_or(Fault::UnknownCall { given })
}

/// Id of a collective's group; 0 stands for all ranks.
fn group_of(node: &Node) -> Result<u64, Fault> {
    match node.attribute("pg_name") {
        None => Ok(0),
        Some(Value::Text(text)) if text.is_empty() => Ok(0),
        Some(Value::Text(text)) => text.parse().map_err(|_| Fault::BadGroup {
            given: shortened(text),
        }),
        Some(_) => Ok(number(node, "pg_name", u64::MAX)?.unwrap_or(0)),
    }
}

/// Returns a whole number of 0 or more; `None` where the node has no such attribute.
fn number(node: &Node, attribute: &'static str, most: u64) -> Result<Option<u64>, Fault> {
    let Some(value) = node.attribute(attribute) else {
        return Ok(None);
    };
    let given = value.integer().ok_or(Fault::WrongKind {
        attribute,
        given: value.describe(),
        right: "a whole number",
    })?;
    within(attribute, given, most).map(Some)
}

/// Returns a count as the 32 bits that rows have.
pub(super) fn fits(count: usize, what: &'static str) -> Result<u32, TraceError> {
    match u32::try_from(count) {
        Ok(count) if count < NONE => Ok(count),
        _ => Err(TraceError::TooLarge { what }),
    }
}

//! A trace from the columns of one, as a pickle keeps them.

use super::order::{self, Waits};
use super::trace_files::{UngroupedTrace, fits};
use super::{CallKind, LARGEST_SIZE, LONGEST_MICROS, NONE, Names, NodeKind, Trace, TraceError};
use crate::units::Time;

/// What a trace is made of: the fields of [`Trace`] that do not follow from others, as plain numbers.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// First row of each rank, and the number of rows.
    pub rank_first: Vec<u32>,
    /// As [`Trace::id`].
    pub id: Vec<u64>,
    /// Numbers of [`NodeKind`].
    pub kind: Vec<u8>,
    /// Picoseconds.
    pub duration: Vec<u64>,
    /// As [`Trace::operations`].
    pub operations: Vec<u64>,
    /// As [`Trace::tensor_bytes`].
    pub tensor_bytes: Vec<u64>,
    /// 0 or 1.
    pub is_cpu: Vec<u8>,
    /// Numbers of [`CallKind`].
    pub call_kind: Vec<u8>,
    /// As [`Trace::bytes`].
    pub bytes: Vec<u64>,
    /// Row of each node's group among the groups, or [`NONE`].
    pub group: Vec<u32>,
    /// As [`Trace::peer`].
    pub peer: Vec<u32>,
    /// As [`Trace::tag`].
    pub tag: Vec<u64>,
    /// As [`Trace::priority`].
    pub priority: Vec<u32>,
    /// Each distinct name.
    pub names: Vec<String>,
    /// Place of each row's name.
    pub name_row: Vec<u32>,
    /// First of each row's dependencies, and their number.
    pub dependency_first: Vec<u32>,
    /// Rows.
    pub dependencies: Vec<u32>,
}

impl Trace {
    /// Makes a trace again of its columns and groups; orders, calls and messages are matched anew.
    ///
    /// # Errors
    /// [`TraceError::Malformed`] for columns that are none of a trace; else as [`UngroupedTrace::link`].
    pub fn from_columns(columns: Columns, groups: &[(u64, Vec<u32>)]) -> Result<Self, TraceError> {
        let malformed = |why| TraceError::Malformed { why };
        columns.check_lengths().map_err(malformed)?;
        for row in 0..columns.id.len() {
            let check = columns.check_row(row, groups.len());
            check.map_err(|why| malformed(format!("node {row}: {why}")))?;
        }
        let waits = columns.waits().map_err(malformed)?;
        let mut draft = columns.draft(groups)?;
        for (end, waits) in waits {
            draft.trace.rank_first.push(end);
            order::resolve(&mut draft, &waits)?;
        }
        draft.link(groups)
    }
}

impl Columns {
    fn check_lengths(&self) -> Result<(), String> {
        let rows = self.id.len();
        for (column, entries) in [
            ("kind", self.kind.len()),
            ("duration", self.duration.len()),
            ("operations", self.operations.len()),
            ("tensor_bytes", self.tensor_bytes.len()),
            ("is_cpu", self.is_cpu.len()),
            ("call_kind", self.call_kind.len()),
            ("bytes", self.bytes.len()),
            ("group", self.group.len()),
            ("peer", self.peer.len()),
            ("tag", self.tag.len()),
            ("priority", self.priority.len()),
            ("name_row", self.name_row.len()),
        ] {
            if entries != rows {
                return Err(format!("{column} has {entries} entries; {rows} are due"));
            }
        }
        if self.rank_first.len() < 2 || !are_offsets(&self.rank_first, rows) {
            return Err("rank_first does not divide the nodes".to_owned());
        }
        if self.dependency_first.len() != rows + 1
            || !are_offsets(&self.dependency_first, self.dependencies.len())
        {
            return Err("dependency_first does not divide the dependencies".to_owned());
        }
        Ok(())
    }

    fn check_row(&self, row: usize, groups: usize) -> Result<(), String> {
        let kind = NodeKind::from_repr(self.kind[row]).ok_or("there is no such kind")?;
        let call = CallKind::from_repr(self.call_kind[row]).ok_or("there is no such collective")?;
        let is_call = kind == NodeKind::Collective;
        let has_group = is_call && call != CallKind::Unspecified;
        let is_message = matches!(kind, NodeKind::Send | NodeKind::Receive);
        let (group, peer) = (self.group[row], self.peer[row]);
        let ranks = self.rank_first.len() - 1;
        let faults = [
            (
                is_call == (call == CallKind::None),
                "is a collective in one column and not in another",
            ),
            (
                has_group != (group != NONE),
                "has a group where it should not, or none where it should",
            ),
            (
                has_group && group as usize >= groups,
                "its group is not there",
            ),
            (
                is_message != (peer != NONE),
                "has a peer where it should not, or none where it should",
            ),
            (
                is_message && peer as usize >= ranks,
                "its peer is not there",
            ),
            (
                self.name_row[row] as usize >= self.names.len(),
                "its name is not there",
            ),
            (self.is_cpu[row] > 1, "is_cpu is neither 0 nor 1"),
            (
                self.duration[row] > LONGEST_MICROS * 1_000_000,
                "lasts too long",
            ),
            (
                [
                    self.operations[row],
                    self.tensor_bytes[row],
                    self.bytes[row],
                ]
                .iter()
                .any(|&number| number > LARGEST_SIZE),
                "a number is too large",
            ),
            (
                call == CallKind::Barrier && self.bytes[row] > 0,
                "a barrier moves bytes",
            ),
        ];
        let fault = faults.iter().find(|(is_wrong, _)| *is_wrong);
        fault.map_or(Ok(()), |(_, why)| Err((*why).to_owned()))
    }

    /// Of each rank where its rows end, and what they wait for.
    fn waits(&self) -> Result<Vec<(u32, Waits)>, String> {
        let mut found = Vec::with_capacity(self.rank_first.len() - 1);
        for rows in self.rank_first.windows(2) {
            let mut waits = Waits::default();
            for row in rows[0] as usize..rows[1] as usize {
                let span =
                    self.dependency_first[row] as usize..self.dependency_first[row + 1] as usize;
                let on = &self.dependencies[span];
                if on.iter().any(|on| !(rows[0]..rows[1]).contains(on)) {
                    return Err(format!("node {row}: waits for a node of another rank"));
                }
                let ids: Vec<u64> = on.iter().map(|&on| self.id[on as usize]).collect();
                waits.push(&[], &ids);
            }
            found.push((rows[1], waits));
        }
        Ok(found)
    }

    /// Returns the draft of checked columns, less ranks and dependencies.
    fn draft(self, groups: &[(u64, Vec<u32>)]) -> Result<UngroupedTrace, TraceError> {
        let mut names = Names {
            first: vec![0],
            of: self.name_row,
            ..Names::default()
        };
        for name in &self.names {
            names.text.push_str(name);
            names.first.push(fits(names.text.len(), "bytes of names")?);
        }
        let trace = Trace {
            rank_first: vec![0],
            id: self.id,
            kind: self
                .kind
                .into_iter()
                .filter_map(NodeKind::from_repr)
                .collect(),
            duration: self.duration.into_iter().map(Time::from_ps).collect(),
            operations: self.operations,
            tensor_bytes: self.tensor_bytes,
            is_cpu: self.is_cpu,
            call_kind: self
                .call_kind
                .into_iter()
                .filter_map(CallKind::from_repr)
                .collect(),
            bytes: self.bytes,
            group: self.group,
            peer: self.peer,
            tag: self.tag,
            priority: self.priority,
            names,
            dependency_first: vec![0],
            ..Trace::default()
        };
        let ranks = self.rank_first.len() - 1;
        Ok(UngroupedTrace::of(
            trace,
            (0..ranks).map(|rank| format!("rank {rank}")).collect(),
            groups.iter().map(|(id, _)| *id).collect(),
        ))
    }
}

fn are_offsets(offsets: &[u32], end: usize) -> bool {
    let last = offsets.last().map(|&last| last as usize);
    offsets.first() == Some(&0) && offsets.is_sorted() && last == Some(end)
}

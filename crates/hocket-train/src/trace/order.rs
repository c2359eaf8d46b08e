//! Dependencies of one rank's nodes: ids become rows, and the nodes are put in an order that uses
//! them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

use super::error::shortened;
use super::trace_files::{UngroupedTrace, fits};
use super::{Fault, Trace, TraceError};
use crate::graph::Lists;
use crate::id::narrow;

const SHOWN_OF_CYCLE: usize = 4;

/// Ids that the nodes of a file depend on.
#[derive(Default)]
pub(super) struct Waits {
    /// For each node, its control dependencies and then those of data.
    ids: Vec<u64>,
    /// For each node, where its control dependencies end, and where its others do.
    ends: Vec<[usize; 2]>,
}

impl Waits {
    /// Adds those of the next node.
    pub(super) fn push(&mut self, control: &[u64], data: &[u64]) {
        self.ids.extend_from_slice(control);
        let middle = self.ids.len();
        self.ids.extend_from_slice(data);
        self.ends.push([middle, self.ids.len()]);
    }
}

/// Fills in the dependencies and the order of the last rank.
///
/// # Errors
/// [`TraceError`] for ids that come twice or are not there, and for nodes that wait for themselves.
pub(super) fn resolve(draft: &mut UngroupedTrace, waits: &Waits) -> Result<(), TraceError> {
    let last = draft.trace.ranks() - 1;
    let rows = draft.trace.rank_first[last]..draft.trace.rank_first[last + 1];
    let row_of = index(draft, rows.clone())?;
    let mut start = 0;
    let mut found = Vec::new();
    for (row, &[middle, end]) in rows.clone().zip(&waits.ends) {
        found.clear();
        for (at, &on) in (start..end).zip(&waits.ids[start..end]) {
            let kind = if at < middle { "control" } else { "data" };
            let Some(&on) = row_of.get(&on) else {
                return Err(draft.wrong(row, Fault::Dangling { kind, on }));
            };
            found.push(on);
        }
        start = end;
        found.sort_unstable();
        found.dedup();
        let trace = &mut draft.trace;
        trace.dependencies.extend_from_slice(&found);
        let count = fits(trace.dependencies.len(), "dependencies")?;
        trace.dependency_first.push(count);
    }
    put_in_order(draft, rows)
}

fn index(draft: &UngroupedTrace, rows: Range<u32>) -> Result<HashMap<u64, u32>, TraceError> {
    let mut row_of = HashMap::with_capacity(rows.len());
    for row in rows {
        if let Some(first) = row_of.insert(draft.trace.id[row as usize], row) {
            let first = shortened(draft.trace.names.of_row(first));
            return Err(draft.wrong(row, Fault::Duplicate { first }));
        }
    }
    Ok(row_of)
}

/// Appends the rows so that each comes after what it depends on, the lowest id first.
///
/// # Source
/// A. B. Kahn, Topological sorting of large networks, 1962; the choice of the lowest id is that of
/// ASTRA-sim's `Workload::issue_dep_free_nodes`.
fn put_in_order(draft: &mut UngroupedTrace, rows: Range<u32>) -> Result<(), TraceError> {
    let trace = &mut draft.trace;
    let dependents = reverse(trace, rows.clone());
    let mut left: Vec<u32> = rows
        .clone()
        .map(|row| narrow(trace.dependencies_of(row).len()))
        .collect();
    let ready = rows
        .clone()
        .filter(|&row| left[(row - rows.start) as usize] == 0);
    let entry = |row: u32| Reverse((trace.id[row as usize], row));
    let mut ready: BinaryHeap<_> = ready.map(entry).collect();
    let mut order = Vec::with_capacity(rows.len());
    while let Some(Reverse((_, row))) = ready.pop() {
        order.push(row);
        let at = (row - rows.start) as usize;
        for &next in dependents.get(at) {
            let waits = &mut left[(next - rows.start) as usize];
            *waits -= 1;
            if *waits == 0 {
                ready.push(entry(next));
            }
        }
    }
    let is_whole = order.len() == rows.len();
    trace.order.append(&mut order);
    match is_whole {
        true => Ok(()),
        false => Err(cycle(draft, rows.start, &left)),
    }
}

/// Returns the dependents of each row of one rank.
fn reverse(trace: &Trace, rows: Range<u32>) -> Lists<u32> {
    let start = rows.start as usize;
    let dependencies = |row: u32| {
        let on = trace.dependencies_of(row).iter();
        on.map(move |&on| (on as usize - start, row))
    };
    Lists::grouped(rows.len(), rows.flat_map(dependencies))
}

/// Names a cycle among the nodes that still wait for something.
fn cycle(draft: &UngroupedTrace, start: u32, left: &[u32]) -> TraceError {
    let waits = |row: u32| left[(row - start) as usize] > 0;
    let next = |row: u32| {
        let mut on = draft.trace.dependencies_of(row).iter().copied();
        on.find(|&on| waits(on))
            .unwrap_or_else(|| unreachable!("what waits, waits for another"))
    };
    let first = left.iter().position(|&count| count > 0).unwrap_or(0);
    let mut row = start + narrow(first);
    // Whoever goes from node to node for as many steps as there are is on the cycle.
    for _ in 0..left.len() {
        row = next(row);
    }
    let mut path = String::new();
    let mut at = row;
    for shown in 0.. {
        at = next(at);
        if shown == SHOWN_OF_CYCLE {
            path.push_str(", ...");
            break;
        }
        if shown > 0 {
            path.push_str(", which depends on ");
        }
        path.push_str(&draft.describe_within(at));
        if at == row {
            break;
        }
    }
    draft.wrong(row, Fault::Cycle { path })
}

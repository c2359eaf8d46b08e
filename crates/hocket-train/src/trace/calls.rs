//! What nodes of several ranks do together: groups, the calls of collectives, sends and their
//! receives.

use std::collections::HashMap;

use super::error::{Call, listed};
use super::trace_files::{UngroupedTrace, fits};
use super::{Fault, Groups, NONE, NodeKind, Trace, TraceError};
use crate::id::narrow;

impl UngroupedTrace {
    /// Makes the trace, given the ids and ranks of groups; 0 is the group of all ranks in any case.
    ///
    /// The n-th collective that each rank of a group issues belongs to one call, in the order of
    /// [`Trace::order`]; so do sends and receives of one tag between two ranks.
    ///
    /// # Errors
    /// [`TraceError`] for groups that make no sense, and where ranks do not fit each other.
    pub fn link(mut self, groups: &[(u64, Vec<u32>)]) -> Result<Trace, TraceError> {
        self.trace.groups = make_groups(groups, self.trace.ranks())?;
        self.number_groups()?;
        let issued = self.issued()?;
        self.trace.call = vec![NONE; self.trace.len()];
        self.trace.calls.first.push(0);
        for group in 0..narrow(self.trace.groups.id.len()) {
            self.match_group(group, &issued)?;
        }
        self.match_messages()?;
        Ok(self.trace)
    }

    /// Makes `group` a row of the groups.
    fn number_groups(&mut self) -> Result<(), TraceError> {
        let ids = &self.trace.groups.id;
        let rows: HashMap<u64, u32> = ids.iter().copied().zip(0..).collect();
        let row_of = |id: &u64| rows.get(id).copied();
        let rows: Vec<Option<u32>> = self.group_ids.iter().map(row_of).collect();
        for row in 0..self.trace.len() {
            let named = self.trace.group[row];
            if named == NONE {
                continue;
            }
            let Some(group) = rows[named as usize] else {
                let fault = Fault::UnknownGroup {
                    group: self.group_ids[named as usize],
                    known: listed(&self.trace.groups.id),
                };
                return Err(self.wrong(narrow(row), fault));
            };
            self.trace.group[row] = group;
        }
        Ok(())
    }

    /// Rows of collectives by group and rank, in the order in which they are issued.
    fn issued(&self) -> Result<HashMap<(u32, u32), Vec<u32>>, TraceError> {
        let trace = &self.trace;
        let members = trace.groups.members();
        let mut issued: HashMap<(u32, u32), Vec<u32>> = HashMap::new();
        for rank in 0..trace.ranks() {
            let rows = trace.rank_first[rank] as usize..trace.rank_first[rank + 1] as usize;
            for &row in &trace.order[rows] {
                let group = trace.group[row as usize];
                if group == NONE {
                    continue;
                }
                let key = (group, narrow(rank));
                if group != 0 && members.binary_search(&key).is_err() {
                    let group = trace.groups.id[group as usize];
                    let rank = narrow(rank);
                    return Err(self.wrong(row, Fault::NotInGroup { rank, group }));
                }
                issued.entry(key).or_default().push(row);
            }
        }
        Ok(issued)
    }

    /// Makes the calls of a group.
    fn match_group(
        &mut self,
        group: u32,
        issued: &HashMap<(u32, u32), Vec<u32>>,
    ) -> Result<(), TraceError> {
        let ranks = self.trace.groups.ranks_of(group).to_vec();
        let rows_of = |&rank: &u32| issued.get(&(group, rank)).map_or(&[][..], Vec::as_slice);
        let by_rank: Vec<&[u32]> = ranks.iter().map(rows_of).collect();
        let first = by_rank.first().copied().unwrap_or(&[]);
        let least = by_rank.iter().map(|rows| rows.len()).min().unwrap_or(0);
        for (index, &row) in first[..least].iter().enumerate() {
            let call = self.call_at(row);
            let other = by_rank
                .iter()
                .find(|rows| self.call_at(rows[index]) != call);
            if let Some(rows) = other {
                return Err(TraceError::Mismatch {
                    group: self.trace.groups.id[group as usize],
                    index,
                    first: self.describe(row),
                    first_call: call,
                    second: self.describe(rows[index]),
                    second_call: self.call_at(rows[index]),
                });
            }
            self.push_call(group, call, by_rank.iter().map(|rows| rows[index]))?;
        }
        let most = by_rank.iter().position(|rows| rows.len() > least);
        let Some(more) = most else { return Ok(()) };
        let fewer = by_rank
            .iter()
            .position(|rows| rows.len() == least)
            .unwrap_or(0);
        Err(TraceError::Missing {
            group: self.trace.groups.id[group as usize],
            more: ranks[more],
            more_count: by_rank[more].len(),
            fewer: ranks[fewer],
            fewer_count: least,
            node: self.describe(by_rank[more][least]),
        })
    }

    fn call_at(&self, row: u32) -> Call {
        Call {
            kind: self.trace.call_kind[row as usize],
            bytes: self.trace.bytes[row as usize],
        }
    }

    fn push_call(
        &mut self,
        group: u32,
        call: Call,
        nodes: impl Iterator<Item = u32>,
    ) -> Result<(), TraceError> {
        let number = narrow(self.trace.calls.len());
        let start = self.trace.calls.nodes.len();
        self.trace.calls.nodes.extend(nodes);
        let trace = &mut self.trace;
        for &node in &trace.calls.nodes[start..] {
            trace.call[node as usize] = number;
        }
        let ranks = trace.calls.nodes.len() - start;
        let Some(size) = call.kind.size(call.bytes, ranks) else {
            let given = call.bytes;
            return Err(self.wrong(
                self.trace.calls.nodes[start],
                Fault::TooMuch { given, ranks },
            ));
        };
        let end = fits(trace.calls.nodes.len(), "collective nodes")?;
        trace.calls.first.push(end);
        trace.calls.kind.push(call.kind);
        trace.calls.group.push(group);
        trace.calls.size.push(size);
        Ok(())
    }

    /// Finds the receive of each send.
    fn match_messages(&mut self) -> Result<(), TraceError> {
        let sends = self.messages(NodeKind::Send);
        let receives = self.messages(NodeKind::Receive);
        self.trace.partner = vec![NONE; self.trace.len()];
        for at in 0..sends.len().max(receives.len()) {
            match (sends.get(at), receives.get(at)) {
                (Some(send), Some(receive)) if send.way == receive.way => {
                    self.pair(send, receive)?
                }
                (Some(send), Some(receive)) if send.way > receive.way => {
                    return Err(self.unmatched(receive, ["receive", "send"]));
                }
                (Some(send), _) => return Err(self.unmatched(send, ["send", "receive"])),
                (None, Some(receive)) => return Err(self.unmatched(receive, ["receive", "send"])),
                (None, None) => unreachable!("one of them is as long"),
            }
        }
        Ok(())
    }

    /// Sends or receives by who sends, who receives and the tag; those alike as they are issued.
    fn messages(&self, kind: NodeKind) -> Vec<Message> {
        let trace = &self.trace;
        let mut messages = Vec::new();
        for (place, &row) in trace.order.iter().enumerate() {
            let at = row as usize;
            if trace.kind[at] != kind {
                continue;
            }
            let (rank, peer) = (trace.rank_of(row), trace.peer[at]);
            let (src, dst) = match kind {
                NodeKind::Send => (rank, peer),
                _ => (peer, rank),
            };
            messages.push(Message {
                way: (src, dst, trace.tag[at]),
                place,
                row,
            });
        }
        messages.sort_unstable();
        messages
    }

    fn pair(&mut self, send: &Message, receive: &Message) -> Result<(), TraceError> {
        let trace = &mut self.trace;
        let (from, to) = (send.row as usize, receive.row as usize);
        if trace.bytes[from] != trace.bytes[to] {
            let fault = Fault::Sizes {
                sent: trace.bytes[from],
                expected: trace.bytes[to],
                receive: self.describe(receive.row),
            };
            return Err(self.wrong(send.row, fault));
        }
        trace.partner[from] = receive.row;
        trace.partner[to] = send.row;
        Ok(())
    }

    fn unmatched(&self, message: &Message, [what, other]: [&'static str; 2]) -> TraceError {
        let (src, dst, tag) = message.way;
        let fault = Fault::Unmatched {
            what,
            other,
            src,
            dst,
            tag,
        };
        self.wrong(message.row, fault)
    }
}

/// A send or a receive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    /// Who sends, who receives, the tag.
    way: (u32, u32, u64),
    /// Where it is in the order.
    place: usize,
    row: u32,
}

impl Groups {
    /// Groups and their ranks, but for the group of all, in ascending order.
    fn members(&self) -> Vec<(u32, u32)> {
        let of = |group| self.ranks_of(group).iter().map(move |&rank| (group, rank));
        let mut members: Vec<_> = (1..narrow(self.id.len())).flat_map(of).collect();
        members.sort_unstable();
        members
    }
}

fn make_groups(given: &[(u64, Vec<u32>)], ranks: usize) -> Result<Groups, TraceError> {
    let mut groups = Groups {
        id: vec![0],
        first: vec![0, narrow(ranks)],
        ranks: (0..narrow(ranks)).collect(),
    };
    let mut sorted: Vec<_> = given.iter().collect();
    sorted.sort_by_key(|(id, _)| *id);
    for (at, (id, members)) in sorted.iter().enumerate() {
        let is_twice = at > 0 && sorted[at - 1].0 == *id;
        if let Some((why, remedy)) = fault_of(*id, members, ranks, is_twice) {
            let id = *id;
            return Err(TraceError::Group { id, why, remedy });
        }
        if *id == 0 {
            continue;
        }
        groups.id.push(*id);
        groups.ranks.extend_from_slice(members);
        groups
            .first
            .push(fits(groups.ranks.len(), "ranks of groups")?);
    }
    Ok(groups)
}

/// Returns what is wrong with a group.
fn fault_of(id: u64, members: &[u32], ranks: usize, is_twice: bool) -> Option<(String, String)> {
    let both = |why: &str, remedy: &str| Some((why.to_owned(), remedy.to_owned()));
    let last = ranks - 1;
    let mut sorted = members.to_vec();
    sorted.sort_unstable();
    if is_twice {
        return both("is there twice", "give each group once");
    }
    if sorted.is_empty() {
        return both("has no ranks", "give it one or more");
    }
    if let Some(rank) = sorted.iter().find(|&&rank| rank as usize >= ranks) {
        return Some((
            format!("there is no rank {rank}"),
            format!("ranks are 0 to {last}"),
        ));
    }
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return both(&format!("rank {} is there twice", pair[0]), "list it once");
    }
    if id == 0 && sorted.len() < ranks {
        let why = format!("is the group of all ranks, 0 to {last}");
        return both(&why, "give other groups other numbers");
    }
    None
}

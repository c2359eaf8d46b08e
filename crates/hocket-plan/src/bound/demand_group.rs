//! Demands grouped into problems whose worst cut a maximum flow finds.

use std::collections::HashMap;

use super::needs::Needs;
use crate::collective::NpuSet;
use crate::id::NpuId;

/// Along the links, or against them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// Along the links: copies spread.
    Copy,
    /// Against the links: sums gather.
    Sum,
}

/// Bytes at some NPUs that must all get to each of a set of NPUs ([`Way::Copy`]), or sums of what a
/// set of NPUs hold that must get to some NPUs ([`Way::Sum`]): the same with links turned round.
#[derive(Clone, Debug)]
#[doc(alias = "Spread")]
pub struct DemandGroup {
    /// Whether copies spread or sums gather.
    pub way: Way,
    /// The NPUs that each have (or get) some bytes of their own.
    pub ends: Vec<(NpuId, u64)>,
    /// The NPUs that all want (or contribute to) all of it.
    pub targets: Vec<NpuId>,
    /// One-to-one demands of a single NPU, the only one of `targets`: `ends` are the other NPUs and
    /// the bytes that each gets from it ([`Way::Copy`]) or sends to it.
    pub own_bytes_each: bool,
}

pub(super) struct DemandGroups {
    pub list: Vec<DemandGroup>,
    /// Whether they cover all demands, each group's worst cut being the worst for it.
    pub complete: bool,
}

/// Groups are cut off here; custom collectives alone can have so many.
const MAX_GROUPS: usize = 64;

/// Returns the groups of a collective's demands.
pub(super) fn group(needs: &Needs) -> DemandGroups {
    let npus = needs.npus();
    let mut groups: Vec<DemandGroup> = Vec::new();
    let mut index: HashMap<(Way, NpuSet), usize> = HashMap::new();
    let mut complete = needs.all_to_all().is_none();
    let mut add = |way: Way, end: NpuId, bytes: u64, set: &NpuSet| {
        let set = with_end(set, end, npus);
        match index.get(&(way, set.clone())) {
            Some(&at) => groups[at].ends.push((end, bytes)),
            None => {
                index.insert((way, set.clone()), groups.len());
                groups.push(DemandGroup {
                    way,
                    ends: vec![(end, bytes)],
                    targets: set.members(npus).to_vec(),
                    own_bytes_each: false,
                });
            }
        }
    };
    let mut pairs = Vec::new();
    for demand in needs.demands() {
        let holders = demand.holders.members(npus);
        let takers = demand.wanted.members(npus);
        match (holders, takers, demand.reduced) {
            (&[holder], &[taker], _) => pairs.push((holder, taker, demand.bytes)),
            (&[holder], _, false) => add(Way::Copy, holder, demand.bytes, &demand.wanted),
            (_, &[taker], true) => add(Way::Sum, taker, demand.bytes, &demand.holders),
            (_, _, true) => {
                // Everyone's sum to everyone: over every cut it is a broadcast and a reduction.
                complete &= demand.holders == demand.wanted;
                add(Way::Copy, holders[0], demand.bytes, &demand.wanted);
                add(Way::Sum, takers[0], demand.bytes, &demand.holders);
            }
            // A copy with several holders: its cuts are not searched.
            (_, _, false) => complete = false,
        }
    }
    match one_sided(&pairs) {
        Some(spread) => groups.push(spread),
        None => complete &= pairs.is_empty(),
    }
    complete &= groups.len() <= 1 || all_reduce_only(needs);
    groups.truncate(MAX_GROUPS);
    for group in &mut groups {
        group.ends = merged(&group.ends);
    }
    DemandGroups {
        list: groups,
        complete,
    }
}

/// One entry for each NPU, with all of its bytes.
fn merged(ends: &[(NpuId, u64)]) -> Vec<(NpuId, u64)> {
    let mut place: HashMap<NpuId, usize> = HashMap::with_capacity(ends.len());
    let mut merged: Vec<(NpuId, u64)> = Vec::with_capacity(ends.len());
    for &(npu, bytes) in ends {
        let at = *place.entry(npu).or_insert(merged.len());
        match merged.get_mut(at) {
            Some((_, sum)) => *sum = sum.saturating_add(bytes),
            None => merged.push((npu, bytes)),
        }
    }
    merged
}

/// Returns whether the two groups are the two halves of one all-reduce.
fn all_reduce_only(needs: &Needs) -> bool {
    matches!(needs.demands(), [only] if only.reduced)
}

/// Returns a set and one NPU more, in one form for equal sets.
fn with_end(set: &NpuSet, end: NpuId, npus: &[NpuId]) -> NpuSet {
    if set.contains(end) {
        return set.clone();
    }
    let members = set.members(npus);
    if members.len() + 1 == npus.len() {
        return NpuSet::All;
    }
    NpuSet::of(members.iter().copied().chain([end]))
}

/// One-to-one demands as a scatter or a gather, if they have one source or one sink.
fn one_sided(pairs: &[(NpuId, NpuId, u64)]) -> Option<DemandGroup> {
    let &(source, sink, _) = pairs.first()?;
    let (way, end) = if pairs.iter().all(|pair| pair.0 == source) {
        (Way::Copy, source)
    } else if pairs.iter().all(|pair| pair.1 == sink) {
        (Way::Sum, sink)
    } else {
        return None;
    };
    let other = |&(from, to, bytes): &(NpuId, NpuId, u64)| match way {
        Way::Copy => (to, bytes),
        Way::Sum => (from, bytes),
    };
    Some(DemandGroup {
        way,
        ends: pairs.iter().map(other).collect(),
        targets: vec![end],
        own_bytes_each: true,
    })
}

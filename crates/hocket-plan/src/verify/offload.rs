//! Whether the switches at which transfers end can do what the plan asks of them.

use std::collections::{HashMap, HashSet};

use super::structure::{self, Order};
use super::violation::{Code, VerifyReport, Violation};
use crate::id::{ChunkId, DeviceId, TransferId, narrow};
use crate::plan::Plan;
use crate::topology::{Offload, Topology};

/// What came to a switch with one chunk, and left, since it last kept nothing.
#[derive(Default)]
struct Visit {
    from: Vec<u32>,
    to: Vec<u32>,
}

/// The sets of devices with which a switch exchanges chunks: its trees.
type Trees = HashMap<u32, HashSet<Box<[u32]>>>;

/// Reports each chunk at a switch that sums, multicasts or does both where the switch cannot, and switches with
/// more trees than they have room for.
///
/// The accesses of a place are ordered where they conflict, or the replay refuses the plan. So every order that
/// the waits allow has the same visits.
///
/// # Complexity
/// O(chunks of the transfers that end or start at switches).
pub(super) fn check(plan: &Plan, topology: &Topology, order: &Order, report: &mut VerifyReport) {
    let npus = narrow(topology.npu_count());
    let mut visits: HashMap<(u32, u32), Visit> = HashMap::new();
    let mut trees = Trees::new();
    for position in 0..plan.len() {
        let i = order.at(position) as usize;
        let (src, dst) = (plan.src()[i], plan.dst()[i]);
        let transfer = TransferId(narrow(i));
        let chunks = plan.chunk()[i]..plan.chunk()[i] + plan.chunk_count()[i];
        if src >= npus {
            for chunk in chunks.clone() {
                let visit = visits.entry((src, chunk)).or_default();
                visit.to.push(dst);
                judge(topology, src, chunk, visit, transfer, report);
            }
        }
        if dst >= npus {
            for chunk in chunks {
                let visit = visits.entry((dst, chunk)).or_default();
                if !visit.to.is_empty() {
                    note(&mut trees, dst, visit);
                    *visit = Visit::default();
                }
                visit.from.push(src);
                judge(topology, dst, chunk, visit, transfer, report);
            }
        }
        if report.is_full() {
            return;
        }
    }
    #[expect(
        clippy::iter_over_hash_type,
        reason = "sets of trees are counted, in any order"
    )]
    for ((switch, _), visit) in &visits {
        note(&mut trees, *switch, visit);
    }
    count(topology, trees, report);
}

/// Reports the first transfer at which a visit asks for more than the switch can.
fn judge(
    topology: &Topology,
    switch: u32,
    chunk: u32,
    visit: &Visit,
    transfer: TransferId,
    report: &mut VerifyReport,
) {
    let Some(offload) = topology.offload(DeviceId(switch)) else {
        return;
    };
    let (came, left) = (visit.from.len(), visit.to.len());
    let Some(does) = beyond(offload, came, left) else {
        return;
    };
    // Those before it asked for as much already.
    let is_first = beyond(
        offload,
        came - usize::from(left == 0),
        left.saturating_sub(1),
    );
    if is_first.is_some() {
        return;
    }
    report.add(|| {
        let name = structure::end_name(topology, switch);
        let can: Vec<&str> = offload.operations().collect();
        Violation {
            code: Code::SwitchCannot,
            transfer: Some(transfer),
            chunk: Some(ChunkId(chunk)),
            npu: None,
            detail: format!("{name} cannot {does}; it can {}", can.join(", ")),
        }
    });
}

/// Returns what a switch does that it cannot, where one chunk comes from so many and leaves to so many.
fn beyond(offload: &Offload, came: usize, left: usize) -> Option<&'static str> {
    let (sums, spreads) = (came > 1, left > 1);
    if sums && spreads {
        (!offload.all_reduces).then_some("multicast its own sum (all-reduce)")
    } else if sums {
        (!offload.sums && !offload.all_reduces).then_some("sum")
    } else if spreads {
        (!offload.multicasts && !offload.all_reduces).then_some("multicast")
    } else {
        None
    }
}

fn note(trees: &mut Trees, switch: u32, visit: &Visit) {
    let mut around: Vec<u32> = visit.from.iter().chain(&visit.to).copied().collect();
    around.sort_unstable();
    around.dedup();
    trees.entry(switch).or_default().insert(around.into());
}

fn count(topology: &Topology, trees: Trees, report: &mut VerifyReport) {
    let mut trees: Vec<(u32, usize)> = trees.iter().map(|(&at, sets)| (at, sets.len())).collect();
    trees.sort_unstable();
    for (switch, count) in trees {
        let most = topology.offload(DeviceId(switch)).and_then(|it| it.trees);
        if let Some(most) = most.filter(|&most| count > most as usize) {
            report.add(|| Violation {
                code: Code::SwitchCannot,
                transfer: None,
                chunk: None,
                npu: None,
                detail: format!(
                    "{} is in {count} trees, sets of devices with which it exchanges one chunk; it has room \
                     for {most}",
                    structure::end_name(topology, switch)
                ),
            });
        }
    }
}

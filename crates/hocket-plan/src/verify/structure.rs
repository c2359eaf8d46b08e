//! What can be checked without replaying: names, paths, bytes, cycles of waits.

use super::violation::{Code, VerifyReport, Violation};
use crate::graph::Counts;
use crate::id::{ChunkId, DeviceId, LinkId, NpuId, TransferId, narrow};
use crate::plan::{Op, Plan, Wait, WaitGraph, WaitOn};
use crate::topology::Topology;

/// Checks that every transfer names things that exist and that explicit paths lead where they must.
pub(super) fn check_transfers(plan: &Plan, topology: &Topology, report: &mut VerifyReport) {
    let links = topology.links().len();
    if let Some(stray) = plan
        .paths()
        .items()
        .iter()
        .find(|link| link.index() >= links)
    {
        // A path that no transfer takes is followed by the simulator's preparations all the same.
        return report.add(|| Violation {
            code: Code::BrokenPath,
            transfer: None,
            chunk: None,
            npu: None,
            detail: format!("a path takes link {stray}; the topology has links 0..{links}"),
        });
    }
    let npus = narrow(topology.npu_count());
    let can_end = |device: u32| device < npus || topology.can_end(DeviceId(device));
    let chunks = plan.chunks().len() as u64;
    for i in 0..plan.len() {
        let (src, dst) = (plan.src()[i], plan.dst()[i]);
        let (chunk, count) = (plan.chunk()[i], plan.chunk_count()[i]);
        let fine = can_end(src)
            && can_end(dst)
            && src != dst
            && count > 0
            && u64::from(chunk) + u64::from(count) <= chunks;
        if !fine {
            describe_bad_transfer(plan, topology, TransferId(narrow(i)), report);
        } else if plan.path()[i] != Plan::DEFAULT_ROUTE {
            let path = plan.paths().get(plan.path()[i] as usize);
            if let Err(detail) = check_path(topology, path, DeviceId(src), DeviceId(dst)) {
                report.add(|| Violation {
                    code: Code::BrokenPath,
                    transfer: Some(TransferId(narrow(i))),
                    chunk: Some(ChunkId(chunk)),
                    npu: Some(NpuId(src)),
                    detail,
                });
            }
        }
    }
}

fn describe_bad_transfer(
    plan: &Plan,
    topology: &Topology,
    transfer: TransferId,
    report: &mut VerifyReport,
) {
    let (npus, chunks) = (topology.npu_count(), plan.chunks().len() as u64);
    let i = transfer.index();
    let (src, dst) = (plan.src()[i], plan.dst()[i]);
    let (chunk, count) = (plan.chunk()[i], plan.chunk_count()[i]);
    let mut ends = [src, dst].into_iter();
    let stray = ends.find(|&end| !topology.can_end(DeviceId(end)));
    let (code, detail) = if let Some(end) = stray {
        match topology.devices().get(end as usize) {
            Some(switch) => (
                Code::SwitchCannot,
                format!(
                    "switch {} only forwards, so that no transfer ends or starts there; let transfers \
                     pass it, or say in the topology what it can do (offload)",
                    switch.name
                ),
            ),
            None => (
                Code::UnknownNpu,
                format!("NPU {end} does not exist; NPUs are 0 to {}", npus - 1),
            ),
        }
    } else if src == dst {
        let name = end_name(topology, src);
        (Code::SelfTransfer, format!("{name} sends to itself"))
    } else {
        let end = u64::from(chunk) + u64::from(count);
        (
            Code::UnknownChunk,
            format!("carries chunks {chunk}..{end}; the plan has chunks 0..{chunks}"),
        )
    };
    report.add(|| Violation {
        code,
        transfer: Some(transfer),
        chunk: Some(ChunkId(chunk)),
        npu: Some(NpuId(src)),
        detail,
    });
}

/// Returns what messages call an end of a transfer, as `NPU 3` or `switch nvs0`.
pub(super) fn end_name(topology: &Topology, device: u32) -> String {
    match topology.is_npu(DeviceId(device)) {
        true => format!("NPU {device}"),
        false => format!("switch {}", topology.device(DeviceId(device)).name),
    }
}

fn check_path(
    topology: &Topology,
    path: &[LinkId],
    src: DeviceId,
    dst: DeviceId,
) -> Result<(), String> {
    let name = |device: DeviceId| &topology.device(device).name;
    let mut at = src;
    for (hop, &id) in path.iter().enumerate() {
        let link = topology.link(id);
        if link.src != at {
            let (at, start) = (name(at), name(link.src));
            return Err(format!(
                "hop {hop} starts at {start}, but the chunk is at {at}"
            ));
        }
        if path[..hop]
            .iter()
            .any(|&earlier| topology.link(earlier).src == link.dst)
        {
            return Err(format!("hop {hop} comes back to {}", name(link.dst)));
        }
        at = link.dst;
    }
    if at != dst {
        return Err(format!(
            "the path ends at {}, not at {}",
            name(at),
            name(dst)
        ));
    }
    Ok(())
}

/// Checks that the chunks of each demand add up to its bytes.
pub(super) fn check_bytes(plan: &Plan, report: &mut VerifyReport) {
    let demands = plan.collective().demands();
    let mut sums = vec![0u64; demands.len()];
    for (chunk, &demand) in plan.chunks().demand().iter().enumerate() {
        match sums.get_mut(demand as usize) {
            Some(sum) => *sum += plan.chunks().bytes_of(narrow(chunk), 1),
            None => report.add(|| Violation {
                code: Code::BytesLost,
                transfer: None,
                chunk: Some(ChunkId(narrow(chunk))),
                npu: None,
                detail: format!("belongs to block {demand} of {}", demands.len()),
            }),
        }
    }
    for (index, (demand, &sum)) in demands.iter().zip(&sums).enumerate() {
        if demand.bytes != sum {
            report.add(|| Violation {
                code: Code::BytesLost,
                transfer: None,
                chunk: None,
                npu: None,
                detail: format!(
                    "block {index} has {} B, its chunks have {sum} B",
                    demand.bytes
                ),
            });
        }
    }
}

/// An order of the transfers in which each comes after all that it waits for.
pub(super) enum Order {
    /// The plan's own order.
    Plan,
    /// Another: transfers by position.
    Other(Vec<u32>),
}

impl Order {
    /// Returns the transfer at a position.
    pub(super) fn at(&self, position: usize) -> u32 {
        match self {
            Order::Plan => narrow(position),
            Order::Other(order) => order[position],
        }
    }

    /// Returns the position of each transfer; `None` where that is its number.
    pub(super) fn positions(&self) -> Option<Vec<u32>> {
        let Order::Other(order) = self else {
            return None;
        };
        let mut positions = vec![0; order.len()];
        for (position, &transfer) in order.iter().enumerate() {
            positions[transfer as usize] = narrow(position);
        }
        Some(positions)
    }
}

/// Finds an order, or reports a cycle of waits.
///
/// # Complexity
/// O(transfers + group members).
pub(super) fn wait_order(plan: &Plan, report: &mut VerifyReport) -> Option<Order> {
    let latest = latest_member(plan);
    let backward = |(i, &bits): (usize, &u32)| match Wait::from_bits(bits).target() {
        WaitOn::Nothing => true,
        WaitOn::Transfer(id) => id.index() < i,
        WaitOn::Group(group) => latest[group as usize].is_none_or(|last| (last as usize) < i),
    };
    if plan.wait().iter().enumerate().all(backward) {
        return Some(Order::Plan);
    }
    let waits = WaitGraph::new(plan);
    let order = waits.sorted(plan);
    if order.len() == plan.len() {
        return Some(Order::Other(order));
    }
    report.add(|| {
        let mut sorted = vec![false; plan.len()];
        order.iter().for_each(|&transfer| sorted[transfer as usize] = true);
        let stuck: Vec<usize> = (0..plan.len()).filter(|&i| !sorted[i]).take(8).collect();
        let first = TransferId(narrow(stuck[0]));
        Violation {
            code: Code::WaitCycle,
            transfer: Some(first),
            chunk: Some(ChunkId(plan.chunk()[first.index()])),
            npu: Some(NpuId(plan.src()[first.index()])),
            detail: format!(
                "{} transfers can never start, because a cycle of waits holds them; among them {stuck:?}",
                plan.len() - order.len()
            ),
        }
    });
    None
}

/// For each group, the last transfer among its members, nested ones included.
fn latest_member(plan: &Plan) -> Vec<Option<u32>> {
    let mut latest: Vec<Option<u32>> = Vec::with_capacity(plan.groups().len());
    for members in plan.groups().iter() {
        let last = members
            .iter()
            .filter_map(|&bits| match Wait::from_bits(bits).target() {
                WaitOn::Nothing => None,
                WaitOn::Transfer(id) => Some(id.0),
                WaitOn::Group(group) => latest[group as usize],
            })
            .max();
        latest.push(last);
    }
    latest
}

/// Splits the chunks into components: runs of chunks such that every transfer carries chunks of one
/// component only. Gives the first chunk of each, and the count of chunks at the end.
///
/// # Complexity
/// O(transfers + chunks).
pub(super) fn components(plan: &Plan) -> Vec<u32> {
    let chunks = plan.chunks().len();
    // joined[k]: transfers that carry both chunk k and chunk k + 1, as a difference array.
    let mut joined = vec![0i64; chunks + 1];
    for (&chunk, &count) in plan.chunk().iter().zip(plan.chunk_count()) {
        joined[chunk as usize] += 1;
        joined[(chunk + count - 1) as usize] -= 1;
    }
    let mut starts = vec![0];
    let mut open = 0;
    for (k, change) in joined[..chunks].iter().enumerate() {
        open += change;
        if open == 0 {
            starts.push(narrow(k) + 1);
        }
    }
    starts
}

/// One transfer as the replay reads it.
#[derive(Clone, Copy, Default)]
pub(super) struct Record {
    pub(super) chunk: u32,
    pub(super) count: u32,
    pub(super) src: u32,
    pub(super) dst: u32,
    pub(super) wait: u32,
    /// Transfer, with the high bit set for a reduction.
    id: u32,
}

impl Record {
    /// Returns a copy that waits for nothing.
    #[cfg(test)]
    pub(super) fn of(chunk: u32, count: u32, (src, dst): (u32, u32)) -> Self {
        Self {
            chunk,
            count,
            src,
            dst,
            wait: Wait::NOTHING.to_bits(),
            id: 0,
        }
    }

    pub(super) fn transfer(&self) -> TransferId {
        TransferId(self.id & !(1 << 31))
    }

    pub(super) fn reduces(&self) -> bool {
        self.id >> 31 == 1
    }
}

/// Returns the transfers of each component, in wait order: records and where each component's start.
///
/// A counting sort; the replay then touches one small set of states at a time.
pub(super) fn records(plan: &Plan, starts: &[u32], order: &Order) -> (Vec<Record>, Vec<u32>) {
    let components = starts.len() - 1;
    let mut component = vec![0u32; plan.chunks().len()];
    for (c, range) in starts.windows(2).enumerate() {
        component[range[0] as usize..range[1] as usize].fill(narrow(c));
    }
    let mut counts = Counts::new(components);
    for &chunk in plan.chunk() {
        counts.add(component[chunk as usize] as usize);
    }
    let mut slots = counts.into_slots();
    let mut records = vec![Record::default(); plan.len()];
    let mut place = |i: usize| {
        let slot = slots.take(component[plan.chunk()[i] as usize] as usize);
        records[slot] = Record {
            chunk: plan.chunk()[i],
            count: plan.chunk_count()[i],
            src: plan.src()[i],
            dst: plan.dst()[i],
            wait: plan.wait()[i],
            id: narrow(i) | u32::from(plan.op()[i] == Op::Reduce as u8) << 31,
        };
    };
    match order {
        Order::Plan => (0..plan.len()).for_each(&mut place),
        Order::Other(order) => order.iter().for_each(|&i| place(i as usize)),
    }
    (records, slots.into_offsets())
}

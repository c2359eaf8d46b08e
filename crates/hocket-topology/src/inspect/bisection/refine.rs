//! Better halves by exchanging devices between them.

use std::collections::BinaryHeap;

use super::super::super::Topology;
use crate::id::DeviceId;

/// Passes over all devices.
const PASSES: usize = 8;
/// Links above which a split is left as it is.
const LARGEST: usize = 4_000_000;

/// Returns a split of the NPUs with no more bandwidth between the halves, counted both ways together.
///
/// Switches move freely between the sides; NPUs move in turn from the one side and the other.
///
/// # Source
/// Fiduccia, Mattheyses: A linear-time heuristic for improving network partitions, DAC 1982 (moves
/// with a heap of gains for its buckets).
pub(super) fn refined(topology: &Topology, split: &[bool]) -> Vec<bool> {
    if topology.links().len() > LARGEST {
        return split.to_vec();
    }
    let mut side = split.to_vec();
    side.resize(topology.device_count(), false);
    place_switches(topology, &mut side);
    for _ in 0..PASSES {
        if !pass(topology, &mut side) {
            break;
        }
    }
    side.truncate(split.len());
    side
}

/// Puts each switch where most of its bandwidth goes, lowest first.
fn place_switches(topology: &Topology, side: &mut [bool]) {
    for device in topology.npu_count()..topology.device_count() {
        if gain(topology, side, device) > 0 {
            side[device] = !side[device];
        }
    }
}

/// By how much the bandwidth between the sides falls if a device changes sides.
fn gain(topology: &Topology, side: &[bool], device: usize) -> i128 {
    let id = DeviceId::from(device);
    let links = topology.out_links(id).iter().chain(topology.in_links(id));
    let signed = links.map(|&link| {
        let link = topology.link(link);
        let other = if link.src == id { link.dst } else { link.src };
        let bandwidth = i128::from(link.bandwidth.bytes_per_second());
        if side[other.index()] == side[device] {
            -bandwidth
        } else {
            bandwidth
        }
    });
    signed.sum()
}

/// Moves each device once, best gain first, and keeps the best balanced prefix; whether it helped.
fn pass(topology: &Topology, side: &mut [bool]) -> bool {
    let count = topology.device_count();
    let mut gains: Vec<i128> = (0..count)
        .map(|device| gain(topology, side, device))
        .collect();
    let mut heaps = [BinaryHeap::new(), BinaryHeap::new(), BinaryHeap::new()];
    let heap_of = |device: usize, side: bool| match topology.is_npu(DeviceId::from(device)) {
        true => usize::from(side),
        false => 2,
    };
    for device in 0..count {
        heaps[heap_of(device, side[device])].push((gains[device], std::cmp::Reverse(device)));
    }
    let mut moved = vec![false; count];
    let mut moves: Vec<usize> = Vec::new();
    let (mut total, mut best, mut kept) = (0i128, 0i128, 0);
    let mut turn = 1;
    loop {
        // A switch that gains goes first; else an NPU of the side whose turn it is.
        let free = pop(&mut heaps[2], &gains, &moved, 1);
        let Some(device) = free.or_else(|| {
            let npu = pop(&mut heaps[turn], &gains, &moved, i128::MIN);
            turn = 1 - turn;
            npu
        }) else {
            break;
        };
        total += gains[device];
        moved[device] = true;
        side[device] = !side[device];
        moves.push(device);
        let id = DeviceId::from(device);
        for &link in topology.out_links(id).iter().chain(topology.in_links(id)) {
            let link = topology.link(link);
            let other = if link.src == id { link.dst } else { link.src }.index();
            if !moved[other] {
                let change = 2 * i128::from(link.bandwidth.bytes_per_second());
                gains[other] += if side[other] == side[device] {
                    -change
                } else {
                    change
                };
                let entry = (gains[other], std::cmp::Reverse(other));
                heaps[heap_of(other, side[other])].push(entry);
            }
        }
        // Turn 1 is next only when as many NPUs have moved each way.
        if turn == 1 && total > best {
            (best, kept) = (total, moves.len());
        }
    }
    moves[kept..]
        .iter()
        .for_each(|&device| side[device] = !side[device]);
    best > 0
}

/// Returns the unmoved device of the best gain, if that is at least `least`; drops outdated entries.
fn pop(
    heap: &mut BinaryHeap<(i128, std::cmp::Reverse<usize>)>,
    gains: &[i128],
    moved: &[bool],
    least: i128,
) -> Option<usize> {
    while let Some(&(gain, std::cmp::Reverse(device))) = heap.peek() {
        if moved[device] || gains[device] != gain {
            heap.pop();
        } else if gain < least {
            return None;
        } else {
            heap.pop();
            return Some(device);
        }
    }
    None
}

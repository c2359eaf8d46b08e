//! Partitions: what must pass between many parts of the network, all together.

use std::collections::BTreeMap;

use super::coarsen::{coarsened, with_switches};
use super::fill::{Pipe, capacity, fill};
use super::maxflow::{fits, flow_network};
use super::network::ArcNetwork;
use super::witness::saturating_bandwidth;
use super::{Candidate, Problem, WORK_BETWEEN_REPORTS, Witness};
use crate::graph::{FlowNetwork, Lists, UNLIMITED};
use crate::id::narrow;
use crate::progress::{Interrupted, Paced, Progress};

/// The best partition, and whether it is the best there is.
#[derive(Default)]
pub(super) struct Partitions {
    pub best: Candidate,
    pub exact: bool,
}

/// Disjoint sets of NPUs, with switches, that each have a participant.
pub type Parts = Vec<Vec<u32>>;

/// Returns the best bound from splitting the NPUs into k parts that each have a participant.
///
/// Take one element of an all-reduce and the messages that carry anything of it from an NPU of one
/// part to one of another, in the order in which they end. Call a part complete once its NPUs
/// together have heard of every part's contribution. Up to the moment when the first part is
/// complete, its k - 1 fellows must have been connected to it: at least k - 1 messages. One message
/// completes one part, so each of the k - 1 others needs one more. Every message enters a part over
/// a link into it and leaves one over a link out of it; switches neither copy nor sum, but for those below. So
///
/// ```text
/// t >= 2 (k - 1) S / sum of bandwidth into the parts, and the same with bandwidth out of them.
/// ```
///
/// The messages of several groups share the bandwidth, so their bytes add up: a group counts the k parts in which it has
/// an NPU. What some NPUs want and one holds, or some hold and one wants, takes k - 1 messages.
///
/// Single NPUs as parts give 2 (n - 1) / n x S / B for NPUs with links of B in all. A copy from one to all, or a
/// sum of all at one, needs k - 1 messages per element in the same way. For those the partition says more than
/// its cuts only where bandwidth in and out differ. An NPU that takes no part may help, so it is a part of its
/// own that is not counted in k, or belongs to another; and so may a switch that sums or multicasts. Any other
/// switch may be in several parts: its links are then counted several times.
///
/// Such a switch whose neighbours are n NPUs carries less than its links. What is written there until it sends is one
/// sum of what p NPUs sent, and goes to q NPUs. Let r be one of the q, and one of the p too if an NPU is in both. The same
/// is done without the switch: each other of the p sends to r, and r to the others of the q. These are p + q - 2 messages where
/// p and q have an NPU in common, so that p + q <= 2 n, and p + q - 1 otherwise, where p + q <= n: never more than
/// 1 - 1 / n of the p + q that the links of the switch carry. Of what the network without switches needs, 2 (k - 1)
/// messages, the switch does not more than this part of the bandwidth into it and out of it.
///
/// # Complexity
/// Up to `exact_partition_limit` participants the best partition is found, see [`strongest`]; beyond,
/// the parts are single NPUs, what stays connected without the slower links, and the blocks of products.
///
/// # Source
/// The 2n - 2 messages of one-way gossip: Harary, Schwenk, The communication problem on graphs and
/// digraphs, 1974. That partitions are tight for tree packing in undirected graphs: Tutte, On the
/// problem of decomposing a graph into n connected factors; Nash-Williams, Edge-disjoint spanning
/// trees of finite graphs, both 1961.
pub(super) fn bounds(
    problem: &Problem,
    progress: &mut dyn Progress,
) -> Result<Partitions, Interrupted> {
    let mut found = Partitions {
        exact: true,
        ..Partitions::default()
    };
    let passing = passing(problem);
    let balanced = problem.network.is_balanced();
    let sums_and_copies = passing.iter().any(|pass| pass.sums_and_copies);
    // One group's partitions of a balanced network are then no better than the cuts around their parts.
    if passing.is_empty() || (balanced && passing.len() == 1 && !sums_and_copies) {
        return Ok(found);
    }
    let mut watch = Paced::new(progress, "bound: partitions", WORK_BETWEEN_REPORTS);
    let unit = problem.network.unit();
    let npus = problem.needs.npus();
    let is_small = npus.len() <= problem.options.exact_partition_limit;
    let is_alone = passing.len() == 1 && passing[0].ends.len() == npus.len();
    let stations = problem.network.stations().count();
    for leaving in [false, true] {
        if leaving && balanced {
            continue;
        }
        let network = if leaving {
            &problem.reversed
        } else {
            &problem.network
        };
        let mut offer = |parts: &Parts| offer(problem, parts, &passing, leaving, &mut found.best);
        let single: Parts = npus.iter().map(|npu| vec![npu.0]).collect();
        offer(&single);
        let strongest = if is_small && is_alone {
            strongest(network, single, unit, &mut watch)?
        } else {
            None
        };
        match strongest {
            Some(parts) => offer(&parts),
            None => {
                found.exact = false;
                for parts in without_slow_links(problem).iter().chain(&blocks(problem)) {
                    offer(parts);
                }
            }
        }
        if stations <= MOST_COARSENED
            && (!is_alone || npus.len() < stations)
            && let Some(parts) = coarsened(network, &passing, &mut watch)?
        {
            offer(&parts);
        }
    }
    // Where others may help, the best partition is found as if they were switches.
    found.exact &= npus.len() == stations;
    Ok(found)
}

/// Places that sum or copy, up to which partitions of several groups are searched by joining parts.
const MOST_COARSENED: usize = 160;

/// Shapes of blocks up to which all are looked at.
const MOST_BLOCKS: usize = 256;

/// Returns the NPUs of a product in blocks of each shape whose sizes divide those of the dimensions, with the switches
/// that join them: slabs, rows and planes among them.
fn blocks(problem: &Problem) -> Vec<Parts> {
    let sizes: Vec<u32> = problem.dimensions.iter().map(|it| it.size).collect();
    let npus = problem.network.npus().count();
    let all = sizes.iter().map(|&size| size as usize).product::<usize>();
    if sizes.is_empty() || all != npus {
        return Vec::new();
    }
    let mut shapes: Vec<Vec<u32>> = vec![Vec::new()];
    for &size in &sizes {
        let widths: Vec<u32> = (1..=size).filter(|width| size % width == 0).collect();
        let longer = |shape: &Vec<u32>| {
            let longer = widths.iter().map(|&width| [&shape[..], &[width]].concat());
            longer.collect::<Vec<_>>()
        };
        shapes = shapes.iter().flat_map(longer).take(MOST_BLOCKS).collect();
    }
    let cut = |shape: Vec<u32>| {
        let block = |npu: u32| {
            let (mut rest, mut block) = (npu, 0);
            let mut stride = 1;
            for (size, width) in sizes.iter().zip(&shape) {
                block += rest % size / width * stride;
                stride *= size / width;
                rest /= size;
            }
            block
        };
        let placed = (0..narrow(npus)).map(|npu| (block(npu) as usize, npu));
        let blocks = sizes.iter().zip(&shape).map(|(size, width)| size / width);
        let parts = Lists::grouped(blocks.product::<u32>() as usize, placed);
        let parts: Parts = parts.iter().map(<[u32]>::to_vec).collect();
        with_switches(&problem.network, &parts)
    };
    shapes.into_iter().map(cut).collect()
}

/// Bytes that some NPUs hold or want, so that parts of the network with k of these NPUs in them must pass on `bytes`
/// for each of them but one.
pub(super) struct Passing {
    pub ends: Vec<u32>,
    pub bytes: u128,
    /// Whether every byte is summed and copied.
    sums_and_copies: bool,
}

/// Returns what parts must pass on, by the NPUs that hold or want it.
fn passing(problem: &Problem) -> Vec<Passing> {
    let npus = problem.needs.npus();
    let mut found: BTreeMap<(Vec<u32>, bool), u128> = BTreeMap::new();
    for demand in problem.needs.demands() {
        let [holders, wanted] = [&demand.holders, &demand.wanted].map(|set| set.members(npus));
        let is_copied_from_many = holders.len() > 1 && !demand.reduced;
        let times = match (holders, wanted) {
            _ if is_copied_from_many => continue,
            // Cuts and traffic say as much.
            ([_], [_]) if npus.len() > 2 || holders == wanted => continue,
            ([_], _) | (_, [_]) => 1,
            _ if holders == wanted => 2,
            _ => continue,
        };
        let mut ends: Vec<u32> = holders.iter().chain(wanted).map(|npu| npu.0).collect();
        ends.sort_unstable();
        ends.dedup();
        *found.entry((ends, times == 2)).or_default() += times * u128::from(demand.bytes);
    }
    let found = found.into_iter();
    let found = found.map(|((ends, sums_and_copies), bytes)| Passing {
        ends,
        bytes,
        sums_and_copies,
    });
    found.collect()
}

/// Returns the bytes that parts must pass on, all together.
pub(super) fn bytes_between(nodes: usize, passing: &[Passing], parts: &Parts) -> u128 {
    let mut place = vec![u32::MAX; nodes];
    for (number, part) in (0..).zip(parts) {
        for &node in part {
            place[node as usize] = number;
        }
    }
    let mut last = vec![usize::MAX; parts.len()];
    let mut bytes: u128 = 0;
    for (number, pass) in passing.iter().enumerate() {
        let mut met: u128 = 0;
        for &end in &pass.ends {
            if let Some(last) = last.get_mut(place[end as usize] as usize)
                && std::mem::replace(last, number) != number
            {
                met += 1;
            }
        }
        bytes = bytes.saturating_add(pass.bytes.saturating_mul(met.saturating_sub(1)));
    }
    bytes
}

/// Offers the bound of a partition, counting NPUs that help and latencies.
fn offer(
    problem: &Problem,
    parts: &Parts,
    passing: &[Passing],
    leaving: bool,
    best: &mut Candidate,
) {
    let network = if leaving {
        &problem.reversed
    } else {
        &problem.network
    };
    let mut taken: Vec<bool> = vec![false; network.node_count()];
    let mut cells: Parts = Vec::with_capacity(parts.len());
    for part in parts {
        let mut cell = part.clone();
        cell.retain(|&node| {
            !network.is_station(node) || !std::mem::replace(&mut taken[node as usize], true)
        });
        cells.push(cell);
    }
    let helpers = network.stations().filter(|&node| !taken[node as usize]);
    cells.extend(helpers.map(|node| vec![node]));
    let bytes = bytes_between(network.node_count(), passing, &cells);
    let around = around_alone(network, &cells);
    let mut pipes: Vec<Pipe> = Vec::new();
    for_each_entry(network, &cells, |arc| {
        let its = &network.arcs()[arc];
        let whole = u128::from(its.capacity);
        let of_switch = [its.src, its.dst].map(|node| around[node as usize]);
        let capacity = match of_switch.into_iter().max() {
            Some(npus) if npus > 0 => whole - whole / npus,
            _ => whole,
        };
        // A switch beside one NPU is of no use.
        if capacity > 0 {
            let delay = problem.delay[arc];
            pipes.push(Pipe { delay, capacity });
        }
    });
    let time = fill(&mut pipes, bytes, problem.needs.parts());
    best.offer(time, || Witness::Partition {
        parts: parts
            .iter()
            .map(|part| {
                let mut devices: Vec<_> = part
                    .iter()
                    .map(|&node| network.device_of(node as usize))
                    .collect();
                devices.sort_unstable();
                devices.dedup();
                devices
            })
            .collect(),
        leaving,
        bytes,
        bandwidth: saturating_bandwidth(capacity(&pipes)),
    });
}

/// For each switch that is a cell of its own beside NPUs that are cells of their own, how many neighbours it has; 0 of
/// other nodes.
fn around_alone(network: &ArcNetwork, cells: &Parts) -> Vec<u128> {
    let nodes = network.node_count();
    let mut is_alone = vec![false; nodes];
    for cell in cells.iter().filter(|cell| cell.len() == 1) {
        is_alone[cell[0] as usize] = true;
    }
    let mut near: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    for arc in network.arcs() {
        near[arc.src as usize].push(arc.dst);
        near[arc.dst as usize].push(arc.src);
    }
    let is_npu = |node: u32| network.is_npu(node);
    let mut around = vec![0; nodes];
    for node in (0..narrow(nodes)).filter(|&node| network.is_station(node) && !is_npu(node)) {
        let near = &mut near[node as usize];
        near.sort_unstable();
        near.dedup();
        let alone = |&node: &u32| is_alone[node as usize];
        if alone(&node) && near.iter().all(|near| alone(near) && is_npu(*near)) {
            around[node as usize] = near.len() as u128;
        }
    }
    around
}

/// Visits the arcs that enter each set, set by set.
pub(super) fn for_each_entry(network: &ArcNetwork, sets: &Parts, mut visit: impl FnMut(usize)) {
    let mut set_of = vec![usize::MAX; network.node_count()];
    for (i, set) in sets.iter().enumerate() {
        for &node in set {
            set_of[node as usize] = i;
        }
        for &node in set {
            for &arc in network.arcs_in(node) {
                if set_of[network.arcs()[arc as usize].src as usize] != i {
                    visit(arc as usize);
                }
            }
        }
    }
}

/// Returns the partition with the greatest (k - 1) / bandwidth into its parts; `None` where the numbers are too large
/// to be exact. NPUs that are in no part of `start` are treated as switches.
///
/// Newton's method on t: with f(A) = t x bandwidth into A - 1, the least of the sum of f over the
/// parts, plus 1, is 0 at the right t, and below it where some partition is better; that one gives
/// the next t. Since f is submodular on sets that meet, the least sum is that of the vector y that
/// the greedy algorithm makes: y_v = min of f(A) - y(A without v) over sets A of v, NPUs already
/// done and any switches. Each is one minimum cut; the sets that attain it, united where they meet,
/// are the partition.
///
/// # Source
/// Cunningham, Optimal attack and reinforcement of a network, 1985; Barahona, Separating from the
/// dominant of the spanning tree polytope, 1992. Newton's method: Dinkelbach, 1967.
pub fn strongest(
    network: &ArcNetwork,
    start: Parts,
    unit: u64,
    watch: &mut Paced,
) -> Result<Option<Parts>, Interrupted> {
    let npus: Vec<u32> = start.iter().map(|part| part[0]).collect();
    let n = npus.len() as u128;
    if !fits(network, unit, n * n * n) {
        return Ok(None);
    }
    let turned = network.reversed();
    let arcs = network.arcs().len() as u64;
    let order = near_first(network, &npus);
    let mut best = start;
    loop {
        let links = best.len() as i128 - 1;
        let mut bandwidth: i128 = 0;
        for_each_entry(network, &best, |arc| {
            bandwidth += i128::from(network.arcs()[arc].capacity / unit);
        });
        let flows = flow_network(&turned, unit, links.unsigned_abs());
        let (least, parts) = least_partition(flows, &order, bandwidth, arcs, watch)?;
        if least + bandwidth >= 0 || parts.len() < 2 {
            return Ok(Some(best));
        }
        best = parts;
    }
}

/// Returns the least sum of f over the parts of a partition, times `bandwidth`, and that partition. The network has so
/// many `arcs`.
fn least_partition(
    mut flows: FlowNetwork,
    order: &[u32],
    bandwidth: i128,
    arcs: u64,
    watch: &mut Paced,
) -> Result<(i128, Parts), Interrupted> {
    let nodes = flows.node_count();
    let mut is_npu = vec![false; nodes];
    for &npu in order {
        flows.set_drain(npu, UNLIMITED);
        is_npu[npu as usize] = true;
    }
    let mut positive: Vec<(u32, i128)> = Vec::new();
    let mut least = 0;
    let mut parts: Parts = Vec::new();
    for (&npu, done) in order.iter().zip(0..) {
        watch.count(arcs, done, order.len() as u64)?;
        flows.set_drain(npu, 0);
        let mut supplies = positive.clone();
        supplies.push((npu, UNLIMITED));
        let flow = flows.flow(&supplies, UNLIMITED);
        let y = flow - bandwidth - positive.iter().map(|&(_, y)| y).sum::<i128>();
        least += y;
        if y > 0 {
            positive.push((npu, y));
        } else {
            flows.set_drain(npu, -y);
        }
        unite(&mut parts, flows.near_nodes(), &is_npu);
    }
    Ok((least, parts))
}

/// Adds a set to disjoint ones (as far as NPUs go), uniting it with those it meets.
fn unite(parts: &mut Parts, set: &[u32], is_npu: &[bool]) {
    let mut member = vec![false; is_npu.len()];
    for &node in set {
        member[node as usize] = is_npu[node as usize];
    }
    let mut united = set.to_vec();
    parts.retain(|part| {
        let meets = part.iter().any(|&node| member[node as usize]);
        if meets {
            united.extend_from_slice(part);
        }
        !meets
    });
    united.sort_unstable();
    united.dedup();
    parts.push(united);
}

/// Returns the NPUs given, breadth-first from the first, those out of reach last.
fn near_first(network: &ArcNetwork, npus: &[u32]) -> Vec<u32> {
    let mut left = vec![false; network.node_count()];
    for &npu in npus {
        left[npu as usize] = true;
    }
    let mut order = network.breadth_first(npus[0]);
    order.extend_from_slice(npus);
    order.retain(|&node| std::mem::replace(&mut left[node as usize], false));
    order
}

/// For each of the 32 lowest bandwidths: the sets that stay connected over faster links.
fn without_slow_links(problem: &Problem) -> Vec<Parts> {
    let network = &problem.network;
    let mut speeds: Vec<u64> = network.arcs().iter().map(|arc| arc.capacity).collect();
    speeds.sort_unstable();
    speeds.dedup();
    speeds.truncate(32);
    let mut takes_part = vec![false; network.node_count()];
    for npu in problem.needs.npus() {
        takes_part[npu.index()] = true;
    }
    let with = |speed: u64| -> Parts {
        let mut root: Vec<u32> = (0..narrow(network.node_count())).collect();
        for arc in network.arcs().iter().filter(|arc| arc.capacity > speed) {
            let (a, b) = (find(&mut root, arc.src), find(&mut root, arc.dst));
            root[a as usize] = b;
        }
        let mut parts: Parts = vec![Vec::new(); root.len()];
        for node in 0..narrow(root.len()) {
            parts[find(&mut root, node) as usize].push(node);
        }
        parts.retain(|part| part.iter().any(|&node| takes_part[node as usize]));
        parts
    };
    speeds
        .into_iter()
        .map(with)
        .filter(|parts| parts.len() > 1)
        .collect()
}

fn find(root: &mut [u32], mut node: u32) -> u32 {
    while root[node as usize] != node {
        root[node as usize] = root[root[node as usize] as usize];
        node = root[node as usize];
    }
    node
}

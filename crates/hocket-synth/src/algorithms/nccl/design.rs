//! Channels for a file of graphs: which NICs they take, and in which order they pass the NPUs of each node.
//!
//! Of several nodes there is a channel for each NIC of the node that has the fewest. NICs of one rail are joined, as
//! far as all nodes have them, so that traffic stays on its rail where another node has lost a NIC. A channel enters
//! a node at the NPU nearest to its NIC, and leaves at another that is as near. Where one alone is near, channels are
//! paired: each leaves by the NIC that the other enters by, and as NCCL exchanges the two in every other node, both
//! stay on rails. Where each NPU of a node has a NIC of its own and links to all others, the channels together take every
//! one of these links once: paths that zigzag over a circle, as Walecki found (Alspach, The wonderful Walecki
//! construction, 2008).

use super::channels::{NcclChannel, channels, is_spread};
use super::given::{GivenChannel, Leg};
use crate::algorithms::multi_ring::Nodes;
use crate::id::{DeviceId, NpuId};
use crate::topology::Topology;
use crate::topology::shortest::RouteTree;
use crate::units::Time;

/// A NIC of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nic {
    /// Its device.
    pub device: DeviceId,
    /// Which rail it is at: NICs of several nodes at one rail have one number.
    pub rail: u64,
}

/// Finds channels: for every node its NICs are given, none where there is one node alone.
///
/// # Panics
/// If there are not as many lists of NICs as nodes.
pub fn design_channels(topology: &Topology, nics: &[Vec<Nic>]) -> Vec<GivenChannel> {
    let groups = topology.groups();
    if !is_spread(topology) {
        let found = channels(topology, 0).into_iter();
        let leg = |NcclChannel { order, .. }| {
            vec![Leg {
                npus: order,
                nics: [None, None],
            }]
        };
        return found.map(leg).collect();
    }
    assert_eq!(groups.len(), nics.len(), "NICs of every node");
    let rows = matched(nics);
    if let Some(found) = zigzags(topology, &rows) {
        return found;
    }
    let mut nodes = Nodes::new(topology, 0);
    let mut designed: Vec<GivenChannel> = vec![Vec::new(); rows.len()];
    let ends: Vec<Vec<Ends>> = groups
        .iter()
        .enumerate()
        .map(|(node, group)| {
            let mut entered = vec![0usize; topology.npu_count()];
            let ends = rows
                .iter()
                .map(|row| Ends::of(topology, group, row[node], &mut entered));
            ends.collect()
        })
        .collect();
    let are_paired = rows.len().is_multiple_of(2) && ends.iter().flatten().all(|it| it.is_alone);
    for (node, ends) in ends.iter().enumerate() {
        for (k, channel) in designed.iter_mut().enumerate() {
            let here = &ends[k];
            let other = &ends[k ^ usize::from(are_paired)];
            let is_distinct = are_paired && here.first != other.first;
            let (last, out) = match is_distinct {
                true => (other.first, other.nic),
                false => (here.last, here.nic),
            };
            channel.push(Leg {
                npus: nodes.order(node, (here.first, last)),
                nics: [Some(here.nic), Some(out)],
            });
        }
    }
    designed
}

/// For every channel the NIC of each node: those of rails that all nodes have first, then the others in order.
fn matched(nics: &[Vec<Nic>]) -> Vec<Vec<DeviceId>> {
    let count = nics.iter().map(Vec::len).min().unwrap_or(0);
    let has = |node: &[Nic], rail: u64| node.iter().any(|nic| nic.rail == rail);
    let rails: Vec<u64> = nics[0]
        .iter()
        .map(|nic| nic.rail)
        .filter(|&rail| nics.iter().all(|node| has(node, rail)))
        .collect();
    let columns = nics.iter().map(|node| {
        let place = |nic: &Nic| rails.iter().position(|&rail| rail == nic.rail);
        let mut sorted = node.clone();
        sorted.sort_by_key(|nic| place(nic).unwrap_or(usize::MAX));
        sorted
    });
    let columns: Vec<Vec<Nic>> = columns.collect();
    let row = |k: usize| columns.iter().map(|column| column[k].device).collect();
    (0..count).map(row).collect()
}

/// Channels that together take every link between NPUs of a node once, where each NPU has a NIC of its own, at the same
/// place in all nodes, and a link to each other NPU of its node. There is an even number of them.
fn zigzags(topology: &Topology, rows: &[Vec<DeviceId>]) -> Option<Vec<GivenChannel>> {
    let count = rows.len();
    let groups = topology.groups();
    let is_mesh = |group: &Vec<NpuId>| {
        let has = |a: NpuId, b: NpuId| !topology.links_from_to(a.device(), b.device()).is_empty();
        group.len() == count
            && group
                .iter()
                .all(|&a| group.iter().all(|&b| a == b || has(a, b)))
    };
    if count < 2 || !count.is_multiple_of(2) || !groups.iter().all(is_mesh) {
        return None;
    }
    // Which channel enters at each place.
    let mut by_place: Vec<Option<usize>> = vec![None; count];
    for (k, row) in rows.iter().enumerate() {
        let place_in = |(node, group): (usize, &Vec<NpuId>)| {
            let mut entered = vec![0; topology.npu_count()];
            let ends = Ends::of(topology, group, row[node], &mut entered);
            let place = group.iter().position(|&npu| npu == ends.first);
            place.filter(|_| ends.is_alone)
        };
        let place = place_in((0, &groups[0]))?;
        let is_alike = groups
            .iter()
            .enumerate()
            .all(|at| place_in(at) == Some(place));
        if !is_alike || by_place[place].replace(k).is_some() {
            return None;
        }
    }
    let nic = |place: usize, node: usize| by_place[place].map(|k| rows[k][node]);
    let half = count / 2;
    let designed = (0..half).flat_map(|start| {
        let path = zigzag(start, count);
        let back = path.iter().rev().copied().collect();
        [path, back]
    });
    let legs = designed.map(|path: Vec<usize>| {
        let leg = |(node, group): (usize, &Vec<NpuId>)| Leg {
            npus: path.iter().map(|&place| group[place]).collect(),
            nics: [nic(path[0], node), nic(path[count - 1], node)],
        };
        groups.iter().enumerate().map(leg).collect()
    });
    Some(legs.collect())
}

/// Returns all places of a circle of an even number of them: the start, one on, one back, two on, and so forth.
fn zigzag(start: usize, count: usize) -> Vec<usize> {
    let step = |at: usize| match at.is_multiple_of(2) {
        true => count - at / 2,
        false => at.div_ceil(2),
    };
    (0..count).map(|at| (start + step(at)) % count).collect()
}

/// Where a channel enters a node, and where it may leave it.
struct Ends {
    nic: DeviceId,
    first: NpuId,
    last: NpuId,
    /// Whether no other NPU is as near to the NIC as the first.
    is_alone: bool,
}

impl Ends {
    /// Returns the nearest NPUs to a NIC, of equally near ones those that fewest channels enter at.
    fn of(topology: &Topology, group: &[NpuId], nic: DeviceId, entered: &mut [usize]) -> Self {
        let ways = RouteTree::to(topology, nic, 0, None);
        let time = |npu: NpuId| ways.time(npu.device()).unwrap_or(Time::MAX);
        let near = |npu: &&NpuId| (time(**npu), entered[npu.index()], **npu);
        let first = *group.iter().min_by_key(near).expect("a node has an NPU");
        let place = group.iter().position(|&npu| npu == first);
        let place = place.expect("a member");
        let others = (1..group.len()).map(|step| (step, group[(place + step) % group.len()]));
        // Of equally near ones the one before it, so that rings of different NICs have ends of their own.
        let last = others.min_by_key(|&(step, npu)| (time(npu), group.len() - step));
        let last = last.map_or(first, |(_, npu)| npu);
        entered[first.index()] += 1;
        Self {
            nic,
            first,
            last,
            is_alone: last == first || time(last) > time(first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nic(device: u32, rail: u64) -> Nic {
        Nic {
            device: DeviceId(device),
            rail,
        }
    }

    #[test]
    fn zigzags_take_every_link_once() {
        for count in [2, 4, 6, 8, 16] {
            let mut taken = std::collections::BTreeSet::new();
            for start in 0..count / 2 {
                let path = zigzag(start, count);
                assert_eq!(path[0], start);
                assert_eq!(path[count - 1], start + count / 2);
                for pair in path.windows(2) {
                    assert!(taken.insert((pair[0], pair[1])) && taken.insert((pair[1], pair[0])));
                }
            }
            assert_eq!(taken.len(), count * (count - 1));
        }
    }

    #[test]
    fn nics_of_one_rail_are_joined() {
        let full = vec![nic(10, 0), nic(11, 1), nic(12, 2)];
        let short = vec![nic(20, 0), nic(22, 2)];
        let rows = matched(&[full.clone(), short]);
        let device = |row: &Vec<DeviceId>| row.iter().map(|it| it.0).collect::<Vec<_>>();
        assert_eq!(
            rows.iter().map(device).collect::<Vec<_>>(),
            [[10, 20], [12, 22]]
        );
        // Without common rails, in order.
        let other = vec![nic(30, 7), nic(31, 8), nic(32, 9)];
        let rows = matched(&[full, other]);
        assert_eq!(
            rows.iter().map(device).collect::<Vec<_>>(),
            [[10, 30], [11, 31], [12, 32]]
        );
    }
}

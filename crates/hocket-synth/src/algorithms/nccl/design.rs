//! Channels for a file of graphs: which NICs they take, and in which order they pass the NPUs of each node.
//!
//! Of several nodes there is a channel for each NIC of the node that has the fewest. NICs of one rail are joined, as
//! far as all nodes have them, so that traffic stays on its rail where another node has lost a NIC. A channel enters
//! a node at the NPU nearest to its NIC, and leaves at another that is as near. Where one alone is near, channels are
//! paired: each leaves by the NIC that the other enters by, and as NCCL exchanges the two in every other node, both
//! stay on rails. Where each NPU of a node has a NIC of its own and links to all others, the channels together take every
//! one of these links once: paths that zigzag over a circle, as Walecki found (Alspach, The wonderful Walecki
//! construction, 2008).
//!
//! All channels carry the same, so the slowest NIC sets the pace of all. Where NICs differ, some are left out, or the
//! faster ones have several channels each ([`shares`]). That is decided before channels are made, since a channel may
//! enter by one NIC and leave by another. Links inside the nodes count once channels are made: [`carried`]. So there are designs
//! of the fastest NICs only, of the nearest only, and of both ([`best_of_each`]).

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::channels::{NcclChannel, every_inside, is_spread};
use super::cycles::MOST;
use super::given::{GivenChannel, Leg, carried};
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

/// Channels for a file of graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    /// What links let these channels carry together, in bytes per second; 0 if there is one design alone.
    pub most: u64,
    /// The channels.
    pub channels: Vec<GivenChannel>,
    /// The slow and far NICs that no channel takes.
    pub left_out: Vec<LeftOut>,
}

/// A NIC that no channel takes, as it would slow down all channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its device.
    pub nic: DeviceId,
    /// What it carries, or the links that a channel by it would take, in bytes per second.
    pub rate: u64,
    /// What the slowest NIC carries that is taken, in bytes per second: no more, if this one is farther from the NPUs.
    pub beside: u64,
}

/// Finds channels: for every node its NICs are given, none where there is one node alone. Where links are slow, `nominal` is the network
/// in which they are not: its channels may be the best of this one too.
///
/// Several designs are returned where NICs or links differ, those that carry most first. The first that reaches at least
/// the `most` of the next is the fastest.
///
/// # Panics
/// If there are not as many lists of NICs as nodes.
pub fn design_channels(
    topology: &Topology,
    nominal: Option<&Topology>,
    nics: &[Vec<Nic>],
) -> Vec<Design> {
    let near = Near::of(topology, nics);
    let mut found: Vec<Design> = Vec::new();
    for on in [Some(topology), nominal].into_iter().flatten() {
        let made = match is_spread(topology) {
            true => over_nodes(on, &near, nics),
            false => every_inside(on).into_iter().map(in_one_node).collect(),
        };
        for design in made {
            if found.iter().all(|known| known.channels != design.channels) {
                found.push(design);
            }
        }
    }
    let is_alone = found.len() == 1;
    for design in &mut found {
        if !is_alone {
            design.most = carried(topology, &design.channels);
        }
        note_left_out(topology, &near, nics, design);
    }
    found.sort_by_key(|design| Reverse(design.most));
    found
}

fn in_one_node(found: Vec<NcclChannel>) -> Design {
    let leg = |NcclChannel { order, .. }| {
        vec![Leg {
            npus: order,
            nics: [None, None],
        }]
    };
    Design {
        most: 0,
        channels: found.into_iter().map(leg).collect(),
        left_out: Vec::new(),
    }
}

/// Makes the designs of several nodes.
fn over_nodes(topology: &Topology, near: &Near, nics: &[Vec<Nic>]) -> Vec<Design> {
    assert_eq!(topology.groups().len(), nics.len(), "NICs of every node");
    let mut choices: Vec<Vec<Vec<Nic>>> = Vec::new();
    for fast in best_of_each(nics, |nic| Reverse(rate(topology, nic))) {
        for some in best_of_each(&fast, |nic| near.distance(nic)) {
            if !choices.contains(&some) {
                choices.push(some);
            }
        }
    }
    let made = choices
        .iter()
        .flat_map(|nics| of_nics(topology, near, nics));
    made.collect()
}

/// Returns the NICs of each node in several ways: as few as the node that has fewest in each, down to one, with all others that are
/// as good as the worst of them.
fn best_of_each<K: Ord>(nics: &[Vec<Nic>], badness: impl Fn(DeviceId) -> K) -> Vec<Vec<Vec<Nic>>> {
    let count = nics.iter().map(Vec::len).min().unwrap_or(0);
    let sorted = nics.iter().map(|node| {
        let mut all: Vec<K> = node.iter().map(|nic| badness(nic.device)).collect();
        all.sort_unstable();
        all
    });
    let sorted: Vec<Vec<K>> = sorted.collect();
    let worst = (0..count)
        .rev()
        .map(|k| sorted.iter().map(|all| &all[k]).max());
    let mut worst: Vec<Option<&K>> = worst.collect();
    worst.dedup();
    let ways = worst.into_iter().map(|worst| {
        let is_good = |nic: &&Nic| Some(&badness(nic.device)) <= worst;
        let node = |node: &Vec<Nic>| node.iter().filter(is_good).copied().collect();
        nics.iter().map(node).collect()
    });
    std::iter::once(nics.to_vec()).chain(ways).collect()
}

/// Makes the designs that are worth a trial of some NICs.
fn of_nics(topology: &Topology, near: &Near, nics: &[Vec<Nic>]) -> Vec<Design> {
    let rows = matched(nics, |nic| rate(topology, nic));
    let pairs = zigzags(topology, near, &rows);
    let is_even = |units: &[Unit]| units.iter().all(|unit| unit.rate == units[0].rate);
    let mut found = designs(topology, &pairs, |units, times| {
        let channels = units.iter().flat_map(|unit| unit.channels.clone());
        let times: Vec<usize> = times.iter().flat_map(|&it| [it, it]).collect();
        repeated(channels.collect(), &times)
    });
    if pairs.is_empty() || !is_even(&pairs) || !is_even(&rows) {
        found.extend(designs(topology, &rows, |units, times| {
            entered(topology, near, units, times)
        }));
    }
    found
}

/// Notes the NICs that no channel takes and that are slower than those that are taken, or farther from the NPUs.
fn note_left_out(topology: &Topology, near: &Near, nics: &[Vec<Nic>], design: &mut Design) {
    let legs = design.channels.iter().flatten();
    let taken: HashSet<DeviceId> = legs.flat_map(|leg| leg.nics).flatten().collect();
    let rates = taken.iter().map(|&nic| rate(topology, nic));
    let Some(beside) = rates.min() else {
        return;
    };
    let by_links = std::mem::take(&mut design.left_out);
    for node in nics {
        let (used, unused): (Vec<DeviceId>, Vec<DeviceId>) = node
            .iter()
            .map(|nic| nic.device)
            .partition(|nic| taken.contains(nic));
        let farthest = used.iter().map(|&nic| near.distance(nic)).max();
        for nic in unused {
            let rate = rate(topology, nic);
            if let Some(known) = by_links.iter().find(|it| it.nic == nic && rate >= beside) {
                design.left_out.push(*known);
            } else if rate < beside || Some(near.distance(nic)) > farthest {
                design.left_out.push(LeftOut { nic, rate, beside });
            }
        }
    }
}

/// How far the NPUs of each node are from its NICs.
struct Near {
    times: HashMap<DeviceId, Vec<Time>>,
}

impl Near {
    fn of(topology: &Topology, nics: &[Vec<Nic>]) -> Self {
        let nodes = topology.groups().iter().zip(nics);
        let times = nodes.flat_map(|(group, nics)| {
            nics.iter().map(move |nic| {
                let ways = RouteTree::to(topology, nic.device, 0, None);
                let time = |npu: &NpuId| ways.time(npu.device()).unwrap_or(Time::MAX);
                (nic.device, group.iter().map(time).collect())
            })
        });
        Self {
            times: times.collect(),
        }
    }

    fn distance(&self, nic: DeviceId) -> Time {
        let nearest = self.times[&nic].iter().min();
        nearest.copied().unwrap_or(Time::MAX)
    }
}

/// One NIC of each node, or several such, with as many channels: a channel enters each node by one of them.
struct Unit {
    /// What each NIC carries at least, in bytes per second, and the links that channels take for sure.
    rate: u64,
    /// For each of several the NIC of each node.
    rows: Vec<Vec<DeviceId>>,
    /// The channels, if they do not depend on the other units.
    channels: Vec<GivenChannel>,
}

/// Makes the designs that are worth a trial, of units in the order of their rates.
fn designs(
    topology: &Topology,
    units: &[Unit],
    make: impl Fn(&[Unit], &[usize]) -> Vec<GivenChannel>,
) -> Vec<Design> {
    let each = units.first().map_or(1, |unit| unit.rows.len());
    let rates: Vec<u64> = units.iter().map(|unit| unit.rate).collect();
    let shares = shares(&rates[..rates.len().min(MOST / each)], each).into_iter();
    let design = |times: Vec<usize>| {
        let (taken, others) = units.split_at(times.len());
        let beside = rates[times.len() - 1];
        // Where links are slow, or one of two NICs; note_left_out knows which NICs are.
        let left_out = others.iter().filter(|unit| unit.rate < beside);
        let left_out = left_out.filter(|unit| {
            let mut nics = unit.rows.iter().flatten();
            nics.all(|&nic| rate(topology, nic) >= beside)
        });
        let left_out = left_out.flat_map(|unit| {
            let nics = unit.rows.iter().flatten();
            nics.map(move |&nic| LeftOut {
                nic,
                rate: unit.rate,
                beside,
            })
        });
        Design {
            most: 0,
            channels: make(taken, &times),
            left_out: left_out.collect(),
        }
    };
    shares.map(design).collect()
}

/// Returns how many channels each unit has, the fastest first, if it has `each` for once.
///
/// These are the fastest ones once each, down to every rate at which some end. And several times each, if that lets them
/// carry over 5 % more: of the numbers within 5 % of the best the one with fewest channels, as each costs threads. All
/// channels carry the same, so units of rates `r` that have `m` each carry `sum(m) min(r / m)`.
fn shares(rates: &[u64], each: usize) -> Vec<Vec<usize>> {
    let count = rates.len();
    let ends = (1..=count).filter(|&end| end == count || rates[end] < rates[end - 1]);
    let mut found: Vec<Vec<usize>> = ends.map(|end| vec![1; end]).collect();
    let carried = |times: &Vec<usize>| most(rates, times, each);
    let several = rates.iter().flat_map(|&rate| {
        (1..=MOST as u128).map(move |parts| {
            let times = rates.iter();
            let times = times.map(move |&it| (u128::from(it) * parts / u128::from(rate)) as usize);
            times.take_while(|&it| it > 0).collect::<Vec<usize>>()
        })
    });
    let several: Vec<Vec<usize>> = several
        .filter(|times| each * times.iter().sum::<usize>() <= MOST)
        .collect();
    let best = several.iter().map(carried).max().unwrap_or(0);
    let is_close = |times: &&Vec<usize>| 20 * u128::from(carried(times)) >= 19 * u128::from(best);
    if !found.iter().any(|times| is_close(&times)) {
        let close = several.iter().filter(is_close);
        let fewest =
            close.min_by_key(|times| (times.iter().sum::<usize>(), Reverse(carried(times))));
        found.extend(fewest.cloned());
    }
    found
}

/// Returns what units let all channels carry together that are so many times taken.
fn most(rates: &[u64], times: &[usize], each: usize) -> u64 {
    let channels = (each * times.iter().sum::<usize>()) as u128;
    let pairs = rates.iter().zip(times);
    let carried = pairs.map(|(&rate, &times)| u128::from(rate) * channels / times as u128);
    carried
        .min()
        .map_or(0, |it| u64::try_from(it).unwrap_or(u64::MAX))
}

/// Returns channels, those that follow one another and are taken so many times together one after the other.
fn repeated(channels: Vec<GivenChannel>, times: &[usize]) -> Vec<GivenChannel> {
    let mut rest = channels.into_iter();
    let classes = times.chunk_by(|a, b| a == b).flat_map(|class| {
        let channels: Vec<GivenChannel> = rest.by_ref().take(class.len()).collect();
        std::iter::repeat_n(channels, class[0]).flatten()
    });
    classes.collect()
}

/// Returns what the links from a device to another carry together, in bytes per second.
fn width(topology: &Topology, src: DeviceId, dst: DeviceId) -> u64 {
    let links = topology.links_from_to(src, dst).iter();
    let rates = links.map(|&id| topology.link(id).bandwidth.bytes_per_second());
    rates.fold(0, u64::saturating_add)
}

/// Returns what a NIC carries on its way in and out, in bytes per second.
fn rate(topology: &Topology, nic: DeviceId) -> u64 {
    let out = topology.out_links(nic).iter();
    let out = out.map(|&id| width(topology, nic, topology.link(id).dst));
    let into = topology.in_links(nic).iter();
    let into = into.map(|&id| width(topology, topology.link(id).src, nic));
    out.chain(into).min().unwrap_or(0)
}

/// Makes a channel for each NIC of a node, that enters at an NPU near to it.
fn entered(topology: &Topology, near: &Near, units: &[Unit], times: &[usize]) -> Vec<GivenChannel> {
    let mut nodes = Nodes::new(topology, 0);
    let mut designed: Vec<GivenChannel> = vec![Vec::new(); units.len()];
    let groups = topology.groups().iter().enumerate();
    let ends: Vec<Vec<Ends>> = groups
        .map(|(node, group)| {
            let mut entered = vec![0usize; topology.npu_count()];
            let ends = units
                .iter()
                .map(|unit| Ends::of(near, group, unit.rows[0][node], &mut entered));
            ends.collect()
        })
        .collect();
    // Channels that are exchanged in pairs are so in the whole file.
    let mut classes = times.chunk_by(|a, b| a == b);
    let are_paired = classes.all(|class| class.len().is_multiple_of(2))
        && ends.iter().flatten().all(|it| it.is_alone);
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
    repeated(designed, times)
}

/// For every channel the NIC of each node, the fastest channels first: NICs of rails that all nodes have, then the
/// fastest others of each node.
fn matched(nics: &[Vec<Nic>], rate: impl Fn(DeviceId) -> u64) -> Vec<Unit> {
    let count = nics.iter().map(Vec::len).min().unwrap_or(0);
    let has = |node: &[Nic], rail: u64| node.iter().any(|nic| nic.rail == rail);
    let rails: Vec<u64> = nics[0]
        .iter()
        .map(|nic| nic.rail)
        .filter(|&rail| nics.iter().all(|node| has(node, rail)))
        .collect();
    let columns = nics.iter().map(|node| {
        let key = |nic: &Nic| match rails.iter().position(|&rail| rail == nic.rail) {
            Some(place) => (place, Reverse(0)),
            None => (usize::MAX, Reverse(rate(nic.device))),
        };
        let mut sorted = node.clone();
        sorted.sort_by_key(key);
        sorted
    });
    let columns: Vec<Vec<Nic>> = columns.collect();
    let row = |k: usize| {
        let row: Vec<DeviceId> = columns.iter().map(|column| column[k].device).collect();
        Unit {
            rate: row.iter().map(|&nic| rate(nic)).min().unwrap_or(0),
            rows: vec![row],
            channels: Vec::new(),
        }
    };
    let mut rows: Vec<Unit> = (0..count).map(row).collect();
    rows.sort_by_key(|unit| Reverse(unit.rate));
    rows
}

/// Channels that together take every link between NPUs of a node once, where each NPU has a NIC of its own, at the same
/// place in all nodes, and a link to each other NPU of its node. There is an even number of them: each unit has a path
/// and the same one back.
fn zigzags(topology: &Topology, near: &Near, rows: &[Unit]) -> Vec<Unit> {
    let count = rows.len();
    let groups = topology.groups();
    let is_mesh = |group: &Vec<NpuId>| {
        let has = |a: NpuId, b: NpuId| width(topology, a.device(), b.device()) > 0;
        group.len() == count
            && group
                .iter()
                .all(|&a| group.iter().all(|&b| a == b || has(a, b)))
    };
    if count < 2 || !count.is_multiple_of(2) || !groups.iter().all(is_mesh) {
        return Vec::new();
    }
    // Which channel enters at each place.
    let mut by_place: Vec<Option<&Unit>> = vec![None; count];
    for unit in rows {
        let place_in = |(node, group): (usize, &Vec<NpuId>)| {
            let mut entered = vec![0; topology.npu_count()];
            let ends = Ends::of(near, group, unit.rows[0][node], &mut entered);
            let place = group.iter().position(|&npu| npu == ends.first);
            place.filter(|_| ends.is_alone)
        };
        let place = place_in((0, &groups[0]));
        let is_alike = groups.iter().enumerate().all(|at| place_in(at) == place);
        let Some(place) = place.filter(|_| is_alike) else {
            return Vec::new();
        };
        if by_place[place].replace(unit).is_some() {
            return Vec::new();
        }
    }
    let by_place: Vec<&Unit> = by_place.into_iter().flatten().collect();
    let unit = |start: usize| {
        let path = zigzag(start, count);
        let ends = [by_place[path[0]], by_place[path[count - 1]]];
        let steps = path.windows(2).flat_map(|pair| {
            let npus = groups.iter().map(|group| [group[pair[0]], group[pair[1]]]);
            npus.flat_map(|[a, b]| [(a, b), (b, a)])
        });
        let steps = steps.map(|(a, b)| width(topology, a.device(), b.device()));
        let leg = |places: &[usize], node: usize| Leg {
            npus: places.iter().map(|&place| groups[node][place]).collect(),
            nics: [places[0], places[count - 1]].map(|place| Some(by_place[place].rows[0][node])),
        };
        let back: Vec<usize> = path.iter().rev().copied().collect();
        let channel = |places: &[usize]| (0..groups.len()).map(|node| leg(places, node)).collect();
        Unit {
            rate: steps.chain(ends.map(|end| end.rate)).min().unwrap_or(0),
            rows: ends.iter().flat_map(|end| end.rows.clone()).collect(),
            channels: [&path, &back].map(|places| channel(places)).to_vec(),
        }
    };
    let mut units: Vec<Unit> = (0..count / 2).map(unit).collect();
    units.sort_by_key(|unit| Reverse(unit.rate));
    units
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
    fn of(near: &Near, group: &[NpuId], nic: DeviceId, entered: &mut [usize]) -> Self {
        let times: HashMap<NpuId, Time> = group
            .iter()
            .copied()
            .zip(near.times[&nic].iter().copied())
            .collect();
        let time = |npu: NpuId| times[&npu];
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
        let devices = |nics: &[Vec<Nic>], rate: fn(DeviceId) -> u64| {
            let device = |unit: Unit| unit.rows[0].iter().map(|it| it.0).collect::<Vec<_>>();
            matched(nics, rate)
                .into_iter()
                .map(device)
                .collect::<Vec<_>>()
        };
        let found = devices(&[full.clone(), short], |_| 1);
        assert_eq!(found, [[10, 20], [12, 22]]);
        // Without common rails, in order; the fastest with the fastest, and first.
        let other = vec![nic(30, 7), nic(31, 8), nic(32, 9)];
        let found = devices(&[full.clone(), other.clone()], |_| 1);
        assert_eq!(found, [[10, 30], [11, 31], [12, 32]]);
        let found = devices(&[full, other[..2].to_vec()], |nic| {
            1 + u64::from(nic.0 == 12)
        });
        assert_eq!(found, [[12, 30], [10, 31]]);
    }

    /// Returns the best of all numbers of channels of the fastest NICs, by trying them all.
    fn best_of_all(rates: &[u64], channels: usize) -> u64 {
        let mut ways: Vec<Vec<usize>> = vec![Vec::new()];
        let mut best = 0;
        for _ in rates {
            let longer = ways.iter().flat_map(|way| {
                let left = channels - way.iter().sum::<usize>();
                (1..=left).map(|times| [way.clone(), vec![times]].concat())
            });
            ways = longer.collect();
            let carried = ways.iter().map(|times| most(rates, times, 1)).max();
            best = best.max(carried.unwrap_or(0));
        }
        best
    }

    #[test]
    fn nics_have_as_many_channels_as_carry_most() {
        let mut seed = crate::units::Seed(7);
        let mut several = 0;
        for _ in 0..40 {
            let mut rates: Vec<u64> = (0..4).map(|_| 1 + seed.below(9) as u64).collect();
            rates.sort_unstable_by_key(|&rate| Reverse(rate));
            let found = shares(&rates, 1);
            let carried = |times: &Vec<usize>| most(&rates, times, 1);
            let once = found.iter().filter(|times| times.iter().all(|&it| it == 1));
            let once = once.map(carried).max().unwrap();
            let best = found.iter().map(carried).max().unwrap();
            let all = best_of_all(&rates, MOST);
            assert!(20 * best >= 19 * all, "{rates:?}: {best} {all}");
            // Several channels of a NIC only where that carries over 5 % more.
            assert!(best == once || 20 * once < 19 * all, "{rates:?}");
            several += usize::from(best > once);
        }
        assert!(several > 10, "{several}");
        // One of eight NICs at a half: 15 channels; at a quarter, left out.
        let with = |slow| shares(&[4, 4, 4, 4, 4, 4, 4, slow], 1);
        assert_eq!(with(4), [vec![1; 8]]);
        assert_eq!(with(2)[2], [2, 2, 2, 2, 2, 2, 2, 1]);
        assert_eq!(with(1), [vec![1; 7], vec![1; 8]]);
    }
}

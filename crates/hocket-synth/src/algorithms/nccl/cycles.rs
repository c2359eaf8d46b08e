//! Cycles over the NPUs of a node that share no bandwidth, by a search that goes back where it is stuck.
//!
//! # Source
//! NVIDIA NCCL, `src/graph/search.cc`: channels of one speed are searched for, one after the other, each on what the
//! ones before have left. The speed counts with which all of them carry most. NCCL has a list of speeds; here they are those of
//! links, and parts of those, such as the half of a link that would carry two channels if it were not slow.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet, VecDeque};

use crate::algorithms::dimensional::PathOf;
use crate::id::{DeviceId, LinkId, NpuId, fit};
use crate::topology::Topology;
use crate::units::Bandwidth;

/// Channels at most, as NCCL has.
pub(super) const MOST: usize = 32;
/// NPUs of a node whose cycles are searched for together, and one after the other.
const FEW: usize = 16;
const MANY: usize = 96;
/// Steps of a search.
const EFFORT: usize = 20_000;
/// Speeds at most that are parts of those of links.
const PARTS: usize = 8;

/// All NPUs in order, and the links from each to the next.
#[derive(Clone)]
pub(super) struct Cycle {
    pub order: Vec<NpuId>,
    pub paths: PathOf,
}

/// Returns the cycles that carry most together; none where none is found, or there are too many NPUs to search.
pub(super) fn cycles(topology: &Topology, npus: &[NpuId]) -> Vec<Cycle> {
    found(topology, npus, true).pop().unwrap_or_default()
}

/// Returns the cycles of every speed at which there are some, those first that carry most together.
pub(super) fn cycles_by_speed(topology: &Topology, npus: &[NpuId]) -> Vec<Vec<Cycle>> {
    let mut found = found(topology, npus, false);
    found.reverse();
    found
}

/// Returns the cycles of speeds at which there are some, those last that carry most together: of each speed of links, or only those
/// that carry more than all that were found before.
fn found(topology: &Topology, npus: &[NpuId], is_rising: bool) -> Vec<Vec<Cycle>> {
    let (speeds, parts) = speeds(topology, npus);
    let mut best = 0;
    let mut found: Vec<(u128, Vec<Cycle>)> = Vec::new();
    let whole = speeds.into_iter().map(|speed| (speed, is_rising));
    for (speed, must_rise) in whole.chain(parts.into_iter().map(|speed| (speed, true))) {
        let mut search = Search::new(topology, npus, speed);
        // No cycles of this speed carry more.
        if must_rise && search.carried(search.most) <= best {
            continue;
        }
        search.run();
        let carried = search.carried(search.best.len());
        if carried > best || (carried > 0 && !must_rise) {
            best = best.max(carried);
            found.push((carried, search.best));
        }
    }
    // Of those that carry as much the fastest is last, as it has the fewest cycles.
    found.reverse();
    found.sort_by_key(|(carried, _)| *carried);
    found.into_iter().map(|(_, cycles)| cycles).collect()
}

/// Returns the speeds of links, and parts of them that fall short of another speed, the fastest first. None where there
/// are too few NPUs or too many.
fn speeds(topology: &Topology, npus: &[NpuId]) -> (Vec<Bandwidth>, Vec<Bandwidth>) {
    if !(3..=MANY).contains(&npus.len()) {
        return (Vec::new(), Vec::new());
    }
    let links = topology.links().iter();
    let known: HashSet<Bandwidth> = links.map(|link| link.bandwidth).collect();
    let mut speeds: Vec<Bandwidth> = known.iter().copied().collect();
    speeds.sort_unstable_by_key(|&speed| Reverse(speed));
    let pairs = speeds
        .iter()
        .flat_map(|&a| speeds.iter().map(move |&b| [a, b]));
    let parts = pairs.filter_map(|[link, speed]| {
        let [link, speed] = [link, speed].map(Bandwidth::bytes_per_second);
        let part = link / link.div_ceil(speed).clamp(1, MOST as u64);
        Bandwidth::from_bytes_per_second(part).filter(|part| !known.contains(part))
    });
    let parts: BTreeSet<Bandwidth> = parts.collect();
    (speeds, parts.into_iter().rev().take(PARTS).collect())
}

struct Search<'a> {
    topology: &'a Topology,
    npus: &'a [NpuId],
    speed: Bandwidth,
    /// By link, how many more cycles it carries.
    free: Vec<u64>,
    is_passed: Vec<bool>,
    at: Vec<NpuId>,
    over: Vec<Vec<LinkId>>,
    found: Vec<Cycle>,
    best: Vec<Cycle>,
    /// Cycles at most, by what every NPU sends and gets.
    most: usize,
    effort: usize,
}

impl<'a> Search<'a> {
    fn new(topology: &'a Topology, npus: &'a [NpuId], speed: Bandwidth) -> Self {
        let units = |bandwidth: Bandwidth| bandwidth.bytes_per_second() / speed.bytes_per_second();
        let links = topology.links().iter();
        let free: Vec<u64> = links.map(|link| units(link.bandwidth)).collect();
        let sum = |ids: &[LinkId]| ids.iter().map(|id| free[id.index()]).sum::<u64>();
        let most = npus.iter().map(|npu| {
            let (out, into) = (
                topology.out_links(npu.device()),
                topology.in_links(npu.device()),
            );
            sum(out).min(sum(into))
        });
        let most = fit(most.min().unwrap_or(0).min(MOST as u64));
        Self {
            topology,
            npus,
            speed,
            is_passed: vec![false; topology.npu_count()],
            at: Vec::new(),
            over: Vec::new(),
            found: Vec::new(),
            best: Vec::new(),
            most,
            free,
            effort: EFFORT,
        }
    }

    /// Returns what so many cycles carry together.
    fn carried(&self, cycles: usize) -> u128 {
        cycles as u128 * u128::from(self.speed.bytes_per_second())
    }

    fn run(&mut self) {
        loop {
            self.start();
            if self.npus.len() <= FEW {
                self.extend();
                return;
            }
            // One after the other: what is found stays.
            let before = self.best.len();
            self.effort = EFFORT;
            self.extend();
            if self.best.len() == before || self.best.len() == self.most {
                return;
            }
            self.found.clone_from(&self.best);
        }
    }

    fn start(&mut self) {
        self.is_passed.fill(false);
        self.is_passed[self.npus[0].index()] = true;
        self.at = vec![self.npus[0]];
        self.over.clear();
    }

    /// Goes on from the last NPU; whether the search is over.
    fn extend(&mut self) -> bool {
        if self.effort == 0 || self.best.len() == self.most {
            return true;
        }
        self.effort -= 1;
        let last = self.at[self.at.len() - 1];
        if self.at.len() == self.npus.len() {
            let mut ways = self.ways(last).into_iter();
            let home = ways.find(|(to, _)| *to == self.npus[0]);
            return home.is_some_and(|(_, links)| self.close(links));
        }
        for (next, links) in self.ways(last) {
            if self.is_passed[next.index()] {
                continue;
            }
            self.take(&links);
            self.is_passed[next.index()] = true;
            self.at.push(next);
            self.over.push(links);
            if self.extend() {
                return true;
            }
            let links = self.over.pop().expect("as pushed");
            self.at.pop();
            self.is_passed[next.index()] = false;
            self.give_back(&links);
        }
        false
    }

    /// A cycle is complete: notes it and looks for the next.
    fn close(&mut self, home: Vec<LinkId>) -> bool {
        self.take(&home);
        self.over.push(home);
        let ends = self.at.iter().zip(self.at.iter().cycle().skip(1));
        let paths = ends.zip(&self.over);
        self.found.push(Cycle {
            order: self.at.clone(),
            paths: paths
                .map(|((&a, &b), links)| ((a, b), links.clone()))
                .collect(),
        });
        if self.found.len() > self.best.len() {
            self.best.clone_from(&self.found);
        }
        if self.npus.len() > FEW {
            return true;
        }
        let (at, over) = (self.at.clone(), self.over.clone());
        self.start();
        let is_over = self.extend();
        (self.at, self.over) = (at, over);
        self.is_passed.fill(true);
        let home = self.over.pop().expect("as pushed");
        self.found.pop();
        self.give_back(&home);
        is_over
    }

    fn take(&mut self, links: &[LinkId]) {
        for link in links {
            self.free[link.index()] -= 1;
        }
    }

    fn give_back(&mut self, links: &[LinkId]) {
        for link in links {
            self.free[link.index()] += 1;
        }
    }

    /// Returns the NPUs that are reached from one over what is free, by fewest links, and how: those first to which
    /// most is free, and of those the next by number.
    fn ways(&self, from: NpuId) -> Vec<(NpuId, Vec<LinkId>)> {
        let topology = self.topology;
        let mut before: Vec<Option<LinkId>> = vec![None; topology.device_count()];
        let mut queue = VecDeque::from([from.device()]);
        let mut reached = Vec::new();
        while let Some(device) = queue.pop_front() {
            for &id in topology.out_links(device) {
                let to = topology.link(id).dst;
                if self.free[id.index()] == 0 || to == from.device() || before[to.index()].is_some()
                {
                    continue;
                }
                before[to.index()] = Some(id);
                match topology.is_npu(to) {
                    true => reached.push(to),
                    false => queue.push_back(to),
                }
            }
        }
        let count = topology.npu_count();
        let mut ways: Vec<(u64, usize, NpuId, Vec<LinkId>)> = reached
            .into_iter()
            .map(|device| {
                let links = self.links_to(device, &before);
                let free = links.iter().map(|link| self.free[link.index()]);
                let npu = NpuId(device.0);
                let after = (npu.index() + count - from.index()) % count;
                (free.min().unwrap_or(0), after, npu, links)
            })
            .collect();
        ways.sort_unstable_by_key(|&(free, after, ..)| (Reverse(free), after));
        ways.into_iter()
            .map(|(_, _, npu, links)| (npu, links))
            .collect()
    }

    fn links_to(&self, device: DeviceId, before: &[Option<LinkId>]) -> Vec<LinkId> {
        let mut links = Vec::new();
        let mut at = device;
        while let Some(link) = before[at.index()] {
            links.push(link);
            at = self.topology.link(link).src;
        }
        links.reverse();
        links
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::TopologyBuilder;
    use crate::units::{Seed, Time};

    fn gigabytes(count: u64) -> Bandwidth {
        Bandwidth::from_bytes_per_second(count * 1_000_000_000).unwrap()
    }

    /// Returns a network of one-way links, each there or not.
    fn digraph(count: usize, has: impl Fn(usize, usize) -> bool) -> Topology {
        let mut builder = TopologyBuilder::new("digraph");
        builder.npus(count);
        for a in 0..count {
            for b in (0..count).filter(|&b| b != a && has(a, b)) {
                let (a, b) = (NpuId::from(a).device(), NpuId::from(b).device());
                builder.link(a, b, gigabytes(1), Time::from_ns(10));
            }
        }
        builder.finish().unwrap()
    }

    /// Returns all cycles over all numbers, from 0 on, by trying every order.
    fn every_cycle(count: usize, has: &impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
        let mut found = vec![vec![0]];
        for _ in 1..count {
            let longer = found.iter().flat_map(|order: &Vec<usize>| {
                let last = order[order.len() - 1];
                let next = (0..count).filter(move |&it| has(last, it) && !order.contains(&it));
                next.map(move |it| [order.clone(), vec![it]].concat())
            });
            found = longer.collect();
        }
        found.retain(|order| has(order[count - 1], 0));
        found
    }

    /// Returns how many of some cycles share no link, at most, by trying all sets.
    fn most_disjoint(cycles: &[Vec<usize>], used: &HashSet<(usize, usize)>) -> usize {
        let steps = |order: &Vec<usize>| -> Vec<(usize, usize)> {
            let next = order.iter().cycle().skip(1);
            order.iter().zip(next).map(|(&a, &b)| (a, b)).collect()
        };
        let mut most = 0;
        for (i, order) in cycles.iter().enumerate() {
            let own = steps(order);
            if own.iter().all(|step| !used.contains(step)) {
                let both = used.iter().copied().chain(own).collect();
                most = most.max(1 + most_disjoint(&cycles[i + 1..], &both));
            }
        }
        most
    }

    #[test]
    fn as_many_cycles_as_there_are_and_no_link_in_two() {
        let mut seed = Seed(31);
        let mut several = 0;
        for round in 0..200 {
            let count = 3 + round % 3;
            let links: HashSet<(usize, usize)> = (0..count)
                .flat_map(|a| (0..count).map(move |b| (a, b)))
                .filter(|_| seed.below(5) > 0)
                .collect();
            let has = |a: usize, b: usize| links.contains(&(a, b));
            let network = digraph(count, |a, b| a != b && has(a, b));
            let npus: Vec<NpuId> = network.npus().collect();
            let found = cycles(&network, &npus);
            let all = every_cycle(count, &|a, b| a != b && has(a, b));
            assert_eq!(
                found.len(),
                most_disjoint(&all, &HashSet::new()),
                "{links:?}"
            );
            several += usize::from(found.len() > 1);
            let mut used = HashSet::new();
            for cycle in &found {
                let passed: HashSet<NpuId> = cycle.order.iter().copied().collect();
                assert_eq!((passed.len(), cycle.order.len()), (count, count));
                assert_eq!(cycle.paths.len(), count);
                #[expect(
                    clippy::iter_over_hash_type,
                    reason = "each path is checked, in any order"
                )]
                for (&(a, b), links) in &cycle.paths {
                    let [link] = links[..] else {
                        panic!("one link")
                    };
                    let ends = (network.link(link).src, network.link(link).dst);
                    assert_eq!(ends, (a.device(), b.device()));
                    assert!(used.insert(link));
                }
            }
        }
        assert!(several > 50, "{several}");
    }

    #[test]
    fn the_speed_counts_with_which_most_is_carried() {
        // Two links of 1 and one of 2 GB/s from each to the next of three, and a slow one back.
        let mut builder = TopologyBuilder::new("three");
        builder.npus(3);
        let npus: Vec<NpuId> = (0..3).map(NpuId).collect();
        for i in 0..3 {
            let (a, b) = (npus[i].device(), npus[(i + 1) % 3].device());
            for speed in [1, 1, 2] {
                builder.link(a, b, gigabytes(speed), Time::from_ns(10));
            }
            builder.link(b, a, gigabytes(1), Time::from_ns(10));
        }
        let network = builder.finish().unwrap();
        // Four ways round of 1 GB/s each, and one the other way round: more than one of 2 GB/s.
        assert_eq!(cycles(&network, &npus).len(), 5);
    }

    /// Returns what cycles carry together, each at the rate of the narrowest of its links' shares.
    fn carried(topology: &Topology, cycles: &[Cycle]) -> u64 {
        let mut passed = vec![0; topology.links().len()];
        for link in cycles.iter().flat_map(|it| it.paths.values().flatten()) {
            passed[link.index()] += 1;
        }
        let links = topology.links().iter().zip(&passed);
        let taken = links.filter(|(_, passed)| **passed > 0);
        let rates = taken.map(|(link, passed)| link.bandwidth.bytes_per_second() / passed);
        rates.min().unwrap_or(0) * cycles.len() as u64
    }

    /// Pairs of NPUs with links of 1 or 2 units both ways; one of them carries so many percent of that.
    fn with_a_slow_pair(chance: &mut Seed, count: u32, percent: u64) -> Option<[Topology; 3]> {
        let mut pairs: Vec<(u32, u32, u64)> = (0..count)
            .flat_map(|a| (0..a).map(move |b| (a, b)))
            .map(|(a, b)| (a, b, chance.below(3) as u64))
            .collect();
        pairs.retain(|&(.., units)| units > 0);
        let slow = chance.below(pairs.len().max(1));
        let network = |share: u64| {
            let mut builder = TopologyBuilder::new("pairs");
            builder.npus(count as usize);
            for (number, &(a, b, units)) in pairs.iter().enumerate() {
                let share = if number == slow { share } else { 100 };
                if share > 0 {
                    let rate = Bandwidth::from_bytes_per_second(units * share * 10_000_000)?;
                    let [a, b] = [a, b].map(|npu| NpuId(npu).device());
                    builder.both_ways(a, b, rate, Time::from_ns(10));
                }
            }
            builder.finish().ok()
        };
        Some([network(percent)?, network(100)?, network(0)?])
    }

    #[test]
    fn a_slow_link_costs_no_more_than_its_absence_or_its_neglect() {
        let mut chance = Seed(5);
        let mut gained = 0;
        for round in 0..300 {
            let percent = [99, 90, 60, 40][round % 4];
            let Some([slow, nominal, without]) =
                with_a_slow_pair(&mut chance, 3 + fit::<u32, _>(round % 4), percent)
            else {
                continue;
            };
            let npus: Vec<NpuId> = slow.npus().collect();
            let found = carried(&slow, &cycles(&slow, &npus));
            // Links have one number in all three but where one is missing.
            let neglected = carried(&slow, &cycles(&nominal, &npus));
            let avoided = carried(&without, &cycles(&without, &npus));
            assert!(
                found >= neglected.max(avoided),
                "{round}: {found} {neglected} {avoided}"
            );
            gained += usize::from(found > neglected && found > avoided);
        }
        assert!(gained > 5, "{gained}");
    }

    #[test]
    fn behind_a_switch_there_is_one_in_order() {
        let mut builder = TopologyBuilder::new("star");
        builder.npus(40);
        let hub = builder.switch("hub", None);
        for i in 0..40 {
            let npu = NpuId(i).device();
            builder.both_ways(npu, hub, gigabytes(1), Time::from_ns(10));
        }
        let network = builder.finish().unwrap();
        let npus: Vec<NpuId> = network.npus().collect();
        let found = cycles(&network, &npus);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].order, npus);
        assert!(cycles(&network, &npus[..2]).is_empty());
    }
}

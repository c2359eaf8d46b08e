//! Paths of equal time that differ in the switches, or the parallel links, that they take.

use std::collections::HashSet;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::Topology;
use super::shortest::RouteTree;
use crate::id::{DeviceId, LinkId, NpuId, narrow};
use crate::units::Seed;

/// Paths between two NPUs that are all shortest by time, then by hops, and pass switches only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathSet(pub u32);

/// The sets of equal paths between pairs of NPUs, for messages of given sizes.
///
/// A path that passes an NPU is in no set: it takes links, and on a real machine the processor, that
/// are another's, so that the choice among such paths is the algorithm's.
///
/// Pairs share a set where both senders hang on one switch by one link, and both receivers do: what differs
/// is between the switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EqualPaths {
    /// By NPU: its link out and its link in, where each is its only one and leads to or from a switch.
    only: [Vec<Option<LinkId>>; 2],
    /// Whether equal paths are equal for messages of every size.
    any_size: bool,
    sets: Vec<Set>,
    /// The links of each set's paths, one path after the other.
    links: Vec<LinkId>,
    index: FxHashMap<Key, u32>,
}

/// Where what differs starts and ends, and the size of messages (0: any).
type Key = (u32, u32, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Set {
    start: u32,
    hops: u32,
    paths: u32,
}

const NO_SET: u32 = u32::MAX;
/// Most paths of a set; of more, this many are taken, evenly.
const MAX_PATHS: u64 = 256;
/// Fewest where there are many sets, and links of all sets together.
const MIN_PATHS: u64 = 8;
const MAX_LINKS: u64 = 1 << 26;

impl EqualPaths {
    /// Returns whether any two NPUs may have equal paths at all; `false` is certain.
    ///
    /// # Complexity
    /// O(links log links).
    pub fn may_exist(topology: &Topology) -> bool {
        Islands::of(topology).is_none_or(|islands| islands.share_two_npus(topology))
    }

    /// Returns the equal paths of `wanted`: pairs of NPUs and the bytes of a message between them. Messages that end or
    /// start at a switch have none: which switch is to sum is the algorithm's choice.
    ///
    /// # Complexity
    /// One search, O(links log devices), for each receiver (or the switch that it hangs on) and size,
    /// and O(paths x hops) for each set.
    pub fn of(topology: &Topology, wanted: impl Iterator<Item = (NpuId, NpuId, u64)>) -> Self {
        let mut found = Self {
            only: [Side::Out, Side::In].map(|side| only_links(topology, side)),
            any_size: false,
            sets: Vec::new(),
            links: Vec::new(),
            index: FxHashMap::default(),
        };
        found.any_size = found.is_alike(topology);
        for (src, dst, bytes) in wanted {
            let key = found.key(topology, src, dst, bytes);
            if let Some(key) = key.filter(|key| key.0 != key.1) {
                found.index.insert(key, NO_SET);
            }
        }
        let mut keys: Vec<Key> = found.index.keys().copied().collect();
        keys.sort_unstable_by_key(|&(from, to, bytes)| (to, bytes, from));
        let most = MAX_LINKS / (4 * keys.len().max(1)) as u64;
        let most = most.clamp(MIN_PATHS, MAX_PATHS);
        for group in keys.chunk_by(|a, b| (a.1, a.2) == (b.1, b.2)) {
            let (_, to, bytes) = group[0];
            let mut tree = Ways::to(topology, DeviceId(to), bytes.max(1));
            for &key in group {
                if let Some(set) = tree.take(DeviceId(key.0), most, &mut found.links) {
                    found.index.insert(key, narrow(found.sets.len()));
                    found.sets.push(set);
                }
            }
        }
        found
    }

    /// Returns the paths from one NPU to another for a message of so many bytes, which must be among those that were
    /// wanted; `None` where there is only one.
    pub fn between(
        &self,
        topology: &Topology,
        src: NpuId,
        dst: NpuId,
        bytes: u64,
    ) -> Option<PathSet> {
        let set = self.index.get(&self.key(topology, src, dst, bytes)?);
        set.copied().filter(|&set| set != NO_SET).map(PathSet)
    }

    /// Returns whether there is no set.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Returns how many paths a set has: two or more.
    #[inline]
    pub fn count(&self, set: PathSet) -> usize {
        self.sets[set.0 as usize].paths as usize
    }

    /// Returns the part of a path in which it may differ from the others of its set.
    #[inline]
    pub fn middle(&self, set: PathSet, path: usize) -> &[LinkId] {
        let Set { start, hops, .. } = self.sets[set.0 as usize];
        let from = start as usize + path * hops as usize;
        &self.links[from..from + hops as usize]
    }

    /// Returns every link that some paths of a set take and others do not, in order.
    pub fn alternatives(&self) -> Vec<LinkId> {
        let mut found = Vec::new();
        for set in (0..narrow(self.sets.len())).map(PathSet) {
            let paths = || (0..self.count(set)).map(|path| self.middle(set, path));
            for hop in 0..self.sets[set.0 as usize].hops as usize {
                let first = self.middle(set, 0)[hop];
                if paths().any(|path| path[hop] != first) {
                    found.extend(paths().map(|path| path[hop]));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the links of a path from one NPU to another, in order.
    pub fn links(
        &self,
        (src, dst): (NpuId, NpuId),
        set: PathSet,
        path: usize,
    ) -> impl Iterator<Item = LinkId> + '_ {
        let [first, last] = [self.only[0][src.index()], self.only[1][dst.index()]];
        let middle = self.middle(set, path).iter().copied();
        first.into_iter().chain(middle).chain(last)
    }

    /// Returns the link of a path from one NPU to another at a hop; `None` after the last.
    #[inline]
    pub fn link(
        &self,
        (src, dst): (NpuId, NpuId),
        set: PathSet,
        path: usize,
        hop: usize,
    ) -> Option<LinkId> {
        let first = self.only[0][src.index()];
        if hop == 0 && first.is_some() {
            return first;
        }
        let middle = self.middle(set, path);
        let hop = hop - usize::from(first.is_some());
        match hop.cmp(&middle.len()) {
            std::cmp::Ordering::Less => Some(middle[hop]),
            std::cmp::Ordering::Equal => self.only[1][dst.index()],
            std::cmp::Ordering::Greater => None,
        }
    }

    /// Returns how many links each path from one NPU to another has.
    #[inline]
    pub fn hops(&self, (src, dst): (NpuId, NpuId), set: PathSet) -> usize {
        let ends = [self.only[0][src.index()], self.only[1][dst.index()]];
        self.sets[set.0 as usize].hops as usize + ends.iter().flatten().count()
    }

    /// Returns `None` where an end is a switch.
    fn key(&self, topology: &Topology, src: NpuId, dst: NpuId, bytes: u64) -> Option<Key> {
        let [out, back] = &self.only;
        let from = out.get(src.index())?;
        let to = back.get(dst.index())?;
        let from = from.map_or(src.0, |link| topology.link(link).dst.0);
        let to = to.map_or(dst.0, |link| topology.link(link).src.0);
        Some((from, to, if self.any_size { 0 } else { bytes }))
    }

    /// Returns whether the links between switches are all alike, no switch has a limit, and each NPU hangs on one
    /// switch by one link each way: then the paths with fewest hops are the shortest.
    fn is_alike(&self, topology: &Topology) -> bool {
        let leaves = |&npu: &NpuId| {
            let ends = [0, 1].map(|side| self.only[side][npu.index()].map(|id| topology.link(id)));
            matches!(ends, [Some(out), Some(back)] if out.dst == back.src)
        };
        let inner = |id: DeviceId| !topology.is_npu(id);
        let mut links = topology.links().iter();
        let Some(one) = links.find(|link| inner(link.src) && inner(link.dst)) else {
            return false;
        };
        let mut rest = links.filter(|link| inner(link.src) && inner(link.dst));
        rest.all(|link| (link.bandwidth, link.latency) == (one.bandwidth, one.latency))
            && topology
                .devices()
                .iter()
                .all(|device| device.limit.is_none())
            && topology.npus().all(|npu| leaves(&npu))
    }
}

#[derive(Clone, Copy)]
enum Side {
    Out,
    In,
}

fn only_links(topology: &Topology, side: Side) -> Vec<Option<LinkId>> {
    let only = |npu: NpuId| {
        let links = match side {
            Side::Out => topology.out_links(npu.device()),
            Side::In => topology.in_links(npu.device()),
        };
        let [link] = links else { return None };
        let end = match side {
            Side::Out => topology.link(*link).dst,
            Side::In => topology.link(*link).src,
        };
        (!topology.is_npu(end)).then_some(*link)
    };
    topology.npus().map(only).collect()
}

/// The shortest ways over switches to one device, counted.
struct Ways<'a> {
    topology: &'a Topology,
    tree: RouteTree,
    /// By device: how many there are, or `UNKNOWN`.
    count: Vec<u64>,
    /// By device, once they were asked for: the best links, and where they lead.
    steps: Vec<Option<Steps>>,
}

/// Links, and where each leads.
type Steps = Rc<[(LinkId, DeviceId)]>;

const UNKNOWN: u64 = u64::MAX;

impl<'a> Ways<'a> {
    fn to(topology: &'a Topology, dst: DeviceId, bytes: u64) -> Self {
        let mut count = vec![UNKNOWN; topology.device_count()];
        count[dst.index()] = 1;
        Self {
            topology,
            tree: RouteTree::to(topology, dst, bytes, None),
            count,
            steps: vec![None; topology.device_count()],
        }
    }

    /// Returns the best links at a device, and where they lead; NPUs pass nothing on.
    fn steps(&mut self, device: DeviceId) -> Steps {
        if let Some(steps) = &self.steps[device.index()] {
            return Rc::clone(steps);
        }
        let end = |id: LinkId| (id, self.topology.link(id).dst);
        let leads_on =
            |&(_, end): &(LinkId, DeviceId)| end == self.tree.dst() || !self.topology.is_npu(end);
        let best = self.tree.equal(self.topology, device);
        let steps: Steps = best.map(end).filter(leads_on).collect();
        self.steps[device.index()] = Some(Rc::clone(&steps));
        steps
    }

    fn count(&mut self, device: DeviceId) -> u64 {
        if self.count[device.index()] == UNKNOWN {
            let mut sum = 0u64;
            for &(_, end) in &*self.steps(device) {
                sum = sum.saturating_add(self.count(end)).min(UNKNOWN - 1);
            }
            self.count[device.index()] = sum;
        }
        self.count[device.index()]
    }

    /// Appends the paths from a device, `most` of them where there are more; `None` for fewer than two.
    fn take(&mut self, from: DeviceId, most: u64, links: &mut Vec<LinkId>) -> Option<Set> {
        let all = self.count(from);
        if all < 2 {
            return None;
        }
        let paths = u32::try_from(all.min(most)).expect("at most MAX_PATHS");
        let start = links.len();
        // Where some are left out, pairs leave out different ones.
        let pair = u64::from(from.0) << 32 | u64::from(self.tree.dst().0);
        let offset = if all > most {
            Seed(pair).next_u64() % all
        } else {
            0
        };
        for i in 0..paths {
            let even = u128::from(i) * u128::from(all) / u128::from(paths);
            let rank = (even + u128::from(offset)) % u128::from(all);
            let rank = u64::try_from(rank).expect("below all");
            self.walk(from, rank, links);
        }
        Some(Set {
            start: narrow(start),
            hops: narrow(links.len() - start) / paths,
            paths,
        })
    }

    /// Appends the path of a rank, in the order of the links' ends.
    fn walk(&mut self, from: DeviceId, mut rank: u64, links: &mut Vec<LinkId>) {
        let mut device = from;
        while device != self.tree.dst() {
            let steps = self.steps(device);
            for &(link, end) in &*steps {
                let below = self.count(end);
                if rank < below {
                    links.push(link);
                    device = end;
                    break;
                }
                rank -= below;
            }
        }
    }
}

/// Switches that are joined among each other, in trees.
struct Islands {
    /// By device; NPUs have none.
    island: Vec<u32>,
}

impl Islands {
    /// Returns `None` where links are parallel, or links between switches close a circle.
    fn of(topology: &Topology) -> Option<Self> {
        let end = |id: &LinkId| topology.link(*id).dst;
        let devices = || (0..topology.device_count()).map(DeviceId::from);
        let is_parallel = |device| {
            let links = topology.out_links(device);
            links.windows(2).any(|pair| end(&pair[0]) == end(&pair[1]))
        };
        if devices().any(is_parallel) {
            return None;
        }
        let mut island = vec![NO_SET; topology.device_count()];
        for start in devices().skip(topology.npu_count()) {
            if island[start.index()] != NO_SET {
                continue;
            }
            let mut stack = vec![(start, start)];
            while let Some((device, before)) = stack.pop() {
                if std::mem::replace(&mut island[device.index()], start.0) != NO_SET {
                    return None;
                }
                let next = neighbours(topology, device);
                let next = next
                    .into_iter()
                    .filter(|&end| !topology.is_npu(end) && end != before);
                stack.extend(next.map(|end| (end, device)));
            }
        }
        Some(Self { island })
    }

    /// Returns whether an NPU hangs on one island twice, or two islands have two NPUs in common.
    fn share_two_npus(&self, topology: &Topology) -> bool {
        let mut joined = HashSet::new();
        for npu in topology.npus() {
            let ends = neighbours(topology, npu.device());
            let ends = ends.into_iter().filter(|&end| !topology.is_npu(end));
            let mut islands: Vec<u32> = ends.map(|end| self.island[end.index()]).collect();
            islands.sort_unstable();
            let twice = islands.windows(2).any(|pair| pair[0] == pair[1]);
            let mut pairs = (0..islands.len())
                .flat_map(|i| (0..i).map(move |j| (i, j)))
                .map(|(i, j)| (islands[i], islands[j]));
            if twice || pairs.any(|pair| !joined.insert(pair)) {
                return true;
            }
        }
        false
    }
}

/// Where links of either direction join a device to, each once.
fn neighbours(topology: &Topology, device: DeviceId) -> Vec<DeviceId> {
    let out = topology.out_links(device).iter();
    let back = topology.in_links(device).iter();
    let mut ends: Vec<DeviceId> = out
        .map(|&id| topology.link(id).dst)
        .chain(back.map(|&id| topology.link(id).src))
        .collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

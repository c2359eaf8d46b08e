//! Which links each transfer of a plan takes.

use std::collections::HashMap;

use super::path_choice;
use super::{Lists, Plan, Routing};
use crate::id::{DeviceId, LinkId, NpuId, TransferId, narrow};
use crate::topology::Topology;
use crate::topology::equal::{EqualPaths, PathSet};
use crate::topology::shortest::RouteTree;
use crate::units::{Bandwidth, Time};

/// The route of every transfer: its explicit path, or the shortest by time for its bytes.
///
/// Routes are shared: four bytes a transfer, and a tree of next hops for each destination that many
/// senders reach over several hops, so that half a billion hops need no list of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    route: Vec<u32>,
    paths: Lists<LinkId>,
    trees: Vec<Box<[u32]>>,
    /// Of a plan whose transfers are sprayed.
    equal: Option<Box<EqualPaths>>,
}

/// One route, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// A single link.
    Link(LinkId),
    /// Position in [`Routes::paths`].
    Path(u32),
    /// Position of a tree of next hops, see [`Routes::next`].
    Tree(u32),
    /// All paths of a set of [`Routes::equal`].
    Spray(PathSet),
}

const PATH: u32 = 1 << 30;
const TREE: u32 = 2 << 30;
const SPRAY: u32 = 3 << 30;
const INDEX: u32 = PATH - 1;
const NO_LINK: u32 = u32::MAX;
/// Senders to one destination, at one size, that are searched one by one before a tree is made.
const SINGLE_SEARCHES: u32 = 8;

/// A transfer whose sender has no way to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoute {
    /// The transfer.
    pub transfer: TransferId,
}

impl Routes {
    /// Finds the route of every transfer. Explicit paths are taken as they are.
    ///
    /// # Errors
    /// [`NoRoute`] for the first transfer that has none.
    ///
    /// # Complexity
    /// O(transfers) where sender and receiver are joined by one link or one switch; otherwise one
    /// search, O(links log devices), for each destination and size.
    pub fn resolve(plan: &Plan, topology: &Topology) -> Result<Self, NoRoute> {
        let equal = sprayed(plan, topology);
        let mut router = Router::new(topology, plan.paths().clone(), plan.len());
        let mut route = Vec::with_capacity(plan.len());
        for i in 0..plan.len() {
            let transfer = TransferId(narrow(i));
            let found = match plan.path()[i] {
                Plan::DEFAULT_ROUTE => {
                    let (src, dst) = (NpuId(plan.src()[i]), NpuId(plan.dst()[i]));
                    let bytes = plan.bytes(transfer);
                    let set = equal
                        .as_ref()
                        .and_then(|equal| equal.between(topology, src, dst, bytes));
                    match set {
                        Some(set) => set.0 | SPRAY,
                        None => router.route(src, dst, bytes).ok_or(NoRoute { transfer })?,
                    }
                }
                path => path | PATH,
            };
            route.push(found);
        }
        Ok(Self {
            route,
            paths: router.paths,
            trees: router.trees,
            equal,
        })
    }

    /// Returns the route of a transfer.
    #[inline]
    pub fn route(&self, transfer: TransferId) -> Route {
        let bits = self.route[transfer.index()];
        match bits & !INDEX {
            0 => Route::Link(LinkId(bits)),
            PATH => Route::Path(bits & INDEX),
            TREE => Route::Tree(bits & INDEX),
            _ => Route::Spray(PathSet(bits & INDEX)),
        }
    }

    /// Returns the paths that routes share.
    pub fn paths(&self) -> &Lists<LinkId> {
        &self.paths
    }

    /// Returns the equal paths over which transfers are sprayed; `None` where none is.
    pub fn equal(&self) -> Option<&EqualPaths> {
        self.equal.as_deref()
    }

    /// Returns the next link at a device of a tree that leads on from there.
    #[inline]
    pub fn next(&self, tree: u32, device: DeviceId) -> LinkId {
        LinkId(self.trees[tree as usize][device.index()])
    }

    /// Where a part of a sprayed transfer is that takes a path of its set, before its first link.
    #[inline]
    pub fn start_on(&self, plan: &Plan, transfer: TransferId, set: PathSet, path: usize) -> u32 {
        let equal = self.equal.as_ref().expect("a set is of the equal paths");
        let hops = equal.hops(ends(plan, transfer), set);
        narrow(path * (hops + 1))
    }

    /// Where a transfer is before its first link, for [`follow`](Self::follow); of a sprayed one, the part on
    /// its first path.
    #[inline]
    pub fn start(&self, plan: &Plan, transfer: TransferId) -> u32 {
        match self.route(transfer) {
            Route::Tree(_) => plan.src()[transfer.index()],
            _ => 0,
        }
    }

    /// Returns the next link of a transfer, and where it is after that; `None` once it has arrived.
    #[inline]
    pub fn follow(
        &self,
        plan: &Plan,
        topology: &Topology,
        transfer: TransferId,
        at: u32,
    ) -> Option<(LinkId, u32)> {
        match self.route(transfer) {
            Route::Link(link) => (at == 0).then_some((link, 1)),
            Route::Path(path) => {
                let links = self.paths.get(path as usize);
                links.get(at as usize).map(|&link| (link, at + 1))
            }
            Route::Tree(tree) => (at != plan.dst()[transfer.index()]).then(|| {
                let link = self.next(tree, DeviceId(at));
                (link, topology.link(link).dst.0)
            }),
            Route::Spray(set) => {
                let equal = self.equal.as_ref()?;
                let ends = ends(plan, transfer);
                let places = equal.hops(ends, set) + 1;
                let (path, hop) = (at as usize / places, at as usize % places);
                let link = equal.link(ends, set, path, hop);
                link.map(|link| (link, at + 1))
            }
        }
    }

    /// The links a transfer takes, in order; of a sprayed one those of its first path.
    pub fn links(&self, plan: &Plan, topology: &Topology, transfer: TransferId) -> Vec<LinkId> {
        let mut at = self.start(plan, transfer);
        let mut links = Vec::new();
        while let Some((link, next)) = self.follow(plan, topology, transfer, at) {
            links.push(link);
            at = next;
        }
        links
    }
}

fn ends(plan: &Plan, transfer: TransferId) -> (NpuId, NpuId) {
    let i = transfer.index();
    (NpuId(plan.src()[i]), NpuId(plan.dst()[i]))
}

/// Returns the equal paths of a plan whose transfers are sprayed; `None` where there are none.
fn sprayed(plan: &Plan, topology: &Topology) -> Option<Box<EqualPaths>> {
    if plan.routing() != Routing::Spray || !EqualPaths::may_exist(topology) {
        return None;
    }
    let equal = path_choice::equal_paths(plan, topology);
    (!equal.is_empty()).then(|| Box::new(equal))
}

/// Most slots of the cache of a sender's latest routes.
const CACHED: usize = 64;

struct Router<'a> {
    topology: &'a Topology,
    paths: Lists<LinkId>,
    trees: Vec<Box<[u32]>>,
    slots: usize,
    cache: Vec<(u32, u64, u32)>,
    path_ids: HashMap<Vec<LinkId>, u32>,
    tree_ids: HashMap<(u32, u64), u32>,
    searches: HashMap<(u32, u64), u32>,
    searched: HashMap<(u32, u32, u64), u32>,
    uniform: bool,
    /// The widest bandwidth and the lowest latency of any link.
    best_link: Option<(Bandwidth, Time)>,
}

impl<'a> Router<'a> {
    fn new(topology: &'a Topology, paths: Lists<LinkId>, transfers: usize) -> Self {
        let slots = (transfers / topology.end_count()).clamp(1, CACHED);
        Self {
            slots,
            topology,
            paths,
            trees: Vec::new(),
            cache: vec![(u32::MAX, 0, 0); topology.end_count() * slots],
            path_ids: HashMap::new(),
            tree_ids: HashMap::new(),
            searches: HashMap::new(),
            searched: HashMap::new(),
            uniform: is_uniform(topology),
            best_link: best_link(topology),
        }
    }

    #[inline]
    fn route(&mut self, src: NpuId, dst: NpuId, bytes: u64) -> Option<u32> {
        let key = u64::from(dst.0) ^ bytes.rotate_left(32);
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        let slot = src.index() * self.slots + hash as usize % self.slots;
        let cached = self.cache[slot];
        if (cached.0, cached.1) == (dst.0, bytes) {
            return Some(cached.2);
        }
        let found = self.find(src, dst, bytes)?;
        self.cache[slot] = (dst.0, bytes, found);
        Some(found)
    }

    fn find(&mut self, src: NpuId, dst: NpuId, bytes: u64) -> Option<u32> {
        let Some(near) = self.near(src.device(), dst.device(), bytes) else {
            return self.far(src, dst, bytes);
        };
        if near.time <= self.three_links_at_least(src.device(), dst.device(), bytes)? {
            return Some(self.near_route(&near));
        }
        let key = (src.0, dst.0, bytes);
        if let Some(&route) = self.searched.get(&key) {
            return Some(route);
        }
        let (topology, src) = (self.topology, src.device());
        let tree = RouteTree::within(topology, dst.device(), bytes, Some(src), near.time);
        let route = match tree.path(topology, src) {
            Some(links) => self.path(links),
            None => self.near_route(&near),
        };
        self.searched.insert(key, route);
        Some(route)
    }

    /// Returns the best way where there is none of one or two links.
    fn far(&mut self, src: NpuId, dst: NpuId, bytes: u64) -> Option<u32> {
        let key = (dst.0, bytes);
        if !self.tree_ids.contains_key(&key) {
            let searches = self.searches.entry(key).or_insert(0);
            *searches += 1;
            // What ends at a switch passes its limit there, which paths know.
            if *searches <= SINGLE_SEARCHES || !self.topology.is_npu(dst.device()) {
                let tree = RouteTree::to(self.topology, dst.device(), bytes, Some(src.device()));
                let links = tree.path(self.topology, src.device())?;
                return Some(self.path(links));
            }
            let tree = RouteTree::to(self.topology, dst.device(), bytes, None);
            let next = (0..self.topology.device_count())
                .map(|device| {
                    tree.next(DeviceId::from(device))
                        .map_or(NO_LINK, |link| link.0)
                })
                .collect();
            self.trees.push(next);
            self.tree_ids.insert(key, narrow(self.trees.len() - 1));
        }
        let tree = self.tree_ids[&key];
        (self.trees[tree as usize][src.index()] != NO_LINK).then_some(tree | TREE)
    }

    fn near_route(&mut self, near: &Near) -> u32 {
        match near.second {
            None if self.topology.is_npu(self.topology.link(near.first).dst) => near.first.0,
            None => self.path(vec![near.first]),
            Some(second) => self.path(vec![near.first, second]),
        }
    }

    fn path(&mut self, links: Vec<LinkId>) -> u32 {
        let paths = &mut self.paths;
        let id = self
            .path_ids
            .entry(links)
            .or_insert_with_key(|links| paths.push(links));
        *id | PATH
    }

    fn length(&self, link: LinkId, bytes: u64) -> Time {
        let link = self.topology.link(link);
        let crossing = self.topology.device(link.dst).limit;
        let crossing = crossing.map_or(Time::ZERO, |limit| limit.transmission(bytes));
        link.latency + link.bandwidth.transmission(bytes) + crossing
    }

    /// Returns the best way of one or two links: ties go to one link, then to the lowest ids.
    fn near(&self, src: DeviceId, dst: DeviceId, bytes: u64) -> Option<Near> {
        let topology = self.topology;
        let one = topology.links_from_to(src, dst).iter().map(|&first| Near {
            time: self.length(first, bytes),
            is_two: false,
            first,
            second: None,
        });
        let best = one.min();
        if best.is_some() && self.uniform {
            return best;
        }
        let two = topology.out_links(src).iter().flat_map(|&first| {
            let seconds = topology.links_from_to(topology.link(first).dst, dst).iter();
            seconds.map(move |&second| (first, second))
        });
        let two = two.map(|(first, second)| Near {
            time: self.length(first, bytes) + self.length(second, bytes),
            is_two: true,
            first,
            second: Some(second),
        });
        best.into_iter().chain(two).min()
    }

    /// Returns what a way of three links or more takes at least: the sender's fastest link out, the receiver's fastest
    /// link in, and a link that is as quick and as wide as any.
    fn three_links_at_least(&self, src: DeviceId, dst: DeviceId, bytes: u64) -> Option<Time> {
        if self.uniform {
            return Some(Time::MAX);
        }
        let fastest = |links: &[LinkId]| links.iter().map(|&link| self.length(link, bytes)).min();
        let ends = fastest(self.topology.out_links(src))? + fastest(self.topology.in_links(dst))?;
        let (widest, quickest) = self.best_link?;
        Some(ends + quickest + widest.transmission(bytes))
    }
}

/// A way of one or two links; ordered by time, then one link before two, then by ids.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Near {
    time: Time,
    is_two: bool,
    first: LinkId,
    second: Option<LinkId>,
}

/// Returns whether all links are alike and no switch has a limit, so that fewer links are always faster.
fn is_uniform(topology: &Topology) -> bool {
    let mut links = topology.links().iter();
    let Some(one) = links.next() else {
        return true;
    };
    links.all(|link| (link.bandwidth, link.latency) == (one.bandwidth, one.latency))
        && topology
            .devices()
            .iter()
            .all(|device| device.limit.is_none())
}

fn best_link(topology: &Topology) -> Option<(Bandwidth, Time)> {
    let links = topology.links().iter();
    let widest = links.clone().map(|link| link.bandwidth).max()?;
    Some((widest, links.map(|link| link.latency).min()?))
}

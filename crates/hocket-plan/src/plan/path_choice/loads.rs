//! What links and switches carry, in one step and in all.

use rustc_hash::FxHashMap;

use crate::id::{DeviceId, LinkId};
use crate::topology::Topology;
use crate::topology::equal::{EqualPaths, PathSet};
use crate::units::Beta;

/// What a link carries, in picoseconds.
#[derive(Clone, Copy, Default)]
struct Load {
    /// In this step.
    now: u64,
    all: u64,
}

/// What a path would carry: its busiest link in this step, its busiest link in all steps, its switches
/// together. Less is better, the first first.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    now: u64,
    all: u64,
    switches: u64,
}

/// Loads of links and switches.
pub(super) struct Loads<'a> {
    topology: &'a Topology,
    beta: Vec<Beta>,
    links: Vec<Load>,
    /// By device, in bytes.
    switches: Vec<u64>,
    /// What was added in this step: links, and bytes.
    added: Vec<(LinkId, u64)>,
    /// The costs of the beginning of a path, link by link; kept for its memory.
    costs: Vec<Cost>,
}

impl<'a> Loads<'a> {
    pub(super) fn new(topology: &'a Topology) -> Self {
        let links = topology.links();
        Self {
            topology,
            beta: links.iter().map(|link| link.bandwidth.beta()).collect(),
            links: vec![Load::default(); links.len()],
            switches: vec![0; topology.device_count()],
            added: Vec::new(),
            costs: Vec::new(),
        }
    }

    /// A step begins.
    pub(super) fn begin(&mut self) {
        for (link, _) in self.added.drain(..) {
            self.links[link.index()].now = 0;
        }
    }

    /// Returns the path of a set that is best for a message of so many bytes; the first of several.
    ///
    /// Paths that begin alike are looked at once as far as they are alike.
    pub(super) fn best(&mut self, equal: &EqualPaths, set: PathSet, bytes: u64) -> usize {
        let mut best: Option<(Cost, usize)> = None;
        let mut costs = std::mem::take(&mut self.costs);
        costs.clear();
        let mut before: &[LinkId] = &[];
        for path in 0..equal.count(set) {
            let links = equal.middle(set, path);
            let alike = before.iter().zip(links).take_while(|(a, b)| a == b).count();
            // As many as were counted before the last path was given up.
            costs.truncate(alike);
            before = links;
            let is_worse = |cost: &Cost| best.is_some_and(|(best, _)| cost.now > best.now);
            while costs.len() < links.len() && !costs.last().is_some_and(is_worse) {
                let cost = costs.last().copied().unwrap_or_default();
                costs.push(self.after(cost, links[costs.len()], bytes));
            }
            let Some(&cost) = costs.get(links.len() - 1) else {
                continue;
            };
            if best.is_none_or(|(best, _)| cost < best) {
                best = Some((cost, path));
            }
        }
        self.costs = costs;
        best.map_or(0, |(_, path)| path)
    }

    fn after(&self, cost: Cost, link: LinkId, bytes: u64) -> Cost {
        let own = self.beta[link.index()].transmission(bytes).as_ps();
        let load = self.links[link.index()];
        let switch = self.switches[self.topology.link(link).dst.index()];
        Cost {
            now: cost.now.max(load.now.saturating_add(own)),
            all: cost.all.max(load.all.saturating_add(own)),
            switches: cost.switches.saturating_add(switch),
        }
    }

    /// A message takes a path.
    pub(super) fn add(&mut self, path: &[LinkId], bytes: u64) {
        for &link in path {
            let own = self.beta[link.index()].transmission(bytes).as_ps();
            let load = &mut self.links[link.index()];
            load.now = load.now.saturating_add(own);
            load.all = load.all.saturating_add(own);
            let switch = &mut self.switches[self.topology.link(link).dst.index()];
            *switch = switch.saturating_add(bytes);
            self.added.push((link, bytes));
        }
    }

    /// Takes back what was added in this step.
    pub(super) fn take_back(&mut self) {
        for (link, bytes) in self.added.drain(..) {
            let own = self.beta[link.index()].transmission(bytes).as_ps();
            let load = &mut self.links[link.index()];
            load.now = 0;
            load.all = load.all.saturating_sub(own);
            let switch = &mut self.switches[self.topology.link(link).dst.index()];
            *switch = switch.saturating_sub(bytes);
        }
    }

    /// Returns the load of the busiest link in this step.
    pub(super) fn busiest(&self) -> u64 {
        let loads = self
            .added
            .iter()
            .map(|(link, _)| self.links[link.index()].now);
        loads.max().unwrap_or(0)
    }

    /// Returns whether messages might load the busiest link of this step less: no switch that they leave, or come to,
    /// has so much to carry that one of its links must be as busy, in whole messages.
    ///
    /// Takes the first and the last link of one path of each message, and its bytes.
    pub(super) fn could_be_less(&self, messages: impl Iterator<Item = ([LinkId; 2], u64)>) -> bool {
        let mut carried: FxHashMap<(DeviceId, usize), u64> = FxHashMap::default();
        let mut largest = 0;
        for (ends, bytes) in messages {
            for (side, id) in ends.into_iter().enumerate() {
                let own = self.beta[id.index()].transmission(bytes).as_ps();
                let link = self.topology.link(id);
                let load = carried
                    .entry(([link.src, link.dst][side], side))
                    .or_insert(0);
                *load = load.saturating_add(own);
                largest = largest.max(own);
            }
        }
        let share = |(&(device, side), &load): (&(DeviceId, usize), &u64)| {
            let links = match side {
                0 => self.topology.out_links(device),
                _ => self.topology.in_links(device),
            };
            let end =
                |id: &LinkId| [self.topology.link(*id).dst, self.topology.link(*id).src][side];
            let across = links
                .iter()
                .filter(|id| !self.topology.is_npu(end(id)))
                .count();
            load / across.max(1) as u64
        };
        let least = carried.iter().map(share).max().unwrap_or(0);
        self.busiest() > largest.max(least.saturating_add(largest / 2))
    }
}

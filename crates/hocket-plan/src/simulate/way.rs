//! What a transfer passes on its way: links, and the limits and rates of switches.

use std::collections::HashMap;

use crate::id::{DeviceId, LinkId, TransferId, narrow};
use crate::plan::{Lists, Plan, Route, Routes};
use crate::topology::Topology;
use crate::units::Bandwidth;
use crate::verify::Verified;

/// A message somewhere on its way.
#[derive(Clone, Copy)]
pub(super) struct Message {
    pub(super) transfer: u32,
    /// Where on its route: the position on a path, or the device in a tree (see [`Way`]).
    pub(super) at: u32,
}

/// Which servers each transfer passes. Servers `0..links` are the links, then come switches' limits and rates, see
/// [`switch_servers`].
pub(super) struct Way<'a> {
    pub(super) plan: &'a Plan,
    pub(super) topology: &'a Topology,
    routes: &'a Routes,
    /// Server of each device's own limit, or `NONE`; empty where no device has one.
    limits: Vec<u32>,
    /// The servers of each shared path, limits included, and the rate at which a switch takes in what ends there.
    paths: Lists<u32>,
}

/// Returns the servers of switches, in the order of [`Way`]: the limits of those that have one, then the rates at which
/// switches take in what ends there.
pub(super) fn switch_servers(topology: &Topology) -> impl Iterator<Item = Bandwidth> + '_ {
    let devices = topology.devices().iter();
    let rates = devices.clone().filter_map(|device| device.offload?.rate);
    devices.filter_map(|device| device.limit).chain(rates)
}

const NONE: u32 = u32::MAX;
/// Set in [`Message::at`] of a tree route: the device's own limit is behind it.
const PASSED: u32 = 1 << 31;

impl<'a> Way<'a> {
    pub(super) fn new(verified: &'a Verified) -> Self {
        let topology = verified.topology();
        let mut next = narrow(topology.links().len());
        let mut limits = Vec::new();
        if topology
            .devices()
            .iter()
            .any(|device| device.limit.is_some())
        {
            for device in topology.devices() {
                limits.push(if device.limit.is_some() { next } else { NONE });
                next += u32::from(device.limit.is_some());
            }
        }
        let mut rates = HashMap::new();
        for (id, device) in (0..).zip(topology.devices()) {
            if device.offload.is_some_and(|offload| offload.rate.is_some()) {
                rates.insert(DeviceId(id), next);
                next += 1;
            }
        }
        let mut paths = Lists::default();
        for path in verified.routes().paths().iter() {
            let mut servers = Vec::with_capacity(path.len());
            for link in path {
                servers.push(link.0);
                let limit = limits.get(topology.link(*link).dst.index()).copied();
                servers.extend(limit.filter(|&limit| limit != NONE));
            }
            // Whatever takes a path that ends at a switch ends there.
            let end = path.last().map(|&link| topology.link(link).dst);
            servers.extend(end.and_then(|end| rates.get(&end)));
            paths.push(&servers);
        }
        Self {
            plan: verified.plan(),
            topology,
            routes: verified.routes(),
            limits,
            paths,
        }
    }

    /// Returns the same where one link of several alike serves the messages of all: of paths that pass no switch with a
    /// limit, and of transfers that have explicit paths.
    pub(super) fn folded(verified: &'a Verified, stands_for: &[LinkId]) -> Self {
        let paths = verified.routes().paths().iter();
        let mut folded = Lists::default();
        for path in paths {
            let servers: Vec<u32> = path.iter().map(|link| stands_for[link.index()].0).collect();
            folded.push(&servers);
        }
        Self {
            paths: folded,
            ..Self::new(verified)
        }
    }

    pub(super) fn start(&self, transfer: u32) -> Message {
        let at = match self.routes.route(TransferId(transfer)) {
            Route::Tree(_) => {
                let src = self.plan.src()[transfer as usize];
                // What starts at a switch came in before.
                src | if self.topology.is_npu(DeviceId(src)) {
                    0
                } else {
                    PASSED
                }
            }
            _ => 0,
        };
        Message { transfer, at }
    }

    /// Returns the server that a message goes to, and where it is after that; `None` once it has arrived.
    #[inline]
    pub(super) fn next(&self, message: Message) -> Option<(u32, u32)> {
        let at = message.at;
        match self.routes.route(TransferId(message.transfer)) {
            Route::Link(link) => (at == 0).then_some((link.0, 1)),
            Route::Path(path) => {
                let servers = self.paths.get(path as usize);
                servers.get(at as usize).map(|&server| (server, at + 1))
            }
            Route::Spray(_) => {
                let (plan, topology) = (self.plan, self.topology);
                let next = self
                    .routes
                    .follow(plan, topology, TransferId(message.transfer), at);
                next.map(|(link, at)| (link.0, at))
            }
            Route::Tree(tree) => {
                let device = at & !PASSED;
                if device == self.plan.dst()[message.transfer as usize] {
                    return None;
                }
                if at & PASSED == 0 && !self.limits.is_empty() {
                    let limit = self.limits[device as usize];
                    if limit != NONE {
                        return Some((limit, at | PASSED));
                    }
                }
                let link = self.routes.next(tree, DeviceId(device));
                Some((link.0, self.topology.link(link).dst.0))
            }
        }
    }

    /// Returns how many paths a transfer is sprayed over, if it is.
    pub(super) fn sprayed(&self, transfer: u32) -> Option<usize> {
        match self.routes.route(TransferId(transfer)) {
            Route::Spray(set) => self.routes.equal().map(|equal| equal.count(set)),
            _ => None,
        }
    }

    /// Returns the servers of one of the paths that a transfer is sprayed over.
    pub(super) fn servers_on(&self, transfer: u32, path: usize) -> Vec<u32> {
        let Route::Spray(set) = self.routes.route(TransferId(transfer)) else {
            return Vec::new();
        };
        let id = TransferId(transfer);
        let mut at = self.routes.start_on(self.plan, id, set, path);
        let mut servers = Vec::new();
        while let Some((link, next)) = self.routes.follow(self.plan, self.topology, id, at) {
            servers.push(link.0);
            let limit = self
                .limits
                .get(self.topology.link(link).dst.index())
                .copied();
            servers.extend(limit.filter(|&limit| limit != NONE));
            at = next;
        }
        servers
    }
}

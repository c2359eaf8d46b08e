//! Packets of a transfer that is sprayed over equal paths: each in turn takes the next path.
//!
//! A sender's queue is of one link, so that a sprayed transfer stands in the queue of each link on which one of its
//! paths begins, with the packets that take those.

use super::options::PacketOptions;
use crate::id::{NpuId, TransferId, fit};
use crate::plan::Route;
use crate::topology::equal::{EqualPaths, PathSet};
use crate::verify::Verified;

/// A packet of a sprayed transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sprayed {
    /// Which of the transfer's packets it is.
    pub(super) number: u64,
    /// Where it is before its first link.
    pub(super) at: u32,
    pub(super) bytes: u64,
}

/// A transfer on all its paths.
struct Spray<'a> {
    equal: &'a EqualPaths,
    ends: (NpuId, NpuId),
    set: PathSet,
    bytes: u64,
    packet_bytes: u64,
    /// Which path the first packet takes: another for each transfer, so that those that start together differ.
    first: u64,
}

impl<'a> Spray<'a> {
    /// Returns `None` for a transfer with one path.
    fn of(verified: &'a Verified, options: &PacketOptions, transfer: u32) -> Option<Self> {
        let equal = verified.routes().equal()?;
        let Route::Spray(set) = verified.routes().route(TransferId(transfer)) else {
            return None;
        };
        let (plan, i) = (verified.plan(), transfer as usize);
        Some(Self {
            equal,
            ends: (NpuId(plan.src()[i]), NpuId(plan.dst()[i])),
            set,
            bytes: plan.bytes(TransferId(transfer)),
            packet_bytes: options.packet_bytes,
            first: u64::from(transfer),
        })
    }

    fn packets(&self) -> u64 {
        self.bytes.div_ceil(self.packet_bytes)
    }

    fn path(&self, number: u64) -> usize {
        fit((number + self.first) % self.equal.count(self.set) as u64)
    }

    fn bytes(&self, number: u64) -> u64 {
        let before = number * self.packet_bytes;
        (self.bytes - before).min(self.packet_bytes)
    }

    /// Returns the link on which a path begins.
    fn first_link(&self, path: usize) -> Option<u32> {
        let link = self.equal.link(self.ends, self.set, path, 0);
        link.map(|link| link.0)
    }
}

/// Returns the links on which a transfer's packets begin.
pub(super) fn first_links(
    verified: &Verified,
    options: &PacketOptions,
    transfer: u32,
) -> impl Iterator<Item = u32> + use<> {
    let spray = Spray::of(verified, options, transfer);
    let mut sprayed = Vec::new();
    if let Some(spray) = &spray {
        let paths = spray.equal.count(spray.set) as u64;
        let packets = 0..paths.min(spray.packets());
        let used = packets.filter_map(|number| spray.first_link(spray.path(number)));
        sprayed.extend(used);
        sprayed.sort_unstable();
        sprayed.dedup();
    }
    let only = match spray {
        Some(_) => None,
        None => {
            let (plan, topology) = (verified.plan(), verified.topology());
            let (routes, id) = (verified.routes(), TransferId(transfer));
            let first = routes.follow(plan, topology, id, routes.start(plan, id));
            first.map(|(link, _)| link.0)
        }
    };
    only.into_iter().chain(sprayed)
}

/// Returns the bytes of a transfer's packets that begin on a link.
pub(super) fn bytes_over(
    verified: &Verified,
    options: &PacketOptions,
    transfer: u32,
    link: u32,
) -> u64 {
    let Some(spray) = Spray::of(verified, options, transfer) else {
        return verified.plan().bytes(TransferId(transfer));
    };
    let (packets, paths) = (spray.packets(), spray.equal.count(spray.set) as u64);
    // Every `paths`th packet takes the path of one of the first.
    let alike = |first: u64| {
        if spray.first_link(spray.path(first)) != Some(link) {
            return 0;
        }
        let whole = (packets - 1 - first) / paths;
        whole * spray.packet_bytes + spray.bytes(first + whole * paths)
    };
    (0..paths.min(packets)).map(alike).sum()
}

/// Returns the packet of number `from`, or the first after it, that begins on a link; `None` for a transfer with one
/// path.
pub(super) fn packet(
    verified: &Verified,
    options: &PacketOptions,
    transfer: u32,
    link: u32,
    from: u64,
) -> Option<Sprayed> {
    let spray = Spray::of(verified, options, transfer)?;
    let mut rest = from..spray.packets();
    let number = rest.find(|&number| spray.first_link(spray.path(number)) == Some(link))?;
    let (plan, id) = (verified.plan(), TransferId(transfer));
    let path = spray.path(number);
    Some(Sprayed {
        number,
        at: verified.routes().start_on(plan, id, spray.set, path),
        bytes: spray.bytes(number),
    })
}

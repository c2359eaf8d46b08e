//! Random collectives: every kind, custom demands, among some of the NPUs, of sizes that do not divide.

use hocket_core::collective::{Collective, CollectiveKind, Demand, NpuSet};
use hocket_core::id::{NpuId, Rank};
use hocket_core::topology::Topology;
use hocket_core::units::Seed;

/// Bytes from 1 to 16 MiB, every order of magnitude alike; up to a pebibyte now and then.
fn size(seed: &mut Seed) -> u64 {
    let most = if seed.below(8) == 0 { 51 } else { 25 };
    let bits = seed.below(most);
    1 + seed.below(1 << bits) as u64
}

/// A collective on a topology.
pub(crate) fn collective(topology: &Topology, seed: &mut Seed) -> Collective {
    let mut npus: Vec<NpuId> = topology.npus().collect();
    // Helpers are left out; so that dimension fidelity applies often, all take part in half of all cases.
    if seed.below(2) == 0 {
        for i in (1..npus.len()).rev() {
            npus.swap(i, seed.below(i + 1));
        }
        npus.truncate(2 + seed.below(npus.len() - 1));
    }
    if seed.below(8) == 0 {
        return custom(npus, seed);
    }
    let often = [
        CollectiveKind::AllReduce,
        CollectiveKind::AllGather,
        CollectiveKind::ReduceScatter,
    ];
    let kind = match seed.below(2) {
        0 => often[seed.below(3)],
        _ => CollectiveKind::NAMED[seed.below(8)],
    };
    let root = kind.is_rooted().then(|| Rank::from(seed.below(npus.len())));
    // Most have a byte for each NPU: what has less is refused by most algorithms.
    let least = if seed.below(8) == 0 {
        1
    } else {
        npus.len() as u64
    };
    Collective::new(kind, npus, size(seed).max(least), root).expect("a collective")
}

fn some(npus: &[NpuId], seed: &mut Seed) -> NpuSet {
    if seed.below(6) == 0 {
        return NpuSet::All;
    }
    let count = 1 + seed.below(npus.len().min(3));
    NpuSet::of((0..count).map(|_| npus[seed.below(npus.len())]))
}

/// A few sums and copies, from some to some.
fn custom(npus: Vec<NpuId>, seed: &mut Seed) -> Collective {
    let demands = (0..1 + seed.below(5)).map(|_| Demand {
        bytes: size(seed),
        reduced: seed.below(3) == 0,
        holders: some(&npus, seed),
        wanted: some(&npus, seed),
    });
    let demands = demands.collect();
    Collective::custom(npus, demands).expect("a collective")
}

//! Random connected topologies and collectives among some of their NPUs.

use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::id::{DeviceId, NpuId, Rank};
use hocket_core::topology::{Topology, TopologyBuilder};
use hocket_core::units::{Bandwidth, Seed, Time};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// 32 cases of each property, the same on every run; `PROPTEST_CASES` asks for that many new ones.
pub(crate) fn config() -> ProptestConfig {
    let mut config = ProptestConfig::with_cases(32);
    match std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
    {
        Some(cases) => config.cases = cases,
        None => config.rng_seed = RngSeed::Fixed(1),
    }
    config.failure_persistence = None;
    config
}

/// A strongly connected topology of 2 to 9 NPUs and up to 3 switches: a random tree with links both
/// ways, each of a rate and latency of its own, and some one-way links on top, parallel ones too.
pub(crate) fn topology() -> impl Strategy<Value = Topology> {
    (2usize..10, 0usize..4, 0usize..12, any::<u64>()).prop_map(|(npus, switches, more, seed)| {
        let mut seed = Seed(seed);
        let mut builder = TopologyBuilder::new("random");
        builder.npus(npus);
        for i in 0..switches {
            let limit = (seed.below(3) == 0).then(|| rate(&mut seed));
            builder.switch(format!("switch{i}"), limit);
        }
        let devices = npus + switches;
        let mut order: Vec<usize> = (0..devices).collect();
        for i in (1..devices).rev() {
            order.swap(i, seed.below(i + 1));
        }
        for i in 1..devices {
            let (a, b) = (order[i], order[seed.below(i)]);
            link(&mut builder, a, b, &mut seed);
            link(&mut builder, b, a, &mut seed);
        }
        for _ in 0..more {
            let a = seed.below(devices);
            let b = (a + 1 + seed.below(devices - 1)) % devices;
            link(&mut builder, a, b, &mut seed);
        }
        builder.finish().expect("a network")
    })
}

fn rate(seed: &mut Seed) -> Bandwidth {
    let gigabytes = [1, 3, 10, 25, 50][seed.below(5)];
    Bandwidth::from_bytes_per_second(gigabytes * 1_000_000_000).expect("positive")
}

fn link(builder: &mut TopologyBuilder, src: usize, dst: usize, seed: &mut Seed) {
    let latency = Time::from_ns([0, 20, 700, 2600][seed.below(4)]);
    let rate = rate(seed);
    builder.link(DeviceId::from(src), DeviceId::from(dst), rate, latency);
}

/// A collective of any named kind, of an odd size, among a random subset in random rank order.
pub(crate) fn collective_on(topology: &Topology, kind: CollectiveKind, seed: u64) -> Collective {
    let mut seed = Seed(seed);
    let mut npus: Vec<NpuId> = topology.npus().collect();
    for i in (1..npus.len()).rev() {
        npus.swap(i, seed.below(i + 1));
    }
    npus.truncate(2 + seed.below(npus.len() - 1));
    let root = kind.is_rooted().then(|| Rank::from(seed.below(npus.len())));
    let size = 1000 + seed.below(5_000_000) as u64;
    Collective::new(kind, npus, size, root).expect("a collective")
}

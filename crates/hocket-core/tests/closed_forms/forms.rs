//! Closed forms of the baseline algorithms on the networks that they were made for.
//!
//! alpha is a link's latency, beta(n) = n / B rounded up to the picosecond, S the collective's size.
//! Sizes divide evenly, so that all blocks are alike; rates and latencies are odd on purpose.

use std::sync::Arc;

use hocket_core::algorithms::Algorithm;
use hocket_core::collective::CollectiveKind::{
    self, AllGather, AllReduce, Broadcast, Reduce, ReduceScatter,
};
use hocket_core::id::Rank;
use hocket_core::simulate::{LatencyModel, SimulateOptions, Switching};
use hocket_core::topology::build::{self, RingWays};
use hocket_core::topology::{Dimension, DimensionKind, Topology};

use crate::run::{Link, time_from, time_of};

const LINKS: [Link; 4] = [
    Link {
        rate: 50_000_000_000,
        alpha: 500_000,
    },
    Link {
        rate: 50 << 30,
        alpha: 0,
    },
    Link {
        rate: 7_000_000_001,
        alpha: 20_999_999,
    },
    Link {
        rate: 899_999_999_993,
        alpha: 1,
    },
];

/// Bytes of one block, odd ones among them.
const BLOCKS: [u64; 4] = [1, 1_000_003, 1 << 16, 40_000_000];

/// The three kinds that rings and their like serve, with their passes.
const PASSES: [(CollectiveKind, u64); 3] = [(AllReduce, 2), (ReduceScatter, 1), (AllGather, 1)];

/// Stored and forwarded, unless a form says otherwise.
fn defaults() -> SimulateOptions {
    SimulateOptions {
        switching: Some(Switching::StoreAndForward),
        ..SimulateOptions::default()
    }
}

/// Every link with every block size.
fn cases() -> impl Iterator<Item = (Link, u64)> {
    LINKS
        .into_iter()
        .flat_map(|link| BLOCKS.map(|block| (link, block)))
}

/// passes (N - 1) (alpha + beta(S / N)), whatever the latency model: a link is idle when the next
/// block comes.
#[test]
fn ring_on_a_one_way_ring() {
    for n in [2, 3, 5, 8, 13, 32] {
        for (link, block) in cases() {
            let ring = build::ring(n, link.bandwidth(), link.latency(), RingWays::One);
            let ring = Arc::new(ring.expect("a ring"));
            for (kind, passes) in PASSES {
                let expected = passes * u64::from(n - 1) * (link.alpha + link.beta(block));
                for latency in [LatencyModel::Overlapped, LatencyModel::Occupying] {
                    let options = SimulateOptions {
                        latency,
                        ..defaults()
                    };
                    let size = u64::from(n) * block;
                    let time = time_of(&ring, kind, size, Algorithm::Ring, 1, &options);
                    assert_eq!(time, expected, "{kind} among {n}, {block} bytes, {link:?}");
                }
            }
        }
    }
}

/// Half a block each way: passes (N - 1) (alpha + beta(S / 2N)).
#[test]
fn bidirectional_ring_on_a_two_way_ring() {
    for n in [3, 4, 7, 16, 33] {
        for (link, half) in cases() {
            let ring = build::ring(n, link.bandwidth(), link.latency(), RingWays::Both);
            let ring = Arc::new(ring.expect("a ring"));
            for (kind, passes) in PASSES {
                let expected = passes * u64::from(n - 1) * (link.alpha + link.beta(half));
                let size = u64::from(n) * 2 * half;
                let algorithm = Algorithm::BidirectionalRing;
                let time = time_of(&ring, kind, size, algorithm, 1, &defaults());
                assert_eq!(
                    time, expected,
                    "{kind} among {n}, 2 x {half} bytes, {link:?}"
                );
            }
        }
    }
}

/// A link for every pair: passes (alpha + beta(S / N)).
#[test]
fn direct_on_fully_connected() {
    for n in [2, 3, 6, 16, 31] {
        for (link, block) in cases() {
            let full = build::fully_connected(n, link.bandwidth(), link.latency());
            let full = Arc::new(full.expect("a network"));
            for (kind, passes) in PASSES {
                let expected = passes * (link.alpha + link.beta(block));
                let size = u64::from(n) * block;
                let time = time_of(&full, kind, size, Algorithm::Direct, 1, &defaults());
                assert_eq!(time, expected, "{kind} among {n}, {block} bytes, {link:?}");
            }
        }
    }
}

/// One pass of halving or doubling of `blocks` equal blocks among `n` = 2^m ranks below a switch.
///
/// In step j each rank sends blocks x block / 2^j bytes up and takes as much down, with no other
/// message on either link. Stored and forwarded that is two hops, one after the other:
/// sum over j = 1..m of 2 (alpha + beta(S / 2^j)). Cut through, the body crosses both links at
/// once: sum of 2 alpha + beta(S / 2^j).
fn halving_pass(link: Link, n: u64, size: u64, switching: Switching) -> u64 {
    let hops_of_body = match switching {
        Switching::StoreAndForward => 2,
        Switching::CutThrough => 1,
    };
    (1..=n.ilog2())
        .map(|step| 2 * link.alpha + hops_of_body * link.beta(size >> step))
        .sum()
}

#[test]
fn halving_doubling_on_a_switch() {
    for n in [2, 4, 16, 64] {
        for (link, block) in cases() {
            let switch = build::switch(n, link.bandwidth(), link.latency(), None);
            let switch = Arc::new(switch.expect("a switch"));
            let size = u64::from(n) * block;
            for (kind, passes) in PASSES {
                for switching in [Switching::StoreAndForward, Switching::CutThrough] {
                    let expected = passes * halving_pass(link, n.into(), size, switching);
                    let options = SimulateOptions {
                        switching: Some(switching),
                        ..defaults()
                    };
                    let algorithm = Algorithm::HalvingDoubling;
                    let time = time_of(&switch, kind, size, algorithm, 1, &options);
                    assert_eq!(time, expected, "{kind} among {n}, {block} bytes, {link:?}");
                }
            }
        }
    }
}

/// k chunks of c bytes over N - 1 hops: (N - 1) (alpha + beta(c)) for the first, and each of the
/// others beta(c) later, or alpha + beta(c) later where latency occupies the link.
#[test]
fn pipelined_chain_on_a_line() {
    for (n, chunks) in [(2, 1), (2, 9), (5, 1), (8, 16), (17, 64), (32, 7)] {
        for (link, chunk) in cases() {
            let line = build::line(n, link.bandwidth(), link.latency());
            let line = Arc::new(line.expect("a line"));
            let size = chunks as u64 * chunk;
            let hop = link.alpha + link.beta(chunk);
            let (hops, rest) = (u64::from(n - 1), chunks as u64 - 1);
            for (latency, later) in [
                (LatencyModel::Overlapped, link.beta(chunk)),
                (LatencyModel::Occupying, hop),
            ] {
                let expected = hops * hop + rest * later;
                let options = SimulateOptions {
                    latency,
                    ..defaults()
                };
                for (kind, root) in [(Broadcast, 0), (Broadcast, n - 1), (Reduce, 0)] {
                    let root = Some(Rank(root));
                    let chain = Algorithm::Chain;
                    let time = time_from(root, &line, kind, size, chain, chunks, &options);
                    assert_eq!(
                        time, expected,
                        "{kind} of {chunks} x {chunk} bytes, {link:?}"
                    );
                }
            }
        }
    }
}

/// The root has a link for every child and serves all of them at once, so what counts is the depth
/// of the tree: floor(log2 N) (alpha + beta(S)) from rank 0.
#[test]
fn binomial_broadcast_on_fully_connected() {
    for n in [2, 3, 4, 7, 8, 15, 16, 31, 32] {
        for (link, size) in cases() {
            let full = build::fully_connected(n, link.bandwidth(), link.latency());
            let full = Arc::new(full.expect("a network"));
            let expected = u64::from(n.ilog2()) * (link.alpha + link.beta(size));
            let time = time_of(&full, Broadcast, size, Algorithm::Binomial, 1, &defaults());
            assert_eq!(time, expected, "among {n}, {size} bytes, {link:?}");
        }
    }
}

/// Below a switch a root's messages queue on its one link: log2 N of them, the first served of
/// which has the deepest tree below it, all of them two hops a level.
#[test]
fn binomial_broadcast_on_a_switch() {
    for n in [2, 4, 16, 32] {
        for (link, size) in cases() {
            let switch = build::switch(n, link.bandwidth(), link.latency(), None);
            let switch = Arc::new(switch.expect("a switch"));
            let levels = u64::from(n.ilog2());
            let expected = levels * 2 * (link.alpha + link.beta(size));
            let time = time_of(
                &switch,
                Broadcast,
                size,
                Algorithm::Binomial,
                1,
                &defaults(),
            );
            assert_eq!(time, expected, "among {n}, {size} bytes, {link:?}");
        }
    }
}

/// One pass along one dimension, of which each group holds `size` bytes.
fn pass_along(side: &Dimension, size: u64) -> u64 {
    let link = Link {
        rate: side.bandwidth.bytes_per_second(),
        alpha: side.latency.as_ps(),
    };
    let n = u64::from(side.size);
    match side.kind {
        DimensionKind::Switch => halving_pass(link, n, size, Switching::StoreAndForward),
        DimensionKind::FullyConnected => link.alpha + link.beta(size / n),
        DimensionKind::Ring => (n - 1) * (link.alpha + link.beta(size / n)),
        DimensionKind::Line => unreachable!("no closed form here: its ring shares links"),
    }
}

/// With one chunk nothing overlaps: the sum over the dimensions of their own closed forms, each on
/// what the dimensions before have left of the data.
#[test]
fn hierarchical_with_one_chunk_is_the_sum_of_its_dimensions() {
    use DimensionKind::{FullyConnected, Ring, Switch};
    let products = [
        vec![(Ring, 5)],
        vec![(Switch, 8), (Switch, 4)],
        vec![(Ring, 4), (FullyConnected, 3), (Switch, 8)],
        vec![(FullyConnected, 8), (Ring, 3)],
        vec![(Switch, 2), (Ring, 4), (FullyConnected, 2), (Ring, 3)],
        vec![(Switch, 16), (Switch, 8), (Switch, 8)],
    ];
    for product in products {
        for (first, block) in [(0, 1), (1, 1_000_003), (2, 40_000), (3, 1 << 10)] {
            let sides: Vec<Dimension> = product
                .iter()
                .enumerate()
                .map(|(i, &(kind, size))| {
                    let link = LINKS[(first + i) % LINKS.len()];
                    Dimension {
                        kind,
                        size,
                        bandwidth: link.bandwidth(),
                        latency: link.latency(),
                        offload: false,
                    }
                })
                .collect();
            check_hierarchical(&sides, block);
        }
    }
}

fn check_hierarchical(sides: &[Dimension], block: u64) {
    let topology: Arc<Topology> = Arc::new(build::product(sides).expect("a product"));
    let size = topology.npu_count() as u64 * block;
    let mut left = size;
    let mut pass = 0;
    for side in sides {
        pass += pass_along(side, left);
        left /= u64::from(side.size);
    }
    for (kind, passes) in PASSES {
        let time = time_of(
            &topology,
            kind,
            size,
            Algorithm::Hierarchical,
            1,
            &defaults(),
        );
        let name = topology.name();
        assert_eq!(time, passes * pass, "{kind} on {name}, {size} bytes");
    }
}

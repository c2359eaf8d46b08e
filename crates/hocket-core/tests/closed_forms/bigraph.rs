//! Closed form of HDRM: no message of a step waits for another.

use std::sync::Arc;

use hocket_core::algorithms::Algorithm;
use hocket_core::collective::CollectiveKind;
use hocket_core::simulate::{LatencyModel, SimulateOptions, Switching};
use hocket_core::topology::build;

use crate::run::{Link, time_of};

/// Odd on purpose.
const LINK: Link = Link {
    rate: 7_000_000_001,
    alpha: 20_999_999,
};
const BLOCK: u64 = 1_000_003;

/// sum over j = 1..log2 N of 3 alpha + hops beta(S / 2^j) a pass, where the body crosses all three links of a route at
/// once if devices cut through, else one after the other; whatever the latency model.
#[test]
fn hdrm_on_a_bigraph() {
    for (switches, npus) in [
        (1, 1),
        (2, 1),
        (2, 2),
        (4, 2),
        (4, 4),
        (8, 4),
        (8, 8),
        (16, 2),
    ] {
        let bigraph = build::bigraph(switches, npus, LINK.bandwidth(), LINK.latency());
        let bigraph = Arc::new(bigraph.expect("a BiGraph"));
        let n = bigraph.npu_count() as u64;
        let size = n * BLOCK;
        for (kind, passes) in [
            (CollectiveKind::AllReduce, 2),
            (CollectiveKind::ReduceScatter, 1),
            (CollectiveKind::AllGather, 1),
        ] {
            for (switching, hops) in [(Switching::StoreAndForward, 3), (Switching::CutThrough, 1)] {
                let step = |j| 3 * LINK.alpha + hops * LINK.beta(size >> j);
                let expected = passes * (1..=n.ilog2()).map(step).sum::<u64>();
                for latency in [LatencyModel::Overlapped, LatencyModel::Occupying] {
                    let options = SimulateOptions {
                        switching: Some(switching),
                        latency,
                        ..SimulateOptions::default()
                    };
                    let time = time_of(&bigraph, kind, size, Algorithm::Hdrm, 1, &options);
                    assert_eq!(time, expected, "{switches} x {npus}, {kind}, {switching:?}");
                }
            }
        }
    }
}

//! The networks on which Themis was evaluated, for tests of schedules and of plans made of them.

use crate::topology::{Dimension, DimensionKind, Topology, build};
use crate::units::{Bandwidth, Time};

/// Returns a dimension of links of one rate in bytes per second and latency in picoseconds.
///
/// # Panics
/// If the rate is 0.
#[must_use]
pub fn dimension(kind: DimensionKind, size: u32, bandwidth: u64, ps: u64) -> Dimension {
    Dimension {
        kind,
        size,
        bandwidth: Bandwidth::from_bytes_per_second(bandwidth).expect("a rate above 0"),
        latency: Time::from_ps(ps),
        offload: false,
    }
}

/// Returns a dimension by what an NPU sends over all of its links, in Gb/s, and the latency of a step.
fn per_npu((kind, size, gbit, ns): (DimensionKind, u32, u64, u64)) -> Dimension {
    let (links, hops) = match kind {
        DimensionKind::Ring => (2, 1),
        DimensionKind::FullyConnected => (u64::from(size) - 1, 1),
        _ => (1, 2),
    };
    dimension(kind, size, gbit * 125_000_000 / links, ns * 1000 / hops)
}

/// Returns the six networks of 1,024 NPUs.
///
/// # Source
/// Themis, table 2.
#[must_use]
pub fn table_2() -> [(&'static str, Topology); 6] {
    use DimensionKind::{FullyConnected as F, Ring as R, Switch as S};
    let network = |dims: &[_]| {
        let dims: Vec<Dimension> = dims.iter().copied().map(per_npu).collect();
        build::product(&dims).expect("within all limits")
    };
    [
        (
            "2D-SW_SW",
            network(&[(S, 16, 1200, 700), (S, 64, 800, 1700)]),
        ),
        (
            "3D-SW_SW_SW_homo",
            network(&[(S, 16, 800, 700), (S, 8, 800, 700), (S, 8, 800, 1700)]),
        ),
        (
            "3D-SW_SW_SW_hetero",
            network(&[(S, 16, 1600, 700), (S, 8, 800, 700), (S, 8, 400, 1700)]),
        ),
        (
            "3D-FC_Ring_SW",
            network(&[(F, 8, 1400, 700), (R, 16, 800, 700), (S, 8, 400, 1700)]),
        ),
        (
            "4D-Ring_SW_SW_SW",
            network(&[
                (R, 4, 2000, 20),
                (S, 4, 1600, 700),
                (S, 8, 800, 700),
                (S, 8, 400, 1700),
            ]),
        ),
        (
            "4D-Ring_FC_Ring_SW",
            network(&[
                (R, 4, 3000, 20),
                (F, 8, 1400, 700),
                (R, 4, 1200, 700),
                (S, 8, 800, 1700),
            ]),
        ),
    ]
}

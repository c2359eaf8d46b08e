//! `hocket._core.packing`: what proves how good packed trees are.

use hocket_core::id::DeviceId;
use hocket_core::packing::{Packing, Passes, Undirected};
use hocket_core::topology::Topology;
use pyo3::prelude::*;

/// Trees, checked against the network, and the cut or partition that they cannot beat.
#[pyclass(name = "Packing", module = "hocket._core.packing", frozen, get_all)]
pub(crate) struct PyPacking {
    /// What goes along them: sums towards the roots, copies away from them, or both at once.
    carries: &'static str,
    /// How many trees there are.
    trees: usize,
    /// How many start at one root.
    trees_a_root: u64,
    /// Arcs from a root to the furthest end.
    height: usize,
    /// What all trees reach together of the rate that it allows, rounded down.
    reached: f64,
    /// What crosses the cut, or all of the partition [bytes/s].
    bandwidth: u128,
    /// Roots on the cut's far side, or parts of the partition less one.
    weight: u128,
    /// Names of the devices on the side of the cut that has fewer, or of each part.
    parts: Vec<Vec<String>>,
    /// All of it in a line.
    text: String,
}

impl PyPacking {
    fn of(packing: &Packing, topology: &Topology) -> Self {
        Self {
            carries: if packing.turned { "sums" } else { "copies" },
            trees: packing.set.trees.len(),
            trees_a_root: packing.trees_a_weight,
            height: packing.set.height(),
            reached: packing.reached_ppm as f64 / 1e6,
            bandwidth: packing.rate.bandwidth,
            weight: packing.rate.weight,
            parts: names(&[packing.cut(topology)], topology),
            text: packing.describe(topology),
        }
    }

    /// Of sums, then of copies; or one of both.
    pub(crate) fn all(passes: &Passes, topology: &Topology) -> Vec<Self> {
        match passes {
            Passes::AtOnce(both) => vec![Self::of_both(both, topology)],
            Passes::Apart { sums, copies } => {
                let packings = sums.iter().chain(copies);
                packings
                    .map(|packing| Self::of(packing, topology))
                    .collect()
            }
        }
    }

    fn of_both(both: &Undirected, topology: &Topology) -> Self {
        let trees = both.copies.trees.len();
        Self {
            carries: "both",
            trees,
            trees_a_root: trees as u64,
            height: both.copies.height(),
            reached: both.reached_ppm as f64 / 1e6,
            bandwidth: both.partition.bandwidth,
            weight: both.partition.parts.len() as u128 - 1,
            parts: names(&both.partition.parts, topology),
            text: both.describe(topology),
        }
    }
}

fn names(parts: &[Vec<DeviceId>], topology: &Topology) -> Vec<Vec<String>> {
    let name = |device: &DeviceId| topology.device(*device).name.clone();
    let part = |part: &Vec<DeviceId>| part.iter().map(name).collect();
    parts.iter().map(part).collect()
}

//! `hocket._core.packing`: what proves how good packed trees are.

use hocket_core::id::DeviceId;
use hocket_core::packing::{Packing, Passes, Undirected};
use hocket_core::topology::Topology;
use pyo3::prelude::*;

/// Trees, and the cut or partition that they cannot beat.
#[pyclass(name = "Packing", module = "hocket._core.packing", frozen, get_all)]
pub(crate) struct PyPacking {
    carries: &'static str,
    trees: usize,
    trees_a_root: u64,
    height: usize,
    reached: f64,
    bandwidth: u128,
    weight: u128,
    parts: Vec<Vec<String>>,
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

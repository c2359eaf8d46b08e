//! `hocket._core.packing`: plans of packed trees, and what proves how good the trees are.

use std::sync::Arc;

use hocket_core::algorithms::{Algorithm, check_applicable};
use hocket_core::id::DeviceId;
use hocket_core::packing::{Packing, Passes, Undirected};
use hocket_core::progress::Progress;
use hocket_core::select::{TreeOptions, TreePlan, trees};
use hocket_core::topology::Topology;
use pyo3::prelude::*;

use crate::choice::{LATENCIES, choose};
use crate::collective::PyCollective;
use crate::error::CoreError;
use crate::plan::PyPlan;
use crate::progress;
use crate::topology::PyTopology;

/// A plan of packed trees.
#[pyclass(name = "TreePlan", module = "hocket._core.packing", frozen)]
pub(crate) struct PyTreePlan {
    core: TreePlan,
}

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
    pub(crate) fn of(packing: &Packing, topology: &Topology) -> Self {
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

#[pyfunction]
#[pyo3(signature = (
    topology, collective, *, pieces, latency, memory_limit, time_limit=None, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "options, named in Python")]
pub(crate) fn plan_trees(
    py: Python<'_>,
    topology: &PyTopology,
    collective: &PyCollective,
    pieces: Option<usize>,
    latency: &str,
    memory_limit: u64,
    time_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> Result<PyTreePlan, CoreError> {
    let options = TreeOptions {
        pieces,
        memory_limit,
        latency: choose("latency", latency, LATENCIES)?,
    };
    let (on, collective) = (Arc::clone(topology.core()), collective.core().clone());
    check_applicable(&on, &collective, Algorithm::Trees)?;
    let find = move |watch: &mut dyn Progress| trees(&on, &collective, &options, watch);
    let core = progress::attended_until(py, progress, time_limit, find)??;
    Ok(PyTreePlan { core })
}

#[pymethods]
impl PyTreePlan {
    #[getter]
    fn plan(&self) -> PyPlan {
        let proof = &self.core.proof;
        let (plan, topology) = (Arc::clone(proof.plan()), Arc::clone(proof.topology()));
        PyPlan::proved(plan, topology, Some(proof))
    }

    #[getter]
    fn time_ps(&self) -> u64 {
        self.core.time.as_ps()
    }

    #[getter]
    fn pieces(&self) -> usize {
        self.core.pieces
    }

    #[getter]
    fn packings(&self) -> Vec<PyPacking> {
        let topology = self.core.proof.topology();
        match &self.core.passes {
            Passes::AtOnce(both) => vec![PyPacking::of_both(both, topology)],
            Passes::Apart { sums, copies } => {
                let packings = sums.iter().chain(copies);
                let of = |packing| PyPacking::of(packing, topology);
                packings.map(of).collect()
            }
        }
    }
}

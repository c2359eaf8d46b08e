//! `hocket._core.symmetry`: plans of one block, shifted by a group.

use std::sync::Arc;

use hocket_core::progress::Progress;
use hocket_core::symmetry::{self as core, SymmetricOptions, lower_bound};
use hocket_core::topology::Topology;
use pyo3::prelude::*;

use crate::bound::Bound;
use crate::choice::{LATENCIES, choose};
use crate::collective::PyCollective;
use crate::error::CoreError;
use crate::packing::PyPacking;
use crate::plan::PyPlan;
use crate::progress;
use crate::topology::PyTopology;

/// A plan of one block, proved and simulated, and the group that shifts it.
#[pyclass(name = "SymmetricPlan", module = "hocket._core.symmetry", frozen)]
pub(crate) struct PySymmetricPlan {
    core: Arc<core::SymmetricPlan>,
}

#[pyfunction]
#[pyo3(signature = (
    topology, collective, *, pieces, latency, memory_limit, most_transfers, time_limit=None, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "options, named in Python")]
pub(crate) fn plan_symmetric(
    py: Python<'_>,
    topology: &PyTopology,
    collective: &PyCollective,
    pieces: Option<usize>,
    latency: &str,
    memory_limit: u64,
    most_transfers: Option<u64>,
    time_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> Result<PySymmetricPlan, CoreError> {
    let whole = SymmetricOptions::for_whole(topology.core());
    let options = SymmetricOptions {
        pieces,
        memory_limit,
        most_transfers: most_transfers.unwrap_or(whole.most_transfers),
        latency: choose("latency", latency, LATENCIES)?,
    };
    let (on, collective) = (Arc::clone(topology.core()), collective.core().clone());
    let find = move |watch: &mut dyn Progress| core::plan(&on, &collective, &options, watch);
    let core = progress::attended_until(py, progress, time_limit, find)??;
    Ok(PySymmetricPlan {
        core: Arc::new(core),
    })
}

impl PySymmetricPlan {
    fn topology(&self) -> &Arc<Topology> {
        self.core.base.topology()
    }
}

#[pymethods]
impl PySymmetricPlan {
    #[getter]
    fn orders(&self) -> Vec<u32> {
        self.core.symmetry.orders().to_vec()
    }

    #[getter]
    fn orbits(&self) -> usize {
        self.core.symmetry.orbits().len()
    }

    #[getter]
    fn first(&self) -> String {
        let first = self.core.symmetry.npu(0).device();
        self.topology().device(first).name.clone()
    }

    #[getter]
    fn block(&self) -> PyPlan {
        let proof = &self.core.base;
        let (plan, topology) = (Arc::clone(proof.plan()), Arc::clone(proof.topology()));
        PyPlan::proved(plan, topology, Some(proof))
    }

    #[getter]
    fn transfers(&self) -> u128 {
        self.core.shifted().len()
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
        PyPacking::all(&self.core.passes, self.topology())
    }

    fn bound(&self, py: Python<'_>) -> Result<Bound, CoreError> {
        let core = Arc::clone(&self.core);
        let found = progress::attended(py, move |watch| {
            let topology = core.base.topology();
            lower_bound(topology, &core.collective, &core.symmetry, watch)
        })??;
        Ok(Bound::of(&found, self.topology()))
    }

    fn expand(&self, py: Python<'_>, memory_limit: u64) -> Result<PyPlan, CoreError> {
        let core = Arc::clone(&self.core);
        let plan = progress::attended(py, move |_| core.shifted().expand(memory_limit))??;
        Ok(PyPlan::new(plan, Arc::clone(self.topology())))
    }
}

//! `hocket._core.pipelined`: plans of one piece of each tree, which stand for many pieces.

use std::sync::Arc;

use hocket_core::progress::Progress;
use hocket_core::select::{self as core, TreeOptions};
use pyo3::prelude::*;

use crate::choice::{LATENCIES, choose};
use crate::collective::PyCollective;
use crate::error::CoreError;
use crate::hints::Listener;
use crate::plan::PyPlan;
use crate::progress::{self, Limits};
use crate::topology::PyTopology;

/// A plan of one piece of each tree, proved, and how many pieces follow each other.
#[pyclass(name = "PipelinedPlan", module = "hocket._core.pipelined", frozen)]
pub(crate) struct PyPipelinedPlan {
    core: Arc<core::Pipelined>,
}

/// Grow few trees for an all-reduce and tell when many pieces end; InfeasibleError and SpecError as ``plan``.
#[pyfunction]
#[pyo3(signature = (
    topology, collective, *, pieces, latency, memory_limit, trees=None, time_limit=None, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "options, named in Python")]
pub(crate) fn plan_pipelined(
    py: Python<'_>,
    topology: &PyTopology,
    collective: &PyCollective,
    pieces: Option<usize>,
    latency: &str,
    memory_limit: u64,
    trees: Option<u64>,
    time_limit: Option<f64>,
    progress: Option<Listener>,
) -> Result<PyPipelinedPlan, CoreError> {
    let options = TreeOptions {
        pieces,
        memory_limit,
        latency: choose("latency", latency, LATENCIES)?,
    };
    let (on, collective) = (Arc::clone(topology.core()), collective.core().clone());
    let find =
        move |watch: &mut dyn Progress| core::pipelined(&on, &collective, &options, trees, watch);
    let core = progress::attended_until(py, progress, Limits::new(time_limit, None), find)??;
    Ok(PyPipelinedPlan {
        core: Arc::new(core),
    })
}

/// Return how many transfers one piece of each tree has among so many NPUs, 2 or more.
#[pyfunction]
pub(crate) fn kept_among(npus: u64) -> u64 {
    core::kept_among(npus.max(2))
}

#[pymethods]
impl PyPipelinedPlan {
    /// The plan of one piece of each tree, proved.
    #[getter]
    fn block(&self) -> PyPlan {
        PyPlan::of_proof(&self.core.block)
    }

    /// How many transfers the whole plan has.
    #[getter]
    fn transfers(&self) -> u128 {
        self.core.transfers()
    }

    /// When the whole plan ends at link fidelity, if all pieces are as large as the largest [ps].
    #[getter]
    fn time_ps(&self) -> u64 {
        self.core.time.as_ps()
    }

    /// Pieces that every tree carries.
    #[getter]
    fn pieces(&self) -> u32 {
        self.core.pieces
    }

    /// Numbers of pieces that were simulated, and when they end [ps].
    #[getter]
    fn simulated(&self) -> Vec<(u32, u64)> {
        let runs = self.core.simulated.iter();
        runs.map(|(pieces, time)| (*pieces, time.as_ps())).collect()
    }

    /// Make the whole plan, which is not proved; SpecError if it is too large.
    fn expand(&self, py: Python<'_>, memory_limit: u64) -> Result<PyPlan, CoreError> {
        let core = Arc::clone(&self.core);
        let plan = progress::attended(py, move |_| core.expand(memory_limit))??;
        Ok(PyPlan::new(plan, Arc::clone(self.core.block.topology())))
    }
}

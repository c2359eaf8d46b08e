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
use crate::hints::Listener;
use crate::packing::PyPacking;
use crate::plan::PyPlan;
use crate::progress::{self, Limits};
use crate::topology::PyTopology;

/// A plan of one block, proved and simulated, and the group that shifts it.
#[pyclass(name = "SymmetricPlan", module = "hocket._core.symmetry", frozen)]
pub(crate) struct PySymmetricPlan {
    core: Arc<core::SymmetricPlan>,
}

/// Find the group and plan one block; InfeasibleError and SpecError as ``plan``.
///
/// `most_transfers` are those of a block; ``None`` for few enough that all shifts make a plan.
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
    progress: Option<Listener>,
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
    let core = progress::attended_until(py, progress, Limits::new(time_limit, None), find)??;
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
    /// How often each generator of the group is applied until all is where it was.
    #[getter]
    fn orders(&self) -> Vec<u32> {
        self.core.symmetry.orders().to_vec()
    }

    /// Kinds of links: the group takes each link to all of its kind, and to no others.
    #[getter]
    fn orbits(&self) -> usize {
        self.core.symmetry.orbits().len()
    }

    /// Name of the NPU of the block.
    #[getter]
    fn first(&self) -> String {
        let first = self.core.symmetry.npu(0).device();
        self.topology().device(first).name.clone()
    }

    /// The plan of the block, proved.
    #[getter]
    fn block(&self) -> PyPlan {
        PyPlan::of_proof(&self.core.base)
    }

    /// How many transfers the whole plan has.
    #[getter]
    fn transfers(&self) -> u128 {
        self.core.shifted().len()
    }

    /// When the whole plan ends at link fidelity, at the latest [ps].
    #[getter]
    fn time_ps(&self) -> u64 {
        self.core.run.time.as_ps()
    }

    /// Pieces that every tree carries.
    #[getter]
    fn pieces(&self) -> usize {
        self.core.pieces
    }

    /// The trees, of sums and then of copies.
    #[getter]
    fn packings(&self) -> Vec<PyPacking> {
        PyPacking::all(&self.core.passes, self.topology())
    }

    /// Bound any plan's time from what one NPU, and one of each subgroup, must receive or send.
    fn bound(&self, py: Python<'_>) -> Result<Bound, CoreError> {
        let core = Arc::clone(&self.core);
        let found = progress::attended(py, move |watch| {
            let topology = core.base.topology();
            lower_bound(topology, &core.collective, &core.symmetry, watch)
        })??;
        Ok(Bound::of(&found, self.topology()))
    }

    /// Make the whole plan, which is not proved; SpecError if it is too large.
    fn expand(&self, py: Python<'_>, memory_limit: u64) -> Result<PyPlan, CoreError> {
        let core = Arc::clone(&self.core);
        let plan = progress::attended(py, move |_| core.shifted().expand(memory_limit))??;
        Ok(PyPlan::new(plan, Arc::clone(self.topology())))
    }
}

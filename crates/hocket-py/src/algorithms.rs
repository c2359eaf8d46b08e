//! `plan`, `algorithms`, `chunk_ladder`, `check_size`.

use hocket_core::algorithms::{self as core, Algorithm, Outline, PlanOptions};
use pyo3::prelude::*;

use crate::collective::PyCollective;
use crate::error::CoreError;
use crate::plan::PyPlan;
use crate::progress;
use crate::topology::{GivenDimension, PyTopology, to_dimensions};

/// An algorithm: what it is called, what it does, which collectives it implements.
#[pyclass(name = "Algorithm", module = "hocket._core", frozen, get_all)]
pub(crate) struct PyAlgorithm {
    name: &'static str,
    summary: &'static str,
    kinds: Vec<&'static str>,
}

/// List the algorithms: name, summary, kinds of collectives.
#[pyfunction]
pub(crate) fn algorithms() -> Vec<PyAlgorithm> {
    let describe = |algorithm: Algorithm| PyAlgorithm {
        name: algorithm.name(),
        summary: algorithm.summary(),
        kinds: algorithm.kinds().iter().map(|kind| kind.name()).collect(),
    };
    Algorithm::ALL.map(describe).into()
}

#[pyfunction]
#[pyo3(signature = (
    topology, collective, algorithm, chunks, memory_limit, routing="balanced"
))]
pub(crate) fn plan(
    py: Python<'_>,
    topology: &PyTopology,
    collective: &PyCollective,
    algorithm: &str,
    chunks: Option<usize>,
    memory_limit: u64,
    routing: &str,
) -> Result<PyPlan, CoreError> {
    let options = PlanOptions {
        chunks,
        memory_limit,
        routing: routing.parse()?,
        ..PlanOptions::new(algorithm.parse()?)
    };
    let (network, collective) = (topology.core().clone(), collective.core().clone());
    let on = network.clone();
    let plan = progress::attended(py, move |watch| {
        core::plan(&on, &collective, &options, watch)
    })??;
    Ok(PyPlan::new(plan, network))
}

/// Refuses a plan that is too large whatever its network, of which the dimensions are enough to know.
#[pyfunction]
#[pyo3(signature = (kind, npus, dimensions, algorithm, chunks, memory_limit))]
pub(crate) fn check_size(
    kind: &str,
    npus: u32,
    dimensions: Vec<GivenDimension>,
    algorithm: Option<&str>,
    chunks: Option<usize>,
    memory_limit: u64,
) -> Result<(), CoreError> {
    let outline = Outline {
        kind: kind.parse()?,
        npus,
        dimensions: &to_dimensions(&dimensions)?,
    };
    match algorithm {
        Some(name) => outline.check(name.parse()?, chunks, memory_limit)?,
        None => outline.check_timetable(chunks, memory_limit)?,
    }
    Ok(())
}

#[pyfunction]
pub(crate) fn default_chunks(
    topology: &PyTopology,
    collective: &PyCollective,
    algorithm: &str,
) -> Result<usize, CoreError> {
    Ok(core::default_chunks(
        algorithm.parse()?,
        topology.core(),
        collective.core(),
    ))
}

#[pyfunction]
pub(crate) fn chunk_ladder(
    topology: &PyTopology,
    collective: &PyCollective,
    algorithm: &str,
) -> Result<Vec<usize>, CoreError> {
    let algorithm: Algorithm = algorithm.parse()?;
    core::check_applicable(topology.core(), collective.core(), algorithm)?;
    Ok(core::chunk_ladder(
        topology.core(),
        collective.core(),
        algorithm,
    ))
}

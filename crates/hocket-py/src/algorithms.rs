//! `plan` and what surrounds it.

use std::sync::Arc;

use hocket_core::algorithms::{self as core, Algorithm, PlanOptions};
use pyo3::prelude::*;

use crate::collective::PyCollective;
use crate::error::CoreError;
use crate::plan::PyPlan;
use crate::topology::PyTopology;

#[pyfunction]
#[pyo3(signature = (topology, collective, algorithm, *, chunks=None, memory_limit=None))]
pub(crate) fn plan(
    py: Python<'_>,
    topology: &PyTopology,
    collective: &PyCollective,
    algorithm: &str,
    chunks: Option<usize>,
    memory_limit: Option<u64>,
) -> Result<PyPlan, CoreError> {
    let mut options = PlanOptions::new(algorithm.parse()?);
    options.chunks = chunks;
    options.memory_limit = memory_limit.unwrap_or(options.memory_limit);
    let (topology, collective) = (topology.core(), collective.core());
    let plan = py.detach(|| core::plan(topology, collective, &options))?;
    Ok(PyPlan::new(plan, Arc::clone(topology)))
}

/// Name, summary and kinds of every algorithm.
#[pyfunction]
pub(crate) fn algorithms() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let kinds = |algorithm: Algorithm| algorithm.kinds().iter().map(|kind| kind.name()).collect();
    Algorithm::ALL
        .map(|algorithm| (algorithm.name(), algorithm.summary(), kinds(algorithm)))
        .into()
}

#[pyfunction]
pub(crate) fn check_applicable(
    topology: &PyTopology,
    collective: &PyCollective,
    algorithm: &str,
) -> Result<(), CoreError> {
    let algorithm = algorithm.parse()?;
    Ok(core::check_applicable(
        topology.core(),
        collective.core(),
        algorithm,
    )?)
}

#[pyfunction]
pub(crate) fn transfer_count(
    topology: &PyTopology,
    collective: &PyCollective,
    algorithm: &str,
    chunks: usize,
) -> Result<u128, CoreError> {
    let algorithm: Algorithm = algorithm.parse()?;
    core::check_applicable(topology.core(), collective.core(), algorithm)?;
    Ok(core::transfer_count(
        topology.core(),
        collective.core(),
        algorithm,
        chunks,
    ))
}

#[pyfunction]
pub(crate) fn default_chunks(
    collective: &PyCollective,
    algorithm: &str,
) -> Result<usize, CoreError> {
    Ok(core::default_chunks(algorithm.parse()?, collective.core()))
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

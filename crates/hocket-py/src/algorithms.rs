//! `plan`, and `hocket._core.registry`: `algorithms`, `chunk_ladder`, `default_chunks`, `check_size`.

use hocket_core::algorithms::registry::{ENTRIES, Entry, Making, entry};
use hocket_core::algorithms::{self as core, Algorithm, Outline, PlanOptions};
use hocket_core::plan::PlanError;
use pyo3::prelude::*;

use crate::collective::PyCollective;
use crate::error::CoreError;
use crate::plan::PyPlan;
use crate::progress;
use crate::topology::{GivenDimension, PyTopology, to_dimensions};

/// What is known of an algorithm before there is a network.
#[pyclass(name = "Entry", module = "hocket._core.registry", frozen, get_all)]
pub(crate) struct PyEntry {
    name: &'static str,
    summary: &'static str,
    kinds: Vec<&'static str>,
    uses: Vec<&'static str>,
    making: &'static str,
    has_schedule: bool,
    is_compared: bool,
    in_core: bool,
}

impl From<&Entry> for PyEntry {
    fn from(entry: &Entry) -> Self {
        Self {
            name: entry.name,
            summary: entry.summary,
            kinds: entry.kinds.iter().map(|kind| kind.name()).collect(),
            uses: entry.uses.iter().map(|option| option.name()).collect(),
            making: match entry.making {
                Making::Recipe => "recipe",
                Making::Schedule => "schedule",
                Making::Routes => "routes",
                _ => "synthesis",
            },
            has_schedule: entry.has_schedule,
            is_compared: entry.is_compared,
            in_core: entry.algorithm.is_some(),
        }
    }
}

/// Gives the table of the algorithms.
#[pyfunction]
pub(crate) fn entries() -> Vec<PyEntry> {
    ENTRIES.iter().map(PyEntry::from).collect()
}

/// The algorithm whose transfers and numbers of chunks another one's are; `None` where that is any.
fn counted_as(name: &str) -> Result<Option<Algorithm>, PlanError> {
    Ok(entry(name)?.counts_as)
}

#[pyfunction]
#[pyo3(signature = (
    topology, collective, algorithm, chunks, memory_limit, routing="balanced", *, time_limit=None,
    progress=None
))]
#[expect(clippy::too_many_arguments, reason = "options, named in Python")]
pub(crate) fn plan(
    py: Python<'_>,
    topology: &PyTopology,
    collective: &PyCollective,
    algorithm: &str,
    chunks: Option<usize>,
    memory_limit: u64,
    routing: &str,
    time_limit: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> Result<PyPlan, CoreError> {
    let options = PlanOptions {
        chunks,
        memory_limit,
        routing: routing.parse()?,
        ..PlanOptions::new(algorithm.parse()?)
    };
    let (network, collective) = (topology.core().clone(), collective.core().clone());
    let on = network.clone();
    let plan = progress::attended_until(py, progress, time_limit, move |watch| {
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
        Some(name) => {
            if let Some(algorithm) = counted_as(name)? {
                outline.check(algorithm, chunks, memory_limit)?;
            }
        }
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
    let counted = counted_as(algorithm)?;
    Ok(counted.map_or(1, |as_one| {
        core::default_chunks(as_one, topology.core(), collective.core())
    }))
}

#[pyfunction]
pub(crate) fn chunk_ladder(
    topology: &PyTopology,
    collective: &PyCollective,
    algorithm: &str,
) -> Result<Vec<usize>, CoreError> {
    let entry = entry(algorithm)?;
    let Some(counted) = entry.counts_as else {
        return Ok(Vec::new());
    };
    core::check_applicable(topology.core(), collective.core(), counted)
        .map_err(|error| error.named(entry.name))?;
    if entry.making == Making::Routes {
        return Ok(Vec::new());
    }
    if !entry.tries_chunks {
        let own = core::default_chunks(counted, topology.core(), collective.core());
        return Ok(vec![own]);
    }
    Ok(core::chunk_ladder(
        topology.core(),
        collective.core(),
        counted,
    ))
}

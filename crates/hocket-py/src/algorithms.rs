//! `plan` and `Made`, and `hocket._core.registry`: `algorithms`, `chunk_ladder`, `default_chunks`, `check_size`,
//! `transfers`, `least_transfers`.

use std::sync::Arc;

use hocket_core::algorithms::registry::{Entry, Origin, entries as all, entry};
use hocket_core::algorithms::{self as core, Algorithm, Construction, Outline, PlanOptions};
use hocket_core::collective::Collective;
use hocket_core::plan::PlanError;
use hocket_core::topology::{LatencyModel, Topology};
use pyo3::prelude::*;

use crate::choice::{LATENCIES, RELAYS, choose};
use crate::collective::PyCollective;
use crate::error::CoreError;
use crate::hints::Listener;
use crate::multirail::{PySchedule, steps_of};
use crate::packing::PyPacking;
use crate::plan::PyPlan;
use crate::progress::{self, Limits, PyWork};
use crate::select::{PyCandidate, to_unwindings};
use crate::simulate::PyRun;
use crate::topology::{GivenDimension, PyTopology, to_dimensions};

/// An algorithm: what it is called, does, uses and makes its plans of.
#[pyclass(name = "Entry", module = "hocket._core.registry", frozen, get_all)]
pub(crate) struct PyEntry {
    /// Its name, such as halving-doubling.
    name: &'static str,
    /// What it does, in a line.
    summary: &'static str,
    /// The kinds of collective that it implements.
    kinds: Vec<&'static str>,
    /// Options of planning that it uses, of those that not all algorithms do.
    uses: Vec<&'static str>,
    /// What its plan is made of: a rule, a schedule of dimensions, trees or flows, or a search.
    ///
    /// The core plans by these; ``solver`` and ``choice`` take more than that.
    making: &'static str,
    /// What it promises where it can run: ``auto`` tries those first that promise more; 0 to 100.
    promise: u8,
    /// Whether it schedules dimensions; hierarchical does, and has plans of its own.
    has_schedule: bool,
    /// Whether it plans in no more than a few seconds, so that comparisons have it unasked.
    is_compared: bool,
    /// Whether any network will do for it, so that its refusal says what is wrong with one.
    is_general: bool,
    /// Whether ``plan`` of the core makes its plans; Python makes those of the others.
    in_core: bool,
}

impl From<Entry> for PyEntry {
    fn from(entry: Entry) -> Self {
        let (about, algorithm) = (entry.about, entry.algorithm);
        Self {
            name: about.name,
            summary: about.summary,
            kinds: about.kinds.iter().map(|kind| kind.name()).collect(),
            uses: about.uses.iter().map(|option| option.name()).collect(),
            making: about.making.into(),
            promise: about.promise,
            has_schedule: algorithm.is_some_and(Algorithm::has_schedule),
            is_compared: about.is_compared,
            is_general: about.is_general,
            in_core: algorithm.is_some(),
        }
    }
}

/// List every algorithm of hocket, in the order in which users see them.
#[pyfunction]
pub(crate) fn entries() -> Vec<PyEntry> {
    all().map(PyEntry::from).collect()
}

/// The algorithm whose transfers and numbers of chunks another one's are; `None` where that is any.
fn counted_as(name: &str) -> Result<Option<Algorithm>, PlanError> {
    Ok(entry(name)?.counts_as)
}

/// A plan as its algorithm made it, with what is known of it.
#[pyclass(name = "Made", module = "hocket._core", frozen)]
pub(crate) struct PyMade {
    core: core::Made,
    topology: Arc<Topology>,
    collective: Collective,
    latency: LatencyModel,
}

/// Make a plan by one algorithm, with ``chunks`` slices that are pipelined or its default.
///
/// After ``time_limit`` seconds, or all of ``work``, a search gives its best so far; what has none by then is
/// refused. ``effort`` is a share of what searches that count their own steps take.
/// ``unwinding`` has an entry for all switches, or one for each dimension; empty tries several.
///
/// ``memory_limit`` is for planning, verifying and simulating [bytes]. InfeasibleError where the
/// algorithm cannot run here, SpecError for one that is unknown or a plan that is too large.
#[pyfunction]
#[pyo3(signature = (
    topology, collective, algorithm, chunks, memory_limit, routing="balanced", *, latency="overlapped",
    seed=None, trials=None, unwinding=Vec::new(), relays="sum", effort=1.0, time_limit=None, work=None,
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
    latency: &str,
    seed: Option<u64>,
    trials: Option<u64>,
    unwinding: Vec<String>,
    relays: &str,
    effort: f64,
    time_limit: Option<f64>,
    work: Option<&PyWork>,
    progress: Option<Listener>,
) -> Result<PyMade, CoreError> {
    let algorithm: Algorithm = algorithm.parse()?;
    let usual = PlanOptions::new(algorithm);
    let options = PlanOptions {
        chunks,
        memory_limit,
        routing: routing.parse()?,
        latency: choose("latency", latency, LATENCIES)?,
        seed: seed.unwrap_or(usual.seed),
        trials: trials.unwrap_or(usual.trials),
        unwinding: to_unwindings(&unwinding)?,
        relays: choose("relays", relays, RELAYS)?,
        effort: steps_of(effort),
        ..usual
    };
    let limits = match algorithm.about().making {
        // A rule has nothing to leave out when time is short.
        Origin::Rule => Limits::none(work),
        _ => Limits::new(time_limit, work),
    };
    let latency = options.latency;
    let (topology, collective) = (topology.core().clone(), collective.core().clone());
    let (on, what) = (Arc::clone(&topology), collective.clone());
    let core = progress::attended_until(py, progress, limits, move |watch| {
        core::make(&on, &what, &options, watch)
    })??;
    Ok(PyMade {
        core,
        topology,
        collective,
        latency,
    })
}

#[pymethods]
impl PyMade {
    /// The plan, verified where it was proved on the way, and its run, where it was simulated on the way.
    #[getter]
    fn plan_and_run(&self, py: Python<'_>) -> PyResult<(Py<PyPlan>, Option<PyRun>)> {
        let (plan, topology) = (Arc::clone(&self.core.plan), Arc::clone(&self.topology));
        let plan = PyPlan::proved(plan, topology, self.core.proof.as_ref());
        PyRun::with(py, plan, self.core.run.as_ref(), self.latency)
    }

    /// Into how many pieces its blocks are cut, or each tree's share, where the algorithm chose that.
    #[getter]
    fn pieces(&self) -> Option<usize> {
        self.core.pieces()
    }

    /// The schedule of dimensions that it carries out.
    #[getter]
    fn schedule(&self) -> Option<PySchedule> {
        let Some(Construction::Schedule(schedule)) = &self.core.construction else {
            return None;
        };
        let (topology, collective) = (Arc::clone(&self.topology), self.collective.clone());
        Some(PySchedule::of(schedule, topology, collective))
    }

    /// Pieces of each tree, when it ends at the latest [ps], and its trees: of sums, then of copies.
    #[getter]
    fn trees(&self) -> Option<(usize, u64, Vec<PyPacking>)> {
        match &self.core.construction {
            Some(Construction::Trees {
                passes,
                pieces,
                time,
            }) => Some((
                *pieces,
                time.as_ps(),
                PyPacking::all(passes, &self.topology),
            )),
            _ => None,
        }
    }

    /// What a search found, and the same spread over equal paths, where there are any.
    #[getter]
    fn candidates(&self) -> Option<(PyCandidate, Option<PyCandidate>)> {
        let Some(Construction::Synthesis { found, spread }) = &self.core.construction else {
            return None;
        };
        let spread = spread.as_ref().map(|each| PyCandidate::of(each));
        Some((PyCandidate::of(found), spread))
    }
}

/// Refuse a plan, or without an algorithm a greedy timetable, that is too large on any such network.
///
/// What ``auto`` makes may be any algorithm's, and is let through.
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

/// Return how many transfers a plan of so many slices has on any such network; 0 where nobody can tell before
/// it is made, as of ``auto``.
///
/// Saturates. Trees may have several times as many, as may searches in which NPUs pass on what they do not want.
#[pyfunction]
#[pyo3(signature = (kind, npus, dimensions, algorithm, chunks))]
pub(crate) fn transfers(
    kind: &str,
    npus: u32,
    dimensions: Vec<GivenDimension>,
    algorithm: &str,
    chunks: usize,
) -> Result<u64, CoreError> {
    let outline = Outline {
        kind: kind.parse()?,
        npus,
        dimensions: &to_dimensions(&dimensions)?,
    };
    let count = match counted_as(algorithm)? {
        Some(counted) if npus > 1 && counted.supports(outline.kind) => {
            outline.transfers(counted, chunks)
        }
        _ => 0,
    };
    Ok(u64::try_from(count).unwrap_or(u64::MAX))
}

/// Return how many transfers a plan of so many slices has at the least; InfeasibleError as ``plan``.
///
/// 0 for an algorithm that tries others.
#[pyfunction]
pub(crate) fn least_transfers(
    topology: &PyTopology,
    collective: &PyCollective,
    algorithm: &str,
    chunks: usize,
) -> Result<u128, CoreError> {
    let (topology, collective) = (topology.core(), collective.core());
    counted_as(algorithm)?.map_or(Ok(0), |counted| {
        core::check_applicable(topology, collective, counted)?;
        Ok(core::transfer_count(topology, collective, counted, chunks))
    })
}

/// Return how many slices an algorithm cuts the data into by default; 1 for ``auto``, which chooses.
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

/// List numbers of chunks worth trying, ascending; InfeasibleError as ``plan``.
///
/// One of an algorithm that searches for long, its default; none for ``trees``,
/// ``flows`` and ``auto``, which choose.
#[pyfunction]
pub(crate) fn chunk_ladder(
    topology: &PyTopology,
    collective: &PyCollective,
    algorithm: &str,
) -> Result<Vec<usize>, CoreError> {
    let Entry {
        about, counts_as, ..
    } = entry(algorithm)?;
    let Some(counted) = counts_as else {
        return Ok(Vec::new());
    };
    let (topology, collective) = (topology.core(), collective.core());
    core::check_applicable(topology, collective, counted)
        .map_err(|error| error.named(about.name))?;
    Ok(match about.making {
        Origin::Routes => Vec::new(),
        Origin::Solver => vec![core::default_chunks(counted, topology, collective)],
        _ => core::chunk_ladder(topology, collective, counted),
    })
}

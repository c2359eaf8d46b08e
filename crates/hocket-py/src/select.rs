//! `Candidate`: a synthesized plan.

use std::sync::Arc;

use hocket_core::select as core;
use hocket_core::synthesis::Unwinding;
use pyo3::prelude::*;

use crate::choice::{LATENCIES, choose};
use crate::error::CoreError;
use crate::plan::PyPlan;
use crate::progress;
use crate::simulate::PyRun;
use crate::synthesis::{PyProblem, PyTimetables, to_unwinding};

/// A synthesized plan, proved and simulated at link fidelity when somebody asks when it ends.
#[pyclass(name = "Candidate", module = "hocket._core.synthesis", frozen)]
pub(crate) struct PyCandidate {
    core: core::Candidate,
}

impl PyCandidate {
    pub(crate) fn of(core: &core::Candidate) -> Self {
        let core = core.clone();
        Self { core }
    }
}

#[pymethods]
impl PyCandidate {
    /// Make one of timetables from elsewhere.
    #[new]
    fn new(
        problem: &PyProblem,
        timetables: &PyTimetables,
        unwinding: Vec<String>,
        latency: &str,
        algorithm: &str,
    ) -> Result<Self, CoreError> {
        let latency = choose("latency", latency, LATENCIES)?;
        let on = (
            Arc::clone(problem.topology()),
            to_unwindings(&unwinding)?,
            latency,
        );
        let times = timetables.core().clone();
        let core = core::Candidate::of_timetables(on, Arc::clone(problem.core()), times);
        Ok(Self {
            core: core.named(algorithm),
        })
    }

    #[getter]
    fn problem(&self) -> PyProblem {
        let (problem, topology) = (self.core.problem(), self.core.topology());
        PyProblem::of(Arc::clone(problem), Arc::clone(topology))
    }

    /// One entry for all switches, or one for each dimension.
    #[getter]
    fn unwinding(&self) -> Vec<String> {
        self.core
            .unwinding()
            .iter()
            .map(Unwinding::to_string)
            .collect()
    }

    /// The plan, verified if it was simulated, and then its run.
    #[getter]
    fn plan_and_run(&self, py: Python<'_>) -> PyResult<(Py<PyPlan>, Option<PyRun>)> {
        let core = &self.core;
        let plan = py.detach(|| Arc::clone(core.plan()));
        let plan = PyPlan::proved(plan, Arc::clone(core.topology()), core.proof());
        PyRun::with(py, plan, core.run(), core.latency())
    }

    /// When its timetable ends; None of a plan made without one.
    #[getter]
    fn end_ps(&self) -> Option<u64> {
        self.core.end().map(|end| end.as_ps())
    }

    /// Whether its time is simulated; that of a large plan is when its timetable ends.
    #[getter]
    fn is_simulated(&self) -> bool {
        self.core.is_simulated()
    }

    /// When the plan ends [ps].
    #[getter]
    fn time_ps(&self, py: Python<'_>) -> Result<u64, CoreError> {
        let ending = progress::watched(py, None, |watch| self.core.ending(watch))?;
        Ok(ending.time.as_ps())
    }

    /// Spread the plan over equal paths; balanced only where that is no slower.
    fn routed(&self, py: Python<'_>, routing: &str) -> Result<Self, CoreError> {
        let routing = routing.parse()?;
        let core = progress::watched(py, None, |watch| self.core.clone().routed(routing, watch))?;
        Ok(Self { core })
    }
}

pub(crate) fn to_unwindings(names: &[String]) -> Result<Vec<Unwinding>, CoreError> {
    names.iter().map(|name| to_unwinding(name)).collect()
}

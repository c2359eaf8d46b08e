//! `simulate` and `Run`.

use std::sync::Arc;

use hocket_core::simulate::{self as core, LatencyModel, LinkOrder, SimulateOptions, Switching};
use hocket_core::verify::Verified;
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::arrays;
use crate::error::CoreError;
use crate::plan::PyPlan;
use crate::progress;

/// What a simulation returns: times of every transfer, use of every link.
#[pyclass(name = "Run", module = "hocket._core", frozen)]
pub(crate) struct PyRun {
    core: core::Run,
    verified: Arc<Verified>,
}

impl PyRun {
    pub(crate) fn core(&self) -> &core::Run {
        &self.core
    }

    pub(crate) fn verified(&self) -> &Verified {
        &self.verified
    }
}

#[pyfunction]
#[pyo3(signature = (
    plan, *, order="ready", switching="store-and-forward", latency="overlapped",
    keep_services=false, progress=None
))]
pub(crate) fn simulate(
    py: Python<'_>,
    plan: &PyPlan,
    order: &str,
    switching: &str,
    latency: &str,
    keep_services: bool,
    progress: Option<Py<PyAny>>,
) -> Result<PyRun, CoreError> {
    let options = SimulateOptions {
        order: choose("order", order, ORDERS)?,
        switching: choose("switching", switching, SWITCHINGS)?,
        latency: choose("latency", latency, LATENCIES)?,
        keep_services,
    };
    let verified = plan.verified(py, progress.as_ref().map(|callable| callable.clone_ref(py)))?;
    let core = progress::watched(py, progress, |watch| {
        core::simulate(&verified, &options, watch)
    })?;
    Ok(PyRun { core, verified })
}

#[pymethods]
impl PyRun {
    #[getter]
    fn time_ps(&self) -> u64 {
        self.core.time.as_ps()
    }

    #[getter]
    fn start_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| &this.core.start)
    }

    #[getter]
    fn end_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| &this.core.end)
    }

    #[getter]
    fn link_busy_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::field(slf, |this| &this.core.links, |link| &link.busy)
    }

    #[getter]
    fn link_bytes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::field(slf, |this| &this.core.links, |link| &link.bytes)
    }

    #[getter]
    fn link_messages<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::field(slf, |this| &this.core.links, |link| &link.messages)
    }

    #[getter]
    fn service_transfer<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::field(slf, |this| &this.core.services, |service| &service.transfer)
    }

    #[getter]
    fn service_link<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::field(slf, |this| &this.core.services, |service| &service.link)
    }

    #[getter]
    fn service_start_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::field(slf, |this| &this.core.services, |service| &service.start)
    }

    #[getter]
    fn service_end_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::field(slf, |this| &this.core.services, |service| &service.end)
    }

    fn __repr__(&self) -> String {
        format!("<Run: {}>", self.core.time)
    }
}

const ORDERS: &[(&str, LinkOrder)] = &[("ready", LinkOrder::Ready), ("plan", LinkOrder::Plan)];
const SWITCHINGS: &[(&str, Switching)] = &[
    ("store-and-forward", Switching::StoreAndForward),
    ("cut-through", Switching::CutThrough),
];
const LATENCIES: &[(&str, LatencyModel)] = &[
    ("overlapped", LatencyModel::Overlapped),
    ("occupying", LatencyModel::Occupying),
];

fn choose<T: Copy>(what: &str, name: &str, choices: &[(&str, T)]) -> Result<T, CoreError> {
    match choices.iter().find(|(known, _)| *known == name) {
        Some((_, choice)) => Ok(*choice),
        None => {
            let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
            let known = known.join(" or ");
            Err(CoreError::Spec(format!(
                "{what} is {name:?}; it is {known}"
            )))
        }
    }
}

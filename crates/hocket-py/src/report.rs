//! `report` and `heat`: the figures of a run.

use hocket_core::report as core;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use crate::error::CoreError;
use crate::simulate::PyRun;

/// The figures of one run.
#[pyclass(module = "hocket._core", frozen, get_all)]
pub(crate) struct Report {
    time_ps: u64,
    algbw: f64,
    busbw: f64,
    utilization: f64,
    busiest_link: Option<u32>,
    busiest_share: f64,
    max_link_bytes: u64,
}

#[pyfunction]
pub(crate) fn report(run: &PyRun) -> Report {
    let verified = run.verified();
    let collective = verified.plan().collective();
    let report = core::Report::new(run.core(), collective, verified.topology());
    Report {
        time_ps: report.time.as_ps(),
        algbw: report.algbw,
        busbw: report.busbw,
        utilization: report.utilization,
        busiest_link: report.busiest.map(|(link, _)| link.0),
        busiest_share: report.busiest.map_or(0.0, |(_, share)| share),
        max_link_bytes: report.max_link_bytes,
    }
}

#[pyfunction]
pub(crate) fn heat<'py>(
    py: Python<'py>,
    run: &PyRun,
    bins: usize,
) -> Result<Bound<'py, PyArray2<f32>>, CoreError> {
    let run = run.core();
    if run.services.is_empty() && run.start.iter().len() > 0 {
        return Err(CoreError::Spec(
            "the run kept no services; simulate with keep_services=True".to_owned(),
        ));
    }
    let shares = py.detach(|| core::heat(run, bins));
    Ok(PyArray1::from_vec(py, shares).reshape([run.links.len(), bins])?)
}

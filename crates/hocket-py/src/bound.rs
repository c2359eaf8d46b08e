//! `bound`.

use std::sync::Arc;

use hocket_core::bound::{self as core, BoundOptions};
use hocket_core::topology::Topology;
use pyo3::prelude::*;

use crate::collective::PyCollective;
use crate::error::CoreError;
use crate::progress;
use crate::topology::PyTopology;

/// A lower bound on the time of any plan, and what proves it.
#[pyclass(module = "hocket._core", frozen, get_all)]
pub(crate) struct Bound {
    time_ps: u64,
    witness: String,
    components: Vec<(&'static str, u64)>,
    exact_cut: bool,
    exact_partition: bool,
}

#[pymethods]
impl Bound {
    fn __repr__(&self) -> String {
        format!("<Bound {} ps: {}>", self.time_ps, self.witness)
    }
}

/// Give a lower bound on the time of any plan for the collective on the topology.
///
/// `time_ps` [ps], `witness` (what proves it, in words), `components` (every argument's own bound).
#[pyfunction]
#[pyo3(signature = (topology, collective, flit_bytes=None))]
pub(crate) fn bound(
    py: Python<'_>,
    topology: &PyTopology,
    collective: &PyCollective,
    flit_bytes: Option<u64>,
) -> Result<Bound, CoreError> {
    let (whole, collective) = (topology.core(), collective.core().clone());
    collective.check_on(whole)?;
    let topology = match flit_bytes {
        Some(bytes) => Arc::new(Topology::clone(whole).with_latencies_less(bytes)),
        None => Arc::clone(whole),
    };
    let on = Arc::clone(&topology);
    let work = move || core::bound(&on, &collective, &BoundOptions::default());
    let bound = progress::attended(py, work)?;
    let components = bound.components.iter();
    Ok(Bound {
        time_ps: bound.time.as_ps(),
        witness: bound.witness.describe(&topology),
        components: components
            .map(|&(name, time)| (name, time.as_ps()))
            .collect(),
        exact_cut: bound.exact_cut,
        exact_partition: bound.exact_partition,
    })
}

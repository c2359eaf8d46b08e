//! `verify` and `Violation`.

use hocket_core::verify as core;
use pyo3::prelude::*;

use crate::error::CoreError;
use crate::plan::PyPlan;

/// One thing that is wrong with a plan.
#[pyclass(module = "hocket._core", frozen, eq, get_all)]
#[derive(PartialEq)]
pub(crate) struct Violation {
    code: &'static str,
    transfer: Option<u32>,
    chunk: Option<u32>,
    npu: Option<u32>,
    detail: String,
    text: String,
}

impl From<&core::Violation> for Violation {
    fn from(violation: &core::Violation) -> Self {
        Self {
            code: violation.code.name(),
            transfer: violation.transfer.map(|transfer| transfer.0),
            chunk: violation.chunk.map(|chunk| chunk.0),
            npu: violation.npu.map(|npu| npu.0),
            detail: violation.detail.clone(),
            text: violation.to_string(),
        }
    }
}

#[pymethods]
impl Violation {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<Violation {}>", self.text)
    }
}

#[pyfunction]
#[pyo3(signature = (plan, progress=None))]
pub(crate) fn verify(
    py: Python<'_>,
    plan: &PyPlan,
    progress: Option<Py<PyAny>>,
) -> Result<(), CoreError> {
    plan.verified(py, progress).map(drop)
}

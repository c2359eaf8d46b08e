//! `verify` and `Violation`.

use hocket_core::explain::Explain;
use hocket_core::verify as core;
use pyo3::prelude::*;

use crate::error::CoreError;
use crate::hints::Listener;
use crate::pickle::{Reduced, attributes, reduced};
use crate::plan::PyPlan;

pyo3::import_exception!(hocket.errors, VerificationError);

impl From<core::VerifyError> for CoreError {
    fn from(error: core::VerifyError) -> Self {
        match error {
            core::VerifyError::Wrong(report) => {
                let violations = report.violations().iter().map(Violation::from);
                let violations: Vec<Violation> = violations.collect();
                VerificationError::new_err((report.to_string(), violations)).into()
            }
            core::VerifyError::Interrupted(_) => CoreError::Interrupted,
            _ => CoreError::Spec(error.parts()),
        }
    }
}

/// One thing that is wrong with a plan; ``str`` gives all of it in a line.
#[pyclass(module = "hocket._core", frozen, eq, get_all)]
#[derive(PartialEq)]
pub(crate) struct Violation {
    /// Stable name of its kind, such as counted_twice.
    code: String,
    /// The transfer to blame.
    transfer: Option<u32>,
    /// The chunk concerned.
    chunk: Option<u32>,
    /// The NPU concerned.
    npu: Option<u32>,
    /// What is missing, counted twice or out of order.
    detail: String,
    /// All of it in a line.
    text: String,
}

impl From<&core::Violation> for Violation {
    fn from(violation: &core::Violation) -> Self {
        Self {
            code: violation.code.name().to_owned(),
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
    /// What was found before, as in a pickle.
    #[new]
    fn new(
        code: String,
        transfer: Option<u32>,
        chunk: Option<u32>,
        npu: Option<u32>,
        detail: String,
        text: String,
    ) -> Self {
        Self {
            code,
            transfer,
            chunk,
            npu,
            detail,
            text,
        }
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let keywords = attributes(this, &["code", "transfer", "chunk", "npu", "detail"])?;
        keywords.set_item("text", &this.get().text)?;
        reduced(this.py(), "Violation", keywords)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<Violation {}>", self.text)
    }
}

/// Prove a plan right, once, or raise VerificationError; later calls return at once.
#[pyfunction]
#[pyo3(signature = (plan, progress=None))]
pub(crate) fn verify(
    py: Python<'_>,
    plan: &PyPlan,
    progress: Option<Listener>,
) -> Result<(), CoreError> {
    plan.verified(py, progress).map(drop)
}

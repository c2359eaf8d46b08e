//! Core errors as the classes of `hocket.errors`.

use hocket_core::cluster::ClusterError;
use hocket_core::collective::CollectiveError;
use hocket_core::iteration::GraphError;
use hocket_core::plan::{BadRouting, PlanError};
use hocket_core::progress::Interrupted;
use hocket_core::replay::ReplayError;
use hocket_core::report::ReportError;
use hocket_core::routing::RoutingError;
use hocket_core::simulate::SimulateError;
use hocket_core::topology::TopologyError;
use hocket_core::trace::TraceError;
use hocket_core::verify::{VerifyError, VerifyReport};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::verify::Violation;

/// Any error of the core, on its way to Python.
pub(crate) enum CoreError {
    /// `hocket.SpecError`: the input makes no sense.
    Spec(String),
    /// `hocket.InfeasibleError`: it makes sense, but cannot be done here.
    Infeasible(String),
    /// `hocket.VerificationError`, with the violations.
    Verification(VerifyReport),
    /// `hocket.SimulationError`.
    Simulation(String),
    /// `KeyboardInterrupt`.
    Interrupted,
    /// Raised by Python itself: a signal, or the callable that watches progress.
    Python(PyErr),
}

impl From<CoreError> for PyErr {
    fn from(error: CoreError) -> PyErr {
        Python::attach(|py| error.into_python(py).unwrap_or_else(|failure| failure))
    }
}

impl From<TopologyError> for CoreError {
    fn from(error: TopologyError) -> Self {
        CoreError::Spec(error.to_string())
    }
}

impl From<BadRouting> for CoreError {
    fn from(error: BadRouting) -> Self {
        CoreError::Spec(error.to_string())
    }
}

impl From<CollectiveError> for CoreError {
    fn from(error: CollectiveError) -> Self {
        CoreError::Spec(error.to_string())
    }
}

impl From<TraceError> for CoreError {
    fn from(error: TraceError) -> Self {
        CoreError::Spec(error.to_string())
    }
}

impl From<PlanError> for CoreError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::NotApplicable { .. } | PlanError::Memory { .. } => {
                CoreError::Infeasible(error.to_string())
            }
            // Ctrl-C comes out as what Python raised; what stops the work here is a limit of time.
            PlanError::Interrupted(_) => CoreError::Infeasible(error.to_string()),
            _ => CoreError::Spec(error.to_string()),
        }
    }
}

impl From<RoutingError> for CoreError {
    fn from(error: RoutingError) -> Self {
        match error {
            RoutingError::Cut { .. } => CoreError::Infeasible(error.to_string()),
            _ => CoreError::Spec(error.to_string()),
        }
    }
}

impl From<ClusterError> for CoreError {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::Routing(error) => error.into(),
            ClusterError::Interrupted(_) => CoreError::Interrupted,
            ClusterError::Cut { .. } | ClusterError::Lost { .. } => {
                CoreError::Infeasible(error.to_string())
            }
            _ => CoreError::Simulation(error.to_string()),
        }
    }
}

impl From<GraphError> for CoreError {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::Interrupted(_) => CoreError::Interrupted,
            _ => CoreError::Spec(error.to_string()),
        }
    }
}

impl From<ReplayError> for CoreError {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Graph(error) => error.into(),
            _ => CoreError::Spec(error.to_string()),
        }
    }
}

impl From<VerifyError> for CoreError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Wrong(report) => CoreError::Verification(report),
            VerifyError::Interrupted(_) => CoreError::Interrupted,
            _ => CoreError::Spec(error.to_string()),
        }
    }
}

impl From<SimulateError> for CoreError {
    fn from(error: SimulateError) -> Self {
        match error {
            SimulateError::Interrupted(_) => CoreError::Interrupted,
            SimulateError::Packets { .. } | SimulateError::Sprayed => {
                CoreError::Spec(error.to_string())
            }
            _ => CoreError::Simulation(error.to_string()),
        }
    }
}

impl From<ReportError> for CoreError {
    fn from(error: ReportError) -> Self {
        CoreError::Spec(error.to_string())
    }
}

impl From<Interrupted> for CoreError {
    fn from(_: Interrupted) -> Self {
        CoreError::Interrupted
    }
}

impl From<PyErr> for CoreError {
    fn from(error: PyErr) -> Self {
        CoreError::Python(error)
    }
}

impl CoreError {
    fn into_python(self, py: Python<'_>) -> PyResult<PyErr> {
        static SPEC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        static INFEASIBLE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        static VERIFICATION: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        static SIMULATION: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        const MODULE: &str = "hocket.errors";
        const NO_FIELD: Option<&str> = None;
        let value = match self {
            CoreError::Spec(message) => SPEC
                .import(py, MODULE, "SpecError")?
                .call1((NO_FIELD, message))?,
            CoreError::Infeasible(message) => INFEASIBLE
                .import(py, MODULE, "InfeasibleError")?
                .call1((NO_FIELD, message))?,
            CoreError::Verification(report) => {
                let violations: Vec<Violation> =
                    report.violations().iter().map(Violation::from).collect();
                VERIFICATION
                    .import(py, MODULE, "VerificationError")?
                    .call1((report.to_string(), violations))?
            }
            CoreError::Simulation(message) => SIMULATION
                .import(py, MODULE, "SimulationError")?
                .call1((NO_FIELD, message))?,
            CoreError::Interrupted => return Ok(PyKeyboardInterrupt::new_err(())),
            CoreError::Python(error) => return Ok(error),
        };
        Ok(PyErr::from_value(value))
    }
}

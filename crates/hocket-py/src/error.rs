//! Core errors as the classes of `hocket.errors`.

use hocket_core::cluster::ClusterError;
use hocket_core::collective::CollectiveError;
use hocket_core::explain::Explain;
pub(crate) use hocket_core::explain::Parts;
use hocket_core::iteration::GraphError;
use hocket_core::kernel::KernelError;
use hocket_core::multirail::{BadLanes, Uneven};
use hocket_core::plan::{BadRouting, BadRow, BadTransfer, PlanError};
use hocket_core::progress::Interrupted;
use hocket_core::replay::ReplayError;
use hocket_core::report::ReportError;
use hocket_core::routing::RoutingError;
use hocket_core::routing::steering::Unreachable;
use hocket_core::simulate::SimulateError;
use hocket_core::synthesis::BadUnwinding;
use hocket_core::topology::TopologyError;
use hocket_core::trace::TraceError;
use hocket_formats::FormatError;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// Any error of the core, on its way to Python.
pub(crate) enum CoreError {
    /// `hocket.SpecError`: the input makes no sense.
    Spec(Parts),
    /// `hocket.InfeasibleError`: it makes sense, but cannot be done here.
    Infeasible(Parts),
    /// `hocket.SimulationError`.
    Simulation(Parts),
    /// `hocket.TransportError`: a call between processes failed.
    #[cfg(unix)]
    Transport(hocket_runtime::error::Failure),
    /// `KeyboardInterrupt`.
    Interrupted,
    /// `hocket.VerificationError`, or raised by Python itself: a signal, or the callable that watches progress.
    Python(PyErr),
}

impl From<CoreError> for PyErr {
    fn from(error: CoreError) -> PyErr {
        Python::attach(|py| error.into_python(py).unwrap_or_else(|failure| failure))
    }
}

/// Input that makes no sense, in words of the binding's own.
impl From<Parts> for CoreError {
    fn from(parts: Parts) -> Self {
        CoreError::Spec(parts)
    }
}

/// Errors that all say that the input makes no sense.
macro_rules! spec_errors {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for CoreError {
            fn from(error: $error) -> Self {
                CoreError::Spec(error.parts())
            }
        })*
    };
}

spec_errors!(
    BadLanes,
    BadRouting,
    BadRow,
    BadTransfer,
    BadUnwinding,
    CollectiveError,
    FormatError,
    ReportError,
    TopologyError,
    TraceError,
    Uneven,
);

impl From<KernelError> for CoreError {
    fn from(error: KernelError) -> Self {
        let parts = error.parts();
        match error {
            KernelError::Stuck { .. } => CoreError::Infeasible(parts),
            _ => CoreError::Spec(parts),
        }
    }
}

impl From<PlanError> for CoreError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::NotApplicable { .. } | PlanError::Memory { .. } => {
                CoreError::Infeasible(error.parts())
            }
            // Ctrl-C comes out as what Python raised; what stops the work here is a limit of time.
            PlanError::Interrupted(_) => CoreError::Infeasible(error.parts()),
            _ => CoreError::Spec(error.parts()),
        }
    }
}

impl From<RoutingError> for CoreError {
    fn from(error: RoutingError) -> Self {
        match error {
            RoutingError::Cut { .. } => CoreError::Infeasible(error.parts()),
            _ => CoreError::Spec(error.parts()),
        }
    }
}

impl From<Unreachable> for CoreError {
    fn from(error: Unreachable) -> Self {
        CoreError::Infeasible(error.parts())
    }
}

impl From<ClusterError> for CoreError {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::Routing(error) => error.into(),
            ClusterError::Interrupted(_) => CoreError::Interrupted,
            ClusterError::Cut { .. } | ClusterError::Lost { .. } => {
                CoreError::Infeasible(error.parts())
            }
            ClusterError::Malformed { .. } => CoreError::Spec(error.parts()),
            _ => CoreError::Simulation(error.parts()),
        }
    }
}

impl From<GraphError> for CoreError {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::Interrupted(_) => CoreError::Interrupted,
            _ => CoreError::Spec(error.parts()),
        }
    }
}

impl From<ReplayError> for CoreError {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Graph(error) => error.into(),
            _ => CoreError::Spec(error.parts()),
        }
    }
}

impl From<SimulateError> for CoreError {
    fn from(error: SimulateError) -> Self {
        match error {
            SimulateError::Interrupted(_) => CoreError::Interrupted,
            SimulateError::Packets { .. }
            | SimulateError::Sprayed
            | SimulateError::Malformed { .. } => CoreError::Spec(error.parts()),
            _ => CoreError::Simulation(error.parts()),
        }
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
        static SIMULATION: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        #[cfg(unix)]
        static TRANSPORT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        const MODULE: &str = "hocket.errors";
        let value = match self {
            CoreError::Spec(parts) => SPEC
                .import(py, MODULE, "SpecError")?
                .call1(arguments(parts))?,
            CoreError::Infeasible(parts) => INFEASIBLE
                .import(py, MODULE, "InfeasibleError")?
                .call1(arguments(parts))?,
            CoreError::Simulation(parts) => SIMULATION
                .import(py, MODULE, "SimulationError")?
                .call1(arguments(parts))?,
            #[cfg(unix)]
            CoreError::Transport(failure) => {
                let (why, code) = (failure.to_string(), failure.code.name());
                TRANSPORT.import(py, MODULE, "TransportError")?.call1((
                    why,
                    code,
                    failure.culprit,
                    failure.call,
                ))?
            }
            CoreError::Interrupted => return Ok(PyKeyboardInterrupt::new_err(())),
            CoreError::Python(error) => return Ok(error),
        };
        Ok(PyErr::from_value(value))
    }
}

/// What the classes of `hocket.errors` are made of.
fn arguments(parts: Parts) -> (Option<String>, String, Option<String>, Option<String>) {
    (parts.field, parts.why, parts.remedy, parts.origin)
}

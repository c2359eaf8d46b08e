//! Core errors as the classes of `hocket.errors`.

use std::borrow::Cow;

use hocket_core::cluster::ClusterError;
use hocket_core::collective::CollectiveError;
use hocket_core::explain::Explain;
use hocket_core::iteration::GraphError;
use hocket_core::kernel::KernelError;
use hocket_core::multirail::{BadLanes, Uneven};
use hocket_core::plan::{BadRouting, PlanError};
use hocket_core::progress::Interrupted;
use hocket_core::replay::ReplayError;
use hocket_core::report::ReportError;
use hocket_core::routing::RoutingError;
use hocket_core::routing::steering::Unreachable;
use hocket_core::simulate::SimulateError;
use hocket_core::synthesis::BadUnwinding;
use hocket_core::topology::TopologyError;
use hocket_core::trace::TraceError;
use hocket_core::verify::{VerifyError, VerifyReport};
use hocket_formats::FormatError;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::verify::Violation;

/// What the classes of `hocket.errors` are made of.
pub(crate) struct Parts {
    field: Option<String>,
    why: String,
    remedy: Option<String>,
    origin: Option<String>,
}

type Arguments = (Option<String>, String, Option<String>, Option<String>);

impl Parts {
    pub(crate) fn of(error: &impl Explain) -> Self {
        Self {
            field: error.field().map(str::to_owned),
            why: error.why(),
            remedy: error.remedy().map(Cow::into_owned),
            origin: error.origin().map(Cow::into_owned),
        }
    }

    /// What is wrong, in words of the binding's own.
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self {
            field: None,
            why: why.into(),
            remedy: None,
            origin: None,
        }
    }

    /// The argument that is wrong.
    pub(crate) fn field(self, field: &str) -> Self {
        let field = Some(field.to_owned());
        Self { field, ..self }
    }

    /// What would be right.
    pub(crate) fn remedy(self, remedy: impl Into<String>) -> Self {
        let remedy = Some(remedy.into());
        Self { remedy, ..self }
    }

    /// The object that has the field.
    pub(crate) fn origin(self, origin: impl Into<String>) -> Self {
        let origin = Some(origin.into());
        Self { origin, ..self }
    }

    fn into_arguments(self) -> Arguments {
        (self.field, self.why, self.remedy, self.origin)
    }
}

/// Any error of the core, on its way to Python.
pub(crate) enum CoreError {
    /// `hocket.SpecError`: the input makes no sense.
    Spec(Parts),
    /// `hocket.InfeasibleError`: it makes sense, but cannot be done here.
    Infeasible(Parts),
    /// `hocket.VerificationError`, with the violations.
    Verification(VerifyReport),
    /// `hocket.SimulationError`.
    Simulation(Parts),
    /// `hocket.TransportError`: a call between processes failed.
    #[cfg(unix)]
    Transport(hocket_runtime::error::Failure),
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

/// Input that makes no sense, in words of the binding's own.
impl From<Parts> for CoreError {
    fn from(parts: Parts) -> Self {
        CoreError::Spec(parts)
    }
}

impl From<TopologyError> for CoreError {
    fn from(error: TopologyError) -> Self {
        CoreError::Spec(Parts::of(&error))
    }
}

impl From<KernelError> for CoreError {
    fn from(error: KernelError) -> Self {
        let parts = Parts::of(&error);
        match error {
            KernelError::Stuck { .. } => CoreError::Infeasible(parts),
            _ => CoreError::Spec(parts),
        }
    }
}

impl From<BadLanes> for CoreError {
    fn from(error: BadLanes) -> Self {
        CoreError::Spec(Parts::of(&error))
    }
}

impl From<Uneven> for CoreError {
    fn from(error: Uneven) -> Self {
        CoreError::Spec(Parts::of(&error))
    }
}

impl From<BadUnwinding> for CoreError {
    fn from(error: BadUnwinding) -> Self {
        CoreError::Spec(Parts::of(&error))
    }
}

impl From<BadRouting> for CoreError {
    fn from(error: BadRouting) -> Self {
        CoreError::Spec(Parts::of(&error))
    }
}

impl From<CollectiveError> for CoreError {
    fn from(error: CollectiveError) -> Self {
        CoreError::Spec(Parts::of(&error))
    }
}

impl From<TraceError> for CoreError {
    fn from(error: TraceError) -> Self {
        CoreError::Spec(Parts::of(&error))
    }
}

impl From<FormatError> for CoreError {
    fn from(error: FormatError) -> Self {
        CoreError::Spec(Parts::of(&error))
    }
}

impl From<PlanError> for CoreError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::NotApplicable { .. } | PlanError::Memory { .. } => {
                CoreError::Infeasible(Parts::of(&error))
            }
            // Ctrl-C comes out as what Python raised; what stops the work here is a limit of time.
            PlanError::Interrupted(_) => CoreError::Infeasible(Parts::of(&error)),
            _ => CoreError::Spec(Parts::of(&error)),
        }
    }
}

impl From<RoutingError> for CoreError {
    fn from(error: RoutingError) -> Self {
        match error {
            RoutingError::Cut { .. } => CoreError::Infeasible(Parts::of(&error)),
            _ => CoreError::Spec(Parts::of(&error)),
        }
    }
}

impl From<Unreachable> for CoreError {
    fn from(error: Unreachable) -> Self {
        CoreError::Infeasible(Parts::of(&error))
    }
}

impl From<ClusterError> for CoreError {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::Routing(error) => error.into(),
            ClusterError::Interrupted(_) => CoreError::Interrupted,
            ClusterError::Cut { .. } | ClusterError::Lost { .. } => {
                CoreError::Infeasible(Parts::of(&error))
            }
            ClusterError::Malformed { .. } => CoreError::Spec(Parts::of(&error)),
            _ => CoreError::Simulation(Parts::of(&error)),
        }
    }
}

impl From<GraphError> for CoreError {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::Interrupted(_) => CoreError::Interrupted,
            _ => CoreError::Spec(Parts::of(&error)),
        }
    }
}

impl From<ReplayError> for CoreError {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Graph(error) => error.into(),
            _ => CoreError::Spec(Parts::of(&error)),
        }
    }
}

impl From<VerifyError> for CoreError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Wrong(report) => CoreError::Verification(report),
            VerifyError::Interrupted(_) => CoreError::Interrupted,
            _ => CoreError::Spec(Parts::of(&error)),
        }
    }
}

impl From<SimulateError> for CoreError {
    fn from(error: SimulateError) -> Self {
        match error {
            SimulateError::Interrupted(_) => CoreError::Interrupted,
            SimulateError::Packets { .. }
            | SimulateError::Sprayed
            | SimulateError::Malformed { .. } => CoreError::Spec(Parts::of(&error)),
            _ => CoreError::Simulation(Parts::of(&error)),
        }
    }
}

impl From<ReportError> for CoreError {
    fn from(error: ReportError) -> Self {
        CoreError::Spec(Parts::of(&error))
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
        #[cfg(unix)]
        static TRANSPORT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        const MODULE: &str = "hocket.errors";
        let value = match self {
            CoreError::Spec(parts) => SPEC
                .import(py, MODULE, "SpecError")?
                .call1(parts.into_arguments())?,
            CoreError::Infeasible(parts) => INFEASIBLE
                .import(py, MODULE, "InfeasibleError")?
                .call1(parts.into_arguments())?,
            CoreError::Verification(report) => {
                let violations: Vec<Violation> =
                    report.violations().iter().map(Violation::from).collect();
                VERIFICATION
                    .import(py, MODULE, "VerificationError")?
                    .call1((report.to_string(), violations))?
            }
            CoreError::Simulation(parts) => SIMULATION
                .import(py, MODULE, "SimulationError")?
                .call1(parts.into_arguments())?,
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

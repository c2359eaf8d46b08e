//! `hocket._core.replay`: execution traces on a network.

use std::sync::Arc;

use hocket_core::replay::{self as core, Rates, Replay};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Array, Given, column, to_vec};
use crate::choice::choose;
use crate::error::{CoreError, Parts};
use crate::hints::Listener;
use crate::iteration::{CALL_ORDERS, PyOutcome, Shape, core_shapes};
use crate::pickle::{Reduced, reduced};
use crate::progress;
use crate::trace::PyTrace;

/// A trace as a graph: nodes are its rows, actors its ranks, calls its collectives, then its sends.
#[pyclass(name = "Replay", module = "hocket._core.replay", frozen)]
pub(crate) struct PyReplay {
    trace: Py<PyTrace>,
    rates: Rates,
    core: Replay,
}

#[pymethods]
impl PyReplay {
    /// Make it; ``operations`` and ``bytes``: what an NPU does in a second.
    #[new]
    #[pyo3(signature = (trace, operations, bytes=None))]
    fn new(
        trace: Bound<'_, PyTrace>,
        operations: u64,
        bytes: Option<u64>,
    ) -> Result<Self, CoreError> {
        if operations == 0 || bytes == Some(0) {
            let wrong = Parts::new("an NPU does nothing in a second");
            return Err(wrong.remedy("give it a rate of 1 or more").into());
        }
        let rates = Rates { operations, bytes };
        let inner = trace.get().core();
        let core = trace.py().detach(|| Replay::new(inner, rates));
        Ok(Self {
            trace: trace.unbind(),
            rates,
            core,
        })
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let me = this.get();
        let keywords = PyDict::new(this.py());
        keywords.set_item("trace", &me.trace)?;
        keywords.set_item("operations", me.rates.operations)?;
        keywords.set_item("bytes", me.rates.bytes)?;
        reduced(this.py(), "replay.Replay", keywords)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// For each rank, the first rank that takes part in the same calls.
    #[getter]
    fn station<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.core.graph.station)
    }

    /// The part that each node keeps busy: 0 the NPU, 1 its CPU or memory, 2 nothing.
    #[getter]
    fn engine<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u8>> {
        column(this, |me| &me.core.graph.nodes.engine)
    }

    /// For each call, its index among the collectives or, after them, the messages.
    #[getter]
    fn calls_what<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.core.graph.calls.shape)
    }

    /// First of each call's nodes, and their number.
    #[getter]
    fn calls_first<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.core.graph.calls.first)
    }

    /// Nodes of the calls; of a message, the send and the receive.
    #[getter]
    fn calls_nodes<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.core.graph.calls.members)
    }

    /// The operation of each distinct collective, numbered as ``hocket.traces.CALLS``.
    #[getter]
    fn collective_kind<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u8>> {
        column(this, |me| &me.core.collectives.kind)
    }

    /// Its group, a row of the trace's.
    #[getter]
    fn collective_group<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.core.collectives.group)
    }

    /// Its bytes.
    #[getter]
    fn collective_size<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        column(this, |me| &me.core.collectives.size)
    }

    /// The sender of each distinct message.
    #[getter]
    fn message_source<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.core.messages.source)
    }

    /// The rank that receives.
    #[getter]
    fn message_target<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.core.messages.target)
    }

    /// Its bytes.
    #[getter]
    fn message_size<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        column(this, |me| &me.core.messages.size)
    }

    /// Run it; ``shape_of``: of each collective and message, its place among ``shapes``.
    ///
    /// Raises
    /// ------
    /// SpecError
    ///     Naming rank and node, if ranks wait for each other.
    #[pyo3(signature = (shape_of, shapes, *, order="fifo", progress=None))]
    fn run(
        this: &Bound<'_, Self>,
        shape_of: Given<'_, u32>,
        shapes: Vec<Bound<'_, Shape>>,
        order: &str,
        progress: Option<Listener>,
    ) -> Result<PyOutcome, CoreError> {
        let py = this.py();
        let made = PyDict::new(py);
        made.set_item("shapes", &shapes)?;
        made.set_item("order", order)?;
        let (shape_of, shapes) = (to_vec(&shape_of), core_shapes(&shapes));
        made.set_item("shape_of", Array::from_slice(py, &shape_of))?;
        let order = choose("order", order, CALL_ORDERS)?;
        let (trace, replay): (_, &core::Replay) = (this.get().trace.get().core(), &this.get().core);
        let (graph, core) = progress::watched(py, progress, |watch| {
            replay.run(trace, &shape_of, &shapes, order, watch)
        })?;
        Ok(PyOutcome {
            graph: Arc::new(graph),
            core,
            made: (this.clone().into_any().unbind(), made.unbind()),
        })
    }
}

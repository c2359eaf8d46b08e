//! `hocket._core.iteration`: graphs of computation and collectives, and their runs.

use hocket_core::iteration::{self as core, Calls, Deps, Graph, Nodes, Order};
use hocket_core::multirail::{Model, Rail};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{column, to_vec};
use crate::choice::{Names, SWITCHINGS, choose};
use crate::error::CoreError;
use crate::multirail::PySchedule;
use crate::progress;
use crate::topology::PyTopology;

pub(crate) const CALL_ORDERS: &Names<Order> = &[("fifo", Order::Fifo), ("lifo", Order::Lifo)];
/// Of an all-to-all.
const MOST_CHUNKS: usize = 1 << 20;

/// What a call has each of its actors do.
#[pyclass(module = "hocket._core.iteration", frozen)]
pub(crate) struct Shape {
    core: core::Shape,
}

/// Shapes as the core has them.
pub(crate) fn core_shapes(shapes: &[Bound<'_, Shape>]) -> Vec<core::Shape> {
    shapes
        .iter()
        .map(|shape| shape.get().core.clone())
        .collect()
}

#[pymethods]
impl Shape {
    #[staticmethod]
    fn of_schedule(schedule: &PySchedule, first: Vec<u16>) -> Result<Self, CoreError> {
        let schedule = schedule.core();
        check_servers(schedule.rails.len(), &first)?;
        Ok(Self {
            core: core::Shape::of_schedule(schedule, &first)?,
        })
    }

    #[staticmethod]
    fn all_to_all(
        topology: &PyTopology,
        bytes: u64,
        chunks: usize,
        switching: &str,
        first: Vec<u16>,
    ) -> Result<Self, CoreError> {
        let rails = Rail::of(topology.core());
        check_servers(rails.len(), &first)?;
        if chunks > MOST_CHUNKS {
            let wrong = format!("chunks: {chunks} are too many; give {MOST_CHUNKS} at most");
            return Err(CoreError::spec(wrong));
        }
        let model = model(switching)?;
        Ok(Self {
            core: core::Shape::all_to_all(&rails, bytes, chunks, model, &first)?,
        })
    }

    #[staticmethod]
    fn message(
        topology: &PyTopology,
        ways: Vec<u32>,
        bytes: u64,
        switching: &str,
        first: Vec<u16>,
    ) -> Result<Self, CoreError> {
        let mut rails = Rail::of(topology.core());
        check_servers(rails.len(), &first)?;
        check_servers(rails.len(), &ways)?;
        let mut on_way = ways.iter().map(|&links| links > 0);
        rails.retain(|_| on_way.next() == Some(true));
        let on_way = |(&first, &links): (&u16, &u32)| (links > 0).then_some((first, links));
        let (first, ways): (Vec<_>, Vec<_>) = first.iter().zip(&ways).filter_map(on_way).unzip();
        let model = model(switching)?;
        Ok(Self {
            core: core::Shape::message(&rails, &ways, bytes, model, &first)?,
        })
    }

    #[staticmethod]
    fn timed(time_ps: u64, server: u16) -> Result<Self, CoreError> {
        Ok(Self {
            core: core::Shape::timed(time_ps, server)?,
        })
    }

    #[getter]
    fn lone_ps(&self) -> u64 {
        self.core.lone_ps()
    }

    #[getter]
    fn busy_ps(&self) -> Vec<(u16, u64)> {
        self.core.busy_ps()
    }
}

fn model(switching: &str) -> Result<Model, CoreError> {
    Ok(Model {
        switching: choose("switching", switching, SWITCHINGS)?,
        ..Model::default()
    })
}

fn check_servers<T>(rails: usize, given: &[T]) -> Result<(), CoreError> {
    match given.len() == rails {
        true => Ok(()),
        false => Err(CoreError::spec(format!(
            "{} numbers are given for {rails} dimensions; give one for each",
            given.len()
        ))),
    }
}

/// What a graph came to: the graph itself is kept for what is asked of it afterwards.
#[pyclass(name = "Outcome", module = "hocket._core.iteration", frozen)]
pub(crate) struct PyOutcome {
    pub(crate) graph: Graph,
    pub(crate) core: core::Outcome,
}

#[pymethods]
impl PyOutcome {
    #[getter]
    fn time_ps(&self) -> u64 {
        self.core.finish_ps
    }

    #[getter]
    fn start_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        column(this, |me| &me.core.start_ps)
    }

    #[getter]
    fn end_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        column(this, |me| &me.core.end_ps)
    }

    #[getter]
    fn call_start_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        column(this, |me| &me.core.call_start_ps)
    }

    #[getter]
    fn call_end_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        column(this, |me| &me.core.call_end_ps)
    }

    fn exposed(&self, py: Python<'_>) -> Exposure {
        let core = py.detach(|| core::exposed(&self.graph, &self.core));
        Exposure { core }
    }
}

/// What kept actors from computing.
#[pyclass(module = "hocket._core.iteration", frozen)]
pub(crate) struct Exposure {
    core: core::Exposure,
}

#[pymethods]
impl Exposure {
    #[getter]
    fn exposed_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        column(this, |me| &me.core.exposed_ps)
    }

    #[getter]
    fn waited_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        column(this, |me| &me.core.waited_ps)
    }

    #[getter]
    fn rest_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        column(this, |me| &me.core.rest_ps)
    }
}

/// Actor, engine, time [ps] and call of each node.
type NodeColumns<'py> = (
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u8>,
    PyReadonlyArray1<'py, u64>,
    PyReadonlyArray1<'py, u32>,
);
/// Where each node's dependencies begin, and all of them.
type DepColumns<'py> = (PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u32>);
/// Shape, priority and starters of each call, where its members begin, and all members.
type CallColumns<'py> = (
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
);

#[pyfunction]
#[pyo3(signature = (station, nodes, deps, calls, shapes, *, order="fifo", progress=None))]
#[expect(clippy::too_many_arguments, reason = "columns, named in Python")]
pub(crate) fn run(
    py: Python<'_>,
    station: PyReadonlyArray1<'_, u32>,
    nodes: NodeColumns<'_>,
    deps: DepColumns<'_>,
    calls: CallColumns<'_>,
    shapes: Vec<Bound<'_, Shape>>,
    order: &str,
    progress: Option<Py<PyAny>>,
) -> Result<PyOutcome, CoreError> {
    let station = to_vec(&station);
    let graph = Graph {
        actors: station.len() as u32,
        station,
        nodes: Nodes {
            actor: to_vec(&nodes.0),
            engine: to_vec(&nodes.1),
            time_ps: to_vec(&nodes.2),
            call: to_vec(&nodes.3),
        },
        deps: Deps {
            first: to_vec(&deps.0),
            of: to_vec(&deps.1),
        },
        calls: Calls {
            shape: to_vec(&calls.0),
            priority: to_vec(&calls.1),
            starters: to_vec(&calls.2),
            first: to_vec(&calls.3),
            members: to_vec(&calls.4),
        },
    };
    let shapes = core_shapes(&shapes);
    let order = choose("order", order, CALL_ORDERS)?;
    let core = progress::watched(py, progress, |watch| {
        core::run(&graph, &shapes, order, watch)
    })?;
    Ok(PyOutcome { graph, core })
}

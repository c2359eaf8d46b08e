//! `hocket._core.iteration`: graphs of computation and collectives, and their runs.

use hocket_core::iteration::{self as core, Calls, Deps, Graph, Nodes, Order};
use hocket_core::multirail::{Model, Rail};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Array, Given, column, to_vec};
use crate::choice::{Names, SWITCHINGS, choose, name_of};
use crate::error::{CoreError, Parts};
use crate::hints::Listener;
use crate::multirail::PySchedule;
use crate::pickle::{Reduced, reduced};
use crate::progress;
use crate::topology::PyTopology;

pub(crate) const CALL_ORDERS: &Names<Order> = &[("fifo", Order::Fifo), ("lifo", Order::Lifo)];
/// Of an all-to-all.
const MAX_CHUNKS: usize = 1 << 20;

/// The work of each actor of a collective or message, for the actor's servers 0, 1, ...
#[pyclass(module = "hocket._core.iteration", frozen)]
pub(crate) struct Shape {
    core: core::Shape,
    made: Made,
}

/// What a shape was made of, for a pickle to make it again.
enum Made {
    Schedule(Py<PySchedule>, Vec<u16>),
    AllToAll(Py<PyTopology>, u64, usize, String, Vec<u16>),
    Message(Py<PyTopology>, Vec<u32>, u64, String, Vec<u16>),
    Timed(u64, u16),
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
    /// Make the shape of a schedule; ``first``: the actor's first server for each of its dimensions.
    #[staticmethod]
    fn of_schedule(schedule: Py<PySchedule>, first: Vec<u16>) -> Result<Self, CoreError> {
        let of = schedule.get().core();
        check_servers(of.rails.len(), &first)?;
        Ok(Self {
            core: core::Shape::of_schedule(of, &first)?,
            made: Made::Schedule(schedule, first),
        })
    }

    /// Make an all-to-all among all NPUs of a product, each of which holds so many bytes.
    #[staticmethod]
    fn all_to_all(
        topology: Py<PyTopology>,
        bytes: u64,
        chunks: usize,
        switching: &str,
        first: Vec<u16>,
    ) -> Result<Self, CoreError> {
        let rails = Rail::of(topology.get().core());
        check_servers(rails.len(), &first)?;
        if chunks > MAX_CHUNKS {
            let wrong = Parts::new(format!("{chunks} are too many")).field("chunks");
            return Err(wrong.remedy(format!("give {MAX_CHUNKS} at most")).into());
        }
        let model = model(switching)?;
        Ok(Self {
            core: core::Shape::all_to_all(&rails, bytes, chunks, model, &first)?,
            made: Made::AllToAll(topology, bytes, chunks, switching.to_owned(), first),
        })
    }

    /// Make a message from an NPU to another that is so many steps away along each dimension.
    #[staticmethod]
    fn message(
        topology: Py<PyTopology>,
        ways: Vec<u32>,
        bytes: u64,
        switching: &str,
        first: Vec<u16>,
    ) -> Result<Self, CoreError> {
        let mut rails = Rail::of(topology.get().core());
        check_servers(rails.len(), &first)?;
        check_servers(rails.len(), &ways)?;
        let mut on_way = ways.iter().map(|&links| links > 0);
        rails.retain(|_| on_way.next() == Some(true));
        let on_way = |(&first, &links): (&u16, &u32)| (links > 0).then_some((first, links));
        let (servers, links): (Vec<_>, Vec<_>) = first.iter().zip(&ways).filter_map(on_way).unzip();
        let model = model(switching)?;
        Ok(Self {
            core: core::Shape::message(&rails, &links, bytes, model, &servers)?,
            made: Made::Message(topology, ways, bytes, switching.to_owned(), first),
        })
    }

    /// Make a step whose time is known.
    #[staticmethod]
    fn timed(time_ps: u64, server: u16) -> Result<Self, CoreError> {
        Ok(Self {
            core: core::Shape::timed(time_ps, server)?,
            made: Made::Timed(time_ps, server),
        })
    }

    /// What it was made of; its times follow from that.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let keywords = PyDict::new(this.py());
        let name = match &this.get().made {
            Made::Schedule(schedule, first) => {
                keywords.set_item("schedule", schedule)?;
                keywords.set_item("first", first)?;
                "Shape.of_schedule"
            }
            Made::AllToAll(topology, bytes, chunks, switching, first) => {
                keywords.set_item("topology", topology)?;
                keywords.set_item("bytes", bytes)?;
                keywords.set_item("chunks", chunks)?;
                keywords.set_item("switching", switching)?;
                keywords.set_item("first", first)?;
                "Shape.all_to_all"
            }
            Made::Message(topology, ways, bytes, switching, first) => {
                keywords.set_item("topology", topology)?;
                keywords.set_item("ways", ways)?;
                keywords.set_item("bytes", bytes)?;
                keywords.set_item("switching", switching)?;
                keywords.set_item("first", first)?;
                "Shape.message"
            }
            Made::Timed(time_ps, server) => {
                keywords.set_item("time_ps", time_ps)?;
                keywords.set_item("server", server)?;
                "Shape.timed"
            }
        };
        reduced(this.py(), name, keywords)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// How long it takes where nothing else is under way.
    #[getter]
    fn lone_ps(&self) -> u64 {
        self.core.lone_ps()
    }

    /// Servers that it uses, and how long it keeps each busy [ps].
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
        false => Err(Parts::new(format!(
            "{} numbers are given for {rails} dimensions",
            given.len()
        ))
        .remedy("give one for each")
        .into()),
    }
}

/// When everything started and ended, in picoseconds.
#[pyclass(name = "Outcome", module = "hocket._core.iteration", frozen)]
pub(crate) struct PyOutcome {
    pub(crate) graph: Graph,
    pub(crate) core: core::Outcome,
    /// What it was run with, for a pickle to run it again.
    pub(crate) shapes: Vec<Py<Shape>>,
    pub(crate) order: Order,
}

#[pymethods]
impl PyOutcome {
    /// The graph; times are not kept, since they follow from it.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let py = this.py();
        let me = this.get();
        let u32s = |values: &[u32]| Array::from_slice(py, values);
        let (nodes, deps, calls) = (&me.graph.nodes, &me.graph.deps, &me.graph.calls);
        let keywords = PyDict::new(py);
        keywords.set_item("station", u32s(&me.graph.station))?;
        let (engine, time) = (&nodes.engine, &nodes.time_ps);
        let (engine, time) = (Array::from_slice(py, engine), Array::from_slice(py, time));
        keywords.set_item(
            "nodes",
            (u32s(&nodes.actor), engine, time, u32s(&nodes.call)),
        )?;
        keywords.set_item("deps", (u32s(&deps.first), u32s(&deps.of)))?;
        let columns = (
            u32s(&calls.shape),
            u32s(&calls.priority),
            u32s(&calls.starters),
            u32s(&calls.first),
            u32s(&calls.members),
        );
        keywords.set_item("calls", columns)?;
        keywords.set_item("shapes", &me.shapes)?;
        keywords.set_item("order", name_of(&me.order, CALL_ORDERS))?;
        reduced(py, "Outcome", keywords)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    #[getter]
    fn time_ps(&self) -> u64 {
        self.core.finish_ps
    }

    /// When each node began to compute; of a call's, when it was ready for it.
    #[getter]
    fn start_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        column(this, |me| &me.core.start_ps)
    }

    /// When each node ended.
    #[getter]
    fn end_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        column(this, |me| &me.core.end_ps)
    }

    /// When each call began.
    #[getter]
    fn call_start_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        column(this, |me| &me.core.call_start_ps)
    }

    /// When each call ended.
    #[getter]
    fn call_end_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        column(this, |me| &me.core.call_end_ps)
    }

    /// Attribute what kept actors from computing.
    fn exposed(&self, py: Python<'_>) -> Exposure {
        let core = py.detach(|| core::exposed(&self.graph, &self.core));
        Exposure { core }
    }
}

/// Time in which compute engines idled, by the node that they waited for, in picoseconds.
#[pyclass(module = "hocket._core.iteration", frozen)]
pub(crate) struct Exposure {
    core: core::Exposure,
}

#[pymethods]
impl Exposure {
    /// Of each node of a call: while the call ran.
    #[getter]
    fn exposed_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        column(this, |me| &me.core.exposed_ps)
    }

    /// Of each node: while its call had not begun; and while what is not a call took its time.
    #[getter]
    fn waited_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        column(this, |me| &me.core.waited_ps)
    }

    /// Of each actor: what no node explains.
    #[getter]
    fn rest_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        column(this, |me| &me.core.rest_ps)
    }
}

/// Actor, engine, time [ps] and call of each node.
type NodeColumns<'py> = (
    Given<'py, u32>,
    Given<'py, u8>,
    Given<'py, u64>,
    Given<'py, u32>,
);
/// Where each node's dependencies begin, and all of them.
type DepColumns<'py> = (Given<'py, u32>, Given<'py, u32>);
/// Shape, priority and starters of each call, where its members begin, and all members.
type CallColumns<'py> = (
    Given<'py, u32>,
    Given<'py, u32>,
    Given<'py, u32>,
    Given<'py, u32>,
    Given<'py, u32>,
);

/// Run a graph.
///
/// Parameters
/// ----------
/// station
///     Of each actor, its set of servers.
/// nodes
///     Actor, engine (0 compute, 1 beside it, 2 none), time [ps], call (4294967295: none) of each.
/// deps
///     Where each node's dependencies begin, with the end; and the nodes.
/// calls
///     Shape, priority (least first), starters (its first members, whose readiness begins it) of each;
///     where each one's members begin, with the end; and the nodes.
/// order
///     ``fifo`` or ``lifo``: of calls of one priority, which is served first.
///
/// Raises
/// ------
/// SpecError
///     If columns do not fit each other, or nodes wait for each other.
#[pyfunction]
#[pyo3(signature = (station, nodes, deps, calls, shapes, *, order="fifo", progress=None))]
#[expect(clippy::too_many_arguments, reason = "columns, named in Python")]
pub(crate) fn run(
    py: Python<'_>,
    station: Given<'_, u32>,
    nodes: NodeColumns<'_>,
    deps: DepColumns<'_>,
    calls: CallColumns<'_>,
    shapes: Vec<Bound<'_, Shape>>,
    order: &str,
    progress: Option<Listener>,
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
    let own = shapes.iter().map(|shape| shape.clone().unbind()).collect();
    let shapes = core_shapes(&shapes);
    let order = choose("order", order, CALL_ORDERS)?;
    let core = progress::watched(py, progress, |watch| {
        core::run(&graph, &shapes, order, watch)
    })?;
    Ok(PyOutcome {
        graph,
        core,
        shapes: own,
        order,
    })
}

//! `hocket._core.iteration`: graphs of computation and collectives, and their runs.

use std::sync::Arc;

use hocket_core::iteration::{
    self as core, Axis, Cause, Exchange, Graph, Layer, Order, Pass, Piece, Stage, Training,
    TrainingGraph,
};
use hocket_core::multirail::{Model, Rail};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Array, column};
use crate::choice::{Names, SWITCHINGS, choose};
use crate::error::{CoreError, Parts};
use crate::hints::{Keywords, Listener, Unread};
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
                "iteration.Shape.of_schedule"
            }
            Made::AllToAll(topology, bytes, chunks, switching, first) => {
                keywords.set_item("topology", topology)?;
                keywords.set_item("bytes", bytes)?;
                keywords.set_item("chunks", chunks)?;
                keywords.set_item("switching", switching)?;
                keywords.set_item("first", first)?;
                "iteration.Shape.all_to_all"
            }
            Made::Message(topology, ways, bytes, switching, first) => {
                keywords.set_item("topology", topology)?;
                keywords.set_item("ways", ways)?;
                keywords.set_item("bytes", bytes)?;
                keywords.set_item("switching", switching)?;
                keywords.set_item("first", first)?;
                "iteration.Shape.message"
            }
            Made::Timed(time_ps, server) => {
                keywords.set_item("time_ps", time_ps)?;
                keywords.set_item("server", server)?;
                "iteration.Shape.timed"
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
    pub(crate) graph: Arc<Graph>,
    pub(crate) core: core::Outcome,
    /// The object whose ``run`` gave it, and the keywords, for a pickle to run it again.
    pub(crate) made: (Py<PyAny>, Py<PyDict>),
}

#[pymethods]
impl PyOutcome {
    /// Run a graph again.
    #[staticmethod]
    fn of<'py>(graph: &Bound<'py, PyAny>, keywords: Keywords<'py>) -> PyResult<Bound<'py, Self>> {
        let run = graph.call_method("run", (), Some(&keywords.0))?;
        Ok(run.cast_into()?)
    }

    /// What it was run with; times are not kept, since they follow from it.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let (graph, keywords) = &this.get().made;
        let state = PyDict::new(this.py());
        state.set_item("graph", graph)?;
        state.set_item("keywords", keywords)?;
        reduced(this.py(), "iteration.Outcome.of", state)
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

/// Times of the three passes [ps] (None: not computed); bytes of outputs that tensor parallelism sums, of input
/// gradients (None: not summed), of tokens, of weights; whether these are of experts; and of a table which layer needs
/// its outputs, and their bytes.
type LayerTuple = (
    (Option<u64>, Option<u64>, Option<u64>),
    u64,
    Option<u64>,
    u64,
    u64,
    bool,
    Option<(u32, u64)>,
);
/// Units of layers, and bytes that go on to the next piece and back to the one before.
type PieceTuple = (Vec<Vec<LayerTuple>>, u64, u64);

/// Kind, group and bytes of a collective; or ``message``, its two stages and its bytes.
type ExchangeTuple = (&'static str, Option<&'static str>, Option<(u32, u32)>, u64);

fn layer(
    (times, outputs_summed, inputs_summed, tokens, weights, is_expert, table): LayerTuple,
) -> Layer {
    Layer {
        times_ps: times.into(),
        outputs_summed,
        inputs_summed,
        tokens,
        weights,
        is_expert,
        table,
    }
}

/// Training as a graph: what its stages compute and exchange, micro-batch by micro-batch.
///
/// Nodes are listed stage by stage, an actor each. A call is a collective, of one node, or a message, of
/// those that send and receive it.
#[pyclass(name = "TrainingGraph", module = "hocket._core.iteration", frozen)]
pub(crate) struct PyTrainingGraph {
    graph: Arc<Graph>,
    rest: TrainingGraph,
    /// What it was made of, for a pickle to make it again.
    made: Py<PyDict>,
}

#[pymethods]
impl PyTrainingGraph {
    /// Make it.
    ///
    /// Parameters
    /// ----------
    /// stages
    ///     Of each its pieces, and the time of its update [ps].
    /// recompute
    ///     Whether forward passes are computed again.
    /// overlap_tensor
    ///     Whether gradients of weights are computed while those of inputs are summed.
    /// zero
    ///     What replicas divide, 0 to 3.
    /// bucket
    ///     Bytes of gradients that are reduced together; None: all.
    /// one_expert_group
    ///     Whether all replicas share experts.
    #[new]
    #[pyo3(signature = (
        stages, *, micro_batches, iterations, recompute, overlap_tensor, zero, bucket,
        one_expert_group, progress=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        py: Python<'_>,
        stages: Unread<'_, Vec<(Vec<PieceTuple>, u64)>>,
        micro_batches: u32,
        iterations: u32,
        recompute: bool,
        overlap_tensor: bool,
        zero: u8,
        bucket: Option<u64>,
        one_expert_group: bool,
        progress: Option<Listener>,
    ) -> Result<Self, CoreError> {
        let given: Vec<(Vec<PieceTuple>, u64)> = stages.0.extract()?;
        let unit = |layers: Vec<LayerTuple>| layers.into_iter().map(layer).collect();
        let piece = |(units, outputs, gradients): PieceTuple| Piece {
            units: units.into_iter().map(unit).collect(),
            outputs,
            gradients,
        };
        let stage = |(pieces, update_ps): (Vec<PieceTuple>, u64)| Stage {
            pieces: pieces.into_iter().map(piece).collect(),
            update_ps,
        };
        let training = Training {
            stages: given.into_iter().map(stage).collect(),
            micro_batches,
            iterations,
            recompute,
            overlap_tensor,
            zero,
            bucket,
            one_expert_group,
        };
        let mut rest = progress::watched(py, progress, |watch| training.graph(watch))?;
        let made = PyDict::new(py);
        made.set_item("stages", stages.0)?;
        made.set_item("micro_batches", micro_batches)?;
        made.set_item("iterations", iterations)?;
        made.set_item("recompute", recompute)?;
        made.set_item("overlap_tensor", overlap_tensor)?;
        made.set_item("zero", zero)?;
        made.set_item("bucket", bucket)?;
        made.set_item("one_expert_group", one_expert_group)?;
        Ok(Self {
            graph: Arc::new(std::mem::take(&mut rest.graph)),
            rest,
            made: made.unbind(),
        })
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let keywords = this.get().made.bind(this.py()).copy()?;
        reduced(this.py(), "iteration.TrainingGraph", keywords)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// The different collectives and messages, in order of their first calls.
    #[getter]
    fn exchanges(&self) -> Vec<ExchangeTuple> {
        let tuple = |exchange: &Exchange| match *exchange {
            Exchange::Collective(kind, axis, bytes) => {
                (kind.name(), Some(Axis::NAMES[axis as usize]), None, bytes)
            }
            Exchange::Message(from, to, bytes) => ("message", None, Some((from, to)), bytes),
        };
        self.rest.exchanges.iter().map(tuple).collect()
    }

    /// Run it; ``shapes`` are those of its exchanges, ``order`` (``fifo`` or ``lifo``) says which call is served first.
    ///
    /// Raises
    /// ------
    /// SpecError
    ///     If it takes longer than can be counted.
    #[pyo3(signature = (shapes, *, order="fifo", progress=None))]
    fn run(
        this: &Bound<'_, Self>,
        shapes: Vec<Bound<'_, Shape>>,
        order: &str,
        progress: Option<Listener>,
    ) -> Result<PyOutcome, CoreError> {
        let py = this.py();
        let graph = &this.get().graph;
        let made = PyDict::new(py);
        made.set_item("shapes", &shapes)?;
        made.set_item("order", order)?;
        let shapes = core_shapes(&shapes);
        let order = choose("order", order, CALL_ORDERS)?;
        let core = progress::watched(py, progress, |watch| {
            core::run(graph, &shapes, order, watch)
        })?;
        Ok(PyOutcome {
            graph: Arc::clone(graph),
            core,
            made: (this.clone().into_any().unbind(), made.unbind()),
        })
    }

    /// What the columns ``layer``, ``does``, ``cause`` and ``iteration`` have now.
    #[getter]
    fn tags(&self) -> PyResult<()> {
        let now = "TrainingGraph.tags is the columns layer, does, cause and iteration now";
        Err(PyAttributeError::new_err(now))
    }

    /// The stage of each node.
    #[getter]
    fn actor<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.graph.nodes.actor)
    }

    /// How long each node computes; 0 of a call's.
    #[getter]
    fn time_ps<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        column(this, |me| &me.graph.nodes.time_ps)
    }

    /// The call of each node, 4294967295 of one that computes.
    #[getter]
    fn call<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.graph.nodes.call)
    }

    /// The iteration of each node.
    #[getter]
    fn iteration<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.rest.iteration)
    }

    /// The layer of each node, counted over all stages; 4294967295 of an update.
    #[getter]
    fn layer<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.rest.layer)
    }

    /// What each node is part of, as its place among ``PASSES``.
    #[getter]
    fn does<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u8>> {
        column(this, |me| &me.rest.pass)
    }

    /// What each call's node is for, as its place among ``CAUSES``; 255 of one that computes.
    #[getter]
    fn cause<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u8>> {
        column(this, |me| &me.rest.cause)
    }

    /// Where the list of each node's dependencies begins, and the end.
    #[getter]
    fn first_dep<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.graph.deps.first)
    }

    /// Nodes that each node waits for.
    #[getter]
    fn deps<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.graph.deps.of)
    }

    /// The exchange of each call.
    #[getter]
    fn shape<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.graph.calls.shape)
    }

    /// The priority of each call; 0, that of messages, is served first.
    #[getter]
    fn priority<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.graph.calls.priority)
    }

    /// Where the list of each call's nodes begins, and the end.
    #[getter]
    fn first_member<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.graph.calls.first)
    }

    /// Nodes of each call; of a message, the sender and the receiver.
    #[getter]
    fn members<'py>(this: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        column(this, |me| &me.graph.calls.members)
    }
}

/// Return for how many micro-batches a stage keeps what it computed at most, counted in each of its pieces.
#[pyfunction]
pub(crate) fn under_way(stage: usize, stages: usize, pieces: usize, micro_batches: usize) -> usize {
    core::under_way(stage, stages, pieces, micro_batches)
}

/// Return the names of passes, in the order of their numbers.
#[pyfunction]
pub(crate) fn passes() -> Vec<&'static str> {
    Pass::NAMES.to_vec()
}

/// Return the names of what calls are for, in the order of their numbers.
#[pyfunction]
pub(crate) fn causes() -> Vec<&'static str> {
    Cause::NAMES.to_vec()
}

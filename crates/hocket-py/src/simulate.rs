//! `simulate` and `Run`.

use std::sync::Arc;

use hocket_core::simulate::{
    self as core, FlowOptions, LinkOrder, PacketOptions, RunColumns, SimulateOptions, Switching,
};
use hocket_core::topology::LatencyModel;
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::Verified;
use pyo3::prelude::*;

use crate::arrays::{self, Array, Given};
use crate::choice::{FIDELITIES, LATENCIES, ORDERS, SWITCHINGS, choose, name_of};
use crate::error::CoreError;
use crate::hints::Listener;
use crate::pickle::{Reduced, attributes, reduced};
use crate::plan::PyPlan;
use crate::progress;

/// What a simulation returns. Service columns are empty unless they were asked for.
#[pyclass(name = "Run", module = "hocket._core", frozen)]
pub(crate) struct PyRun {
    core: Arc<core::Run>,
    /// The plan that was simulated, proved when somebody asks for what follows from its routes.
    plan: Py<PyPlan>,
    /// How finely it was simulated: link, flow or packet.
    fidelity: &'static str,
    /// In what order links served: ready or plan; none of flows.
    order: Option<LinkOrder>,
    /// How messages crossed devices: store-and-forward or cut-through.
    switching: Switching,
    /// What latency did to links.
    latency: LatencyModel,
    /// A cycle of the routers' clock, of packets.
    cycle: Option<Time>,
}

impl PyRun {
    /// A plan, with its run at link fidelity as the plan says, where there is one.
    pub(crate) fn with(
        py: Python<'_>,
        plan: PyPlan,
        run: Option<&Arc<core::Run>>,
        latency: LatencyModel,
    ) -> PyResult<(Py<PyPlan>, Option<Self>)> {
        let plan = Py::new(py, plan)?;
        let run = run.map(|run| Self {
            core: Arc::clone(run),
            plan: plan.clone_ref(py),
            fidelity: "link",
            order: Some(plan.get().core().link_order()),
            switching: plan.get().network().switching(),
            latency,
            cycle: None,
        });
        Ok((plan, run))
    }

    pub(crate) fn core(&self) -> &core::Run {
        &self.core
    }

    pub(crate) fn plan(&self) -> &PyPlan {
        self.plan.get()
    }

    pub(crate) fn verified(&self, py: Python<'_>) -> Result<Arc<Verified>, CoreError> {
        self.plan().verified(py, None)
    }
}

/// Simulate a plan at link fidelity, after proving it; names as in :func:`hocket.simulate`.
///
/// A message is across `ahead_ps` before its link is done with it.
#[pyfunction]
#[pyo3(signature = (
    plan, *, order=None, switching=None, latency="overlapped",
    keep_services=false, ahead_ps=0, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn simulate(
    py: Python<'_>,
    plan: Py<PyPlan>,
    order: Option<&str>,
    switching: Option<&str>,
    latency: &str,
    keep_services: bool,
    ahead_ps: u64,
    progress: Option<Listener>,
) -> Result<PyRun, CoreError> {
    let order = order.map(|name| choose("order", name, ORDERS));
    let switching = switching.map(|name| choose("switching", name, SWITCHINGS));
    let options = SimulateOptions {
        order: order.transpose()?,
        switching: switching.transpose()?,
        latency: choose("latency", latency, LATENCIES)?,
        keep_services,
        ahead: Time::from_ps(ahead_ps),
    };
    let verified = plan
        .get()
        .verified(py, progress.as_ref().map(|callable| callable.clone_ref(py)))?;
    let core = progress::watched(py, progress, |watch| {
        core::simulate(&verified, &options, watch)
    })?;
    let (own_order, own_switching) = (
        verified.plan().link_order(),
        verified.topology().switching(),
    );
    Ok(PyRun {
        core: Arc::new(core),
        plan,
        fidelity: "link",
        order: Some(options.order.unwrap_or(own_order)),
        switching: options.switching.unwrap_or(own_switching),
        latency: options.latency,
        cycle: None,
    })
}

/// Simulate a plan at packet fidelity, as :class:`hocket.Packets` says; rates in bytes/s.
#[pyfunction]
#[pyo3(signature = (
    plan, *, packet_bytes, flit_bytes, header_flits, virtual_channels, buffer_flits, cycle_ps=None,
    reduction_rate=None, order=None, keep_services=false, progress=None
))]
#[allow(clippy::too_many_arguments)] // keywords in Python
pub(crate) fn simulate_packets(
    py: Python<'_>,
    plan: Py<PyPlan>,
    packet_bytes: u64,
    flit_bytes: u64,
    header_flits: u32,
    virtual_channels: u32,
    buffer_flits: u32,
    cycle_ps: Option<u64>,
    reduction_rate: Option<u64>,
    order: Option<&str>,
    keep_services: bool,
    progress: Option<Listener>,
) -> Result<PyRun, CoreError> {
    let order = order
        .map(|name| choose("order", name, ORDERS))
        .transpose()?;
    let options = PacketOptions {
        packet_bytes,
        flit_bytes,
        header_flits,
        virtual_channels,
        buffer_flits,
        cycle: cycle_ps.map(Time::from_ps),
        reduction_rate: reduction_rate.and_then(Bandwidth::from_bytes_per_second),
        order,
        keep_services,
    };
    let verified = plan
        .get()
        .verified(py, progress.as_ref().map(|callable| callable.clone_ref(py)))?;
    let cycle = options.cycle_on(verified.topology())?;
    let core = progress::watched(py, progress, |watch| {
        core::simulate_packets(&verified, &options, watch)
    })?;
    let own_order = verified.plan().link_order();
    Ok(PyRun {
        core: Arc::new(core),
        plan,
        fidelity: "packet",
        order: Some(order.unwrap_or(own_order)),
        switching: Switching::CutThrough,
        latency: LatencyModel::default(),
        cycle: Some(cycle),
    })
}

/// Simulate a plan at flow fidelity; no flow is faster than the rate [bytes/s].
#[pyfunction]
#[pyo3(signature = (plan, *, flow_rate=None, keep_services=false, progress=None))]
pub(crate) fn simulate_flows(
    py: Python<'_>,
    plan: Py<PyPlan>,
    flow_rate: Option<u64>,
    keep_services: bool,
    progress: Option<Listener>,
) -> Result<PyRun, CoreError> {
    let options = FlowOptions {
        flow_rate: flow_rate.and_then(Bandwidth::from_bytes_per_second),
        keep_services,
        ..FlowOptions::default()
    };
    let verified = plan
        .get()
        .verified(py, progress.as_ref().map(|callable| callable.clone_ref(py)))?;
    let core = progress::watched(py, progress, |watch| {
        core::simulate_flows(&verified, &options, watch)
    })?;
    Ok(PyRun {
        core: Arc::new(core),
        plan,
        fidelity: "flow",
        order: None,
        switching: Switching::CutThrough,
        latency: LatencyModel::default(),
        cycle: None,
    })
}

#[pymethods]
impl PyRun {
    /// Make one that was simulated before; SpecError for columns that are not those of a run.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "columns, named in Python")]
    fn from_columns<'py>(
        plan: Py<PyPlan>,
        fidelity: &str,
        order: Option<&str>,
        switching: &str,
        latency_model: &str,
        cycle_ps: Option<u64>,
        time_ps: u64,
        start_ps: Given<'py, u64>,
        end_ps: Given<'py, u64>,
        link_busy_ps: Given<'py, u64>,
        link_bytes: Given<'py, u64>,
        link_messages: Given<'py, u64>,
        service_transfer: Given<'py, u32>,
        service_link: Given<'py, u32>,
        service_start_ps: Given<'py, u64>,
        service_end_ps: Given<'py, u64>,
    ) -> Result<Self, CoreError> {
        let times = |column: &Given<'py, u64>| {
            let values = arrays::to_vec(column).into_iter();
            values.map(Time::from_ps).collect::<Vec<Time>>()
        };
        let columns = RunColumns {
            start: times(&start_ps),
            end: times(&end_ps),
            busy: times(&link_busy_ps),
            bytes: arrays::to_vec(&link_bytes),
            messages: arrays::to_vec(&link_messages),
            service_transfer: arrays::to_vec(&service_transfer),
            service_link: arrays::to_vec(&service_link),
            service_start: times(&service_start_ps),
            service_end: times(&service_end_ps),
        };
        let (rows, links) = plan.get().size();
        let core = core::Run::from_columns(Time::from_ps(time_ps), columns, rows, links)?;
        let order = order.map(|name| choose("order", name, ORDERS));
        Ok(Self {
            core: Arc::new(core),
            plan,
            fidelity: choose("fidelity", fidelity, FIDELITIES)?,
            order: order.transpose()?,
            switching: choose("switching", switching, SWITCHINGS)?,
            latency: choose("latency_model", latency_model, LATENCIES)?,
            cycle: cycle_ps.map(Time::from_ps),
        })
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let names = [
            "fidelity",
            "order",
            "switching",
            "latency_model",
            "cycle_ps",
            "time_ps",
            "start_ps",
            "end_ps",
            "link_busy_ps",
            "link_bytes",
            "link_messages",
            "service_transfer",
            "service_link",
            "service_start_ps",
            "service_end_ps",
        ];
        let keywords = attributes(this, &names)?;
        keywords.set_item("plan", &this.get().plan)?;
        reduced(this.py(), "Run.from_columns", keywords)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// Collective time [ps].
    #[getter]
    fn time_ps(&self) -> u64 {
        self.core.time.as_ps()
    }

    /// A cycle of the routers' clock [ps]; of packets only.
    #[getter]
    fn cycle_ps(&self) -> Option<u64> {
        self.cycle.map(Time::as_ps)
    }

    /// How finely it was simulated: link, flow or packet.
    #[getter]
    fn fidelity(&self) -> &'static str {
        self.fidelity
    }

    /// In what order links served: ready or plan; none of flows.
    #[getter]
    fn order(&self) -> Option<&'static str> {
        self.order.map(|order| name_of(&order, ORDERS))
    }

    /// How messages crossed devices: store-and-forward or cut-through.
    #[getter]
    fn switching(&self) -> &'static str {
        name_of(&self.switching, SWITCHINGS)
    }

    /// The effect of a link's latency on the next message: overlapped or occupying.
    #[getter]
    fn latency_model(&self) -> &'static str {
        name_of(&self.latency, LATENCIES)
    }

    /// When each transfer began to occupy its first link [ps], (len(plan),).
    #[getter]
    fn start_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| &this.core.start)
    }

    /// When each transfer had arrived whole [ps], (len(plan),).
    #[getter]
    fn end_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| &this.core.end)
    }

    /// How long each link was occupied [ps], (link_count,).
    #[getter]
    fn link_busy_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::field(slf, |this| &this.core.links, |link| &link.busy)
    }

    /// Bytes that crossed each link, (link_count,).
    #[getter]
    fn link_bytes<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::field(slf, |this| &this.core.links, |link| &link.bytes)
    }

    /// Messages that crossed each link, (link_count,).
    #[getter]
    fn link_messages<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::field(slf, |this| &this.core.links, |link| &link.messages)
    }

    /// Transfer of each stay on a link.
    #[getter]
    fn service_transfer<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::field(slf, |this| &this.core.services, |service| &service.transfer)
    }

    /// Link of each stay.
    #[getter]
    fn service_link<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::field(slf, |this| &this.core.services, |service| &service.link)
    }

    /// When each stay began [ps].
    #[getter]
    fn service_start_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::field(slf, |this| &this.core.services, |service| &service.start)
    }

    /// When each stay ended [ps].
    #[getter]
    fn service_end_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::field(slf, |this| &this.core.services, |service| &service.end)
    }

    fn __repr__(&self) -> String {
        format!("<Run: {}>", self.core.time)
    }
}

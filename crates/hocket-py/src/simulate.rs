//! `simulate` and `Run`.

use std::sync::Arc;

use hocket_core::simulate::{
    self as core, FlowOptions, LinkOrder, PacketOptions, SimulateOptions, Switching,
};
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::Verified;
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::arrays;
use crate::choice::{LATENCIES, ORDERS, SWITCHINGS, choose, name_of};
use crate::error::CoreError;
use crate::plan::PyPlan;
use crate::progress;

/// What a simulation returns: times of every transfer, use of every link.
#[pyclass(name = "Run", module = "hocket._core", frozen)]
pub(crate) struct PyRun {
    core: core::Run,
    verified: Arc<Verified>,
    fidelity: &'static str,
    /// None where links serve all that comes at once.
    order: Option<LinkOrder>,
    switching: Switching,
    /// A cycle of the routers' clock, of packets.
    cycle: Option<Time>,
}

impl PyRun {
    pub(crate) fn core(&self) -> &core::Run {
        &self.core
    }

    pub(crate) fn verified(&self) -> &Verified {
        &self.verified
    }
}

#[pyfunction]
#[pyo3(signature = (
    plan, *, order=None, switching=None, latency="overlapped",
    keep_services=false, progress=None
))]
pub(crate) fn simulate(
    py: Python<'_>,
    plan: &PyPlan,
    order: Option<&str>,
    switching: Option<&str>,
    latency: &str,
    keep_services: bool,
    progress: Option<Py<PyAny>>,
) -> Result<PyRun, CoreError> {
    let order = order.map(|name| choose("order", name, ORDERS));
    let switching = switching.map(|name| choose("switching", name, SWITCHINGS));
    let options = SimulateOptions {
        order: order.transpose()?,
        switching: switching.transpose()?,
        latency: choose("latency", latency, LATENCIES)?,
        keep_services,
    };
    let verified = plan.verified(py, progress.as_ref().map(|callable| callable.clone_ref(py)))?;
    let core = progress::watched(py, progress, |watch| {
        core::simulate(&verified, &options, watch)
    })?;
    let (own_order, own_switching) = (
        verified.plan().link_order(),
        verified.topology().switching(),
    );
    Ok(PyRun {
        core,
        verified,
        fidelity: "link",
        order: Some(options.order.unwrap_or(own_order)),
        switching: options.switching.unwrap_or(own_switching),
        cycle: None,
    })
}

#[pyfunction]
#[pyo3(signature = (
    plan, *, packet_bytes, flit_bytes, header_flits, virtual_channels, buffer_flits, cycle_ps=None,
    reduction_rate=None, order=None, keep_services=false, progress=None
))]
#[allow(clippy::too_many_arguments)] // keywords in Python
pub(crate) fn simulate_packets(
    py: Python<'_>,
    plan: &PyPlan,
    packet_bytes: u64,
    flit_bytes: u64,
    header_flits: u32,
    virtual_channels: u32,
    buffer_flits: u32,
    cycle_ps: Option<u64>,
    reduction_rate: Option<u64>,
    order: Option<&str>,
    keep_services: bool,
    progress: Option<Py<PyAny>>,
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
    let verified = plan.verified(py, progress.as_ref().map(|callable| callable.clone_ref(py)))?;
    let cycle = options.cycle_on(verified.topology())?;
    let core = progress::watched(py, progress, |watch| {
        core::simulate_packets(&verified, &options, watch)
    })?;
    let own_order = verified.plan().link_order();
    Ok(PyRun {
        core,
        verified,
        fidelity: "packet",
        order: Some(order.unwrap_or(own_order)),
        switching: Switching::CutThrough,
        cycle: Some(cycle),
    })
}

#[pyfunction]
#[pyo3(signature = (plan, *, flow_rate=None, keep_services=false, progress=None))]
pub(crate) fn simulate_flows(
    py: Python<'_>,
    plan: &PyPlan,
    flow_rate: Option<u64>,
    keep_services: bool,
    progress: Option<Py<PyAny>>,
) -> Result<PyRun, CoreError> {
    let options = FlowOptions {
        flow_rate: flow_rate.and_then(Bandwidth::from_bytes_per_second),
        keep_services,
        ..FlowOptions::default()
    };
    let verified = plan.verified(py, progress.as_ref().map(|callable| callable.clone_ref(py)))?;
    let core = progress::watched(py, progress, |watch| {
        core::simulate_flows(&verified, &options, watch)
    })?;
    Ok(PyRun {
        core,
        verified,
        fidelity: "flow",
        order: None,
        switching: Switching::CutThrough,
        cycle: None,
    })
}

#[pymethods]
impl PyRun {
    #[getter]
    fn time_ps(&self) -> u64 {
        self.core.time.as_ps()
    }

    #[getter]
    fn cycle_ps(&self) -> Option<u64> {
        self.cycle.map(Time::as_ps)
    }

    #[getter]
    fn fidelity(&self) -> &'static str {
        self.fidelity
    }

    #[getter]
    fn order(&self) -> Option<&'static str> {
        self.order.map(|order| name_of(&order, ORDERS))
    }

    #[getter]
    fn switching(&self) -> &'static str {
        name_of(&self.switching, SWITCHINGS)
    }

    #[getter]
    fn start_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| &this.core.start)
    }

    #[getter]
    fn end_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::column(slf, |this| &this.core.end)
    }

    #[getter]
    fn link_busy_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::field(slf, |this| &this.core.links, |link| &link.busy)
    }

    #[getter]
    fn link_bytes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::field(slf, |this| &this.core.links, |link| &link.bytes)
    }

    #[getter]
    fn link_messages<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::field(slf, |this| &this.core.links, |link| &link.messages)
    }

    #[getter]
    fn service_transfer<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::field(slf, |this| &this.core.services, |service| &service.transfer)
    }

    #[getter]
    fn service_link<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        arrays::field(slf, |this| &this.core.services, |service| &service.link)
    }

    #[getter]
    fn service_start_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::field(slf, |this| &this.core.services, |service| &service.start)
    }

    #[getter]
    fn service_end_ps<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        arrays::field(slf, |this| &this.core.services, |service| &service.end)
    }

    fn __repr__(&self) -> String {
        format!("<Run: {}>", self.core.time)
    }
}

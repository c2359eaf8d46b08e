//! `Schedule`: multi-rail schedules and what they come to at dimension fidelity.

use std::sync::Arc;

use hocket_core::algorithms::{self, Algorithm, PlanOptions};
use hocket_core::collective::Collective;
use hocket_core::id::{fit, narrow};
use hocket_core::multirail::{self as core, Lane, Model, PARTS, Rail, Timeline};
use hocket_core::multirail::{schedule_activity, schedule_report};
use hocket_core::report::Bins;
use hocket_core::topology::Topology;
use hocket_core::units::{Time, whole};
use numpy::Ix2;
use pyo3::prelude::*;

use crate::arrays::Array;
use crate::choice::{LATENCIES, POLICIES, SWITCHINGS, choose, name_of};
use crate::collective::PyCollective;
use crate::error::CoreError;
use crate::hints::Listener;
use crate::pickle::{Reduced, attributes, reduced};
use crate::plan::PyPlan;
use crate::progress::{self, Limits};
use crate::report::DimensionReport;
use crate::topology::PyTopology;

/// Bytes, order of the reduce-scatter, order of the all-gather.
type LaneTuple = (u64, Vec<u8>, Vec<u8>);

/// Which way each chunk goes through the dimensions, and when.
///
/// Dimensions are numbered from 0, those of one NPU left out.
#[pyclass(name = "Schedule", module = "hocket._core", frozen)]
pub(crate) struct PySchedule {
    core: Arc<core::Schedule>,
    topology: Arc<Topology>,
    collective: Collective,
}

/// Schedule a collective, with errors as of :func:`plan`.
///
/// ``effort`` is a share of the simulated steps of a search, ``time_limit`` in seconds.
#[pyfunction]
#[pyo3(signature = (
    topology, collective, algorithm, chunks, memory_limit, *,
    effort=1.0, time_limit=None, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "options, named in Python")]
pub(crate) fn schedule(
    py: Python<'_>,
    topology: &PyTopology,
    collective: &PyCollective,
    algorithm: &str,
    chunks: Option<usize>,
    memory_limit: u64,
    effort: f64,
    time_limit: Option<f64>,
    progress: Option<Listener>,
) -> Result<PySchedule, CoreError> {
    let algorithm: Algorithm = algorithm.parse()?;
    let options = PlanOptions {
        chunks,
        memory_limit,
        effort: steps_of(effort),
        ..PlanOptions::new(algorithm)
    };
    let (network, collective) = (topology.core(), collective.core());
    let schedule = progress::watched_until(py, progress, Limits::new(time_limit, None), |watch| {
        algorithms::schedule(network, collective, &options, watch)
    })?;
    Ok(PySchedule {
        core: Arc::new(schedule),
        topology: Arc::clone(network),
        collective: collective.clone(),
    })
}

/// The simulated steps of a search of so much effort.
pub(crate) fn steps_of(effort: f64) -> u64 {
    whole(core::EFFORT as f64 * effort).max(1)
}

/// Make the plan that carries a schedule out, not yet verified.
///
/// SpecError or InfeasibleError if it does not fit in memory, or switches sum.
#[pyfunction]
pub(crate) fn plan_of(
    py: Python<'_>,
    schedule: &PySchedule,
    memory_limit: u64,
) -> Result<PyPlan, CoreError> {
    let PySchedule {
        core,
        topology,
        collective,
    } = schedule;
    let plan = py.detach(|| algorithms::plan_of(core, topology, collective, memory_limit))?;
    Ok(PyPlan::new(plan, Arc::clone(topology)))
}

impl PySchedule {
    pub(crate) fn of(
        core: &core::Schedule,
        topology: Arc<Topology>,
        collective: Collective,
    ) -> Self {
        let core = Arc::new(core.clone());
        Self {
            core,
            topology,
            collective,
        }
    }

    pub(crate) fn core(&self) -> &core::Schedule {
        &self.core
    }
}

#[pymethods]
impl PySchedule {
    /// Make a schedule of lanes: bytes, order of the reduce-scatter, order of the all-gather.
    ///
    /// SpecError or InfeasibleError if a lane makes no sense, or the topology has no dimensions.
    #[staticmethod]
    fn of_lanes(
        topology: &PyTopology,
        collective: &PyCollective,
        algorithm: &str,
        policy: &str,
        switching: &str,
        lanes: Vec<LaneTuple>,
    ) -> Result<Self, CoreError> {
        let model = Model {
            switching: choose("switching", switching, SWITCHINGS)?,
            ..Model::default()
        };
        let policy = choose("policy", policy, POLICIES)?;
        let lanes = lanes.into_iter();
        let lanes = lanes.map(|(bytes, reduce_scatter, all_gather)| Lane {
            bytes,
            reduce_scatter,
            all_gather,
        });
        let (topology, collective) = (topology.core(), collective.core().clone());
        algorithms::check_applicable(topology, &collective, Algorithm::Themis)?;
        let rails = Rail::of(topology);
        let kind = collective.kind();
        let made = core::Schedule::of_lanes(kind, rails, lanes.collect(), policy, model);
        let made = made?;
        let name = algorithm.parse().map_or("schedule", Algorithm::name);
        Ok(Self {
            core: Arc::new(made.named(name)),
            topology: Arc::clone(topology),
            collective,
        })
    }

    /// Times are not kept: they follow from the lanes.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let names = [
            "topology",
            "collective",
            "algorithm",
            "policy",
            "switching",
            "lanes",
        ];
        reduced(this.py(), "Schedule.of_lanes", attributes(this, &names)?)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    #[getter]
    fn algorithm(&self) -> &'static str {
        self.core.algorithm
    }

    #[getter]
    fn topology(&self) -> PyTopology {
        PyTopology::from_arc(Arc::clone(&self.topology))
    }

    #[getter]
    fn collective(&self) -> PyCollective {
        PyCollective::from_core(self.collective.clone())
    }

    /// ``first-come`` or ``smallest-first``.
    #[getter]
    fn policy(&self) -> &'static str {
        name_of(&self.core.policy, POLICIES)
    }

    /// What it was made for: ``store-and-forward`` or ``cut-through``.
    #[getter]
    fn switching(&self) -> &'static str {
        name_of(&self.core.model.switching, SWITCHINGS)
    }

    /// Bytes, order of the reduce-scatter and of the all-gather of each chunk.
    #[getter]
    fn lanes(&self) -> Vec<LaneTuple> {
        let lanes = self.core.lanes.iter();
        let tuple = |lane: &Lane| {
            (
                lane.bytes,
                lane.reduce_scatter.clone(),
                lane.all_gather.clone(),
            )
        };
        lanes.map(tuple).collect()
    }

    /// Run it at dimension fidelity.
    #[pyo3(signature = (*, switching=None, latency="overlapped"))]
    fn simulate(
        this: Py<Self>,
        py: Python<'_>,
        switching: Option<&str>,
        latency: &str,
    ) -> Result<DimensionRun, CoreError> {
        let me = this.get();
        let switching = switching.map(|name| choose("switching", name, SWITCHINGS));
        let model = Model {
            switching: switching.transpose()?.unwrap_or(me.core.model.switching),
            latency: choose("latency", latency, LATENCIES)?,
        };
        let schedule = Arc::clone(&me.core);
        let timeline = py.detach(|| schedule.simulate(model));
        Ok(DimensionRun {
            schedule,
            of: this,
            timeline,
            model,
        })
    }
}

/// A schedule in simulated time; arrays have an entry for each task.
#[pyclass(module = "hocket._core", frozen)]
pub(crate) struct DimensionRun {
    schedule: Arc<core::Schedule>,
    /// The object that was simulated.
    of: Py<PySchedule>,
    timeline: Timeline,
    model: Model,
}

#[pymethods]
impl DimensionRun {
    /// Run a schedule.
    #[staticmethod]
    fn of_schedule(
        py: Python<'_>,
        schedule: Py<PySchedule>,
        switching: &str,
        latency: &str,
    ) -> Result<Self, CoreError> {
        PySchedule::simulate(schedule, py, Some(switching), latency)
    }

    /// Times are not kept: they follow from the schedule.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let keywords = attributes(this, &["switching", "latency"])?;
        keywords.set_item("schedule", &this.get().of)?;
        reduced(this.py(), "DimensionRun.of_schedule", keywords)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// When the last task ended.
    #[getter]
    fn time_ps(&self) -> u64 {
        self.timeline.finish
    }

    /// How switches passed messages on.
    #[getter]
    fn switching(&self) -> &'static str {
        name_of(&self.model.switching, SWITCHINGS)
    }

    /// ``overlapped`` or ``occupying``.
    #[getter]
    fn latency(&self) -> &'static str {
        name_of(&self.model.latency, LATENCIES)
    }

    /// When each began to send.
    #[getter]
    fn start_ps<'py>(&self, py: Python<'py>) -> Array<'py, u64> {
        Array::from_slice(py, &self.timeline.start)
    }

    /// When its last message had arrived.
    #[getter]
    fn end_ps<'py>(&self, py: Python<'py>) -> Array<'py, u64> {
        Array::from_slice(py, &self.timeline.end)
    }

    /// Its lane.
    #[getter]
    fn lane<'py>(&self, py: Python<'py>) -> Array<'py, u32> {
        let each = PARTS * self.schedule.stages();
        self.column(py, |task| narrow(task / each))
    }

    /// Its part of the lane, 0 or 1.
    #[getter]
    fn part<'py>(&self, py: Python<'py>) -> Array<'py, u32> {
        let stages = self.schedule.stages();
        self.column(py, |task| narrow(task / stages % PARTS))
    }

    /// Which of its lane's operations it is.
    #[getter]
    fn stage<'py>(&self, py: Python<'py>) -> Array<'py, u32> {
        let stages = self.schedule.stages();
        self.column(py, |task| narrow(task % stages))
    }

    /// The dimension along which it goes.
    #[getter]
    fn dimension<'py>(&self, py: Python<'py>) -> Array<'py, u32> {
        let stages = self.schedule.stages();
        let lanes = &self.schedule.lanes;
        self.column(py, |task| {
            let rail = lanes[task / stages / PARTS].rails().nth(task % stages);
            rail.map_or(0, u32::from)
        })
    }

    /// Sum the use of the dimensions up.
    fn report(&self) -> DimensionReport {
        let report = schedule_report(&self.schedule, &self.timeline, &self.of.get().collective);
        DimensionReport::from_core(&report)
    }

    /// Return the share of each time bin in which each dimension has a task under way.
    #[pyo3(signature = (bins=None, period_ps=None))]
    fn activity<'py>(
        &self,
        py: Python<'py>,
        bins: Option<usize>,
        period_ps: Option<u64>,
    ) -> Result<Array<'py, f32, Ix2>, CoreError> {
        let bins = crate::report::to_bins(bins, period_ps)?;
        let shares = schedule_activity(&self.schedule, &self.timeline, bins);
        let count = Bins::count(bins, Time::from_ps(self.timeline.finish));
        let rows = self.schedule.rails.len();
        Ok(Array::from_rows(py, shares, [rows, count])?)
    }
}

impl DimensionRun {
    fn column<'py>(&self, py: Python<'py>, of: impl Fn(usize) -> u32) -> Array<'py, u32> {
        Array::from_iter(py, (0..self.timeline.start.len()).map(of))
    }
}

/// Raise SpecError where links have failed or a switch has a limit, so that NPUs differ.
#[pyfunction]
pub(crate) fn check_rails(topology: &PyTopology) -> Result<(), CoreError> {
    Ok(Rail::check(topology.core())?)
}

/// Return whether a plan, perhaps from a file, is the one that the schedule makes, all of its columns.
#[pyfunction]
pub(crate) fn carries_out(
    py: Python<'_>,
    plan: &PyPlan,
    schedule: &PySchedule,
    memory_limit: u64,
) -> Result<bool, CoreError> {
    let (plan, topology) = (plan.core(), plan.network());
    let found = py.detach(|| algorithms::carries_out(plan, &schedule.core, topology, memory_limit));
    Ok(found?)
}

/// Position among the topology's dimensions, kind, size, bandwidth of an NPU [bytes/s], latency of a
/// step [ps], steps of a pass, whether its switches sum.
type RailTuple = (usize, &'static str, u32, u64, u64, usize, bool);

/// Describe the dimensions of more than one NPU as schedulers see them.
///
/// Place among the topology's, kind, size, bandwidth of an NPU [bytes/s], latency of a step [ps],
/// steps of a pass, whether switches sum.
#[pyfunction]
pub(crate) fn rails(topology: &PyTopology) -> Vec<RailTuple> {
    let rails = Rail::of(topology.core()).into_iter();
    let tuple = |rail: Rail| {
        (
            rail.dimension,
            rail.kind.name(),
            rail.size,
            rail.bandwidth,
            rail.step_latency.as_ps(),
            rail.step_count(),
            rail.offload,
        )
    };
    rails.map(tuple).collect()
}

/// Shares of the data by order of the dimensions, and what they do to the dimensions.
#[pyclass(module = "hocket._core.multirail", frozen, get_all)]
pub(crate) struct Balance {
    /// Order of the reduce-scatter and its share, greatest first.
    shares: Vec<(Vec<u8>, f64)>,
    /// Bytes that an NPU sends over each dimension for a byte that is summed.
    loads: Vec<f64>,
    /// Which dimensions have most to do for their bandwidth.
    busy: Vec<bool>,
    /// Of all bandwidth, where latencies count for nothing, 0 to 1.
    utilization: f64,
}

/// Balance the dimensions' loads best, or show the fixed order; ``None`` for more than six.
#[pyfunction]
#[pyo3(signature = (topology, *, fixed=false))]
pub(crate) fn balance(topology: &PyTopology, fixed: bool) -> Option<Balance> {
    let rails = Rail::of(topology.core());
    let found = match fixed {
        true => {
            let upwards = (0..fit(rails.len())).collect();
            Some(core::Balance::of(&rails, vec![(upwards, 1.0)]))
        }
        false => core::balance(&rails),
    }?;
    Some(Balance {
        busy: found.busy(&rails),
        shares: found.shares,
        loads: found.loads,
        utilization: found.utilization,
    })
}

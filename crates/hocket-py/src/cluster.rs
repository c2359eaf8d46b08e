//! Jobs on a fabric: `Pattern`, `simulate` and `Outcome`.

use std::sync::Arc;
use std::time::Instant;

use hocket_core::cluster::{
    self as core, ByScheme, ClusterError, ClusterOptions, FlowOrder, Job, Outage, Phase, Port,
    Problem, Reroute, Rounds, Router,
};
use hocket_core::id::{LinkId, NpuId};
use hocket_core::routing::{Assignment, LoadBound, assignment_of, controller};
use hocket_core::units::{Bandwidth, Seed, Time};
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::type_hint_union;

use crate::arrays::{self, Array, Given};
use crate::choice::choose;
use crate::error::{CoreError, Parts};
use crate::hints::{Callback, Listener};
use crate::pickle::{Reduced, attributes, reduced};
use crate::plan::PyPlan;
use crate::progress;
use crate::routing::{Flows, Options, PyFabric, WitnessTuple, scheme_of, witness_of, witness_row};
use crate::topology::PyTopology;

const ORDERS: [(&str, FlowOrder); 2] = [("job", FlowOrder::Job), ("tor", FlowOrder::Tor)];

const REROUTES: [(&str, Reroute); 4] = [
    ("always", Reroute::Always),
    ("at-start", Reroute::AtStart),
    ("never", Reroute::Never),
    ("spray", Reroute::Spray),
];

/// By the controller that clusters run.
const STEADY: &str = "steady";

/// Name, arrival, computation by iteration, pattern, and (NIC, host) of every rank of every group.
type JobTuple = (
    String,
    u64,
    Vec<u64>,
    Option<Py<Pattern>>,
    Vec<Vec<(u32, u32)>>,
);

/// The plan of every group of a job in a communication phase, for ranks 0, 1, ...
#[pyclass(module = "hocket._core.cluster", frozen)]
pub(crate) struct Pattern {
    core: Arc<core::Pattern>,
}

#[pymethods]
impl Pattern {
    #[new]
    fn new(py: Python<'_>, plan: &PyPlan, lock_step: bool) -> Result<Self, CoreError> {
        let verified = plan.verified(py, None)?;
        let rounds = match lock_step {
            true => Rounds::LockStep,
            false => Rounds::Data,
        };
        let core = Arc::new(core::Pattern::new(verified.plan().clone(), rounds));
        Ok(Self { core })
    }

    /// Pairs of ranks, source and destination, that share a connection, and the bytes over it.
    #[getter]
    fn channels(&self) -> Vec<(u32, u32, u64)> {
        let bytes = self.core.bytes_by_channel().iter();
        let rows = self.core.channels().iter().zip(bytes);
        rows.map(|(&(src, dst), &bytes)| (src, dst, bytes))
            .collect()
    }
}

/// The course of jobs.
#[pyclass(module = "hocket._core.cluster", frozen)]
pub(crate) struct Outcome {
    core: core::Outcome,
    /// Of calls that were waited for, and of those ahead of time.
    seconds: [Vec<f64>; 2],
    topology: Py<PyTopology>,
    jobs: usize,
}

/// Job, index, start of computation, start, end [ps], flows, their times added up [ps], their rates added
/// up [bytes/s], and the slowest [ps].
type IterationTuple = (u32, u32, u64, u64, u64, u64, u128, f64, u64);
/// Time [ps], flows, moved, largest load, bound and its witness, whether foreseen, whether after a failure.
type DecisionTuple = (u64, u32, u32, u64, u64, Option<WitnessTuple>, bool, bool);

/// Time [ps], flow and path of each that was given, and links of each path.
type PathsTuple = (Vec<(u64, u32, u32)>, Vec<Vec<u32>>);

#[pymethods]
impl Outcome {
    /// Make an outcome again; that its times are those of the jobs is not checked.
    #[staticmethod]
    #[allow(clippy::too_many_arguments)] // keywords in Python
    fn of_rows(
        topology: Py<PyTopology>,
        jobs: usize,
        time_ps: u64,
        iterations: Vec<IterationTuple>,
        decisions: Vec<DecisionTuple>,
        link_bytes: Given<'_, u64>,
        rates: Vec<(u64, u32, f64)>,
        computed_ahead: u64,
        paths: Option<PathsTuple>,
        seconds: [Vec<f64>; 2],
    ) -> Result<Self, CoreError> {
        let rate = |(time, job, rate)| (Time::from_ps(time), job, rate);
        let decisions: Result<_, CoreError> = decisions.into_iter().map(decision_of).collect();
        let core = core::Outcome {
            time: Time::from_ps(time_ps),
            iterations: iterations.into_iter().map(iteration_of).collect(),
            decisions: decisions?,
            link_bytes: arrays::to_vec(&link_bytes),
            rates: rates.into_iter().map(rate).collect(),
            computed_ahead,
            record: None,
            paths: paths.map(paths_of),
        };
        let links = topology.get().core().links().len();
        Ok(Self {
            core: core.checked(jobs, links)?,
            seconds,
            topology,
            jobs,
        })
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let names = ["time_ps", "link_bytes", "rates", "computed_ahead", "paths"];
        let keywords = attributes(this, &names)?;
        let me = this.get();
        let rows = me.core.iterations.iter().map(iteration_row);
        keywords.set_item("iterations", rows.collect::<Vec<_>>())?;
        let rows = me.core.decisions.iter().map(decision_row);
        keywords.set_item("decisions", rows.collect::<Vec<_>>())?;
        keywords.set_item("seconds", me.seconds.to_vec())?;
        keywords.set_item("topology", &me.topology)?;
        keywords.set_item("jobs", me.jobs)?;
        reduced(this.py(), "cluster.Outcome.of_rows", keywords)
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
        self.core.time.as_ps()
    }

    /// In order of their ends.
    ///
    /// Job, index, when it began to compute, when its flows could start, when the last arrived [ps],
    /// flows, their completion times added up [ps], their throughputs added up [bytes/s], the longest
    /// completion time [ps].
    #[getter]
    fn iterations(&self) -> Vec<IterationTuple> {
        self.core.iterations.iter().map(iteration_row).collect()
    }

    /// The actions of the controller.
    ///
    /// When [ps], flows, moved, largest load, its bound, whether foreseen, whether after a failure, and
    /// the argument for the bound.
    #[getter]
    #[allow(clippy::type_complexity)] // a row
    fn decisions(&self) -> Vec<(u64, u32, u32, u64, u64, bool, bool, String)> {
        let row = |row: &core::Decision| {
            (
                row.time.as_ps(),
                row.flows,
                row.moved,
                row.max_link_load,
                row.load_bound.load,
                row.foreseen,
                row.is_repair,
                row.load_bound.describe(),
            )
        };
        self.core.decisions.iter().map(row).collect()
    }

    /// The time of each call of the router: those waited for, and those ahead of time.
    #[getter]
    fn routing_seconds(&self) -> (Vec<f64>, Vec<f64>) {
        let [online, ahead] = &self.seconds;
        (online.clone(), ahead.clone())
    }

    #[getter]
    fn computed_ahead(&self) -> u64 {
        self.core.computed_ahead
    }

    #[getter]
    fn link_bytes<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u64>> {
        arrays::column(slf, |this| this.core.link_bytes.as_slice())
    }

    /// Changes of what a job sends in all: when [ps], job, rate [bytes/s].
    #[getter]
    fn rates(&self) -> Vec<(u64, u32, f64)> {
        let row = |&(time, job, rate): &(Time, u32, f64)| (time.as_ps(), job, rate);
        self.core.rates.iter().map(row).collect()
    }

    /// When [ps] which flow between ToRs was given which path, in order, and the links of each path.
    ///
    /// None where they are more than 400,000, or packets take all paths.
    #[getter]
    fn paths(&self) -> Option<PathsTuple> {
        let paths = self.core.paths.as_ref()?;
        let given = paths.given.iter();
        let given = given.map(|&(time, flow, path)| (time.as_ps(), flow, path));
        let links = paths.links.iter();
        let links = links.map(|path| path.iter().map(|link| link.0).collect());
        Some((given.collect(), links.collect()))
    }
}

fn paths_of((given, links): PathsTuple) -> core::Paths {
    let given = given.into_iter();
    let links = links.into_iter();
    core::Paths {
        given: given
            .map(|(time, flow, path)| (Time::from_ps(time), flow, path))
            .collect(),
        links: links
            .map(|path| path.into_iter().map(LinkId).collect())
            .collect(),
    }
}

fn iteration_row(row: &core::Iteration) -> IterationTuple {
    (
        row.job,
        row.index,
        row.compute_start.as_ps(),
        row.start.as_ps(),
        row.end.as_ps(),
        row.flows,
        row.completion_ps,
        row.throughput,
        row.slowest.as_ps(),
    )
}

fn iteration_of(row: IterationTuple) -> core::Iteration {
    let (job, index, compute_start, start, end, flows, completion_ps, throughput, slowest) = row;
    core::Iteration {
        job,
        index,
        compute_start: Time::from_ps(compute_start),
        start: Time::from_ps(start),
        end: Time::from_ps(end),
        flows,
        completion_ps,
        throughput,
        slowest: Time::from_ps(slowest),
    }
}

fn decision_row(row: &core::Decision) -> DecisionTuple {
    let witness = row.load_bound.witness.as_ref().map(witness_row);
    (
        row.time.as_ps(),
        row.flows,
        row.moved,
        row.max_link_load,
        row.load_bound.load,
        witness,
        row.foreseen,
        row.is_repair,
    )
}

fn decision_of(row: DecisionTuple) -> Result<core::Decision, CoreError> {
    let (time, flows, moved, max_link_load, load, witness, foreseen, is_repair) = row;
    let witness = witness.map(witness_of).transpose()?;
    Ok(core::Decision {
        time: Time::from_ps(time),
        flows,
        moved,
        max_link_load,
        load_bound: LoadBound { load, witness },
        foreseen,
        is_repair,
    })
}

/// A Python function from a fabric, flows, jobs and fixed choices to choices.
struct ByCallable {
    callable: Py<PyAny>,
    links: usize,
    raised: Option<PyErr>,
}

impl ByCallable {
    fn ask(&self, problem: &Problem<'_>) -> PyResult<Vec<u32>> {
        Python::attach(|py| {
            let flows = Flows::new(problem.flows.to_vec());
            let fabric = PyFabric::new(problem.fabric.clone(), self.links, None);
            let given = (fabric, flows, problem.jobs.to_vec(), problem.fixed.to_vec());
            self.callable.call1(py, given)?.extract(py)
        })
    }
}

impl Router for ByCallable {
    fn route(&mut self, problem: &Problem<'_>) -> Result<Assignment, ClusterError> {
        match self.ask(problem) {
            Ok(choices) => Ok(assignment_of(problem.fabric, problem.flows, choices)?),
            Err(error) => {
                let told = ClusterError::Router(error.to_string());
                self.raised = Some(error);
                Err(told)
            }
        }
    }
}

/// Takes the time of another.
struct Timed<'a> {
    router: &'a mut (dyn Router + Send),
    seconds: [Vec<f64>; 2],
}

impl Router for Timed<'_> {
    fn route(&mut self, problem: &Problem<'_>) -> Result<Assignment, ClusterError> {
        let start = Instant::now();
        let made = self.router.route(problem);
        self.seconds[usize::from(problem.is_ahead)].push(start.elapsed().as_secs_f64());
        made
    }
}

/// The name of a scheme, or a function from a fabric, flows, jobs and fixed choices to choices.
pub(crate) struct Scheme<'py>(Bound<'py, PyAny>);

impl<'a, 'py> FromPyObject<'a, 'py> for Scheme<'py> {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = type_hint_union!(
        String::INPUT_TYPE,
        Callback::<(PyFabric, Flows, Vec<u32>, Vec<u32>)>::INPUT_TYPE
    );

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(given.to_owned()))
    }
}

/// Run jobs.
///
/// A job is its name, arrival [ps], computation by iteration [ps], pattern, and groups of (NIC, host) by
/// rank; an outage a time [ps] and links; options are as of ``routing.assign``. A scheme that is a function
/// is given flows, the job of each, and the fabric less what has failed, and gives choices.
#[pyfunction]
#[pyo3(signature = (
    topology, fabric, jobs, *, scheme, seed=0, options, order="job", reroute="always",
    host_rate, answer_ps=0, look_ahead=0, failover=false, outages=None, rate_slack_ppm=None, by_bytes=false, keep_rates=false,
    max_moves=0, progress=None
))]
#[allow(clippy::too_many_arguments)] // keywords in Python
pub(crate) fn simulate(
    py: Python<'_>,
    topology: Bound<'_, PyTopology>,
    fabric: &PyFabric,
    jobs: Vec<JobTuple>,
    scheme: Scheme<'_>,
    seed: u64,
    options: Options,
    order: &str,
    reroute: &str,
    host_rate: u64,
    answer_ps: u64,
    look_ahead: u32,
    failover: bool,
    outages: Option<Vec<(u64, Vec<u32>)>>,
    rate_slack_ppm: Option<u32>,
    by_bytes: bool,
    keep_rates: bool,
    max_moves: u32,
    progress: Option<Listener>,
) -> Result<Outcome, CoreError> {
    let jobs: Vec<Job> = jobs.into_iter().map(job_of).collect();
    let knobs = ClusterOptions {
        reroute: match reroute {
            STEADY => Reroute::Steady(controller::Options {
                most_moves: max_moves,
                look_ahead,
                failover,
                ..controller::Options::default()
            }),
            _ => choose("reroute", reroute, &REROUTES)?,
        },
        host_rate: Bandwidth::from_bytes_per_second(host_rate).ok_or_else(|| {
            let wrong = Parts::new("0 B/s carry nothing").field("host_rate");
            wrong.remedy("give 1 B/s or more")
        })?,
        answer: Time::from_ps(answer_ps),
        look_ahead,
        failover,
        outages: outages.into_iter().flatten().map(outage_of).collect(),
        rate_slack_ppm,
        by_bytes,
        keep_rates,
    };
    let network = topology.get().core();
    let mut by_scheme = None;
    let mut by_callable = None;
    let router: &mut (dyn Router + Send) = match scheme.0.extract::<String>() {
        Ok(name) => by_scheme.insert(ByScheme {
            scheme: scheme_of(&name, &options)?,
            seed: Seed(seed),
            order: choose("order", order, &ORDERS)?,
        }),
        Err(_) => by_callable.insert(ByCallable {
            callable: scheme.0.unbind(),
            links: network.links().len(),
            raised: None,
        }),
    };
    let mut timed = Timed {
        router,
        seconds: Default::default(),
    };
    let made = progress::watched(py, progress, |watch| {
        core::simulate(network, fabric.core(), &jobs, &mut timed, &knobs, watch)
    });
    let seconds = timed.seconds;
    if let Some(error) = by_callable.and_then(|callable| callable.raised) {
        return Err(error.into());
    }
    Ok(Outcome {
        core: made?,
        seconds,
        topology: topology.unbind(),
        jobs: jobs.len(),
    })
}

fn outage_of((time, links): (u64, Vec<u32>)) -> Outage {
    Outage {
        time: Time::from_ps(time),
        links: links.into_iter().map(LinkId).collect(),
    }
}

fn job_of((name, arrival, compute, pattern, groups): JobTuple) -> Job {
    let port = |(nic, host)| Port {
        nic: NpuId(nic),
        host,
    };
    let ports = |group: Vec<(u32, u32)>| group.into_iter().map(port).collect();
    Job {
        name,
        arrival: Time::from_ps(arrival),
        compute: compute.into_iter().map(Time::from_ps).collect(),
        phase: pattern.map(|pattern| Phase {
            pattern: pattern.get().core.clone(),
            groups: groups.into_iter().map(ports).collect(),
        }),
    }
}

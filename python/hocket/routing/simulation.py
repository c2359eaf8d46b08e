"""Jobs on a cluster in simulated time: what each scheme is worth to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from hocket._checks import check_function, instance_of, list_of, one_of
from hocket._core import Topology
from hocket._core import cluster as core_cluster
from hocket._core import routing as core_routing
from hocket._options import options_of
from hocket._results import TableResult
from hocket.cluster.draw import Draw
from hocket.cluster.hosts import MAX_SEED, Cluster
from hocket.cluster.jobs import Job, JobList
from hocket.cluster.placement import Placed, place
from hocket.collectives.collective import Progress
from hocket.errors import SpecError
from hocket.routing.assignment import SCHEMES, solve
from hocket.routing.options import ClusterOptions
from hocket.topology.text import read_failures
from hocket.units import parse_time, shown
from hocket.workload.layers import Workload

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Unpack

    from hocket.routing.data import ClusterRunData, DecisionData, IterationData, JobData
    from hocket.routing.options import ClusterKeywords

__all__ = [
    "CLUSTER_SCHEMES",
    "ClusterRun",
    "Decision",
    "FabricFlow",
    "Iteration",
    "JobRun",
    "fabric_flows",
    "simulate",
]

_SECOND = 10**12
CLUSTER_SCHEMES = (*SCHEMES, "controller")
"""Names that ``simulate`` takes as ``scheme``."""

_REROUTES = {
    "controller": "steady",
    "ecmp": "never",
    "least-loaded": "at-start",
    "spray": "spray",
}
"""When a scheme gives flows paths, where it is not whenever a job starts or stops to communicate."""
_Flows: TypeAlias = tuple[tuple[tuple[int, int, int], int], ...]
"""Flows with their jobs."""
_Router: TypeAlias = Callable[
    [core_routing.Fabric, list[tuple[int, int, int]], list[int], list[int]], list[int]
]


class Iteration(NamedTuple):
    """One iteration of a job; times in seconds."""

    compute_start: float
    """When it began to compute."""
    start: float
    """When its flows could start."""
    end: float
    """When the last of them had arrived."""
    flows: int
    """Transfers over NICs."""
    flow_completion: float
    """Their mean time from first byte sent to last byte received; 0 without any."""
    throughput: float
    """Their mean rate, each its bytes over its own time [bytes/s]; 0 without any."""
    slowest: float
    """The longest time of one."""

    @property
    def all_reduce(self) -> float:
        """From the start of communication to its end."""
        return self.end - self.start

    @property
    def time(self) -> float:
        """From the start of computation to the end of communication."""
        return self.end - self.compute_start


class Decision(NamedTuple):
    """What the controller did at a moment."""

    time: float
    """When what it answers to happened [s]: a job started or stopped to communicate, or links failed."""
    flows: int
    """Flows between ToRs that were given a path."""
    moved: int
    """How many that were under way took another."""
    max_link_load: int
    """Largest load of a link."""
    bound: int
    """A load that no assignment can keep every link below."""
    foreseen: bool
    """Whether it had been computed ahead."""
    is_repair: bool
    """Whether it answers to a failure."""
    witness: str
    """Why no assignment has less than the bound: the ToR that forces it, in words."""


@dataclass(frozen=True)
class JobRun:
    """What one job did."""

    placed: Placed
    iterations: tuple[Iteration, ...]
    ideal: float
    """Seconds in which no all-reduce by the same transfers ends sooner: the busiest NIC's bytes at its
    rate, or within a host those of the busiest pair of GPUs."""

    @property
    def job(self) -> Job:
        """The job."""
        return self.placed.job

    @property
    def all_reduce(self) -> float:
        """Mean all-reduce time [s]."""
        return _mean([each.all_reduce for each in self.iterations])

    @property
    def flow_completion(self) -> float:
        """Mean completion time of a flow, over all flows of all iterations [s]."""
        return self._by_flow([each.flow_completion for each in self.iterations])

    @property
    def throughput(self) -> float:
        """Mean throughput of a flow, over all flows of all iterations [bytes/s]."""
        return self._by_flow([each.throughput for each in self.iterations])

    @property
    def iteration(self) -> float:
        """Mean time of an iteration [s]."""
        return _mean([each.time for each in self.iterations])

    @property
    def slowdown(self) -> float:
        """Mean all-reduce time over the ideal; 1 where there is nothing to communicate."""
        return self.all_reduce / self.ideal if self.ideal else 1.0

    @property
    def end(self) -> float:
        """When the last iteration ended [s]."""
        return self.iterations[-1].end

    def _by_flow(self, values: Sequence[float]) -> float:
        flows = sum(each.flows for each in self.iterations)
        each = zip(values, self.iterations, strict=True)
        return sum(value * of.flows for value, of in each) / flows if flows else 0.0


class ClusterRun(TableResult):
    """What jobs did on a cluster; made by :func:`simulate`. Times are seconds."""

    def __init__(
        self,
        cluster: Cluster,
        placed: Sequence[Placed],
        scheme: str,
        ideals: Sequence[float],
        answer_ps: int,
        core: core_cluster.Outcome,
    ) -> None:
        self.cluster = cluster
        self.scheme = scheme
        self.core = core
        self._placed = tuple(placed)
        self._ideals = tuple(ideals)
        self._answer_ps = answer_ps

    @cached_property
    def jobs(self) -> tuple[JobRun, ...]:
        """What each job did, in the order in which they were given."""
        rows: dict[int, list[Iteration]] = defaultdict(list)
        for (
            job,
            _,
            compute,
            start,
            end,
            flows,
            completion,
            throughput,
            slowest,
        ) in self.core.iterations:
            count = max(flows, 1)
            times = (compute / _SECOND, start / _SECOND, end / _SECOND)
            means = (completion / count, throughput / count, slowest / _SECOND)
            rows[job].append(Iteration(*times, flows, *means))
        made = zip(self._placed, self._ideals, strict=True)
        return tuple(
            JobRun(placed, tuple(rows[i]), ideal) for i, (placed, ideal) in enumerate(made)
        )

    @property
    def time(self) -> float:
        """When the last job ended."""
        return self.core.time_ps / _SECOND

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """What the controller did, in order."""
        rows = self.core.decisions
        return tuple(
            Decision(time / _SECOND, flows, moved, most, bound, foreseen, is_repair, why)
            for time, flows, moved, most, bound, foreseen, is_repair, why in rows
        )

    @property
    def max_link_load(self) -> int:
        """Largest load of a link after any decision."""
        return max((each.max_link_load for each in self.decisions), default=0)

    @property
    def routing_seconds(self) -> list[float]:
        """What each assignment that was waited for took on this machine."""
        return self.core.routing_seconds[0]

    @property
    def hit_rate(self) -> float | None:
        """Share of decisions that had been computed ahead; None without decisions."""
        made = self.decisions
        return sum(each.foreseen for each in made) / len(made) if made else None

    @property
    def time_saved(self) -> float:
        """Seconds of waiting for the controller that looking ahead spared, by the time of an answer."""
        return sum(each.foreseen for each in self.decisions) * self._answer_ps / _SECOND

    @property
    def link_bytes(self) -> npt.NDArray[np.uint64]:
        """Bytes over each link of the topology, (links,)."""
        return self.core.link_bytes

    def to_dict(self) -> ClusterRunData:
        """Give it as values of JSON."""
        return {
            "scheme": self.scheme,
            "topology": self.cluster.topology.name,
            "hosts": len(self.cluster.hosts),
            "time_ps": self.core.time_ps,
            "max_link_load": self.max_link_load if self.decisions else None,
            "hit_rate": self.hit_rate,
            "time_saved_ps": _ps(self.time_saved),
            "computed_ahead": self.core.computed_ahead,
            "routing_elapsed_ps": [_ps(seconds) for seconds in self.routing_seconds],
            "jobs": [_job_dict(job, self.cluster) for job in self.jobs],
            "decisions": [_decision_dict(each) for each in self.decisions],
        }

    def _rows(self) -> list[dict[str, Any]]:
        rows = [_job_dict(job, self.cluster) for job in self.jobs]
        whole = ("hosts", "iterations")
        return [{key: value for key, value in row.items() if key not in whole} for row in rows]

    def __repr__(self) -> str:
        """Scheme, size and time."""
        return f"<ClusterRun by {self.scheme}: {len(self._placed)} jobs, {self.time:.6g} s>"


def _ps(seconds: float) -> int:
    return round(seconds * _SECOND)


def _job_dict(run: JobRun, cluster: Cluster) -> JobData:
    job = run.job
    iterations: list[IterationData] = [
        {
            "compute_start_ps": _ps(each.compute_start),
            "start_ps": _ps(each.start),
            "end_ps": _ps(each.end),
            "all_reduce_ps": _ps(each.all_reduce),
            "flows": each.flows,
            "flow_completion_ps": _ps(each.flow_completion),
            "throughput_bytes_per_s": each.throughput,
            "slowest_ps": _ps(each.slowest),
        }
        for each in run.iterations
    ]
    return {
        "name": job.name,
        "model": job.model,
        "workload": job.workload.name if isinstance(job.workload, Workload) else None,
        "gpus": job.gpus,
        "hosts": list(dict.fromkeys(cluster.host_of(gpu) for gpu in run.placed.gpus)),
        "all_reduce_ps": _ps(run.all_reduce),
        "ideal_ps": _ps(run.ideal),
        "slowdown": run.slowdown,
        "flow_completion_ps": _ps(run.flow_completion),
        "throughput_bytes_per_s": run.throughput,
        "iteration_ps": _ps(run.iteration),
        "iterations": iterations,
    }


def _decision_dict(decision: Decision) -> DecisionData:
    return {
        "time_ps": _ps(decision.time),
        "flows": decision.flows,
        "moved": decision.moved,
        "max_link_load": decision.max_link_load,
        "bound": decision.bound,
        "foreseen": decision.foreseen,
        "is_repair": decision.is_repair,
        "witness": decision.witness,
    }


def simulate(
    cluster: Cluster,
    jobs: Iterable[Job | Placed],
    *,
    scheme: str = "greedy",
    options: ClusterOptions | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[ClusterKeywords],
) -> ClusterRun:
    """Run jobs on a cluster, their flows on the paths that a scheme gives them.

    Each job computes, then its rings all-reduce by their plan, and so on. A pair of GPUs of a ring that
    talk to each other is a flow, which sends one transfer at a time; flows share links max-min fairly.

    Parameters
    ----------
    cluster : Cluster
        What :func:`cluster` made.
    jobs : iterable of Job, or of Placed
        Jobs are placed by :func:`place`.
    scheme : str
        As of :func:`assign`, where all flows are given paths whenever a job starts or stops to
        communicate; or ``"controller"``, the controller that clusters run, which keeps flows where they
        are but for at most `max_moves` that make room for one. ``"ecmp"`` gives paths once and for ever,
        ``"least-loaded"`` when a job starts to communicate, and with ``"spray"`` packets take all paths
        in turn.
    options
        How schemes give paths, and how jobs and the controller go.
    progress
        Called with (stage, done, total).
    keywords
        Any option of :class:`ClusterOptions` by its name, in place of the one in `options`.

    Raises
    ------
    SpecError
        When jobs cannot be placed, or an option makes no sense.
    InfeasibleError
        When failures leave a job's flows without a path; both are named.
    SimulationError
        When it takes longer than time can be told.

    References
    ----------
    Cohen et al.: Routing for large ML models, sections 3, 5.1 and 8.
    """
    one_of("scheme", scheme, CLUSTER_SCHEMES)
    check_function("progress", progress)
    instance_of(Cluster, "cluster", cluster, "make one by hk.routing.cluster(...)")
    given = options_of(ClusterOptions, options, keywords)
    if scheme == "controller" and given.weights != "flows":
        raise SpecError("weights", "the controller counts flows", "give flows, or another scheme")
    if given.seed is None:
        given = replace(given, seed=jobs.seed if isinstance(jobs, JobList) else 0)
    seed = given.seed or 0
    placed = _placed(cluster, list_of("jobs", jobs), seed)
    if any(limit is not None for limit in cluster.topology.switch_limits):
        raise SpecError(
            None,
            "a switch has a limit, which flows on chosen paths do not use",
            "leave it out",
            origin=str(cluster.topology.name),
        )
    patterns = [_pattern(each.job) for each in placed]
    rate = int(given.host_rate)  # type: ignore[arg-type]
    core = core_cluster.simulate(
        cluster.topology,
        core_routing.Fabric(cluster.topology),
        [
            _core_job(cluster, each, pattern, _Jitter(seed, i, given.jitter))
            for i, (each, pattern) in enumerate(zip(placed, patterns, strict=True))
        ],
        scheme=_router(cluster, scheme, given),
        seed=seed,
        options=given.core,
        order=given.order,
        reroute=_REROUTES.get(scheme, "always"),
        host_rate=rate,
        answer_ps=given.answer_ps,
        look_ahead=given.look_ahead,
        failover=given.failover,
        outages=[_outage(cluster.topology, text) for text in given.outages],
        rate_slack_ppm=_slack_ppm(given.rate_control, scheme),
        by_bytes=given.weights == "bytes",
        keep_rates=given.keep_rates,
        max_moves=given.max_moves,
        progress=progress,
    )
    ideals = [
        _ideal(cluster, each, pattern, rate) for each, pattern in zip(placed, patterns, strict=True)
    ]
    return ClusterRun(cluster, placed, scheme, ideals, given.answer_ps, core)


class FabricFlow(NamedTuple):
    """A flow of a job between two ToRs."""

    job: str
    """The job's name."""
    src: int
    """The GPU that sends."""
    dst: int
    """The GPU that receives."""
    tors: tuple[int, int]
    """Numbers of their ToRs."""


def fabric_flows(cluster: Cluster, jobs: Iterable[Placed]) -> list[FabricFlow]:
    """List the flows between ToRs that jobs have, in the order in which schemes are given them.

    Parameters
    ----------
    cluster : Cluster
        What :func:`cluster` made.
    jobs : iterable of Placed
        What :func:`place` made.

    Raises
    ------
    SpecError
        For a job that is not placed.
    """
    instance_of(Cluster, "cluster", cluster, "make one by hk.routing.cluster(...)")
    fabric = core_routing.Fabric(cluster.topology)
    found = []
    for placed in list_of("jobs", jobs):
        instance_of(Placed, "jobs", placed, "place jobs with hk.routing.place")
        pattern = _pattern(placed.job)
        channels = [] if pattern is None else pattern.channels
        for ring in placed.rings:
            tors = [fabric.tor_of(nic) for nic, _ in _ports(cluster, ring)]
            for src, dst, _ in channels:
                one, other = tors[src], tors[dst]
                if one is not None and other is not None and one != other:
                    found.append(FabricFlow(placed.job.name, ring[src], ring[dst], (one, other)))
    return found


def _placed(cluster: Cluster, listed: Sequence[Job | Placed], seed: int) -> list[Placed]:
    ready = [each for each in listed if isinstance(each, Placed)]
    if not ready:
        return place(cluster, [each for each in listed if not isinstance(each, Placed)], seed)
    if len(ready) < len(listed):
        raise SpecError(
            "jobs", "some are placed and some are not", "place all with hk.routing.place"
        )
    taken: dict[int, Job] = {}
    for each in ready:
        for gpu in each.gpus:
            if gpu in taken:
                other = shown(taken[gpu].name)
                raise each.job.wrong(
                    SpecError(
                        None, f"has GPU {gpu}, which job {other} has too", "place all jobs at once"
                    )
                )
            taken[gpu] = each.job
    return ready


class _Jitter:
    """Draws how long each iteration of a job computes."""

    def __init__(self, seed: int, job: int, share: float) -> None:
        self._draw = Draw((seed + 0x9E3779B97F4A7C15 * (job + 1)) & MAX_SEED)
        self._share = share

    def times(self, compute_ps: int, iterations: int) -> list[int]:
        """Time of each iteration [ps]."""
        if not self._share:
            return [compute_ps] * iterations
        steps = 1 << 20
        drawn = (self._draw.below(2 * steps + 1) / steps - 1 for _ in range(iterations))
        return [round(compute_ps * (1 + self._share * each)) for each in drawn]


def _core_job(
    cluster: Cluster, placed: Placed, pattern: core_cluster.Pattern | None, jitter: _Jitter
) -> tuple[str, int, list[int], core_cluster.Pattern | None, list[list[tuple[int, int]]]]:
    job = placed.job
    times = jitter.times(job.compute_ps, job.iterations)
    rings = [] if pattern is None else [_ports(cluster, ring) for ring in placed.rings]
    return job.name, job.arrival_ps, times, pattern, rings


def _pattern(job: Job) -> core_cluster.Pattern | None:
    plan = job.all_reduce()
    return None if plan is None else core_cluster.Pattern(plan.core, job.rounds == "lock-step")


def _ports(cluster: Cluster, ring: Sequence[int]) -> list[tuple[int, int]]:
    return [(cluster.nic_of(gpu), gpu // cluster.gpus_per_host) for gpu in ring]


def _ideal(
    cluster: Cluster, placed: Placed, pattern: core_cluster.Pattern | None, host_rate: int
) -> float:
    """Seconds that the busiest NIC needs for what it sends or receives, or the busiest pair in a host."""
    sent: dict[int, int] = defaultdict(int)
    received: dict[int, int] = defaultdict(int)
    least = 0.0
    for ring in [] if pattern is None else placed.rings:
        ports = _ports(cluster, ring)
        for src, dst, size in [] if pattern is None else pattern.channels:
            if ports[src][1] == ports[dst][1]:
                least = max(least, size / host_rate)
                continue
            sent[ports[src][0]] += size
            received[ports[dst][0]] += size
    both = zip((sent, received), _nic_rates(cluster), strict=True)
    times = (size / rates[nic] for each, rates in both for nic, size in each.items())
    return max(least, *times) if sent else least


def _nic_rates(cluster: Cluster) -> tuple[dict[int, int], dict[int, int]]:
    """Bandwidths of each NIC's links to its ToR and from it."""
    topology = cluster.topology
    rates = topology.link_bandwidth.tolist()
    up = dict(zip(topology.link_src.tolist(), rates, strict=True))
    down = dict(zip(topology.link_dst.tolist(), rates, strict=True))
    return up, down


def _router(cluster: Cluster, scheme: str, options: ClusterOptions) -> str | _Router:
    """Give the scheme, or a router by headers, or one by the solver, which solves nothing twice."""
    if scheme == "ecmp" and options.headers is not None:
        return lambda fabric, flows, _jobs, _fixed: options.choices(fabric, flows) or []
    if scheme != "ilp":
        return "greedy" if scheme in {"controller", "spray"} else scheme
    known: dict[_Flows, list[int]] = {}
    routed: core_routing.Fabric | None = None

    def route(
        fabric: core_routing.Fabric,
        flows: list[tuple[int, int, int]],
        jobs: list[int],
        _fixed: list[int],
    ) -> list[int]:
        nonlocal routed
        if fabric != routed:
            known.clear()
            routed = fabric
        key = tuple(zip(flows, jobs, strict=True))
        if key not in known:
            known[key], _ = solve(cluster.topology, fabric, flows, jobs, options)
        return known[key]

    return route


def _slack_ppm(rate_control: float | None, scheme: str) -> int | None:
    """Slack of rate control; None without, and where no controller tells hosts their share."""
    if rate_control is None:
        return None
    slack = round(rate_control * 10**6)
    has_controller = scheme == "controller" or scheme not in _REROUTES
    return slack if has_controller else None


def _outage(topology: Topology, text: object) -> tuple[int, list[int]]:
    """Read what fails and when: the time [ps], and links."""
    right = "write 'spine3@12 s' or 'tor0,spine1@12 s'"
    what, mark, when = text.rpartition("@") if isinstance(text, str) else ("", "", "")
    if not mark:
        raise SpecError("outages", f"{shown(text)} says no time", right)
    time = parse_time(when.strip(), field="outages")
    nodes, links = read_failures([what.strip()], option="outages")
    names = {name: i for i, name in enumerate(topology.device_names)}
    for name in [*nodes, *(end for link in links for end in link)]:
        if name not in names:
            raise SpecError("outages", f"there is no device {shown(name)}", right)
    ends = list(zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True))
    wanted = {frozenset(names[end] for end in link) for link in links}
    gone = {names[node] for node in nodes}
    found = [i for i, link in enumerate(ends) if frozenset(link) in wanted or gone & set(link)]
    if not found:
        raise SpecError("outages", f"{shown(what)} has no link that could fail", right)
    return time, found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0

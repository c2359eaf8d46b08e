"""Jobs on a cluster in simulated time: what each scheme is worth to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from hocket._checks import check_function, instance_of, list_of, one_of
from hocket._core import Topology
from hocket._core import cluster as core_cluster
from hocket._core import routing as core_routing
from hocket._options import options_of
from hocket.cluster.hosts import MAX_SEED, Cluster
from hocket.cluster.jobs import Job, JobList
from hocket.cluster.placement import Placed, place
from hocket.cluster.seeded_random import SeededRandom
from hocket.collectives.collective import Progress
from hocket.errors import SpecError
from hocket.routing.assignment import SCHEMES, solve
from hocket.routing.options import ClusterOptions
from hocket.routing.result import ClusterRun
from hocket.topology.text import read_failures
from hocket.units import parse_time, shown

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.routing.options import ClusterKeywords

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
    [core_routing.Fabric, core_routing.Flows, list[int], list[int]], list[int]
]


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
    return ClusterRun(cluster, placed, scheme, ideals, given.answer_ps, core, given)


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
        self._draw = SeededRandom((seed + 0x9E3779B97F4A7C15 * (job + 1)) & MAX_SEED)
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
    """Return the scheme, or a router by headers, or one by the solver, which solves nothing twice."""
    if scheme == "ecmp" and options.headers is not None:
        return lambda fabric, flows, _jobs, _fixed: options.choices(fabric, flows) or []
    if scheme != "ilp":
        return "greedy" if scheme in {"controller", "spray"} else scheme
    known: dict[_Flows, list[int]] = {}
    routed: core_routing.Fabric | None = None

    def route(
        fabric: core_routing.Fabric,
        flows: core_routing.Flows,
        jobs: list[int],
        _fixed: list[int],
    ) -> list[int]:
        nonlocal routed
        if fabric != routed:
            known.clear()
            routed = fabric
        key = tuple(zip(flows.rows(), jobs, strict=True))
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

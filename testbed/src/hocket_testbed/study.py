"""Jobs on a testbed by hashed ports and by ports for assigned paths, measured beside the simulation."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import mean, median
from typing import TYPE_CHECKING

from hocket._checks import check_function, list_of, one_of, whole
from hocket._results import HIDDEN, Result, figure, picoseconds, said
from hocket.cluster.hosts import MAX_SEED
from hocket.cluster.seeded_random import SeededRandom
from hocket.errors import SpecError
from hocket.routing.assignment import assign
from hocket.steering.hashes import Header
from hocket.units import parse_size
from hocket_testbed.clos import ClosSpec, OnClos, each_in_picoseconds
from hocket_testbed.counters import sent_up
from hocket_testbed.ports import METHODS, PORTS, Wanted, port_for
from hocket_testbed.prediction import cluster_of, ideal_time, predict
from hocket_testbed.rings import Ring, all_reduce
from hocket_testbed.service import Announced, Service, serve

if TYPE_CHECKING:
    from hocket.collectives.collective import Progress

__all__ = ["Study", "StudyRun", "run_study"]

CONTROLLER = "controller"
"""How ports are found: by the controller and its agents, which run on the testbed."""
_SETTLES = 0.3
"""After which time flows that were announced together have their paths [s]."""
_DPORT = 5000
_FLOAT = 4
_WARM_UP = 4
"""Which part of a vector is all-reduced before time is taken."""
_LEAST, _MOST, _ACKS = 0.99, 1.06, 0.06
"""Shares of a flow's bytes that a link up may count: headers for each frame or for many, and what the
flows of the other direction acknowledge."""


@dataclass(frozen=True)
class StudyRun(Result):
    """The jobs once, all together."""

    paths: str
    """``"assigned"`` or ``"ecmp"``."""
    how: str
    """How ports were found for assigned paths, or the seed that hashed ones were drawn by."""
    measured: tuple[float, ...] = field(
        metadata=said("measured_ps", of=each_in_picoseconds, column=True)
    )
    """What each job took [s]."""
    predicted: tuple[float, ...] = field(
        metadata=said("predicted_ps", of=each_in_picoseconds, column=True)
    )
    """What it takes by the flow simulation [s]."""
    fullest: int = field(metadata=said("max_link_load"))
    """The largest number of flows on a link up, by their headers."""
    load: float = field(metadata=said("load_average"))
    """Load average of the machine when it began: above the number of cores, others kept it busy."""
    counted: bool = field(metadata=said("counters_agree"))
    """Whether the kernel counted on each link up the bytes of these flows and no others."""

    @property
    def time(self) -> float:
        """When the last job was done [s]."""
        return max(self.measured)

    @property
    @figure()
    def deviation(self) -> float:
        """By which share that is later than the simulation says."""
        return self.time / max(self.predicted) - 1


@dataclass(frozen=True)
class Study(OnClos):
    """The results; made by :func:`run_study`."""

    spec: ClosSpec = field(metadata=HIDDEN)
    jobs: int
    size: int = field(metadata=said("size_bytes"))
    runs: tuple[StudyRun, ...]
    ideal: float = field(metadata=said("ideal_ps", of=picoseconds))
    """What a job takes if no flow shares a link [s]."""

    @property
    def assigned(self) -> list[StudyRun]:
        """Runs with a port for each assigned path."""
        return [run for run in self.runs if run.paths == "assigned"]

    @property
    def hashed(self) -> list[StudyRun]:
        """Runs with ports drawn by a seed."""
        return [run for run in self.runs if run.paths == "ecmp"]

    @property
    @figure()
    def gain(self) -> float | None:
        """Mean time by hashed ports over that by assigned ones; None without either."""
        if not self.assigned or not self.hashed:
            return None
        return mean(run.time for run in self.hashed) / mean(run.time for run in self.assigned)

    @property
    @figure()
    def predicted_gain(self) -> float | None:
        """The same by the simulation."""
        if not self.assigned or not self.hashed:
            return None
        slowest = [[max(run.predicted) for run in runs] for runs in (self.hashed, self.assigned)]
        return mean(slowest[0]) / mean(slowest[1])

    @property
    def deviation(self) -> float | None:
        """Median over seeds of how far measured times are from the simulation's; None without seeds."""
        return median(abs(run.deviation) for run in self.hashed) if self.hashed else None

    def __repr__(self) -> str:
        """Return the number of runs, and the gain."""
        gain = "" if self.gain is None else f", gain {self.gain:.2f}"
        return f"<Study: {len(self.runs)} runs of {self.jobs} jobs{gain}>"


def run_study(
    spec: ClosSpec,
    *,
    jobs: int = 2,
    size: int | str = "8 MiB",
    seeds: int = 5,
    repeats: int = 1,
    methods: Sequence[str] = METHODS,
    scheme: str = "edge-coloring",
    progress: Progress | None = None,
) -> Study:
    """Run ring all-reduces of jobs on a testbed, by assigned paths and by hashed ports.

    Each job has as many hosts below each ToR as the others, and its ring crosses ToRs at every edge.

    Parameters
    ----------
    spec : ClosSpec
        A Clos that is there, with shaped links.
    jobs : int
        Jobs, which share the hosts of each ToR out evenly.
    size : bytes or text
        What each host all-reduces; rounded down to 32-bit floats alike for all ranks.
    seeds : int
        How often ports are drawn, from seed 0 on.
    repeats : int
        How often each run is repeated; its times are the medians.
    methods : sequence of str
        How ports are found for assigned paths, each in a run of its own: ``METHODS``, where a scheme
        assigns paths, and ``"controller"``, which assigns them itself.
    scheme : str
        Which scheme of :func:`hocket.routing.assign` assigns paths.
    progress : callable, optional
        Called with (stage, done, total).

    Raises
    ------
    SpecError
        Naming the argument that makes no sense.
    InfeasibleError
        Where a port or a connection cannot be had.
    SimulationError
        Where a sum is wrong, or no byte comes.
    """
    count, often = whole("seeds", seeds, 0, 10**4), whole("repeats", repeats, 1, 1000)
    for each in list_of("methods", methods):
        one_of("methods", each, (*METHODS, CONTROLLER))
    check_function("progress", progress)
    plans = _rings(spec, whole("jobs", jobs, 1, spec.hosts), parse_size(size, field="size"))
    cases = [("assigned", method) for method in methods]
    cases += [("ecmp", str(seed)) for seed in range(count)]
    runs = []
    for done, (paths, how) in enumerate(cases):
        if progress is not None:
            progress(f"{paths}, {how}", done, len(cases))
        with ExitStack() as stack:
            if how == CONTROLLER:
                ready = _steered(stack.enter_context(serve(spec)), plans, stack)
            elif paths == "assigned":
                ready = _assigned(spec, plans, how, scheme)
            else:
                ready = _drawn(plans, int(how))
            runs.append(_measured(spec, ready, (paths, how), often))
    return Study(spec, len(plans), plans[0].size, tuple(runs), ideal_time(spec, plans[0]))


def _rings(spec: ClosSpec, jobs: int, size: int) -> list[Ring]:
    """Lay out jobs: host k of each ToR, then host k + 1, so that every edge leaves its ToR."""
    if spec.hosts % jobs:
        raise SpecError("jobs", f"{jobs} do not share {spec.hosts} hosts evenly", "give a divisor")
    each = spec.hosts // jobs
    ranks = each * spec.tors
    rounded = size // (_FLOAT * ranks) * _FLOAT * ranks
    if not rounded:
        raise SpecError("size", f"{size} B are less than a float for {ranks} ranks", "give more")
    rings = []
    for job in range(jobs):
        hosts = tuple(
            tor * spec.hosts + job * each + k for k in range(each) for tor in range(spec.tors)
        )
        rings.append(Ring(hosts, rounded, _DPORT + job, (0,) * ranks))
    return rings


def _drawn(plans: Sequence[Ring], seed: int) -> list[Ring]:
    """Choose a port for each flow by a seed."""
    draw = SeededRandom(whole("seed", seed, 0, MAX_SEED))
    span = PORTS[1] - PORTS[0] + 1
    return [
        Ring(
            each.hosts,
            each.size,
            each.dport,
            tuple(PORTS[0] + draw.below(span) for _ in each.hosts),
        )
        for each in plans
    ]


def _assigned(spec: ClosSpec, plans: Sequence[Ring], method: str, scheme: str) -> list[Ring]:
    """Choose for each flow a port that leads to the spine that a scheme assigns to it."""
    ends = [(host, _next(ring, i)) for ring in plans for i, host in enumerate(ring.hosts)]
    tors = [(spec.tor_of(src), spec.tor_of(dst)) for src, dst in ends]
    spines = iter(assign(cluster_of(spec).topology, tors, scheme=scheme).spines.tolist())
    rings = []
    for ring in plans:
        sports = []
        for rank, host in enumerate(ring.hosts):
            to = _next(ring, rank)
            header = Header(spec.address(host), spec.address(to), ring.dport, PORTS[0])
            sports.append(port_for(spec, method, header, Wanted(host, to, next(spines))))
        rings.append(Ring(ring.hosts, ring.size, ring.dport, tuple(sports)))
    return rings


def _steered(service: Service, plans: Sequence[Ring], stack: ExitStack) -> list[Ring]:
    """Announce each flow to the agent of its host, and give the ports that are said once all are there."""
    announced: list[list[Announced]] = []
    for job, ring in enumerate(plans):
        flows = []
        for rank, host in enumerate(ring.hosts):
            flow = service.announce(host, _next(ring, rank), ring.dport, ring.size, job + 1)
            stack.callback(flow.close)
            flows.append(flow)
        announced.append(flows)
    time.sleep(_SETTLES)
    rings = []
    for ring, flows in zip(plans, announced, strict=True):
        ports = tuple(flow.port or 0 for flow in flows)
        rings.append(Ring(ring.hosts, ring.size, ring.dport, ports))
    return rings


def _next(ring: Ring, rank: int) -> int:
    return ring.hosts[(rank + 1) % len(ring.hosts)]


def _measured(
    spec: ClosSpec, rings: Sequence[Ring], case: tuple[str, str], repeats: int
) -> StudyRun:
    predicted, ways = predict(spec, rings)
    flows = Counter(ways)
    load = os.getloadavg()[0]
    before = sent_up(spec)
    times = [all_reduce(spec, rings, warm_up=_WARM_UP) for _ in range(repeats)]
    after = sent_up(spec)
    ranks = len(rings[0].hosts)
    each = repeats * 2 * (ranks - 1) / ranks * rings[0].size * (1 + 1 / _WARM_UP)
    counted = all(
        _LEAST * flows[way] * each
        <= after[way] - before[way]
        <= (_MOST * flows[way] + _ACKS) * each
        for way in before
    )
    measured = tuple(median(of_job) for of_job in zip(*times, strict=True))
    return StudyRun(*case, measured, tuple(predicted), max(flows.values()), load, counted)

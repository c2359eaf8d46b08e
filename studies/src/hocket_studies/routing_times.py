"""Figure 7 of Cohen et al.: how long an assignment takes, by the number of flows.

Times are CPU times of the machine that this runs on, as those of the released code are, so that others
who are busy on it count for less. Only the scheme is timed: the fabric and the flows are ready.

References
----------
Cohen et al.: Routing for large ML models, section 5.3.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import process_time
from typing import NamedTuple

from hocket._core import routing as core_routing
from hocket.cluster.seeded_random import SeededRandom
from hocket.routing import assign
from hocket_studies.routing import OnCase, cluster_of

FLOWS = (100, 400, 1_500, 10_000, 100_000)
SCHEMES = ("ecmp", "least-loaded", "greedy", "edge-coloring", "annealing", "ilp", "ilp, 3 jobs")
"""``ilp`` is settled by the certificate where the flows are of one job and the bound is met; with three
jobs the solver runs."""
_TORS = 64
_REPEATS = 9
_MAX_FLOWS = {"ilp": 10_000, "ilp, 3 jobs": 0}
_MAX_FLOWS_IN_FULL = {"ilp": 10_000, "ilp, 3 jobs": 400}
"""Of slow schemes; by default the solver is not run at all."""
_TIME_LIMIT = 120.0
"""Seconds for one assignment by the solver."""


class Timing(NamedTuple):
    """One scheme and number of flows."""

    scheme: str
    flows: int
    milliseconds: float
    """Median of repeats, CPU time."""
    max_link_load: int
    bound: int
    """What no assignment of these flows is below."""


def figure_7(on_case: OnCase | None = None, *, full: bool = False) -> list[Timing]:
    """Time every scheme on flows between random ToRs."""
    most = _MAX_FLOWS_IN_FULL if full else _MAX_FLOWS
    wanted = [(scheme, n) for scheme in SCHEMES for n in FLOWS if n <= most.get(scheme, FLOWS[-1])]
    found = []
    for done, (scheme, count) in enumerate(wanted, 1):
        found.append(_timing(scheme, count))
        if on_case is not None:
            on_case(f"{scheme}, {count} flows", done, len(wanted))
    return found


def random_flows(count: int, seed: int = 0) -> list[tuple[int, int, int]]:
    """Draw so many flows of weight 1 between two ToRs of 64."""
    draw = SeededRandom(seed)
    flows = []
    for _ in range(count):
        src = draw.below(_TORS)
        dst = (src + 1 + draw.below(_TORS - 1)) % _TORS
        flows.append((src, dst, 1))
    return flows


def _timing(scheme: str, count: int) -> Timing:
    topology = cluster_of(0).topology
    fabric = core_routing.Fabric(topology)
    flows = random_flows(count)
    given = core_routing.Flows(flows)
    jobs = [i % 3 for i in range(count)] if scheme.endswith("jobs") else None

    def by_core() -> core_routing.Assignment:
        return core_routing.assign(fabric, given, scheme, 0, ("crc32", 1, False, None))

    def by_solver() -> core_routing.Assignment:
        made = assign(topology, flows, scheme="ilp", jobs=jobs, time_limit=_TIME_LIMIT)
        assert isinstance(made.core, core_routing.Assignment)
        return made.core

    work = by_solver if scheme.startswith("ilp") else by_core
    times, made = _timed(work, 1 if jobs else _REPEATS)
    return Timing(scheme, count, median(times) * 1e3, made.max_link_load, made.bound[0])


def _timed(
    work: Callable[[], core_routing.Assignment], repeats: int
) -> tuple[list[float], core_routing.Assignment]:
    times = []
    for _ in range(repeats):
        start = process_time()
        made = work()
        times.append(process_time() - start)
    return times, made

"""The questions of PCCL: collectives among process groups whose network the other NPUs help to use.

Every plan is proved and run at link fidelity. The baseline is Direct, in which each NPU sends each other
NPU of its group its block along the shortest way. Where several groups run at once, baselines plan for
each alone and share the links; the rest plans for all of them together.

What is assumed
---------------
Links have 50 GB/s and 0.5 us, as in the program that came with TACOS, of the same authors. What that
program calls a hypercube of three dimensions is a mesh: so 512 NPUs are taken for 8 x 8 x 8, and 1,000
for 10 x 10 x 10. Groups are those of consecutive ranks, the first of them first. In nodes of eight NPUs,
a switch has 300 GB/s; between nodes, NPUs of one rank in their node share a switch of 25 GB/s: rates of
TACOS. Of large data, speedups do not depend on rates that are alike everywhere.

References
----------
Won et al.: PCCL, arXiv 2606.07019v1. Won et al.: TACOS, arXiv 2304.05301, section VII-B.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hocket import topology
from hocket._core import Collective, Topology
from hocket.collectives.bounds import bound
from hocket.collectives.collective import collective_on, joined
from hocket.errors import InfeasibleError
from hocket.plans.plan import Plan, merge_plans
from hocket.plans.planner import plan
from hocket.simulation.run import simulate
from hocket_studies.groups_published import NONE, ROWS, Figure

RATE, LATENCY = "50 GB/s", "500 ns"
SIZE = 1 << 27
"""Bytes of a collective among a group."""
BLOCK = 1 << 17
"""Bytes from each NPU for each other in all-to-alls of whole networks."""

BASELINES = ("direct", "ring")
METHODS = (*BASELINES, "greedy", "steiner", "flows")
_OF_BLOCKS = ("direct", "greedy", "flows")
_OF_SUMS = ("ring", "greedy", "steiner")
_WHOLE = ("direct", "flows")

OnCase = Callable[[str, int, int], None]
"""Called as ``on_case(what, done, total)`` before each cell."""


@dataclass(frozen=True)
class Target:
    """One row: a collective among groups of a network."""

    name: str
    network: Callable[[], Topology]
    groups: tuple[range, ...]
    kind: str = "all-to-all"
    size: int = SIZE
    methods: tuple[str, ...] = _OF_BLOCKS


@dataclass(frozen=True)
class Cell:
    """One method on one target; ``time_ps`` is ``None`` if it has no plan."""

    method: str
    time_ps: int | None
    seconds: float
    """That planning took."""
    why: str = ""
    """Why there is no plan."""


@dataclass(frozen=True)
class Row:
    """One target, its lower bound, and what each method came to."""

    target: Target
    npus: int
    """Of the network."""
    bound_ps: int
    cells: tuple[Cell, ...]
    published: Figure = NONE

    def cell(self, method: str) -> Cell | None:
        """Return the cell of a method that was run."""
        return next((cell for cell in self.cells if cell.method == method), None)

    @property
    def best(self) -> Cell | None:
        """The fastest plan."""
        return min((each for each in self.cells if each.time_ps), key=_time, default=None)

    @property
    def gap(self) -> float | None:
        """Time of the fastest plan over the bound, less one."""
        return None if self.best is None else _time(self.best) / self.bound_ps - 1

    @property
    def speedup(self) -> float | None:
        """Time of the fastest baseline over that of the fastest plan."""
        times = [_time(each) for each in self.cells if each.method in BASELINES and each.time_ps]
        return None if self.best is None or not times else min(times) / _time(self.best)


def _time(cell: Cell) -> int:
    assert cell.time_ps is not None
    return cell.time_ps


def reproduce_groups(
    names: Sequence[str] | None = None, *, on_case: OnCase | None = None
) -> dict[str, list[Row]]:
    """Plan every target of some experiments by each of its methods.

    Parameters
    ----------
    names
        Of :data:`EXPERIMENTS`; by default all.
    on_case
        Called before each cell.
    """
    wanted = list(EXPERIMENTS) if names is None else list(names)
    total = sum(len(each.methods) for name in wanted for each in EXPERIMENTS[name].targets)
    done = 0
    rows: dict[str, list[Row]] = {name: [] for name in wanted}
    for name in wanted:
        for target in EXPERIMENTS[name].targets:
            network = target.network()
            cells = []
            for method in target.methods:
                if on_case is not None:
                    on_case(f"{name}, {target.name}: {method}", done, total)
                cells.append(_run(target, network, method))
                done += 1
            least = bound(network, joined(_collectives(target, network))).time_ps
            published = ROWS.get(name, {}).get(target.name, NONE)
            rows[name].append(Row(target, network.npu_count, least, tuple(cells), published))
    return rows


def _run(target: Target, network: Topology, method: str) -> Cell:
    """Plan, prove and run one cell."""
    began = time.perf_counter()
    try:
        made = make_plan(target, network, method)
    except InfeasibleError as error:
        return Cell(method, None, time.perf_counter() - began, str(error))
    seconds = time.perf_counter() - began
    return Cell(method, simulate(made).time_ps, seconds)


def make_plan(target: Target, network: Topology, method: str) -> Plan:
    """Plan a target by one method.

    Raises
    ------
    InfeasibleError
        If the method cannot do this.
    """
    several = _collectives(target, network)
    if method in BASELINES:
        plans = [plan(each, network, algorithm=method) for each in several]
        return plans[0] if len(plans) == 1 else merge_plans(plans).verify()
    return plan(several[0] if len(several) == 1 else joined(several), network, algorithm=method)


def _collectives(target: Target, network: Topology) -> list[Collective]:
    return [
        collective_on(target.kind, network, target.size, npus=list(group))
        for group in target.groups
    ]


def _mesh(*sizes: int) -> Callable[[], Topology]:
    return lambda: topology.mesh(*sizes, bandwidth=RATE, latency=LATENCY)


def _nodes(count: int) -> Callable[[], Topology]:
    return lambda: topology.product(
        "SW_SW", [8, count], bandwidth=["300 GB/s", "25 GB/s"], latency=[LATENCY] * 2
    )


def _rows(count: int) -> tuple[range, ...]:
    return tuple(range(8 * each, 8 * each + 8) for each in range(count))


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _whole(*sizes: int, methods: tuple[str, ...] = _WHOLE) -> Target:
    npus = math.prod(sizes)
    name = f"mesh {'x'.join(map(str, sizes))}"
    return Target(name, _mesh(*sizes), (range(npus),), size=BLOCK * npus, methods=methods)


@dataclass(frozen=True)
class Experiment:
    """Targets that answer one question."""

    title: str
    targets: tuple[Target, ...]


EXPERIMENTS = {
    "groups": Experiment(
        "all-to-all of 128 MiB in groups of 8 NPUs",
        (
            *(
                Target(f"{_plural(count, 'row')} of mesh 8x8", _mesh(8, 8), _rows(count))
                for count in (1, 2, 4, 8)
            ),
            *(
                Target(f"{_plural(count, 'group')} of mesh 4x4x4", _mesh(4, 4, 4), _rows(count))
                for count in (1, 4)
            ),
        ),
    ),
    "kinds": Experiment(
        "other collectives of 128 MiB in rows of mesh 8x8",
        tuple(
            Target(
                f"{kind}, {_plural(count, 'row')}",
                _mesh(8, 8),
                _rows(count),
                kind,
                methods=_OF_SUMS,
            )
            for kind in ("all-gather", "reduce-scatter", "all-reduce")
            for count in (1, 4)
        ),
    ),
    "switches": Experiment(
        "all-to-all of 128 MiB among nodes of 8 NPUs, 300 GB/s in a node, 25 GB/s between nodes",
        (
            *(
                Target(f"{8 * nodes} NPUs", _nodes(nodes), (range(8 * nodes),), methods=_WHOLE)
                for nodes in (2, 4, 8)
            ),
            Target("one NPU of each of 8 nodes", _nodes(8), (range(0, 64, 8),)),
        ),
    ),
    "scale": Experiment(
        "all-to-all of whole networks, 128 KiB for each NPU from each other",
        (_whole(6, 6), _whole(8, 8, 8), _whole(10, 10, 10, methods=("flows",))),
    ),
}
"""By name."""

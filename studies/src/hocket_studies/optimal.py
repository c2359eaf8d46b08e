"""The gap of the best plans to the lower bound, on every shipped machine.

A cell is a machine, a kind, a size and what has failed. All algorithms that a comparison has unasked plan
it; every plan is proved and run at link fidelity, and the fastest counts. The gap is its time over the
lower bound of the same network, less one: no plan could save more than that. On machines of more than 128
NPUs that look the same from every NPU, ``symmetric`` alone plans, one block for all.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from hocket import _core
from hocket.collectives.bounds import bound
from hocket.collectives.collective import Progress, collective_on
from hocket.comparison.compare import compare
from hocket.comparison.failures import alike_failures
from hocket.errors import InfeasibleError, SpecError
from hocket.plans.algorithms import quick
from hocket.plans.symmetric import plan_symmetric
from hocket.topology.sources import load, names
from hocket.units import format_size
from hocket_studies.parallel import in_parallel

KINDS = ("all-gather", "reduce-scatter", "all-reduce", "broadcast", "reduce")
SIZES = (64_000, 1_000_000, 64_000_000, 1_000_000_000)
"""In bytes."""

NARROW, WIDE = 0.05, 0.25
"""Gaps that large and small sizes are counted by."""
LARGE = 16_000_000
"""Bytes from which on a size is large."""

_FEW = 128
"""NPUs up to which all algorithms are tried."""
_SEARCHES = ("greedy",)
"""Left out beyond: they take minutes there."""

OnCase = Callable[[str, int, int], None]
"""Called as ``on_case(what, done, total)`` after each cell."""


@dataclass(frozen=True, order=True)
class Cell:
    """The collective, size and machine of a cell."""

    machine: str
    kind: str
    size: int
    failed: str = ""
    """``"A"`` or ``"A,B"``, as ``--failed`` takes it."""

    @property
    def network(self) -> str:
        """The machine, and what it is without."""
        return f"{self.machine} without {self.failed}" if self.failed else self.machine


@dataclass(frozen=True)
class Outcome:
    """The result of a cell.

    Attributes
    ----------
    npus
        How many take part.
    bound_ps, witness
        The lower bound [ps], and in words what it is due to; 0 where somebody is out of reach, so that
        nothing can run.
    algorithm, chunks, time_ps
        The fastest plan and its time [ps]; ``None`` where nothing applies.
    seconds
        That all of it took.
    """

    npus: int
    bound_ps: int
    witness: str
    algorithm: str | None
    chunks: int | None
    time_ps: int | None
    seconds: float
    why: str = ""

    @property
    def argument(self) -> str:
        """The argument that the bound is due to, as its witness begins: ``cut``, ``partition``, ..."""
        found = re.match("one trip|[a-z-]+", self.witness)
        return "" if found is None else found.group()

    @property
    def is_possible(self) -> bool:
        """Whether there is any plan: no NPU is cut off."""
        return self.bound_ps > 0

    @property
    def gap(self) -> float | None:
        """Time over the bound, less one."""
        return None if self.time_ps is None else _core.gap(self.time_ps, self.bound_ps)


@dataclass
class OptimalResult:
    """Outcomes by cell."""

    outcomes: dict[Cell, Outcome] = field(default_factory=dict)

    def within(self, is_large: bool) -> tuple[int, int]:
        """Count cells whose gap is at most what is wanted of large or small sizes, and all that can run."""
        wanted = NARROW if is_large else WIDE
        gaps = [
            out.gap
            for cell, out in self.outcomes.items()
            if (cell.size >= LARGE) == is_large and out.is_possible
        ]
        return sum(gap is not None and gap <= wanted for gap in gaps), len(gaps)

    def worst(self, is_large: bool) -> list[Cell]:
        """Return the cells beyond what is wanted, the worst first."""
        wanted = NARROW if is_large else WIDE
        gaps = {
            cell: float("inf") if out.gap is None else out.gap
            for cell, out in self.outcomes.items()
            if (cell.size >= LARGE) == is_large and out.is_possible
        }
        return sorted((cell for cell, gap in gaps.items() if gap > wanted), key=lambda c: -gaps[c])

    @property
    def impossible(self) -> int:
        """The number of cells in which nothing can run, since a failure cuts an NPU off."""
        return sum(not out.is_possible for out in self.outcomes.values())

    @property
    def machines(self) -> list[tuple[str, str]]:
        """Machines, each with what has failed, in order."""
        return list(dict.fromkeys((cell.machine, cell.failed) for cell in sorted(self.outcomes)))


def machines() -> list[str]:
    """Names of the shipped machines."""
    return names()


def reproduce_optimal(
    wanted: Sequence[str] | None = None,
    *,
    kinds: Sequence[str] = KINDS,
    sizes: Sequence[int] = SIZES,
    failures: bool = False,
    on_case: OnCase | None = None,
) -> OptimalResult:
    """Plan every cell on all cores, the largest first.

    Parameters
    ----------
    wanted
        Machines; by default all that are shipped.
    failures
        Instead of whole machines, each with one link failed: one of each sort, alike by symmetry.
    on_case
        Called after each cell.
    """
    found = OptimalResult()
    cells = list(_cells(machines() if wanted is None else wanted, kinds, sizes, failures))
    with closing(in_parallel(_outcome, cells)) as outcomes:
        for done, (cell, outcome) in enumerate(outcomes, 1):
            found.outcomes[cell] = outcome
            if on_case is not None:
                on_case(
                    f"{cell.kind} of {format_size(cell.size)} on {cell.network}", done, len(cells)
                )
    return found


def _cells(
    wanted: Iterable[str], kinds: Sequence[str], sizes: Sequence[int], failures: bool
) -> Iterable[Cell]:
    networks = {name: load(name) for name in wanted}
    for name in sorted(networks, key=lambda name: -networks[name].npu_count):
        lost = [""]
        if failures:
            sorts = alike_failures(networks[name], ["link"])
            lost = [",".join(kin[0]) for _, kin in sorts]
        for each in lost:
            for size in sizes:
                yield from (Cell(name, kind, size, each) for kind in kinds)


def _outcome(cell: Cell, progress: Progress) -> Outcome:
    began = time.perf_counter()
    network = load(cell.machine, failed=cell.failed or ())
    if network.npu_count > _FEW:
        found = _by_symmetry(cell, network, began)
        if found is not None:
            return found
    tried = [
        name for name in quick(cell.kind) if network.npu_count <= _FEW or name not in _SEARCHES
    ]
    try:
        ranked = compare(cell.kind, network, size=cell.size, algorithms=tried, progress=progress)
    except InfeasibleError as error:
        took = time.perf_counter() - began
        least, witness = _bound(cell, network)
        return Outcome(network.npu_count, least, witness, None, None, None, took, str(error))
    best = ranked.best
    return Outcome(
        npus=len(ranked.collective.npus),
        bound_ps=ranked.bound.time_ps,
        witness=str(ranked.bound.witness),
        algorithm=best.algorithm,
        chunks=best.chunks,
        time_ps=best.run.time_ps,
        seconds=time.perf_counter() - began,
    )


def _bound(cell: Cell, network: _core.Topology) -> tuple[int, str]:
    """Return a lower bound [ps] and its witness; 0 where nobody can do it."""
    try:
        found = bound(network, collective_on(cell.kind, network, cell.size))
    except InfeasibleError:
        return 0, ""
    return found.time_ps, str(found.witness)


def _by_symmetry(cell: Cell, network: _core.Topology, began: float) -> Outcome | None:
    """Return what a plan of one block comes to, or ``None`` if there is none.

    It takes seconds on thousands of NPUs; plans that are expanded would take minutes.
    """
    try:
        made = plan_symmetric(cell.kind, network, size=cell.size)
    except (InfeasibleError, SpecError):
        return None
    return Outcome(
        npus=len(made.collective.npus),
        bound_ps=made.bound_ps,
        witness=made.witness,
        algorithm="symmetric",
        chunks=made.pieces,
        time_ps=made.time_ps,
        seconds=time.perf_counter() - began,
    )

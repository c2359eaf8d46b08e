"""Tables I to V and figures 6, 19 and 21 of TACOS: synthesized plans beside Ring and Direct.

Every plan is proved, and run at link fidelity with latency that occupies a link, as the paper
counts. Times are divided by that of the first method named by the row's target, in the paper nearly
always TACOS-ILP. Nothing here was fitted to what was published.

The paper's Ring
----------------
On a mesh it goes through the NPUs in rank order, wherever the links are: 394 slots on 10 x 10 against
100 of a synthesized plan, the published 3.94. hocket's ``ring`` finds a cycle of single links there
and needs 198. Both are given, as ``rank-ring`` and ``ring``.

References
----------
Won et al.: TACOS (arXiv 2304.05301), sections III, VII and VIII.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import mean

from hocket._core import Topology
from hocket.errors import InfeasibleError, SpecError
from hocket.simulation.run import simulate
from hocket_studies.tacos_methods import LATENCY_MODEL, make_plan
from hocket_studies.tacos_published import ROWS, Figure
from hocket_studies.tacos_targets import BASELINES, EXPERIMENTS, Target, collectives

TIME_LIMIT, FULL_TIME_LIMIT = "20 s", "10 min"
"""Of each exact search, where nothing else is said."""

BASELINE_METHODS = ("rank-ring", "direct")
"""What the paper calls baselines."""

OnCase = Callable[[str, int, int], None]
"""Called as ``on_case(what, done, total)`` before each cell."""


@dataclass(frozen=True)
class Cell:
    """One method on one target."""

    method: str
    time_ps: int | None
    """``None`` where the method has no plan."""
    seconds: float
    """That planning took."""
    slots: int | None = None
    least: int | None = None
    """Slots that no plan can do without."""
    status: str | None = None
    """``optimal`` or ``feasible``, of a search."""
    why: str = ""
    """Why there is no plan."""


@dataclass(frozen=True)
class Row:
    """One target, and what each method came to."""

    target: Target
    cells: tuple[Cell, ...]
    published: dict[str, Figure] = field(default_factory=dict)

    def cell(self, method: str) -> Cell | None:
        """Return the cell of a method that was run."""
        return next((cell for cell in self.cells if cell.method == method), None)

    def time_ps(self, method: str) -> int | None:
        """Time of a method's plan [ps], if there is one."""
        cell = self.cell(method)
        return None if cell is None else cell.time_ps

    @property
    def reference(self) -> str | None:
        """The method whose time the others are divided by."""
        usable = (name for name in self.target.reference if self.time_ps(name))
        return next(usable, None)

    def ratio(self, method: str) -> float | None:
        """Time over that of the reference."""
        mine = self.time_ps(method)
        base = None if self.reference is None else self.time_ps(self.reference)
        return None if mine is None or not base else mine / base

    def published_ratio(self, method: str) -> float | None:
        """Return what was published, divided by what was published of the reference."""
        theirs = self.published.get(method)
        base = self.published.get(self.reference or "")
        if theirs is None:
            return None
        return theirs.ratio / (1.0 if base is None else base.ratio)


@dataclass(frozen=True)
class TacosResult:
    """Rows by table or figure, such as ``table 1``."""

    rows: dict[str, list[Row]]

    def methods(self, name: str) -> list[str]:
        """Methods of a table or figure in their order, those with a plan or a published time."""
        known = ("exact", "early", "cluster", "greedy", "blind", "rank-ring", "ring", "direct")
        rows = self.rows[name]
        return [m for m in known if any(row.cell(m) or m in row.published for row in rows)]

    def speedups(self, name: str, method: str, over: str) -> list[float]:
        """Time of ``over`` (``baselines`` is Ring and Direct) / time of a method, over all rows."""
        others = BASELINE_METHODS if over == "baselines" else (over,)
        found = []
        for row in self.rows[name]:
            mine = row.time_ps(method)
            times = [row.time_ps(other) for other in others]
            found += [theirs / mine for theirs in times if mine and theirs]
        return found

    def mean_speedup(self, name: str, method: str, over: str) -> float | None:
        """Mean of :meth:`speedups`; ``None`` where there are none."""
        found = self.speedups(name, method, over)
        return mean(found) if found else None


def reproduce_tacos(
    names: Sequence[str] = tuple(EXPERIMENTS),
    *,
    full: bool = False,
    time_limit: str | None = None,
    on_case: OnCase | None = None,
) -> TacosResult:
    """Compute what tables and figures of TACOS show.

    Parameters
    ----------
    names
        Which, such as ``table 1`` and ``figure 6``.
    full
        Whether to run the searches that take long.
    time_limit
        Of each exact search; 20 s by default, 10 min in full.
    on_case
        Called before each cell.
    """
    limit = time_limit or (FULL_TIME_LIMIT if full else TIME_LIMIT)
    work = [(name, target) for name in names for target in EXPERIMENTS[name].targets]
    total = sum(len(_methods(target, full)) for _, target in work)
    rows: dict[str, list[Row]] = {name: [] for name in names}
    done = 0
    for name, target in work:
        network = target.network()
        plain = target.baselines_on() if target.baselines_on is not None else network
        cells = []
        for method in _methods(target, full):
            if on_case is not None:
                on_case(f"{name}, {target.name}: {method}", done, total)
            on = plain if method in BASELINES else network
            cells.append(_run(target, on, method, limit))
            done += 1
        published = ROWS.get(name, {}).get(target.name, {})
        rows[name].append(Row(target, tuple(cells), published))
    return TacosResult(rows)


def _methods(target: Target, full: bool) -> tuple[str, ...]:
    return (*target.long, *target.methods) if full else target.methods


def _run(target: Target, network: Topology, method: str, limit: str) -> Cell:
    """Plan, prove and run one cell."""
    wanted = collectives(target, network)
    began = time.perf_counter()
    try:
        plan = make_plan(
            wanted,
            network,
            method,
            chunks=target.chunks,
            unwind=target.unwind,
            time_limit=limit,
        )
    except (InfeasibleError, SpecError) as error:  # the latter where a solver is missing
        return Cell(method, None, time.perf_counter() - began, why=str(error))
    seconds = time.perf_counter() - began
    took = plan.synthesis
    run = simulate(plan, latency_model=LATENCY_MODEL)
    return Cell(
        method,
        run.time_ps,
        seconds,
        slots=None if took is None else took.slots,
        least=None if took is None else took.least_slots,
        status=None if took is None else took.status,
    )

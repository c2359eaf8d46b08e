"""The fastest plans of a network over a range of sizes, as a table on which a runtime switches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any

from hocket import _core
from hocket._checks import check_function, instance_of, path_of
from hocket._options import check_keywords, names_of, options_of
from hocket._results import HIDDEN, ListResult, figure, said
from hocket.collectives.collective import KEYWORDS as COLLECTIVE_KEYWORDS
from hocket.collectives.collective import Progress, collective_on, within_step
from hocket.collectives.outcome import Task, task_of
from hocket.collectives.sizes import sizes_of
from hocket.comparison.compare import compare, named
from hocket.comparison.crossovers import Crossover
from hocket.comparison.halving import SizeMeasurement, SizeSearch, Way
from hocket.comparison.size_table import ParetoOptions, ParetoPoint, ParetoRange, is_open
from hocket.deployment.groups import at_once, collectives_of
from hocket.plans.algorithms import check_any_uses, heeded_by_any
from hocket.plans.choice import SHORTEST
from hocket.plans.synthesis import PlanOptions
from hocket.simulation.options import KEYWORDS, LinkOptions, TransferOptions
from hocket.simulation.run import Run
from hocket.topology.sources import TopologyLike, as_topology
from hocket.units import Quantity, format_size, parse_size

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.comparison.compare import Keywords as CompareKeywords

    class Keywords(CompareKeywords, total=False):
        """Further keywords of :func:`pareto`."""

        precision: float
        tolerance: float
        within: float | str | None
        process_groups: str | None


SIZES = "1K:1G:x4"
"""Sizes where none are given."""


@dataclass(frozen=True, repr=False)
class Pareto(ListResult[ParetoRange]):
    """The fastest plan of each size.

    Attributes
    ----------
    topology, collective
        Where, and what, at the least size that was simulated.
    fidelity
        Of the simulations.
    options
        How exactly it was found.
    points
        Every size that was simulated, the least first.
    missing
        Sizes that were asked for and not simulated in time.
    refused
        Why each other algorithm cannot run here, by name.
    """

    _table = "ranges"

    topology: _core.Topology = field(metadata=HIDDEN)
    collective: _core.Collective = field(metadata=HIDDEN)
    fidelity: str
    options: ParetoOptions = field(metadata=said(inline=ParetoOptions, but=("within",)))
    points: tuple[ParetoPoint, ...]
    missing: tuple[int, ...] = field(metadata=said("missing_bytes"))
    refused: dict[str, str]

    @property
    @figure(inline=Task, but=("size_bytes",))
    def _task(self) -> Task:
        return task_of(self.collective, self.topology)

    @property
    @figure()
    def ranges(self) -> list[ParetoRange]:
        """The ranges of sizes, each with its plan, the least sizes first."""
        found: list[ParetoRange] = []
        for each in self.points:
            if found and (found[-1].algorithm, found[-1].chunks) == (each.algorithm, each.chunks):
                found[-1] = replace(found[-1], last=each)
            else:
                found.append(ParetoRange(each, each))
        return found

    @property
    def crossovers(self) -> list[Crossover]:
        """The sizes at which another algorithm becomes the fastest, in ascending order."""
        ranges = self.ranges
        return [
            Crossover(float(after.first.size), before.algorithm, after.algorithm)
            for before, after in pairwise(ranges)
            if before.algorithm != after.algorithm
        ]

    @property
    @figure("holes_bytes")
    def holes(self) -> list[tuple[int, int]]:
        """The ranges in which the size of a crossover was not found in time.

        Between the two sizes of each, the end of a range and the beginning of the next, nothing was
        measured; :meth:`at` gives the plan of the smaller there.
        """
        pairs = pairwise(self.points)
        return [(low.size, high.size) for low, high in pairs if is_open(low, high, self.options)]

    @property
    @figure()
    def is_complete(self) -> bool:
        """Whether all sizes were simulated, and all crossovers found to the precision."""
        return not self.missing and not self.holes

    def at(self, size: Quantity) -> ParetoRange:
        """Return the plan for a size: the last whose range begins no later, or the first.

        Raises
        ------
        SpecError
            If it is not a size.
        """
        count = parse_size(size, field="size")
        ranges = self.ranges
        return next((each for each in reversed(ranges) if each.first.size <= count), ranges[0])

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw time over size into a .png, .svg or .pdf file, crossovers numbered.

        Raises
        ------
        SpecError
            If the file can be no picture, or cannot be written.
        """
        from hocket.plot.pareto import draw_pareto

        draw_pareto(self, path_of("path", path))

    def __repr__(self) -> str:
        span = f"{format_size(self.points[0].size)} to {format_size(self.points[-1].size)}"
        what = f"{self.collective.kind} on {self.topology.name!r}"
        plural = "" if len(self) == 1 else "s"
        return f"<Pareto of {what}: {len(self)} range{plural} from {span}>"


def pareto(
    kind: str,
    topology: TopologyLike,
    *,
    sizes: Quantity | Iterable[Quantity] = SIZES,
    algorithms: Sequence[str] | None = None,
    fidelity: str | TransferOptions = "link",
    options: PlanOptions | None = None,
    front: ParetoOptions | None = None,
    on_point: Callable[[ParetoPoint], None] | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[Keywords],
) -> Pareto:
    """Find the fastest plan of each size, and the sizes at which another becomes the fastest.

    Every size is compared as by :func:`hocket.compare`: each plan is proved, simulated and bounded. Where
    the fastest of two neighbouring sizes differ, sizes between them are compared, halving the interval
    until its ends are as near as `precision` asks for. There, only algorithms are tried that take no more
    than one and a half times the least time at one of its ends.

    Parameters
    ----------
    kind, topology, algorithms, fidelity, options
        See :func:`hocket.compare`; the limit of time in `options` is that of one search.
    sizes
        Sizes that are simulated at least, see :func:`hocket.compare_sizes`; the first and the last are
        the ends of the table.
    front
        How exactly.
    on_point
        Called after each size, with the fastest plan there.
    progress
        Called as ``progress(stage, done, total)`` during the work.
    keywords
        As of :func:`hocket.compare`; and any option of :class:`hocket.ParetoOptions` by its name.
        `process_groups` names groups that do this at once, as ``"dp=2,tp=4"``; each has the size.

    Raises
    ------
    SpecError, InfeasibleError, VerificationError
        As :func:`hocket.compare` and :func:`hocket.compare_sizes`.

    Examples
    --------
    >>> import hocket as hk
    >>> names = ["ring", "direct"]
    >>> front = hk.pareto("all-reduce", "ring:4@25GB/s,1us", sizes="1K:1M:x32", algorithms=names)
    >>> front.at("2 KB").algorithm
    'direct'
    """
    own = names_of(ParetoOptions)
    groups = keywords.pop("process_groups", None)
    known = (*COLLECTIVE_KEYWORDS, *names_of(PlanOptions), *KEYWORDS, *own, "process_groups")
    check_keywords(keywords, known, ("sizes", "algorithms", "fidelity", "options", "front"))
    check_function("on_point", on_point)
    check_function("progress", progress)
    instance_of(str, "kind", kind, "give the name of a kind, such as all-reduce")
    exactly = options_of(ParetoOptions, front, {k: v for k, v in keywords.items() if k in own})
    rest = {name: value for name, value in keywords.items() if name not in own}
    network = as_topology(topology)
    planning = {k: v for k, v in rest.items() if k in names_of(PlanOptions) and k not in KEYWORDS}
    if options is None and isinstance(fidelity, LinkOptions):
        planning["latency_model"] = rest.get("latency_model", fidelity.latency_model)
    plans = options_of(PlanOptions, options, planning)
    check_any_uses(named(algorithms), plans, is_named=algorithms is not None)
    about: dict[str, Any] = {k: v for k, v in rest.items() if k in COLLECTIVE_KEYWORDS}
    rest = {
        k: v for k, v in rest.items() if k not in about and (k in KEYWORDS or k not in planning)
    }

    def made(size: int) -> _core.Collective:
        if groups is None:
            return collective_on(kind, network, size, **about)
        return at_once(collectives_of(groups, kind, network, size, about))

    def measure(
        size: int, names: Sequence[str] | None, chunks: int | None, left: float
    ) -> SizeMeasurement:
        limits = [each for each in (plans.seconds, left) if each is not None and each < math.inf]
        given = replace(plans, time_limit=max(min(limits), SHORTEST)) if limits else plans
        if chunks is not None:
            given = replace(given, chunks=chunks, chunk_size=None)
        wanted = names or algorithms
        if wanted is not None:
            given = heeded_by_any(wanted, given)
        what = made(size), network
        return _measured(what, size, wanted, fidelity, given, within_step(progress), rest)

    search = SizeSearch(sorted(sizes_of(sizes)), measure, exactly, progress, on_point)
    search.run()
    least = search.found[min(search.found)]
    return Pareto(
        network,
        made(least.size),
        least.fidelity,
        exactly,
        tuple(search.points()),
        tuple(size for size in search.sizes if size not in search.found),
        least.refused,
    )


def _measured(
    what: tuple[_core.Collective, _core.Topology],
    size: int,
    names: Sequence[str] | None,
    fidelity: str | TransferOptions,
    options: PlanOptions,
    progress: Progress | None,
    keywords: dict[str, Any],
) -> SizeMeasurement:
    """Compare algorithms at one size, and keep what each number of chunks came to."""
    times: dict[Way, tuple[int, float, float]] = {}

    def note(name: str, chunks: int, run: Run) -> None:
        known = times.get((name, chunks))
        if known is None or run.time_ps < known[0]:
            times[name, chunks] = (run.time_ps, run.algbw, run.busbw)

    found = compare(
        *what,
        algorithms=names,
        fidelity=fidelity,
        options=options,
        on_result=note,
        progress=progress,
        **keywords,
    )
    kept = {entry.algorithm for entry in found}
    return SizeMeasurement(
        size,
        found.best.run.fidelity,
        found.bound,
        {way: figures for way, figures in times.items() if way[0] in kept},
        found.refused,
    )

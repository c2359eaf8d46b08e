"""``hk.autotune``: a table of plans, filled by prediction and by measurement."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hocket._checks import path_of
from hocket._options import options_of
from hocket._results import HIDDEN, Column, ListResult, Result, figure, said
from hocket.collectives.collective import ROOTED, Progress, tell_step
from hocket.collectives.sizes import sizes_of
from hocket.comparison.compare import compare
from hocket.errors import InfeasibleError, SpecError
from hocket.plans.plan import Plan
from hocket.plans.planner import plan as make_plan
from hocket.runtime.contest import Candidate, contest
from hocket.runtime.options import MeasureOptions
from hocket.runtime.processes import MAX_RANKS
from hocket.runtime.programs import TOPOLOGY, lower, usual_algorithm
from hocket.runtime.table import WINDOW, PlanRow, PlanTable, merged, tuned_path
from hocket.simulation.run import simulate
from hocket.topology.sources import as_topology
from hocket.tuning.options import TuneOptions
from hocket.units import Quantity, format_size

if TYPE_CHECKING:
    from os import PathLike

    from typing_extensions import Unpack

    from hocket.tuning.options import TuneKeywords

SIZES = "1K:64M:x8"
"""Sizes where none are given."""


@dataclass(frozen=True)
class TunedWay(Result):
    """One way to do a collective of some size.

    Attributes
    ----------
    algorithm, chunks
        What plans it; ``shared-memory`` where nothing is planned.
    transport
        What messages go through: ``tcp`` or ``shared``.
    predicted_ps, measured_ps
        Its time by simulation, and in reality, as far as known.
    """

    algorithm: str = field(metadata=said(column=Column("algorithm", leaves=0)))
    chunks: int | None = field(metadata=said(column=Column("chunks", leaves=3)))
    transport: str = field(metadata=said(column=Column("transport", leaves=4)))
    predicted_ps: int | None = None
    measured_ps: int | None = None

    @property
    @figure(only="table", column=Column("time", leaves=0))
    def time_ps(self) -> float:
        """The time that counts: measured, or else predicted."""
        if self.measured_ps is not None:
            return self.measured_ps
        return math.inf if self.predicted_ps is None else self.predicted_ps

    @property
    def key(self) -> tuple[str, int | None, str]:
        """The parts that distinguish it from others."""
        return self.algorithm, self.chunks, self.transport


@dataclass(frozen=True)
class TunedSize(Result):
    """The choice for a size.

    Attributes
    ----------
    size
        Bytes of the whole vector.
    picked, usual
        What the table says, and what runs without one.
    why
        Why it was picked, in words.
    tried
        Every way, the fastest first.
    """

    size: int = field(metadata=said("size_bytes", column=Column("size", leaves=0, is_given=True)))
    picked: TunedWay
    usual: TunedWay
    why: str = field(metadata=said(column=Column("why", leaves=1, after="gain")))
    tried: tuple[TunedWay, ...]

    @property
    @figure(only="rows", inline=TunedWay)
    def _way(self) -> TunedWay:
        return self.picked

    @property
    @figure("usual_ps", only="rows", column=Column("usual", leaves=2))
    def _usual_ps(self) -> int | None:
        return None if math.isinf(self.usual.time_ps) else int(self.usual.time_ps)

    @property
    @figure(column=Column("gain", leaves=0, write="{:.2f}x"))
    def gain(self) -> float:
        """The speed-up over the usual way."""
        return self.usual.time_ps / max(self.picked.time_ps, 1)


@dataclass(frozen=True, repr=False)
class Tuning(ListResult[TunedSize]):
    """A table of plans for one kind and number of ranks, and how each was picked.

    Attributes
    ----------
    collective, ranks, topology
        What it is for, and where it is planned.
    sizes
        What was picked for each size.
    options
        How.
    refused
        Why other algorithms make no plan here, by name.
    load_average
        Of the machine when it began.
    """

    _table = "sizes"

    collective: str
    ranks: int
    topology: str
    sizes: tuple[TunedSize, ...]
    options: TuneOptions = field(metadata=HIDDEN)
    refused: dict[str, str]
    load_average: float

    @property
    @figure()
    def is_measured(self) -> bool:
        """Whether ways were run, not only simulated."""
        return self.options.measure

    @property
    @figure()
    def tolerance(self) -> float:
        """The share by which a way may be slower than the fastest and still be kept."""
        return self.options.tolerance

    @property
    @figure()
    def rows(self) -> list[PlanRow]:
        """Rows of a table: where the pick changes between two sizes, half-way in logarithm.

        Where what runs without a table is predicted to be the fastest, there is no row.
        """
        rows: list[PlanRow | None] = []
        for before, each in zip((None, *self.sizes), self.sizes, strict=False):
            if before is not None and before.picked.key == each.picked.key:
                continue
            start = 0 if before is None else round(math.sqrt(before.size * each.size))
            if rows and rows[-1] is not None:
                rows[-1] = replace(rows[-1], to_bytes=start)
            is_silent = each.picked.key == each.usual.key and not self.options.measure
            rows.append(None if is_silent else self._row(each, start))
        return [row for row in rows if row is not None]

    def _row(self, each: TunedSize, start: int) -> PlanRow:
        way = each.picked
        is_planned = way.algorithm != WINDOW
        return PlanRow(
            collective=self.collective,
            ranks=self.ranks,
            from_bytes=start,
            algorithm=way.algorithm,
            chunks=way.chunks,
            planned_bytes=each.size if is_planned else None,
            topology=self.topology if is_planned else None,
            transport=way.transport,
        )

    def save(self, path: str | PathLike[str] | None = None) -> Path:
        """Write the rows into a table, beside those for other kinds and numbers of ranks.

        Parameters
        ----------
        path
            The file; by default the table that is kept for the user.

        Returns
        -------
        Path
            Where it is.

        Raises
        ------
        SpecError
            If there is a file that is no table, or it cannot be written.
        """
        target = tuned_path() if path is None else path_of("path", path)
        if path is None:
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                why = f"cannot be made: {error.strerror}"
                raise SpecError(None, why, origin=str(target.parent)) from None
        merged(target, self.rows).save(target)
        return target

    @property
    def table(self) -> PlanTable:
        """The rows as a table."""
        return PlanTable(self.rows)

    def __repr__(self) -> str:
        how = "measured" if self.options.measure else "predicted"
        return f"<Tuning of {self.collective} among {self.ranks}: {len(self)} sizes, {how}>"


def autotune(
    kind: str = "all-reduce",
    *,
    ranks: int | None = None,
    topology: str | None = None,
    sizes: Quantity | Iterable[Quantity] = SIZES,
    algorithms: Sequence[str] | None = None,
    options: TuneOptions | None = None,
    on_size: Callable[[TunedSize], None] | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[TuneKeywords],
) -> Tuning:
    """Find the fastest plan of each size, by prediction, and if wanted by measurement on this machine.

    Parameters
    ----------
    kind
        What is done.
    ranks
        Among how many; by default the NPUs of the topology.
    topology
        The network, as text that ``--topology`` takes; by default all ranks reach each other equally well.
    sizes
        Of the whole vector, as ``"1K:64M:x8"``.
    algorithms
        Names to try, beside what runs without a table; by default all that plan in a few seconds.
    options
        How they are picked.
    on_size
        Called after each size for which a plan is picked.
    progress
        Called as ``progress(stage, done, total)``.
    keywords
        Any option of :class:`TuneOptions` by its name, in place of the one in `options`.

    Returns
    -------
    Tuning
        Its `save` keeps it in a table, which :func:`hocket.runtime.connect` reads.

    Raises
    ------
    SpecError
        For arguments that make no sense.
    InfeasibleError
        If no plan can be made, or a measured result is wrong.
    TransportError
        If a process dies that measures.
    """
    chosen = options_of(TuneOptions, options, keywords)
    ranks, text = _where(ranks, topology, chosen)
    wanted = sorted(sizes_of(sizes))
    load = os.getloadavg()[0]
    refused: dict[str, str] = {}
    ways = []
    picked: list[TunedSize] = []

    def pick(size: int, found: Ways) -> None:
        before = picked[-1].picked.key if picked else None
        picked.append(_pick(size, [way for way, _ in found], before, chosen, (kind, ranks)))
        if on_size is not None:
            on_size(picked[-1])

    for number, size in enumerate(wanted):
        tell_step(progress, f"predict {format_size(size)}", number, len(wanted))
        ways.append(_predicted(kind, text, ranks, size, algorithms, chosen, refused))
        if not chosen.measure:
            pick(size, ways[-1])
    if chosen.measure:
        ways = _measured(kind, ranks, wanted, ways, chosen, progress)
        for size, found in zip(wanted, ways, strict=True):
            pick(size, found)
    return Tuning(kind, ranks, text, tuple(picked), chosen, refused, load)


Ways = list[tuple[TunedWay, Plan | None]]


def _where(ranks: int | None, topology: str | None, options: TuneOptions) -> tuple[int, str]:
    """Return the number of ranks and the network as text."""
    if topology is None and ranks is None:
        raise SpecError("ranks", "is missing", "say how many processes, or name a topology")
    if topology is not None:
        npus = as_topology(topology).npu_count
        if ranks not in (None, npus):
            raise SpecError("ranks", f"the topology has {npus} NPUs, not {ranks}")
        ranks = npus
    most = MAX_RANKS if options.measure else 4096
    if not isinstance(ranks, int) or isinstance(ranks, bool) or not 2 <= ranks <= most:
        raise SpecError("ranks", f"{ranks} is not 2 to {most}")
    return ranks, topology or TOPOLOGY.format(ranks)


def _predicted(
    kind: str,
    topology: str,
    ranks: int,
    size: int,
    algorithms: Sequence[str] | None,
    options: TuneOptions,
    refused: dict[str, str],
) -> Ways:
    """Return every way with a plan that has a program, the fastest first."""
    root = 0 if kind in ROOTED else None
    size = max(size // ranks * ranks, ranks)
    usual = usual_algorithm(kind, size)
    names = None if algorithms is None else list(dict.fromkeys([*algorithms, usual]))
    found = compare(kind, topology, size=size, algorithms=names, root=root)
    refused.update(found.refused)
    ways: Ways = []
    kept = 0
    for entry in found:
        # Only what may be measured, or is what runs without a table, need have a program.
        if kept >= options.candidates and entry.algorithm != usual:
            continue
        try:
            lower(entry.plan)
        except InfeasibleError as error:
            refused[entry.algorithm] = str(error)
            continue
        kept += 1
        way = TunedWay(entry.algorithm, entry.chunks, "tcp", entry.run.time_ps)
        ways.append((way, entry.plan))
        if options.measure and entry.chunks > 1:
            # No prediction knows what a message costs a processor: fewer may be quicker.
            ways += _in_one(entry.algorithm, kind, topology, size, root)
    if not ways:
        first = found.best.algorithm
        why = f"none has a program for {kind} among {ranks} ranks; {refused[first]}"
        raise InfeasibleError("algorithms", why)
    return ways


def _in_one(name: str, kind: str, topology: str, size: int, root: int | None) -> Ways:
    """Return a way without cutting data into chunks, if the algorithm has one."""
    try:
        made = make_plan(kind, topology, size=size, algorithm=name, chunks=1, root=root)
        return [(TunedWay(name, 1, "tcp", simulate(made).time_ps), made)]
    except (InfeasibleError, SpecError):
        return []


def _measured(
    kind: str,
    ranks: int,
    sizes: Sequence[int],
    ways: Sequence[Ways],
    options: TuneOptions,
    progress: Progress | None,
) -> list[Ways]:
    """Measure the ways of each size, by TCP and through shared memory, beside those without a plan."""
    asked: list[tuple[int, list[Candidate]]] = []
    tried: list[Ways] = []
    for size, some in zip(sizes, ways, strict=True):
        own: Ways = [(TunedWay(WINDOW, None, "shared"), None)]
        usual = TunedWay(usual_algorithm(kind, size), 1, "tcp")
        if all(way.key != usual.key for way, _ in some):
            own.append((usual, None))
        for way, plan in some:
            own.append((way, plan))
            own.append((replace(way, transport="shared"), plan))
        tried.append(own)
        asked.append((size, [Candidate(w.algorithm, plan, w.transport) for w, plan in own]))
    measuring = MeasureOptions(dtype=options.dtype, op=options.op)
    times = contest(kind, ranks, asked, rounds=options.rounds, options=measuring, progress=progress)
    return [
        [(replace(way, measured_ps=ps), plan) for (way, plan), ps in zip(own, found, strict=True)]
        for own, found in zip(tried, times, strict=True)
    ]


def _pick(
    size: int,
    ways: list[TunedWay],
    before: tuple[str, int | None, str] | None,
    options: TuneOptions,
    task: tuple[str, int],
) -> TunedSize:
    """Pick a way for a size."""
    if options.measure:
        usual = next(way for way in ways if way.algorithm == WINDOW)
    else:
        name = usual_algorithm(task[0], size)
        usual = next((way for way in ways if way.algorithm == name), ways[0])
    tried = sorted(ways, key=lambda way: way.time_ps)
    best = tried[0]
    enough = best.time_ps * (1 + options.tolerance)
    kept = next((way for way in tried if way.key == before), None)
    others = [way for way in tried if way.key[:1] != best.key[:1]]
    share = f"{options.tolerance:.0%}"
    if usual.time_ps <= enough:
        best, why = usual, f"none is {share} faster than what runs without a table"
        if tried[0] is usual:
            why = "the fastest is what runs without a table"
    elif kept is not None and kept.time_ps <= enough:
        best, why = kept, f"within {share} of the fastest, and that of the size before"
    elif others:
        ratio = others[0].time_ps / max(best.time_ps, 1)
        why = f"the fastest: the next takes {ratio:.2f} times as long ({others[0].algorithm})"
    else:
        why = "the only one"
    return TunedSize(size, best, usual, why, tuple(tried))

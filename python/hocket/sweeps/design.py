"""The best network for a budget: shapes, splits of bandwidth and oversubscription, judged by time.

Candidates are planned and simulated in the order of their lower bounds, until no bound is below the best
time found: no other candidate can be quicker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from io import BytesIO
from math import ceil
from os import PathLike
from typing import TYPE_CHECKING, Any

from hocket._checks import check_function, path_of, whole
from hocket._moved import formerly
from hocket._options import options_of
from hocket._results import HIDDEN, Column, Result, TableResult, figure, said
from hocket.collectives.collective import Progress, kind_of, tell_step
from hocket.errors import Error, InfeasibleError, SpecError
from hocket.files.atomic import write_text
from hocket.plans.algorithms import BUILTIN, check_name
from hocket.plans.symmetric import NAME as SYMMETRIC
from hocket.sweeps.candidates import (
    CLOS,
    KINDS,
    Candidate,
    Shape,
    as_yaml,
    bought,
    clos_shapes,
    fat_trees,
    least_time,
    product_shapes,
    splits,
)
from hocket.sweeps.design_options import TRAINED, DesignOptions
from hocket.sweeps.inputs import Loaded, SweepInputs
from hocket.sweeps.keys import Value
from hocket.sweeps.pool import BatchTask, Local
from hocket.sweeps.run import cores
from hocket.sweeps.sweep import Sweep
from hocket.topology.costs import costs_from_file
from hocket.topology.spec import CostsSpec
from hocket.units import parse_size, parse_time, shown

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hocket.sweeps.design_options import DesignKeywords

MOST_CANDIDATES = 200_000
_WAVE = 16
"""Candidates that are planned before the best time is looked at again; whatever the number of processes."""
_WAVE_AT_SIZE = 4
"""The same above :data:`_LARGE`, where plans take seconds."""
_WORTH_AT_SIZE = 0.01
"""By what share another candidate must be able to beat the best there, to be planned for."""
_AT_ONCE = 64
"""Candidates whose bounds are computed at once; trainings between two reports of progress."""
_AT_ONCE_AT_SIZE = 16
"""The same of bounds above :data:`_LARGE`."""
_REFINED = 3
"""Shapes whose splits are made finer."""
_ALGORITHMS = (
    *("ring", "bidirectional-ring", "halving-doubling", "direct", "hierarchical", "themis"),
    *("multi-ring", "double-binary-tree", "binomial", "chain", "pairwise"),
)
"""What is tried unless something is named: what plans quickly on products and Clos networks."""
_TRAINED = ("halving-doubling", "bidirectional-ring", "double-binary-tree")
"""What trains on a Clos, where no algorithm goes dimension by dimension."""
_LARGE = 256
"""NPUs above which plans by symmetry come first, and those that grow with the square are left out."""
_SQUARE = ("direct", "pairwise", "ring", "bidirectional-ring", "double-binary-tree", "multi-ring")


@dataclass(frozen=True)
class Designed(Result):
    """A network that was planned for.

    Attributes
    ----------
    network
        As ``--topology`` takes it.
    candidate
        Its shape and split.
    cost
        What it costs.
    time_ps
        Of the collective, or of a training iteration [ps].
    bound_ps
        The lower bound on any plan's time [ps]; None of training.
    algorithm
        Of the fastest plan.
    """

    network: str = field(metadata=said(column=Column("network", leaves=0)))
    candidate: Candidate = field(metadata=HIDDEN)
    cost: float = field(metadata=said(column=Column("cost", leaves=0, is_rounded=True)))
    time_ps: float = field(metadata=said(column=Column("time", leaves=0)))
    bound_ps: int | None
    algorithm: str = field(metadata=said(column=Column("algorithm", after="gap")))

    @property
    @figure(only="table", column=Column("above bound", after="time_ps"))
    def gap(self) -> float | None:
        """The gap to the bound: time / bound - 1; None of training."""
        return None if self.bound_ps is None else self.time_ps / max(self.bound_ps, 1) - 1

    @property
    @figure()
    def budget(self) -> float:
        """The part of the budget that it was made for."""
        return self.candidate.budget

    @property
    @figure("bandwidths_bytes_per_s")
    def bandwidths(self) -> list[int]:
        """Bandwidth of the links of each dimension; in a Clos, of NPUs' links and of ToRs' links."""
        return list(self.candidate.bandwidths)

    @property
    @figure()
    def oversubscription(self) -> float | None:
        """Oversubscription of a Clos: bandwidth below a ToR divided by the bandwidth above it."""
        return self.candidate.oversubscription


@dataclass(frozen=True, repr=False)
class Design(TableResult):
    """The best networks for a budget.

    Attributes
    ----------
    task
        What they are for, in words.
    npus, budget
        How many NPUs, and what the network may cost.
    candidates, evaluated
        How many networks there were for the whole budget and its parts, and how many were planned for.
    is_exhausted
        Whether no other candidate can be quicker than the best, those that are refused left out.
    refused
        Why no plan could be made for candidates, with how many, the most frequent reason first.
    designs
        Networks for the whole budget, the fastest first.
    pareto_front
        What no other network beats in both time and cost, over all parts of the budget, the cheapest first.
    costs
        The prices.
    worth
        By what share others may be quicker nevertheless: 0 up to 256 NPUs, 0.01 above.
    """

    _table = "designs"

    task: str
    npus: int
    budget: float
    candidates: int
    evaluated: int
    is_exhausted: bool
    refused: dict[str, int]
    designs: tuple[Designed, ...]
    pareto_front: tuple[Designed, ...] = field(metadata=said("front"))
    costs: CostsSpec = field(metadata=HIDDEN)
    latency: str = field(metadata=HIDDEN)
    worth: float = field(default=0.0, metadata=HIDDEN)

    front = formerly("pareto_front")

    @property
    def best(self) -> Designed:
        """The fastest."""
        return self.designs[0]

    def __repr__(self) -> str:
        return f"<Design for {self.budget:g}: {self.best.network} is best of {self.candidates}>"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the best as a topology file, with its prices.

        Raises
        ------
        SpecError
            If the file cannot be written.
        """
        best = self.best
        spent = f"with a budget of {self.budget:g}; it costs {best.cost:g}"
        note = f"Designed for {self.task} {spent}."
        text = as_yaml(best.candidate, self.latency, self.costs, note)
        write_text(path_of("path", path), text)


def design_network(
    kind: str = "all-reduce",
    *,
    npus: int,
    budget: float,
    costs: CostsSpec | str | PathLike[str],
    size: int | str | None = None,
    workload: str | None = None,
    options: DesignOptions | None = None,
    on_design: Callable[[Designed], None] | None = None,
    progress: Progress | None = None,
    **keywords: Unpack[DesignKeywords],
) -> Design:
    """Search networks within a budget for the least time of a collective or a training iteration.

    Products of rings, full meshes and switches are tried in every order of sizes, each with its budget for
    bandwidth split over its dimensions in several ways, Clos networks of two levels with several
    oversubscriptions, and the fat tree of three levels, if there is one of so many NPUs.
    The splits of the best shapes are then made finer.

    Parameters
    ----------
    kind, size
        The collective, among all NPUs.
    npus
        How many NPUs the network joins.
    budget
        What it may cost, in the units of the prices.
    costs
        Prices: a file with ``costs:``, which prices links and switches, and not kinds or dimensions.
    workload
        A model instead: the time is then that of a training iteration.
    options, keywords
        How candidates are made and judged: :class:`hocket.DesignOptions`, or its fields by name.
    on_design
        Called after each network that was planned for.
    progress
        Called as ``progress(stage, done, total)``.

    Raises
    ------
    SpecError
        For what makes no sense, and more candidates than can be judged.
    InfeasibleError
        If the budget buys no network; if no plan can be made for any, the error of most of them.
    """
    asked = options_of(DesignOptions, options, keywords)
    check_function("on_design", on_design)
    check_function("progress", progress)
    npus = whole("npus", npus, 2, 1 << 20)
    given: object = budget
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not 0 < budget <= 1e15:
        raise SpecError(
            "budget", f"{shown(budget)} is no budget", "give a number above 0 and up to 1e15"
        )
    prices = costs if isinstance(costs, CostsSpec) else costs_from_file(path_of("costs", costs))
    if prices.kinds or prices.dimensions:
        field = "kinds" if prices.kinds else "dimensions"
        right = "price link and switch: what is to be found has neither kinds nor dimensions yet"
        raise SpecError(f"costs.{field}", "are of a network that is there already", right)
    if prices.link.per_byte_per_s <= 0 and asked.max_bandwidth is None:
        right = 'price it, as in link: {bandwidth: "2 per GB/s"}, or give max_bandwidth'
        raise SpecError("costs", "the bandwidth of links costs nothing", right)
    judge = _Judge(kind, npus, size, workload, prices, asked, (on_design, progress))
    try:
        return judge.design(float(budget))
    finally:
        judge.close()


class _Judge:
    """Makes candidates and finds out what they are worth."""

    def __init__(
        self,
        kind: str,
        npus: int,
        size: int | str | None,
        workload: str | None,
        costs: CostsSpec,
        options: DesignOptions,
        told: tuple[Callable[[Designed], None] | None, Progress | None],
    ) -> None:
        on_design, progress = told
        self._on_design = on_design or (lambda _: None)
        self._options = options
        self._costs = costs
        self._npus = npus
        self._progress = progress
        self._worth = 0.0 if npus <= _LARGE else _WORTH_AT_SIZE
        self._workers = options.workers or cores()
        self._workload = workload
        self._evaluated = 0
        self._refused: Counter[str] = Counter()
        self._first: dict[str, tuple[str, tuple[Candidate, str]]] = {}
        self._executor: Local | None = None
        if workload is not None:
            from hocket.training.comparison import check_algorithms
            from hocket.workload import load

            if size is not None:
                raise SpecError("size", "a workload has its own", "leave it out")
            self._loaded = Loaded(workloads={workload: load(workload)}, costs=costs)
            self._fixed: dict[str, Value] = {"workload": workload, **options.trained}
            self.task = f"a training iteration of {workload}"
            check_algorithms(options.algorithms)
            self._names: list[str] = []
            return
        if options.trained:
            name = next(iter(options.trained))
            raise SpecError(name, "it is of training", "give a workload, or leave it out")
        if size is None:
            raise SpecError("size", "there is none", 'give bytes, or text such as "256 MB"')
        collective, count = kind_of(kind), parse_size(size, field="size")
        self._loaded = Loaded(costs=costs)
        self._fixed = {"collective": collective, "size": count}
        self.task = f"{collective} of {count:,} bytes"
        self._names = self._algorithms(collective)

    def close(self) -> None:
        """End all processes."""
        if self._executor is not None:
            self._executor.close()

    def _working(self, sweep: Sweep) -> Local:
        """Return the processes, turned to these candidates."""
        if self._executor is None:
            self._executor = Local(sweep, self._workers)
        else:
            self._executor.turn_to(sweep)
        return self._executor

    def _algorithms(self, kind: str) -> list[str]:
        if self._options.algorithms is not None:
            for name in self._options.algorithms:
                check_name(name)
            return list(self._options.algorithms)
        names = [name for name in _ALGORITHMS if kind in BUILTIN[name].kinds]
        if self._npus <= _LARGE:
            return names
        first = [SYMMETRIC] if kind in BUILTIN[SYMMETRIC].kinds else []
        return first + [name for name in names if name not in _SQUARE]

    def design(self, budget: float) -> Design:
        """Search for a budget and its parts."""
        shapes = self._shapes()
        levels = sorted({budget * float(e) for e in self._options.levels} | {budget}, reverse=True)
        found: list[Designed] = []
        count, is_exhausted = 0, True
        for level in levels:
            made = [each for shape in shapes for each in self._bought(shape, level)]
            count += len(made)
            if count > MOST_CANDIDATES:
                right = "give fewer kinds, dimensions, steps or oversubscriptions"
                raise SpecError(None, f"these are more than {MOST_CANDIDATES:,} candidates", right)
            own, all_judged = self._judged(made)
            finer = self._finer(own, level)
            if finer:
                count += len(finer)
                more, also = self._judged(finer, best=min(each.time_ps for each in own))
                own, all_judged = own + more, all_judged and also
            if level == budget:
                is_exhausted = all_judged
            found += own
        whole_budget = [each for each in found if each.candidate.budget == budget]
        if not whole_budget:
            raise self._nothing(shapes, budget)
        whole_budget.sort(key=lambda each: (each.time_ps, each.cost, each.network))
        return Design(
            task=self.task,
            npus=self._npus,
            budget=budget,
            candidates=count,
            evaluated=self._evaluated,
            is_exhausted=is_exhausted,
            refused=dict(self._refused.most_common()),
            designs=tuple(whole_budget),
            pareto_front=tuple(_front(found, budget)),
            costs=self._costs,
            latency=self._options.latency,
            worth=self._worth,
        )

    def _nothing(self, shapes: Sequence[Shape], budget: float) -> Error:
        """Return why there is no network for the budget: it buys none, or why most made no plan."""
        if not self._refused:
            least = float(min(shape.fixed(self._costs) for shape in shapes))
            why = f"{budget:g} buys no network of {self._npus} NPUs"
            right = f"the cheapest takes {least:g} without any bandwidth"
            return InfeasibleError("budget", why, right)
        ((text, _),) = self._refused.most_common(1)
        command, first = self._first[text]
        sweep = self._sweep(command, [first])
        try:
            sweep.swept.run(sweep.point(0), SweepInputs(sweep.loaded))
        except Error as error:
            ways = [way for way in error.instead if way.keys() <= set(TRAINED)]
            if len(ways) == len(error.instead):
                return error
            return type(error)(error.field, error.why, None, error.origin, instead=ways)
        return InfeasibleError(None, text)

    def _shapes(self) -> list[Shape]:
        kinds = self._options.kinds
        found = product_shapes(self._npus, kinds, self._options.most_dimensions)
        if CLOS in kinds:
            found += clos_shapes(self._npus) + fat_trees(self._npus)
        if not found:
            why = f"{self._npus} NPUs make no network of {', '.join(kinds)}"
            raise InfeasibleError("kinds", why, f"kinds are {', '.join((*KINDS, CLOS))}")
        return found

    def _bought(self, shape: Shape, budget: float) -> Iterator[Candidate]:
        ways: Iterator[tuple[float, ...]] | list[tuple[float, ...]]
        if shape.clos is not None:
            ways = [(1.0, float(each)) for each in self._options.oversubscription]
        else:
            ways = splits(shape.ways, self._options.steps)
        yield from self._all_bought(shape, ways, budget)

    def _all_bought(
        self,
        shape: Shape,
        ways: Iterator[tuple[float, ...]] | list[tuple[float, ...]],
        budget: float,
    ) -> Iterator[Candidate]:
        for split in ways:
            made = bought(shape, split, budget, self._costs, self._options.most)
            if made is not None:
                yield made

    def _finer(self, found: Sequence[Designed], budget: float) -> list[Candidate]:
        """Return splits between those that were tried, of the best shapes."""
        best: dict[Shape, Candidate] = {}
        for each in sorted(found, key=lambda one: (one.time_ps, one.network)):
            if each.candidate.shape.clos is None and each.candidate.shape.ways > 1:
                best.setdefault(each.candidate.shape, each.candidate)
            if len(best) == _REFINED:
                break
        known = {each.network for each in found}
        made: dict[str, Candidate] = {}
        for shape, candidate in best.items():
            ways = []
            for share in (0.5, 0.25):
                for i in range(shape.ways):
                    for j in range(shape.ways):
                        moved = [*candidate.split]
                        moved[i] -= share
                        moved[j] += share
                        if i != j and moved[i] > 0:
                            ways.append(tuple(moved))
            for one in self._all_bought(shape, ways, budget):
                made.setdefault(one.text(self._options.latency), one)
        return [one for text, one in made.items() if text not in known]

    def _sweep(self, command: str, made: Sequence[tuple[Candidate, str]]) -> Sweep:
        entries = tuple(
            {"topology": each.text(self._options.latency), **({"algorithm": name} if name else {})}
            for each, name in made
        )
        loaded = self._loaded
        if command == "design":
            loaded = replace(loaded, algorithms=tuple(self._names))
        return Sweep(
            command, self._fixed, entries, (), loaded, per_part=1 if command != "bound" else 8
        )

    def _judged(
        self, made: Sequence[Candidate], best: float = float("inf")
    ) -> tuple[list[Designed], bool]:
        """Plan for candidates as long as one may be quicker than the best; say whether none is left."""
        if not made:
            return [], True
        if self._workload is not None:
            return self._trained(made)
        task = str(self._fixed["collective"]), int(str(self._fixed["size"]))
        latency = parse_time(self._options.latency, field="latency")
        queue = _Queue(made, [least_time(each, *task, latency) for each in made], self._bounds)
        size = _WAVE if self._npus <= _LARGE else _WAVE_AT_SIZE
        worth = 1 / (1 + self._worth)
        found: list[Designed] = []
        done = 0
        while len(queue) and done < self._options.most_evaluated:
            wave = queue.take(min(size, self._options.most_evaluated - done), best * worth)
            if not wave:
                return found, True
            executor = self._working(self._sweep("design", [(made[i], "") for _, i in wave]))
            rows = _parts(executor, range(len(wave)))
            for k, (bound, i) in enumerate(wave):
                each = self._designed(made[i], rows[k], bound)
                if each is not None:
                    self._on_design(each)
                    found.append(each)
                    best = min(best, each.time_ps)
                else:
                    self._refuse("design", (made[i], ""), rows[k])
            done += len(wave)
            self._evaluated += len(wave)
            tell_step(self._progress, "candidates", done, len(made))
        return found, not queue.take(1, best * worth)

    def _trained(self, made: Sequence[Candidate]) -> tuple[list[Designed], bool]:
        """Train on candidates, of which no bound is known: on products by the default, else by several."""
        named = [
            (each, name)
            for each in made[: self._options.most_evaluated]
            for name in self._options.algorithms or ([""] if each.shape.dimensions else _TRAINED)
        ]
        executor = self._working(self._sweep("train", named))
        found: dict[str, Designed] = {}
        failed: dict[str, tuple[tuple[Candidate, str], Sequence[Mapping[str, Any]]]] = {}
        for first in range(0, len(named), _AT_ONCE):
            wave = list(range(first, min(first + _AT_ONCE, len(named))))
            rows = _parts(executor, wave)
            for k in wave:
                one = self._designed(named[k][0], rows[k], 0)
                if one is None:
                    network = named[k][0].text(self._options.latency)
                    failed.setdefault(network, (named[k], rows[k]))
                elif one.network not in found or one.time_ps < found[one.network].time_ps:
                    self._on_design(one)
                    found[one.network] = one
            tell_step(self._progress, "candidates", wave[-1] + 1, len(named))
        for network, (which, row) in failed.items():
            if network not in found:
                self._refuse("train", which, row)
        count = min(len(made), self._options.most_evaluated)
        self._evaluated += count
        return list(found.values()), count == len(made)

    def _bounds(self, made: Sequence[Candidate]) -> list[int]:
        sweep = self._sweep("bound", [(each, "") for each in made])
        parts = range(sweep.parts)
        rows = _parts(self._working(sweep), parts)
        return [_bound_of(row) for part in parts for row in rows[part]]

    def _refuse(
        self, command: str, which: tuple[Candidate, str], rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """Note why there is no plan for a candidate."""
        text = str(rows[0]["error"])
        self._refused[text] += 1
        self._first.setdefault(text, (command, which))

    def _designed(
        self, candidate: Candidate, rows: Sequence[Mapping[str, Any]], bound: int
    ) -> Designed | None:
        row = rows[0]
        if row["error"] is not None:
            return None
        return Designed(
            network=candidate.text(self._options.latency),
            candidate=candidate,
            cost=row["cost"],
            time_ps=row["time_ps"],
            bound_ps=bound if self._workload is None else None,
            algorithm=row["planned_by"],
        )


class _Queue:
    """Candidates in the order of their bounds, of equal ones the first.

    A time in closed form that is no more than the bound stands for it until it is among the least, so that
    few bounds are computed.
    """

    def __init__(
        self,
        made: Sequence[Candidate],
        least: Sequence[int],
        bounds: Callable[[Sequence[Candidate]], list[int]],
    ) -> None:
        self._made, self._bounds = made, bounds
        self._at_once = _AT_ONCE if made[0].shape.npus <= _LARGE else _AT_ONCE_AT_SIZE
        self._heap = [(time_ps, False, i) for i, time_ps in enumerate(least)]
        heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def take(self, count: int, best: float) -> list[tuple[int, int]]:
        """Take at most so many with bounds up to the best time: of each its bound and its number."""
        taken: list[tuple[int, int]] = []
        while self._heap and len(taken) < count and self._heap[0][0] <= best:
            bound, is_known, i = self._heap[0]
            if is_known:
                taken.append((bound, i))
                heappop(self._heap)
            else:
                self._compute(best)
        return taken

    def _compute(self, best: float) -> None:
        """Compute the bounds of the first that have none, as many as are computed at once."""
        first: list[int] = []
        others = []
        while self._heap and len(first) < self._at_once and self._heap[0][0] <= best:
            each = heappop(self._heap)
            if each[1]:
                others.append(each)
            else:
                first.append(each[2])
        bounds = self._bounds([self._made[i] for i in first])
        others += [(bound, True, i) for i, bound in zip(first, bounds, strict=True)]
        for each in others:
            heappush(self._heap, each)


_NEVER = 1 << 62
"""The bound of what cannot be made, so that it comes last."""


def _bound_of(row: Mapping[str, Any]) -> int:
    return _NEVER if row["bound_ps"] is None else int(row["bound_ps"])


def _parts(executor: Local, parts: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """Run parts and give their rows; a part whose process ended twice has none that ran."""
    import pyarrow.parquet as pq

    waiting = [BatchTask("part", part) for part in reversed(parts)]
    deaths: dict[int, int] = {}
    rows: dict[int, list[dict[str, Any]]] = {}
    while len(rows) < len(parts):
        while waiting and executor.room > 0:
            executor.submit(waiting.pop())
        for outcome in executor.wait():
            number = outcome.task.number
            if outcome.answer is not None:
                rows[number] = pq.read_table(BytesIO(outcome.answer[0])).to_pylist()
                continue
            deaths[number] = deaths.get(number, 0) + 1
            if deaths[number] > 1:
                raise InfeasibleError(
                    None,
                    "a process that planned for a candidate was ended twice",
                    "give fewer NPUs",
                )
            waiting.append(outcome.task)
    return rows


def _front(found: Sequence[Designed], budget: float) -> list[Designed]:
    """Return what no other beats in both cost and time, the cheapest first.

    Costs within a thousandth of the budget are alike: bandwidths are rounded, so nothing costs just the
    budget.
    """

    def key(one: Designed) -> tuple[int, float, float, str]:
        return (ceil(one.cost / budget * 1000 - 1e-9), one.time_ps, one.cost, one.network)

    kept: list[Designed] = []
    for each in sorted(found, key=key):
        if not kept or each.time_ps < kept[-1].time_ps:
            kept.append(each)
    return kept

"""The best plan that any method finds within some work."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from hocket import _core
from hocket.collectives.collective import Progress, tell_best
from hocket.errors import Error, InfeasibleError, SimulationError, SpecError, VerificationError
from hocket.plans import remembered
from hocket.plans.algorithms import (
    BUILTIN,
    by_promise,
    chunk_ladder,
    compared,
    heeded,
    promise,
    reasons,
)
from hocket.plans.choice import (
    SHORTEST,
    ChunkChoice,
    Planner,
    fastest,
    link_time,
    numbers_of_chunks,
)
from hocket.plans.fit import Other, faster
from hocket.plans.plan import Plan
from hocket.plans.registry import find, own_algorithms
from hocket.plans.selection import Ended, Selection
from hocket.plans.sizes import LARGE, expected
from hocket.plans.synthesis.options import PlanOptions
from hocket.units import format_time_ps

WORK = 400_000_000
"""Work of a search at normal effort, up to :data:`_MANY_NPUS`: about ten seconds on one core."""
MOST_TRANSFERS = 8_000_000
"""Transfers of a plan that is made unasked; of more, nobody keeps them one by one."""

_CLOSE = 1000
"""Further trials end where the time exceeds the bound by no more than one part in so many."""
_CLOSE_AT_SIZE = 33
"""The same from :data:`_MANY_NPUS` on, where each trial takes seconds."""
_MANY_NPUS = 448
_FIRST = 90
"""From what promise on an algorithm then has all of the work that is left."""
_LIKELY = 89
"""From what promise on an algorithm has three quarters of the work that is left."""
_PATIENCE = 4
"""Rounds of other random choices that may find nothing, at normal effort."""
_FINER = (2, 8, 12, 24, 32, 48, 64, 128)
_TRANSFERS = 100_000
_EXACT_WORK = 1_000_000
_SEEDS = 1_000
_FOR_FIRST = 1.25
"""Times the limit that a first plan may take, where none stands in for it: proof and simulation follow."""
_STAND_IN = 100_000
"""Transfers of all plans that stand in where the search has none: tenths of a second."""
SPARED = "the search ended before it had a plan"
"""Why an algorithm that may be able to run was left out."""


def best_plan(
    planner: Planner,
    collective: _core.Collective,
    topology: _core.Topology,
    options: PlanOptions,
    progress: Progress | None,
    bound: Callable[[], _core.Bound] | None = None,
) -> ChunkChoice:
    """Try every method, likely winners first, and keep the plan that is simulated to be the fastest.

    First each algorithm that comparisons have, with the numbers of chunks that they try: where the work
    is enough for all, the plan is no slower than any of theirs. Then what searches for longer: ``exact``
    on small problems, ``greedy`` with other numbers of chunks and other random choices. Each plan is proved
    and simulated at link fidelity. Methods that cannot run here are passed over; so are algorithms of one's
    own that fail or are wrong, which by name say why.

    Work is counted, so that the choice is the same on every machine. A search has half of the work that is
    left, what promises most three quarters, and in the end all of it. From 448 NPUs on, plans of more than
    8 million transfers are not made.
    Everything stops at the lower bound, further trials near it. A limit of time is a guard: all stops when
    it passes. If the search has no plan by then, the best stands in that needs none, below 448 NPUs. Above,
    such a plan is made if a quarter more has brought none. A choice is
    remembered (:mod:`hocket.plans.remembered`): the same question is answered by the same algorithm, whose
    plan is made and proved again.

    Parameters
    ----------
    planner
        Makes each plan: it is handed in, since planning by name leads here too.
    bound
        Gives the lower bound, where somebody is computing it already.

    Returns
    -------
    Choice
        Whose plan has a :class:`hocket.Selection`, if it could be simulated.

    Raises
    ------
    InfeasibleError, SpecError
        If no method applies, with the reason of one that any network will do for.
    """
    options.unwindings(topology)  # refuses what makes no sense here
    question = None
    is_kept = options.cache and options.runtime is None
    if is_kept and not any(collective.kind in own.kinds for own in own_algorithms()):
        question = remembered.question(collective, topology, options)
        known = remembered.answer(question)
        again = None if known is None else _repeated(planner, collective, topology, options, known)
        if again is not None:
            return again
    made = _Search(planner, collective, topology, options, progress, bound).run()
    if question is not None and made.plan.selection is not None and made.cut != "time":
        remembered.keep_answer(question, made.plan.selection)
    return made


def likely(collective: _core.Collective, topology: _core.Topology) -> str:
    """Return the algorithm whose transfers tell best what auto takes.

    From 448 NPUs on that is the first that applies and is not too large: others follow only if its plan is
    not close to the bound. Below, it is greedy, of which many plans are made.
    """
    if len(collective.npus) >= _MANY_NPUS:
        for name in by_promise([each for each in compared() if each in BUILTIN]):
            what = (topology, collective, name)
            try:
                chunks = chunk_ladder(*what)[0] or 1
                if 0 < _core.registry.least_transfers(*what, chunks) <= MOST_TRANSFERS:
                    return name
            except (InfeasibleError, SpecError):
                continue
    return "greedy"


def _repeated(
    planner: Planner,
    collective: _core.Collective,
    topology: _core.Topology,
    options: PlanOptions,
    known: Selection,
) -> ChunkChoice | None:
    """Make the plan of an earlier choice; ``None`` where that fails, or others were faster."""
    given = replace(options, chunks=known.chunks, chunk_size=None, seed=known.seed)
    try:
        plan = planner(
            collective, topology, known.algorithm, heeded(known.algorithm, given), None, None
        ).verify()
        time_ps = link_time(plan, options)
    except (InfeasibleError, SpecError, VerificationError):
        return None
    others = [took for name, took in known.times_ps.items() if name != known.algorithm]
    if time_ps is None or time_ps > min(others, default=known.time_ps):
        return None
    times = {**known.times_ps, known.algorithm: time_ps}
    chosen = replace(known, time_ps=time_ps, times_ps=times)
    return ChunkChoice(plan.selected(chosen), time_ps, known.chunks, (None,))


class _LimitPassedError(Exception):
    """The limit has passed."""


@dataclass
class _Search:
    """The plans that were tried, and the best of them.

    Attributes
    ----------
    work
        All that may be done.
    best, winner, seed
        The best plan, who made it, with which random choices.
    times, refused, late
        The best time of each algorithm [ps]; why others made no plan; those that may not be done.
    misfit
        The fastest plan that the runtime cannot execute.
    least
        By greedy's number of chunks, what no timetable of them is faster than [ps].
    stand_in
        Who made the best plan that needs no search, and that plan.
    """

    planner: Planner
    collective: _core.Collective
    topology: _core.Topology
    options: PlanOptions
    progress: Progress | None
    bound_of: Callable[[], _core.Bound] | None = None
    best: ChunkChoice | None = None
    winner: str = ""
    seed: int = 0
    times: dict[str, int] = field(default_factory=dict)
    refused: dict[str, Error] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    misfit: Other | None = None
    least: dict[int | None, int] = field(default_factory=dict)
    stand_in: tuple[str, ChunkChoice] | None = None
    plans: int = 0

    def __post_init__(self) -> None:
        limit = self.options.seconds
        now = time.monotonic()
        self.ends, self.first_ends = (
            (math.inf, math.inf) if limit is None else (now + limit, now + _FOR_FIRST * limit)
        )
        wide = max(1.0, len(self.collective.npus) / _MANY_NPUS)
        self.work = _core.Work(round(WORK * wide * self.options.share))
        self.is_large = len(self.collective.npus) >= _MANY_NPUS
        self.close: Ended = "near" if self.is_large else "close"

    @cached_property
    def bound(self) -> int:
        """No plan is faster [ps]."""
        given = self.bound_of
        bound = _core.bound(self.topology, self.collective) if given is None else given()
        return bound.time_ps

    def run(self) -> ChunkChoice:
        """Try all there is work for, and give the best with how it was chosen.

        Raises
        ------
        InfeasibleError, SpecError
            If no method applies.
        """
        ended: Ended
        self._make_stand_in()
        try:
            ended = self._compared() or self._further()
        except _LimitPassedError:
            ended = "time"
            if self.best is None and self.stand_in is not None:
                name, plan = self.stand_in
                self._found(name, self.options.seed, plan)
            elif self.best is None:
                self._by_rule()
        if time.monotonic() >= self.ends and ended not in ("bound", self.close):
            ended = "time"
        elif ended in ("all", "stale") and self.late:
            ended = "work"
        best = self.best
        if best is None:
            told = [
                error
                for name, error in self.refused.items()
                if name in BUILTIN
                and BUILTIN[name].is_general
                # Of several collectives at once, only greedy does all kinds.
                and (self.collective.kind != "custom" or name == "greedy")
            ]
            nothing = InfeasibleError(None, "no method applies", origin="auto")
            raise next(iter([*told, *self.refused.values()]), nothing)
        if best.time_ps is None:
            return best
        if best.plan.fit is not None:
            best.plan.fit = best.plan.fit.beside(best.time_ps, self.misfit)
        left_out = reasons(self.refused)
        left_out |= dict.fromkeys(self.late, SPARED)
        ranked = sorted(self.times.items(), key=lambda each: (each[1], each[0] != self.winner))
        trees = best.plan.trees
        selection = Selection(
            algorithm=self.winner,
            chunks=best.slices if trees is None else trees.pieces,
            seed=self.seed,
            time_ps=best.time_ps,
            bound_ps=self.bound,
            times_ps=dict(ranked),
            plans=self.plans,
            left_out={name: why for name, why in left_out.items() if name not in self.times},
            ended=ended,
            cached=False,
        )
        cut = ended if ended == "work" or ended == "time" else None
        return replace(best, plan=best.plan.selected(selection), cut=cut)

    def _compared(self) -> Ended | None:
        """Try all algorithms that comparisons have; say why all ends here, if it does."""
        names = self._names()
        self.late = [*names]
        again = []
        for place, name in enumerate(names):
            if self._is_optimal():
                return "bound"
            if self.is_large and self._is_close():
                return self.close
            if self.best is not None and self._is_spent():
                return "work"
            if self._is_too_large(name):
                self.late.remove(name)
                continue
            has_all = name == names[-1] or (self.is_large and promise(name) >= _FIRST)
            part = self.work.left // (4 if promise(name) >= _LIKELY else 2)
            share = self.work.left if has_all else self.work.left - part
            if self._attempt(name, heeded(name, self.options), share):
                self.late.remove(name)
            elif place < len(names) - 1:
                again.append(name)
        for name in again:
            if self._is_optimal():
                return "bound"
            if self.best is not None and self._is_spent():
                return "work"
            if self._attempt(name, heeded(name, self.options), self.work.left):
                self.late.remove(name)
        return "bound" if self._is_optimal() else None

    def _rules(self) -> dict[str, int]:
        """Return who needs no search, likely winners first, with the transfers of a plan in one slice."""
        names = [each for each in self._names() if each in BUILTIN]
        names = [each for each in names if BUILTIN[each].making == "rule"]
        found = expected(self.collective, self.topology, names, 1)
        return {name: count for name, (count,) in found.items()}

    def _in_one(self) -> PlanOptions:
        """Return the options of a plan that needs no search: one slice, unless a number is given."""
        chunks = self.options.slices(self.collective.size) or 1
        return replace(self.options, chunks=chunks, chunk_size=None, time_limit=None)

    def _make_stand_in(self) -> None:
        """Keep the best plan that needs no search, for a limit or a signal that comes before any other."""
        hears = getattr(self.progress, "found", None)
        is_wanted = self.options.seconds is not None or hears is not None
        if self.is_large or not is_wanted or self.options.runtime is not None:
            return
        left = _STAND_IN
        for name, count in self._rules().items():
            if count > left:
                continue
            left -= count
            given = heeded(name, self._in_one())
            try:
                made = self.planner(self.collective, self.topology, name, given, None, None)
                found = ChunkChoice(made, link_time(made, self.options), given.chunks, (None,))
            except (InfeasibleError, SimulationError, SpecError):
                continue
            best = None if self.stand_in is None else self.stand_in[1]
            if found.time_ps is not None and found.is_faster_than(best):
                self.stand_in = name, found
        if self.stand_in is not None:
            self.first_ends = self.ends
            name, found = self.stand_in
            if hears is not None:
                hears(found, self.bound)
            if found.time_ps is not None:
                self._tell(name, found.time_ps)

    def _by_rule(self) -> None:
        """Make one plan that needs no search, or else greedy's, whatever it takes."""
        self.ends = self.first_ends = math.inf
        sizes = self._rules()
        for name in [*sorted(sizes, key=lambda each: sizes[each] > LARGE), "greedy"]:  # by promise
            self._attempt(name, heeded(name, self._in_one()), self.work.left)
            if self.best is not None:
                return

    def _is_too_large(self, name: str) -> bool:
        """Return whether an algorithm's smallest plan has too many transfers, which is noted."""
        if not self.is_large or name not in BUILTIN:
            return False
        try:
            chunks = chunk_ladder(self.topology, self.collective, name)[0] or 1
            count = _core.registry.least_transfers(self.topology, self.collective, name, chunks)
        except InfeasibleError:
            return False  # the attempt says why
        if count > MOST_TRANSFERS:
            why = f"its plan has {count:,} transfers, of which auto keeps no more than {MOST_TRANSFERS:,}"
            self.refused.setdefault(name, InfeasibleError(None, why, f"name {name} to have it"))
        return count > MOST_TRANSFERS

    def _names(self) -> list[str]:
        """Names of the algorithms that do this kind, likely winners first."""
        kind = self.collective.kind
        own = {each.name: each.kinds for each in own_algorithms()}
        names = [
            name
            for name in compared()
            if kind == "custom" or kind in (own[name] if name in own else BUILTIN[name].kinds)
        ]
        return by_promise(names)

    def _further(self) -> Ended:
        """Try what searches for longer, and say why all ends."""
        ladder = self._ladder()
        topology, npus = self.topology, len(self.collective.npus)
        if npus * topology.npu_count * len(topology.link_src) <= _EXACT_WORK:
            self.late.append("exact")
            if self._is_close():
                return self.close
            if self._attempt("exact", heeded("exact", self.options), self.work.left // 2):
                self.late.remove("exact")
        if self._is_too_large("greedy"):
            return "all"
        stale = 0
        for again in range(_SEEDS):
            seed = (self.options.seed + again) % (1 << 64)
            before = self.best
            counts = [count for count in reversed(ladder) if self._may_win(count)]
            if again == 0:
                counts = [count for count in counts if count not in self.least]
            elif not counts:
                return "all"
            for count in counts:
                if self._is_close():
                    return "bound" if self._is_optimal() else self.close
                if self.best is not None and self._is_spent():
                    return "work"
                given = replace(self.options, chunks=count, chunk_size=None, seed=seed)
                self._attempt("greedy", heeded("greedy", given), self.work.left)
            stale = 0 if self.best is not before or again == 0 else stale + 1
            if stale >= _PATIENCE * self.options.share:
                return "stale"
        return "all"

    def _ladder(self) -> list[int | None]:
        """Numbers of chunks for greedy: those of every comparison, then finer ones that are no larger."""
        pieces = max(1, len(self.collective.npus)) ** 2
        finer = [count for count in _FINER if count * pieces <= _TRANSFERS]
        try:
            return numbers_of_chunks(
                self.collective, self.topology, "greedy", self.options, finer=finer
            )
        except InfeasibleError:
            return [None]

    def _attempt(self, name: str, options: PlanOptions, most: int) -> bool:
        """Plan by an algorithm, which may do so much work, and return whether it did all that it would.

        What fails is noted.
        """
        self._watch("", 0, 1)
        work = _core.Work(most)

        def timed(plan: Plan, slices: int | None) -> int | None:
            took = link_time(plan, self.options, self._watch)
            self._found(name, options.seed, ChunkChoice(plan, took, slices, (None,)))
            return took

        if options.time_limit is not None:
            options = replace(options, time_limit=max(self.ends - time.monotonic(), SHORTEST))
        where = (self.collective, self.topology, name, options)
        try:
            fastest(self.planner, *where, work=work, progress=self._watch, timer=timed)
        except VerificationError as error:
            if find(name) is None:
                raise
            self.refused.setdefault(name, error)
        except (InfeasibleError, SimulationError, SpecError) as error:
            self.refused.setdefault(name, error)
        finally:
            self.work.spend(work.spent)
        return work.left > 0

    def _found(self, name: str, seed: int, found: ChunkChoice) -> None:
        """Take a plan into account."""
        self.plans += 1
        fit = found.plan.fit
        if fit is not None and fit.misfit is not None:
            if found.time_ps is not None:
                other = Other(found.plan, found.time_ps, found.slices, fit.misfit)
                self.misfit = faster(self.misfit, other)
            return
        took, made = found.time_ps, found.plan.synthesis
        if took is not None:
            self.times[name] = min(took, self.times.get(name, took))
        if name == "greedy" and made is not None:
            self.least[found.slices] = made.least_ps
        if found.is_faster_than(self.best):
            self.best, self.winner, self.seed = found, name, seed
            hears = getattr(self.progress, "found", None)
            if hears is not None and found.time_ps is not None:
                hears(found, self.bound)
        best = self.best
        if best is not None and best.time_ps is not None:
            self._tell(self.winner, best.time_ps)

    def _tell(self, name: str, time_ps: int) -> None:
        """Report the best time so far."""
        text = f"best {name} {format_time_ps(time_ps)}, bound {format_time_ps(self.bound)}"
        tell_best(self.progress, text, self.work.spent, self.work.spent + self.work.left)

    def _watch(self, stage: str, done: int, total: int) -> None:
        """Stop what goes on where the limit has passed."""
        if time.monotonic() >= (self.first_ends if self.best is None else self.ends):
            raise _LimitPassedError
        if self.progress is not None and stage:
            self.progress(stage, done, total)

    def _is_spent(self) -> bool:
        return self.work.left == 0

    def _is_optimal(self) -> bool:
        return self.best is not None and self.best.time_ps == self.bound

    def _is_close(self) -> bool:
        took = None if self.best is None else self.best.time_ps
        close = _CLOSE_AT_SIZE if self.is_large else _CLOSE
        return took is not None and (took - self.bound) * close <= self.bound

    def _may_win(self, chunks: int | None) -> bool:
        took = None if self.best is None else self.best.time_ps
        return took is None or self.least.get(chunks, 0) < took

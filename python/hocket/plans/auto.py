"""The best plan that any method finds within a time limit."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from hocket import _core
from hocket.collectives.collective import Progress, tell_best
from hocket.errors import Error, InfeasibleError, SimulationError, SpecError, VerificationError
from hocket.plans import remembered
from hocket.plans.algorithms import (
    BUILTIN,
    by_promise,
    compared,
    heeded,
    is_scheduled,
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
from hocket.plans.synthesis.options import PlanOptions
from hocket.units import format_time_ps

TIME_LIMIT = 10.0
"""Seconds where none are given."""

_CLOSE = 1000
"""Further trials end where the time exceeds the bound by no more than one part in so many."""
_CLOSE_AT_SIZE = 33
"""The same from :data:`_MANY_NPUS` on, where each trial takes seconds."""
_MANY_NPUS = 512
_FIRST = 90
"""From what promise on an algorithm then has all of the time that it needs, if no limit is given."""
_PATIENCE = 4
"""Rounds of other random choices that may find nothing, where no limit of time is given."""
_FINER = (2, 8, 12, 24, 32, 48, 64, 128)
_TRANSFERS = 100_000
_EXACT_WORK = 1_000_000
_SEEDS = 1_000
SPARED = "the search ended before it had a plan"
"""Why an algorithm that may be able to run was left out."""


def best_plan(
    planner: Planner,
    collective: _core.Collective,
    topology: _core.Topology,
    options: PlanOptions,
    progress: Progress | None,
) -> ChunkChoice:
    """Try every method, likely winners first, and keep the plan that is simulated to be the fastest.

    First each algorithm that comparisons have, with the numbers of chunks that they try: where the limit
    does not pass before, the plan is no slower than any of theirs. Then what searches for longer: ``exact``
    on small problems, ``greedy`` with other numbers of chunks and other random choices. Each plan is proved
    and simulated at link fidelity. Methods that cannot run here are passed over; so are algorithms of one's
    own that fail or are wrong, which by name say why.

    A search has half of the time that is left, and in the end all of it. Once there is a plan, proofs and
    simulations stop when the limit passes. Everything stops at the lower bound, further trials near it. A
    choice is remembered (:mod:`hocket.plans.remembered`): the same question is answered by the
    same algorithm, whose plan is made and proved again.

    Parameters
    ----------
    planner
        Makes each plan: it is handed in, since planning by name leads here too.

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
    asked = replace(options, time_limit=options.seconds or TIME_LIMIT)
    question = None
    is_kept = options.cache and options.runtime is None
    if is_kept and not any(collective.kind in own.kinds for own in own_algorithms()):
        question = remembered.question(collective, topology, asked)
        known = remembered.answer(question)
        again = None if known is None else _repeated(planner, collective, topology, asked, known)
        if again is not None:
            return again
    is_patient = options.seconds is not None
    search = _Search(planner, collective, topology, asked, progress, is_patient=is_patient)
    made = search.run()
    if question is not None and made.plan.selection is not None:
        remembered.keep_answer(question, made.plan.selection)
    return made


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
            collective, topology, known.algorithm, heeded(known.algorithm, given), None
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
    """The limit has passed, and there is a plan."""


@dataclass
class _Search:
    """The plans that were tried, and the best of them.

    Attributes
    ----------
    options
        With a limit of time.
    is_patient
        Whether further trials use all of that.
    best, winner, seed
        The best plan, who made it, with which random choices.
    times, refused, late
        The best time of each algorithm [ps]; why others made no plan; those that may not be done.
    misfit
        The fastest plan that the runtime cannot execute.
    least
        By greedy's number of chunks, what no timetable of them is faster than [ps].
    """

    planner: Planner
    collective: _core.Collective
    topology: _core.Topology
    options: PlanOptions
    progress: Progress | None
    is_patient: bool
    best: ChunkChoice | None = None
    winner: str = ""
    seed: int = 0
    times: dict[str, int] = field(default_factory=dict)
    refused: dict[str, Error] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    misfit: Other | None = None
    least: dict[int | None, int] = field(default_factory=dict)
    plans: int = 0

    def __post_init__(self) -> None:
        self.limit = self.options.seconds or TIME_LIMIT
        self.ends = time.monotonic() + self.limit
        self.bound = _core.bound(self.topology, self.collective).time_ps
        self.is_large = len(self.collective.npus) >= _MANY_NPUS
        self.close: Ended = "near" if self.is_large else "close"

    def run(self) -> ChunkChoice:
        """Try all there is time for, and give the best with how it was chosen.

        Raises
        ------
        InfeasibleError, SpecError
            If no method applies.
        """
        ended: Ended
        try:
            ended = self._compared() or self._further()
        except _LimitPassedError:
            ended = "time"
        if ended in ("all", "stale") and self.late and self._left() == 0:
            ended = "time"
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
        return replace(best, plan=best.plan.selected(selection))

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
            left = self._left()
            share = left if name == names[-1] or self._has_all_time(name) else left / 2
            began = time.monotonic()
            self._attempt(name, heeded(name, self.options), share)
            is_done = time.monotonic() - began < share
            if is_done:
                self.late.remove(name)
            elif place < len(names) - 1:
                again.append(name)
        for name in again:
            if self._is_optimal():
                return "bound"
            self._attempt(name, heeded(name, self.options), self._left())
            if self._left() > 0:
                self.late.remove(name)
        return "bound" if self._is_optimal() else None

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
            self._attempt("exact", heeded("exact", self.options), self._left() / 2)
            self.late.remove("exact")
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
                given = replace(self.options, chunks=count, chunk_size=None, seed=seed)
                self._attempt("greedy", heeded("greedy", given), self._left())
            stale = 0 if self.best is not before or again == 0 else stale + 1
            if stale >= _PATIENCE and (self.best is None or not self.is_patient):
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

    def _attempt(self, name: str, options: PlanOptions, seconds: float) -> None:
        """Plan by an algorithm, which may search for so long; what fails is noted."""
        self._watch("", 0, 1)

        def timed(plan: Plan, slices: int | None) -> int | None:
            took = link_time(plan, self.options, self._watch)
            self._found(name, options.seed, ChunkChoice(plan, took, slices, (None,)))
            return took

        # A schedule is searched for by work done, of which a limit gives more: only where it was asked for.
        has_limit = self.is_patient or not (is_scheduled(name) or self._has_all_time(name))
        given = replace(options, time_limit=max(seconds, SHORTEST) if has_limit else None)
        where = (self.collective, self.topology, name, given)
        try:
            fastest(self.planner, *where, progress=self._watch, timer=timed)
        except VerificationError as error:
            if find(name) is None:
                raise
            self.refused.setdefault(name, error)
        except (InfeasibleError, SimulationError, SpecError) as error:
            self.refused.setdefault(name, error)

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
        best = self.best
        if best is not None and best.time_ps is not None:
            text = f"best {self.winner} {format_time_ps(best.time_ps)}, bound {format_time_ps(self.bound)}"
            spent = self.limit - self._left()
            tell_best(self.progress, text, round(1000 * spent), round(1000 * self.limit))

    def _watch(self, stage: str, done: int, total: int) -> None:
        """Stop what goes on where the limit has passed and there is a plan."""
        if self.best is not None and time.monotonic() >= self.ends:
            raise _LimitPassedError
        if self.progress is not None and stage:
            self.progress(stage, done, total)

    def _left(self) -> float:
        return max(0.0, self.ends - time.monotonic())

    def _has_all_time(self, name: str) -> bool:
        """Return whether no other algorithm has a share of the time of this one."""
        return self.is_large and promise(name) >= _FIRST

    def _is_optimal(self) -> bool:
        return self.best is not None and self.best.time_ps == self.bound

    def _is_close(self) -> bool:
        took = None if self.best is None else self.best.time_ps
        close = _CLOSE_AT_SIZE if self.is_large else _CLOSE
        return took is not None and (took - self.bound) * close <= self.bound

    def _may_win(self, chunks: int | None) -> bool:
        took = None if self.best is None else self.best.time_ps
        return took is None or self.least.get(chunks, 0) < took

"""The shortest plan in slots: horizons from the bound upwards, until one has a plan.

Source: Won et al., "TACOS", section V-A, with the early end of section V-B. A horizon without a plan is
a proof, and raises the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hocket.errors import SpecError
from hocket.plans.slots.bound import least_of, least_slots
from hocket.plans.slots.distance import Distances, distances
from hocket.plans.slots.listing import best_listing, complete, taste_of
from hocket.plans.slots.model import Model, cp_model
from hocket.plans.slots.plan import Send, SlotPlan, check, plan_of, turned
from hocket.plans.slots.problem import SlotProblem
from hocket.plans.slots.search import FOUND, NONE, Clock, ask

__all__ = ["SlotPlan", "check", "least_slots", "solve"]

Progress = Callable[[str, int, int], object]

_LISTED = 50_000
"""Chunks x edges up to which lists are tried beside a plan that was given."""

_RECOVERY = 0.2
"""Share of a time limit that is kept for a partial plan, to be completed, when there is no whole one."""


@dataclass(frozen=True)
class Effort:
    """The limits of a search."""

    clock: Clock
    time_limit: float | None
    work: float | None
    workers: int
    seed: int
    memory_limit: int | None
    progress: Progress | None

    def tell(self, phase: str, least: int, slots: int) -> None:
        """Report a phase, the bound and the best plan."""
        if self.progress is not None:
            self.progress(phase, least, slots)


def solve(
    problem: SlotProblem,
    *,
    warm: SlotPlan | None = None,
    least: int = 0,
    time_limit: float | None = None,
    work: float | None = None,
    workers: int = 2,
    seed: int = 0,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> SlotPlan:
    """Find a shortest plan, or the best that time and work allow, with a proved bound.

    Parameters
    ----------
    problem : SlotProblem
        What is to be planned.
    warm : SlotPlan, optional
        A plan to start from; the result is never longer.
    least : int
        Slots that every plan is known to need.
    time_limit : float, optional
        Seconds.
    work : float, optional
        Work of the solver, in its own measure: about seconds, but the same on every machine.
    workers : int
        Threads of the solver. With one, the same seed gives the same plan; with more, the same slots.
    seed : int
        Seed of everything random.
    memory_limit : int, optional
        Bytes that a model may take.
    progress : callable, optional
        Called with a phase (``"start"``, ``"horizon"``, ``"raised"``, ``"recover"``, ``"end"``), the
        bound and the slots of the best plan.

    Returns
    -------
    SlotPlan
        ``"optimal"`` where its slots are the bound.

    Raises
    ------
    SpecError
        When a chunk cannot reach an NPU, the model is too large, the limit is not positive, or OR-Tools
        is needed and not there.
    """
    effort = effort_of(time_limit, workers, seed, memory_limit, progress, work)
    known = distances(problem)
    least = max(least, least_of(problem, known))
    best = start_from(problem, known, warm, least, effort)
    effort.tell("start", best.least, best.slots)
    if best.slots > least:
        cp_model()
        best = _climb(problem, known, best, effort)
    effort.tell("end", best.least, best.slots)
    return replace(best, work=effort.clock.spent)


def effort_of(
    time_limit: float | None,
    workers: int,
    seed: int,
    memory_limit: int | None,
    progress: Progress | None,
    work: float | None = None,
) -> Effort:
    """Options, checked."""
    if time_limit is not None and not time_limit > 0:
        raise SpecError(None, f"the time limit must be more than 0 seconds, not {time_limit}")
    if workers < 1:
        raise SpecError(None, f"the solver needs at least 1 worker, not {workers}")
    clock = Clock(time_limit, work)
    return Effort(clock, time_limit, work, workers, seed, memory_limit, progress)


def start_from(
    problem: SlotProblem, known: Distances, warm: SlotPlan | None, least: int, effort: Effort
) -> SlotPlan:
    """Take the plan that was given, or one that lists find, while there is time, where that is shorter."""
    if warm is not None and warm.slots <= least:
        return settled(warm, least, "bound")
    if warm is not None and problem.chunks * problem.edges > _LISTED:
        return settled(warm, least, "bound")
    # Without a plan to start from, there has to be one, however long it takes.
    is_over = None if warm is None else effort.clock.over
    sends = best_listing(problem, known, least, effort.seed, is_over)
    if warm is not None and sends is None:
        return settled(warm, least, "time limit")
    listed = plan_of(problem, sends or [], least, "bound")
    best = listed if warm is None or listed.slots < warm.slots else warm
    return settled(best, least, "bound")


def settled(plan: SlotPlan, least: int, how: str) -> SlotPlan:
    """Attach to a plan its bound and what ended the search."""
    status = "optimal" if plan.slots <= least else "feasible"
    return replace(plan, least=min(least, plan.slots), status=status, how=how)


def _climb(problem: SlotProblem, known: Distances, best: SlotPlan, effort: Effort) -> SlotPlan:
    least = best.least
    while least < best.slots:
        effort.tell("horizon", least, best.slots)
        model = Model(problem, known, least, memory_limit=effort.memory_limit)
        model.hint(turned(problem, best.sends(), best.slots))
        seconds, work = _share(effort)
        answer = ask(model, seconds, effort.workers, effort.seed, work)
        effort.clock.spent += answer.work
        if answer.verdict == FOUND:
            sends = turned(problem, answer.sends, least)
            return plan_of(problem, sends, least, "solver")
        if answer.verdict != NONE:
            effort.tell("recover", least, best.slots)
            best = _recovered(problem, known, best, least, effort)
            return settled(best, least, "time limit" if effort.work is None else "work")
        least += 1
        effort.tell("raised", least, best.slots)
    return settled(best, least, "solver")


def _share(effort: Effort, kept: float = _RECOVERY) -> tuple[float | None, float | None]:
    """Return the seconds and the work that the solver may take, without a share of all that is kept."""

    def of(left: float | None, all_: float | None) -> float | None:
        return None if left is None or all_ is None else max(0.01, left - kept * all_)

    return of(effort.clock.left(), effort.time_limit), of(effort.clock.work(), effort.work)


def _recovered(
    problem: SlotProblem, known: Distances, best: SlotPlan, horizon: int, effort: Effort
) -> SlotPlan:
    """Bring as much as can arrive within a horizon, and the rest along shortest paths."""
    if effort.clock.over() or (effort.time_limit, effort.work) == (None, None):
        return best
    model = Model(problem, known, horizon, partial=True, memory_limit=effort.memory_limit)
    model.hint(turned(problem, best.sends(), best.slots))
    seconds, work = _share(effort, 0.0)
    answer = ask(model, seconds, effort.workers, effort.seed, work)
    effort.clock.spent += answer.work
    return better(problem, known, best, answer.sends, effort.seed)


def better(
    problem: SlotProblem, known: Distances, best: SlotPlan, partial: Sequence[Send], seed: int
) -> SlotPlan:
    """Complete a partial plan; keep it where it is shorter than the best so far."""
    if not partial:
        return best
    sends = complete(problem, known, partial, best.least, taste_of(seed, 0))
    plan = plan_of(problem, sends, best.least, best.how)
    return plan if plan.slots < best.slots else best

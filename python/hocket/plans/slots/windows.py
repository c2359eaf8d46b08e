"""Plans by windows of slots: a short horizon at a time, each starting from what the last one did.

Source: Won et al., "TACOS", section V-C. What differs: a window that has no send to make would be the
last one, so that what is missing then comes along shortest paths; and what a relay that does not want a
chunk has received counts as held.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hocket.plans.slots.bound import least_of
from hocket.plans.slots.distance import FAR, Distances, distances
from hocket.plans.slots.model import Model, cp_model
from hocket.plans.slots.plan import Send, SlotPlan, slots_of
from hocket.plans.slots.problem import BACKWARD, FORWARD, SlotProblem
from hocket.plans.slots.search import FOUND, ask
from hocket.plans.slots.solve import Effort, Progress, better, effort_of, settled, start_from

WINDOW = 4
"""Slots of a window unless told."""

_WORK = 1.0
"""Work of the solver for each window: most of what can arrive, without a proof that it is most."""


def solve_windows(
    problem: SlotProblem,
    *,
    window: int = WINDOW,
    warm: SlotPlan | None = None,
    time_limit: float | None = None,
    work: float | None = None,
    workers: int = 2,
    seed: int = 0,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> SlotPlan:
    """Plan short horizons, one after the other: quick, but not proved to be shortest.

    Parameters
    ----------
    problem : SlotProblem
        What is to be planned.
    window : int
        Slots of each horizon; at least those of the slowest edge are taken.
    warm, time_limit, work, workers, seed, memory_limit, progress
        As for :func:`hocket.plans.slots.solve.solve`; the limits are those of all windows together.

    Returns
    -------
    SlotPlan
        Never longer than `warm`. Chunks that go backwards, where there are others as well, are fitted
        between those that go forward.
    """
    effort = effort_of(time_limit, workers, seed, memory_limit, progress, work)
    known = distances(problem)
    least = least_of(problem, known)
    best = start_from(problem, known, warm, least, effort)
    effort.tell("start", best.least, best.slots)
    if best.slots > least:
        cp_model()
        sends = _windows(problem, window, effort, best)
        best = settled(better(problem, known, best, sends, seed), least, "windows")
    effort.tell("end", best.least, best.slots)
    return replace(best, work=effort.clock.spent)


def _windows(problem: SlotProblem, window: int, effort: Effort, best: SlotPlan) -> list[Send]:
    """Return sends of one way, in its time; where both ways are asked for, the forward ones."""
    way = FORWARD if not problem.backwards.all() else BACKWARD
    mine = problem.backwards == (way == BACKWARD)
    left = replace(
        problem,
        wanted=[w if mine[c] else frozenset() for c, w in enumerate(problem.wanted)],
        backwards=np.zeros(problem.chunks, dtype=np.bool_),
        edge_src=problem.ends(way)[0],
        edge_dst=problem.ends(way)[1],
    )
    width = max(window, int(problem.edge_slots.max(initial=1)))
    sends: list[Send] = []
    begin = 0
    while any(left.missing(chunk) for chunk in range(left.chunks)) and not effort.clock.over():
        effort.tell("window", best.least, best.slots)
        limit = effort.memory_limit
        model = Model(left, _open(distances(left)), width, partial=True, memory_limit=limit)
        _reward_nearness(model)
        seconds, most = effort.clock.left(), effort.clock.work()
        work = _WORK if most is None else min(most, _WORK)
        answer = ask(model, seconds, effort.workers, effort.seed, work)
        effort.clock.spent += answer.work
        if answer.verdict != FOUND or not answer.sends:
            break
        sends += [(chunk, edge, begin + start) for chunk, edge, start in answer.sends]
        left = _after(left, answer.sends)
        begin += max(s + slots_of(problem, c, e) for c, e, s in answer.sends)
    return sends


def _open(known: Distances) -> Distances:
    """Distances of a horizon that need not reach anybody: a chunk may end on its way."""
    return replace(known, late=np.where(known.late < FAR, 0, FAR))


def _reward_nearness(model: Model) -> None:
    """Count getting nearer to somebody who misses a chunk, a little; arriving, a lot."""
    known = distances(model.problem)
    far = int(known.late[known.late < FAR].max(initial=0)) + 1
    weighed = []
    for (chunk, edge), variable in model.sent.items():
        dst = int(model.problem.edge_dst[edge])
        if dst in model.problem.missing(chunk):
            weighed.append(far * model.problem.npus * variable)
        else:
            gain = int(known.late[chunk][list(model.problem.holders[chunk])].min())
            gain -= int(known.late[chunk, dst])
            weighed.append((gain * 2 if gain > 0 else -1) * variable)
    model.goals = weighed


def _after(problem: SlotProblem, sends: tuple[Send, ...]) -> SlotProblem:
    holders = [set(some) for some in problem.holders]
    for chunk, edge, _ in sends:
        holders[chunk].add(int(problem.edge_dst[edge]))
    return replace(problem, holders=[frozenset(some) for some in holders])

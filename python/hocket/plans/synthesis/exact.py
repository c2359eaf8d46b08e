"""The exact synthesizer: slots, a warm start, the solver, a timetable again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

from hocket import _core
from hocket._core import synthesis as core
from hocket.collectives.collective import Progress
from hocket.errors import SpecError
from hocket.plans.slots import SlotPlan, solve, solve_windows
from hocket.plans.synthesis.options import PlanOptions
from hocket.plans.synthesis.slot_problem import Sends, Slots, slot_length, slots_of
from hocket.units import format_time_ps

_NO_TIME = 0.001
_WORK_OF_SOLVER = 40_000_000
"""What a unit of the solver's own measure of work, about a second, counts as."""
_WORKERS = 1
"""Threads of the solver: with more, the same seed may give another plan of the same length."""


@dataclass(frozen=True)
class Solved:
    """The solver's result: timetables of `problem`, and the slots they take and must take."""

    problem: core.Problem
    timetables: core.Timetables
    slots: int
    least: int
    length: int


def solve_exactly(
    problem: core.Problem,
    options: PlanOptions,
    memory_limit: int,
    progress: Progress | None,
    work: _core.Work | None = None,
) -> Solved:
    """Solve a problem in slots.

    Sums and copies of different chunks are one problem. The copies of an all-reduce follow its sums
    (TACOS, section VII-A): two problems, each solved to its optimum. Of collectives that mix both, the
    two phases are solved one after the other, and the greedy timetable is taken where it is shorter.
    """
    length = options.slot_ps or slot_length(problem)
    try:
        rounded = problem.discretised(length)
    except SpecError:
        raise SpecError(
            "slot",
            f"in slots of {format_time_ps(length)} a plan could take longer than 26 days",
            "give a shorter one",
        ) from None
    limit = options.seconds
    ends = time.monotonic() + (limit or float("inf"))
    greedy = rounded.greedy(
        options.seed, options.trials, time_limit=limit, work=work, progress=progress
    )
    summed, copied = rounded.sends(greedy)
    summed_chunks = {chunk[0] for chunk in rounded.sum_chunks}
    shared = any(chunk[0] in summed_chunks for chunk in rounded.copy_chunks)
    all_reduce = summed_chunks == {chunk[0] for chunk in rounded.copy_chunks}

    def run(slots: Slots, warm: SlotPlan) -> SlotPlan:
        left = None if limit is None else max(_NO_TIME, ends - time.monotonic())
        by = solve
        if options.window is not None:
            by = partial(solve_windows, window=options.window)
        plan = by(
            slots.problem,
            warm=warm,
            time_limit=left,
            work=None if work is None else work.left / _WORK_OF_SOLVER,
            workers=_WORKERS,
            seed=options.seed,
            memory_limit=memory_limit,
            progress=progress,
        )
        if work is not None:
            work.spend(round(plan.work * _WORK_OF_SOLVER))
        return plan

    if not shared:
        both = slots_of(rounded, length, sums=True, copies=True)
        plan = run(both, both.warm(summed, copied))
        tables = _timetables(rounded, both.sends(plan, True), both.sends(plan, False))
        return Solved(rounded, tables, plan.slots, plan.least, length)
    sums = slots_of(rounded, length, sums=True, copies=False)
    copies = slots_of(rounded, length, sums=False, copies=True)
    alone = rounded.greedy_apart(options.seed, options.trials)
    warm_sums, warm_copies = rounded.sends(alone)
    first = run(sums, sums.warm(warm_sums, None))
    start = sums.warm(warm_sums, None).slots
    second = run(copies, _earlier(copies.warm(None, warm_copies), start))
    tables = _timetables(
        rounded, sums.sends(first, True), copies.sends(second, False, after=first.slots)
    )
    slots = first.slots + second.slots
    if all_reduce:
        return Solved(rounded, tables, slots, first.least + second.least, length)
    # Some copies need not wait for the sums: one after the other is then no proof of the whole.
    if greedy.end_ps < tables.end_ps:
        tables, slots = greedy, -(-greedy.end_ps // length)
    return Solved(rounded, tables, slots, min(max(first.least, second.least), slots), length)


def _earlier(plan: SlotPlan, by: int) -> SlotPlan:
    """Shift a plan to its own beginning."""
    return SlotPlan(
        plan.chunk, plan.edge, plan.start - by, plan.slots - by, plan.least, plan.status, plan.how
    )


def _timetables(problem: core.Problem, sums: Sends, copies: Sends) -> core.Timetables:
    return problem.timetables(
        sum_chunk=sums[0],
        sum_edge=sums[1],
        sum_start=sums[2],
        copy_chunk=copies[0],
        copy_edge=copies[1],
        copy_start=copies[2],
    )

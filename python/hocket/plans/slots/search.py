"""Runs the solver: one model, some time, a stop that works."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from hocket.plans.slots.model import Model, cp_model
from hocket.plans.slots.plan import Send, useful

FOUND, NONE, UNKNOWN = "found", "none", "unknown"

_POLL = 0.05
_SEEDS = 1 << 31
"""Seeds that the solver knows."""


@dataclass(frozen=True)
class Answer:
    """The solver's answer: ``FOUND`` with sends, ``NONE`` (proved), or ``UNKNOWN``; and its work."""

    verdict: str
    sends: tuple[Send, ...] = ()
    work: float = 0.0


class Clock:
    """Time that is left of a limit, and work of the solver, in its own measure."""

    def __init__(self, limit: float | None, work: float | None = None) -> None:
        self._end = None if limit is None else time.monotonic() + limit
        self._most = work
        self.spent = 0.0

    def left(self) -> float | None:
        """Seconds left, or None where there is no limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def work(self) -> float | None:
        """Work that is left, or None where there is no limit."""
        return None if self._most is None else max(0.0, self._most - self.spent)

    def over(self) -> bool:
        """Return whether nothing is left."""
        return self.left() == 0.0 or self.work() == 0.0


def ask(
    model: Model, seconds: float | None, workers: int, seed: int, work: float | None = None
) -> Answer:
    """Solve a model.

    Parameters
    ----------
    model : Model
        What to solve; one with goals is maximized, another one needs a solution only.
    seconds : float or None
        When to stop.
    workers : int
        Threads of the solver. With one, the same seed gives the same sends; with more, the same
        verdict.
    seed : int
        Seed of the solver.
    work : float, optional
        When to stop, in the solver's own measure of work, which is the same on every machine.

    Returns
    -------
    Answer
        Sends are in the time of their chunk's way, without those that help nobody.
    """
    module = cp_model()
    solver = module.CpSolver()
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = seed % _SEEDS
    solver.parameters.catch_sigint_signal = False
    if seconds is not None:
        solver.parameters.max_time_in_seconds = seconds
    if work is not None:
        solver.parameters.max_deterministic_time = work
    if model.partial:
        model.model.maximize(sum(model.goals))
    status = run_solver(solver, model.model)
    if status in (module.OPTIMAL, module.FEASIBLE):
        sends = [
            (chunk, edge, int(solver.value(model.start[chunk, edge])))
            for (chunk, edge), sent in model.sent.items()
            if solver.boolean_value(sent)
        ]
        return Answer(FOUND, tuple(useful(model.problem, sends)), solver.deterministic_time)
    return Answer(NONE if status == module.INFEASIBLE else UNKNOWN, (), solver.deterministic_time)


def run_solver(solver: Any, model: Any) -> Any:
    """Solve in a thread, so that an interrupt is heard here and stops it; gives the status."""
    result: list[Any] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            result.append(solver.solve(model))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, name="hocket-exact", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_POLL)
    except BaseException:
        while thread.is_alive():  # asked again: a search that has not begun does not hear it
            solver.stop_search()
            thread.join(_POLL)
        raise
    if failure:
        raise failure[0]
    return result[0]

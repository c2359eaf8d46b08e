"""Processes of this machine that run parts of a sweep."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Protocol

from hocket.errors import SimulationError
from hocket.sweeps.sweep import Sweep
from hocket.sweeps.worker import Child, start_process

_AHEAD = 2
"""Tasks that a process has: the one that it does, and the next."""
_MOST_STILLBORN = 20
"""Processes that end in a row before they have done anything, after which no more are started."""


@dataclass(frozen=True)
class BatchTask:
    """A task for a process: a batch, or a point whose result nobody wants.

    Attributes
    ----------
    kind
        ``part`` or ``point``.
    number
        Of the part or point.
    killers
        Points that are left out.
    """

    kind: str
    number: int
    killers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class BatchOutcome:
    """The outcome of a task.

    Attributes
    ----------
    task
        The task.
    answer
        File and number of failed points; None of a point, or where the process ended.
    is_dead
        Whether the process that did it ended.
    """

    task: BatchTask
    answer: tuple[bytes, int] | None
    is_dead: bool = False


class Executor(Protocol):
    """Runs tasks somewhere."""

    @property
    def room(self) -> int:
        """The number of further tasks that it would take now."""
        ...

    def submit(self, task: BatchTask) -> None:
        """Take a task."""
        ...

    def wait(self) -> list[BatchOutcome]:
        """Wait until a task is done or its process has ended."""
        ...

    def close(self) -> None:
        """End all processes."""
        ...


@dataclass
class _Worker:
    child: Child
    tasks: deque[BatchTask] = field(default_factory=deque)
    has_answered: bool = False


class Local:
    """An executor of so many processes."""

    def __init__(self, sweep: Sweep, workers: int) -> None:
        self._sweep = sweep
        self._stillborn = 0
        self._workers: list[_Worker] = []
        try:
            for _ in range(workers):
                self._start()
        except BaseException:
            self.close()
            raise

    def turn_to(self, sweep: Sweep) -> None:
        """Take tasks of another sweep from now on; there must be none of the last one."""
        self._sweep = sweep
        for worker in self._workers:
            _tell(worker, sweep)

    @property
    def pids(self) -> list[int]:
        """Numbers of the processes."""
        return [worker.child.process.pid for worker in self._workers]

    @property
    def room(self) -> int:
        """The number of further tasks that it would take now."""
        return sum(_AHEAD - len(worker.tasks) for worker in self._workers)

    def submit(self, task: BatchTask) -> None:
        """Send a task to the process that has least to do."""
        worker = min(self._workers, key=lambda each: len(each.tasks))
        worker.tasks.append(task)
        _tell(worker, (task.kind, task.number, task.killers))

    def wait(self) -> list[BatchOutcome]:
        """Wait until a task is done or its process has ended."""
        found: list[BatchOutcome] = []
        while not found:
            ready = wait([each.child.connection for each in self._workers])
            for worker in [each for each in self._workers if each.child.connection in ready]:
                found += self._heard(worker)
        return found

    def _heard(self, worker: _Worker) -> list[BatchOutcome]:
        try:
            answer = worker.child.connection.recv()
        except (EOFError, OSError):
            return self._ended(worker)
        self._stillborn = 0
        worker.has_answered = True
        return [BatchOutcome(worker.tasks.popleft(), answer)]

    def _ended(self, worker: _Worker) -> list[BatchOutcome]:
        """Start another in the place of a process that ended; it gets the tasks that were not begun."""
        worker.child.stop()
        self._workers.remove(worker)
        if not worker.has_answered:
            self._stillborn += 1
            if self._stillborn > _MOST_STILLBORN:
                raise SimulationError(
                    None, "processes end as soon as they begin", "see what they printed"
                )
        self._start()
        first, *rest = worker.tasks or [None]
        for task in rest:
            assert task is not None
            self.submit(task)
        return [] if first is None else [BatchOutcome(first, None, is_dead=True)]

    def _start(self) -> None:
        worker = _Worker(start_process())
        self._workers.append(worker)
        _tell(worker, self._sweep)

    def close(self) -> None:
        """End all processes."""
        for worker in self._workers:
            worker.child.stop()
        self._workers.clear()


def _tell(worker: _Worker, what: object) -> None:
    with suppress(OSError):  # if it has ended, waiting finds that
        worker.child.connection.send(what)

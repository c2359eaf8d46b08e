"""A process that runs parts of a sweep for whoever started it: ``python -m hocket.sweeps.worker FILE``.

It is told what to do over a connection, whose number of an open file it is given, and ends with that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

_early: list[Child] = []


@dataclass(frozen=True)
class Child:
    """A process that waits for a sweep and its tasks, and the connection to it."""

    process: subprocess.Popen[bytes]
    connection: Connection[Any, Any]

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        self.connection.close()


@contextmanager
def early_process() -> Iterator[None]:
    """Start a process that :func:`start_process` gives within the block; it is ended if none asked for it.

    Importing takes half a second here and there, and while this process does it alone, a core is idle.
    """
    _early.append(_new_process())
    try:
        yield
    finally:
        for each in _early:
            each.stop()
        _early.clear()


def start_process() -> Child:
    """Start a process that waits for a sweep and its tasks."""
    return _early.pop() if _early else _new_process()


def _new_process() -> Child:
    ours, theirs = Pipe()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "hocket.sweeps.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=2,  # with errors: a command's own output is for its results
            env={**os.environ, "RAYON_NUM_THREADS": "1"},
            # A session of its own: Ctrl-C ends whoever started it, and its connection with that.
            start_new_session=True,
        )
    return Child(process, ours)


def main() -> None:
    """Run what is asked for until the connection ends."""
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    tasks: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(connection, tasks), daemon=True).start()

    from hocket._core.interrupt import unattended
    from hocket.sweeps.batch import run_batch, run_point
    from hocket.sweeps.inputs import SweepInputs

    unattended()  # Ctrl-C reaches whoever started it

    while True:
        told = tasks.get()
        if not isinstance(told, tuple):  # a sweep, which the tasks that follow are of
            sweep, inputs = told, SweepInputs(told.loaded)
            continue
        kind, number, killers = told
        if kind == "part":
            answer: object = run_batch(sweep, number, inputs, killers)
        else:
            run_point(sweep, number, inputs)
            answer = None
        connection.send(answer)


def _listen(connection: Connection[Any, Any], tasks: SimpleQueue[Any]) -> None:
    """Pass on what is told; end the process when nothing more will come."""
    try:
        while True:
            tasks.put(connection.recv())
    except (EOFError, OSError):
        os._exit(0)


if __name__ == "__main__":
    main()

"""Processes of this machine that form a group: started, watched, and ended whatever happens."""

from __future__ import annotations

import json
import math
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from hocket.errors import Error, InfeasibleError, TransportError
from hocket.runtime.store import serve

MAX_RANKS = 64
"""Most processes that are started on one machine."""
REPORTING = 1.0
"""When one has failed, how long the others may take to say what they know [s]."""


@dataclass(frozen=True)
class Place:
    """The place of a process of a group.

    Attributes
    ----------
    command
        What its command begins with.
    environment
        Variables of its own, such as where the ranks meet.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]


def run_processes(
    module: str,
    given: dict[str, Any],
    ranks: int,
    progress: Callable[[str, int, int], None] | None,
    work: tuple[str, int],
    *,
    places: Sequence[Place] | None = None,
) -> list[dict[str, Any]]:
    """Run a module in each process of a group to its end; give the last line of each.

    Parameters
    ----------
    module
        What each runs: it reads `given` from standard input and writes lines of JSON.
    given
        What is to be done.
    ranks
        How many processes.
    progress, work
        Called as ``progress(name, done, total)``: with the number of ranks while they start, then with
        the name and the total of `work`.
    places
        Where each runs, and meets the others; by default all run here and meet at a store of their own.

    Raises
    ------
    TransportError, InfeasibleError
        As a process says, or if one ends and says nothing.
    """
    with ExitStack() as stack:
        if places is None:
            secret = secrets.token_hex(16)
            store = serve(secret=secret)
            stack.callback(store.close)
            meeting = {"HOCKET_STORE": store.address, "HOCKET_SECRET": secret}
            places = [Place((), meeting)] * ranks
        told = json.dumps(given)
        lines: list[list[dict[str, Any]]] = [[] for _ in range(ranks)]
        processes = []
        threads = []
        for rank in range(ranks):
            environment = {
                **os.environ,
                "HOCKET_RANK": str(rank),
                "HOCKET_SIZE": str(ranks),
                **places[rank].environment,
            }
            process = subprocess.Popen(
                [*places[rank].command, sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                text=True,
            )
            processes.append(process)
            stack.callback(_end, process)
            assert process.stdin is not None
            process.stdin.write(told)
            process.stdin.close()
            thread = threading.Thread(target=_read, args=(process, lines[rank]), daemon=True)
            thread.start()
            threads.append(thread)
        running = set(range(ranks))
        over = math.inf
        while running and time.monotonic() < over:
            time.sleep(0.02)
            if progress is not None:
                progress(*_progress(lines, work))
            ended = {rank for rank in running if not threads[rank].is_alive()}
            running -= ended
            if not all(lines[rank] and "times" in lines[rank][-1] for rank in ended):
                over = min(over, time.monotonic() + REPORTING)
        return _judged(lines, processes, running)


def _progress(lines: Sequence[list[dict[str, Any]]], work: tuple[str, int]) -> tuple[str, int, int]:
    """Report progress: ranks start and check one by one, and then do the work in step."""
    ranks = len(lines)
    for name, reached in (
        ("ranks start", sum(bool(each) for each in lines)),
        ("ranks check", sum(any("done" in line for line in each) for each in lines)),
    ):
        if reached < ranks:
            return name, reached, ranks
    return work[0], min(each[-1].get("done", work[1]) for each in lines), work[1]


def _judged(
    lines: Sequence[list[dict[str, Any]]],
    processes: Sequence[subprocess.Popen[str]],
    running: set[int],
) -> list[dict[str, Any]]:
    """Return the last line of each rank, or raise what the first says that did not come to its end.

    A rank that ended by itself says why the others failed; these say only that it is gone.
    """
    last = [each[-1] if each else {} for each in lines]
    failed = [rank for rank, each in enumerate(last) if "times" not in each and rank not in running]
    for rank in sorted(failed, key=lambda rank: "failed" in last[rank]):
        raise _failure(rank, last[rank], processes[rank].wait())
    return last


def _failure(rank: int, last: dict[str, Any], code: int) -> Error:
    """Return what came of a rank as an error.

    Parameters
    ----------
    rank, last
        Which, and the last line that it wrote.
    code
        The exit code of its process, or minus the number of the signal that ended it.
    """
    if "wrong" in last:
        return InfeasibleError(None, f"rank {rank}: the result is wrong: {last['wrong']}")
    if "failed" in last:
        return TransportError(last["error"], *last["failed"])
    if "error" in last:
        return InfeasibleError(None, f"rank {rank}: {last['error']}")
    how = f"ended with exit code {code}" if code >= 0 else f"was ended by {_signal(-code)}"
    return TransportError(f"rank {rank} has died: it {how} and said nothing", "died", rank)


def _signal(number: int) -> str:
    return next((each.name for each in signal.Signals if each == number), f"signal {number}")


def _read(process: subprocess.Popen[str], lines: list[dict[str, Any]]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            lines.append(found)


def _end(process: subprocess.Popen[str]) -> None:
    """End a process that may still run."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout is not None:
        process.stdout.close()

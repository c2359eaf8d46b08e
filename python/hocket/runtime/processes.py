"""Processes of this machine that form a group: started, watched, and ended whatever happens."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from hocket.errors import InfeasibleError, TransportError
from hocket.runtime.store import serve

MAX_RANKS = 64
"""Most processes that are started on one machine."""


@dataclass(frozen=True)
class Place:
    """Where a process of a group runs.

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
        Called as ``progress(name, done, total)``, with the name and the total of `work`.
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
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.02)
            if progress is not None:
                done = min(each[-1].get("done", 0) if each else 0 for each in lines)
                progress(work[0], done, work[1])
        for process in processes:
            process.wait()
        return [_judged(rank, each, processes[rank]) for rank, each in enumerate(lines)]


def _judged(
    rank: int, lines: list[dict[str, Any]], process: subprocess.Popen[str]
) -> dict[str, Any]:
    """Give the last line of a rank, or raise what it says."""
    last = lines[-1] if lines else {}
    if "times" in last:
        return last
    if "wrong" in last:
        raise InfeasibleError(None, f"rank {rank}: the result is wrong: {last['wrong']}")
    if "failed" in last:
        raise TransportError(last["error"], *last["failed"])
    if "error" in last:
        raise InfeasibleError(None, f"rank {rank}: {last['error']}")
    raise TransportError(
        f"rank {rank} ended with exit code {process.returncode} and said nothing", "died", rank
    )


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

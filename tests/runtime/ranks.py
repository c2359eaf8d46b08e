"""Ranks that are processes: each runs a function of this module's users, and says what came of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from hocket import runtime
from hocket.errors import TransportError

SPAWN = multiprocessing.get_context("fork")


@dataclass
class Ended:
    """What came of a rank: a result, an error of the transport, or any other error as text."""

    value: Any = None
    failure: TransportError | None = None
    error: str | None = None
    seconds: float = 0.0


def _rank(
    pipe: Connection,
    address: str,
    rank: int,
    size: int,
    work: Callable[[runtime.Communicator], Any],
    options: dict[str, Any],
) -> None:
    os.setpgid(0, 0)
    started = time.monotonic()
    try:
        with runtime.connect(
            address, rank=rank, size=size, serves=False, secret="test", **options
        ) as comm:
            pipe.send(None)  # it has come
            pipe.send(Ended(work(comm), seconds=time.monotonic() - started))
    except TransportError as failure:
        pipe.send(Ended(failure=failure, seconds=time.monotonic() - started))
    except BaseException:
        pipe.send(Ended(error=traceback.format_exc()))
    pipe.close()
    os._exit(0)


class Ranks:
    """Processes that are ended, whatever happens."""

    def __init__(
        self, size: int, work: Callable[[runtime.Communicator], Any], **options: Any
    ) -> None:
        self.store = runtime.serve(secret="test")
        self.pipes: list[Connection] = []
        self.processes = []
        for rank in range(size):
            ours, theirs = SPAWN.Pipe()
            given = (theirs, self.store.address, rank, size, work, options)
            process = SPAWN.Process(target=_rank, args=given, daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def signal(self, rank: int, number: signal.Signals) -> None:
        pid = self.processes[rank].pid
        assert pid is not None
        os.kill(pid, number)

    def ended(self, rank: int, timeout: float = 60) -> Ended:
        found = self._said(rank, timeout)
        if found is None:
            found = self._said(rank, timeout)
        assert found is not None
        return found

    def begin(self) -> None:
        """Wait until all ranks have joined."""
        for rank in range(len(self.pipes)):
            assert self._said(rank, 60) is None

    def _said(self, rank: int, timeout: float) -> Ended | None:
        assert self.pipes[rank].poll(timeout), f"rank {rank} hangs"
        found = self.pipes[rank].recv()
        assert found is None or isinstance(found, Ended)
        return found

    def results(self, ranks: Sequence[int] | None = None) -> list[Any]:
        """Give the value of each rank, none of which may fail."""
        found = [self.ended(rank) for rank in ranks or range(len(self.processes))]
        for each in found:
            assert each.error is None, each.error
            assert each.failure is None, each.failure
        return [each.value for each in found]

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.join()
        for pipe in self.pipes:
            pipe.close()
        self.store.close()

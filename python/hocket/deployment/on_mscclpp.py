"""Deployed plans by MSCCL++'s executor, driven directly.

It has run on one GPU (docs/gpu.md). Its tests have a double of the executor.

References
----------
microsoft/mscclpp 0.9.0 (MIT), python/csrc/executor_py.cpp: names and arguments of the bindings.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hocket.deployment.manifest import Entry
from hocket.deployment.route import MOVES


class MscclppEngine:
    """Runs plans by MSCCL++'s executor.

    Parameters
    ----------
    bindings
        Its extension module, ``mscclpp._mscclpp``, which needs no CuPy.
    executor
        A ``CppExecutor`` of it for the ranks of the group. All groups of a process launch on one stream, as
        the semaphores of a launch belong to the process.
    folder
        The deployed folder.
    rank, ranks
        Of this process in its group, and how many there are.
    stream
        Address of the stream.
    address
        Returns the address of a buffer's first byte; it is where the buffer's allocation begins.
    scale
        Multiplies the numbers of a buffer: ``scale(buffer, dtype, factor)``, in stream order.
    """

    def __init__(
        self,
        bindings: Any,
        executor: Any,
        folder: Path,
        *,
        rank: int,
        ranks: int,
        stream: int,
        address: Callable[[Any], int],
        scale: Callable[[Any, str, float], None],
    ) -> None:
        self._bindings, self._executor, self._folder = bindings, executor, folder
        self._rank, self._ranks, self._stream = rank, ranks, stream
        self._address, self._scale = address, scale
        self._plans: dict[str, Any] = {}

    def prepare(self, entry: Entry) -> None:
        """Read a plan; its first launch makes its context, for which all ranks have to come.

        Entries with one program share it: the executor fills it only when it makes the context, which it
        finds by the program's name.
        """
        if entry.name not in self._plans:
            path = str(self._folder / entry.program.file)
            self._plans[entry.name] = self._bindings.CppExecutionPlan(path, self._rank)

    def launch(self, entry: Entry, send: Any, recv: Any, op: str, dtype: str) -> None:
        """Run a plan that was prepared, as of :meth:`hocket.deployment.staged.Engine.launch`."""
        name = "uint32" if entry.collective in MOVES else dtype
        self._executor.execute(
            self._rank,
            self._address(send),
            self._address(recv),
            len(send),
            len(recv),
            getattr(self._bindings.CppDataType, name),
            self._plans[entry.name],
            self._stream,
            self._bindings.CppPacketType.LL16,
        )
        if op == "average" and entry.collective not in MOVES:
            self._scale(recv, dtype, 1 / self._ranks)

    def check(self) -> None:
        """Find nothing: a launch waits without an end."""

"""Calls in stages: data is copied into a buffer, a plan runs on it, and the result is copied out.

The buffers are flat arrays of bytes with slices that can be assigned, as those of NumPy and of PyTorch are.
So the same code runs on CPUs and on GPUs.
"""

from __future__ import annotations

from typing import Any, Protocol

from hocket.deployment.manifest import Entry
from hocket.deployment.route import PlannedGroup, parts_of, pieces

_IN_PARTS = ("reduce-scatter", "all-to-all")
_OUT_PARTS = ("all-gather", "all-to-all")


class Engine(Protocol):
    """What runs plans on the buffers of a stage."""

    def launch(self, entry: Entry, send: Any, recv: Any, op: str, dtype: str) -> None:
        """Run a plan; all ranks of the group launch the same ones in the same order.

        Parameters
        ----------
        entry
            Whose plan.
        send, recv
            This rank's data and its result: bytes from the beginning of the stage's buffers.
        op, dtype
            ``"sum"`` or ``"average"``, and of which numbers; collectives that only move data ignore it.
        """
        ...


class Stage:
    """The two buffers through which the calls of a group go.

    Parameters
    ----------
    group
        What is planned for it.
    engine
        What runs plans.
    send, recv
        Bytes, as many as `group` says. Both begin where their allocations begin.
    """

    def __init__(self, group: PlannedGroup, engine: Engine, send: Any, recv: Any) -> None:
        self.group = group
        self._engine = engine
        self._send, self._recv = send, recv

    def run(self, entry: Entry, source: Any, result: Any, op: str, dtype: str) -> None:
        """Run a call by the plan that :func:`route` gave.

        Parameters
        ----------
        entry
            The plan.
        source, result
            This rank's data and where its result goes: bytes, of any length. They may be the same.
        op, dtype
            As of :meth:`Engine.launch`.
        """
        ranks, kind = self.group.ranks, entry.collective
        ways_in = ranks if kind in _IN_PARTS else 1
        ways_out = ranks if kind in _OUT_PARTS else 1
        own = len(source) // ways_in
        for begin, end, padded in pieces(entry, own * parts_of(kind, ranks), self.group):
            length = end - begin
            for part in range(ways_in):
                at = part * own + begin
                self._send[part * padded : part * padded + length] = source[at : at + length]
            send, recv = self._send[: ways_in * padded], self._recv[: ways_out * padded]
            self._engine.launch(entry, send, recv, op, dtype)
            self.group.prepared.add((entry.id, padded * parts_of(kind, ranks)))
            for part in range(ways_out):
                at = part * own + begin
                result[at : at + length] = recv[part * padded : part * padded + length]

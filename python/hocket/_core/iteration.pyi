"""Graphs of computation and collectives, as the Rust core runs them."""

from collections.abc import Callable, Sequence
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from hocket._core import Schedule, Topology, _Immutable

__all__ = ["Exposure", "Outcome", "Shape", "run"]

_U8: TypeAlias = npt.NDArray[np.uint8]
_U32: TypeAlias = npt.NDArray[np.uint32]
_U64: TypeAlias = npt.NDArray[np.uint64]

@final
class Shape(_Immutable):
    """The work of each actor of a collective or message, for the actor's servers 0, 1, ..."""

    @staticmethod
    def of_schedule(schedule: Schedule, first: Sequence[int]) -> Shape:
        """A schedule; ``first``: the actor's first server for each of its dimensions."""

    @staticmethod
    def all_to_all(
        topology: Topology, bytes: int, chunks: int, switching: str, first: Sequence[int]
    ) -> Shape:
        """An all-to-all among all NPUs of a product, each of which holds so many bytes."""

    @staticmethod
    def message(
        topology: Topology, ways: Sequence[int], bytes: int, switching: str, first: Sequence[int]
    ) -> Shape:
        """A message from an NPU to another that is so many steps away along each dimension."""

    @staticmethod
    def timed(time_ps: int, server: int) -> Shape:
        """A step whose time is known."""

    @property
    def lone_ps(self) -> int:
        """How long it takes where nothing else is under way."""

    @property
    def busy_ps(self) -> list[tuple[int, int]]:
        """Servers that it uses, and how long it keeps each busy [ps]."""

@final
class Outcome(_Immutable):
    """When everything started and ended, in picoseconds."""

    @property
    def time_ps(self) -> int: ...
    @property
    def start_ps(self) -> _U64:
        """When each node began to compute; of a call's, when it was ready for it."""

    @property
    def end_ps(self) -> _U64:
        """When each node ended."""

    @property
    def call_start_ps(self) -> _U64:
        """When each call began."""

    @property
    def call_end_ps(self) -> _U64:
        """When each call ended."""

    def exposed(self) -> Exposure:
        """Attribute what kept actors from computing."""

@final
class Exposure:
    """Time in which compute engines idled, by the node that they waited for, in picoseconds."""

    @property
    def exposed_ps(self) -> _U64:
        """Of each node of a call: while the call ran."""

    @property
    def waited_ps(self) -> _U64:
        """Of each node: while its call had not begun; and while what is not a call took its time."""

    @property
    def rest_ps(self) -> _U64:
        """Of each actor: what no node explains."""

def run(
    station: _U32,
    nodes: tuple[_U32, _U8, _U64, _U32],
    deps: tuple[_U32, _U32],
    calls: tuple[_U32, _U32, _U32, _U32, _U32],
    shapes: Sequence[Shape],
    *,
    order: str = "fifo",
    progress: Callable[[str, int, int], None] | None = None,
) -> Outcome:
    """Run a graph.

    Parameters
    ----------
    station
        Of each actor, its set of servers.
    nodes
        Actor, engine (0 compute, 1 beside it, 2 none), time [ps], call (4294967295: none) of each.
    deps
        Where each node's dependencies begin, with the end; and the nodes.
    calls
        Shape, priority (least first), starters (its first members, whose readiness begins it) of each;
        where each one's members begin, with the end; and the nodes.
    order
        ``fifo`` or ``lifo``: of calls of one priority, which is served first.

    Raises
    ------
    SpecError
        If columns do not fit each other, or nodes wait for each other.
    """

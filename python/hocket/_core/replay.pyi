"""Execution traces made ready for a network, as the Rust core runs them."""

from collections.abc import Callable, Sequence
from typing import final

import numpy as np
import numpy.typing as npt

from hocket._core import _Immutable
from hocket._core.iteration import Outcome, Shape
from hocket._core.trace import Trace

__all__ = ["Replay"]

@final
class Replay(_Immutable):
    """A trace as a graph: nodes are its rows, actors its ranks, calls its collectives, then its sends."""

    def __new__(cls, trace: Trace, operations: int, bytes: int | None = None) -> Replay:
        """Make it; ``operations`` and ``bytes``: what an NPU does in a second."""

    @property
    def station(self) -> npt.NDArray[np.uint32]:
        """For each rank, the first rank that takes part in the same calls."""

    @property
    def engine(self) -> npt.NDArray[np.uint8]:
        """The part that each node keeps busy: 0 the NPU, 1 its CPU or memory, 2 nothing."""

    @property
    def calls_what(self) -> npt.NDArray[np.uint32]:
        """For each call, its index among the collectives or, after them, the messages."""

    @property
    def calls_first(self) -> npt.NDArray[np.uint32]:
        """First of each call's nodes, and their number."""

    @property
    def calls_nodes(self) -> npt.NDArray[np.uint32]:
        """Nodes of the calls; of a message, the send and the receive."""

    @property
    def collective_kind(self) -> npt.NDArray[np.uint8]:
        """The operation of each distinct collective, numbered as ``hocket.traces.CALLS``."""

    @property
    def collective_group(self) -> npt.NDArray[np.uint32]:
        """Its group, a row of the trace's."""

    @property
    def collective_size(self) -> npt.NDArray[np.uint64]:
        """Its bytes."""

    @property
    def message_source(self) -> npt.NDArray[np.uint32]:
        """The sender of each distinct message."""

    @property
    def message_target(self) -> npt.NDArray[np.uint32]:
        """The rank that receives."""

    @property
    def message_size(self) -> npt.NDArray[np.uint64]:
        """Its bytes."""

    def run(
        self,
        shape_of: npt.NDArray[np.uint32],
        shapes: Sequence[Shape],
        *,
        order: str = "fifo",
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Outcome:
        """Run it; ``shape_of``: of each collective and message, its place among ``shapes``.

        Raises
        ------
        SpecError
            Naming rank and node, if ranks wait for each other.
        """

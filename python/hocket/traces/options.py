"""Options of replays, in one value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hocket._checks import one_of, truth
from hocket.collectives.collective import check_chunks
from hocket.errors import SpecError
from hocket.units import shown
from hocket.workload.accelerators import Accelerator, accelerator

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class ReplayKeywords(TypedDict, total=False):
        """The fields of :class:`ReplayOptions` as keywords of a call."""

        chunks: int | None
        npu: Accelerator | str
        efficiency: float | None
        order: str
        cache: bool


ORDERS = ("fifo", "lifo")


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """The options of a replay.

    Attributes
    ----------
    chunks
        Number of equal slices of each collective, which are pipelined. Default: 64 on dimensions, otherwise
        chosen by the algorithm.
    npu
        Accelerator for operations without a recorded time, such as a100.
    efficiency
        Share of the accelerator's peak that computation reaches.
    order
        Order in which the waiting calls of an NPU are served: fifo or lifo.
    cache
        For auto: reuse its earlier choice for each collective, and remember the new one.

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.
    """

    chunks: int | None = None
    npu: Accelerator | str = "a100"
    efficiency: float | None = None
    order: str = "fifo"
    cache: bool = True

    def __post_init__(self) -> None:
        one_of("order", self.order, ORDERS)
        check_chunks(self.chunks)
        truth("cache", self.cache)
        self.accelerator()

    def accelerator(self) -> Accelerator:
        """Return what computes."""
        found = accelerator(self.npu) if isinstance(self.npu, str) else self.npu
        if not isinstance(found, Accelerator):
            right = "give a name, such as a100"
            raise SpecError("npu", f"{shown(self.npu)} is not an accelerator", right)
        return found if self.efficiency is None else replace(found, efficiency=self.efficiency)

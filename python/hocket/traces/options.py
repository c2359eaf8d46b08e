"""How a trace is replayed: the options in one value."""

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


__all__ = ["ORDERS", "ReplayOptions"]

ORDERS = ("fifo", "lifo")


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """How a trace is replayed.

    Attributes
    ----------
    chunks
        Of each collective; 64 by default on dimensions, else the algorithm's own.
    npu, efficiency
        What computes what has operations and no recorded time: an :class:`Accelerator` or one's name, and
        the share of its peak that is reached.
    order
        Which of an NPU's calls of one priority a dimension serves first: ``fifo``, ``lifo``.
    cache
        Whether ``auto`` remembers what it chooses for each collective, and takes what it chose before.

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

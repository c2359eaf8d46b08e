"""The parts of a size table: measured sizes, ranges of them, and how it is found."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from hocket import _core
from hocket._options import Time, seconds
from hocket._results import HIDDEN, Column, Result, figure, said
from hocket.errors import SpecError
from hocket.units import shown


@dataclass(frozen=True, kw_only=True)
class ParetoOptions(Result):
    """The precision with which a size table is found.

    Attributes
    ----------
    precision
        Precision, as a share, of the sizes at which another plan becomes the fastest.
    tolerance
        Share by which a plan may be slower than the fastest and still be kept.
    within
        Time limit of all the work [s], such as ``"60 s"``; the result uses the sizes simulated by then.
        The first size is always simulated.

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.
    """

    precision: float = 0.05
    tolerance: float = 0.01
    within: Time | None = None

    def __post_init__(self) -> None:
        for name, least in (("precision", 0.001), ("tolerance", 0.0)):
            value = getattr(self, name)
            right = f"give a share from {least:g} to 1, such as 0.05"
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise SpecError(name, f"{shown(value)} is not a number", right)
            if not least <= value <= 1:
                raise SpecError(name, f"{shown(value)} is not valid", right)
        if self.within is not None:
            limit = seconds(self.within, "within")
            if not limit > 0:
                raise SpecError("within", "0 leaves no time", "give more, as 60s")
            object.__setattr__(self, "within", limit)

    @property
    def ends(self) -> float:
        """When the work ends that begins now, by the monotonic clock [s]."""
        return math.inf if self.within is None else time.monotonic() + float(self.within)


@dataclass(frozen=True)
class ParetoPoint(Result):
    """The fastest plan of a size that was measured.

    Attributes
    ----------
    size
        The size [bytes].
    algorithm, chunks
        What plans it: ``hk.plan(..., algorithm=, chunks=)`` makes the plan.
    time_ps
        How long that takes [ps].
    algbw, busbw
        Its bandwidths [bytes/s].
    bound_ps, witness
        The lower bound on any plan's time [ps], and why nothing is faster.
    """

    size: int = field(metadata=said("size_bytes"))
    algorithm: str
    chunks: int
    time_ps: int
    algbw: float = field(metadata=said("algbw_bytes_per_s"))
    busbw: float = field(metadata=said("busbw_bytes_per_s"))
    bound_ps: int
    witness: str

    @property
    @figure()
    def gap(self) -> float:
        """The gap to the bound: time / bound - 1, where 0 ps count as 1 ps."""
        return _core.gap(self.time_ps, self.bound_ps)


@dataclass(frozen=True)
class RangeFigures(Result):
    """Figures at both ends of a range."""

    from_bytes: int = field(metadata=said(column=Column("from", is_given=True)))
    """At which a runtime switches to it."""
    to_bytes: int = field(metadata=said(column=Column("to", leaves=0, is_given=True)))
    """The largest size that was measured of these; up to the next range, its precision decides."""
    from_time_ps: int = field(metadata=said(column=Column("time from", leaves=4)))
    to_time_ps: int = field(metadata=said(column=Column("time to", leaves=0)))
    from_algbw_bytes_per_s: float
    to_algbw_bytes_per_s: float = field(metadata=said(column=Column("algbw to", leaves=2)))
    from_busbw_bytes_per_s: float
    to_busbw_bytes_per_s: float = field(metadata=said(column=Column("busbw to", leaves=3)))
    from_gap: float = field(metadata=said(column=Column("gap from", leaves=5)))
    to_gap: float = field(metadata=said(column=Column("gap to", leaves=0)))


@dataclass(frozen=True)
class ParetoRange(Result):
    """Sizes at which one plan is the fastest.

    Attributes
    ----------
    first, last
        The least and the largest size that was measured of these; a runtime switches at the first.
    """

    first: ParetoPoint = field(metadata=HIDDEN)
    last: ParetoPoint = field(metadata=HIDDEN)

    @property
    @figure(column=Column("algorithm", leaves=0, after="to_bytes"))
    def algorithm(self) -> str:
        """The algorithm that plans it."""
        return self.first.algorithm

    @property
    @figure(column=Column("chunks", leaves=0, after="algorithm"))
    def chunks(self) -> int:
        """The number of chunks."""
        return self.first.chunks

    @property
    @figure(inline=RangeFigures)
    def _figures(self) -> RangeFigures:
        first, last = self.first, self.last
        return RangeFigures(
            *(first.size, last.size, first.time_ps, last.time_ps, first.algbw, last.algbw),
            *(first.busbw, last.busbw, first.gap, last.gap),
        )


def is_open(low: ParetoPoint, high: ParetoPoint, options: ParetoOptions) -> bool:
    """Return whether a size between two is still to be found at which the fastest plan changes."""
    is_wide = high.size > low.size * (1 + options.precision) and high.size - low.size > 1
    return is_wide and (low.algorithm, low.chunks) != (high.algorithm, high.chunks)

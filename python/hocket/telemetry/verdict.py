"""The rule that says whether the algorithm or the fabric is slow.

docs/measured.md states it, and where its numbers come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING, Literal

from hocket.nccl.model import Choice
from hocket.profiles.errors import band_of

if TYPE_CHECKING:
    from hocket.telemetry.data import MeasuredSizeData

__all__ = [
    "GAIN",
    "NEAR",
    "MeasuredSize",
    "Verdict",
    "runs_of",
    "settled",
    "tolerance_at",
    "verdict_of",
]

Verdict = Literal["neither", "algorithm", "fabric", "start", "faster than the bound", "not told"]

NEAR = 0.05
"""Share by which two times differ that cannot be told apart."""
GAIN = 0.10
"""Share that a better plan saves at least: runs on one machine differ by as much."""
_TOLERANCES = {
    "below 64 KiB": 0.2,
    "64 KiB to 1 MiB": 0.5,
    "1 to 64 MiB": 0.3,
    "above 64 MiB": 0.15,
}
"""Share by which measured times exceed predicted ones before something is called slow, by band of sizes.

On healthy machines nine of ten predictions are nearer (docs/machines.md: another machine, one size).
"""
_START = 2.0
"""Up to how many times the prediction for the least size a prediction is mostly the start."""


@dataclass(frozen=True)
class MeasuredSize:
    """How long one size of one collective took, and what was to be expected.

    Attributes
    ----------
    kind
        The collective, as ``"all-reduce"``.
    timing
        ``"run"`` for calls one after another, launch and all; ``"kernel"`` for kernels alone.
    size
        As nccl-tests states it [bytes].
    seconds, calls
        What was measured: the median of so many calls [s].
    algbw, busbw
        Of what was measured, as nccl-tests defines them [bytes/s].
    bound
        What any plan takes at least on the topology [s]; ``None`` of what is no collective of hocket's.
    predicted
        What the library takes on a healthy machine [s]; ``None`` where nothing predicts it.
    least
        The same for the least size that there is [s]: launch and latency.
    pick
        What NCCL, or RCCL, picks by its own model; ``None`` where it has none.
    best, algorithm
        What the best plan takes [s] and who makes it: ``"library"`` where no plan beats the prediction;
        ``None`` where none was made.
    verdict
        What is slow.
    """

    kind: str
    timing: str
    size: int
    seconds: float
    calls: int
    algbw: float
    busbw: float
    bound: float | None
    predicted: float | None
    least: float | None
    pick: Choice | None
    best: float | None
    algorithm: str | None
    verdict: Verdict

    @property
    def ratio(self) -> float | None:
        """Measured over predicted."""
        return None if self.predicted is None else self.seconds / self.predicted

    def to_dict(self) -> MeasuredSizeData:
        """Give it as values of JSON."""
        return {
            "collective": self.kind,
            "timing": self.timing,
            "size_bytes": self.size,
            "time_s": self.seconds,
            "calls": self.calls,
            "algbw_bytes_per_s": self.algbw,
            "busbw_bytes_per_s": self.busbw,
            "bound_s": self.bound,
            "predicted_s": self.predicted,
            "pick": None if self.pick is None else self.pick.algorithm,
            "pick_protocol": None if self.pick is None else self.pick.protocol,
            "pick_channels": None if self.pick is None else self.pick.channels,
            "best_s": self.best,
            "best_algorithm": self.algorithm,
            "verdict": self.verdict,
        }


def verdict_of(
    seconds: float,
    *,
    bound: float | None,
    predicted: float | None,
    least: float | None = None,
    best: float | None = None,
    ratio: float | None = None,
    tolerance: float,
) -> Verdict:
    """Say what is slow; see docs/measured.md.

    Parameters
    ----------
    seconds
        What was measured.
    bound, predicted, least, best
        As of :class:`MeasuredSize`, in the same unit; ``None`` where they are not known.
    ratio
        Measured over predicted, if not of this size alone.
    tolerance
        Share by which what is measured may exceed what is predicted.
    """
    if bound is not None and seconds < bound * (1 - NEAR):
        return "faster than the bound"
    if bound is not None and seconds <= bound * (1 + NEAR):
        return "neither"
    if predicted is None:
        return "not told"
    over = seconds / predicted if ratio is None else ratio
    if over > 1 + tolerance:
        return "start" if least is not None and predicted < _START * least else "fabric"
    if (
        over * (1 + tolerance) >= 1
        and best is not None
        and best <= min(seconds, predicted) * (1 - GAIN)
    ):
        return "algorithm"
    return "neither"


def tolerance_at(size: int) -> float:
    """Give the share by which a size [bytes] may exceed its prediction."""
    return _TOLERANCES[band_of(size).name]


def settled(ratios: Sequence[float | None]) -> list[float | None]:
    """Give for each size the median of its ratio and those beside it: one that stands out is no fabric's."""
    found: list[float | None] = []
    for place, own in enumerate(ratios):
        near = [each for each in ratios[max(place - 1, 0) : place + 2] if each is not None]
        found.append(None if own is None else median(near))
    return found


def runs_of(sizes: Sequence[MeasuredSize]) -> list[tuple[MeasuredSize, ...]]:
    """Give the ranges of sizes, of one collective timed in one way, that have one verdict."""
    groups = groupby(sizes, key=lambda each: (each.kind, each.timing, each.verdict))
    return [tuple(group) for _, group in groups]

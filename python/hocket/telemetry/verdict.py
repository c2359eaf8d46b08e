"""The rule that says whether the algorithm or the fabric is slow.

docs/measured.md states it, and where its numbers come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median_low
from typing import Literal

from hocket._results import HIDDEN, Result, figure, picoseconds, said
from hocket.fitting.errors import band_of
from hocket.nccl.model import NcclChoice

Verdict = Literal["neither", "algorithm", "fabric", "start", "faster than the bound", "not told"]

NEAR = 0.05
"""Share by which two times differ that cannot be told apart."""
GAIN = 0.10
"""Share that a better plan saves at least: runs on one machine differ by as much."""
TOLERANCES = {
    "below 64 KiB": 0.2,
    "64 KiB to 1 MiB": 0.5,
    "1 to 64 MiB": 0.3,
    "above 64 MiB": 0.15,
}
"""Share by which measured times exceed predicted ones before something is called slow, by band of sizes.

On healthy machines, nine of ten predictions are nearer
(docs/machines-accuracy.md: other machine, one size).
"""
_ALIKE = 0.15
"""Share up to which a time is that of another algorithm: what predictions of large sizes are wrong by."""
_BESIDE = 4
"""Up to how many times larger or smaller a size is beside another."""
_START = 2.0
"""Up to how many times the prediction for the least size a prediction is mostly the start."""


def _algorithm(pick: NcclChoice) -> str:
    return pick.algorithm


@dataclass(frozen=True)
class MeasuredSize(Result):
    """The measured and the expected time of one size of one collective.

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
    bound_ps
        What any plan takes at least on the topology [ps]; ``None`` of what is no collective of hocket's.
    predicted
        What the library takes on a healthy machine [s]; ``None`` where nothing predicts it.
    way
        The algorithm and the protocol that are predicted to take so long, as of :func:`hocket.predict`.
    least
        The same for the least size that there is [s]: launch and latency.
    pick
        What NCCL, or RCCL, picks by its own model; ``None`` where it has none.
    best, algorithm
        What the best plan takes [s] and who makes it: ``"library"`` where no plan beats the prediction;
        ``None`` where none was made.
    verdict
        What is slow.
    is_over
        Whether it takes longer than predicted, by more than the tolerance.
    instead
        The library's algorithm that takes as long, where that is not its fastest.
    below_bound
        Why the prediction stands below the bound; ``None`` where it does not.
    """

    kind: str = field(metadata=said("collective"))
    timing: str
    size: int = field(metadata=said("size_bytes"))
    seconds: float = field(metadata=said("time_ps", of=picoseconds))
    calls: int
    algbw: float = field(metadata=said("algbw_bytes_per_s"))
    busbw: float = field(metadata=said("busbw_bytes_per_s"))
    bound_ps: int | None
    predicted: float | None = field(metadata=said("predicted_ps", of=picoseconds))
    way: tuple[str, str] | None = field(metadata=HIDDEN)
    least: float | None = field(metadata=HIDDEN)
    pick: NcclChoice | None = field(metadata=said(of=_algorithm))
    best: float | None = field(metadata=said("best_ps", of=picoseconds))
    algorithm: str | None = field(metadata=said("best_algorithm"))
    verdict: Verdict = field(metadata=said(column=True))
    is_over: bool
    instead: str | None = None
    below_bound: str | None = None

    @property
    def bound(self) -> float | None:
        """What any plan takes at least on the topology [s], as :attr:`bound_ps`."""
        return None if self.bound_ps is None else self.bound_ps * 1e-12

    @property
    @figure()
    def predicted_algorithm(self) -> str | None:
        """The algorithm that is predicted to take so long."""
        return None if self.way is None else self.way[0]

    @property
    @figure()
    def predicted_protocol(self) -> str | None:
        """The protocol of that algorithm."""
        return None if self.way is None else self.way[1]

    @property
    @figure()
    def pick_protocol(self) -> str | None:
        """The protocol of the pick."""
        return None if self.pick is None else self.pick.protocol

    @property
    @figure()
    def pick_channels(self) -> int | None:
        """The channels of the pick."""
        return None if self.pick is None else self.pick.channels

    @property
    def ratio(self) -> float | None:
        """Measured over predicted."""
        return None if self.predicted is None else self.seconds / self.predicted


@dataclass(frozen=True)
class Case:
    """A size that is to be judged: as of :class:`MeasuredSize`, and how far predictions are right.

    Attributes
    ----------
    tolerance
        Share by which what is measured may exceed what is predicted.
    otherwise
        What the library takes if it does not use its fastest algorithm [s]; ``None`` if it has no other.
    """

    size: int
    seconds: float
    bound_ps: int | None
    predicted: float | None
    least: float | None
    best: float | None
    tolerance: float
    otherwise: float | None = None

    @property
    def is_otherwise(self) -> bool:
        """Whether it takes as long as the library does without its fastest algorithm."""
        other = self.otherwise
        return other is not None and abs(self.seconds / other - 1) <= _ALIKE

    @property
    def is_start(self) -> bool:
        """Whether it is mostly launch and latency that it is predicted to take."""
        known = self.least is not None and self.predicted is not None
        return known and self.predicted < _START * self.least  # type: ignore[operator]


def verdicts(cases: Sequence[Case]) -> list[tuple[Verdict, bool]]:
    """Describe what is slow at each size of one collective, and whether it takes longer than predicted.

    docs/measured.md states the rule.

    Parameters
    ----------
    cases
        The least size first.
    """
    ratios = _settled(cases)
    is_over = [
        None if ratio is None else ratio > 1 + each.tolerance
        for each, ratio in zip(cases, ratios, strict=True)
    ]
    found: list[tuple[Verdict, bool]] = []
    for place, (each, ratio) in enumerate(zip(cases, ratios, strict=True)):
        plain = _without(each)
        if plain is not None or ratio is None:
            found.append((plain or "not told", False))
        elif is_over[place]:
            found.append((_slow(cases, is_over, place), True))
        else:
            is_as_predicted = ratio * (1 + each.tolerance) >= 1
            found.append((_planned(each) if is_as_predicted else "neither", False))
    return found


def _without(case: Case) -> Verdict | None:
    """Return the verdict that needs no prediction, or ``None``."""
    if case.bound_ps is None:
        return None
    if picoseconds(case.seconds) < case.bound_ps * (1 - NEAR):
        return "faster than the bound"
    return "neither" if picoseconds(case.seconds) <= case.bound_ps * (1 + NEAR) else None


def _planned(case: Case) -> Verdict:
    """Judge what takes what it is predicted to, by the best plan."""
    if case.best is None or case.predicted is None:
        return "neither"
    least = min(case.seconds, case.predicted)
    return "algorithm" if case.best <= least * (1 - GAIN) else "neither"


def _slow(cases: Sequence[Case], is_over: Sequence[bool | None], place: int) -> Verdict:
    """Judge what takes longer than predicted.

    What slow links cost, larger sizes cost as well, and what a slow start costs, smaller ones: where
    those take what they are predicted to, the fabric could do better, and the library chose badly. So it
    did where it takes as long as without its fastest algorithm.
    """
    later = zip(cases[place + 1 :], is_over[place + 1 :], strict=True)
    does_carry = any(over is False and not case.is_start for case, over in later)
    if cases[place].is_start and False not in is_over[:place]:
        return "start"
    return "algorithm" if does_carry or cases[place].is_otherwise else "fabric"


def tolerance_at(size: int) -> float:
    """Return the share by which a size [bytes] may exceed its prediction."""
    return TOLERANCES[band_of(size).name]


def _settled(cases: Sequence[Case]) -> list[float | None]:
    """Return for each size the lower median of its ratio and its neighbours', without outliers."""
    own = [each.predicted and each.seconds / each.predicted for each in cases]
    found: list[float | None] = []
    for place, case in enumerate(cases):
        places = range(max(place - 1, 0), min(place + 2, len(cases)))
        near = [
            ratio
            for other in places
            if (ratio := own[other]) is not None
            and 1 / _BESIDE <= cases[other].size / case.size <= _BESIDE
        ]
        found.append(None if own[place] is None else median_low(near))
    return found


def runs_of(sizes: Sequence[MeasuredSize]) -> list[tuple[MeasuredSize, ...]]:
    """Return the ranges of sizes, of one collective timed in one way, that have one verdict."""
    groups = groupby(sizes, key=_alike)
    return [tuple(group) for _, group in groups]


def _alike(each: MeasuredSize) -> tuple[object, ...]:
    """Return what sizes of a range have in common."""
    return each.kind, each.timing, each.verdict, each.is_over, each.instead is None

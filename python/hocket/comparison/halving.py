"""The sizes to measure: those asked for, then those between, until all changes of plans are found."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from hocket import _core
from hocket.collectives.collective import Progress, tell_step
from hocket.comparison.size_table import ParetoOptions, ParetoPoint, is_open
from hocket.errors import InfeasibleError, SpecError
from hocket.units import format_size

Way = tuple[str, int]
"""An algorithm and its number of chunks."""
_NEAR = 1.5
"""Between two sizes only algorithms are tried that take no more than so many times the least at either."""


@dataclass(frozen=True)
class SizeMeasurement:
    """All that was simulated at one size: the fastest of each way, with its bandwidths."""

    size: int
    fidelity: str
    bound: _core.Bound
    times: dict[Way, tuple[int, float, float]]
    refused: dict[str, str]

    def pick(self, before: Way | None, tolerance: float) -> Way:
        """Return the fastest way, or the one before where that is about as quick."""
        quickest = min(self.times, key=lambda way: self.times[way][0])
        least = self.times[quickest][0]
        if before in self.times and self.times[before][0] <= least * (1 + tolerance):
            return before
        return quickest

    def add(self, again: SizeMeasurement) -> None:
        """Take over what was simulated besides at this size."""
        for way, figures in again.times.items():
            self.times.setdefault(way, figures)

    def near(self) -> set[str]:
        """Return the algorithms that come near the fastest."""
        least = min(time for time, _, _ in self.times.values())
        return {name for (name, _), (time, _, _) in self.times.items() if time <= least * _NEAR}


class SizeSearch:
    """Measures sizes: those asked for, coarsely first, then between those whose fastest plans differ."""

    def __init__(
        self,
        sizes: list[int],
        measure: Callable[[int, Sequence[str] | None, int | None, float], SizeMeasurement],
        options: ParetoOptions,
        progress: Progress | None,
        on_point: Callable[[ParetoPoint], None] | None = None,
    ) -> None:
        self._on_point = on_point
        self.sizes, self.found = sizes, dict[int, SizeMeasurement]()
        self._measure, self._options, self._progress = measure, options, progress
        self._ends = options.ends
        self._again: set[tuple[int, Way]] = set()

    def run(self) -> None:
        """Measure until all is found, or the time is over."""
        for size in _coarse_first(self.sizes):
            if not self._try(size, None, len(self.sizes)):
                return
        while True:
            wide = [each for each in self._pairs() if is_open(*each, self._options)]
            if not wide:
                return
            low, high = max(wide, key=lambda pair: pair[1].size / pair[0].size)
            names = self.found[low.size].near() | self.found[high.size].near()
            steps = sum(self._steps(*pair) for pair in wide)
            middle = _between(low.size, high.size, self._options.precision)
            if not self._try(middle, sorted(names), len(self.found) + steps):
                return

    def points(self) -> list[ParetoPoint]:
        """Return the fastest of each size that was measured; of equals the one before stays."""
        found: list[ParetoPoint] = []
        way: Way | None = None
        for _, each in sorted(self.found.items()):
            if way is not None and way not in each.times:
                self._try_again(each, way)
            found.append(self._point(each, way))
            way = (found[-1].algorithm, found[-1].chunks)
        return found

    def _point(self, found: SizeMeasurement, before: Way | None) -> ParetoPoint:
        way = found.pick(before, self._options.tolerance)
        bound, witness = found.bound.time_ps, str(found.bound.witness)
        time_ps, algbw, busbw = found.times[way]
        return ParetoPoint(found.size, *way, time_ps, algbw, busbw, bound, witness)

    def _try(self, size: int, names: Sequence[str] | None, total: int) -> bool:
        left = self._ends - time.monotonic()
        if self.found and left <= 0:
            return False
        tell_step(self._progress, format_size(size), len(self.found), total)
        self.found[size] = self._measure(size, names, None, left)
        if self._on_point is not None:
            self._on_point(self._point(self.found[size], None))
        return True

    def _try_again(self, found: SizeMeasurement, way: Way) -> None:
        """Try the way before with as many chunks, where an algorithm has chosen another number itself."""
        name, chunks = way
        left = self._ends - time.monotonic()
        is_new = (found.size, way) not in self._again
        if not is_new or left <= 0 or name not in {each for each, _ in found.times}:
            return
        self._again.add((found.size, way))
        with suppress(InfeasibleError, SpecError):  # so many chunks may be too many
            found.add(self._measure(found.size, [name], chunks, left))

    def _pairs(self) -> list[tuple[ParetoPoint, ParetoPoint]]:
        points = self.points()
        return list(pairwise(points))

    def _steps(self, low: ParetoPoint, high: ParetoPoint) -> int:
        """Return how often an interval is halved."""
        span = math.log(high.size / low.size) / math.log1p(self._options.precision)
        return max(1, math.ceil(math.log2(span)))


def _between(low: int, high: int, precision: float) -> int:
    """Return a size half-way between two in logarithm, as round as the precision allows."""
    middle = math.sqrt(low * high)
    grain = 1 << max(0, math.floor(math.log2(middle * precision / 4)))
    return min(max(round(middle / grain) * grain, low + 1), high - 1)


def _coarse_first(sizes: Sequence[int]) -> list[int]:
    """Return sizes with both ends first, then always the middle of what is between."""
    order = dict.fromkeys((0, len(sizes) - 1))
    spans = [(0, len(sizes) - 1)]
    for low, high in spans:
        middle = (low + high) // 2
        if low < middle:
            order[middle] = None
            spans += [(low, middle), (middle, high)]
    return [sizes[i] for i in order]

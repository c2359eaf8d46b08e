"""The sizes at which another algorithm becomes the fastest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from hocket.errors import SpecError

SizeRow = tuple[str, int, float, float]
"""Algorithm, size [bytes], algbw [bytes/s], algbw of the bound [bytes/s]."""


class Crossover(NamedTuple):
    """A size [bytes], between two measured ones, at which another algorithm becomes the fastest."""

    size: float
    before: str
    after: str


def crossovers(table: Sequence[SizeRow]) -> list[Crossover]:
    """Find where the fastest algorithm changes, from small sizes to large ones.

    Between two sizes, lines are straight where both axes are logarithmic; the change is where the
    lines of both algorithms meet, or half-way where one of them has no value at one of the sizes.
    Of equal algorithms the one that was the fastest before stays so.
    """
    lines = lines_of(table)
    sizes = sorted({row[1] for row in table})
    found: list[Crossover] = []
    best, last = "", 0
    for size in sizes:
        top = max(line[size] for line in lines.values() if size in line)
        if best and lines[best].get(size) == top:
            last = size
            continue
        new = next(name for name, line in lines.items() if line.get(size) == top)
        if best:
            found.append(Crossover(_meeting(lines[best], lines[new], last, size), best, new))
        best, last = new, size
    return found


def _meeting(one: dict[int, float], other: dict[int, float], low: int, high: int) -> float:
    """Return the size between two at which two lines meet."""
    middle = math.sqrt(low * high)
    if not all(size in line for line in (one, other) for size in (low, high)):
        return middle
    before = math.log(one[low] / other[low])
    after = math.log(one[high] / other[high])
    if before == after:
        return middle
    share = before / (before - after)
    return float(low * (high / low) ** share)


def lines_of(table: Sequence[SizeRow]) -> dict[str, dict[int, float]]:
    """Return the values of each algorithm by size, in the order of first appearance."""
    if not table:
        raise SpecError("table", "there are no rows", "give one for each algorithm and size")
    lines: dict[str, dict[int, float]] = {}
    for algorithm, size, rate, bound in table:
        if not (size > 0 and rate > 0 and bound > 0):
            raise SpecError(
                "table",
                f"{algorithm} at {size} bytes has {rate} and {bound} bytes/s",
                "give numbers above 0",
            )
        own = lines.setdefault(algorithm, {})
        if size in own:
            raise SpecError("table", f"{algorithm} has {size} bytes twice", "give it once")
        own[size] = rate
    return lines

"""Numbers of a column in one unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Units: TypeAlias = tuple[tuple[str, int], ...]
"""Names and factors, the least unit first."""
TIMES: Units = (("ps", 1), ("ns", 10**3), ("us", 10**6), ("ms", 10**9), ("s", 10**12))
"""Of times [ps]."""
SIZES = (("B", 1), ("kB", 10**3), ("MB", 10**6), ("GB", 10**9), ("TB", 10**12))
"""Of sizes [bytes]."""
FLOPS: Units = tuple(
    (f"{name}FLOP", 1000**i) for i, name in enumerate(("", "k", "M", "G", "T", "P"))
)
"""Of operations."""
RATES = tuple((f"{name}/s", factor) for name, factor in SIZES)
"""Of bandwidths [bytes/s]."""
BUSBW: Units = (("GB/s", 10**9),)
"""Of what nccl-tests states, in its unit [bytes/s]."""

FAR = 10**4
"""How many times the least number the largest may be, to stand in one unit where there is a choice."""
UNIT = 10**3
"""The same for tables with a row per size: each has a unit of its own sooner."""
_DIGITS = 4
_MAX_DECIMALS = 3
_SPREAD = 10**5


def in_one_unit(values: Sequence[float], units: Units) -> tuple[str, list[str]]:
    """Return the unit that suits a column, and its numbers in that unit, with the same decimals.

    The least number has four digits, if three decimals are enough for that; what is too small for three
    decimals stands there as less than the least of them.
    """
    positive = [value for value in values if value > 0]
    if not positive:
        return units[0][0], ["0" for _ in values]
    about = max(min(positive), max(positive) / _SPREAD)
    unit, factor = next((unit for unit in reversed(units) if about >= unit[1]), units[0])
    before = len(str(int(about / factor)))
    decimals = 0 if factor == 1 else min(max(_DIGITS - before, 0), _MAX_DECIMALS)
    texts = [f"{value / factor:,.{decimals}f}" for value in values]
    least = 10.0**-decimals
    small = [0 < value / factor < least / 2 for value in values]
    while decimals and not any(small) and all(text.endswith("0") for text in texts):
        decimals -= 1
        texts = [text[:-1].rstrip(".") for text in texts]
    return unit, [
        f"<{least:.{decimals}f}" if tiny else text for text, tiny in zip(texts, small, strict=True)
    ]


def spread(values: Sequence[float]) -> float:
    """Return the ratio of the largest number to the smallest positive one."""
    positive = [value for value in values if value > 0]
    return max(positive) / min(positive) if positive else 1.0


def common(values: Sequence[float], units: Units, far: int = FAR) -> Units:
    """Return the unit that suits the numbers of several columns; all units where they are too far apart."""
    suits, _ = in_one_unit(values, units)
    return units if spread(values) > far else tuple(each for each in units if each[0] == suits)


def significant(value: float) -> str:
    """Write a number with four significant digits, or all digits before its point."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def percent(share: float, decimals: int = 1) -> str:
    """Write a share in per cent, without the sign; what rounds to 0 has no minus."""
    text = f"{100 * share:,.{decimals}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def share_of(share: float) -> str:
    """Write a share in per cent: ``12.5%``."""
    return f"{percent(share)}%"

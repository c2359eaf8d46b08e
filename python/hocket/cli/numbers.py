"""Numbers of a column in one unit, and sizes as nccl-tests takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from hocket.errors import SpecError
from hocket.units import parse_size, shown

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

FAR = 10**4
"""How many times the least number the largest may be, to stand in one unit where there is a choice."""
_DIGITS = 4
_MOST_DECIMALS = 3
_SPREAD = 10**5
_MOST_SIZES = 1000


def in_one_unit(values: Sequence[float], units: Units) -> tuple[str, list[str]]:
    """Give the unit that suits a column, and its numbers in that unit, with the same decimals.

    The least number has four digits, if three decimals are enough for that; what is too small for three
    decimals stands there as less than the least of them.
    """
    positive = [value for value in values if value > 0]
    if not positive:
        return units[0][0], ["0" for _ in values]
    about = max(min(positive), max(positive) / _SPREAD)
    unit, factor = next((unit for unit in reversed(units) if about >= unit[1]), units[0])
    before = len(str(int(about / factor)))
    decimals = 0 if factor == 1 else min(max(_DIGITS - before, 0), _MOST_DECIMALS)
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
    """Say how many times the least positive number the largest is."""
    positive = [value for value in values if value > 0]
    return max(positive) / min(positive) if positive else 1.0


def common(values: Sequence[float], units: Units) -> Units:
    """Give the unit that suits the numbers of several columns; all units where they are too far apart."""
    suits, _ = in_one_unit(values, units)
    return units if spread(values) > FAR else tuple(each for each in units if each[0] == suits)


def percent(share: float) -> str:
    """Write a share in per cent, without the sign, with one decimal; what rounds to 0 has no minus."""
    text = f"{100 * share:,.1f}"
    return text if text != "-0.0" else "0.0"


def share_of(share: float) -> str:
    """Write a share in per cent: ``12.5%``."""
    return f"{percent(share)}%"


def read_sizes(texts: Sequence[str], sweep: str | None) -> list[int]:
    """Read sizes [bytes], each ``"8KB"`` or ``"8KB,1MB"``, and a sweep; the least first.

    Raises
    ------
    SpecError
        If one is no size, or there is none.
    """
    found = [parse_size(part.strip(), field="--size") for text in texts for part in text.split(",")]
    if sweep is not None:
        found += _sweep(sweep)
    if not found:
        raise SpecError("--size", "there is none", "give -s 256MB, or --sizes 8K:1G:x4")
    return sorted(set(found))


def _sweep(text: str) -> list[int]:
    """Read ``begin:end:xfactor`` or ``begin:end:+step``; as nccl-tests' -b, -e, -f and -i."""
    right = "write begin:end:xfactor or begin:end:+step, as 8K:1G:x4"
    parts = [part.strip() for part in text.split(":")]
    if len(parts) not in (2, 3):
        raise SpecError("--sizes", f"{shown(text)} is no sweep", right)
    begin, end = (parse_size(part, field="--sizes") for part in parts[:2])
    if end < begin:
        raise SpecError("--sizes", f"{shown(text)} ends before it begins", right)
    step = parts[2] if len(parts) == 3 else "x2"
    factor = int(step[1:]) if step[:1] in "x*" and step[1:].isdecimal() and len(step) < 10 else 0
    if step[:1] == "+":
        by = parse_size(step[1:], field="--sizes")
        _check_many((end - begin) // by + 1)
        return list(range(begin, end + 1, by))
    if factor < 2:
        raise SpecError("--sizes", f"{shown(step)} is neither a factor from 2 nor a step", right)
    found = [begin]
    while found[-1] * factor <= end:
        found.append(found[-1] * factor)
    return found


def _check_many(count: int) -> None:
    if count > _MOST_SIZES:
        raise SpecError("--sizes", f"these are {count:,} sizes", f"take at most {_MOST_SIZES:,}")

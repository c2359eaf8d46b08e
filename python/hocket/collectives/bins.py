"""Bins of time: how finely the use of links or dimensions is told over time."""

from __future__ import annotations

from hocket.errors import SpecError
from hocket.units import format_time_ps, parse_time

MAX_CELLS = 1 << 28
"""Most numbers in a table over time."""


def to_bins(
    time_ps: int, rows: int, bins: int, period: str | None
) -> tuple[int | None, int | None]:
    """Return a number of bins or their length [ps].

    Raises
    ------
    SpecError
        For too few or too many.
    """
    most = MAX_CELLS // max(rows, 1)
    if period is None:
        if type(bins) is not int or not 1 <= bins <= most:
            raise SpecError("bins", f"{bins!r} is not a number of bins", f"give 1 to {most}")
        return bins, None
    length = parse_time(period, field="period")
    if length < 1 or time_ps > length * most:
        least = format_time_ps(-(-time_ps // most))
        raise SpecError("period", f"{period!r} makes too many bins", f"give at least {least}")
    return None, length

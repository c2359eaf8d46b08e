"""Axes of time, in a unit that suits, that end where what is drawn ends."""

from __future__ import annotations

from typing import Any

from matplotlib.ticker import MaxNLocator

_UNITS = (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3), ("ps", 1))
_NEAR, _SHARE = 0.5, 0.75
"""Inches before the end of an axis where no other number has room; the least share of a figure's
width that an axis of time has."""


def time_unit(longest_ps: float) -> tuple[str, int]:
    """Return a unit and its picoseconds, in which the longest of some times is at least 1."""
    return next((unit for unit in _UNITS if longest_ps >= unit[1]), _UNITS[-1])


def time_axis(axes: Any, total_ps: float, *, unit_ps: float = 1.0) -> None:
    """Set up an axis of time from 0 to the end of what is drawn; the end has a number, too.

    Parameters
    ----------
    axes
        Where a step of 1 along x is ``unit_ps`` picoseconds.
    total_ps
        The end.
    """
    name, size = time_unit(total_ps)
    end = total_ps / size
    axes.set_xlim(0, total_ps / unit_ps or 1)
    axes.set_xlabel(f"time [{name}]", labelpad=1)
    if not total_ps:
        axes.set_xticks([0])
        return
    places = [float(tick) for tick in MaxNLocator(8).tick_values(0, end)]
    near = _NEAR / (_SHARE * axes.get_figure(root=True).get_figwidth())
    places = [tick for tick in places if 0 <= tick < end * (1 - near)]
    labels = [f"{tick:g}" for tick in places]
    axes.set_xticks([tick * size / unit_ps for tick in [*places, end]], [*labels, f"{end:.4g}"])

"""Algorithmic bandwidth over size, a line for each algorithm, as plots of nccl-tests have it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from hocket.errors import SpecError
from hocket.plot.style import ACCENT, picture, plain_numbers, write_title
from hocket.units import format_size

__all__ = ["Crossover", "SizeRow", "crossovers", "draw_sizes"]

_MARKERS = "os^vDPX"
_MAX_TICKS = 10
_UNITS = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))

SizeRow = tuple[str, int, float, float]
"""Algorithm, size [bytes], algbw [bytes/s], algbw of the bound [bytes/s]."""


class Crossover(NamedTuple):
    """Where another algorithm becomes the fastest: the size [bytes] between two that were measured."""

    size: float
    before: str
    after: str


def crossovers(table: Sequence[SizeRow]) -> list[Crossover]:
    """Find where the fastest algorithm changes, from small sizes to large ones.

    Between two sizes, lines are straight where both axes are logarithmic; the change is where the
    lines of both algorithms meet, or half-way where one of them has no value at one of the sizes.
    Of equal algorithms the one that was the fastest before stays so.
    """
    lines = _lines(table)
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
    """Give the size between two at which two lines meet."""
    middle = math.sqrt(low * high)
    if not all(size in line for line in (one, other) for size in (low, high)):
        return middle
    before = math.log(one[low] / other[low])
    after = math.log(one[high] / other[high])
    if before == after:
        return middle
    share = before / (before - after)
    return float(low * (high / low) ** share)


def draw_sizes(table: Sequence[SizeRow], path: Path, *, title: str = "") -> None:
    """Draw algbw over size, both logarithmic, the bound dashed, crossovers numbered.

    Parameters
    ----------
    table
        Rows of algorithm, size [bytes], algbw and the bound's algbw [bytes/s], in any order.
    path
        The picture.
    title
        Above it, such as the collective and the network.

    Raises
    ------
    SpecError
        If there are no rows, a number is not above 0, or an algorithm has a size twice.
    """
    lines = _lines(table)
    found = crossovers(table)
    bound = {size: rate for _, size, _, rate in table}
    unit, name = next((each for each in _UNITS if max(bound.values()) >= each[0]), _UNITS[-1])
    width = 8.0
    with picture(path, width, 4.6 + 0.17 * (len(lines) + len(found))) as figure:
        axes = figure.add_subplot()
        handles = []
        sizes = sorted(bound)
        (line,) = axes.plot(
            sizes,
            [bound[size] / unit for size in sizes],
            color="black",
            linestyle="--",
            linewidth=1.2,
            label="bound",
        )
        handles.append(line)
        for i, (algorithm, values) in enumerate(lines.items()):
            own = sorted(values)
            (line,) = axes.plot(
                own,
                [values[size] / unit for size in own],
                color=matplotlib.colormaps["tab10"](i % 10),
                marker=_MARKERS[i % len(_MARKERS)],
                linestyle="-" if i < 10 else "-.",
                markersize=4,
                linewidth=1.4,
                label=algorithm,
            )
            handles.append(line)
        _scale(axes, sizes, name)
        handles += _mark(axes, found)
        figure.legend(
            handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=8
        )
        if title:
            write_title(figure, title)


def _lines(table: Sequence[SizeRow]) -> dict[str, dict[int, float]]:
    """Give the values of each algorithm by size, in the order of first appearance."""
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


def _scale(axes: Any, sizes: Sequence[int], unit: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    step = -(-len(sizes) // _MAX_TICKS)
    kept = sizes[::-step][::-1]  # the largest among them
    axes.set_xticks(kept, [format_size(size) for size in kept])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    plain_numbers(axes.yaxis)
    axes.grid(visible=True, which="major", color="#e3e3e3", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("size")
    axes.set_ylabel(f"algbw [{unit}]")


def _mark(axes: Any, found: Sequence[Crossover]) -> list[Line2D]:
    """Write the number of each crossover above it; give what the legend says of them."""
    handles = []
    for i, each in enumerate(found, 1):
        axes.axvline(each.size, color=ACCENT, linestyle=":", linewidth=1.0, zorder=1)
        axes.annotate(
            f"{i}",
            (each.size, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 5 + 9 * (i % 2)),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=8,
            color=ACCENT,
        )
        label = f"{i}: {each.after} is faster than {each.before} from {format_size(_rounded(each.size))}"
        handles.append(Line2D([], [], color=ACCENT, linestyle=":", label=label))
    return handles


def _rounded(size: float) -> int:
    """Give two digits of a size: it was interpolated."""
    digits = max(0, math.floor(math.log10(size)) - 1)
    return int(round(size / 10**digits) * 10**digits)

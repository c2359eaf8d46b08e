"""Algorithmic bandwidth over size, a line for each algorithm, as plots of nccl-tests have it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from hocket.comparison.crossovers import Crossover, SizeRow, crossovers, lines_of
from hocket.plot.style import ACCENT, picture, plain_numbers, write_title
from hocket.units import format_estimate, format_size

_MARKERS = "os^vDPX"
_MAX_TICKS = 10
_UNITS = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))


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
    lines = lines_of(table)
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
        scale_sizes(axes, sizes, f"algbw [{name}]")
        handles += mark_crossovers(axes, found, sizes)
        figure.legend(
            handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=8
        )
        if title:
            write_title(figure, title)


def scale_sizes(axes: Any, sizes: Sequence[int], what: str) -> None:
    """Make both axes logarithmic, sizes below and what is named beside."""
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    kept = _apart(sizes)
    axes.set_xticks(kept, [format_size(size) for size in kept])
    axes.xaxis.set_minor_locator(NullLocator())
    plain_numbers(axes.yaxis)
    axes.grid(visible=True, which="major", color="#e3e3e3", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("size")
    axes.set_ylabel(what)


def _apart(sizes: Sequence[int]) -> list[int]:
    """Return sizes whose names do not touch on a logarithmic axis: powers of two first, then large ones."""
    least = math.log2(max(sizes) / min(sizes)) / _MAX_TICKS
    kept: list[int] = []
    for size in sorted(set(sizes), key=lambda size: (size & (size - 1) != 0, -size)):
        if all(abs(math.log2(size / other)) > least for other in kept):
            kept.append(size)
    return sorted(kept)


def mark_crossovers(axes: Any, found: Sequence[Crossover], sizes: Sequence[int]) -> list[Line2D]:
    """Write the number of each crossover above it; give what the legend says of them.

    One that lies between the measured ``sizes`` was interpolated, and is given about.
    """
    handles = []
    measured = set(sizes)
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
        at = format_size(int(each.size)) if each.size in measured else _about(each.size)
        label = f"{i}: {each.after} is faster than {each.before} from {at}"
        handles.append(Line2D([], [], color=ACCENT, linestyle=":", label=label))
    return handles


def _about(size: float) -> str:
    """Write two digits of a size."""
    digits = max(0, math.floor(math.log10(size)) - 1)
    return f"about {format_estimate(int(round(size / 10**digits) * 10**digits))}"

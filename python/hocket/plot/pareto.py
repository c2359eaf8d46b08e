"""A front: time of the fastest plan over size, in the colours of the algorithms, over the bound."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import matplotlib

from hocket.comparison.pareto import Pareto
from hocket.plot.sizes import mark_crossovers, scale_sizes
from hocket.plot.style import picture, write_title
from hocket.plot.timing import time_unit
from hocket.units import format_size


def draw_pareto(found: Pareto, path: Path) -> None:
    """Draw time over size, both logarithmic, the bound dashed, crossovers numbered."""
    crossovers, ranges = found.crossovers, found.ranges
    unit, factor = time_unit(min(each.time_ps for each in found.points))
    sizes = [each.size for each in found.points]
    names = list(dict.fromkeys(each.algorithm for each in ranges))
    with picture(path, 8.0, 4.6 + 0.17 * (len(names) + len(crossovers))) as figure:
        axes = figure.add_subplot()
        bounds = [max(each.bound_ps, 1) / factor for each in found.points]
        handles = axes.plot(sizes, bounds, "--", color="black", linewidth=1.2, label="bound")
        lines = {}
        for name, group in groupby(found.points, lambda each: each.algorithm):
            own = list(group)  # no line where another is faster
            (lines[name],) = axes.plot(
                [each.size for each in own],
                [max(each.time_ps, 1) / factor for each in own],
                "o-",
                color=matplotlib.colormaps["tab10"](names.index(name) % 10),
                markersize=4,
                linewidth=1.4,
                label=name,
            )
        handles += lines.values()
        scale_sizes(axes, sizes, f"time [{unit}]")
        handles += mark_crossovers(axes, crossovers, sizes)
        figure.legend(
            handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=8
        )
        collective = found.collective
        span = f"{format_size(sizes[0])} to {format_size(sizes[-1])}"
        write_title(
            figure,
            f"{collective.name}, {span}, among {len(collective.npus)} NPUs of {found.topology.name}",
        )

"""A sweep: time against cost of all its points, and the front that none of them beats."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import matplotlib

from hocket.plot.style import LINK, picture, write_title
from hocket.plot.timing import time_unit
from hocket.sweeps.report import SweepReport
from hocket.units import format_size

_MOST_DOTS = 20_000
_LABELLED = 8


def draw_sweep(found: SweepReport, path: Path) -> None:
    """Draw time over cost, both logarithmic: a grey dot a point, and a line for the front of each task."""
    scale = 1e12 if found.measure == "time_s" else 1.0
    costs, times = found.cloud
    step = max(1, len(costs) // _MOST_DOTS)
    unit, factor = time_unit(max(round(float(times.min()) * scale), 1))
    tasks = [name for name in found.pareto_front[0] if name != "cost"]
    tasks = tasks[: tasks.index(found.measure)]
    fronts = [
        (key, list(rows))
        for key, rows in groupby(found.pareto_front, lambda row: tuple(row[name] for name in tasks))
    ]
    with picture(path, 8.0, 5.0) as figure:
        axes = figure.add_subplot()
        axes.scatter(
            costs[::step],
            times[::step] * scale / factor,
            s=6,
            color=LINK,
            alpha=0.35,
            linewidths=0,
            rasterized=True,
        )
        for i, (key, rows) in enumerate(fronts):
            label = ", ".join(
                format_size(int(value)) if name == "size" else str(value)
                for name, value in zip(tasks, key, strict=True)
            )
            axes.step(
                [row["cost"] for row in rows],
                [row[found.measure] * scale / factor for row in rows],
                "o-",
                where="post",
                markersize=4,
                color=matplotlib.colormaps["viridis"](0.85 * i / max(1, len(fronts) - 1)),
                label=label or "front" if len(fronts) <= _LABELLED else None,
            )
        axes.set_yscale("log")
        axes.set_xscale("log")
        axes.set_xlabel("cost [units of the prices]")
        axes.set_ylabel(f"time [{unit}]")
        if len(fronts) <= _LABELLED:
            axes.legend(frameon=False, fontsize=8)
        write_title(
            figure, f"{found.command}: {found.points:,} points, and the fronts of time and cost"
        )

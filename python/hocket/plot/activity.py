"""A run on a product: when each dimension has something to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hocket.plans.dimension_run import DimensionRun
from hocket.plot.style import NPU, picture, write_title
from hocket.plot.timing import time_axis
from hocket.simulation.run import Run
from hocket.units import format_size, format_time_ps


def draw_activity(run: Run | DimensionRun, path: Path, bins: int = 200) -> None:
    """Draw the share of each time bin in which each dimension has activity, one panel each."""
    shares = run.activity(bins)
    uses = run.dimensions
    edges = np.linspace(0.0, float(run.time_ps or 1), bins + 1)
    with picture(path, 7.0, 0.9 + 0.9 * len(uses)) as figure:
        panels = figure.subplots(len(uses), 1, sharex=True, squeeze=False)[:, 0]
        for i, (axes, use) in enumerate(zip(panels, uses, strict=True)):
            axes.stairs(shares[i] * 100, edges, fill=True, color=NPU)
            axes.set_ylim(0, 105)
            axes.set_ylabel(f"dim {i + 1}\n[%]")
            axes.set_title(
                f"{use.kind} of {use.size}: {use.utilization:.1%} of its bandwidth",
                fontsize="small",
                loc="left",
            )
        time_axis(panels[-1], run.time_ps)
        collective = run.collective
        write_title(
            figure,
            f"{collective.name} of {format_size(collective.size)} on {run.topology.name}: activity, "
            f"{format_time_ps(run.time_ps)}",
        )

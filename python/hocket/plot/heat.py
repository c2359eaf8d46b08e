"""A run: how much each link was used over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from hocket.plot.style import picture, write_title
from hocket.plot.timing import time_axis
from hocket.simulation.run import Run
from hocket.units import format_size, format_time_ps

MAX_NAMED = 40
"""Links with a row and a name; more are rows without names below them."""
_MAX_ROWS = 2000
_ROW, _REST = 0.15, 2.6
"""Inches of a named row, and of all others together."""


def draw_heat(run: Run, path: Path, bins: int = 400) -> None:
    """Draw link against time, coloured by the share of time in use; busiest links on top.

    The busiest :data:`MAX_NAMED` links have names. The run must have kept its services.
    """
    topology = run.plan.topology
    shares = run.heat(bins)
    busy = run.link_busy_ps.astype(np.float64)
    order = np.argsort(-busy, kind="stable")
    named, rest = order[:MAX_NAMED], order[MAX_NAMED:]
    names = topology.device_names
    high = max(_ROW * len(named), 0.5)
    below = min(_REST, 0.3 + 0.03 * len(rest)) if len(rest) else 0.0
    with picture(path, 9.0, high + below + 1.3) as figure:
        if len(rest):
            panels = list(figure.subplots(2, 1, sharex=True, height_ratios=[high, below]))
        else:
            panels = [figure.add_subplot()]
        image = _rows(panels[0], shares[named], run.time_ps)
        labels = [f"{names[topology.link_src[i]]}→{names[topology.link_dst[i]]}" for i in named]
        panels[0].set_yticks(range(len(named)), labels, fontsize=6.5)
        panels[0].tick_params(axis="y", length=0)
        panels[0].set_ylabel(f"the {len(named)} busiest links" if len(rest) else "links")
        if len(rest):
            _rows(panels[1], shares[rest[:_MAX_ROWS]], run.time_ps)
            panels[1].set_yticks([])
            panels[1].set_ylabel(_rest_label(busy[rest]), fontsize=8)
            panels[0].tick_params(axis="x", length=0)
        time_axis(panels[-1], run.time_ps)
        figure.colorbar(
            image,
            ax=panels,
            label="share of time in use",
            format=PercentFormatter(1.0),
            pad=0.01,
            aspect=35,
        )
        collective = run.plan.collective
        write_title(
            figure,
            f"{run.plan.algorithm} {collective.name} of {format_size(collective.size)} on "
            f"{topology.name}: {format_time_ps(run.time_ps)}, {run.utilization:.1%} of all bandwidth",
        )


def _rows(axes: Any, shares: NDArray[np.float32], time_ps: int) -> Any:
    return axes.imshow(
        shares,
        aspect="auto",
        interpolation="nearest",
        cmap="magma_r",
        vmin=0.0,
        vmax=1.0,
        extent=(0.0, float(time_ps or 1), len(shares) - 0.5, -0.5),
    )


def _rest_label(busy: NDArray[np.float64]) -> str:
    """Count the links without names: how many are drawn, how many were never used."""
    idle = int((busy == 0).sum())
    lines = [f"{len(busy):,} more"]
    if len(busy) > _MAX_ROWS:
        lines.append(f"the first {_MAX_ROWS:,} drawn")
    if idle:
        lines.append(f"{idle:,} never used")
    return "\n".join(lines)

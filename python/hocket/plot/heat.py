"""A run: how much each link was used over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hocket.plot.style import picture
from hocket.simulation.run import Run
from hocket.units import format_size

_MOST_LABELS = 80
_MOST_ROWS = 2000


def draw_heat(run: Run, path: Path, bins: int = 400) -> None:
    """Draw link against time, coloured by the share of time in use; busiest links on top.

    The run must have kept its services.
    """
    topology = run.plan.topology
    shares = run.heat(bins)
    order = np.argsort(-run.link_busy_ps.astype(np.float64), kind="stable")[:_MOST_ROWS]
    rows = len(order)
    names = topology.device_names
    with picture(path, 8.0, min(1.6 + 0.14 * min(rows, _MOST_LABELS), 14.0)) as figure:
        axes = figure.add_subplot()
        image = axes.imshow(
            shares[order],
            aspect="auto",
            interpolation="nearest",
            cmap="magma_r",
            vmin=0.0,
            vmax=1.0,
            extent=(0.0, run.time * 1e6, rows - 0.5, -0.5),
        )
        if rows <= _MOST_LABELS:
            labels = [f"{names[topology.link_src[i]]}→{names[topology.link_dst[i]]}" for i in order]
            axes.set_yticks(range(rows), labels, fontsize=6)
        axes.set_xlabel("time [us]")
        axes.set_ylabel("link, busiest on top")
        figure.colorbar(image, ax=axes, label="share of time in use")
        collective = run.plan.collective
        figure.suptitle(
            f"{run.plan.algorithm} {collective.kind} of {format_size(collective.size)} on "
            f"{topology.name}: {run.time * 1e6:,.1f} us, {run.utilization:.0%} of all bandwidth"
        )

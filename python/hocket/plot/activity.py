"""A run on a product: when each dimension has something to do."""

from __future__ import annotations

from pathlib import Path

from hocket.plans.dimension_run import DimensionRun
from hocket.plot.style import picture
from hocket.simulation.run import Run
from hocket.units import format_size


def draw_activity(run: Run | DimensionRun, path: Path, bins: int = 200) -> None:
    """Draw the share of each time bin in which each dimension has activity, one panel each."""
    shares = run.activity(bins)
    uses = run.dimensions
    width = run.time * 1e6 / bins
    starts = [i * width for i in range(bins)]
    with picture(path, 7.0, 0.9 + 0.9 * len(uses)) as figure:
        panels = figure.subplots(len(uses), 1, sharex=True, squeeze=False)[:, 0]
        for i, (axes, use) in enumerate(zip(panels, uses, strict=True)):
            axes.fill_between(starts, shares[i] * 100, step="post", linewidth=0)
            axes.set_ylim(0, 105)
            axes.set_ylabel(f"dim {i + 1}\n[%]")
            axes.set_title(
                f"{use.kind} of {use.size}: {use.utilization:.1%} of its bandwidth",
                fontsize="small",
                loc="left",
            )
        panels[-1].set_xlabel("time [us]")
        collective = run.collective
        figure.suptitle(
            f"{collective.kind} of {format_size(collective.size)} on {run.topology.name}: activity"
        )

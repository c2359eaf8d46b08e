"""Measured and expected busbw over size, one panel per collective."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from hocket.plot.sizes import scale_sizes
from hocket.plot.style import ACCENT, NPU, SWITCH, picture, write_title
from hocket.telemetry.judge import Measured
from hocket.telemetry.verdict import MeasuredSize

_COLOURS = {
    "neither": NPU,
    "algorithm": "#d99a1f",
    "fabric": ACCENT,
    "start": "#7b4fa3",
    "faster than the bound": "black",
    "not told": SWITCH,
}
_PANEL = 3.4


def draw_measured(found: Measured, path: Path) -> None:
    """Draw every size that was measured, in the colour of what is slow, and what was to be expected.

    Raises
    ------
    SpecError
        If the file can be no picture, or cannot be written.
    """
    panels = [list(group) for _, group in groupby(found, key=lambda each: (each.kind, each.timing))]
    with picture(path, 8.0, 0.9 + _PANEL * len(panels)) as figure:
        axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
        for panel, sizes in zip(axes, panels, strict=True):
            _draw(panel, sizes)
        write_title(figure, f"measured on {found.topology.name}, {found.topology.npu_count} NPUs")


def _draw(axes: Any, sizes: list[MeasuredSize]) -> None:
    for name, style, colour in (
        ("bound", "--", "black"),
        ("best", "-.", "#3d8f5f"),
        ("predicted", "-", SWITCH),
    ):
        known = [each for each in sizes if getattr(each, name)]
        # busbw is in proportion to one over time
        rates = [each.busbw * each.seconds / getattr(each, name) / 1e9 for each in known]
        if known:
            label = "best plan" if name == "best" else name
            axes.plot(
                [each.size for each in known], rates, style, lw=1.2, color=colour, label=label
            )
    for verdict, colour in _COLOURS.items():
        own = [each for each in sizes if each.verdict == verdict]
        slow = verdict if verdict not in ("algorithm", "fabric", "start") else f"{verdict} slow"
        label = f"measured: {slow if verdict != 'neither' else 'neither slow'}"
        if own:
            rates = [each.busbw / 1e9 for each in own]
            axes.plot([each.size for each in own], rates, "o", ms=4.5, color=colour, label=label)
    scale_sizes(axes, sorted({each.size for each in sizes}), "busbw [GB/s]")
    alone = ", kernels alone" if sizes[0].timing == "kernel" else ""
    axes.set_title(f"{sizes[0].kind}{alone}", fontsize=9, loc="left")
    axes.legend(fontsize=7, frameon=False, loc="lower right")

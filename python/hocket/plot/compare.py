"""A comparison: time and gap of each algorithm."""

from __future__ import annotations

from pathlib import Path

from hocket import _core
from hocket.comparison.compare import Comparison
from hocket.plot.style import ACCENT, NPU, picture, write_title
from hocket.plot.timing import time_unit
from hocket.units import format_size, format_time_ps


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Draw collective times against the bound, fastest on top."""
    entries = list(comparison)[::-1]
    names = [f"{entry.algorithm} ({entry.chunks})" for entry in entries]
    unit, size = time_unit(min(entry.run.time_ps for entry in entries))
    times = [entry.run.time_ps / size for entry in entries]
    bound = comparison.bound.time_ps / size
    gaps = [_core.gap(entry.run.time_ps, comparison.bound.time_ps) for entry in entries]
    with picture(path, 7.0, 1.4 + 0.36 * len(entries)) as figure:
        axes = figure.add_subplot()
        bars = axes.barh(names, times, color=NPU, height=0.6)
        labels = [
            f"{format_time_ps(entry.run.time_ps)}, +{above:,.1%}"
            for entry, above in zip(entries, gaps, strict=True)
        ]
        axes.bar_label(bars, labels, padding=4)
        axes.axvline(bound, color=ACCENT, linestyle="--", linewidth=1.2)
        axes.annotate(
            f"bound {format_time_ps(comparison.bound.time_ps)}",
            (bound, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, 3),
            textcoords="offset points",
            color=ACCENT,
        )
        axes.set_xlim(0, max(times) * 1.25)
        axes.set_xlabel(f"collective time [{unit}], and gap to the bound (chunks in brackets)")
        collective = comparison.collective
        write_title(
            figure,
            f"{collective.name} of {format_size(collective.size)} among {len(collective.npus)} "
            f"NPUs of {comparison.topology.name}",
        )

"""Speedups of plans for groups over baselines, with the published ones."""

from __future__ import annotations

from pathlib import Path

from hocket.plot.style import NPU, picture, write_title
from hocket_studies.groups import EXPERIMENTS, Row

__all__ = ["draw_speedups"]


def draw_speedups(name: str, rows: list[Row], path: Path) -> None:
    """Draw speedups as bars, what the bound allows as lines, published ones as diamonds."""
    with picture(path, max(5.5, 1.5 * len(rows)), 3.6) as figure:
        axes = figure.add_subplot()
        found = [(i, row, row.speedup) for i, row in enumerate(rows) if row.speedup is not None]
        axes.bar([i for i, _, _ in found], [each for *_, each in found], 0.6, color=NPU)
        for i, row, speedup in found:
            most = speedup * (1 + (row.gap or 0.0))
            axes.hlines(most, i - 0.35, i + 0.35, color="black", linewidth=1)
            theirs = row.published.speedup
            if theirs is not None:
                axes.plot(i, theirs, "kD", markersize=4, markerfacecolor="white")
        axes.set_xticks(range(len(rows)), [row.target.name for row in rows], fontsize=7)
        axes.set_ylabel("speedup over direct or ring")
        write_title(figure, f"{EXPERIMENTS[name].title}; line: bound; diamond: published")

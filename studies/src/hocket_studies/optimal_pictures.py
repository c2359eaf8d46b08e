"""Gaps to the lower bound: a row a machine, a column a kind and size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap

from hocket.plot.style import picture, write_title
from hocket.units import format_size
from hocket_studies.optimal import KINDS, Cell, OptimalResult

__all__ = ["draw_gaps"]

_EDGES = (0.0, 0.02, 0.05, 0.10, 0.25, 0.50, 1.0, 1e9)
_COLOURS = ("#1a7f4b", "#5cb270", "#b9dd9a", "#f3e7a1", "#f2b56b", "#e0764a", "#b63a3a")


def draw_gaps(result: OptimalResult, path: Path) -> None:
    """Draw each cell in the colour of its gap, with the gap in per cent; grey where nothing applies."""
    cells = result.outcomes
    sizes = sorted({cell.size for cell in cells})
    columns = [(k, s) for k in KINDS for s in sizes if any(c.kind == k for c in cells)]
    rows = result.machines
    gaps = np.full((len(rows), len(columns)), np.nan)
    for i, (machine, failed) in enumerate(rows):
        for j, (kind, size) in enumerate(columns):
            out = cells.get(Cell(machine, kind, size, failed))
            if out is not None and out.gap is not None:
                gaps[i, j] = out.gap
    with picture(path, 2.6 + 0.42 * len(columns), 1.6 + 0.22 * len(rows)) as figure:
        axes = figure.add_subplot()
        colours = ListedColormap(list(_COLOURS)).with_extremes(bad="#dddddd")
        image = axes.imshow(
            gaps, aspect="auto", cmap=colours, norm=BoundaryNorm(_EDGES, len(_COLOURS))
        )
        labels = [f"{m} without {failed}" if failed else m for m, failed in rows]
        axes.set_yticks(range(len(rows)), labels, fontsize=6.5)
        words = [f"{kind} {format_size(size)}" for kind, size in columns]
        axes.set_xticks(range(len(columns)), words, fontsize=6.5, rotation=60, ha="right")
        axes.tick_params(length=0)
        for (i, j), gap in np.ndenumerate(gaps):
            if not np.isnan(gap):
                axes.text(j, i, f"{100 * gap:.0f}", ha="center", va="center", fontsize=5.5)
        bar = figure.colorbar(image, ax=axes, pad=0.01, ticks=_EDGES[:-1])
        bar.ax.set_yticklabels([f"{100 * edge:.0f} %" for edge in _EDGES[:-1]], fontsize=6.5)
        write_title(figure, "gap of the best plan to the lower bound, in per cent")

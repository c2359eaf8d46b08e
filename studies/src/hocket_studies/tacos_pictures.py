"""Figures 6, 19 and 21 of TACOS.

References
----------
Won et al.: TACOS (arXiv 2304.05301), figures 6, 19 and 21.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hocket.plot.style import ACCENT, NPU, SWITCH, picture, plain_numbers
from hocket_studies.tacos import TacosResult
from hocket_studies.tacos_targets import EXPERIMENTS

_COLORS = {
    "exact": ACCENT,
    "early": "#e0906f",
    "cluster": "#e8b96a",
    "greedy": NPU,
    "blind": "#8db8e2",
    "rank-ring": "#5c5c5c",
    "ring": SWITCH,
    "direct": "#c9c9c9",
}
_MAX_LINEAR = 20
"""Ratio up to which an axis need not be logarithmic."""


def draw_bars(result: TacosResult, name: str, path: Path) -> None:
    """Draw times over the reference's as bars, a group for each row, published ones as diamonds."""
    rows = result.rows[name]
    methods = [m for m in result.methods(name) if any(row.ratio(m) for row in rows)]
    width = 0.84 / max(len(methods), 1)
    with picture(path, max(5.5, 2.2 * len(rows)), 3.6) as figure:
        axes = figure.add_subplot()
        diamonds: tuple[list[float], list[float]] = ([], [])
        for i, method in enumerate(methods):
            shift = (i - (len(methods) - 1) / 2) * width
            found = [(j + shift, row) for j, row in enumerate(rows) if row.ratio(method)]
            heights = [row.ratio(method) or 0.0 for _, row in found]
            places = [place for place, _ in found]
            axes.bar(places, heights, width, color=_COLORS[method], label=method)
            for (place, row), height in zip(found, heights, strict=True):
                # Above the diamond, where there is one close by.
                above = max(height, row.published_ratio(method) or 0.0)
                is_near = above <= 1.15 * height
                axes.annotate(
                    f"{height:.3g}",
                    (place, above if is_near else height),
                    xytext=(0, 4 if is_near and row.published_ratio(method) else 1),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    fontsize=7,
                )
            for place, row in found:
                theirs = row.published_ratio(method)
                if theirs is not None:
                    diamonds[0].append(place)
                    diamonds[1].append(theirs)
        if diamonds[0]:
            _diamonds(axes, *diamonds)
        axes.set_xticks(range(len(rows)), [row.target.name for row in rows])
        axes.set_xlim(-0.5, len(rows) - 0.5)
        highest = max((row.ratio(m) or 0.0 for m in methods for row in rows), default=1.0)
        if highest > _MAX_LINEAR:
            axes.set_yscale("log")
            plain_numbers(axes.yaxis)
        axes.margins(y=0.1)
        axes.set_ylim(bottom=0.8 if highest > _MAX_LINEAR else 0.0)
        axes.set_ylabel("time / that of the column with 1")
        _legend(figure)
        figure.suptitle(f"{EXPERIMENTS[name].title} (TACOS, {name})")


def draw_sizes(result: TacosResult, name: str, path: Path) -> None:
    """Draw figure 21: times over greedy's by size."""
    rows = result.rows[name]
    with picture(path, 6.0, 3.6) as figure:
        axes = figure.add_subplot()
        for method in result.methods(name):
            points = [(row.target.chunks, row.ratio(method)) for row in rows]
            shown = [(chunks, ratio) for chunks, ratio in points if ratio is not None]
            if shown:
                axes.plot(*zip(*shown, strict=True), "o-", color=_COLORS[method], label=method)
        axes.set_xscale("log", base=2)
        chunks = [row.target.chunks for row in rows]
        axes.set_xticks(chunks, [row.target.name for row in rows])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("size, one chunk for each 25 MB")
        axes.set_ylabel("time / greedy's")
        _legend(figure)
        figure.suptitle(f"{EXPERIMENTS[name].title} (TACOS, {name})")


def _diamonds(axes: Any, places: list[float], heights: list[float]) -> None:
    axes.plot(
        places,
        heights,
        "kD",
        markersize=4,
        markerfacecolor="white",
        linestyle="none",
        label="published",
    )


def _legend(figure: Any) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)

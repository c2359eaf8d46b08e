"""Figures 8 to 11 of Themis, and one picture that sums them up.

``docs/img/themis.png`` is that last one, remade by
``hocket reproduce themis --figure 11 --output DIR`` and a copy of ``DIR/overview.png``.

References
----------
Rashidi et al.: Themis, ISCA 2022, figures 8 to 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hocket.plot.style import ACCENT, NPU, SWITCH, picture
from hocket_studies.themis import (
    ACTIVITY_NETWORK,
    ACTIVITY_PERIOD_US,
    IDEAL,
    NETWORKS,
    SIZES_MB,
    SWEEP_CHUNKS,
    SWEEP_SCHEDULERS,
    ThemisFigures,
)
from hocket_studies.themis_published import MEAN_UTILIZATION, PAPER_NAMES, SWEEP_UTILIZATION

_COLORS = {
    "hierarchical": SWITCH,
    "themis-fifo": "#8db8e2",
    "themis": NPU,
    "multirail-optimal": ACCENT,
}


def draw_times(result: ThemisFigures, path: Path) -> None:
    """Draw figure 8: times by network, size and scheduler, and Ideal as a line."""
    with picture(path, 9.0, 5.0) as figure:
        for axes, network in zip(figure.subplots(2, 3).flat, NETWORKS, strict=True):
            times = [result.times_ps(network, size) for size in SIZES_MB]
            series = {name: [t[name] * 1e-9 for t in times] for name in result.schedulers}
            _grouped(axes, [str(size) for size in SIZES_MB], series)
            for i, each in enumerate(times):
                ideal = each[IDEAL] * 1e-9
                label = "ideal" if i == 0 else None
                axes.plot([i - 0.45, i + 0.45], [ideal, ideal], "k", linewidth=1, label=label)
            axes.set_title(network, fontsize="medium")
            axes.set_xlabel("size [MB]")
            axes.set_ylabel("time [ms]")
        _legend(figure)
        figure.suptitle("All-reduce at 64 chunks: time (Themis, figure 8)")


def draw_activities(result: ThemisFigures, path: Path) -> None:
    """Draw figure 9: activity of each dimension over time, a row for each scheduler."""
    rows = len(result.activity)
    columns = result.activity[0].shares.shape[0]
    last = max(each.time_ps for each in result.activity) * 1e-9
    with picture(path, 9.0, 1.0 + 1.25 * rows) as figure:
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for row, each in zip(panels, result.activity, strict=True):
            for i, (axes, shares) in enumerate(zip(row, each.shares, strict=True)):
                edges = [j * ACTIVITY_PERIOD_US * 1e-3 for j in range(len(shares) + 1)]
                color = _COLORS[each.algorithm]
                axes.stairs(shares * 100, edges, fill=True, color=color)
                axes.set_xlim(0, last)
                axes.set_ylim(0, 105)
                title = f"{each.algorithm}: dimension {i + 1}"
                axes.set_title(title, fontsize="small", loc="left")
            row[0].set_ylabel("activity [%]")
        for axes in panels[-1]:
            axes.set_xlabel("time [ms]")
        figure.suptitle(
            f"All-reduce of 1 GB on {ACTIVITY_NETWORK}: activity in periods of "
            f"{ACTIVITY_PERIOD_US} us (Themis, figure 9)"
        )


def draw_sweep(result: ThemisFigures, path: Path) -> None:
    """Draw figure 10: utilization by number of chunks, published values as diamonds."""
    with picture(path, 6.0, 3.6) as figure:
        axes = figure.add_subplot()
        for name in SWEEP_SCHEDULERS:
            shares = [share * 100 for share in result.sweep_utilization(name).values()]
            axes.plot(SWEEP_CHUNKS, shares, "o-", color=_COLORS[name], label=name, markersize=4)
            published = SWEEP_UTILIZATION.get(name, {})
            axes.plot(
                list(published),
                [share * 100 for share in published.values()],
                "D",
                markersize=7,
                markerfacecolor="none",
                markeredgecolor=_COLORS[name],
                label=f"published {PAPER_NAMES[name]}" if published else None,
            )
        axes.set_xscale("log", base=2)
        axes.set_xticks(SWEEP_CHUNKS, [str(chunks) for chunks in SWEEP_CHUNKS])
        axes.set_ylim(0, 105)
        axes.set_xlabel("chunks")
        axes.set_ylabel("weighted utilization [%]")
        axes.legend(frameon=False, loc="lower right")
        figure.suptitle("All-reduce of 100 MB, mean of two networks (Themis, figure 10)")


def draw_utilizations(result: ThemisFigures, path: Path) -> None:
    """Draw figure 11: weighted utilization by network, size and scheduler."""
    with picture(path, 9.0, 5.0) as figure:
        panels = figure.subplots(2, 3, sharey=True)
        for axes, network in zip(panels.flat, NETWORKS, strict=True):
            series = {
                name: [result.case(network, size, name).utilization * 100 for size in SIZES_MB]
                for name in result.schedulers
            }
            _grouped(axes, [str(size) for size in SIZES_MB], series)
            axes.set_ylim(0, 105)
            axes.set_title(network, fontsize="medium")
            axes.set_xlabel("size [MB]")
        for axes in panels[:, 0]:
            axes.set_ylabel("weighted utilization [%]")
        _legend(figure)
        figure.suptitle("All-reduce at 64 chunks: use of all bandwidth (Themis, figure 11)")


def draw_overview(result: ThemisFigures, path: Path) -> None:
    """Draw mean utilization by network and scheduler, published means as diamonds."""
    groups = [*(name.removeprefix("themis-").replace("-", "\n", 1) for name in NETWORKS), "mean"]
    series = {
        name: [
            *(result.mean_utilization(name, network) * 100 for network in NETWORKS),
            result.mean_utilization(name) * 100,
        ]
        for name in result.schedulers
    }
    with picture(path, 8.0, 3.2) as figure:
        axes = figure.add_subplot()
        width = _grouped(axes, groups, series)
        for i, name in enumerate(result.schedulers):
            if name in MEAN_UTILIZATION:
                middle = len(groups) - 1 + (i - (len(series) - 1) / 2) * width
                axes.plot(
                    middle,
                    MEAN_UTILIZATION[name] * 100,
                    "kD",
                    markersize=4,
                    markerfacecolor="white",
                    label="published mean" if i == 0 else None,
                )
        axes.axvline(len(groups) - 1.5, color="#cccccc", linewidth=0.8)
        axes.set_ylim(0, 105)
        axes.set_ylabel("share of all bandwidth used [%]")
        _legend(figure)
        figure.suptitle("All-reduce of 100 MB to 1 GB among 1,024 NPUs, 64 chunks")


def _grouped(axes: Any, groups: Sequence[str], series: Mapping[str, Sequence[float]]) -> float:
    """Draw bars in groups; give the width of one."""
    width = 0.84 / len(series)
    for i, (name, values) in enumerate(series.items()):
        shift = (i - (len(series) - 1) / 2) * width
        places = [j + shift for j in range(len(groups))]
        axes.bar(places, values, width, color=_COLORS[name], label=name)
    axes.set_xticks(range(len(groups)), groups)
    return width


def _legend(figure: Any) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)

"""Figures 4 to 8 of Cohen et al.

References
----------
Cohen et al.: Routing for large ML models, section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hocket.plot.style import ACCENT, LINK, NPU, SWITCH, picture, plain_numbers
from hocket_studies import routing
from hocket_studies import routing_published as published
from hocket_studies.routing import Cell
from hocket_studies.routing_result import RoutingResult

COLORS = {
    "ecmp": LINK,
    "least-loaded": "#b8a04a",
    "annealing": "#c9c9c9",
    "greedy": ACCENT,
    "greedy-by-tor": "#e0906f",
    "edge-coloring": NPU,
    "ilp": "#8db8e2",
}
_OTHER = SWITCH
"""Colour of a method that has none of its own."""
_MODELS = {"bloom": "BLOOM, job 0", "gpt3-175b": "GPT-3 jobs"}
_Write = Callable[[float], float]


def draw_all_reduce(result: RoutingResult, path: Path) -> None:
    """Draw figure 4: all-reduce time by jobs, a panel for each ring, and by ring, one for each of jobs."""
    with picture(path, 12.0, 5.6) as figure:
        panels = figure.subplots(2, 3, sharey=True)
        for axes, ring in zip(panels[0], routing.RINGS, strict=True):
            groups = [Cell(jobs, ring, "") for jobs in routing.JOBS]
            _bars(axes, result, groups, "all-reduce", routing.FIRST)
            _name(axes, routing.JOBS, "concurrent jobs", f"ring of {ring}")
        for axes, jobs in zip(panels[1], (1, 3, 5), strict=True):
            groups = [Cell(jobs, ring, "") for ring in routing.RINGS]
            _bars(axes, result, groups, "all-reduce", routing.FIRST)
            _name(axes, routing.RINGS, "ring", f"{jobs} concurrent job{'s'[: jobs > 1]}")
        for row in panels:
            row[0].set_ylabel("all-reduce [s]")
        _finish(figure, result, "All-reduce time of BLOOM (Cohen et al., figure 4)")


def draw_flow_completion(result: RoutingResult, path: Path) -> None:
    """Draw figure 5: mean flow completion time by jobs."""
    title = "Flow completion time (Cohen et al., figure 5)"
    _by_model(result, path, "flow completion", "flow completion [s]", title)


def draw_throughput(result: RoutingResult, path: Path) -> None:
    """Draw figure 6: mean throughput of flows by jobs."""
    title = "Throughput of flows (Cohen et al., figure 6)"
    _by_model(result, path, "throughput", "throughput [Gbit/s]", title, lambda rate: rate * 8e-9)


def _by_model(
    result: RoutingResult,
    path: Path,
    metric: str,
    label: str,
    title: str,
    write: _Write = lambda value: value,
) -> None:
    with picture(path, 12.0, 5.6) as figure:
        panels = figure.subplots(2, 3, sharey=metric == "throughput")
        for row, (model, name) in zip(panels, _MODELS.items(), strict=True):
            for axes, ring in zip(row, routing.RINGS, strict=True):
                groups = [Cell(jobs, ring, "") for jobs in routing.JOBS]
                _bars(axes, result, groups, metric, model, write)
                _name(axes, routing.JOBS, "concurrent jobs", f"{name}, ring of {ring}")
            row[0].set_ylabel(label)
        _finish(figure, result, title)


def draw_failures(result: RoutingResult, path: Path) -> None:
    """Draw figure 8: all-reduce time by jobs, where spines failed."""
    rings = routing.RINGS[1:]
    with picture(path, 12.0, 5.6) as figure:
        panels = figure.subplots(len(rings), len(routing.FAILED), sharey=True)
        for row, ring in zip(panels, rings, strict=True):
            for axes, failed in zip(row, routing.FAILED, strict=True):
                groups = [Cell(jobs, ring, "", failed=failed) for jobs in routing.JOBS]
                _bars(axes, result, groups, "all-reduce", routing.FIRST)
                title = f"{failed} failed spine{'s'[: failed > 1]}, ring of {ring}"
                _name(axes, routing.JOBS, "concurrent jobs", title)
            row[0].set_ylabel("all-reduce [s]")
        _finish(figure, result, "All-reduce time of BLOOM under failures (Cohen et al., figure 8)")


def draw_timings(result: RoutingResult, path: Path) -> None:
    """Draw figure 7: time of an assignment by the number of flows."""
    found = result.timings or []
    with picture(path, 8.0, 4.2) as figure:
        axes = figure.add_subplot()
        for scheme in dict.fromkeys(one.scheme for one in found):
            each = [one for one in found if one.scheme == scheme]
            color = COLORS.get(scheme, _OTHER)
            times = [one.milliseconds for one in each]
            axes.plot([one.flows for one in each], times, "o-", color=color, label=scheme)
        for scheme, theirs in published.ASSIGNMENT_MS.items():
            label = f"{scheme}, released code"
            axes.plot(
                list(theirs),
                list(theirs.values()),
                "D--",
                color=COLORS.get(scheme, _OTHER),
                markersize=4,
                markerfacecolor="white",
                linewidth=1,
                label=label,
            )
        axes.plot(
            (100, 1_500), (published.GREEDY_MS,) * 2, ":", color="black", label="greedy, paper"
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_numbers(axes.xaxis)
        plain_numbers(axes.yaxis)
        axes.set_xlabel("flows between random ToRs, 64 ToRs and 32 spines")
        axes.set_ylabel("CPU time of an assignment [ms]")
        figure.legend(loc="outside right center", frameon=False, fontsize=8)
        figure.suptitle("Time of an assignment, this machine (Cohen et al., figure 7)")


def _bars(
    axes: Any,
    result: RoutingResult,
    groups: Sequence[Cell],
    metric: str,
    model: str,
    write: _Write = lambda value: value,
) -> None:
    """Draw a bar for each method of each group: the mean over seeds, and their range as a whisker."""
    methods = _methods(result)
    width = 0.86 / len(methods)
    for i, method in enumerate(methods):
        shift = (i - (len(methods) - 1) / 2) * width
        for j, group in enumerate(groups):
            spread = result.study.spread(Cell(**{**vars(group), "method": method}), metric, model)
            if spread is None:
                continue
            middle, least, most = map(write, spread)
            color = COLORS.get(method, _OTHER)
            axes.bar(j + shift, middle, width, color=color)
            axes.plot((j + shift,) * 2, (least, most), color="black", linewidth=0.9)


def _methods(result: RoutingResult) -> list[str]:
    """Return the methods that were run, in the order of tables."""
    run = {cell.method for cell in result.study.outcomes}
    return [method for method in routing.METHODS if method in run]


def _name(axes: Any, groups: Sequence[int], label: str, title: str) -> None:
    axes.set_xticks(range(len(groups)), [str(group) for group in groups])
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.set_xlabel(label)
    axes.set_title(title, fontsize=9)


def _finish(figure: Any, result: RoutingResult, title: str) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=COLORS.get(name, _OTHER), label=name) for name in _methods(result)]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    seeds = result.study.seeds
    figure.suptitle(f"{title}; means of {seeds} seed{'s'[: seeds > 1]}, whiskers: their range")

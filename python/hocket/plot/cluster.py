"""Jobs on a cluster: what each did over time, and how much of each link they used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from hocket.plot.style import LINK, picture
from hocket.plot.timing import time_axis, time_unit
from hocket.routing import ClusterRun, JobRun
from hocket.units import counted, format_time_ps

BINS = 600
"""Of rates over time."""
_MAX_NAMED = 40
"""Jobs that have room for a name each."""
_MAX_LABELS = 16
"""Switches along an axis that have room for a number each."""
_COMPUTING, _FAILED = "#d9d9d9", "#cfe0f2"
_HIGHEST = 5.5
"""Of a picture of ToRs by spines [inches]."""
_PS = 1e-12
_GBIT = 1e9 / 8


class _Unit(NamedTuple):
    name: str
    seconds: float


def _unit(seconds: float) -> _Unit:
    """Return the unit in which a time has few digits before the point."""
    name, picoseconds = time_unit(seconds / _PS)
    return _Unit(name, picoseconds * _PS)


def draw_timeline(run: ClusterRun, path: Path) -> None:
    """Draw when each job computed and communicated and, where the run kept its rates, how fast.

    A run keeps its rates with ``keep_rates=True``.
    """
    jobs = run.jobs
    unit = _unit(run.time)
    rates = job_rates(run)
    rows = 0.9 + min(len(jobs), _MAX_NAMED) * 0.34
    below = 0.0 if rates is None else 1.9
    with picture(path, 10.0, 1.0 + rows + below) as figure:
        if rates is None:
            panels = [figure.add_subplot()]
        else:
            panels = list(figure.subplots(2, 1, sharex=True, height_ratios=[rows, below]))
        colors = _colors(len(jobs))
        for time in failures(run):
            for axes in panels:
                axes.axvline(time / unit.seconds, color="black", linewidth=0.9, linestyle="--")
        _draw_phases(panels[0], jobs, colors, unit)
        _draw_legend(panels[0], has_failed=bool(failures(run)))
        if rates is not None:
            _draw_rates(panels[1], rates, run.time / unit.seconds, colors)
        time_axis(panels[-1], run.time_ps, unit_ps=unit.seconds / _PS)
        figure.suptitle(
            f"{counted(len(jobs), 'job')} on {run.cluster.topology.name}, {run.scheme}: "
            f"{format_time_ps(run.time_ps)}"
        )


def failures(run: ClusterRun) -> list[float]:
    """Return the times of failures that the run had to answer with other paths [s]."""
    return [each.time for each in run.decisions if each.is_repair]


def job_rates(run: ClusterRun, bins: int = BINS) -> NDArray[np.float64] | None:
    """Mean rate at which each job sends in equal parts of the run [bytes/s], (jobs, bins).

    None where the run kept no rates, or nothing was sent.
    """
    changes = run.core.rates
    if not changes or not run.core.time_ps:
        return None
    edges = np.linspace(0.0, float(run.core.time_ps), bins + 1)
    found = np.zeros((len(run.jobs), bins))
    for job in range(len(run.jobs)):
        own = [(time, rate) for time, of, rate in changes if of == job]
        times = np.array([0.0, *(time for time, _ in own), edges[-1]])
        steps = np.array([0.0, *(rate for _, rate in own)])
        sent = np.concatenate([[0.0], np.cumsum(steps * np.diff(times))])
        found[job] = np.diff(np.interp(edges, times, sent)) / np.diff(edges)
    return found


def _colors(count: int) -> list[Any]:
    """Choose a colour for each job; neighbours differ."""
    known = matplotlib.colormaps["tab10"].colors  # type: ignore[attr-defined]
    return [known[i % len(known)] for i in range(count)]


def _draw_phases(axes: Any, jobs: Sequence[JobRun], colors: Sequence[Any], unit: _Unit) -> None:
    for row, (job, color) in enumerate(zip(jobs, colors, strict=True)):
        computing = [
            (each.compute_start, each.start - each.compute_start) for each in job.iterations
        ]
        sending = [(each.start, each.all_reduce) for each in job.iterations]
        for phases, fill, width in ((computing, _COMPUTING, 0.0), (sending, color, 0.7)):
            bars = [(start / unit.seconds, lasts / unit.seconds) for start, lasts in phases]
            # An outline keeps what is narrower than a pixel in sight.
            axes.broken_barh(
                bars, (row - 0.36, 0.72), facecolors=fill, edgecolor=fill, linewidth=width
            )
    axes.set_ylim(len(jobs) - 0.4, -0.6)
    if len(jobs) <= _MAX_NAMED:
        axes.set_yticks(range(len(jobs)), [_label(job) for job in jobs])
        beside = axes.secondary_yaxis("right")
        beside.set_yticks(range(len(jobs)), [_result(job) for job in jobs])
        for each in (axes, beside):
            each.tick_params(axis="y", length=0, labelsize=7)
        beside.spines["right"].set_visible(False)
    else:
        axes.set_ylabel("job")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_legend(axes: Any, *, has_failed: bool) -> None:
    handles: list[Any] = [
        Patch(color=_COMPUTING, label="computing"),
        Patch(color=LINK, label="communicating, in the job's colour"),
    ]
    if has_failed:
        label = "failure, flows get other paths"
        handles.append(Line2D([], [], color="black", linewidth=0.9, linestyle="--", label=label))
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=3,
        frameon=False,
        fontsize=8,
        borderaxespad=0.1,
    )


def _label(job: JobRun) -> str:
    name = job.job.name if len(job.job.name) <= 24 else f"{job.job.name[:23]}…"
    return f"{name}, {counted(job.job.gpus, 'GPU')}"


def _result(job: JobRun) -> str:
    """Write the mean all-reduce and how many times the ideal it is."""
    if not job.ideal:
        return "nothing over NICs"
    return f"all-reduce {format_time_ps(round(job.all_reduce / _PS))}\n{job.slowdown:.2f} × ideal"


def _draw_rates(axes: Any, rates: NDArray[np.float64], time: float, colors: Sequence[Any]) -> None:
    edges = np.linspace(0.0, time, rates.shape[1] + 1)
    base = np.zeros(rates.shape[1])
    for own, color in zip(rates / _GBIT / 1000, colors, strict=True):
        axes.stairs(base + own, edges, baseline=base, fill=True, color=color)
        base = base + own
    axes.set_ylim(bottom=0)
    axes.set_ylabel("sent, jobs\nstacked [Tbit/s]")


def draw_links(run: ClusterRun, path: Path) -> None:
    """Draw the share of its bandwidth that each link carried over the whole run.

    On a two-level Clos, links up and down are ToRs by spines; links of all tiers are lines in order of
    their use.
    """
    tiers = link_shares(run)
    grids = [_grid(run, key) for key in (("tor", "spine"), ("spine", "tor")) if key in tiers]
    most = max((shares.max() for _, shares in tiers.values() if len(shares)), default=0.0) or 1.0
    high = min(1.6 + 0.07 * max((len(grid) for grid in grids), default=0), _HIGHEST)
    with picture(path, 9.0, 3.2 + (high if grids else 0.0)) as figure:
        if grids:
            halves: Any = figure.subfigures(2, 1, height_ratios=[high, 2.6])
            above, below = halves
            panels = above.subplots(1, len(grids), squeeze=False)[0]
            titles = ("up, ToR to spine", "down, spine to ToR")
            for axes, grid, title in zip(panels, grids, titles, strict=False):
                image = _draw_grid(axes, grid, title, float(most))
            above.colorbar(
                image,
                ax=list(panels),
                label="share of the bandwidth",
                format=PercentFormatter(1.0),
            )
        else:
            below = figure
        _draw_tiers(below.subplots(), tiers, float(most))
        figure.suptitle(
            f"{counted(len(run.jobs), 'job')} on {run.cluster.topology.name}, {run.scheme}: mean use of "
            f"links over {format_time_ps(run.time_ps)}"
        )


_Tiers = dict[tuple[str, str], tuple[NDArray[np.intp], NDArray[np.float64]]]


def link_shares(run: ClusterRun) -> _Tiers:
    """Share of the bandwidth that links carried over the whole run, by kinds of their two devices.

    Returns
    -------
    dict of (str, str) to (links, shares)
        Kinds are names without numbers, such as ``("tor", "spine")``.
    """
    topology = run.cluster.topology
    kinds = [name.rstrip("0123456789") for name in topology.device_names]
    could = topology.link_bandwidth.astype(np.float64) * max(run.time, _PS)
    shares = run.link_bytes / could
    found: dict[tuple[str, str], list[int]] = {}
    ends = zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True)
    for link, (src, dst) in enumerate(ends):
        found.setdefault((kinds[src], kinds[dst]), []).append(link)
    return {key: (np.array(links), shares[links]) for key, links in found.items()}


def _grid(run: ClusterRun, key: tuple[str, str]) -> NDArray[np.float64]:
    """Return shares as (ToRs, spines); not a number where there is no link."""
    topology = run.cluster.topology
    links, shares = link_shares(run)[key]
    ends = (topology.link_src[links], topology.link_dst[links])
    tors, spines = ends if key[0] == "tor" else reversed(ends)

    def numbers(devices: Any, kind: str) -> list[int]:
        return [int(topology.device_names[device].removeprefix(kind)) for device in devices]

    rows, columns = numbers(tors, "tor"), numbers(spines, "spine")
    names = topology.device_names
    sizes = [
        1 + max(int(name.removeprefix(kind)) for name in names if name.startswith(kind))
        for kind in ("tor", "spine")
    ]
    found = np.full(sizes, np.nan)
    found[rows, columns] = shares
    return found


def _draw_grid(axes: Any, grid: NDArray[np.float64], title: str, most: float) -> Any:
    colors = matplotlib.colormaps["magma_r"].with_extremes(bad=_FAILED)
    image = axes.imshow(
        grid, aspect="auto", interpolation="nearest", cmap=colors, vmin=0.0, vmax=most
    )
    for axis, size in ((axes.yaxis, grid.shape[0]), (axes.xaxis, grid.shape[1])):
        axis.set_major_locator(MaxNLocator(integer=True))
        if size <= _MAX_LABELS:
            axis.set_ticks(range(size))
    axes.set_xlabel("spine")
    axes.set_ylabel("ToR")
    lost = int(np.isnan(grid).sum())
    more = f"; {lost:,} of {grid.size:,} links failed (blue)" if lost else ""
    axes.set_title(title + more, fontsize=9)
    return image


_ORDER = ("npu", "tor", "edge", "agg", "spine", "core")
_NAMES = {"npu": "NIC", "tor": "ToR"}


def _draw_tiers(axes: Any, tiers: _Tiers, most: float) -> None:
    """Draw a line for each tier and direction: its links, the most used first."""

    def height(key: tuple[str, str]) -> tuple[bool, int]:
        ranks = [_ORDER.index(kind) if kind in _ORDER else len(_ORDER) for kind in key]
        return ranks[0] > ranks[1], min(ranks)

    pairs = list(dict.fromkeys(frozenset(key) for key in sorted(tiers, key=height)))
    colors = dict(zip(pairs, _colors(len(pairs)), strict=True))
    for key in sorted(tiers, key=height):
        color = colors[frozenset(key)]
        _, shares = tiers[key]
        name = " to ".join(_NAMES.get(kind, kind) for kind in key)
        places = np.linspace(0.0, 100.0, len(shares) + 1)
        style = ":" if height(key)[0] else "-"
        label = f"{name}: mean {shares.mean():.1%}, most {shares.max():.1%}"
        axes.stairs(
            np.sort(shares)[::-1],
            places,
            baseline=None,
            color=color,
            linestyle=style,
            linewidth=1.6,
            label=label,
        )
    axes.set_xlim(0, 100)
    axes.set_ylim(0, most * 1.05)
    axes.xaxis.set_major_formatter(PercentFormatter())
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("links of the tier, the most used first")
    axes.set_ylabel("share of the bandwidth")
    axes.legend(frameon=False, fontsize=8, loc="upper right")

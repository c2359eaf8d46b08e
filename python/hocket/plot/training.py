"""Training iterations: what each pipeline stage computed and sent over time, and what the time went to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from hocket.plot.style import CAUSE_COLORS, picture, write_title
from hocket.plot.timing import time_axis
from hocket.training.parallel import CAUSES
from hocket.training.parallel import PASSES as _ALL_PASSES
from hocket.units import format_time_ps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hocket.training.result import TrainingRun

BINS = 1600
"""Of time; what is narrower is drawn as a share of one."""
PASSES = ("forward", "recompute", "backward", "update")
_ROW_OF = ["backward" if name.endswith("gradient") else name for name in _ALL_PASSES]
"""The row of each pass, by its number."""
_COLORS = {
    "forward": "#2f6db5",
    "recompute": "#a9c7ea",
    "backward": "#3f9460",
    "update": "#4d4d4d",
    **CAUSE_COLORS,
    "waiting": "#e6e6e6",
}
_COMPUTE_HEIGHT, _CAUSE_HEIGHT, _GAP = 1.0, 0.42, 0.45
_INCHES = 0.34
"""Of a row of compute, where there are few."""
_HIGHEST = 10.0
_WIDTH = 11.0
_MAX_APART = 16
"""Stages that have room for rows of communication below those of compute."""
_MAX_NAMED = 32
"""Stages that have room for names."""
_EDGE, _DIGIT, _MARGIN = 5, 9, 5
"""Bins that a pass of a micro-batch needs for an edge of its own, and for digits of its number."""
_BUSY = 0.3
"""Share of a pass that is computed, so that its number is on its colour."""
_WHOLE = 1 - 1e-9


class Row(NamedTuple):
    """A row of the picture: shares of each bin of time that are spent on each of some things.

    The track is ``compute`` or the cause of calls. Shares are of passes, and of causes that compute waits
    for, with ``hidden`` for calls that it does not wait for.
    """

    stage: int
    track: str
    shares: dict[str, NDArray[np.float64]]


def draw_training(run: TrainingRun, path: Path) -> None:
    """Draw the time-line, and where the time of an iteration went."""
    stages = len(run.stages)
    rows = rows_of(run, together=stages > _MAX_APART)
    places, height = _places(rows)
    scale = min(_INCHES, (_HIGHEST - 3) / height)
    with picture(path, _WIDTH, height * scale + 2.6) as figure:
        upper, lower = figure.subplots(2, 1, height_ratios=[height * scale + 0.6, 0.62])
        edges = np.linspace(0.0, run.total_ps, BINS + 1)
        _draw_rows(upper, _evened(run, rows, edges), places, edges)
        if stages <= _MAX_APART:
            _draw_passes(upper, run, places)
        _label_rows(upper, rows, places, height, stages)
        time_axis(upper, run.total_ps)
        _draw_legend(upper, rows)
        _draw_breakdown(lower, run)
        write_title(figure, _title(run))


def _title(run: TrainingRun) -> str:
    count = run.options.iterations
    many = f", mean of {count:,} iterations" if count > 1 else ""
    return (
        f"{run.workload.name} on {run.topology.name}, {run.parallel}, {run.algorithm}: "
        f"{format_time_ps(round(run.time_ps))} an iteration{many}"
    )


def rows_of(run: TrainingRun, bins: int = BINS, *, together: bool = False) -> list[Row]:
    """Return the rows of the picture: of each stage what it computes, then what it sends, by cause.

    With ``together`` a stage has one row: what it computes, and what compute waits for.

    Complexity: O(nodes x log nodes + rows x bins).
    """
    columns, outcome = run.columns, run.outcome
    actor, does, cause, call = columns.actor, columns.does, columns.cause, columns.call
    start = outcome.start_ps.astype(np.float64)
    end = outcome.end_ps.astype(np.float64)
    waited = run.exposed_ps.astype(np.float64)
    edges = np.linspace(0.0, max(run.total_ps, 1), bins + 1)
    rows = []
    for stage in range(len(run.stages)):
        own = actor == stage
        shares = {}
        for name in PASSES:
            numbers = [each for each, of in enumerate(_ROW_OF) if of == name]
            mask = own & (cause >= len(CAUSES)) & np.isin(does, numbers)
            shares[name] = covered(start[mask], end[mask], edges)
        rows.append(Row(stage, "compute", shares))
        for i, name in enumerate(CAUSES):
            mask = own & (cause == i)
            if not mask.any():
                continue
            calls = call[mask]
            began = outcome.call_start_ps[calls].astype(np.float64)
            over = outcome.call_end_ps[calls].astype(np.float64)
            exposed = covered(end[mask] - waited[mask], end[mask], edges)
            either = covered(began, over, edges)
            if together:
                shares[name] = exposed
                continue
            hidden = np.maximum(either - exposed, 0.0)
            rows.append(Row(stage, name, {name: exposed, "hidden": hidden}))
    return rows


def covered(
    start: NDArray[np.float64], end: NDArray[np.float64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the share of each bin that lies in one of some spans."""
    kept = end > start
    start, end = start[kept], end[kept]
    if not len(start):
        return np.zeros(len(edges) - 1)
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    # Spans that overlap or touch are one.
    first = np.concatenate([[True], start[1:] > end[:-1]])
    begins, ends = start[first], end[np.concatenate([first[1:], [True]])]
    lengths = np.cumsum(ends - begins)
    times = np.column_stack([begins, ends]).ravel()
    before = np.column_stack([lengths - (ends - begins), lengths]).ravel()
    inside = np.interp(edges, times, before)
    shares: NDArray[np.float64] = np.clip(np.diff(inside) / np.diff(edges), 0.0, 1.0)
    return shares


def _places(rows: Sequence[Row]) -> tuple[list[tuple[float, float]], float]:
    """Return each row's top and height, and the height of all, with gaps between stages."""
    places, top = [], 0.0
    for i, row in enumerate(rows):
        if i and row.track == "compute":
            top += _GAP if rows[i - 1].track != "compute" else 0.0
        height = _COMPUTE_HEIGHT if row.track == "compute" else _CAUSE_HEIGHT
        places.append((top, height))
        top += height + 0.06
    return places, top


def _evened(run: TrainingRun, rows: Sequence[Row], edges: NDArray[np.float64]) -> list[Row]:
    """Spread what is recomputed evenly over the backward pass that it is for.

    Layers are recomputed one by one, so that its bins would alternate between two colours.
    """
    if not any(row.shares["recompute"].any() for row in rows if row.track == "compute"):
        return list(rows)
    found = {row.stage: dict(row.shares) for row in rows if row.track == "compute"}
    for shares in found.values():
        for name in ("recompute", "backward"):
            shares[name] = shares[name].copy()
    for each in passes_of(run):
        low, high = np.searchsorted(edges, (each.start, each.end + 1))
        inside = slice(int(low), int(high) - 1)
        if each.name != "backward" or inside.stop - inside.start < 2:
            continue
        for name in ("recompute", "backward"):
            own = found[each.stage][name]
            own[inside] = own[inside].mean()
    return [
        row._replace(shares=found[row.stage]) if row.track == "compute" else row for row in rows
    ]


def _draw_rows(
    axes: Any,
    rows: Sequence[Row],
    places: Sequence[tuple[float, float]],
    edges: NDArray[np.float64],
) -> None:
    shapes: dict[Any, list[NDArray[np.float64]]] = {}
    for row, (top, height) in zip(rows, places, strict=True):
        base = np.zeros(len(edges) - 1)
        if row.track == "compute":
            axes.axhspan(top, top + height, color=_COLORS["waiting"], linewidth=0, zorder=0)
        for name, share in row.shares.items():
            color = _color(row.track, name)
            above = np.minimum(base + _sharpened(share), 1.0)
            corners = _rectangles(base, above, edges)
            corners[..., 1] = top + height * (1 - corners[..., 1])
            shapes.setdefault(color, []).append(corners)
            base = above
    for color, corners_of in shapes.items():
        found = np.concatenate(corners_of)
        axes.add_collection(PolyCollection(list(found), facecolors=[color], linewidths=0))


def _sharpened(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round shares of bins beside whole ones, so that long spans have straight ends."""
    whole = np.concatenate([[False], share > _WHOLE, [False]])
    beside = whole[:-2] | whole[2:]
    return np.where(beside, np.round(share), share)


def _rectangles(
    low: NDArray[np.float64], high: NDArray[np.float64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return corners of rectangles between two steps, one for bins that are equal: (count, 4, 2)."""
    changes = (np.diff(low) != 0) | (np.diff(high) != 0)
    first = np.flatnonzero(np.concatenate([[True], changes]))
    last = np.concatenate([first[1:], [len(low)]])
    kept = high[first] > low[first]
    first, last = first[kept], last[kept]
    left, right, bottom, top = edges[first], edges[last], low[first], high[first]
    xs = np.column_stack([left, right, right, left])
    ys = np.column_stack([bottom, bottom, top, top])
    return np.stack([xs, ys], axis=-1)


def _color(track: str, name: str) -> Any:
    return _pale(to_rgb(_COLORS[track])) if name == "hidden" else to_rgb(_COLORS[name])


def _pale(color: tuple[float, float, float]) -> tuple[float, float, float]:
    red, green, blue = (1 - 0.32 * (1 - part) for part in color)
    return red, green, blue


def _draw_passes(axes: Any, run: TrainingRun, places: Sequence[tuple[float, float]]) -> None:
    """Mark where passes of micro-batches begin and, where there is room, which they are."""
    if run.parallel.parts == 1 and run.options.iterations == 1:
        return
    bin_ps = run.total_ps / BINS
    tops = _compute_tops(run, places)
    lines = []
    for stage, name, number, start, end, busy in passes_of(run):
        top = tops[stage]
        if end - start >= _EDGE * bin_ps:
            lines.append([(start, top), (start, top + _COMPUTE_HEIGHT)])
        label = str(number + 1)
        has_room = end - start >= (_DIGIT * len(label) + _MARGIN) * bin_ps
        has_room = has_room and busy > _BUSY * (end - start)
        if has_room and name != "update" and run.parallel.parts > 1:
            axes.text(
                (start + end) / 2,
                top + _COMPUTE_HEIGHT / 2,
                label,
                color="white",
                path_effects=[withStroke(linewidth=1.5, foreground=_COLORS[name])],
                fontsize=7,
                ha="center",
                va="center",
            )
    axes.add_collection(LineCollection(lines, colors="white", linewidths=0.7))


def _compute_tops(run: TrainingRun, places: Sequence[tuple[float, float]]) -> list[float]:
    return [top for top, height in places if height == _COMPUTE_HEIGHT][: len(run.stages)]


class MicroPass(NamedTuple):
    """A pass of a micro-batch through a stage, or an update: its number, from 0, and times [ps].

    ``busy`` is what was computed; in the rest of it compute waited.
    """

    stage: int
    name: str
    number: int
    start: int
    end: int
    busy: int


def passes_of(run: TrainingRun) -> list[MicroPass]:
    """Return passes of micro-batches, numbered in each iteration, and updates.

    One ends where a stage does something else, or computes again what is in it already.
    """
    starts, ends = run.outcome.start_ps.tolist(), run.outcome.end_ps.tolist()
    found: list[MicroPass] = []
    counts: dict[tuple[int, str, int], int] = {}
    open_at: dict[int, int] = {}
    done: dict[int, set[tuple[int, int]]] = {}
    columns = run.columns
    rows = (columns.actor, columns.does, columns.layer, columns.iteration, columns.cause)
    nodes = zip(*(row.tolist() for row in rows), strict=True)
    for node, (stage, does, layer, iteration, cause) in enumerate(nodes):
        if cause < len(CAUSES):
            continue
        name = _ROW_OF[does]
        name = "backward" if name == "recompute" else name
        what = (layer, does)
        is_same = stage in open_at and found[open_at[stage]].name == name
        if not is_same or what in done[stage]:
            key = (stage, name, iteration)
            counts[key] = counts.get(key, -1) + 1
            open_at[stage] = len(found)
            done[stage] = set()
            found.append(MicroPass(stage, name, counts[key], starts[node], starts[node], 0))
        at = open_at[stage]
        busy = found[at].busy + ends[node] - starts[node]
        found[at] = found[at]._replace(end=ends[node], busy=busy)
        done[stage].add(what)
    return found


def _label_rows(
    axes: Any,
    rows: Sequence[Row],
    places: Sequence[tuple[float, float]],
    height: float,
    stages: int,
) -> None:
    axes.set_ylim(height, -0.15)
    axes.tick_params(axis="y", length=0)
    named = [(top + high / 2, row) for row, (top, high) in zip(rows, places, strict=True)]
    named = named[:: -(-stages // _MAX_NAMED)]
    labels = []
    for _, row in named:
        stage = f"stage {row.stage + 1}" if stages > 1 else "compute"
        labels.append(stage if row.track == "compute" else row.track)
    axes.set_yticks([place for place, _ in named], labels)
    for label, (_, row) in zip(axes.get_yticklabels(), named, strict=True):
        label.set_fontsize(8 if row.track == "compute" else 6.5)
        if row.track != "compute":
            label.set_color(_COLORS[row.track])
    axes.spines["left"].set_visible(False)


def _draw_legend(axes: Any, rows: Sequence[Row]) -> None:
    computed = [row for row in rows if row.track == "compute"]
    used = [name for name in PASSES if any(row.shares[name].any() for row in computed)]
    handles = [Patch(color=_COLORS[name], label=name) for name in used]
    apart = [name for name in CAUSES if any(row.track == name for row in rows)]
    causes = apart or [name for name in CAUSES if any(name in row.shares for row in rows)]
    handles.append(Patch(color=_COLORS["waiting"], label="compute waits (bubble)"))
    handles += [Patch(color=_COLORS[name], label=name) for name in causes]
    if apart:
        pale = _pale(to_rgb(_COLORS[apart[0]]))
        handles.append(Patch(color=pale, label="pale: compute does not wait for it"))
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=len(handles),
        frameon=False,
        fontsize=7.5,
        borderaxespad=0.1,
        handlelength=1.2,
        columnspacing=1.2,
    )


def _draw_breakdown(axes: Any, run: TrainingRun) -> None:
    """Draw one bar: the shares of an iteration."""
    mean = run.breakdown.over(run.options.iterations)
    parts = [("forward", mean.forward), ("backward", mean.backward), ("update", mean.update)]
    parts += [(name, time) for name, time in mean.exposed.items()]
    parts.append(("waiting", mean.waiting))
    total = mean.total or 1.0
    left = 0.0
    for name, time in parts:
        share = time / total
        if share <= 0:
            continue
        axes.barh(
            0,
            share,
            left=left,
            height=0.8,
            color=_COLORS[name],
            edgecolor="#8a8a8a" if name == "waiting" else "white",
            linewidth=0.5,
        )
        exposed = f"{name} exposed" if name in CAUSES else name
        if name == "forward" and run.options.recompute:
            exposed = "forward, recompute"
        if share >= 0.035:
            text = f"{exposed}\n{share:.1%}" if share >= 0.09 else f"{share:.0%}"
            color = "black" if name == "waiting" else "white"
            axes.text(left + share / 2, 0, text, color=color, fontsize=7, ha="center", va="center")
        left += share
    axes.set_xlim(0, 1)
    axes.set_yticks([0], ["an iteration"], fontsize=8)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)

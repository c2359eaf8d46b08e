"""A plan on its time-expanded network: NPUs as rows, time to the right, transfers as arrows.

Where every transfer starts and ends on a multiple of one duration, time is drawn as slots: a dot
for each NPU and slot, and in grey the links that a slot leaves idle. Otherwise time is an axis.
A transfer that other NPUs pass on is an arrow to each of them, and one on to its receiver.

References
----------
Won et al.: TACOS (arXiv 2304.05301), section IV and figure 20.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from hocket.errors import SpecError
from hocket.plans.plan import Plan
from hocket.plot.style import picture, write_title
from hocket.plot.timing import time_axis
from hocket.simulation.run import Run
from hocket.units import format_size, format_time_ps

MAX_NPUS, MAX_TRANSFERS = 64, 2_000
"""What can be read in one picture."""

CROWDED = 600
"""Arrows above which one is hard to follow."""
_MAX_SLOTS = 120
_NEAR = 0.02  # chunks of unequal size, by a byte, start a little beside their slot
_MAX_LABELS = 400
_MAX_IDLE = 60_000
_MAX_IN_LEGEND = 12
_IDLE, _DOT = "#dedede", "#404040"


@dataclass(frozen=True)
class Expanded:
    """The arrows of a plan, as columns of equal length in order of start."""

    transfer: NDArray[np.int64]
    chunk: NDArray[np.int64]
    """The first chunk carried."""
    chunk_count: NDArray[np.int64]
    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    start_ps: NDArray[np.int64]
    end_ps: NDArray[np.int64]
    slot_ps: int | None
    """Length of a slot; ``None`` where starts and ends are no multiples of one duration."""
    slots: int
    """How many slots; 0 where there are none."""

    def __len__(self) -> int:
        return len(self.transfer)


def check_readable(plan: Plan, chunk: int | None = None) -> None:
    """Refuse a plan of which a picture could not be read, or a chunk that is not there.

    Raises
    ------
    SpecError
        With the limit and what to use instead.
    """
    if chunk is not None and not 0 <= chunk < plan.chunks:
        raise SpecError("chunk", f"there is no {chunk}", f"chunks are 0 to {plan.chunks - 1}")
    npus, transfers = len(_ends(plan)), int(_carries(plan, chunk).sum())
    if npus > MAX_NPUS or transfers > MAX_TRANSFERS:
        one = "" if chunk is not None or npus > MAX_NPUS else "; for one chunk use --chunk 0"
        raise SpecError(
            "--ten",
            f"{npus:,} NPUs and {transfers:,} transfers are too many to read; it draws up "
            f"to {MAX_NPUS} NPUs and {MAX_TRANSFERS:,} transfers{one}",
            "for heat of links over time use `hocket simulate --plot`",
        )


def _ends(plan: Plan) -> list[int]:
    """Return the devices that have a row: NPUs, and switches at which transfers end."""
    npus = plan.topology.npu_count
    ends = np.union1d(plan.transfers.src, plan.transfers.dst)
    return [*range(npus), *ends[ends >= npus].tolist()]


def _carries(plan: Plan, chunk: int | None) -> NDArray[np.bool_]:
    """Mark the transfers that carry a chunk; all where it is None."""
    columns = plan.transfers
    if chunk is None:
        return np.ones(len(columns), dtype=bool)
    first = columns.chunk.astype(np.int64)
    return np.asarray((first <= chunk) & (chunk < first + columns.chunk_count))


def expand(run: Run, chunk: int | None = None) -> Expanded:
    """Return the arrows of a run, or of one chunk, and the slots that all arrows keep to."""
    columns = run.plan.transfers
    start, end = run.start_ps.astype(np.int64), run.end_ps.astype(np.int64)
    order = np.lexsort((np.arange(len(start)), start))
    order = order[_carries(run.plan, chunk)[order]]
    slot, slots = _slots(start, end)
    return Expanded(
        transfer=order,
        chunk=columns.chunk[order].astype(np.int64),
        chunk_count=columns.chunk_count[order].astype(np.int64),
        src=columns.src[order].astype(np.int64),
        dst=columns.dst[order].astype(np.int64),
        start_ps=start[order],
        end_ps=end[order],
        slot_ps=slot,
        slots=slots,
    )


def _slots(start: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[int | None, int]:
    """Find the duration of which every start and end is a multiple, if there is one."""
    lengths = end - start
    if not len(lengths) or lengths.min() <= 0:
        return None, 0
    count = float(end.max()) / float(lengths.min())
    if count > _MAX_SLOTS + 0.5:
        return None, 0
    slots = round(count)
    slot = float(end.max()) / slots
    for times in (start / slot, end / slot):
        if np.abs(times - np.round(times)).max() > _NEAR:
            return None, 0
    return round(slot), slots


@dataclass(frozen=True)
class _Hops:
    """The path of each transfer from NPU to NPU, or to a switch where it ends, as columns."""

    transfer: NDArray[np.int64]
    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    start_ps: NDArray[np.int64]
    end_ps: NDArray[np.int64]


def _hops(run: Run, chunk: int | None = None) -> _Hops:
    """Follow each transfer, or those of one chunk, over its links; through switches it is one hop."""
    kept = _carries(run.plan, chunk)
    core, topology = run.core, run.topology
    npus, transfers = topology.npu_count, run.plan.transfers
    ends = list(zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True))
    stays: dict[tuple[int, int], int] = {}  # of a transfer, from a device; no way passes one twice
    for i, (transfer, link) in enumerate(
        zip(core.service_transfer.tolist(), core.service_link.tolist(), strict=True)
    ):
        stays[transfer, ends[link][0]] = i
    rows: list[tuple[int, int, int, int, int]] = []
    for transfer, (src, dst) in enumerate(zip(transfers.src, transfers.dst, strict=True)):
        if not kept[transfer]:
            continue
        at, way = int(src), []
        while at != dst:
            way.append(stays[transfer, at])
            at = ends[core.service_link[way[-1]]][1]
        overlaps = run.end_ps[transfer] > core.service_end_ps[way[-1]]
        sender, begun = int(src), int(core.service_start_ps[way[0]])
        for i, stay in enumerate(way):
            link = core.service_link[stay]
            at = ends[link][1]
            if at < npus or at == dst:
                late = int(topology.link_latency_ps[link]) if overlaps else 0
                arrives = int(core.service_end_ps[stay]) + late
                rows.append((transfer, sender, at, begun, arrives))
                sender = at
                begun = int(core.service_start_ps[way[i + 1]]) if i + 1 < len(way) else begun
    return _Hops(*np.array(rows, dtype=np.int64).reshape(-1, 5).T)


def draw_time_expanded(run: Run, path: Path, chunk: int | None = None) -> Expanded:
    """Draw the transfers of a run, or those of one chunk; give their starts and ends.

    The run must have kept its services.
    """
    check_readable(run.plan, chunk)
    arrows = expand(run, chunk)
    topology = run.topology
    ends = _ends(run.plan)
    in_slots = arrows.slot_ps is not None
    unit = (run.time_ps or 1) / arrows.slots if in_slots else 1.0
    last = max(arrows.slots, 1) if in_slots else run.time_ps or 1
    width = min(max(2.0 + 1.25 * arrows.slots, 5.5), 24.0) if in_slots else 10.0
    with picture(path, width, min(max(1.5 + 0.42 * len(ends), 2.5), 18.0)) as figure:
        axes = figure.add_subplot()
        rows = np.arange(len(ends))
        axes.hlines(rows, 0, last, colors=_IDLE, linestyles="dotted", linewidth=0.8, zorder=1)
        left_out = not _draw_columns(axes, run, arrows) if in_slots else False
        hops = _hops(run, chunk)
        _draw_arrows(axes, run.plan, hops, unit, is_one=chunk is not None)
        names = [topology.device_names[end] for end in ends]
        axes.set_yticks(rows, names, fontsize=8 if len(ends) <= 40 else 6)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_ylim(len(ends) - 0.5, -0.5)
        if arrows.slot_ps is not None:
            step = max(1, arrows.slots // 40)
            axes.set_xticks(range(0, arrows.slots + 1, step))
            grey = "" if left_out else "; grey: links left idle"
            axes.set_xlabel(f"slot of {format_time_ps(arrows.slot_ps)}{grey}")
        else:
            time_axis(axes, run.time_ps)
        axes.set_xlim(-0.02 * last, 1.02 * last)
        collective = run.collective
        of = "" if chunk is None else f", chunk {chunk} of {run.plan.chunks:,}"
        write_title(
            figure,
            f"{run.plan.algorithm} {collective.name} of {format_size(collective.size)} on "
            f"{topology.name}{of}: {format_time_ps(run.time_ps)}",
        )
    return arrows


def _draw_columns(axes: Any, run: Run, arrows: Expanded) -> bool:
    """Draw a dot for each NPU and slot, and the idle links between; say if these were not too many."""
    topology, slots = run.topology, arrows.slots
    devices = _ends(run.plan)
    x, y = np.meshgrid(np.arange(slots + 1), np.arange(len(devices)))
    size = 26 if len(devices) <= 20 else 10
    axes.scatter(x, y, s=size, color=_DOT, linewidths=0, zorder=4)
    if topology.link_count * slots > _MAX_IDLE:
        return False
    ends = np.stack([topology.link_src, topology.link_dst], axis=1).astype(np.int64)
    row_of = np.full(topology.device_count, -1)
    row_of[devices] = np.arange(len(devices))
    rows = row_of[ends]
    between = np.greater_equal(rows.min(axis=1), 0)
    idle = np.less_equal(run.heat(slots), _NEAR)
    link, slot = np.nonzero(idle & between.reshape(-1, 1))
    lines = np.empty((len(link), 2, 2))
    lines[:, 0, 0], lines[:, 1, 0] = slot, slot + 1
    lines[:, :, 1] = rows[link]
    axes.add_collection(
        LineCollection(list(lines), colors=_IDLE, linewidths=0.6, zorder=0), autolim=False
    )
    return True


def _draw_arrows(axes: Any, plan: Plan, hops: _Hops, unit: float, *, is_one: bool) -> None:
    if not len(hops.transfer):
        return
    row_of = np.zeros(plan.topology.device_count)
    ends = _ends(plan)
    row_of[ends] = np.arange(len(ends))
    x, y = hops.start_ps / unit, row_of[hops.src]
    dx, dy = hops.end_ps / unit - x, row_of[hops.dst] - y
    colors, norm, legend = _colors(plan.chunks)
    few = len(x) <= 150
    drawn = axes.quiver(
        x,
        y,
        dx,
        dy,
        plan.transfers.chunk[hops.transfer],
        cmap=colors,
        norm=norm,
        angles="xy",
        scale_units="xy",
        scale=1,
        units="dots",
        width=2.4 if few else 1.5,
        headwidth=5.0,
        headlength=6.0,
        headaxislength=5.0,
        zorder=3,
    )
    if len(x) <= _MAX_LABELS:
        _draw_labels(axes, [_label(plan, i) for i in hops.transfer.tolist()], (x, y, dx, dy), few)
    if is_one:
        return  # the title says which chunk it is
    if legend:
        axes.legend(
            handles=legend,
            title="chunk",
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            frameon=False,
            fontsize=7,
        )
    else:
        ticks = np.unique(np.linspace(0, plan.chunks - 1, min(plan.chunks, 20)).round())
        axes.figure.colorbar(drawn, ax=axes, label="chunk", ticks=ticks, fraction=0.03, pad=0.01)


def _label(plan: Plan, transfer: int) -> str:
    """Return the chunks that a transfer carries, a plus before them if the receiver adds them."""
    columns = plan.transfers
    first, count = int(columns.chunk[transfer]), int(columns.chunk_count[transfer])
    text = str(first) if count == 1 else f"{first}–{first + count - 1}"
    return f"+{text}" if columns.op[transfer] == 1 else text


def _draw_labels(
    axes: Any, texts: list[str], vectors: tuple[NDArray[np.float64], ...], few: bool
) -> None:
    box = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    for text, x, y, dx, dy in zip(texts, *vectors, strict=True):
        place = 0.29 if dy > 0 else 0.41  # so that two that cross do not hide each other's
        axes.text(
            x + place * dx,
            y + place * dy,
            text,
            fontsize=7 if few else 4.5,
            ha="center",
            va="center",
            bbox=box,
            zorder=5,
        )


def _colors(chunks: int) -> tuple[ListedColormap, BoundaryNorm, list[Line2D]]:
    """Return a colour for each chunk, and a legend where there are few."""
    if chunks <= 10:
        table = matplotlib.colormaps["tab10"](np.arange(chunks))
    elif chunks <= 20:
        table = matplotlib.colormaps["tab20"](np.arange(chunks))
    else:
        table = matplotlib.colormaps["turbo"](np.linspace(0.03, 0.97, min(chunks, 256)))
    edges = np.linspace(-0.5, chunks - 0.5, len(table) + 1)
    legend = []
    if chunks <= _MAX_IN_LEGEND:
        legend = [
            Line2D([], [], color=table[i], linewidth=2.5, label=str(i)) for i in range(chunks)
        ]
    return ListedColormap(table), BoundaryNorm(edges, len(table)), legend

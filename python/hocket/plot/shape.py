"""The rings and trees of a plan on its network.

References
----------
Laskar et al.: Enhancing collective communication in MCM accelerators for deep learning training
(HPCA 2024), figures 2 and 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from hocket.plot.links import PALE, Scene, check_devices, draw_devices, draw_links, scene
from hocket.plot.style import picture, write_title
from hocket.simulation.run import Run
from hocket.simulation.structures import Phase, Structure
from hocket.units import format_estimate, format_size

MAX_PANELS = 16
"""How many structures one picture shows, each by itself."""

_ROOMY, _MAX_OF_LARGE = 24, 9
"""Devices of a network that can be read in a sixteenth of a picture; panels of larger ones."""
_COLORS = ("#2563b0", "#c8442c", "#2f8f46", "#d18f12", "#2aa5ad", "#c2559d", "#7a6248", "#5b6bd6")
_BRANCH = "#8448a8"
_SUMS = {"reduce": "what is summed", "copy": "what is copied"}


def draw_structures(
    run: Run, found: Sequence[Structure], phase: Phase, path: Path, *, chunk: int | None = None
) -> None:
    """Draw structures on the network: in one panel where no two share a link, else one each.

    Raises
    ------
    SpecError
        If there are too many devices to tell arrows apart.
    """
    check_devices(run.topology)
    place = scene(run.topology)
    together = len(found) <= len(_COLORS) and not _shared(found)
    panels = [list(found)] if together else [[each] for each in _largest(run, found)]
    columns = math.ceil(math.sqrt(len(panels)))
    rows = math.ceil(len(panels) / columns)
    wide, high = place.size
    most = 8.0 if together else 11.0
    inch = min(1.15 if together else 0.7, most / (columns * wide), most / (rows * high))
    legend = _legend(run, found if together else (), chunk, together=together)
    width = max(columns * (wide * inch + 0.1), 4.2) + (2.5 if together else 0.0)
    height = rows * (high * inch + (0.0 if together else 0.42)) + (0.55 if together else 0.9)
    with picture(path, width, height) as figure:
        grid = list(figure.subplots(rows, columns, squeeze=False).flat)
        for axes, shown in zip(grid, panels, strict=False):
            _draw_panel(axes, run, place, shown, inch)
            if not together:
                name = f"{_name(run, found, shown[0])}\n{_carried(run, shown[0], chunk)}"
                axes.set_title(name, fontsize=7.5, pad=2)
        for axes in grid:
            axes.set_axis_off()
        where: Any = "outside right center" if together else "outside lower center"
        columns = 1 if together else 4
        figure.legend(handles=legend, loc=where, frameon=False, fontsize=8, ncols=columns)
        write_title(figure, _title(run, found, phase, chunk, [each for (each, *_) in panels]), 9)


def _shared(found: Sequence[Structure]) -> bool:
    """Return whether two structures take the same link."""
    links = [link for each in found for link in each.links]
    return len(set(links)) < len(links)


def _largest(run: Run, found: Sequence[Structure]) -> list[Structure]:
    """Return those that have a panel: where there are too many, those that carry the most."""
    most = MAX_PANELS if run.topology.device_count <= _ROOMY else _MAX_OF_LARGE
    if len(found) <= most:
        return list(found)
    sizes = _chunk_sizes(run)
    total = max(int(sizes.sum()), 1)
    # In thousandths, so that chunks that differ by a byte keep their order.
    by_size = sorted(found, key=lambda each: -round(1000 * sizes[list(each.chunks)].sum() / total))
    return by_size[:most]


def _chunk_sizes(run: Run) -> NDArray[np.int64]:
    """Bytes of each chunk."""
    offsets = run.plan.core.chunk_offsets.astype(np.int64)
    return np.asarray(offsets[1:] - offsets[:-1])


def _carried(run: Run, each: Structure, chunk: int | None) -> str:
    """Return which chunks take a structure, and their size."""
    chunks = each.chunks if chunk is None else (chunk,)
    size = format_estimate(int(_chunk_sizes(run)[list(chunks)].sum()))
    if len(chunks) == 1:
        return f"chunk {chunks[0]}: {size}"
    return f"same for {len(chunks):,} chunks, {ranges(chunks)}: {size}"


def ranges(numbers: Sequence[int], most: int = 2) -> str:
    """Write sorted numbers as ranges, those beyond the first few as dots: ``0–3, 8, …``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    texts = [f"{low}" if low == high else f"{low}–{high}" for low, high in found]
    return ", ".join([*texts[:most], "…"] if len(texts) > most else texts)


def _color(found: Sequence[Structure], each: Structure) -> str:
    return _BRANCH if each.kind == "branch" else _COLORS[found.index(each) % len(_COLORS)]


def _draw_panel(axes: Any, run: Run, place: Scene, shown: list[Structure], inch: float) -> None:
    colors = {link: _color(shown, each) for each in shown for link in each.links}
    roots = {
        root: _color(shown, each) for each in shown if each.kind == "tree" for root in each.roots
    }
    hollow = set(range(run.topology.npu_count)) - set(run.collective.npus)
    draw_links(axes, place, colors, inch)
    draw_devices(axes, place, inch, roots=roots, hollow=hollow)


def _name(run: Run, found: Sequence[Structure], each: Structure) -> str:
    """Return which structure it is: its number among those of its kind, its root."""
    if each.kind == "branch":
        return "beside the rings"
    alike = [other for other in found if other.kind == each.kind]
    number = "" if len(alike) == 1 else f" {alike.index(each) + 1}"
    if each.kind == "tree":
        return f"tree{number}, root {run.topology.device_names[each.roots[0]]}"
    return f"{each.kind}{number}"


def _legend(
    run: Run, found: Sequence[Structure], chunk: int | None, *, together: bool
) -> list[Line2D]:
    lines = [
        Line2D(
            [],
            [],
            color=_color(found, each),
            linewidth=2,
            label=f"{_name(run, found, each)}\n{_carried(run, each, chunk)}",
        )
        for each in found
    ]
    shown = {link for each in found for link in each.links}
    if not together or len(shown) < run.topology.link_count:
        lines.append(Line2D([], [], color=PALE, linewidth=2, label="not in use"))
    marker: dict[str, Any] = {"linestyle": "none", "markeredgecolor": "#4a4a4a"}
    if not together:
        marker |= {"marker": "o", "markersize": 7}
        lines.append(Line2D([], [], markerfacecolor=_COLORS[0], label="root", **marker))
    if len(run.collective.npus) < run.topology.npu_count:
        marker |= {"marker": "o", "markersize": 8, "markerfacecolor": "white"}
        lines.append(Line2D([], [], label="without data", **marker))
    return lines


def _title(
    run: Run,
    found: Sequence[Structure],
    phase: Phase,
    chunk: int | None,
    drawn: Sequence[Structure],
) -> str:
    """Describe what is shown."""
    collective, topology = run.collective, run.topology
    links = {link for each in found for link in each.links}
    of = "" if chunk is None else f" of chunk {chunk}"
    some = ""
    if 1 < len(drawn) < len(found):
        sizes = _chunk_sizes(run)
        share = sum(int(sizes[list(each.chunks)].sum()) for each in drawn) / max(
            int(sizes.sum()), 1
        )
        some = f" (drawn: the {len(drawn)} that carry the most, {share:.0%} of all bytes)"
    return (
        f"{run.plan.algorithm} {collective.name} of {format_size(collective.size)} on "
        f"{topology.name}\n{_SUMS[phase]}{of}: {summary(found)}{some}, {len(links)} of "
        f"{topology.link_count} links"
    )


def summary(found: Sequence[Structure]) -> str:
    """Count structures by kind: ``2 rings and what is beside them``."""
    parts = []
    for kind in ("ring", "tree", "graph"):
        count = sum(each.kind == kind for each in found)
        if count:
            parts.append(f"{count} {kind}{'s'[: count != 1]}")
    text = ", ".join(parts)
    return f"{text} and what leads to them" if any(e.kind == "branch" for e in found) else text

"""Networks whose directed links are arrows, the two ways of a pair side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

from hocket import _core
from hocket.errors import SpecError
from hocket.plot.labels import draw_labels, place_labels, text_inches
from hocket.plot.network import Points, nearest, places

MAX_DEVICES = 400
"""Of how many an arrow between two can still be seen."""

PALE = "#e3e3e3"
_BODY, _EDGE, _SWITCH = "#f1f1f1", "#4a4a4a", "#d0d0d0"
_MAX_NAMES = 160
_FONT, _MIN_INCH = 5.5, 0.3
"""Points of names, and how far devices are apart that have one beside them."""


def check_devices(topology: _core.Topology) -> None:
    """Refuse a network too large to tell its arrows apart.

    Raises
    ------
    SpecError
        With the limit and what to use instead.
    """
    if topology.device_count > MAX_DEVICES:
        raise SpecError(
            None,
            f"{topology.device_count:,} devices cannot be told apart in a picture with "
            f"arrows; it draws up to {MAX_DEVICES}",
            "for heat of links over time use `hocket simulate --plot`",
            origin=str(topology.name),
        )


Way: TypeAlias = tuple[tuple[float, float], tuple[float, float], float]


@dataclass(frozen=True)
class Scene:
    """The places of all parts."""

    topology: _core.Topology
    points: Points
    spacing: float
    """How far devices are apart."""
    ways: dict[int, Way]
    """Of each link where its arrow starts and ends, and how much it bends."""

    @property
    def radius(self) -> float:
        """The place of a device."""
        return 0.2 * self.spacing

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in units of the spacing, margins included."""
        width, height = np.ptp(self.points, axis=0) / self.spacing + 0.9
        return float(width), float(height)


def scene(topology: _core.Topology) -> Scene:
    """Lay a network out, and its links as arrows."""
    points, arcs = places(topology)
    spacing = _spacing(points, topology.npu_count)
    lanes: dict[tuple[int, int], int] = defaultdict(int)
    ways = {}
    ends = zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True)
    for link, (src, dst) in enumerate(ends):
        lane = lanes[src, dst]
        lanes[src, dst] += 1
        arc = arcs.get((src, dst), 0.0)
        ways[link] = _way(points[src], points[dst], lane, arc, spacing)
    return Scene(topology, points, spacing, ways)


def _spacing(points: Points, npus: int) -> float:
    """Return the distance of the nearest two devices, were they not closer than others by far."""
    gaps = nearest(points)
    return float(max(gaps.min(), 0.5 * np.median(gaps), 0.35 * nearest(points[:npus]).min()))


def _way(start: Points, end: Points, lane: int, arc: float, spacing: float) -> Way:
    """Return start, end and bend of an arrow: beside the line, or round what lies on it."""
    length = max(float(np.linalg.norm(end - start)), 1e-9)
    along = (end - start) / length
    across = np.array([along[1], -along[0]])  # its right-hand side
    side = (0.06 + (0.05 if arc else 0.07) * lane) * spacing
    gap = 0.21 * spacing
    reach = gap if arc else np.sqrt(max(gap**2 - side**2, 0.0))
    start, end = start + reach * along + side * across, end - reach * along + side * across
    bend = 2 * arc / length * (1.0 + 0.2 * lane)
    return (float(start[0]), float(start[1])), (float(end[0]), float(end[1])), bend


def draw_links(axes: Any, scene: Scene, colors: Mapping[int, Any], inch: float) -> None:
    """Draw each link as an arrow in its colour, those without one as a pale line.

    ``inch`` is the spacing on paper.
    """
    head = float(np.clip(10.0 * inch, 2.5, 10.0))
    width = float(np.clip(2.0 * inch, 0.5, 1.8))
    pale = [way[:2] for link, way in scene.ways.items() if link not in colors and not way[2]]
    axes.add_collection(LineCollection(pale, colors=PALE, linewidths=0.8 * width, zorder=1))
    for link, (start, end, bend) in scene.ways.items():
        color = colors.get(link)
        if color is None and not bend:
            continue
        arrow = FancyArrowPatch(
            start,
            end,
            connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-" if color is None else "-|>",
            mutation_scale=head,
            linewidth=0.8 * width if color is None else width,
            color=PALE if color is None else color,
            shrinkA=0,
            shrinkB=0,
            joinstyle="miter",
            zorder=1 if color is None else 2,
        )
        arrow.set_in_layout(False)  # the panel's limits are fixed; measuring each takes long
        axes.add_patch(arrow)


def draw_devices(
    axes: Any,
    scene: Scene,
    inch: float,
    *,
    roots: Mapping[int, Any] | None = None,
    hollow: Collection[int] = (),
) -> None:
    """Draw NPUs as circles, roots filled with their colour, and switches as squares."""
    topology, radius = scene.topology, scene.radius
    roots = {} if roots is None else roots
    for device, (x, y) in enumerate(scene.points.tolist()):
        if device >= topology.npu_count:
            axes.add_patch(
                Rectangle(
                    (x - 0.7 * radius, y - 0.7 * radius),
                    1.4 * radius,
                    1.4 * radius,
                    facecolor=_SWITCH,
                    edgecolor=_EDGE,
                    linewidth=0.6,
                    zorder=3,
                )
            )
            continue
        empty = device in hollow
        axes.add_patch(
            Circle(
                (x, y),
                radius,
                facecolor="white" if empty else roots.get(device, _BODY),
                edgecolor=_EDGE,
                linewidth=1.0 if empty else 0.6,
                linestyle=(0, (2, 1.5)) if empty else "solid",
                zorder=3,
            )
        )
    _draw_names(axes, scene, inch, {device for device in roots if device not in hollow})
    margin = (0.7 if any(bend for *_, bend in scene.ways.values()) else 0.45) * scene.spacing
    low, high = scene.points.min(axis=0) - margin, scene.points.max(axis=0) + margin
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_aspect("equal")
    axes.set_axis_off()


def _draw_names(axes: Any, scene: Scene, inch: float, filled: Collection[int]) -> None:
    """Write names in devices where they can be read there, else beside them."""
    topology, scale = scene.topology, inch / scene.spacing
    if topology.device_count > _MAX_NAMES:
        return
    name = _short(topology)
    texts = [name(device) for device in range(topology.device_count)]
    radius = scene.radius * scale
    room = [
        1.8 * radius if device < topology.npu_count else 1.3 * radius
        for device in range(len(texts))
    ]
    fits = min(room[i] / max(text_inches(text, 1.0)[0], 1e-9) for i, text in enumerate(texts))
    if fits >= _FONT:
        for device, (x, y) in enumerate(scene.points.tolist()):
            axes.text(
                x,
                y,
                texts[device],
                fontsize=min(9.0, fits, 50 * radius),
                ha="center",
                va="center_baseline",
                color="white" if device in filled else "black",
                zorder=4,
            )
        return
    if inch < _MIN_INCH:
        return
    ends = np.array([way[:2] for way in scene.ways.values()]).reshape(-1, 2, 2)
    labels = place_labels(texts, scene.points * scale, radius, ends * scale, _FONT)
    draw_labels(axes, labels, _FONT, scale)


def _short(topology: _core.Topology) -> Callable[[int], str]:
    """Return names, without what all NPUs' names begin with where a number follows."""
    names = topology.device_names
    stems = {name.rstrip("0123456789") for name in names[: topology.npu_count]}
    numbered = all(name[-1:].isdigit() for name in names[: topology.npu_count])
    stem = next(iter(stems)) if len(stems) == 1 and numbered else ""
    return lambda device: names[device].removeprefix(stem)

"""A network: NPUs, switches and links."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch, Rectangle
from numpy.typing import NDArray

from hocket import _core
from hocket.errors import SpecError
from hocket.plot.labels import draw_labels, place_labels, text_inches
from hocket.plot.style import ACCENT, LINK, NPU, SWITCH, picture, write_title
from hocket.units import format_bandwidth

_MAX_DEVICES = 2000
_MAX_NAMES = 160
_MAX_IN_A_ROW = 32
_MAX_TURNS = 400
_APART, _LARGEST, _NARROWEST = 0.8, 11.0, 4.5
"""Inches from device to device, of the largest picture, and of the narrowest."""
_MARK, _MARGIN, _AROUND, _FONT = 0.17, 0.35, 0.75, 6.5
"""Inches of a device's radius, of the margin, of title and legend; points of names."""
_SIDE = 1.7
"""Of a switch, in radii."""

Points = NDArray[np.float64]


def check_count(name: str, devices: int) -> None:
    """Refuse to draw more devices than can be told apart.

    Raises
    ------
    SpecError
        With how many can.
    """
    if devices > _MAX_DEVICES:
        raise SpecError(
            None,
            f"{devices} devices cannot be told apart in a picture",
            f"draw at most {_MAX_DEVICES}",
            origin=str(name),
        )


def draw_network(topology: _core.Topology, path: Path) -> None:
    """Draw a network; the wider a line, the more bandwidth.

    Raises
    ------
    SpecError
        If it has more devices than can be told apart.
    """
    check_count(topology.name, topology.device_count)
    points = layout(topology)
    bandwidth: dict[tuple[int, int], float] = defaultdict(float)
    ways: dict[tuple[int, int], set[bool]] = defaultdict(set)
    for src, dst, rate in zip(
        topology.link_src.tolist(),
        topology.link_dst.tolist(),
        topology.link_bandwidth.tolist(),
        strict=True,
    ):
        pair = (min(src, dst), max(src, dst))
        bandwidth[pair] += rate / 2.0
        ways[pair].add(src < dst)
    top = max(bandwidth.values(), default=1.0)
    npus, switches = topology.npu_count, topology.device_count - topology.npu_count
    spread = np.ptp(points, axis=0) if len(points) else np.zeros(2)
    gaps = _gaps(points)
    inch = min(_APART / float(np.median(gaps)), _LARGEST / max(float(spread.max()), 1e-9))
    radius = _radius(topology, inch * gaps)
    width, height = spread * inch + 2 * _MARGIN
    with picture(path, max(width, _NARROWEST), height + _AROUND) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set_aspect("equal")
        for both, colour in ((True, LINK), (False, ACCENT)):
            pairs = [pair for pair in bandwidth if (len(ways[pair]) == 2) is both]
            lines = [(points[a], points[b]) for a, b in pairs]
            widths = [0.5 + 2.5 * bandwidth[pair] / top for pair in pairs]
            axes.add_collection(
                LineCollection(lines, linewidths=widths, colors=colour, alpha=0.55, zorder=1)
            )
        size = radius / inch
        for device, point in enumerate(points.tolist()):
            axes.add_patch(_mark(point, size, is_npu=device < npus))
        if topology.device_count <= _MAX_NAMES:
            ends = np.array([(points[a], points[b]) for a, b in bandwidth]).reshape(-1, 2, 2)
            labels = place_labels(topology.device_names, points * inch, radius, ends * inch, _FONT)
            draw_labels(axes, labels, _FONT, inch)
        margin = _MARGIN / inch
        axes.set_xlim(points[:, 0].min() - margin, points[:, 0].max() + margin)
        axes.set_ylim(points[:, 1].min() - margin, points[:, 1].max() + margin)
        figure.legend(
            handles=_legend(topology, any(len(way) == 1 for way in ways.values())),
            loc="outside lower center",
            frameon=False,
            ncols=3,
        )
        write_title(
            figure,
            f"{topology.name}: {npus} NPUs, {switches} switch{'es' * (switches != 1)}, "
            f"{topology.link_count} links, the widest {format_bandwidth(round(top))} a way",
        )


def _gaps(points: Points) -> Points:
    """Return how far each device is from the nearest other."""
    if len(points) < 2:
        return np.ones(1)
    nearest = [
        float(np.partition(np.linalg.norm(points - point, axis=1), 1)[1]) for point in points
    ]
    return np.array([max(gap, 1e-6) for gap in nearest])


def _radius(topology: _core.Topology, gaps: Points) -> float:
    """Return the radius of a device [inches]: large enough for its name where there is room."""
    wanted = _MARK
    if topology.device_count <= _MAX_NAMES:
        for name in topology.device_names:
            width, height = text_inches(name, _FONT)
            wanted = max(wanted, math.hypot(width, height) / 2 + 0.025, width / _SIDE + 0.02)
    room = min(0.3 * float(np.median(gaps)), 0.42 * float(gaps.min()))
    return wanted if wanted <= room else min(_MARK, max(room, 0.02))


def _mark(point: tuple[float, float], radius: float, *, is_npu: bool) -> Patch:
    x, y = point
    if is_npu:
        return Circle((x, y), radius, color=NPU, linewidth=0, zorder=2)
    side = _SIDE * radius
    return Rectangle((x - side / 2, y - side / 2), side, side, color=SWITCH, linewidth=0, zorder=2)


def _legend(topology: _core.Topology, has_one_way: bool) -> list[Line2D]:
    style: dict[str, Any] = {"linestyle": "none", "markersize": 7}
    handles = [Line2D([], [], marker="o", color=NPU, label="NPU", **style)]
    if topology.device_count > topology.npu_count:
        handles.append(Line2D([], [], marker="s", color=SWITCH, label="switch", **style))
    if has_one_way:
        handles.append(Line2D([], [], color=ACCENT, linewidth=2, label="link one way only"))
    return handles


def layout(topology: _core.Topology) -> Points:
    """Return a place for each device, shape ``(device_count, 2)``; a grid reads as text does."""
    rows = _rows(topology)
    if rows is not None:
        return rows
    points = _grid(topology)
    if points is None:
        points = _circle(topology.npu_count)
    return _place_switches(topology, points)


def _rows(topology: _core.Topology) -> Points | None:
    """Return places in rows where switches of several tiers join the NPUs: those below, a tier a row."""
    npus, total = topology.npu_count, topology.device_count
    src, dst = topology.link_src.astype(np.int64), topology.link_dst.astype(np.int64)
    if not 0 < npus <= _MAX_IN_A_ROW or bool(((src < npus) & (dst < npus)).any()):
        return None
    level = np.where(np.arange(total) < npus, 0, total)
    for _ in range(total):
        reached = level.copy()
        np.minimum.at(reached, dst, level[src] + 1)
        if (reached == level).all():
            break
        level = reached
    top = int(level.max())
    if not 2 <= top < total:
        return None
    points = np.column_stack([np.arange(total, dtype=float), -level.astype(float)])
    for tier in range(1, top + 1):
        row = np.flatnonzero(level == tier)
        below = [points[src[(dst == each) & (level[src] < tier)], 0].mean() for each in row]
        row = row[np.argsort(below, kind="stable")]
        points[row, 0] = (np.arange(len(row)) + 0.5) * npus / len(row) - 0.5
    points[:, 1] *= -max(1.5, npus / 6)
    return points


def _grid(topology: _core.Topology) -> Points | None:
    """Return places by coordinates where there are two dimensions or more."""
    sizes = [dimension[1] for dimension in topology.dimensions]
    if len([size for size in sizes if size > 1]) < 2:
        return None
    points = np.zeros((topology.npu_count, 2))
    rest = np.arange(topology.npu_count)
    steps = [1.0, 1.0]
    for i, size in enumerate(sizes):
        axis = i % 2
        points[:, axis] += (rest % size) * steps[axis]
        # A further dimension along an axis repeats what lies within, a bit askew.
        points[:, 1 - axis] += (rest % size) * 0.18 * steps[1 - axis] * (i >= 2)
        steps[axis] *= size + 0.5
        rest = rest // size
    points[:, 1] *= -1.0  # the first row on top
    return points


def _circle(count: int) -> Points:
    angle = np.pi / 2 - 2 * np.pi * np.arange(count) / max(count, 1)
    radius = max(1.0, count / 8.0)
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])


def _place_switches(topology: _core.Topology, npus: Points) -> Points:
    """Put each switch amid its neighbours, and switches that would coincide apart."""
    count, total = topology.npu_count, topology.device_count
    points = np.zeros((total, 2))
    points[:count] = npus
    if total == count:
        return points
    src, dst = topology.link_src.astype(np.int64), topology.link_dst.astype(np.int64)
    centre = npus.mean(axis=0)
    points[count:] = centre
    for _ in range(50):
        sums = np.zeros((total, 2))
        degree = np.zeros(total)
        np.add.at(sums, dst, points[src])
        np.add.at(degree, dst, 1.0)
        mean = sums / np.maximum(degree, 1.0)[:, None]
        points[count:] = np.where(degree[count:, None] > 0, mean[count:], centre)
    step = 0.32 * max(float(np.ptp(npus, axis=0).max()), 1.0) / max(math.sqrt(count), 1.0)
    for i in range(count, total):
        middle = points[i].copy()
        # Beside the way inwards, along which its links lead.
        beside = math.atan2(middle[1] - centre[1], middle[0] - centre[0]) + math.pi / 2
        for turn in range(_MAX_TURNS):
            radius, angle = 0.8 * step * math.sqrt(turn), beside + 2.4 * (turn - 2)
            points[i] = middle + radius * np.array([math.cos(angle), math.sin(angle)])
            if i == 0 or float(np.linalg.norm(points[:i] - points[i], axis=1).min()) >= step:
                break
    return points

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
from hocket.layout.network import layout
from hocket.plot.labels import draw_labels, place_labels, text_inches
from hocket.plot.style import ACCENT, LINK, NPU, SWITCH, picture, write_title
from hocket.units import format_bandwidth

_MAX_DEVICES = 2000
_MAX_NAMES = 160
_APART, _LARGEST, _NARROWEST = 0.8, 11.0, 4.5
"""Inches from device to device, of the largest picture, and of the narrowest."""
_MARK, _MARGIN, _AROUND, _FONT = 0.17, 0.35, 0.75, 6.5
"""Inches of a device's radius, of the margin, of title and legend; points of names."""
_SIDE = 1.7
"""Of a switch, in radii."""
_ARC, _BENT = 0.45, 0.175
"""How far a line bends round what lies on it, in units of the layout and of its length, at most."""

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
    points, arcs = places(topology)
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
    lines = {(a, b): curve(points[a], points[b], arcs.get((a, b), 0.0)) for a, b in bandwidth}
    drawn = np.concatenate([points, *lines.values()])
    low, spread = drawn.min(axis=0), np.ptp(drawn, axis=0)
    gaps = nearest(points)
    inch = min(_APART / float(np.median(gaps)), _LARGEST / max(float(spread.max()), 1e-9))
    radius = _radius(topology, inch * gaps)
    width, height = spread * inch + 2 * _MARGIN
    with picture(path, max(width, _NARROWEST), height + _AROUND) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set_aspect("equal")
        for both, colour in ((True, LINK), (False, ACCENT)):
            pairs = [pair for pair in bandwidth if (len(ways[pair]) == 2) is both]
            widths = [0.5 + 2.5 * bandwidth[pair] / top for pair in pairs]
            axes.add_collection(
                LineCollection(
                    [lines[pair] for pair in pairs],
                    linewidths=widths,
                    colors=colour,
                    alpha=0.55,
                    zorder=1,
                )
            )
        size = radius / inch
        for device, point in enumerate(points.tolist()):
            axes.add_patch(_mark(point, size, is_npu=device < npus))
        if topology.device_count <= _MAX_NAMES:
            ends = np.array([line[[0, -1]] for line in lines.values()]).reshape(-1, 2, 2)
            labels = place_labels(topology.device_names, points * inch, radius, ends * inch, _FONT)
            draw_labels(axes, labels, _FONT, inch)
        margin = _MARGIN / inch
        axes.set_xlim(low[0] - margin, low[0] + spread[0] + margin)
        axes.set_ylim(low[1] - margin, low[1] + spread[1] + margin)
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


def places(topology: _core.Topology) -> tuple[Points, dict[tuple[int, int], float]]:
    """Return where devices lie, ``(device_count, 2)``, y upwards, and how far links bend round others.

    Of links that lead straight there is nothing; others bend to their right.
    """
    found = layout(topology, has_stubs=False)
    points = found.devices * (1.0, -1.0)
    bent = found.ways[:, 4] > 0
    ends = np.stack([topology.link_src, topology.link_dst], axis=1)[bent]
    lengths = np.linalg.norm(np.diff(points[ends], axis=1)[:, 0], axis=1)
    arcs = zip(ends.tolist(), np.minimum(_ARC, _BENT * lengths).tolist(), strict=True)
    return points, {(src, dst): arc for (src, dst), arc in arcs}


def curve(start: Points, end: Points, arc: float) -> Points:
    """Return the points of a line whose middle lies ``arc`` to the right of the straight one."""
    if not arc:
        return np.array([start, end])
    along = np.linspace(0.0, 1.0, 24)[:, None]
    across = (end - start)[::-1] * (1.0, -1.0) / float(np.linalg.norm(end - start))
    return np.asarray(start + (end - start) * along + 4 * arc * along * (1 - along) * across)


def nearest(points: Points) -> Points:
    """Return how far each device is from the nearest other."""
    if len(points) < 2:
        return np.ones(1)
    gaps = np.linalg.norm(points[:, None] - points[None, :], axis=2)
    np.fill_diagonal(gaps, np.inf)
    return np.asarray(np.maximum(gaps.min(axis=1), 1e-6))


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

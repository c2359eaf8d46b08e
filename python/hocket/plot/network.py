"""A network: NPUs, switches and links."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import numpy as np
from matplotlib.collections import LineCollection
from numpy.typing import NDArray

from hocket import _core
from hocket.errors import SpecError
from hocket.plot.style import ACCENT, LINK, NPU, SWITCH, picture
from hocket.units import format_bandwidth

_MOST_DEVICES = 2000
_MOST_NAMES = 120
_ROOMY = 240.0

Points = NDArray[np.float64]


def check_count(name: str, devices: int) -> None:
    """Refuse to draw more devices than can be told apart.

    Raises
    ------
    SpecError
        With how many can.
    """
    if devices > _MOST_DEVICES:
        raise SpecError(
            None,
            f"{devices} devices cannot be told apart in a picture",
            f"draw at most {_MOST_DEVICES}",
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
    npus = topology.npu_count
    size = 4.0 + min(8.0, math.sqrt(topology.device_count) * 0.6)
    with picture(path, size * 1.15, size) as figure:
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
        mark = max(20.0, 320.0 - 6.0 * topology.device_count)
        axes.scatter(points[:npus, 0], points[:npus, 1], s=mark, c=NPU, zorder=2, label="NPU")
        if topology.device_count > npus:
            axes.scatter(
                points[npus:, 0],
                points[npus:, 1],
                s=mark,
                c=SWITCH,
                marker="s",
                zorder=2,
                label="switch",
            )
        if topology.device_count <= _MOST_NAMES:
            for name, point in zip(topology.device_names, points, strict=True):
                # Inside a large mark, above a small one.
                inside = mark > _ROOMY
                axes.annotate(
                    name,
                    point,
                    xytext=(0.0, 0.0 if inside else 0.7 * math.sqrt(mark)),
                    textcoords="offset points",
                    ha="center",
                    va="center",
                    fontsize=5,
                    color="white" if inside else "black",
                    zorder=3,
                )
        axes.autoscale_view()
        axes.margins(0.08)
        axes.legend(loc="upper right", frameon=False, markerscale=min(1.0, 7.0 / math.sqrt(mark)))
        figure.suptitle(
            f"{topology.name}: {npus} NPUs, {topology.device_count - npus} switches, "
            f"{topology.link_count} links, the widest {format_bandwidth(round(top))} a way"
        )


def layout(topology: _core.Topology) -> Points:
    """Give a place for each device, shape ``(device_count, 2)``; a grid reads as text does."""
    points = _grid(topology)
    if points is None:
        points = _circle(topology.npu_count)
    return _place_switches(topology, points)


def _grid(topology: _core.Topology) -> Points | None:
    """Give places by coordinates where there are two dimensions or more."""
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
    step = 0.22 * max(float(np.ptp(npus, axis=0).max()), 1.0) / max(math.sqrt(count), 1.0)
    taken: dict[tuple[int, int], int] = defaultdict(int)
    for i in range(count, total):
        key = (round(points[i, 0] / step), round(points[i, 1] / step))
        turn = taken[key]
        taken[key] += 1
        radius, angle = step * 1.6 * math.sqrt(turn), 2.4 * turn
        points[i] += [radius * math.cos(angle), radius * math.sin(angle)]
    return points

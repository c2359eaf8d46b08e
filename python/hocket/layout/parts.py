"""The parts of a layout: places of devices, paths of links, boxes, and bundles of links.

A unit is the distance between neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocket import _core

_RADIUS = 0.24
"""Within which no line may pass a third device."""
_BENT = 4000
"""Links that are looked at for devices in their way at most."""
_PARALLEL = 6
"""Links from one device to another that are drawn beside one another; more share lanes."""


@dataclass(frozen=True)
class Box:
    """A rectangle around devices that belong together."""

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass
class Layout:
    """A network's picture; y grows downwards."""

    devices: NDArray[np.float64]
    """Places of devices, (devices, 2)."""
    ways: NDArray[np.float64]
    """Both ends of each link's line and how far it bends to its right, (links, 5)."""
    lanes: NDArray[np.int64]
    """How far each link lies to the right of its line, in its own widths; 0 is a stub's only lane."""
    is_stub: NDArray[np.bool_]
    """Whether a line is its sender's stub, and does not lead to its receiver."""
    bundles: NDArray[np.int64]
    """Bundle of each link: what is drawn where there is no room for single links."""
    boxes: list[Box] = field(default_factory=list)
    bundle_labels: list[tuple[int, str]] = field(default_factory=list)
    """Box and label of each bundle."""
    warning: str | None = None
    """What a reader should know of the picture."""


def lanes_of(topology: _core.Topology) -> NDArray[np.int64]:
    """Return links that lead from one device to the same other numbers: 1, 2 and so on."""
    src, dst = topology.link_src.astype(np.int64), topology.link_dst.astype(np.int64)
    key = src * topology.device_count + dst
    order = np.argsort(key, kind="stable")
    first = np.ones(len(key), bool)
    first[1:] = key[order][1:] != key[order][:-1]
    starts = np.flatnonzero(first)
    rank = np.arange(len(key)) - np.repeat(starts, np.diff([*starts, len(key)]))
    lanes = np.empty(len(key), np.int64)
    lanes[order] = rank % _PARALLEL + 1
    return lanes


def straight(topology: _core.Topology, devices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return straight ways of all links."""
    ways = np.zeros((topology.link_count, 5))
    ways[:, 0:2] = devices[topology.link_src]
    ways[:, 2:4] = devices[topology.link_dst]
    return ways


def numbered(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the different values of a column, smallest first, and each row's number among them."""
    values, numbers = np.unique(keys, return_inverse=True)
    return values, numbers.reshape(-1)


def circle(count: int, radius: float, turn: float = 0.0) -> NDArray[np.float64]:
    """Return places on a circle around the origin, clockwise from ``turn`` steps after the top."""
    angle = 2 * np.pi * (np.arange(count) + turn) / max(count, 1) - np.pi / 2
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])


def bend(
    ways: NDArray[np.float64],
    is_stub: NDArray[np.bool_],
    topology: _core.Topology,
    devices: NDArray[np.float64],
) -> None:
    """Bend lines that lead through a third device, the longer the more."""
    if len(ways) > _BENT:
        return
    src, dst = topology.link_src.astype(np.int64), topology.link_dst.astype(np.int64)
    start, along = devices[src], devices[dst] - devices[src]
    length = np.maximum(np.linalg.norm(along, axis=1), 1e-9)
    for device in range(len(devices)):
        offset = devices[device] - start
        at = (offset * along).sum(axis=1) / length**2
        away = np.abs(along[:, 0] * offset[:, 1] - along[:, 1] * offset[:, 0]) / length
        hit = (
            ~is_stub
            & (at > 0.02)
            & (at < 0.98)
            & (away < _RADIUS)
            & (src != device)
            & (dst != device)
        )
        ways[hit, 4] = np.maximum(ways[hit, 4], 0.18 * length[hit] + 0.25)

"""The layout of a network: places of devices, paths of links, boxes, and bundles of links.

A unit is the distance between neighbours. Products of dimensions are drawn by :mod:`.product`, everything
else by :mod:`.tiers`; neither has a line that leads across the picture only because a ring closes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocket import _core

__all__ = ["Box", "Layout", "lanes_of", "layout"]

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


def layout(topology: _core.Topology) -> Layout:
    """Lay a network out by its structure; the same network gives the same picture."""
    from hocket.explorer.product import product_layout
    from hocket.explorer.tiers import tiers_layout

    found = product_layout(topology)
    return tiers_layout(topology) if found is None else found


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

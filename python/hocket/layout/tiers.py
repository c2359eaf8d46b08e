"""Pictures of networks that are no products: groups side by side, switches above them by tiers.

NPUs that are linked to one another lie on a circle, others in rows. A line that would lead through a third
device is bent. Networks of many NPUs without any structure get places by how far apart they are.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hocket.layout.groups import Group, device_kinds, groups_of
from hocket.layout.parts import Box, Layout, bend, circle, lanes_of, numbered, straight
from hocket.units import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocket import _core

_ASPECT = 1.5
_PAD, _APART, _TIER = 0.6, 0.7, 1.5
"""Around what is in a box, between boxes, and from tier to tier."""
_CIRCLE = 64
"""NPUs that are drawn on a circle at most."""
_DISTANCES = 1500
"""NPUs whose distances are computed at most."""
_CELLS = 1 << 24
"""Devices times links that are looked at together: a byte each."""
_DENSE, _MANY = 1000, 6
"""Links of a network above which NPUs that have many switches get stubs, and how many those are."""
_STUB = 0.42


def tiers_layout(topology: _core.Topology, *, has_stubs: bool) -> Layout:
    """Lay out any network by its groups and tiers."""
    picture = _Picture(topology)
    group = _by_nodes(topology, groups_of(topology))
    width, height = picture.place(group, 0.0, 0.0, 0)
    ways = straight(topology, picture.devices)
    is_stub, lanes = np.zeros(topology.link_count, bool), lanes_of(topology)
    if has_stubs and topology.link_count > _DENSE:
        _stubs(ways, lanes, is_stub, topology, picture.devices)
    bend(ways, is_stub, topology, picture.devices)
    boxes = picture.boxes or [Box(-_PAD, -_PAD, width + 2 * _PAD, height + 2 * _PAD, "")]
    bundles, labels = picture.bundles()
    return Layout(picture.devices, ways, lanes, is_stub, bundles, boxes, labels, picture.warning)


def _by_nodes(topology: _core.Topology, group: Group) -> Group:
    """Make groups of the nodes of a network whose NPUs lie in one group but are said to form several."""
    nodes = topology.groups
    if len(nodes) < 2 or group.children or len(group.npus) != topology.npu_count:
        return group
    return Group(group.tiers, (), tuple(Group((), tuple(node), ()) for node in nodes))


class _Picture:
    def __init__(self, topology: _core.Topology) -> None:
        self.topology = topology
        self.devices = np.zeros((topology.device_count, 2))
        self.boxes: list[Box] = []
        self.box_of = np.full(topology.device_count, -1, np.int64)
        self.warning: str | None = None
        self.src = topology.link_src.astype(np.int64)
        self.dst = topology.link_dst.astype(np.int64)
        self.kinds = device_kinds(topology)

    def place(self, group: Group, x: float, y: float, depth: int) -> tuple[float, float]:
        """Place a group with its upper left device at a point; give its width and height."""
        tiers = [tier for tier in group.tiers if tier]
        if group.children:
            width, height = self._place_children(group, x, y, depth)
        else:
            width, height = self._place_npus(group.npus, x, y)
        step_down = max(_TIER, width / 5)
        down = step_down * len(tiers)
        self._move_below(group, 0.0, down)
        widest = max((len(tier) for tier in tiers), default=1) - 1
        if widest * 0.9 > width:
            self._move_below(group, (widest * 0.9 - width) / 2, 0.0)
            width = widest * 0.9
        for i, tier in enumerate(tiers):
            step = width / len(tier)
            for j, device in enumerate(self._by_what_is_below(tier)):
                self.devices[device] = (x + (j + 0.5) * step, y + step_down * i)
        return width, down + height

    def _move_below(self, group: Group, right: float, down: float) -> None:
        """Move what is below a group's own switches."""
        tiers = {device for tier in group.tiers for device in tier}
        self._move([device for device in group.devices if device not in tiers], right, down)

    def _move(self, devices: list[int], right: float, down: float) -> bool:
        """Move devices with the boxes that they are in; say if there are any."""
        self.devices[devices] += (right, down)
        inside = set(self.box_of[devices].tolist()) - {-1}
        for box in inside:
            old = self.boxes[box]
            self.boxes[box] = replace(old, x=old.x + right, y=old.y + down)
        return bool(inside)

    def _by_what_is_below(self, tier: tuple[int, ...]) -> list[int]:
        """Sort switches of a tier by where what they join lies."""
        placed = self.devices[:, 0]
        known = (self.devices != 0).any(axis=1)

        def middle(device: int) -> tuple[float, int]:
            near = self.dst[self.src == device]
            near = near[known[near]]
            return (round(float(placed[near].mean()), 6) if len(near) else 0.0, device)

        return sorted(tier, key=middle) if len(tier) <= 512 else list(tier)

    def _place_children(self, group: Group, x: float, y: float, depth: int) -> tuple[float, float]:
        starts: list[tuple[Group, float, float]] = []
        for child in group.children:
            width, height = self.place(child, 0.0, 0.0, depth + 1)
            starts.append((child, width, height))
        wide = max(width for _, width, _ in starts) + 2 * _PAD + _APART
        high = max(height for *_, height in starts) + 2 * _PAD + _APART
        count = len(starts)
        switches_above = any(group.tiers)

        def badness(columns: int) -> tuple[float, int]:
            ratio = columns * wide / (math.ceil(count / columns) * high)
            return abs(math.log(ratio / _ASPECT)), columns

        columns = count if switches_above and count <= 16 else min(range(1, count + 1), key=badness)
        for i, (child, width, height) in enumerate(starts):
            left = x + (i % columns) * wide + _PAD
            top = y + (i // columns) * high + _PAD
            own = list(child.devices)
            has_boxes = self._move(own, left, top)
            label = f"{i}: {counted(child.npu_count, 'NPU')}"
            wide_box, high_box = width + 2 * _PAD, height + 2 * _PAD
            self.boxes.append(Box(left - _PAD, top - _PAD, wide_box, high_box, label))
            if depth == 0 or not has_boxes:
                self.box_of[own] = len(self.boxes) - 1
        rows = math.ceil(count / columns)
        return columns * wide - _APART, rows * high - _APART

    def _place_npus(self, npus: tuple[int, ...], x: float, y: float) -> tuple[float, float]:
        count = len(npus)
        if not count:
            return 0.0, 0.0
        inside = np.zeros(self.topology.device_count, bool)
        inside[list(npus)] = True
        direct = bool((inside[self.src] & inside[self.dst]).any())
        own = list(npus)
        if direct and 3 <= count <= _CIRCLE:
            radius = max(1.0, count / 6.0)
            around = circle(count, radius, 0.5 * (count == 4))
            self.devices[own] = np.add(around, (x + radius, y + radius))
            return 2 * radius, 2 * radius
        if direct and count > _CIRCLE:
            places = _by_distance(self.topology, own) if count <= _DISTANCES else None
            self.warning = (
                f"{count} NPUs without groups or dimensions: places only show what is near"
            )
            if places is not None:
                self.devices[own] = places + np.array([x, y])
                wide, high = np.ptp(places, axis=0).tolist()
                return wide, high
        per_row = count if count <= 16 else max(16, math.ceil(math.sqrt(count * _ASPECT)))
        at = np.arange(count)
        self.devices[own, 0] = x + at % per_row
        # Rows are askew, so that no line to a switch above leads through another NPU.
        self.devices[own, 0] += 0.37 * (at // per_row % 3) * (per_row < count)
        self.devices[own, 1] = y + at // per_row
        return min(count, per_row) - 1.0 + 0.74 * (per_row < count), float((count - 1) // per_row)

    def bundles(self) -> tuple[NDArray[np.int64], list[tuple[int, str]]]:
        """Bundle links by the box that they are in and the kinds of devices that they join."""
        names = {kind: i for i, kind in enumerate(dict.fromkeys(self.kinds))}
        kind = np.array([names[each] for each in self.kinds], np.int64)
        box = np.maximum(self.box_of[self.src], self.box_of[self.dst])
        box = np.maximum(box, 0)
        values, numbers = numbered(
            (box * len(names) + kind[self.src]) * len(names) + kind[self.dst]
        )
        texts = list(names)
        labels = []
        for value in values.tolist():
            rest, to = divmod(value, len(texts))
            where, start = divmod(rest, len(texts))
            labels.append((where, f"{texts[start]} → {texts[to]}"))
        return numbers, labels


def hops(topology: _core.Topology, sources: list[int]) -> NDArray[np.float64]:
    """Return how many links apart each of some devices is from every device, whichever way links lead."""
    ends = [topology.link_src, topology.link_dst]
    src, dst = np.concatenate(ends).astype(np.int64), np.concatenate(ends[::-1]).astype(np.int64)
    order = np.argsort(dst, kind="stable")
    into, first = np.unique(dst[order], return_index=True)
    at_once = max(1, _CELLS // max(len(src), 1))
    blocks = [sources[i : i + at_once] for i in range(0, len(sources), at_once)]
    found = [_hops(each, topology.device_count, src[order], into, first) for each in blocks]
    return np.concatenate(found)


def _hops(
    sources: list[int],
    count: int,
    src: NDArray[np.int64],
    into: NDArray[np.int64],
    first: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Search from several devices at a time, given where links into each of `into` come from."""
    found = np.full((len(sources), count), np.inf)
    reached = np.zeros(found.shape, dtype=bool)
    reached[np.arange(len(sources)), sources] = True
    new, steps = reached, 0
    while new.any():
        found[new] = steps
        reached = reached | new
        steps += 1
        new = np.zeros_like(reached)
        if len(src):
            new[:, into] = np.logical_or.reduceat(reached[:, src], first, axis=1)
        new &= ~reached
    return found


def _by_distance(topology: _core.Topology, npus: list[int]) -> NDArray[np.float64]:
    """Place devices so that what is few links apart is near: classical scaling of distances."""
    distance = hops(topology, npus)[:, npus]
    distance[~np.isfinite(distance)] = distance[np.isfinite(distance)].max() + 1
    squared = distance**2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    places = vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 1e-9))
    # The sign of an eigenvector is arbitrary: the largest entry of each is made positive.
    largest = np.argmax(np.abs(np.round(places, 9)), axis=0)
    places = places * np.sign(places[largest, [0, 1]])
    # Devices of equal distances coincide; a small spiral tells them apart.
    turn = 2.399963 * np.arange(len(npus))
    spiral = 0.02 * np.sqrt(np.arange(len(npus)))[:, None]
    places = places + spiral * np.column_stack([np.cos(turn), np.sin(turn)])
    side = math.sqrt(len(npus)) * 1.2
    places = (places - places.min(axis=0)) / max(float(np.ptp(places)), 1e-9) * side
    rounded: NDArray[np.float64] = np.round(places, 4)
    return rounded


def _stubs(
    ways: NDArray[np.float64],
    lanes: NDArray[np.int64],
    is_stub: NDArray[np.bool_],
    topology: _core.Topology,
    devices: NDArray[np.float64],
) -> None:
    """Draw links between an NPU and many switches as two stubs at the NPU: out of it, and into it."""
    npus = topology.npu_count
    src, dst = topology.link_src.astype(np.int64), topology.link_dst.astype(np.int64)
    for near, far, forth in ((src, dst, True), (dst, src, False)):
        own = (near < npus) & (far >= npus)
        many = np.bincount(near[own], minlength=npus)[:npus] > _MANY
        mine = np.flatnonzero(own & many[np.minimum(near, npus - 1)])
        at = devices[near[mine]]
        ends = (at - [0, 0.16], at - [0, 0.16 + _STUB])
        ways[mine, 0:2], ways[mine, 2:4] = ends if forth else ends[::-1]
        lanes[mine], is_stub[mine] = 1, True

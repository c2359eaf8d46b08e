"""Pictures of products of dimensions.

Two dimensions that are lines, rings or few NPUs that are all linked make grids; the others tell grids
apart, which become boxes. A link within a grid is a line or an arc; one that leaves it, closes a ring or
leads to a switch is a stub at its sender. Without stubs, further dimensions repeat the grid a bit askew,
and a switch lies amid what it joins.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from hocket.layout.parts import Box, Layout, bend, circle, lanes_of, numbered, straight

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocket import _core

_ASPECT = 1.9
"""Width over height that a picture should have."""
_CIRCLE = 32
"""NPUs of a lone ring, or of NPUs that are all linked, that are drawn as a circle."""
_APART = 1.0
"""Between boxes."""
_PAD, _LABEL = 0.62, 0.3
"""Between a box and what is in it, and above that for its label."""
_ARCS = 8
"""NPUs that are all linked and may be drawn as a row with arcs."""
_ARC, _WIDE = 0.12, 2.2
"""How high an arc is for each NPU that it passes, and how far rows of arcs are apart."""
_STUB, _FAR = 0.44, 0.40
"""How long stubs in the plane and askew are."""
_SLICES = 4
"""Links of one stub that are drawn one behind the other; more are one bundle."""
_ANGLES = (-45.0, -135.0, -22.5, -67.5, -112.5, -157.5, -11.0, -79.0)
"""Directions of stubs that leave a grid, a dimension each; the other way is opposite."""
_ASKEW, _AMID, _TURNS = 0.18, 0.32, 400
"""How far grids are askew; how far switches amid their NPUs are from other devices, and how many places
are tried."""


def product_layout(topology: _core.Topology, *, has_stubs: bool) -> Layout | None:
    """Lay out a product of dimensions; None where a network is none, or only one switch."""
    sizes = [size for _, size, *_ in topology.dimensions]
    if math.prod(sizes) != topology.npu_count or not sizes:
        return None
    real = [k for k, size in enumerate(sizes) if size > 1]
    kinds = [kind for kind, *_ in topology.dimensions]
    most = _CIRCLE if has_stubs else topology.npu_count
    if not real or (len(real) == 1 and kinds[real[0]] == "Switch" and sizes[real[0]] <= most):
        return None
    product = _Product(topology, sizes, kinds, real)
    if len(real) == 1 and product.kinds[real[0]] != "Line" and sizes[real[0]] <= most:
        return product.circle(sizes[real[0]])
    if len(real) == 1 and product.kinds[real[0]] in ("Ring", "Line"):
        return product.snake(sizes[real[0]])
    return product.in_boxes() if has_stubs else product.askew()


def _room(width: float, height: float) -> float:
    """Return how much must fit into a picture's height: the less, the larger everything is."""
    return max(width / _ASPECT, height)


class _Product:
    """A product that is being laid out."""

    def __init__(
        self, topology: _core.Topology, sizes: list[int], kinds: list[str], real: list[int]
    ) -> None:
        self.topology, self.sizes, self.real = topology, sizes, real
        # Two that are linked to one another are a line.
        self.kinds = [
            "Line" if size == 2 and kind in ("FullyConnected", "Ring") else kind
            for kind, size in zip(kinds, sizes, strict=True)
        ]
        self.npus = topology.npu_count
        self.digits = np.empty((topology.device_count, len(sizes)), np.int64)
        rest = np.arange(self.npus)
        for k, size in enumerate(sizes):
            self.digits[: self.npus, k] = rest % size
            rest = rest // size
        self.src = topology.link_src.astype(np.int64)
        self.dst = topology.link_dst.astype(np.int64)
        self._place_switch_digits()

    def _place_switch_digits(self) -> None:
        """Assign to each switch the digits of an NPU that it joins, and -1 in its own dimension."""
        into = (self.dst >= self.npus) & (self.src < self.npus)
        switch, npu = self.dst[into], self.src[into]
        self.digits[self.npus :] = -2
        low = np.full((self.topology.device_count, len(self.sizes)), np.iinfo(np.int64).max)
        high = np.full_like(low, -1)
        np.minimum.at(low, switch, self.digits[npu])
        np.maximum.at(high, switch, self.digits[npu])
        own = slice(self.npus, None)
        self.digits[own] = np.where(low[own] == high[own], low[own], -1)

    def in_boxes(self) -> Layout:
        """Lay out grids, told apart by the dimensions that are not in them."""
        real, sizes = self.real, self.sizes
        axes = self._grid_axes()
        if axes:
            inner = axes
            width = float(sizes[axes[0]])
            height = float(sizes[axes[1]]) if len(axes) > 1 else 1.0
            column = self.digits[:, axes[0]].astype(float)
            row = self.digits[:, axes[1]].astype(float) if len(axes) > 1 else column * 0
            has_arcs = [self.kinds[k] == "FullyConnected" for k in axes]
            if has_arcs[0]:
                row, height = row * _WIDE, (height - 1) * _WIDE + 1
            if has_arcs[-1] and len(axes) > 1:
                column, width = column * _WIDE, (width - 1) * _WIDE + 1
        else:
            inner = [real[0]]
            size = sizes[real[0]]
            columns = math.ceil(math.sqrt(size * _ASPECT))
            width, height = float(columns), float(math.ceil(size / columns))
            column = (self.digits[:, real[0]] % columns).astype(float)
            row = (self.digits[:, real[0]] // columns).astype(float)
        outer = [k for k in real if k not in inner]
        box_of, places, labels = self._boxes(outer, width, height)
        devices = places[np.maximum(box_of, 0)] + np.column_stack([column, row])
        wide, high, above = width - 1 + 2 * _PAD, height - 1 + 2 * _PAD, _LABEL if outer else 0.0
        boxes = [
            Box(x - _PAD, y - _PAD - above, wide, high + above, label)
            for (x, y), label in zip(places.tolist(), labels, strict=True)
        ]
        self._place_switches(devices, boxes)
        return self._with_links(devices, boxes, box_of, set(axes))

    def _grid_axes(self) -> list[int]:
        """Choose the one or two dimensions that make the squarest picture as a grid."""
        flat = [
            k
            for k in self.real
            if self.kinds[k] in ("Line", "Ring")
            or (self.kinds[k] == "FullyConnected" and self.sizes[k] <= _ARCS)
        ]
        if len(flat) < 2:
            return flat

        def badness(pair: tuple[int, int]) -> tuple[float, tuple[int, int]]:
            outer = [k for k in self.real if k not in pair]
            wide, high = float(self.sizes[pair[0]]), float(self.sizes[pair[1]])
            high *= _WIDE if self.kinds[pair[0]] == "FullyConnected" else 1.0
            wide *= _WIDE if self.kinds[pair[1]] == "FullyConnected" else 1.0
            columns, rows = self._arrangement(outer, wide, high)
            return round(_room(columns * (wide + _APART), rows * (high + _APART)), 6), pair

        pairs = [(a, b) for a, b in itertools.permutations(flat, 2)]
        best = min(pairs, key=badness)
        return list(best)

    def _arrangement(self, outer: list[int], width: float, height: float) -> tuple[int, int]:
        """Return in how many columns and rows the boxes lie."""
        if not outer:
            return 1, 1
        if len(outer) > 1:
            return (
                math.prod(self.sizes[k] for k in outer[0::2]),
                math.prod(self.sizes[k] for k in outer[1::2]),
            )
        count = self.sizes[outer[0]]

        def badness(columns: int) -> tuple[float, int]:
            rows = math.ceil(count / columns)
            return _room(columns * (width + _APART), rows * (height + _APART)), columns

        columns = min(range(1, count + 1), key=badness)
        return columns, math.ceil(count / columns)

    def _boxes(
        self, outer: list[int], width: float, height: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], list[str]]:
        """Return each device's box (-1 for a switch that joins several), places and labels of boxes."""
        columns, _ = self._arrangement(outer, width, height)
        count = math.prod(self.sizes[k] for k in outer)
        box_of = np.zeros(self.topology.device_count, np.int64)
        step = 1
        joins = np.zeros(self.topology.device_count, bool)
        for k in outer:
            box_of += self.digits[:, k] * step
            joins |= self.digits[:, k] < 0
            step *= self.sizes[k]
        box_of[joins] = -1
        number = np.arange(count)
        coordinates = []
        for k in outer:
            coordinates.append(number % self.sizes[k])
            number = number // self.sizes[k]
        if len(outer) > 1:
            at = [np.zeros(count, np.int64), np.zeros(count, np.int64)]
            steps = [1, 1]
            for j, k in enumerate(outer):
                at[j % 2] += coordinates[j] * steps[j % 2]
                steps[j % 2] *= self.sizes[k]
        else:
            number = np.arange(count)
            at = [number % columns, number // columns]
        places = np.column_stack(
            [
                at[0] * (width - 1 + 2 * _PAD + _APART),
                at[1] * (height - 1 + 2 * _PAD + _LABEL + _APART),
            ]
        ).astype(float)
        labels = [
            ", ".join(f"dim {k + 1} = {value}" for k, value in zip(outer, values, strict=True))
            for values in zip(*(each.tolist() for each in coordinates), strict=True)
        ]
        return box_of, places, labels or [""]

    def _place_switches(self, devices: NDArray[np.float64], boxes: list[Box]) -> None:
        """Put switches of one box on its upper edge and the others in a strip below, a dimension a row."""
        total = self.topology.device_count
        if total == self.npus:
            return
        right = max(box.x + box.width for box in boxes)
        left = min(box.x for box in boxes)
        bottom = max(box.y + box.height for box in boxes)
        dimension = np.argmax(self.digits[self.npus :] < 0, axis=1)
        row = 0.0
        for k in self.real:
            own = np.flatnonzero(dimension == k) + self.npus
            if not len(own) or self.kinds[k] != "Switch":
                continue
            per_row = max(1, int(right - left))
            for first in range(0, len(own), per_row):
                row += 1.0
                some = own[first : first + per_row]
                width = (right - left) / len(some)
                devices[some, 0] = left + (np.arange(len(some)) + 0.5) * width
                devices[some, 1] = bottom + row
        lost = np.flatnonzero((self.digits[self.npus :] >= 0).all(axis=1)) + self.npus
        if len(lost):
            devices[lost] = np.column_stack(
                [left + np.arange(len(lost)), np.full(len(lost), bottom + row + 1)]
            )

    def _with_links(
        self,
        devices: NDArray[np.float64],
        boxes: list[Box],
        box_of: NDArray[np.int64],
        axes: set[int],
    ) -> Layout:
        src, dst, npus = self.src, self.dst, self.npus
        ways, lanes = straight(self.topology, devices), lanes_of(self.topology)
        is_stub = np.zeros(len(src), bool)
        leaves, comes = (src < npus) & (dst >= npus), (src >= npus) & (dst < npus)
        between = (src < npus) & (dst < npus)
        differs = self.digits[src] != self.digits[dst]
        dimension = np.argmax(differs, axis=1)
        dimension[comes] = np.argmax(self.digits[src[comes]] < 0, axis=1)
        dimension[leaves] = np.argmax(self.digits[dst[leaves]] < 0, axis=1)
        step = np.take_along_axis(self.digits[dst] - self.digits[src], dimension[:, None], 1)[:, 0]
        ups = step > 0
        askew = 0
        for k in self.real:
            own = between & (dimension == k)
            size, kind = self.sizes[k], self.kinds[k]
            if kind == "FullyConnected" and k in axes:
                passed = np.abs(step) - 1
                ways[own, 4] = np.where(passed[own] > 0, _ARC * passed[own] + 0.1, 0.0)
                continue
            if kind == "FullyConnected":
                angle = math.radians(_ANGLES[askew % len(_ANGLES)])
                askew += 1
                self._fan(ways, is_stub, np.flatnonzero(own), devices, angle, size)
                lanes[own] = 0
                continue
            if kind == "Switch":
                angle = math.radians(_ANGLES[askew % len(_ANGLES)])
                askew += 1
                out = np.array([math.cos(angle), math.sin(angle)])
                for some, at in ((leaves, src), (comes, dst)):
                    mine = np.flatnonzero(some & (dimension == k))
                    near, far = (
                        devices[at[mine]] + 0.16 * out,
                        devices[at[mine]] + (0.16 + _FAR) * out,
                    )
                    ends = (near, far) if some is leaves else (far, near)
                    ways[mine, 0:2], ways[mine, 2:4] = ends
                    is_stub[mine] = True
                continue
            wraps = own & (np.abs(step) == size - 1) if kind == "Ring" and size > 2 else own & False
            ups = ups ^ wraps  # from the last to the first is still upwards
            if k in axes:
                direction = devices[dst] - devices[src]
                length = np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-9)
                mine = np.flatnonzero(wraps)
                out = -direction[mine] / length[mine]
                ways[mine, 0:2] = devices[src[mine]] + 0.16 * out
                ways[mine, 2:4] = devices[src[mine]] + (0.16 + _STUB) * out
                is_stub[mine] = True
                lanes[mine] = 0
                continue
            angle = math.radians(_ANGLES[askew % len(_ANGLES)])
            askew += 1
            out = np.array([math.cos(angle), math.sin(angle)])
            mine = np.flatnonzero(own)
            sign = np.where(ups[mine], 1.0, -1.0)[:, None]
            ways[mine, 0:2] = devices[src[mine]] + 0.16 * sign * out
            ways[mine, 2:4] = devices[src[mine]] + (0.16 + _FAR) * sign * out
            is_stub[mine] = True
            lanes[mine] = np.where(lanes[mine] > 1, lanes[mine] - 1, 0)
        return self._bundled(
            devices, ways, lanes, is_stub, boxes, box_of, dimension, ups, leaves, comes
        )

    def _fan(
        self,
        ways: NDArray[np.float64],
        is_stub: NDArray[np.bool_],
        links: NDArray[np.intp],
        devices: NDArray[np.float64],
        angle: float,
        size: int,
    ) -> None:
        """Draw an NPU's links of a dimension where all are linked as one stub, a slice a link."""
        src, dst = self.src[links], self.dst[links]
        out = np.array([math.cos(angle), math.sin(angle)])
        parts = min(size - 1, _SLICES)
        order = (dst - src) % self.npus
        rank = np.zeros(len(links), np.int64)
        by = np.lexsort((order, src))
        first = np.ones(len(by), bool)
        first[1:] = src[by][1:] != src[by][:-1]
        starts = np.flatnonzero(first)
        rank[by] = np.arange(len(by)) - np.repeat(starts, np.diff([*starts, len(by)]))
        low = rank % parts / parts
        ways[links, 0:2] = devices[src] + (0.16 + _STUB * low)[:, None] * out
        ways[links, 2:4] = devices[src] + (0.16 + _STUB * (low + 1 / parts))[:, None] * out
        is_stub[links] = True

    def _bundled(
        self,
        devices: NDArray[np.float64],
        ways: NDArray[np.float64],
        lanes: NDArray[np.int64],
        is_stub: NDArray[np.bool_],
        boxes: list[Box],
        box_of: NDArray[np.int64],
        dimension: NDArray[np.intp],
        ups: NDArray[np.bool_],
        leaves: NDArray[np.bool_],
        comes: NDArray[np.bool_],
    ) -> Layout:
        src, dst = self.src, self.dst
        box = np.where(comes, box_of[dst], box_of[src])
        box = np.maximum(box, 0)
        way = np.where(leaves, 2, np.where(comes, 3, np.where(ups, 0, 1)))
        all_linked = np.isin(dimension, [k for k in self.real if self.kinds[k] == "FullyConnected"])
        way = np.where(all_linked & (way < 2), 4, way)
        values, bundles = numbered((box * len(self.sizes) + dimension) * 5 + way)
        words = ("+", "−", "to switch", "from switch", "")
        labels = [
            (
                int(value) // 5 // len(self.sizes),
                f"dim {int(value) // 5 % len(self.sizes) + 1} {words[int(value) % 5]}".strip(),
            )
            for value in values
        ]
        return Layout(devices, ways, lanes, is_stub, bundles, boxes, labels)

    def askew(self) -> Layout:
        """Lay dimensions out by turns to the right and down, each switch amid the NPUs that it joins."""
        devices, npus = np.zeros((self.topology.device_count, 2)), self.npus
        steps = [1.0, 1.0]
        for i, k in enumerate(self.real):
            axis, digit = i % 2, self.digits[:npus, k]
            devices[:npus, axis] += digit * steps[axis]
            devices[:npus, 1 - axis] += digit * _ASKEW * steps[1 - axis] * (i >= 2)
            steps[axis] *= self.sizes[k] + 0.5
        centre = devices[:npus].mean(axis=0)
        apart = _AMID * max(float(np.ptp(devices[:npus], axis=0).max()), 1.0) / math.sqrt(npus)
        for switch in range(npus, len(devices)):
            near = self.src[(self.dst == switch) & (self.src < npus)]
            middle = devices[near].mean(axis=0) if len(near) else centre
            # Beside the way inwards, along which its links lead.
            beside = math.atan2(*(middle - centre)[::-1]) + math.pi / 2
            for turn in range(_TURNS):
                radius, angle = 0.8 * apart * math.sqrt(turn), beside + 2.4 * (turn - 2)
                devices[switch] = middle + radius * np.array([math.cos(angle), math.sin(angle)])
                gaps = np.linalg.norm(devices[:switch] - devices[switch], axis=1)
                if gaps.min() >= apart:
                    break
        x, y = (devices.min(axis=0) - _PAD).tolist()
        wide, high = (np.ptp(devices, axis=0) + 2 * _PAD).tolist()
        return self._plain(devices, Box(x, y, wide, high, ""), is_bent=True)

    def circle(self, count: int) -> Layout:
        """Lay out a lone ring, or NPUs that are all linked."""
        radius = max(1.0, count / 6.0)
        devices = np.zeros((self.topology.device_count, 2))
        devices[:count] = circle(count, radius)
        box = Box(-radius - _PAD, -radius - _PAD, 2 * (radius + _PAD), 2 * (radius + _PAD), "")
        return self._plain(devices, box, is_bent=True)

    def snake(self, count: int) -> Layout:
        """Lay out a long ring or line in rows that run to and fro; only what closes it is a stub."""
        per_row = min(count, max(2, math.ceil(math.sqrt(count * _ASPECT))))
        number = np.arange(count)
        row, column = number // per_row, number % per_row
        column = np.where(row % 2, per_row - 1 - column, column)
        devices = np.zeros((self.topology.device_count, 2))
        devices[:count] = np.column_stack([column, row])
        closes = np.flatnonzero(np.abs(self.src - self.dst) > 1)
        wide, high = per_row - 1 + 2 * _PAD, int(row.max()) + 2 * _PAD
        found = self._plain(devices, Box(-_PAD, -_PAD, wide, high, ""))
        start = devices[self.src[closes]]
        out = np.where(self.src[closes] == 0, -1.0, np.where(row[self.src[closes]] % 2, -1.0, 1.0))
        found.ways[closes, 0:2] = start + np.column_stack([0.16 * out, 0 * out])
        found.ways[closes, 2:4] = start + np.column_stack([(0.16 + _STUB) * out, 0 * out])
        found.is_stub[closes] = True
        found.lanes[closes] = 0
        return found

    def _plain(self, devices: NDArray[np.float64], box: Box, *, is_bent: bool = False) -> Layout:
        ways = straight(self.topology, devices)
        ups = (self.dst - self.src) % self.npus <= self.npus // 2
        words = ("all links", "+", "−")
        is_all = self.kinds[self.real[0]] == "FullyConnected"
        ways_of = np.zeros(len(ways), np.int64) if is_all else np.where(ups, 1, 2)
        values, bundles = numbered(ways_of)
        labels = [(0, words[value]) for value in values.tolist()]
        is_stub = np.zeros(len(ways), bool)
        if is_bent:
            bend(ways, is_stub, self.topology, devices)
        return Layout(devices, ways, lanes_of(self.topology), is_stub, bundles, [box], labels)

"""The schematic of a network of dimensions: one panel for each.

The first panel is of NPUs; what it shows is one member of the next, and so on. A dragonfly is such
a network too: NPUs in a group, and groups. :mod:`hocket.plot.panel_art` draws them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hocket.units import format_bandwidth, format_time_ps

if TYPE_CHECKING:
    from hocket import _core
    from hocket.plot.tiers import Failures

_GRID = ("Ring", "Line")
_CUBE_AXES = 3
_PLURALS = {
    "Ring": "rings",
    "Line": "lines",
    "FullyConnected": "full meshes",
    "Switch": "switches",
    "torus": "tori",
    "mesh": "meshes",
    "cube": "cubes",
    "square": "squares",
}

_Axis = tuple[str, int]


@dataclass(frozen=True)
class Panel:
    """One dimension of a network, or several that are drawn together.

    Attributes
    ----------
    title
        Such as ``dimension 2: Ring of 8``.
    axes
        Kind and size of each dimension.
    first
        The number of the first of them, from 0.
    inner
        NPUs of a member.
    links
        How many directed links the dimensions have in all.
    facts
        Lines below the picture.
    switches
        Numbers of the switches of the group that is drawn, one for each position within a member.
    members_failed, links_failed
        Places of members that have failed or hold what has, and pairs of places; a place twice
        is the link of an NPU to its switch.
    switches_failed
        Numbers of all switches that have failed.
    shown
        Place of the member that the panel before shows.
    """

    title: str
    axes: tuple[_Axis, ...]
    first: int
    inner: int
    links: int
    facts: tuple[str, ...]
    switches: tuple[int, ...] = ()
    members_failed: frozenset[tuple[int, ...]] = frozenset()
    links_failed: frozenset[tuple[tuple[int, ...], tuple[int, ...]]] = frozenset()
    switches_failed: frozenset[int] = frozenset()
    shown: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """The number of members."""
        return math.prod(size for _, size in self.axes)


def panels_of(topology: _core.Topology, failures: Failures) -> list[Panel] | None:
    """Return the panels of a network, or None if it has no dimensions and is not a dragonfly."""
    dimensions = [each[:2] for each in topology.dimensions]
    numbers = [i for i, (_, size) in enumerate(dimensions) if size > 1]
    axes = [dimensions[i] for i in numbers]
    titles: list[str] | None = None
    if not axes:
        size = _clique_size(topology)
        if size is None:
            return None
        axes = [("FullyConnected", size), ("FullyConnected", topology.npu_count // size)]
        titles = [f"a group: {size:,} NPUs, fully connected", f"{axes[1][1]:,} groups"]
    return _Maker(topology, failures, axes, numbers, titles).panels()


def _clique_size(topology: _core.Topology) -> int | None:
    """Return the size of equal groups of consecutive NPUs that are fully connected, if they are so."""
    npus = topology.npu_count
    if topology.device_count > npus:
        return None
    pairs = set(zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True))
    size = 1
    while size < npus and all((other, size) in pairs for other in range(size)):
        size += 1
    if size < 3 or size == npus or npus % size:
        return None
    inside = sum(src // size == dst // size for src, dst in pairs)
    return size if inside == npus * (size - 1) else None


class _Maker:
    """Makes panels: which dimensions go together, how many links they have, what has failed."""

    def __init__(
        self,
        topology: _core.Topology,
        failures: Failures,
        axes: list[_Axis],
        numbers: list[int],
        titles: list[str] | None,
    ) -> None:
        self.topology, self.failures = topology, failures
        self.axes, self.numbers, self.titles = axes, numbers, titles
        rest = np.arange(topology.npu_count)
        columns = []
        for _, size in axes:
            columns.append(rest % size)
            rest = rest // size
        self.places = np.column_stack(columns)
        self.links = self._links()

    def _links(self) -> NDArray[np.int64]:
        """Return the dimension of each link: that along which its ends, or its switch's NPUs, differ."""
        npus = self.topology.npu_count
        src = self.topology.link_src.astype(np.int64)
        dst = self.topology.link_dst.astype(np.int64)
        self.of_switch: dict[int, int] = {}
        self.npus_of: dict[int, list[int]] = {}
        for a, b in zip(src.tolist(), dst.tolist(), strict=True):
            if a >= npus:
                self.npus_of.setdefault(a, []).append(b)
        for switch, around in self.npus_of.items():
            differ = np.ptp(self.places[around], axis=0)
            self.of_switch[switch] = int(np.argmax(differ > 0))
        of = np.empty(len(src), dtype=np.int64)
        direct = (src < npus) & (dst < npus)
        differ = self.places[src[direct]] != self.places[dst[direct]]
        # Of a dragonfly's global links both coordinates differ: they are of the last.
        last = differ.shape[1] - 1 - np.argmax(differ[:, ::-1], axis=1)
        of[direct] = last
        of[~direct] = [
            self.of_switch[max(a, b)] for a, b in zip(src[~direct], dst[~direct], strict=True)
        ]
        return of

    def panels(self) -> list[Panel]:
        base = self._base()
        found, i = [], 0
        while i < len(self.axes):
            count = self._together(i)
            found.append(self._panel(i, count, base))
            i += count
        return found

    def _together(self, i: int) -> int:
        """Return how many dimensions from one on are drawn together."""
        kinds = [kind for kind, _ in self.axes[i:]]
        sizes = [size for _, size in self.axes[i:]]
        small = 0
        while (
            small < min(len(sizes), _CUBE_AXES) and sizes[small] == 2 and kinds[small] != "Switch"
        ):
            small += 1
        if small > 1:
            return small
        return 2 if len(kinds) > 1 and kinds[0] in _GRID and kinds[1] in _GRID else 1

    def _base(self) -> NDArray[np.int64]:
        """Return the place of the NPU whose groups are drawn: one that failed, if any has."""
        npus = self.topology.npu_count
        failed = sorted(self.failures.devices)
        for link in sorted(self.failures.links):
            failed += [int(self.topology.link_src[link]), int(self.topology.link_dst[link])]
        for device in failed:
            npu = device if device < npus else self.npus_of[device][0]
            return np.asarray(self.places[npu])
        return np.asarray(self.places[0])

    def _panel(self, i: int, count: int, base: NDArray[np.int64]) -> Panel:
        axes = tuple(self.axes[i : i + count])
        inner = math.prod(size for _, size in self.axes[:i])
        links = int(((self.links >= i) & (self.links < i + count)).sum())
        outer = self.topology.npu_count // inner // math.prod(size for _, size in axes)
        members, pairs, switches = self._failed(i, count, base)
        lines = [f"{links:,} links"]
        rates = np.unique(
            self.topology.link_bandwidth[(self.links >= i) & (self.links < i + count)]
        )
        delays = np.unique(
            self.topology.link_latency_ps[(self.links >= i) & (self.links < i + count)]
        )
        shown = " to ".join(format_bandwidth(int(each)) for each in _ends(rates))
        late = " to ".join(format_time_ps(int(each)) for each in _ends(delays))
        lines.append(f"{shown} a link, {late}")
        own = tuple(
            switch
            for switch, of in self.of_switch.items()
            if of == i and (self.places[self.npus_of[switch][0], i + 1 :] == base[i + 1 :]).all()
        )
        many = f", × {outer:,}" if outer > 1 else ""
        return Panel(
            title=self._title(i, axes) + many,
            axes=axes,
            first=i,
            inner=inner,
            links=links,
            facts=(*self._structure(i, axes, inner), *lines),
            switches=own,
            members_failed=members,
            links_failed=pairs,
            switches_failed=switches,
            shown=tuple(base[i : i + count].tolist()),
        )

    def _title(self, i: int, axes: Sequence[_Axis]) -> str:
        if self.titles is not None:
            return self.titles[i]
        kinds = list(dict.fromkeys(kind for kind, _ in axes))
        sizes = " x ".join(f"{size:,}" for _, size in axes)
        if len(axes) == 1:
            return f"dimension {self.numbers[i] + 1}: {kinds[0]} of {sizes}"
        last = self.numbers[i + len(axes) - 1] + 1
        joint = "and" if len(axes) == 2 else "to"
        which = f"dimensions {self.numbers[i] + 1} {joint} {last}"
        shapes = {"Ring": "torus", "Line": "mesh"}
        if all(size == 2 for _, size in axes):
            return f"{which}: {'cube' if len(axes) == _CUBE_AXES else 'square'} of {sizes}"
        name = shapes[kinds[0]] if len(kinds) == 1 else " and ".join(kinds)
        return f"{which}: {name} of {sizes}"

    def _structure(self, i: int, axes: Sequence[_Axis], inner: int) -> list[str]:
        """Describe what the members are and how often the shape is there among them."""
        if self.titles is not None and i == 1:
            pairs = axes[0][1] * (axes[0][1] - 1)
            count = int((self.links == 1).sum())
            each = count // pairs if count % pairs == 0 else 0
            if each:
                return [f"{each:,} link{'s'[: each != 1]} each way between every two groups"]
            return [f"{count / pairs:.3g} links each way between two groups, on average"]
        if inner == 1:
            return [f"{math.prod(size for _, size in axes):,} NPUs"]
        shape = (
            axes[0][0] if len(axes) == 1 else self._title(i, axes).split(": ")[1].split(" of ")[0]
        )
        word = _PLURALS.get(shape, "grids")
        return [f"a member is {inner:,} NPUs", f"{inner:,} {word}, one a position"]

    def _failed(
        self, i: int, count: int, base: NDArray[np.int64]
    ) -> tuple[
        frozenset[tuple[int, ...]],
        frozenset[tuple[tuple[int, ...], tuple[int, ...]]],
        frozenset[int],
    ]:
        """Find what has failed of the group that is drawn: members, pairs of them, switches."""
        npus = self.topology.npu_count
        here = slice(i, i + count)

        def is_drawn(npu: int) -> bool:
            return bool((self.places[npu, i + count :] == base[i + count :]).all())

        def at(npu: int) -> tuple[int, ...]:
            return tuple(self.places[npu, here].tolist())

        members = {at(each) for each in self.failures.devices if each < npus and is_drawn(each)}
        switches = {each for each in self.failures.devices if each >= npus}
        pairs = set()
        for link in self.failures.links:
            src, dst = int(self.topology.link_src[link]), int(self.topology.link_dst[link])
            ends = [each for each in (src, dst) if each < npus]
            if not all(is_drawn(each) for each in ends):
                continue
            own = i <= self.links[link] < i + count
            if own and len(ends) == 2:
                pairs |= {(at(src), at(dst)), (at(dst), at(src))}
            elif own and i == 0:
                pairs.add((at(ends[0]), at(ends[0])))  # to its switch
            elif self.links[link] < i or own:
                members |= {at(each) for each in ends}
        return frozenset(members), frozenset(pairs), frozenset(switches)


def _ends(values: NDArray[Any]) -> list[int]:
    return [int(values[0])] if len(values) == 1 else [int(values[0]), int(values[-1])]

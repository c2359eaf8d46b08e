"""A schematic of a network with switches: tiers of switches over groups, groups in groups.

Of what there are many of, the first, the last and those with failures are drawn, with how many
there are. A line between two devices is drawn where there is a link, in the colour of its kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from matplotlib.collections import LineCollection
from matplotlib.patches import FancyBboxPatch

from hocket.layout.groups import Group, alike, chosen, device_kinds, groups_of, span
from hocket.plot.style import ACCENT, NPU
from hocket.units import counted

if TYPE_CHECKING:
    from hocket import _core

_CHARACTER, _SMALLEST, _HEIGHT = 0.068, 0.5, 0.3
"""Of boxes: width of a character and of the smallest, height of a line [inches at full size]."""
_APART, _BETWEEN, _PADDING, _STRIP = 0.12, 0.52, 0.12, 0.24
"""Between boxes of a row, between rows, within a group, and its label's height."""
_FILLS = ("#f3f5f8", "#e4e9f0", "#d5dde8")
_SWITCH_FILL, _SWITCH_EDGE, _FAILED_FILL = "#e0e0e0", "#6b6b6b", "#f8dcd2"


@dataclass(frozen=True)
class Failures:
    """The failed parts of a network."""

    devices: frozenset[int] = frozenset()
    links: frozenset[int] = frozenset()
    """Links between devices that have not."""

    def within(self, topology: _core.Topology, devices: Sequence[int]) -> int:
        """Count the devices and pairs of devices among these that have failed."""
        inside = set(devices)
        ends = (topology.link_src, topology.link_dst)
        pairs = {frozenset((int(ends[0][i]), int(ends[1][i]))) for i in self.links}
        return len(self.devices & inside) + sum(pair <= inside for pair in pairs)


@dataclass
class _Box:
    """A rectangle with text: a switch, NPUs together, what is left out, or a group."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    lines: list[str]
    devices: tuple[int, ...] = ()
    depth: int = 0
    has_failed: bool = False

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass
class Drawing:
    """The places of all parts [inches at full size]; y grows upwards."""

    boxes: list[_Box] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def arrange(topology: _core.Topology, failures: Failures) -> Drawing:
    """Lay out the schematic of a network."""
    return _Arranger(topology, failures).all_of(groups_of(topology))


class _Arranger:
    """Lays groups out, the widths first."""

    def __init__(self, topology: _core.Topology, failures: Failures) -> None:
        self.topology, self.failures = topology, failures
        self.names = topology.device_names
        self.kinds = device_kinds(topology)
        self.near: list[list[int]] = [[] for _ in self.names]
        for src, dst in zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True):
            self.near[src].append(dst)
        self.failed = set(failures.devices)
        for link in failures.links:
            self.failed |= {int(topology.link_src[link]), int(topology.link_dst[link])}

    def all_of(self, group: Group) -> Drawing:
        drawing = Drawing()
        rows = self._rows(group, 0)
        drawing.width = max(self._row_width(row) for row in rows)
        drawing.height = self._place_rows(drawing, rows, 0.0, 0.0, drawing.width, 0)
        for box in drawing.boxes:  # from the top down to from the bottom up
            box.y = drawing.height - box.y - box.height
        return drawing

    def _rows(self, group: Group, depth: int) -> list[list[tuple[str, Any]]]:
        """Return rows of what is drawn: (kind, what), from top to bottom."""
        head = 2 if depth == 0 else 1
        inside = set(group.devices)
        tiers = sorted(
            group.tiers,
            key=lambda tier: all(inside.issuperset(self.near[each]) for each in tier),
        )
        rows: list[list[tuple[str, Any]]] = []
        for tier in tiers:
            is_bad = [device in self.failed for device in tier]
            kept = chosen(len(tier), head, 1, is_bad.__getitem__)
            more = ("dots", f"… × {len(tier):,}")
            rows.append(_once([more if i is None else ("switch", tier[i]) for i in kept]))
        for kind in alike(group.children, self.kinds):
            is_bad = [bool(self.failed & set(each.devices)) for each in kind]
            most = 3 if depth == 0 else 1
            kept = chosen(len(kind), head, 1, is_bad.__getitem__, most)
            more = ("dots", f"… × {len(kind):,}")
            of = [(i, len(kind), kind[i], depth + 1) for i in range(len(kind))]
            rows.append(_once([more if i is None else ("group", of[i]) for i in kept]))
        if group.npus:
            rows.append([("npus", group.npus)])
        return rows

    def _row_width(self, row: list[tuple[str, Any]]) -> float:
        return sum(self._width(*each) for each in row) + _APART * (len(row) - 1)

    def _width(self, kind: str, what: Any) -> float:
        if kind == "group":
            _, _, group, depth = what
            rows = max(self._row_width(row) for row in self._rows(group, depth))
            label = _text_width([self._label(*what)])
            return max(rows, label) + 2 * _PADDING
        if kind == "switch":
            return _text_width(["✕ " * (what in self.failures.devices) + self.names[what]])
        return _text_width([what] if kind == "dots" else self._about(what))

    def _label(self, number: int, count: int, group: Group, depth: int) -> str:
        del depth
        which = f"{number + 1:,} of {count:,}: " if count > 1 else ""
        return f"{which}{counted(group.npu_count, 'NPU')}"

    def _about(self, npus: Sequence[int]) -> list[str]:
        """Return how many NPUs there are, which, and what joins them directly."""
        inside = set(npus)
        lines = [counted(len(npus), "NPU"), span(self.names, npus)]
        direct = sum(dst in inside for npu in npus for dst in self.near[npu])
        if direct:
            lines.append(f"{direct:,} links inside")
        dead = sorted(inside & self.failures.devices)
        if dead:
            lines.append(f"{span(self.names, dead)} failed")
        return lines

    def _place_rows(
        self,
        drawing: Drawing,
        rows: list[list[tuple[str, Any]]],
        x: float,
        y: float,
        width: float,
        depth: int,
    ) -> float:
        """Place rows from ``y`` downwards in the middle of a width; give where they end."""
        for i, row in enumerate(rows):
            own = self._row_width(row)
            left, bottom = x + (width - own) / 2, y
            if row[0][0] == "npus":  # as wide as what is above
                left, own = x, width
            first = len(drawing.boxes)
            for kind, what in row:
                wide = own if kind == "npus" else self._width(kind, what)
                end = self._place(drawing, kind, what, left, y, wide, depth)
                bottom = max(bottom, end)
                left += wide + _APART
            for box in drawing.boxes[first:]:
                if box.kind == "dots" and box.y == y:
                    box.y = (y + bottom - box.height) / 2
            y = bottom + (_BETWEEN if i + 1 < len(rows) else 0.0)
        return y

    def _place(
        self, drawing: Drawing, kind: str, what: Any, x: float, y: float, width: float, depth: int
    ) -> float:
        """Place one thing with all that is in it; give where it ends."""
        if kind == "group":
            _, _, group, depth = what
            box = _Box("group", x, y, width, 0.0, [self._label(*what)], group.devices, depth)
            box.has_failed = bool(self.failures.within(self.topology, group.devices))
            drawing.boxes.append(box)
            inside = width - 2 * _PADDING
            rows = self._rows(group, depth)
            end = self._place_rows(drawing, rows, x + _PADDING, y + _PADDING, inside, depth)
            box.height = end + _STRIP - y
            return y + box.height
        lines = [what] if kind == "dots" else []
        devices: tuple[int, ...] = ()
        if kind == "switch":
            lines, devices = [self.names[what]], (what,)
        elif kind == "npus":
            lines, devices = self._about(what), tuple(what)
        height = _HEIGHT if len(lines) == 1 else 0.17 * len(lines) + 0.1
        box = _Box(kind, x, y, width, height, lines, devices, depth)
        box.has_failed = bool(self.failures.devices & set(devices))
        drawing.boxes.append(box)
        return y + height


def _once(row: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return how many there are if some are left out for the first time."""
    first = next((i for i, each in enumerate(row) if each[0] == "dots"), None)
    return [
        ("dots", "…") if i != first and each[0] == "dots" else each for i, each in enumerate(row)
    ]


def _text_width(lines: list[str]) -> float:
    return max(_SMALLEST, _CHARACTER * max(map(len, lines)) + 0.16)


def draw_tiers(
    axes: Any,
    topology: _core.Topology,
    drawing: Drawing,
    colors: dict[tuple[str, str, int, int], Any],
    failures: Failures,
    scale: float,
) -> None:
    """Draw a layout on axes of ``scale`` inches a unit; colours are of kinds of links."""
    points = max(7.5 * min(scale, 1.0), 3.0)
    for box in drawing.boxes:
        _draw_box(axes, box, points)
    _draw_links(axes, topology, drawing, colors, failures)
    axes.set_xlim(-0.05, drawing.width + 0.05)
    axes.set_ylim(-0.05, drawing.height + 0.05)
    axes.set_axis_off()


def _draw_box(axes: Any, box: _Box, points: float) -> None:
    middle = box.y + box.height / 2
    if box.kind == "dots":
        axes.text(box.middle, middle, box.lines[0], fontsize=points, ha="center", va="center")
        return
    fill, edge, color = _SWITCH_FILL, _SWITCH_EDGE, "black"
    if box.kind == "npus":
        fill, edge, color = NPU, NPU, "white"
    elif box.kind == "group":
        fill, edge = _FILLS[min(box.depth - 1, len(_FILLS) - 1)], "#b8c0cc"
    if box.has_failed:
        edge = ACCENT
        fill, color = (_FAILED_FILL, ACCENT) if box.kind == "switch" else (fill, color)
    axes.add_patch(
        FancyBboxPatch(
            (box.x, box.y),
            box.width,
            box.height,
            boxstyle="round,pad=0,rounding_size=0.05",
            facecolor=fill,
            edgecolor=edge,
            linewidth=1.6 if box.has_failed else 0.8,
            zorder=3 if box.kind != "group" else 0.1 * box.depth,
        )
    )
    if box.kind == "group":
        where = (box.middle, box.y + _STRIP / 2)
        axes.text(*where, box.lines[0], fontsize=points, ha="center", va="center", zorder=4)
        return
    lines = [f"✕ {box.lines[0]}"] if box.kind == "switch" and box.has_failed else box.lines
    for i, line in enumerate(lines):
        y = box.y + box.height * (1 - (i + 0.5) / len(lines)) if len(lines) > 1 else middle
        axes.text(
            box.middle,
            y,
            line,
            fontsize=points,
            ha="center",
            va="center",
            color=color,
            weight="bold" if box.kind == "npus" and i == 0 else "normal",
            zorder=4,
        )


def _draw_links(
    axes: Any,
    topology: _core.Topology,
    drawing: Drawing,
    colors: dict[tuple[str, str, int, int], Any],
    failures: Failures,
) -> None:
    """Draw a line for each kind of link between two boxes; dashed in red where some have failed."""
    boxes = {device: box for box in drawing.boxes if box.kind != "group" for device in box.devices}
    kinds = device_kinds(topology)
    lines: dict[Any, set[tuple[Any, ...]]] = {}
    dead: set[tuple[Any, ...]] = set()
    left: Counter[tuple[Any, ...]] = Counter()
    columns = (topology.link_src, topology.link_dst)
    columns += (topology.link_bandwidth, topology.link_latency_ps)  # type: ignore[assignment]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for link, (src, dst, rate, delay) in enumerate(rows):
        one, other = boxes.get(src), boxes.get(dst)
        if one is None or other is None or one is other:
            continue
        upper, lower = sorted((one, other), key=lambda box: (-box.y, box.x))
        way = (_end(upper, lower), _end(lower, upper))
        if link in failures.links or {src, dst} & failures.devices:
            dead.add(way)
            continue
        left[way] += 1
        key = (kinds[src], kinds[dst], rate, delay)
        color = colors.get(key) or colors[kinds[dst], kinds[src], rate, delay]
        lines.setdefault(color, set()).add(way)
    for color, ways in lines.items():
        axes.add_collection(LineCollection(sorted(ways), colors=[color], linewidths=1.1, zorder=2))
    for part, style in ((True, (0, (2, 2))), (False, (0, (4, 2)))):
        some = sorted(way for way in dead if bool(left[way]) is part)
        axes.add_collection(
            LineCollection(some, colors=ACCENT, linestyles=[style], linewidths=1.6, zorder=2.5)
        )


def _end(box: _Box, other: _Box) -> tuple[float, float]:
    """Return where a line to another box leaves this one: from NPUs straight up, else from the middle."""
    if box.kind != "npus":
        return round(box.middle, 4), round(box.y + box.height / 2, 4)
    inside = min(max(other.middle, box.x + 0.1), box.x + box.width - 0.1)
    return round(inside, 4), round(box.y + box.height, 4)

"""Draws the panels of a schematic: rings, lines, grids, cubes, full meshes and switches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Circle, ConnectionPatch, FancyBboxPatch, Rectangle

from hocket.layout.groups import chosen
from hocket.plot.panels import Panel
from hocket.plot.style import ACCENT, LINK, NPU, SWITCH

MAX_COLUMNS = 4
"""Panels in a row."""
_MAX_AROUND, _MAX_ALONG = 9, 6
"""Members of a ring, and along an axis, that are drawn without leaving any out."""
_BOX, _BOX_EDGE, _FAILED_BOX = "#dfe7f1", "#7d93b2", "#f8dcd2"
_STYLE_FAILED = (0, (3, 2))
_SWITCH_COLORS = (LINK, "#4b9c6f", "#8a5fa8", "#b88a1d", "#5fb0b8", "#7a6248")
_MANY: dict[str, Any] = {
    "fontsize": 9,
    "ha": "center",
    "va": "center",
    "weight": "bold",
    "zorder": 5,
    "bbox": {
        "boxstyle": "round,pad=0.15",
        "facecolor": "white",
        "edgecolor": "none",
        "alpha": 0.85,
    },
}

Point = tuple[float, float]
Points = dict[tuple[int, ...], Point]


def draw_panels(figure: Any, panels: Sequence[Panel], names: Sequence[str], side: float) -> bool:
    """Draw panels of ``side`` inches, at most ``MAX_COLUMNS`` in a row; say if members are left out."""
    columns = min(len(panels), MAX_COLUMNS)
    rows = math.ceil(len(panels) / columns)
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    before, leaves_out = None, False
    line, most = 0.55 / side, max(len(panel.facts) for panel in panels)
    for i, (axes, panel) in enumerate(zip(grid, panels, strict=False)):
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_xlim(-1.3, 1.3)
        axes.set_ylim(-1.3 - line * most, 1.3 + line)
        axes.text(0, 1.28 + line / 2, panel.title, fontsize=9, ha="center", va="center")
        artist = _Artist(axes, panel, names)
        first = artist.draw()
        leaves_out |= artist.leaves_out
        for j, fact in enumerate(panel.facts):
            axes.text(0, -1.3 - line * (j + 0.5), fact, fontsize=7.5, ha="center", va="center")
        if before is not None and i % columns:
            _zoom(figure, before, axes, first)
        before = axes
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    return leaves_out


def _zoom(figure: Any, before: Any, axes: Any, member: tuple[Point, float]) -> None:
    """Lead from what a panel shows to the member of the next that it is."""
    (x, y), size = member
    for sign in (-1, 1):
        patch = ConnectionPatch(
            (1.24, sign * 1.2),
            (x - size, y + sign * size),
            coordsA=before.transData,
            coordsB=axes.transData,
            color="#9fb0c6",
            linewidth=0.8,
            linestyle=(0, (1, 2)),
            zorder=0,
        )
        patch.set_in_layout(False)
        figure.add_artist(patch)


class _Artist:
    """Draws one panel on axes from -1.3 to 1.3."""

    def __init__(self, axes: Any, panel: Panel, names: Sequence[str]) -> None:
        self.axes, self.panel, self.names = axes, panel, names
        self.size = 0.1 if panel.inner == 1 else 0.17
        self.leaves_out = False

    def draw(self) -> tuple[Point, float]:
        """Draw all; give place and half the side of the first member."""
        kind = self.panel.axes[0][0]
        edges = Rectangle(
            (-1.24, -1.24), 2.48, 2.48, fill=False, edgecolor="#c9d3e0", linewidth=0.8
        )
        self.axes.add_patch(edges)
        if len(self.panel.axes) > 1:
            points = self._cube() if all(n == 2 for _, n in self.panel.axes) else self._grid()
        elif kind == "Switch":
            points = self._switch()
        elif kind == "Line":
            points = self._line()
        else:
            points = self._circle(is_full=kind == "FullyConnected")
        for place, point in points.items():
            self._member(place, point)
        return points.get(self.panel.shown, points[min(points)]), self.size

    def _kept(self, axis: int, head: int, tail: int, most: int) -> list[int | None]:
        size = self.panel.axes[axis][1]
        if size <= most:
            return list(range(size))
        marked = {place[axis] for place in self.panel.members_failed}
        marked.add(self.panel.shown[axis])
        marked |= {place[axis] for pair in self.panel.links_failed for place in pair}
        return chosen(size, head, tail, lambda i: i in marked)

    def _circle(self, *, is_full: bool) -> Points:
        kept = self._kept(0, 5, 2, _MAX_AROUND)
        angles = [math.pi / 2 - 2 * math.pi * i / len(kept) for i in range(len(kept))]
        at = [(0.95 * math.cos(angle), 0.95 * math.sin(angle)) for angle in angles]
        points: Points = {(each,): at[i] for i, each in enumerate(kept) if each is not None}
        if is_full:
            places = sorted(points)
            for i, one in enumerate(places):
                for other in places[:i]:
                    self._line_between(one, other, points[one], points[other])
        else:
            count = self.panel.axes[0][1]
            for i, each in enumerate(kept):
                after = kept[(i + 1) % len(kept)]
                is_gap = each is None or after is None
                if not is_gap and (each + 1) % count == after:  # type: ignore[operator]
                    self._line_between((each,), (after,), at[i], at[(i + 1) % len(kept)])  # type: ignore[arg-type]
                else:
                    self._dotted(at[i], at[(i + 1) % len(kept)])
        for i, each in enumerate(kept):
            if each is None:
                self._dots(at[i], turned=math.degrees(angles[i]) - 90)
        if not all(each is not None for each in kept):
            self.axes.text(0, 0, self._many(), **_MANY)
        return points

    def _many(self) -> str:
        return f"× {self.panel.axes[0][1]:,}"

    def _line(self) -> Points:
        kept = self._kept(0, 3, 1, _MAX_ALONG)
        xs = np.linspace(-0.98, 0.98, len(kept)).tolist()
        for i in range(len(kept) - 1):
            one, other = kept[i], kept[i + 1]
            ends = ((xs[i], 0.0), (xs[i + 1], 0.0))
            if one is None or other is None:
                self._dotted(*ends)
            else:
                self._line_between((one,), (other,), *ends)
        for x, each in zip(xs, kept, strict=True):
            if each is None:
                self._dots((x, 0.0))
                self.axes.text(0, 0.5, self._many(), **_MANY)
        return {(each,): (x, 0.0) for x, each in zip(xs, kept, strict=True) if each is not None}

    def _grid(self) -> Points:
        """Draw a plane; lines that leave it come back on the other side."""
        kept = [self._kept(axis, 3, 1, _MAX_ALONG) for axis in (0, 1)]
        most = max(map(len, kept))
        step = 1.75 / max(most - 1, 1)
        xs = [step * (i - (len(kept[0]) - 1) / 2) for i in range(len(kept[0]))]
        ys = [-step * (i - (len(kept[1]) - 1) / 2) for i in range(len(kept[1]))]
        points: Points = {
            (a, b): (x, y)
            for a, x in zip(kept[0], xs, strict=True)
            for b, y in zip(kept[1], ys, strict=True)
            if a is not None and b is not None
        }
        for axis in (0, 1):
            for fixed in kept[1 - axis]:
                if fixed is not None:
                    self._grid_row(axis, fixed, kept[axis], points, step)
        self.size = min(self.size, 0.3 * step)
        for axis, coordinates in ((0, xs), (1, ys)):
            for i, each in enumerate(kept[axis]):
                if each is not None:
                    self._number(axis, each, coordinates[i])
                if each is None:
                    middle = (coordinates[i], 0.0) if axis == 0 else (0.0, coordinates[i])
                    self._dots_along(axis, middle, kept[1 - axis], xs if axis else ys)
        return points

    def _number(self, axis: int, number: int, at: float) -> None:
        """Write a coordinate above its column or left of its row."""
        x, y = (at, 1.15) if axis == 0 else (-1.15, at)
        self.axes.text(x, y, f"{number}", fontsize=6.5, ha="center", va="center", color=LINK)

    def _dots_along(
        self, axis: int, middle: Point, kept: list[int | None], across: list[float]
    ) -> None:
        for each, at in zip(kept, across, strict=True):
            if each is not None:
                point = (middle[0], at) if axis == 0 else (at, middle[1])
                self._dots(point, turned=0 if axis == 0 else 90)

    def _grid_row(
        self,
        axis: int,
        fixed: int,
        kept: list[int | None],
        points: Points,
        step: float,
    ) -> None:
        kind, size = self.panel.axes[axis]

        def place(each: int) -> tuple[int, ...]:
            return (each, fixed) if axis == 0 else (fixed, each)

        known = [each for each in kept if each is not None]
        for one, other in itertools.pairwise(known):
            if other == one + 1:
                self._line_between(
                    place(one), place(other), points[place(one)], points[place(other)]
                )
            else:
                self._dotted(points[place(one)], points[place(other)])
        if kind == "Ring" and size > 2:
            first, last = place(known[0]), place(known[-1])
            is_failed = (first, last) in self.panel.links_failed
            reach = 0.32 * step
            for end, sign in ((first, -1), (last, 1)):
                x, y = points[end]
                there = (x + sign * reach, y) if axis == 0 else (x, y - sign * reach)
                self._stroke((x, y), there, is_failed=is_failed)

    def _cube(self) -> Points:
        points: Points = {}
        for place in np.ndindex(*(2 for _ in self.panel.axes)):
            x, y = -0.85 + 1.3 * place[0], 0.5 - 1.3 * place[1]
            askew = place[2] if len(place) > 2 else 0
            points[tuple(place)] = (x + 0.45 * askew, y + 0.42 * askew)
        for one, there in points.items():
            for axis in range(len(one)):
                other = (*one[:axis], 1, *one[axis + 1 :])
                if one[axis] == 0:
                    self._line_between(one, other, there, points[other])
        return points

    def _switch(self) -> Points:
        """Draw members below switches; each switch joins one position of all members."""
        kept = self._kept(0, 3 if self.panel.inner == 1 else 2, 1, _MAX_ALONG - 1)
        xs = np.linspace(-0.92, 0.92, len(kept)).tolist()
        points: Points = {
            (each,): (x, -0.75) for x, each in zip(xs, kept, strict=True) if each is not None
        }
        switches = self.panel.switches
        failed = self.panel.switches_failed
        shown = chosen(len(switches), 2, 1, lambda i: switches[i] in failed)
        wide = 0.0 if len(shown) == 1 else 0.75 if len(shown) <= 4 else 0.98
        above = np.linspace(-wide, wide, len(shown)).tolist()
        inner = self.panel.inner
        self.size = 0.1 if inner == 1 else 0.22
        for i, (x, each) in enumerate(zip(above, shown, strict=True)):
            if each is None:
                self._dots((x, 0.75))
                continue
            is_dead = switches[each] in failed
            color = _SWITCH_COLORS[i % len(_SWITCH_COLORS)]
            for place, (px, py) in points.items():
                shift = 0.0 if inner == 1 else (i - (len(shown) - 1) / 2) * 0.34 / len(shown)
                end = (px + shift, py + self.size)
                self._stroke(
                    (x, 0.75),
                    end,
                    is_failed=is_dead or (place, place) in self.panel.links_failed,
                    color=color,
                )
                if inner > 1:
                    spot = Circle(
                        (px + shift, py + 0.1), min(0.035, 0.13 / len(shown)), color=color, zorder=4
                    )
                    self.axes.add_patch(spot)
            self._square((x, 0.75), self.names[switches[each]], is_failed=is_dead, many=len(shown))
        if len(shown) < len(switches):
            self.axes.text(0, 1.1, f"{len(switches):,} switches", **_MANY)
        for x, each in zip(xs, kept, strict=True):
            if each is None:
                self._dots((x, -0.75))
        if None in kept:
            self.axes.text(0, -1.12, self._many(), **_MANY)
        return points

    def _square(self, point: Point, name: str, *, is_failed: bool, many: int) -> None:
        x, y = point
        is_small = many > 4
        width = max(0.2, (0.06 if is_small else 0.075) * len(name) + 0.08)
        fill, edge = ("#f8dcd2", ACCENT) if is_failed else ("#e0e0e0", SWITCH)
        box = FancyBboxPatch(
            (x - width / 2, y - 0.11),
            width,
            0.22,
            boxstyle="round,pad=0,rounding_size=0.03",
            facecolor=fill,
            edgecolor=edge,
            zorder=3,
        )
        self.axes.add_patch(box)
        points = 5.5 if is_small else 7
        self.axes.text(x, y, name, fontsize=points, ha="center", va="center", zorder=4)

    def _member(self, place: tuple[int, ...], point: Point) -> None:
        is_failed = place in self.panel.members_failed
        x, y = point
        size = self.size
        if self.panel.inner == 1:
            fill = ACCENT if is_failed else NPU
            self.axes.add_patch(Circle(point, size, facecolor=fill, edgecolor="white", zorder=3))
        else:
            self.axes.add_patch(
                FancyBboxPatch(
                    (x - size, y - size),
                    2 * size,
                    2 * size,
                    boxstyle=f"round,pad=0,rounding_size={0.3 * size}",
                    facecolor=_FAILED_BOX if is_failed else _BOX,
                    edgecolor=ACCENT if is_failed else _BOX_EDGE,
                    linewidth=1.6 if is_failed else 0.8,
                    zorder=3,
                )
            )
        if len(place) == 2 and max(size for _, size in self.panel.axes) > 2:
            return  # a plane has its numbers at the edge
        text = str(place[0]) if len(place) == 1 else ",".join(map(str, place))
        points = min(7.0, 80 * size / max(len(text) - 0.5, 1))
        if self.panel.axes[0][0] == "Switch" and self.panel.inner > 1:
            y -= 0.08
        is_light = self.panel.inner > 1
        color = "black" if is_light else "white"
        if points >= 4:
            self.axes.text(
                x, y, text, fontsize=points, ha="center", va="center", color=color, zorder=5
            )

    def _line_between(
        self, one: tuple[int, ...], other: tuple[int, ...], start: Point, end: Point
    ) -> None:
        self._stroke(start, end, is_failed=(one, other) in self.panel.links_failed)

    def _stroke(self, start: Point, end: Point, *, is_failed: bool, color: str = LINK) -> None:
        self.axes.plot(
            [start[0], end[0]],
            [start[1], end[1]],
            color=ACCENT if is_failed else color,
            linestyle=_STYLE_FAILED if is_failed else "solid",
            linewidth=1.6 if is_failed else 0.9,
            zorder=2 if is_failed else 1,
        )

    def _dotted(self, start: Point, end: Point) -> None:
        xs, ys = zip(start, end, strict=True)
        self.axes.plot(xs, ys, color=LINK, linestyle=":", linewidth=0.8, zorder=1)

    def _dots(self, point: Point, turned: float = 0.0) -> None:
        self.leaves_out = True
        angle = math.radians(turned)
        for i in (-1, 0, 1):
            where = (point[0] + 0.07 * i * math.cos(angle), point[1] + 0.07 * i * math.sin(angle))
            self.axes.add_patch(Circle(where, 0.018, color=LINK, zorder=3))

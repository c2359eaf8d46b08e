"""A schematic of a large network: what it is made of, how many there are, and what joins them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.lines import Line2D

from hocket.errors import SpecError
from hocket.layout.groups import LinkKind, device_kinds, link_kinds
from hocket.plot.panel_art import MAX_COLUMNS, draw_panels
from hocket.plot.panels import Panel, panels_of
from hocket.plot.style import ACCENT, LINK, picture, write_title
from hocket.plot.tiers import Failures, arrange, draw_tiers

if TYPE_CHECKING:
    from hocket import _core

FULL = 64
"""Devices up to which each is drawn if nothing else is asked for."""
MAX_DEVICES = 200_000
"""Of a network whose groups are looked for."""
_WIDEST, _SIDE, _ALONE = 13.0, 2.9, 4.0
"""Of a picture, of one panel of several, and of one alone [inches]."""
_MAX_KINDS = 8
_MAX_FAILED = 6
_COLORS = ("#5c5c5c", "#4b9c6f", "#8a5fa8", "#b88a1d", "#2aa5ad", "#c2559d", "#7a6248", "#5b6bd6")


def check_schematic(name: str, devices: int) -> None:
    """Refuse a network too large to look for its groups.

    Raises
    ------
    SpecError
        With the limit.
    """
    if devices > MAX_DEVICES:
        raise SpecError(
            None,
            f"{devices} devices are too many for a schematic",
            f"draw at most {MAX_DEVICES}",
            origin=str(name),
        )


def failures_of(
    topology: _core.Topology, devices: Sequence[str], links: Sequence[tuple[str, str]]
) -> Failures:
    """Find failed devices and links, both ways, by the names of a whole network's devices."""
    number = {name: i for i, name in enumerate(topology.device_names)}
    dead = frozenset(number[name] for name in devices)
    pairs = {frozenset((number[a], number[b])) for a, b in links}
    if not pairs:
        return Failures(dead)
    ends = zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True)
    broken = (
        link for link, pair in enumerate(ends) if frozenset(pair) in pairs and not dead & {*pair}
    )
    return Failures(dead, frozenset(broken))


def draw_schematic(topology: _core.Topology, path: Path, failures: Failures | None = None) -> None:
    """Draw the groups of a network with their multiplicities and links.

    Parameters
    ----------
    topology
        The whole network.
    failures
        What of it has failed.

    Raises
    ------
    SpecError
        If it has more than :data:`MAX_DEVICES` devices.
    """
    check_schematic(topology.name, topology.device_count)
    failures = failures or Failures()
    panels = panels_of(topology, failures)
    if panels is None:
        _draw_tiers(topology, failures, path)
    else:
        _draw_panels(topology, failures, panels, path)


def _draw_panels(
    topology: _core.Topology, failures: Failures, panels: list[Panel], path: Path
) -> None:
    columns = min(len(panels), MAX_COLUMNS)
    rows = -(-len(panels) // columns)
    side = _SIDE if columns > 1 else _ALONE
    with picture(path, columns * side + 0.2, rows * (side + 1.25) + 0.75) as figure:
        handles = []
        if draw_panels(figure, panels, topology.device_names, side):
            handles.append(Line2D([], [], color=LINK, linestyle=":", label="more of the same"))
        if any(
            kind == "Ring" for panel in panels for kind, _ in panel.axes[:2] if len(panel.axes) > 1
        ):
            label = "ends at the edge of a plane: joined to the other edge"
            handles.append(Line2D([], [], color=LINK, linewidth=0.9, label=label))
        _finish(figure, topology, failures, handles)


def _draw_tiers(topology: _core.Topology, failures: Failures, path: Path) -> None:
    drawing = arrange(topology, failures)
    kinds = link_kinds(topology)
    colors = {
        (*kind.ends, kind.bandwidth, kind.latency_ps): _COLORS[min(i, len(_COLORS) - 1)]
        for i, kind in enumerate(kinds)
    }
    scale = min(1.25, _WIDEST / drawing.width)
    width, height = max(drawing.width * scale, 5.5), drawing.height * scale
    with picture(path, width, height + 1.0 + 0.18 * min(len(kinds), _MAX_KINDS)) as figure:
        axes = figure.add_subplot()
        axes.set_aspect("equal")
        draw_tiers(axes, topology, drawing, colors, failures, scale)
        _finish(figure, topology, failures, _link_legend(kinds))


def _link_legend(kinds: Sequence[LinkKind]) -> list[Line2D]:
    shown = list(kinds[:_MAX_KINDS])
    handles = [
        Line2D([], [], color=_COLORS[i], linewidth=1.6, label=str(kind))
        for i, kind in enumerate(shown)
    ]
    if len(kinds) > _MAX_KINDS:
        rest = kinds[_MAX_KINDS:]
        count = sum(kind.count for kind in rest)
        label = f"{len(rest)} more kinds: {count:,} directed links"
        handles[-1:] = [handles[-1], Line2D([], [], color=_COLORS[-1], label=label)]
    return handles


def _finish(
    figure: Any, topology: _core.Topology, failures: Failures, handles: list[Line2D]
) -> None:
    """Write the title with all counts, what has failed, and the legend."""
    names, npus = topology.device_names, topology.npu_count
    kinds = Counter(device_kinds(topology)[npus:])
    switches = topology.device_count - npus
    of = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if len(kinds) > 1)
    title = f"{topology.name}: {npus:,} NPUs"
    if switches:
        title += f", {switches:,} switch{'es'[: 2 * (switches != 1)]}" + f" ({of})" * bool(of)
    title += f", {topology.link_count:,} links"
    lost = _failed_names(topology, failures, names)
    if lost:
        title += ", including what has failed"
    write_title(figure, title, 11)
    if lost:
        label = f"failed: {', '.join(lost[:_MAX_FAILED])}"
        if len(lost) > _MAX_FAILED:
            label += f" and {len(lost) - _MAX_FAILED:,} more"
        handles = [
            *handles,
            Line2D([], [], color=ACCENT, linestyle=(0, (3, 2)), linewidth=1.6, label=label),
        ]
    if not handles:
        return
    figure.legend(handles=handles, loc="outside lower center", frameon=False, fontsize=8, ncols=1)


def _failed_names(topology: _core.Topology, failures: Failures, names: Sequence[str]) -> list[str]:
    found = [names[device] for device in sorted(failures.devices)]
    pairs = []
    for link in sorted(failures.links):
        src, dst = int(topology.link_src[link]), int(topology.link_dst[link])
        pairs.append(f"{names[min(src, dst)]}–{names[max(src, dst)]}")
    return found + list(dict.fromkeys(pairs))

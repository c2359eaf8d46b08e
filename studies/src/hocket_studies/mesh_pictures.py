"""Figures 8 to 14 of Laskar et al.

References
----------
Laskar et al.: Enhancing Collective Communication in MCM Accelerators for Deep Learning Training, HPCA
2024, sections VII and VIII.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hocket.plot.style import ACCENT, NPU, SWITCH, picture, write_title
from hocket.units import format_size
from hocket_studies import mesh, mesh_training
from hocket_studies.mesh import KIB, MIB, Case
from hocket_studies.mesh_result import MeshResult
from hocket_studies.mesh_training import Epochs

_COLORS = {
    "ring": "#5c5c5c",
    "ring-2d": "#b8a04a",
    "double-binary-tree": "#c9c9c9",
    "multitree": "#8fbf8f",
    "multitree-published": "#3f8f4f",
    "bidirectional": "#7a5fa8",
    "tto": ACCENT,
    "tto-chosen": "#e0906f",
    "tto-overlapped": NPU,
}

_WIDE = 9.0


def draw_sizes(result: MeshResult, path: Path) -> None:
    """Draw figure 8: bandwidth by size, a panel for each mesh."""
    assert result.sizes is not None
    with picture(path, 11.0, 3.2) as figure:
        panels = figure.subplots(1, len(mesh.SIDES), sharey=True)
        for axes, side in zip(panels, mesh.SIDES, strict=True):
            for method in mesh.METHODS:
                cases = [Case(side, size, method) for size in result.sizes.sizes]
                there = [case for case in cases if case in result.study.times]
                rates = [result.study.bandwidth(case) / 1e9 for case in there]
                sizes = [case.size / MIB for case in there]
                axes.plot(sizes, rates, "o-", color=_COLORS[method], markersize=3, label=method)
            axes.set_xscale("log", base=2)
            shown = result.sizes.sizes[::2]
            axes.set_xticks([size / MIB for size in shown], [str(size // MIB) for size in shown])
            axes.set_xlabel(f"size on {side} x {side} [MiB]")
            axes.set_ylim(bottom=0)
        panels[0].set_ylabel("size / time [GB/s]")
        _legend(figure)
        figure.suptitle("All-reduce on meshes, packet by packet (Laskar et al., figure 8)")


def draw_scaling(result: MeshResult, path: Path) -> None:
    """Draw figure 9: time by number of chiplets, even and odd meshes."""
    with picture(path, 8.0, 3.2) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        for axes, odd in zip(panels, (0, 1), strict=True):
            sides = [side for side in mesh.SCALING_SIDES if side % 2 == odd]
            first = 3 if odd else 4
            base = result.study.times[Case(first, mesh.scaling_size(first), "ring")]
            for method in mesh.SCALING_METHODS:
                cases = [Case(side, mesh.scaling_size(side), method) for side in sides]
                times = [result.study.times[case] / base for case in cases]
                chiplets = [side * side for side in sides]
                axes.plot(chiplets, times, "o-", color=_COLORS[method], markersize=3, label=method)
            axes.set_xlabel("chiplets, odd meshes" if odd else "chiplets, even meshes")
        panels[0].set_ylabel("time / ring's on 4 x 4, 3 x 3")
        _legend(figure)
        figure.suptitle("375 KiB for each chiplet (Laskar et al., figure 9)")


def draw_epochs(result: MeshResult, path: Path) -> None:
    """Draw figure 10: parts of an epoch, ring's being 1."""
    _draw_epochs(result.epochs or [], path, "Epochs (Laskar et al., figure 10)")


def draw_simba(result: MeshResult, path: Path) -> None:
    """Draw figure 13, likewise."""
    _draw_epochs(result.simba or [], path, "Epochs on Simba, 6 x 6 (Laskar et al., figure 13)")


def _draw_epochs(found: list[Epochs], path: Path, title: str) -> None:
    groups = sorted({(each.side, -each.array) for each in found})
    with picture(path, 10.0, 0.8 + 2.4 * len(groups)) as figure:
        panels = figure.subplots(len(groups), 1, squeeze=False, sharey=True)
        for axes, (side, array) in zip(panels[:, 0], groups, strict=True):
            each = [one for one in found if (one.side, -one.array) == (side, array)]
            parts = {
                method: [
                    (e.iterations * e.compute / base, e.all_reduce_time / base)
                    if (e := one.epochs.get(method))
                    else (0.0, 0.0)
                    for one in each
                    for base in [one.epochs["ring"].time]
                ]
                for method in mesh_training.METHODS
            }
            _stacked(axes, [one.model for one in each], parts)
            axes.set_ylabel(f"{side} x {side}, {-array} x {-array}")
        _legend(figure)
        write_title(figure, f"{title}: time / ring's; compute below, all-reduce above")


def draw_overlapped(result: MeshResult, path: Path) -> None:
    """Draw figure 11: iterations whose all-reduces overlap back-propagation."""
    found = result.overlapped or []
    with picture(path, 10.0, 3.2) as figure:
        axes = figure.add_subplot()
        parts = {
            method: [
                (counts * it.compute_ps / base, counts * it.exposed_ps / base)
                for one in found
                for base in [one.counts["ring"] * one.iterations["ring"].time_ps]
                for counts, it in [(one.counts[method], one.iterations[method])]
            ]
            for method in mesh_training.OVERLAP_METHODS
        }
        _stacked(axes, [one.model for one in found], parts)
        axes.set_ylabel("time / ring's")
        _legend(figure)
        write_title(
            figure,
            "An all-reduce for each group of layers, 8 x 8 (Laskar et al., figure 11): compute below, "
            "what of all-reduce is not hidden above",
        )


def draw_curves(result: MeshResult, path: Path) -> None:
    """Draw figure 12: the share of links in use over time."""
    with picture(path, 7.0, 3.4) as figure:
        axes = figure.add_subplot()
        for curve in result.curves or []:
            width = curve.time_ps * 1e-9 / len(curve.shares)
            times = [(i + 0.5) * width for i in range(len(curve.shares))]
            shares = [share * 100 for share in curve.shares]
            label = f"{curve.method}, mean {curve.mean:.0%}"
            axes.plot(times, shares, color=_COLORS[curve.method], label=label)
        axes.set_xlabel("time [ms]")
        axes.set_ylabel("links in use [%]")
        axes.set_ylim(0, 105)
        _legend(figure)
        figure.suptitle("256 MiB on 9 x 9 (Laskar et al., figure 12)")


def draw_chunks(result: MeshResult, path: Path) -> None:
    """Draw figure 14: bandwidth of tto by chunk."""
    chunks = result.chunks or {}
    with picture(path, 6.0, 3.0) as figure:
        axes = figure.add_subplot()
        sizes = [chunk / KIB for chunk in chunks]
        axes.plot(sizes, [rate / 1e9 for rate in chunks.values()], "o-", color=ACCENT)
        axes.axvspan(96, 192, color=SWITCH, alpha=0.2, label="published best")
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [format_size(chunk) for chunk in chunks], rotation=45, fontsize=7)
        axes.set_ylim(0, 1.15 * max((rate / 1e9 for rate in chunks.values()), default=1.0))
        axes.set_xlabel("chunk")
        axes.set_ylabel("size / time [GB/s]")
        axes.legend(frameon=False, loc="lower left")
        figure.suptitle("tto, 128 MiB on 8 x 8 (Laskar et al., figure 14)")


def _stacked(axes: Any, groups: list[str], parts: dict[str, list[tuple[float, float]]]) -> None:
    width = 0.84 / len(parts)
    for i, (method, pairs) in enumerate(parts.items()):
        places = [j + (i - (len(parts) - 1) / 2) * width for j in range(len(pairs))]
        compute, rest = ([pair[k] for pair in pairs] for k in (0, 1))
        color = _COLORS[method]
        axes.bar(places, compute, width, color=color, alpha=0.35)
        axes.bar(places, rest, width, bottom=compute, color=color, label=method)
    axes.set_xticks(range(len(groups)), groups)


def _legend(figure: Any) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    columns = 3 if figure.get_figwidth() < _WIDE else 5
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)

"""A comparison of trainings: where the time of an iteration goes, for each combination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hocket.plot.style import CAUSE_COLORS, NPU, picture, write_title
from hocket.plot.timing import time_unit
from hocket.training.comparison import BASELINES, TrainingComparison, TrainingRow
from hocket.training.parallel import CAUSES
from hocket.units import format_time_ps

_WAITING = "#d4d4d4"
_SAME = 0.002
"""Share of an iteration by which rows that are drawn as one may differ."""
_ROW, _AROUND = 0.24, 1.9
"""Inches of a row, and of title, axis and legend."""


@dataclass(frozen=True)
class _Bar:
    """Algorithms that take the same time on one network with one split, the first of which is drawn."""

    rows: tuple[TrainingRow, ...]

    @property
    def row(self) -> TrainingRow:
        return self.rows[0]

    def label(self, baseline: str | None) -> str:
        """Name the algorithms, and which of them others are compared with."""
        names = [row.algorithm for row in self.rows]
        return ", ".join(f"{name} (baseline)" if name == baseline else name for name in names)


def draw_training_comparison(
    comparison: TrainingComparison, path: Path, base: TrainingRow | None = None
) -> None:
    """Draw bars of compute, exposed communication by cause, and waiting.

    A group of bars is of one network and split; groups and the bars of each are in order of time.
    Algorithms that differ by less than 0.2 % share a bar. Bars are of an iteration, or of a sample
    where batches differ. Beside each stands how many times as fast it is as the baseline of its split or,
    where one is given, as `base`.
    """
    groups = _groups(comparison)
    rows = list(comparison)
    is_of_samples = len({row.batch for row in rows}) > 1
    unit, scale = time_unit(max(row.time_ps / (row.batch if is_of_samples else 1) for row in rows))
    has_titles = len(groups) > 1
    lines = sum(len(bars) + has_titles for _, bars in groups)
    with picture(path, 9.0, _AROUND + _ROW * (lines + 0.4 * len(groups))) as figure:
        axes = figure.add_subplot()
        place, places, labels, most = 0.0, [], [], 0.0
        seen: set[str] = set()
        for title, bars in groups:
            if has_titles:
                _write_group(axes, title, place)
                place += 1
            baseline = None if base is not None else _baseline(bars)
            for bar in bars:
                divisor = scale * (bar.row.batch if is_of_samples else 1)
                end = _draw_bar(axes, bar.row, place, divisor, seen)
                _write_end(axes, end, place, scale, _speedup(bar.row, base))
                places.append(place)
                labels.append(bar.label(baseline))
                most = max(most, end)
                place += 1
            place += 0.4
        axes.set_yticks(places, labels, fontsize=8)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(place - 0.5, -0.7)
        axes.set_xlim(0, most * 1.2)
        what = "iteration / samples of all replicas" if is_of_samples else "iteration"
        of = "" if base is None else f", {base.network}"
        axes.set_xlabel(f"{what} [{unit}]; ×: times as fast as the baseline{of}")
        handles, names = axes.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
        write_title(figure, f"training {comparison.workload.name}" + _common(rows))


def _groups(comparison: TrainingComparison) -> list[tuple[str, list[_Bar]]]:
    """Return the bars of each network and split under its title, in the order of the comparison."""
    rows = list(comparison)
    several = [len({row.network for row in rows}) > 1, len({str(row.parallel) for row in rows}) > 1]
    found: dict[tuple[str, str], list[TrainingRow]] = {}
    # A group is where its best algorithm is; those that no network has do not count.
    real = sorted(rows, key=lambda row: row.algorithm in ("none", "ideal"))
    for row in real:
        found.setdefault((row.network, str(row.parallel)), []).append(row)
    groups = []
    for key, own in found.items():
        title = "  ".join(part for part, is_told in zip(key, several, strict=True) if is_told)
        groups.append((title, _joined(sorted(own, key=lambda row: row.time_ps))))
    return groups


def _joined(rows: Sequence[TrainingRow]) -> list[_Bar]:
    """Put rows in order of time together where they hardly differ."""
    bars: list[list[TrainingRow]] = []
    for row in rows:
        if bars and row.time_ps <= bars[-1][0].time_ps * (1 + _SAME):
            bars[-1].append(row)
        else:
            bars.append([row])
    return [_Bar(tuple(own)) for own in bars]


def _common(rows: Sequence[TrainingRow]) -> str:
    """Write what all rows share, which no group's title says."""
    networks, spreads = {row.network for row in rows}, {str(row.parallel) for row in rows}
    where = f" on {rows[0].network}" if len(networks) == 1 else ""
    return where + (f", {rows[0].parallel}" if len(spreads) == 1 else "")


def _baseline(bars: Sequence[_Bar]) -> str | None:
    names = {row.algorithm for bar in bars for row in bar.rows}
    return next((name for name in BASELINES if name in names), None)


def _draw_bar(axes: Any, row: TrainingRow, place: float, divisor: float, seen: set[str]) -> float:
    """Draw a row's bar; give where it ends."""
    where = row.breakdown
    parts = [("compute", where.compute, NPU)]
    parts += [(f"exposed: {cause}", where.exposed[cause], CAUSE_COLORS[cause]) for cause in CAUSES]
    parts.append(("waiting", where.waiting, _WAITING))
    end = 0.0
    for name, time, color in parts:
        if time <= 0:
            continue
        label = name if name not in seen else None
        seen.add(name)
        axes.barh(place, time / divisor, left=end, color=color, height=0.72, label=label)
        end += time / divisor
    return end


def _speedup(row: TrainingRow, base: TrainingRow | None) -> float | None:
    """Return how many times as fast a row is as what it is compared with."""
    if base is None:
        return row.speedup
    return row.samples_per_second / max(base.samples_per_second, 1e-12)


def _write_end(axes: Any, end: float, place: float, unit_ps: float, speedup: float | None) -> None:
    speed = "" if speedup is None else f", {speedup:.2f}×"
    axes.annotate(
        f"{format_time_ps(round(end * unit_ps))}{speed}",
        (end, place),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
    )


def _write_group(axes: Any, title: str, place: float) -> None:
    axes.annotate(
        title,
        (0, place + 0.1),
        xytext=(2, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        weight="bold",
    )

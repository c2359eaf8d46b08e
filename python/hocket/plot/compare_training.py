"""A comparison of trainings: where the time of an iteration goes, for each combination."""

from __future__ import annotations

from pathlib import Path

from hocket.plot.style import NPU, picture
from hocket.training.comparison import TrainingComparison, TrainingRow
from hocket.training.parallel import CAUSES

_COLORS = {
    "data": "#c44e2b",
    "tensor": "#e0a03b",
    "pipeline": "#8a5fa8",
    "expert": "#4b9c6f",
    "table": "#5fb0b8",
}
_WAITING = "#d4d4d4"


def draw_training_comparison(comparison: TrainingComparison, path: Path) -> None:
    """Draw a bar for each row, the best on top: compute, exposed communication by cause, waiting.

    Bars are of an iteration, or of a sample where batches differ.
    """
    rows = list(comparison)[::-1]
    names = _names(rows)
    is_of_samples = len({row.batch for row in rows}) > 1
    samples = [row.batch if is_of_samples else 1 for row in rows]
    scale, unit = _unit(max(row.time_ps / n for row, n in zip(rows, samples, strict=True)))
    parts = [("compute", [row.breakdown.compute for row in rows], NPU)]
    parts += [
        (f"exposed: {cause}", [row.breakdown.exposed[cause] for row in rows], _COLORS[cause])
        for cause in CAUSES
    ]
    parts += [("waiting", [row.breakdown.waiting for row in rows], _WAITING)]
    places = range(len(rows))
    with picture(path, 8.0, 1.6 + 0.3 * len(rows)) as figure:
        axes = figure.add_subplot()
        ends = [0.0] * len(rows)
        for name, times, color in parts:
            if max(times) <= 0:
                continue
            widths = [time / n / scale for time, n in zip(times, samples, strict=True)]
            axes.barh(places, widths, left=ends, color=color, height=0.65, label=name)
            ends = [end + width for end, width in zip(ends, widths, strict=True)]
        for place, row, n, end in zip(places, rows, samples, ends, strict=True):
            speed = "" if row.speedup is None else f", {row.speedup:.2f}x"
            axes.annotate(
                f"{row.time_ps / n / scale:,.3g} {unit}{speed}",
                (end, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
            )
        axes.set_yticks(list(places), names)
        axes.set_xlim(0, max(ends) * 1.35)
        axes.set_ylim(-0.6, len(rows) - 0.4)
        what = "iteration / samples of all replicas" if is_of_samples else "iteration"
        axes.set_xlabel(f"{what} [{unit}]; times as fast as the baseline of the same split")
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
        figure.suptitle(f"training {comparison.workload.name}")


def _names(rows: list[TrainingRow]) -> list[str]:
    """Give what tells rows apart, and the algorithm in any case."""
    networks = {row.network for row in rows}
    spreads = {str(row.parallel) for row in rows}
    return [
        "  ".join(
            ([row.network] if len(networks) > 1 else [])
            + ([str(row.parallel)] if len(spreads) > 1 else [])
            + [row.algorithm]
        )
        for row in rows
    ]


def _unit(longest_ps: float) -> tuple[float, str]:
    for scale, unit in ((1e12, "s"), (1e9, "ms"), (1e6, "us")):
        if longest_ps >= scale:
            return scale, unit
    return 1e3, "ns"

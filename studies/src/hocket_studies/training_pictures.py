"""Predicted over measured times of published training runs, by the operations that they reached."""

from __future__ import annotations

from pathlib import Path

from hocket_studies.ratio_pictures import Ratios, draw_ratios
from hocket_studies.training import TrainingResult

__all__ = ["draw_runs"]

_LOOK = Ratios(
    of=lambda each: each.run.tflops,
    base=10,
    ticks={each: f"{each:,}" for each in (3, 10, 30, 100, 300, 1000, 3000)},
    label="measured TFLOP/s of an NPU, recomputation not counted",
    title="predicted over measured time of an iteration; grey: within 10 %",
    furthest=4.0,
    panel=1.8,
    dot=4.5,
)


def draw_runs(result: TrainingResult, path: Path) -> None:
    """Draw every run as it was predicted without its source, by the operations it reached."""
    draw_ratios(result.checks, path, _LOOK)

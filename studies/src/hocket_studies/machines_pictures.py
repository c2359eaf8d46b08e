"""Predicted over measured times of collectives, by size."""

from __future__ import annotations

from pathlib import Path

from hocket_studies.machines import MachinesResult
from hocket_studies.ratio_pictures import Ratios, draw_ratios

__all__ = ["draw_errors"]

_LOOK = Ratios(
    of=lambda each: each.row.size,
    base=2,
    ticks={
        1 << 10: "1 KiB",
        1 << 15: "32 KiB",
        1 << 20: "1 MiB",
        1 << 25: "32 MiB",
        1 << 30: "1 GiB",
    },
    label="size",
    title="predicted over measured times of what was not fitted; grey: within 10 %",
    furthest=5.0,
    panel=1.7,
    dot=3.5,
)


def draw_errors(result: MachinesResult, path: Path) -> None:
    """Draw every time that was predicted without having been fitted, by size."""
    draw_ratios(result.checks, path, _LOOK)

"""The results of this package as JSON values."""

from __future__ import annotations

from typing_extensions import TypedDict


class FittedConstantData(TypedDict):
    """A constant; times in microseconds, efficiencies as shares."""

    value: float
    low: float
    high: float
    """90 % lie between low and high."""
    is_seen: bool
    """Whether the data tells it; otherwise it is its prior."""


class ErrorData(TypedDict):
    """How far the law is from measurements: shares of the measured time."""

    collective: str
    band: str
    """Of sizes."""
    rows: int
    median: float
    p90: float
    is_kept_back: bool
    """Whether these are the sizes that were kept back."""


class FitData(TypedDict):
    """Constants of a machine, and how far the law is from what was measured."""

    constants: dict[str, FittedConstantData]
    launch_us: dict[str, float]
    launch_per_npu_us: float
    alike: list[list[str]]
    """Pairs that this data cannot tell apart."""
    errors: list[ErrorData]
    left_out: list[str]
    """Times whose results were wrong, a line each."""
    file: str | None
    """The topology file that was written."""

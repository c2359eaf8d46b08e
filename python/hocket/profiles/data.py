"""The results of this package as JSON values."""

from __future__ import annotations

from typing_extensions import TypedDict


class PredictedTimeData(TypedDict):
    """The time of one size."""

    size_bytes: int
    """As nccl-tests states it."""
    time_s: float
    algorithm: str
    protocol: str
    """The quickest way."""
    launch_share: float
    """What of the time launching alone would take."""
    busbw_bytes_per_s: float
    below_bound: str | None
    """Why it stands below the bound on any plan; null where it does not."""


class PredictionData(TypedDict):
    """The time of a collective on a real machine."""

    collective: str
    npus: int
    nodes: int
    profile: str
    launch_us: float
    times: list[PredictedTimeData]


class PlanPredictionData(TypedDict):
    """The time of a plan on a real machine."""

    profile: str
    protocol: str
    time_s: float
    moving_s: float
    """What its transfers take."""
    fixed_s: float
    """What the protocol costs once."""
    launch_s: float
    """What launching takes, most of it behind the rest."""
    below_bound: str | None
    """Why it stands below the bound on any plan; null where it does not."""


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

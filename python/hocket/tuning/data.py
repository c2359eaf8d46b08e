"""The results of tuning as JSON values."""

from __future__ import annotations

from typing_extensions import TypedDict

from hocket.runtime.data import PlanRowData


class TunedWayData(TypedDict):
    """One way to do a collective of some size."""

    algorithm: str
    """What plans it, or ``shared-memory``."""
    chunks: int | None
    transport: str
    predicted_ps: int | None
    """Its time at link fidelity; None where nothing is planned."""
    measured_ps: int | None
    """The median among processes of this machine; None where it was not measured."""


class TunedSizeData(TypedDict):
    """The choice for a size."""

    size_bytes: int
    picked: TunedWayData
    usual: TunedWayData
    """What runs without a table."""
    gain: float
    """How many times as fast as the usual way."""
    why: str
    tried: list[TunedWayData]
    """Every way, the quickest first."""


class TuningData(TypedDict):
    """A table of plans, and how each was picked."""

    collective: str
    ranks: int
    topology: str
    is_measured: bool
    tolerance: float
    load_average: float
    """Of the machine when it began."""
    sizes: list[TunedSizeData]
    rows: list[PlanRowData]
    refused: dict[str, str]

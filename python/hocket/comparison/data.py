"""What results say of compared algorithms, as values of JSON."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from hocket.collectives.data import BoundData, CollectiveData
from hocket.simulation.data import RunFigures


class EntryData(RunFigures):
    """One algorithm."""

    algorithm: str
    chunks: int
    """Pipelined slices that it ran with."""
    transfers: int
    routing: str
    verified: bool


class ComparisonData(CollectiveData):
    """Every algorithm that applies, fastest first."""

    bound: BoundData
    algorithms: list[EntryData]
    refused: dict[str, str]
    """Why each other algorithm cannot run here."""


class ComparisonsData(TypedDict):
    """One comparison for each size."""

    comparisons: list[ComparisonData]


class FailureData(TypedDict):
    """What fails, and what that costs."""

    part: Literal["link", "switch", "npu"]
    names: list[str]
    """As --failed takes them: all that are alike, of which the first was computed."""
    time_ps: int | None
    """Time of the collective without it; null where it cannot run."""
    slowdown: float | None
    """By how much longer that is, as a share of the time without failures."""
    algorithm: str | None
    why: str | None
    """Why it cannot run."""


class FailureAdviceData(CollectiveData):
    """Every single failure, the dearest first."""

    algorithm: str
    """The fastest without failures."""
    chunks: int
    time_ps: int
    """Without failures."""
    failures: list[FailureData]

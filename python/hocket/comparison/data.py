"""What results say of compared algorithms, as values of JSON."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from hocket.collectives.data import BoundData, CollectiveData, SizelessData
from hocket.nccl.data import NcclData
from hocket.plans.data import TreesData
from hocket.simulation.data import RunFigures


class EntryData(RunFigures):
    """One algorithm."""

    algorithm: str
    chunks: int
    """Pipelined slices that it ran with."""
    transfers: int
    routing: str
    verified: bool
    trees: TreesData | None
    """With the cut or partition that no trees beat; None of a plan that is made of no trees."""


class ComparisonData(CollectiveData):
    """Every algorithm that applies, fastest first."""

    bound: BoundData
    algorithms: list[EntryData]
    refused: dict[str, str]
    """Why each other algorithm cannot run here."""
    auto: str | None
    """Whose plan auto takes, unless it finds a faster one; None where that cannot be told from these."""
    nccl: NcclData | None
    """What NCCL picks and predicts; None where its model does not have this."""


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


class ParetoPointData(TypedDict):
    """The quickest plan of a size that was measured."""

    size_bytes: int
    algorithm: str
    chunks: int
    time_ps: int
    algbw_bytes_per_s: float
    busbw_bytes_per_s: float
    bound_ps: int
    gap: float
    witness: str
    """Of the bound."""


class ParetoRangeData(TypedDict):
    """Sizes at which one plan is the quickest; figures are those of the least and of the largest."""

    from_bytes: int
    """At which a runtime switches to it."""
    to_bytes: int
    """The largest size that was measured of these; up to the next range, its precision decides."""
    algorithm: str
    chunks: int
    from_time_ps: int
    to_time_ps: int
    from_algbw_bytes_per_s: float
    to_algbw_bytes_per_s: float
    from_busbw_bytes_per_s: float
    to_busbw_bytes_per_s: float
    from_gap: float
    to_gap: float


class ParetoData(SizelessData):
    """The quickest plan of each size."""

    fidelity: str
    precision: float
    """Up to what share of a size the beginnings of ranges are found."""
    tolerance: float
    """By what share a plan may be slower than the quickest and still be kept."""
    is_complete: bool
    ranges: list[ParetoRangeData]
    points: list[ParetoPointData]
    missing_bytes: list[int]
    """Sizes that were not measured in time."""
    holes_bytes: list[list[int]]
    """Neighbouring sizes between which the size was not found in time at which the plan changes."""
    refused: dict[str, str]
    """Why each other algorithm cannot run here."""

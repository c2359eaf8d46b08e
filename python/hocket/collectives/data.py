"""What results say of collectives, bounds and dimensions, as values of JSON."""

from __future__ import annotations

from typing_extensions import TypedDict


class SizelessData(TypedDict):
    """A collective on a topology, of whatever size."""

    collective: str
    topology: str
    npus: list[int]
    """Participants in rank order."""
    root: int | None
    """The root's number as an NPU."""
    in_place: bool


class CollectiveData(SizelessData):
    """A collective on a topology."""

    size_bytes: int


class BoundData(TypedDict):
    """A lower bound with its witness."""

    time_ps: int
    witness: str
    components_ps: dict[str, int]
    exact_cut: bool
    exact_partition: bool


class DimensionData(TypedDict):
    """How a run uses a dimension of more than one NPU."""

    kind: str
    size: int
    bandwidth_bytes_per_s: float
    bytes: int
    utilization: float


class OutcomeData(TypedDict):
    """What doing a collective came to, at any fidelity."""

    fidelity: str
    time_ps: int
    algbw_bytes_per_s: float
    busbw_bytes_per_s: float
    bound_ps: int
    gap: float
    utilization: float
    switching: str
    dimensions: list[DimensionData] | None
    """None where the topology is not a product; so are the next two."""
    weighted_utilization: float | None
    ideal_ps: int | None

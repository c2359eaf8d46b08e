"""What NCCL's pick is as values of JSON."""

from __future__ import annotations

from typing_extensions import TypedDict

from hocket.collectives.data import BoundData, CollectiveData


class NcclChoiceData(TypedDict):
    """An algorithm with a protocol."""

    algorithm: str
    protocol: str
    channels: int
    latency_us: float
    bandwidth_bytes_per_s: float
    time_s: float


class NcclData(TypedDict):
    """What NCCL picks and predicts."""

    collective: str
    npus: int
    nodes: int
    size_bytes: int
    library: str
    """``NCCL`` or ``RCCL``."""
    library_version: str
    """Whose constants were used."""
    gpu: str
    algorithm: str
    protocol: str
    channels: int
    time_s: float
    choices: list[NcclChoiceData]
    """The quickest first."""


class AuditGraphData(TypedDict):
    """What NCCL has of one algorithm."""

    algorithm: str
    channels: int
    """Before NCCL doubles them."""
    speed_bytes_per_s: float
    """What each is counted at."""
    protocol: str | None
    """The quickest by NCCL's model."""
    predicted_s: float | None
    time_ps: int | None
    """Of the plan along these channels, simulated."""
    algbw_bytes_per_s: float | None
    why: str | None
    """Why there is no such plan."""


class AuditBestData(TypedDict):
    """The fastest plan."""

    algorithm: str
    time_ps: int
    algbw_bytes_per_s: float


class AuditData(CollectiveData):
    """What NCCL runs on a machine, by its dumps."""

    bound: BoundData
    library: str
    graphs: list[AuditGraphData]
    pick: str | None
    """By the library's own model."""
    best: AuditBestData
    gap: float | None
    """By how much longer NCCL's pick takes, as a share."""
    findings: list[str]
    notes: list[str]

"""What NCCL's pick is as values of JSON."""

from __future__ import annotations

from typing_extensions import TypedDict


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

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
    below_bound: str | None
    """Why it stands below the bound on any plan; null where it does not."""


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
    bound_ps: int
    """What any plan takes at least."""
    below_bound: str | None
    """Why the pick stands below the bound; null where it does not."""
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
    predicted_ps: int | None
    """By NCCL's model."""
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


class TunerRowData(TypedDict):
    """A line of a table for tuners."""

    collective: str
    min_bytes: int
    max_bytes: int
    algorithm: str
    protocol: str
    channels: int | None
    """None leaves it to NCCL."""
    nodes: int | None
    """None: of any communicator."""
    npus: int | None


class TunerData(TypedDict):
    """A table for tuners."""

    comments: list[str]
    rows: list[TunerRowData]


class DesignedNodeData(TypedDict):
    """The channels of a node."""

    channels: int
    speed_bytes_per_s: float
    """What each carries, as NCCL counts."""
    type_intra: str
    type_inter: str
    orders: list[list[int]]
    """For each channel the GPUs by their numbers."""
    nics: list[list[int]]
    """For each channel the NIC in and the NIC out; none of a lone node."""


class GraphDesignData(TypedDict):
    """Rings and trees for a machine."""

    nodes: list[DesignedNodeData]
    time_ps: int
    """Of an all-reduce of 1 GiB along the rings."""
    bound_ps: int
    warnings: list[str]


class AskedPickData(TypedDict):
    """A range of sizes, as far as they were asked for."""

    min_bytes: int
    max_bytes: int
    algorithm: str
    protocol: str
    channels: int | None
    """None: the tuner leaves it to NCCL."""
    is_own: bool
    """Whether NCCL would pick it without the tuner."""


class AskedKindData(TypedDict):
    """What a tuner picks for a collective."""

    collective: str
    picks: list[AskedPickData]


class AskedTunerData(TypedDict):
    """What a tuner plugin picks."""

    library: str
    name: str
    """As the plugin calls itself."""
    api: int
    npus: int
    nodes: int
    collectives: list[AskedKindData]
    log: list[str]
    """What it wrote to NCCL's log."""

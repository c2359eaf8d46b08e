"""The results of training as JSON values; times are per iteration unless their names say otherwise."""

from __future__ import annotations

from typing_extensions import TypedDict


class ParallelData(TypedDict):
    """How a model is spread."""

    dp: int
    tp: int
    pp: int
    ep: int
    cp: int
    """NPUs that share every sequence."""
    interleave: int
    """Groups of consecutive layers of each stage."""
    zero: int
    micro_batches: int


class AcceleratorData(TypedDict):
    """What computes."""

    name: str
    peak_flops_per_s: int
    efficiency: float
    memory_bytes: int | None


class BreakdownData(TypedDict):
    """The use of an iteration's time."""

    forward_ps: float
    backward_ps: float
    update_ps: float
    exposed_ps: dict[str, float]
    """Communication that compute waited for, by its cause."""
    waiting_ps: float


class MemoryData(TypedDict):
    """The memory of an NPU."""

    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    total_bytes: int


class PortionData(TypedDict):
    """A dimension that a group lies on."""

    dimension: int
    """From 1."""
    npus: int
    apart: int


class GroupData(TypedDict):
    """A group of a kind of parallelism."""

    npus: int
    count: int | None
    """How many such groups there are; None on dimensions."""
    dimensions: list[PortionData] | None
    """None where groups are lists of NPUs."""


class StageData(TypedDict):
    """A pipeline stage."""

    layers: list[str]
    breakdown: BreakdownData


class LayerData(TypedDict):
    """A layer."""

    name: str
    stage: int
    """From 1."""
    forward_ps: float
    backward_ps: float
    communication_ps: float
    exposed_ps: float


class ChosenData(TypedDict):
    """A collective, and what auto chose for it."""

    kind: str
    npus: int
    size_bytes: int
    calls: float
    """Of all stages, in an iteration."""
    algorithm: str
    time_ps: int
    """That it takes alone, with the groups of its axis together."""


class TrainingRunData(TypedDict):
    """Training iterations."""

    workload: str
    topology: str
    npu_count: int
    parallel: ParallelData
    algorithm: str
    chosen: dict[str, int]
    """How many different collectives auto left to each algorithm; empty where one was named."""
    choices: list[ChosenData]
    """What auto chose for each, those that take longest in all first; empty where one was named."""
    chunks: int | None
    """Of each collective; None where the algorithm chose."""
    order: str
    npu: AcceleratorData
    samples: int
    """Of each replica in an iteration."""
    iterations: int
    precision_bits: int
    bucket_bytes: int | None
    recompute: bool
    overlap_tensor: bool
    update: bool
    time_ps: float
    total_ps: int
    """All iterations."""
    iteration_ends_ps: list[int]
    samples_per_s: float
    flops_per_s_per_npu: float | None
    utilization: float | None
    breakdown: BreakdownData
    communication_alone_ps: float
    hidden_share: float | None
    memory: MemoryData
    groups: dict[str, GroupData]
    stages: list[StageData]
    layers: list[LayerData]


class CombinationData(TypedDict):
    """A network, a split and an algorithm."""

    network: str
    topology: str
    npu_count: int
    parallel: ParallelData
    algorithm: str


class TrainingRowData(CombinationData):
    """The outcome of a combination."""

    time_ps: float
    batch: int
    samples_per_s: float
    speedup: float | None
    breakdown: BreakdownData
    exposed_share: float
    memory: MemoryData


class RefusedData(CombinationData):
    """A combination that cannot run."""

    reason: str


class SearchData(TypedDict):
    """Splits of one network, the best first."""

    rows: list[TrainingRowData]
    refused: list[RefusedData]


class TrainingComparisonData(SearchData):
    """Combinations, the best first."""

    workload: str

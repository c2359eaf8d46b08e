"""JSON that only commands print: networks, workloads, traces and pictures."""

from __future__ import annotations

from typing import Any

from typing_extensions import NotRequired, TypedDict

from hocket.topology.costs import NetworkCost


class NamedData(TypedDict):
    """A name in a list."""

    name: str
    description: str


class MachinesData(TypedDict):
    """The shipped machines."""

    machines: list[NamedData]


class AlgorithmData(TypedDict):
    """An algorithm."""

    name: str
    summary: str
    kinds: list[str]


class AlgorithmsData(TypedDict):
    """The algorithms, and the collectives that each does."""

    algorithms: list[AlgorithmData]


class SchedulesData(TypedDict):
    """Names of the schedules that were saved."""

    schedules: list[str]


class DimensionData(TypedDict):
    """A dimension of a network."""

    kind: str
    size: int
    bandwidth_bytes_per_s: int
    latency_ps: int
    offload: bool


class LinkData(TypedDict):
    """A link of a network."""

    src: str
    dst: str
    bandwidth_bytes_per_s: int
    latency_ps: int


class OffloadData(TypedDict):
    """A switch that sums or multicasts."""

    switch: str
    operations: list[str]
    """sum, multicast and all-reduce."""
    rate_bytes_per_s: int | None
    trees: int | None


class TopologyData(TypedDict):
    """A network."""

    name: str
    npus: list[str]
    switches: list[str]
    link_count: int
    out_degree: tuple[int, int]
    """The least and the largest number of links out of a device."""
    in_degree: tuple[int, int]
    connected: bool
    unreachable: tuple[str, str] | None
    """Two NPUs without a path from the first to the second."""
    diameter_hops: int | None
    diameter_latency_ps: int | None
    total_bandwidth_bytes_per_s: int
    link_bandwidth_bytes_per_s: tuple[int, int] | None
    """Of the slowest link and the fastest."""
    bisection_bytes_per_s: int | None
    bisection_is_exact: bool
    switching: str
    profile: str | None
    """What real runs cost there: a shipped profile, or the file's own."""
    cost: NetworkCost | None
    """By the prices of its file; None where it has none."""
    dimensions: list[DimensionData]
    links: list[LinkData]
    failed_nodes: list[str]
    failed_links: list[list[str]]
    """Both ends of each."""
    groups: list[list[str]]
    """Names of the NPUs of each node."""
    offload: list[OffloadData]
    """Switches that do more than forward."""
    warnings: list[str]
    notes: list[str]
    source: list[str]


class CallsData(TypedDict):
    """Collectives of one kind."""

    count: int
    size: int
    """Bytes of all of them."""


class TraceData(TypedDict):
    """The contents of a trace, over all ranks."""

    ranks: int
    nodes: dict[str, int]
    """By kind."""
    compute_ps: int
    cpu_compute_ps: int
    messages: int
    message_bytes: int
    groups: int
    calls: dict[str, CallsData]
    """By kind."""
    unspecified: int


class RankData(TypedDict):
    """The use of a rank's time."""

    rank: int
    compute_ps: int
    exposed_ps: int
    waited_ps: int
    rest_ps: int
    end_ps: int


TraceCallData = TypedDict(
    "TraceCallData",
    {
        "name": str,
        "kind": str,
        "size": int,
        "group": NotRequired[int],
        "from": NotRequired[int],
        "to": NotRequired[int],
        "start_ps": int,
        "end_ps": int,
    },
)
"""A collective of a group of ranks, or a message from a rank to another."""


class TraceRunData(TypedDict):
    """A trace in simulated time."""

    topology: str
    algorithm: str
    npu: str
    time_ps: int
    ranks: list[RankData]
    groups: dict[str, list[int]]
    """Ranks of each group, by its number."""
    calls: list[TraceCallData]
    notes: list[str]


class ListedWorkloadData(NamedData):
    """A shipped workload."""

    layers: int
    parameters: int


class WorkloadsData(TypedDict):
    """The shipped workloads."""

    workloads: list[ListedWorkloadData]


class WorkData(TypedDict):
    """The cost of one pass of a layer for one sample."""

    flops: int
    bytes: int
    time_ps: int | None
    """Where it was measured."""


class BlockData(TypedDict):
    """A layer by its costs."""

    name: str
    forward: WorkData
    input_gradient: WorkData
    weight_gradient: WorkData
    parameters: int
    inputs: int
    outputs: int
    kept: int | None
    split: str
    experts: int
    routed: int
    table: bool
    joins: str | None


class WorkloadData(TypedDict):
    """A workload by the costs of its layers."""

    name: str
    parameters: int
    forward_flops: int
    backward_flops: int
    layers: list[BlockData]
    notes: list[str]
    source: list[str]


class CountsData(TypedDict):
    """Operations and bytes."""

    flops: int
    bytes: int


class TracedLayerData(TypedDict):
    """A layer of a PyTorch module."""

    name: str
    forward: CountsData
    input_gradient: CountsData
    weight_gradient: CountsData
    parameters: int
    inputs: int
    outputs: int
    kept: int | None


class TracedWorkloadData(TypedDict):
    """A PyTorch module as a workload."""

    name: str
    parameters: int
    forward: CountsData
    input_gradient: CountsData
    weight_gradient: CountsData
    kept: int
    layers: list[TracedLayerData]
    notes: list[str]


class LayerShapeData(TypedDict):
    """A layer by its dimensions."""

    name: str
    input: list[int]
    """Height and width."""
    filter: list[int]
    """Height and width."""
    channels: int
    filters: int
    stride: int
    times: int
    parameters: int
    row_parameters: int


class LayerCyclesData(LayerShapeData):
    """Cycles of a layer on a chiplet."""

    gradient_bytes: int
    forward_cycles: int
    input_gradient_cycles: int
    weight_gradient_cycles: int


class WorkloadCyclesData(TypedDict):
    """Cycles of a workload on a chiplet."""

    name: str
    samples: int
    parameters: int
    row_parameters: int
    gradient_bytes: int
    forward_cycles: int
    backward_cycles: int
    cycles: int
    time_ps: int
    layers: list[LayerCyclesData]
    notes: list[str]
    source: list[str]


class PlanLinkData(TypedDict):
    """A link by its number and its ends."""

    link: int
    src: str
    dst: str


class StructureData(TypedDict):
    """A ring, a tree or another structure."""

    kind: str
    roots: list[str]
    chunks: list[int]
    transfers: list[list[str]]
    """Source and destination of each."""
    links: list[PlanLinkData]


class StructuresMore(TypedDict):
    """The structures of a plan."""

    phase: str
    chunk: int | None
    structures: list[StructureData]
    links: int
    links_in_use: int
    file: str | None


class BusyLinkData(PlanLinkData):
    """A link, and the share of time in which it is busy."""

    busy: float


class LinkHeatMore(TypedDict):
    """How busy each link is while a plan runs."""

    fidelity: str
    cycle_ps: int | None
    order: str | None
    switching: str
    packets: dict[str, Any] | None
    latency_model: str | None
    time_ps: int
    used_links: float
    used_link_share: float
    links: list[BusyLinkData]
    bin_ps: float
    in_use: list[float]
    """Share of all links that are busy, bin by bin."""
    file: str | None


class ArrowData(TypedDict):
    """A transfer in the time-expanded network."""

    transfer: int
    chunk: int
    chunks: int
    src: int
    dst: int
    start_ps: int
    end_ps: int


class TimeExpandedMore(TypedDict):
    """The time-expanded network of a plan."""

    latency_model: str | None
    time_ps: int
    slot_ps: int | None
    slots: int | None
    arrows: list[ArrowData]
    chunk: int | None
    file: str | None

"""What results say of plans and schedules, as values of JSON."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from hocket.collectives.data import CollectiveData, OutcomeData
from hocket.plans.synthesis.data import SynthesisData


class PackingData(TypedDict):
    """Spanning trees, and the cut or partition that no trees beat."""

    carries: str
    """sums, copies, or both."""
    trees: int
    trees_a_root: int
    height: int
    """Hops from a root to the furthest NPU."""
    bandwidth_bytes_per_s: int
    """What crosses the worst cut, or leads from part to part."""
    weight: int
    """How many roots share that, or parts less one."""
    reached: float
    """What share of it the trees reach."""
    parts: list[list[str]]
    """Devices on the side of the cut that has fewer, or of each part."""
    certificate: str
    """All of it in a line."""


class TreesData(TypedDict):
    """How a plan of packed trees was made."""

    time_ps: int
    pieces: int
    """That every tree carries."""
    packings: list[PackingData]
    """Of what is summed, and of what is copied; or one of both."""


class SelectionData(TypedDict):
    """How auto chose a plan."""

    algorithm: str
    chunks: int | None
    """That the algorithm was asked for; None: its own."""
    seed: int
    time_ps: int
    bound_ps: int
    gap: float
    runner_up: str | None
    lead: float | None
    """How much longer the runner-up's plan takes, as a share of the time."""
    times_ps: dict[str, int]
    """The best time of each algorithm that made a plan, the fastest first."""
    plans: int
    """How many were proved and simulated."""
    left_out: dict[str, str]
    """Algorithms that made no plan, and why."""
    ended: Literal["bound", "close", "all", "stale", "time"]
    """Why the search ended: at the bound; within 0.1 % of it; with nothing left to try; when more trials
    found nothing faster; at the limit of time."""
    cached: bool
    """Whether the choice was remembered from an earlier search."""


class PlanData(CollectiveData):
    """A plan."""

    algorithm: str
    chunk_count: int
    transfers: int
    routing: str
    link_order: str
    verified: bool
    reproducible: bool | None
    """None as long as the plan is not verified."""
    synthesis: SynthesisData | None
    trees: TreesData | None
    selection: SelectionData | None
    """None where an algorithm was named."""


class SymmetricData(CollectiveData):
    """A plan of one NPU's block, and the group that shifts it."""

    algorithm: str
    group: list[int]
    """Orders of the cyclic groups whose product takes every NPU to every other."""
    orbits: int
    """Kinds of links."""
    transfers: int
    """Of the whole plan."""
    kept_transfers: int
    """Of one block."""
    pieces: int
    """That every tree carries."""
    packings: list[PackingData]
    """The trees of one NPU: of what is summed, and of what is copied."""
    verified: bool
    time_ps: int
    bound_ps: int
    bound_witness: str


class ScheduleData(CollectiveData):
    """A schedule of dimensions."""

    algorithm: str
    policy: str
    switching: str
    chunks: int


class DimensionRunData(OutcomeData, ScheduleData):
    """A schedule at dimension fidelity."""

    latency_model: str


class DimensionAdviceData(TypedDict):
    """What a dimension's bandwidth is worth."""

    number: int
    """From 1."""
    kind: str
    size: int
    bandwidth_bytes_per_s: int
    busy_fixed: float
    busy_best: float
    suits_best_bytes_per_s: float
    suits_fixed_bytes_per_s: float


class AdviceData(TypedDict):
    """What the dimensions' bandwidths are worth to an all-reduce."""

    topology: str
    utilization_fixed: float
    utilization_best: float
    limiting: list[int]
    dimensions: list[DimensionAdviceData]
    pairs: list[str]
    verdict: str

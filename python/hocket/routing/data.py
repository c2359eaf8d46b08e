"""The results about jobs on a cluster as JSON values."""

from __future__ import annotations

from typing_extensions import TypedDict


class IterationData(TypedDict):
    """One iteration of a job."""

    compute_start_ps: int
    start_ps: int
    end_ps: int
    all_reduce_ps: int
    flows: int
    flow_completion_ps: int
    throughput_bytes_per_s: float
    slowest_ps: int


class JobData(TypedDict):
    """A job."""

    name: str
    model: str | None
    workload: str | None
    gpus: int
    hosts: list[str]
    all_reduce_ps: int
    ideal_ps: int
    slowdown: float
    flow_completion_ps: int
    throughput_bytes_per_s: float
    iteration_ps: int
    iterations: list[IterationData]


class DecisionData(TypedDict):
    """An action of the controller at a moment."""

    time_ps: int
    flows: int
    moved: int
    max_link_load: int
    bound: int
    foreseen: bool
    is_repair: bool
    witness: str


class ClusterRunData(TypedDict):
    """Jobs on a cluster, by one scheme."""

    scheme: str
    topology: str
    hosts: int
    time_ps: int
    max_link_load: int | None
    hit_rate: float | None
    time_saved_ps: int
    computed_ahead: int
    routing_elapsed_ps: list[int]
    """What each assignment that was waited for took on this machine."""
    jobs: list[JobData]
    decisions: list[DecisionData]


class ComparedSchemesData(TypedDict):
    """The same jobs by several schemes."""

    schemes: list[ClusterRunData]

"""What results say of a testbed, as values of JSON."""

from __future__ import annotations

from typing_extensions import TypedDict


class SteeringRowData(TypedDict):
    """Flows of one kind."""

    method: str
    protocol: str
    stages: int
    flows: int
    right: int
    port_elapsed_ps: int


class SteeringData(TypedDict):
    """Whether flows went the ways that were wanted."""

    flows: int
    right: int
    rows: list[SteeringRowData]


class StudyRunData(TypedDict):
    """The jobs once, all together."""

    paths: str
    how: str
    measured_ps: list[int]
    """Of each job."""
    predicted_ps: list[int]
    deviation: float
    """By which share the last job ended later than the simulation says."""
    max_link_load: int
    load_average: float
    """Of the machine when it began."""
    counters_agree: bool


class StudyData(TypedDict):
    """Jobs on a testbed, measured beside the simulation."""

    spines: int
    tors: int
    hosts: int
    rate_bytes_per_s: int | None
    jobs: int
    size_bytes: int
    ideal_ps: int
    gain: float | None
    """Mean time by hashed ports over that by assigned ones."""
    predicted_gain: float | None
    runs: list[StudyRunData]

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


class ClosPlanData(TypedDict):
    """A plan that ran on a Clos by one kind of paths."""

    algorithm: str
    collective: str
    size_bytes: int
    paths: str
    """ecmp, or controller."""
    times_ps: list[int]
    """Of each call."""
    measured_ps: int
    """The median."""
    predicted_ps: int
    """With flows spread evenly over the spines."""
    steered: int
    """Connections that have an agent's port."""
    connections: int
    fullest_link_to_mean: float
    """Bytes that the fullest link up carried, by those of the mean one."""
    load_average: float
    """Of the machine when it began."""


class ClosPlansData(TypedDict):
    """Plans on a Clos whose switches hash, by ECMP and as the controller steers them."""

    spines: int
    tors: int
    hosts: int
    rate_bytes_per_s: int
    runs: list[ClosPlanData]


class PlanRunData(TypedDict):
    """A plan that ran on a network of namespaces."""

    algorithm: str
    collective: str
    size_bytes: int
    transfers: int
    chunk_count: int
    times_ps: list[int]
    """Of each run."""
    measured_ps: int
    """The median."""
    predicted_ps: int
    deviation: float
    """By which share the median is longer than the prediction."""
    measured_rank: int
    predicted_rank: int
    frame_bytes_per_byte: float
    """Of all links in one run, as the kernel counted them."""
    worst_link_frame_bytes_per_byte: float
    load_average: float
    """Of the machine when it began."""


class PlanStudyData(TypedDict):
    """Plans on a network of namespaces, or over loopback, measured beside their simulation."""

    topology: str
    npus: int
    links: int
    rate_bytes_per_s: int
    latency_ps: int
    """Of each link, as it was built."""
    medium: str
    """What links are made of: namespaces, or loopback, where sockets keep to the rates of links."""
    calibration_alone: float
    """Data that one link carried, in relation to what one of its rate carries."""
    calibration_worst: float
    """The same of all links at once, of the one that is furthest off; over loopback that of the one."""
    delay_ps: int
    """Of a message on a link, besides its bytes and the latency; below 0 where links are ahead of them."""
    short_delay_ps: int | None
    """The same of a message of few bytes; measured where links of namespaces take time."""
    runs: list[PlanRunData]

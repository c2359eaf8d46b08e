"""Results of a testbed as values of JSON."""

from __future__ import annotations

from typing_extensions import TypedDict


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

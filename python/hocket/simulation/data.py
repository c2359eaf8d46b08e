"""What results say of simulated plans, as values of JSON."""

from __future__ import annotations

from typing_extensions import TypedDict

from hocket.collectives.data import OutcomeData
from hocket.plans.data import PlanData


class LinkData(TypedDict):
    """The link that is occupied longest."""

    src: str
    dst: str
    busy_share: float


class EqualLinksData(TypedDict):
    """Links among which equal paths differ, and how many of them carried nothing."""

    links: int
    idle: int


class PacketsData(TypedDict):
    """Options of packet fidelity."""

    packet_bytes: int
    flit_bytes: int
    header_flits: int
    virtual_channels: int
    buffer_flits: int
    cycle_ps: int
    reduction_rate: int | None


class RunFigures(OutcomeData):
    """What a simulation came to."""

    busiest_link: LinkData | None
    max_link_bytes: int
    order: str | None
    latency_model: str
    packets: PacketsData | None
    equal_links: EqualLinksData


class RunData(RunFigures, PlanData):
    """A plan that was simulated."""

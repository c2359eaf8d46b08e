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

"""What results say of networks, as values of JSON."""

from __future__ import annotations

from typing_extensions import TypedDict


class CostData(TypedDict):
    """What a network costs, in the units of its prices."""

    total: float
    npus: float
    links: float
    switches: float
    cables: int
    """A link both ways is one."""
    switch_count: int

"""The results about networks as JSON values."""

from __future__ import annotations

from typing_extensions import TypedDict


class CostData(TypedDict):
    """The cost of a network, in the units of its prices."""

    total: float
    npus: float
    links: float
    switches: float
    cables: int
    """A link both ways is one."""
    switch_count: int

"""What results say of steering, as values of JSON."""

from __future__ import annotations

from typing_extensions import TypedDict


class SwitchPortsData(TypedDict):
    """Source ports that led to a switch."""

    switch: str
    protocol: str
    ports: list[int]


class CalibrationData(TypedDict):
    """Which switch each probe reached."""

    hops: int
    probes: int
    unanswered: int
    switches: list[SwitchPortsData]

"""The results of steering as JSON values."""

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


class IdentifiedData(TypedDict):
    """A hash that explains all answers."""

    algorithm: str
    fields: int
    seed: int
    switches: list[str | None]
    """The switch of each way, in the order of the next hops; null where no answer shows it."""

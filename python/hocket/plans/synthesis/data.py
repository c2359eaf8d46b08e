"""What results say of how plans were synthesized, as values of JSON."""

from __future__ import annotations

from typing_extensions import TypedDict


class SynthesisData(TypedDict):
    """How a plan was synthesized, and how good it is among those of its chunks."""

    method: str
    status: str
    time_ps: int
    simulated: bool
    least_ps: int
    gap: float
    slots: int | None
    least_slots: int | None
    slot_ps: int | None
    unwind: str
    seed: int
    elapsed_ps: int
    """How long it took on this machine."""


class TimetableData(TypedDict):
    """What greedy matching comes to, without a plan."""

    slots: int
    sends: int
    end_ps: int
    least_ps: int
    elapsed_ps: int

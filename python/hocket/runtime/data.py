"""What results say of runs between processes, as values of JSON."""

from __future__ import annotations

from typing_extensions import TypedDict


class TimedCallsData(TypedDict):
    """A collective among processes of this machine, checked and timed."""

    collective: str
    algorithm: str
    """What was run: an algorithm's name, or ``shared-memory``."""
    ranks: int
    root: int
    size_bytes: int
    dtype: str
    op: str
    transport: str
    """``tcp`` or ``shared``."""
    calls: int
    """How many were timed."""
    median_ps: int
    """Time of a call until the last rank has its result: the median."""
    p90_ps: int
    min_ps: int
    algbw: float
    """At the median [bytes/s]."""
    busbw: float
    predicted_ps: int | None
    """Of a plan: its time at link fidelity on the network that it was planned for."""
    load_average: float
    """Of the machine when it began."""

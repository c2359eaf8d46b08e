"""The results of runs between processes as JSON values."""

from __future__ import annotations

from typing_extensions import NotRequired, TypedDict


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


class PlanRowData(TypedDict):
    """The choice for one kind, number of ranks and range of sizes; unneeded fields are left out."""

    collective: str
    ranks: int
    from_bytes: int
    """From which size of the whole vector on."""
    to_bytes: NotRequired[int]
    """Below which; without, for all that is larger."""
    algorithm: NotRequired[str]
    """What plans it, or ``shared-memory``, where no plan is run."""
    chunks: NotRequired[int]
    seed: NotRequired[int]
    planned_bytes: NotRequired[int]
    topology: NotRequired[str]
    """Where it is planned, as ``--topology`` takes it; without, on a fully connected network."""
    plan: NotRequired[str]
    """A plan file, beside the table."""
    transport: str
    """``tcp`` or ``shared``."""


class PlanTableData(TypedDict):
    """A table of plans, as a file has it."""

    format: str
    version: int
    made_by: str
    rows: list[PlanRowData]

"""The results of runs between processes as JSON values."""

from __future__ import annotations

from typing_extensions import NotRequired, TypedDict


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

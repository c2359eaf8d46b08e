"""The results of sweeps and designs as JSON values."""

from __future__ import annotations

from typing import TypeAlias

from typing_extensions import TypedDict

Cell: TypeAlias = str | int | float | bool | None


class SweepRunData(TypedDict):
    """A sweep that has been run."""

    command: str
    points: int
    failed: int
    """Points whose rows say what went wrong."""
    resumed: int
    """Points that were there already."""
    parts: int
    """Files."""
    folder: str


class SweepErrorData(TypedDict):
    """The fault."""

    error: str
    points: int


class SweepReportData(TypedDict):
    """The result of a sweep."""

    command: str
    points: int
    rows: int
    failed: int
    missing: int
    """Points that were not run yet."""
    errors: list[SweepErrorData]
    """The most frequent first."""
    measure: str
    """The column of times that is least."""
    by: list[str]
    """Keys of the table."""
    table: list[dict[str, Cell]]
    """By group: its keys, ``ran``, ``failed``, least, median and largest time, and what the quickest is."""
    front: list[dict[str, Cell]]
    """What nothing beats in both time and cost, by what is to be done; the cheapest first."""


class DesignedData(TypedDict):
    """A network that was planned for."""

    network: str
    """As ``--topology`` takes it."""
    cost: float
    budget: float
    """The part of the budget that it was made for."""
    time_ps: float
    bound_ps: int | None
    """None of training."""
    algorithm: str
    bandwidths_bytes_per_s: list[int]
    """Of the links of each dimension; of a Clos, of those of NPUs and of those of ToRs."""
    oversubscription: float | None
    """Of a Clos: bandwidth below a ToR for that above it."""


class DesignData(TypedDict):
    """The best networks for a budget."""

    task: str
    npus: int
    budget: float
    candidates: int
    evaluated: int
    """How many were planned and simulated for."""
    is_exhausted: bool
    """Whether no other candidate can be quicker than the best, those refused left out."""
    refused: dict[str, int]
    """Why no plan could be made for candidates, and for how many, the most frequent reason first."""
    designs: list[DesignedData]
    """For the whole budget, the quickest first."""
    front: list[DesignedData]
    """What nothing beats in both time and cost, the cheapest first."""

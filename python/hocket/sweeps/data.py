"""What results say of sweeps and designs, as values of JSON."""

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
    """What went wrong."""

    error: str
    points: int


class SweepReportData(TypedDict):
    """What a sweep came to."""

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
    """By group: its keys, ``ran``, ``failed``, the least, median and largest time, and what the quickest is."""
    front: list[dict[str, Cell]]
    """What nothing beats in both time and cost, by what is to be done; the cheapest first."""

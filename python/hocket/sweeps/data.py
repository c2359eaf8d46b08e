"""What results say of sweeps and designs, as values of JSON."""

from __future__ import annotations

from typing_extensions import TypedDict


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

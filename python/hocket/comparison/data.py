"""What results say of compared algorithms, as values of JSON."""

from __future__ import annotations

from hocket.collectives.data import BoundData, CollectiveData
from hocket.simulation.data import RunFigures


class EntryData(RunFigures):
    """One algorithm."""

    algorithm: str
    chunks: int
    """Pipelined slices that it ran with."""
    transfers: int
    routing: str
    verified: bool


class ComparisonData(CollectiveData):
    """Every algorithm that applies, fastest first."""

    bound: BoundData
    algorithms: list[EntryData]
    refused: dict[str, str]
    """Why each other algorithm cannot run here."""

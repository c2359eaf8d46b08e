"""What files of runtimes are as values of JSON."""

from __future__ import annotations

from typing_extensions import TypedDict


class FindingData(TypedDict):
    """One thing that is wrong with a file."""

    code: str
    line: int | None
    place: str
    """Where in the file, as the format names it."""
    detail: str


class CheckedFileData(TypedDict):
    """What a file is, and what is wrong with it."""

    file: str
    kind: str
    """``msccl`` or ``mscclpp``."""
    name: str
    collective: str
    """As the file calls it."""
    ranks: int
    chunks: int
    protocol: str
    in_place: bool
    out_of_place: bool
    min_bytes: int
    max_bytes: int | None
    """None if there is no limit."""
    blocks: int
    """Most thread blocks of a rank."""
    steps: int
    scratch_chunks: int
    chunks_per_message: int
    right: bool
    contents_known: bool
    """False if it is not known what the outputs must hold, so that only the rest was checked."""
    fault_count: int
    faults: list[FindingData]
    """The first hundred."""
    notes: list[str]


class ExportedFileData(TypedDict):
    """What was written."""

    file: str
    kind: str
    algorithm: str
    collective: str
    npus: int
    size_bytes: int
    chunks: int
    channels: int
    blocks: int
    """Most thread blocks of a rank."""
    steps: int
    scratch_chunks: int
    in_place: bool
    notes: list[str]


class ExportedTraceData(TypedDict):
    """A folder that was written for ASTRA-sim."""

    folder: str
    kind: str
    algorithm: str
    collective: str
    call: str
    """What ASTRA-sim is told that the collective is."""
    npus: int
    ranks: int
    size_bytes: int
    transfers: int
    nodes: int
    """Of all ranks' plan files."""
    files: list[str]
    """Beside the traces."""
    notes: list[str]

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


class CheckedProgramData(TypedDict):
    """The description of a program."""

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
    contents_known: bool
    """False if it is not known what the outputs must hold, so that only the rest was checked."""
    run: bool
    """Whether it was run on integers as well."""


class CheckedFileData(TypedDict):
    """The kind of a file and its faults."""

    file: str
    kind: str
    """As ``msccl`` or ``nccl-graph``."""
    summary: str
    right: bool
    fault_count: int
    faults: list[FindingData]
    """The first hundred."""
    notes: list[str]
    warnings: list[str]
    """What its user must know before using it."""
    program: CheckedProgramData | None
    """None for files that are no programs."""


class ExportedProgramData(TypedDict):
    """The description of a written program."""

    chunks: int
    channels: int
    blocks: int
    """Most thread blocks of a rank."""
    steps: int
    scratch_chunks: int
    in_place: bool


class ExportedFileData(TypedDict):
    """What was written."""

    file: str
    """As it was asked for."""
    files: list[str]
    """What was written."""
    kind: str
    algorithm: str
    collective: str
    npus: int
    size_bytes: int
    summary: str
    notes: list[str]
    warnings: list[str]
    program: ExportedProgramData | None
    """None for files that are no programs."""


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

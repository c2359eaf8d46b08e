"""Files of runtimes, read and judged."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from hocket._checks import check_function, path_of
from hocket._memory import check_fits
from hocket._options import options_of
from hocket._results import HIDDEN, Result, figure, name_of, said
from hocket.collectives.collective import Progress
from hocket.deployment import MANIFEST
from hocket.errors import SpecError
from hocket.files.raw import read_text
from hocket.formats.judgement import Fault, Judgement
from hocket.formats.kinds import KINDS, Kind, kind_of
from hocket.formats.options import CheckOptions, heeded

MAX_BYTES = 1 << 30
"""Largest file that is read [bytes]."""
_COPIES = 16
"""How many times the bytes of a file its program takes in memory, about."""
_HEAD = 1 << 16


@dataclass(frozen=True)
class CheckedProgram(Result):
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


@dataclass(frozen=True)
class Found(Result):
    """The findings in a file."""

    summary: str
    fault_count: int
    faults: tuple[Fault, ...]
    """The first hundred."""
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    """What its user must know before using it."""


@dataclass(frozen=True)
class CheckedFile(Result):
    """The kind of a file and its faults.

    Attributes
    ----------
    file
        Its path.
    kind
        Its kind, found by its contents.
    judgement
        What was found.
    options
        How it was judged.
    """

    file: str
    kind: Kind = field(metadata=said(of=name_of))
    judgement: Judgement = field(metadata=HIDDEN)
    options: CheckOptions = field(metadata=HIDDEN)

    @property
    @figure(inline=Found)
    def _found(self) -> Found:
        return Found.taken_from(self.judgement, fault_count=self.judgement.count)

    @property
    @figure()
    def program(self) -> CheckedProgram | None:
        """The description of the program, or None if the file is no program."""
        if self.judgement.program is None:
            return None
        a_message = self.options.chunks_per_message or 1
        return CheckedProgram.taken_from(
            self.judgement.program, chunks_per_message=a_message, run=bool(self.options.run)
        )

    @property
    @figure("right")
    def is_right(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.judgement.count == 0


def check_file(
    path: str | PathLike[str],
    *,
    options: CheckOptions | None = None,
    progress: Progress | None = None,
) -> CheckedFile:
    """Read a file of a runtime, whose kind is found by its contents, and judge it.

    Parameters
    ----------
    path
        The file, or a deployed folder.
    options
        How it is judged.
    progress
        Called with stage, done and total; an exception stops the check.

    Raises
    ------
    SpecError
        If there is no such file, it cannot be read, or its kind does not heed an option.
    """
    file, given = path_of("path", path), options_of(CheckOptions, options, {})
    check_function("progress", progress)
    is_folder = False
    with suppress(OSError):  # of a name that is too long, which reading says in a line
        is_folder = (file / MANIFEST).exists()
        if file.is_dir() and not is_folder:
            right = "name a file, or a folder that hocket deploy wrote"
            raise SpecError(None, "is a folder", right, str(path))
    text, kind = ("", KINDS["deploy"]) if is_folder else read_file(file)
    assert kind.check is not None
    said = heeded(given, kind, kind.checks)
    try:
        judgement = kind.check(text, file, said, progress)
    except SpecError as error:
        raise placed(file, error) from None
    return CheckedFile(str(path), kind, judgement, given)


def placed(file: Path, error: SpecError) -> SpecError:
    """Add the name of a file to an error of its text, unless it is about an option or another file."""
    if error.field is not None:
        return error
    if error.origin is None:
        return error.but(origin=str(file))
    return (
        error.but(origin=f"{file}, {error.origin}") if error.origin.startswith("line ") else error
    )


def read_file(path: Path) -> tuple[str, Kind]:
    """Read a file and find its kind.

    Raises
    ------
    SpecError
        If it cannot be read, or is of no known kind.
    """
    text = read_text(path, "a file of a runtime", most=MAX_BYTES)
    check_fits(_COPIES * len(text), "what is in it", origin=str(path))
    return text, kind_of(text[:_HEAD], str(path))

"""Files of runtimes, read and judged."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from hocket._checks import path_of
from hocket._memory import check_fits
from hocket._options import options_of
from hocket._results import Result
from hocket.collectives.collective import Progress
from hocket.errors import SpecError
from hocket.files.raw import read_text
from hocket.formats.data import CheckedFileData
from hocket.formats.judgement import Judgement
from hocket.formats.kinds import Kind, kind_of
from hocket.formats.options import CheckOptions, heeded

MAX_BYTES = 1 << 30
"""Largest file that is read [bytes]."""
_COPIES = 16
"""How many times the bytes of a file its program takes in memory, about."""
_HEAD = 1 << 16


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
    kind: Kind
    judgement: Judgement
    options: CheckOptions

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.judgement.count == 0

    def to_dict(self) -> CheckedFileData:
        """Return the result as JSON values; sizes in bytes."""
        found = self.judgement
        program = found.program
        return {
            "file": self.file,
            "kind": self.kind.name,
            "summary": found.summary,
            "right": self.is_right,
            "fault_count": found.count,
            "faults": [
                {"code": each.code, "line": each.line, "place": each.place, "detail": each.detail}
                for each in found.faults
            ],
            "notes": list(found.notes),
            "warnings": list(found.warnings),
            "program": None
            if program is None
            else {
                "name": program.name,
                "collective": program.collective,
                "ranks": program.ranks,
                "chunks": program.chunks,
                "protocol": program.protocol,
                "in_place": program.in_place,
                "out_of_place": program.out_of_place,
                "min_bytes": program.min_bytes,
                "max_bytes": program.max_bytes,
                "blocks": program.blocks,
                "steps": program.steps,
                "scratch_chunks": program.scratch_chunks,
                "chunks_per_message": self.options.chunks_per_message or 1,
                "contents_known": program.contents_known,
                "run": bool(self.options.run),
            },
        }


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
        The file.
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
    text, kind = read_file(file)
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

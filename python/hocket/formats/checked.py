"""Files of runtimes, read and judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from hocket._core.formats import Checked
from hocket._results import Result
from hocket.errors import SpecError
from hocket.formats.data import CheckedFileData
from hocket.formats.kinds import Kind, kind_of

MAX_BYTES = 1 << 30
"""Largest file that is read [bytes]."""
_HEAD = 1 << 16


@dataclass(frozen=True)
class CheckedFile(Result):
    """What a file is, and what is wrong with it.

    Attributes
    ----------
    file
        Its path.
    kind
        Its kind, found by its contents.
    checked
        What was found.
    chunks_per_message
        Chunks that fit one message of a connection, as it was checked.
    """

    file: str
    kind: Kind
    checked: Checked
    chunks_per_message: int

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.checked.count == 0

    def to_dict(self) -> CheckedFileData:
        """Give it as values of JSON; sizes in bytes."""
        found = self.checked
        return {
            "file": self.file,
            "kind": self.kind.name,
            "name": found.name,
            "collective": found.collective,
            "ranks": found.ranks,
            "chunks": found.chunks,
            "protocol": found.protocol,
            "in_place": found.in_place,
            "out_of_place": found.out_of_place,
            "min_bytes": found.min_bytes,
            "max_bytes": found.max_bytes,
            "blocks": found.blocks,
            "steps": found.steps,
            "scratch_chunks": found.scratch_chunks,
            "chunks_per_message": self.chunks_per_message,
            "right": self.is_right,
            "contents_known": found.contents_known,
            "fault_count": found.count,
            "faults": [
                {"code": each.code, "line": each.line, "place": each.place, "detail": each.detail}
                for each in found.findings
            ],
            "notes": list(found.notes),
        }


def check_file(
    path: str | PathLike[str],
    *,
    chunks_per_message: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
) -> CheckedFile:
    """Read a file of a runtime, whose kind is found by its contents, and judge it.

    Parameters
    ----------
    path
        The file.
    chunks_per_message
        Chunks that fit one message of a connection. With 1, the check holds for any message size; with
        more, for sizes at which so many fit.
    progress
        Called with stage, done and total; an exception stops the check.

    Raises
    ------
    SpecError
        If there is no such file, or it cannot be read.
    """
    if chunks_per_message < 1:
        raise SpecError("chunks_per_message", f"{chunks_per_message} is below 1", "give 1 or more")
    text = _read(Path(path))
    file = str(path)
    kind = kind_of(text[:_HEAD], file)
    assert kind.check is not None
    try:
        checked = kind.check(text, chunks_per_message=chunks_per_message, progress=progress)
    except SpecError as error:
        raise error.but(origin=f"{file}, {error.origin}" if error.origin else file) from None
    return CheckedFile(file, kind, checked, chunks_per_message)


def _read(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            right = f"the most that is read is {MAX_BYTES:,}"
            raise SpecError(None, f"has {size:,} bytes", right, origin=str(path))
        return path.read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:
        if isinstance(error, SpecError):
            raise
        if isinstance(error, UnicodeDecodeError):
            why = f"is not text in UTF-8: byte {error.start} is not"
        else:
            why = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise SpecError(None, why, origin=str(path)) from None

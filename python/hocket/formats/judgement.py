"""The report of a kind of file about a file, and about its own output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hocket._checks import is_decimal
from hocket._core.formats import Checked, Exported, Finding
from hocket._results import Result
from hocket.errors import SpecError
from hocket.units import printable


@dataclass(frozen=True)
class Fault(Result):
    """One thing that is wrong with a file that could be read.

    Attributes
    ----------
    code
        Its rule, a stable name.
    line
        From 1; ``None`` if no line is to blame.
    place
        Where in the file, as the format names it; may be empty.
    detail
        What is wrong, in words.
    """

    code: str
    line: int | None
    place: str
    detail: str

    @property
    def text(self) -> str:
        """All of it in one line."""
        line = "" if self.line is None else f"line {self.line}: "
        place = f"{self.place}: " if self.place else ""
        return printable(f"{line}{place}{self.detail} ({self.code})")


def faults_of(findings: Sequence[Finding]) -> tuple[Fault, ...]:
    """Return what the core found."""
    return tuple(Fault(each.code, each.line, each.place, each.detail) for each in findings)


def line_in(error: SpecError) -> int | None:
    """Return the line that an error names in its origin, or None if it names none."""
    _, told, line = (error.origin or "").rpartition("line ")
    return int(line) if told and is_decimal(line) else None


@dataclass(frozen=True)
class Judgement:
    """The kind of a file and its faults.

    Attributes
    ----------
    summary
        What it is, in a line.
    right
        What is right if nothing is wrong with it, in a line.
    faults
        What is wrong with it, the first hundred.
    count
        How many faults there are.
    notes
        What is to be known though it is not wrong.
    warnings
        What its user must know before using it.
    program
        What its program is; ``None`` for files that are no programs.
    """

    summary: str
    right: str
    faults: tuple[Fault, ...] = ()
    count: int = 0
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    program: Checked | None = None


@dataclass(frozen=True)
class Written:
    """The written file.

    Attributes
    ----------
    files
        The files.
    summary
        What they have, in a line.
    notes
        What is to be known of them.
    warnings
        What their user must know before using them.
    program
        What the program is that was written; ``None`` for files that are no programs.
    """

    files: tuple[Path, ...]
    summary: str
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    program: Exported | None = None

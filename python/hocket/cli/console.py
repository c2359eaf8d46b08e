"""The output of tables and lines, in which names cannot steer the terminal."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from shutil import get_terminal_size

from hocket.cli.table import Table, wrapped
from hocket.units import printable

QUIET: ContextVar[bool] = ContextVar("QUIET", default=False)
"""Whether only the result is printed: no progress and no notes."""


class Printer:
    """Prints for a terminal of some width, or all there is for whatever else reads it."""

    def __init__(self) -> None:
        self.width = get_terminal_size().columns if sys.stdout.isatty() else None

    def note(self, line: str) -> None:
        """Print a line beside the result, unless only that is wanted."""
        if not QUIET.get():
            self.print(line)

    def print(self, item: str | Table = "") -> None:
        """Print a table or lines of text, which break at words only."""
        if isinstance(item, Table):
            lines = item.lines(self.width)
        else:
            lines = [
                part for line in item.split("\n") for part in wrapped(printable(line), self.width)
            ]
        print("\n".join(lines))

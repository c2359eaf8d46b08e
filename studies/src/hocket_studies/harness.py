"""The common part of all studies: a folder with pictures and files, tables or JSON."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from hocket.cli import options
from hocket.cli.command import Option
from hocket.cli.console import Printer
from hocket.cli.table import Table
from hocket.errors import SpecError
from hocket.files.atomic import write_text


@dataclass(frozen=True)
class Report:
    """The results of a study, and the ways to show them.

    Attributes
    ----------
    value
        As values of JSON; also written to the folder.
    show
        Prints tables and notes.
    pictures
        By the file's name in the folder, what draws it.
    files
        Texts of other files, by name.
    """

    value: dict[str, Any]
    show: Callable[[Printer], None]
    pictures: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Into:
    """The output of a study: its folder and form."""

    panel: ClassVar[str] = "Output"

    output: Annotated[
        str | None,
        Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for pictures and data; created if missing; by default reproduce- and the name.",
        ),
    ] = None
    json: options.Json = False

    def write(self, name: str, compute: Callable[[options.Watch], Report]) -> None:
        """Make the folder, compute a study, write its pictures and files, and print it."""
        folder = Path(self.output or f"reproduce-{name}")
        make_folder(folder)
        with options.watching() as watch:
            report = compute(watch)
            watch.note("drawing")
            for each, draw in report.pictures.items():
                draw(folder / each)
        value = {**report.value, "pictures": [str(folder / each) for each in report.pictures]}
        files = {f"{name}.json": json.dumps(value, indent=2) + "\n", **report.files}
        for each, text in files.items():
            (folder / each).parent.mkdir(exist_ok=True)
            write_text(folder / each, text)
        if self.json:
            options.print_result("reproduction", value)
            return
        console = options.output()
        report.show(console)
        console.print(f"files in {folder}: {', '.join([*report.pictures, *files])}")


def make_folder(folder: Path) -> None:
    """Make the folder for what a study writes, before the work.

    Raises
    ------
    SpecError
        If it is a file, or cannot be made or written.
    """
    if folder.exists() and not folder.is_dir():
        raise SpecError("--output", f"{str(folder)!r} is a file", "name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError("--output", f"{folder}: cannot be made: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SpecError("--output", f"{folder}: cannot be written", "choose another")


def wanted(names: Iterable[str], *others: str | bool, **numbers: Sequence[str] | None) -> list[str]:
    """Return which tables and figures are wanted, in their order; all if none is named.

    Parameters
    ----------
    names
        Those that there are, such as ``"figure 4"``.
    others
        Those that are asked for by an option of their own; False where they are not.
    numbers
        What ``--figure``, say, was given, by the word before the number.
    """
    known = list(names)
    chosen = {name for name in others if isinstance(name, str)}
    for kind, words in numbers.items():
        there = [name.split()[1] for name in known if name.startswith(f"{kind} ")]
        chosen |= {f"{kind} {each}" for each in options.numbers(f"--{kind}", words, there)}
    return [name for name in known if name in chosen or not chosen]


def table(
    title: str, left: Iterable[str], right: Iterable[str], rows: Iterable[Sequence[str]] = ()
) -> Table:
    """Make a table of text, whose last columns are aligned on the right."""
    made = Table(title=title)
    for name in left:
        made.add_column(name)
    for name in right:
        made.add_column(name, justify="right")
    for row in rows:
        made.add_row(*row)
    return made


def markdown(left: Sequence[str], right: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Write a table in Markdown, whose last columns are aligned on the right."""
    marks = ["---"] * len(left) + ["---:"] * len(right)
    return [f"| {' | '.join(row)} |" for row in ([*left, *right], marks, *rows)]


def as_csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue()

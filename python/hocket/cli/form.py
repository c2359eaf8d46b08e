"""Results as data: JSON or CSV in place of a table."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from hocket._results import Result, TableResult
from hocket.cli import options
from hocket.cli.table import Table, table_of
from hocket.errors import SpecError

Rows: TypeAlias = TableResult | Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Form:
    """In what form the result is printed: a table by default."""

    panel: ClassVar[str] = "Output"

    json: options.Json = False
    csv: options.Csv = False

    def __post_init__(self) -> None:
        if self.json and self.csv:
            raise SpecError("--csv", "--json is another form", "leave one of them out")

    def prints(
        self, what: str, document: Callable[[], Mapping[str, Any]], rows: Callable[[], Rows]
    ) -> bool:
        """Print a result as data where that is asked for, and say whether it is.

        Parameters
        ----------
        what, document
            The format of the JSON value, and what gives it.
        rows
            Gives the rows of the CSV: a result, whose table it is, or JSON values.
        """
        if self.json:
            options.print_result(what, document())
        elif self.csv:
            print_csv(rows())
        return self.json or self.csv

    def so_far(self, rows: Callable[[], Rows], shown: Callable[[], str | Table]) -> str:
        """Return results so far in this form: rows as data, or a table or a line of them."""
        if self.json or self.csv:
            found = rows()
            values = found.to_frame().to_pylist() if isinstance(found, TableResult) else [*found]
            document = {"format": "hocket.stopped", "version": 1, "rows": values}
            return csv_text(values) if self.csv else json.dumps(document, indent=2)
        with redirect_stdout(_Kept()) as kept:
            options.output().print(shown())
        return kept.getvalue()

    def print_list(self, what: str, results: Sequence[Result]) -> None:
        """Print results: as data under the name of what they are, or as a table."""
        values = [each.to_dict() for each in results]
        if not self.prints(what, lambda: {what: values}, lambda: values):
            options.output().print(table_of(results))


class _Kept(io.StringIO):
    """Keeps what is printed, and is as wide as what it is meant for."""

    def isatty(self) -> bool:
        return sys.__stdout__ is not None and sys.__stdout__.isatty()


def print_csv(rows: Rows) -> None:
    """Print a table as CSV, see :func:`csv_text`."""
    sys.stdout.write(csv_text(rows))


def csv_text(rows: Rows) -> str:
    """Write a table as CSV; what lies in a value has its name behind the value's."""
    values = rows.to_frame().to_pylist() if isinstance(rows, TableResult) else rows
    flat = [dict(_flat(row)) for row in values]
    names = dict.fromkeys(name for row in flat for name in row)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(names), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from _flat(inner, f"{before}{name}_")
        elif isinstance(inner, list | tuple):
            yield before + name, " ".join(map(str, inner))
        elif isinstance(inner, bool):
            yield before + name, str(inner).lower()
        else:
            yield before + name, inner

"""Results as data: dictionaries, frames, and tables for notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


class Result(ABC):
    """Something that a call gives, as data: times in picoseconds, sizes in bytes, rates in bytes/s."""

    @abstractmethod
    def to_dict(self) -> Mapping[str, Any]:
        """Give it as values of JSON; docs/schema/results.schema.json says what is in it."""

    def _repr_html_(self) -> str:
        """Show it in a notebook: what has one value."""
        rows = [
            (name, value)
            for name, value in self.to_dict().items()
            if not isinstance(value, list | dict)
        ]
        return html_table(("", ""), rows)


class TableResult(Result):
    """A result that is a table."""

    @abstractmethod
    def _rows(self) -> list[dict[str, Any]]:
        """Give the rows, each column a single value."""

    def to_frame(self) -> pa.Table:
        """Give it as an Arrow table, which polars, pandas and DuckDB take.

        ``polars.DataFrame(result)`` does so by itself; ``result.to_frame().to_pandas()`` is pandas'.
        """
        import pyarrow as pa

        return pa.Table.from_pylist(self._rows())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_frame().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        rows = self._rows()
        names = list(rows[0]) if rows else []
        return html_table(names, [tuple(row.values()) for row in rows])


def html_table(names: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Give a table in HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)

"""Tables in which no number, name or unit is ever cut.

Where a terminal is too narrow, titles of columns wrap at words, then prose does, then columns leave: those
that say so, in their order, then the last ones. The first column and those that never leave stay, if need
be wider than the terminal. Where no terminal is, all columns are there.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, SupportsFloat, TypeAlias

from hocket._results import Column, Field, Result, TableResult, columns_of, listed
from hocket.cli.numbers import (
    FAR,
    FLOPS,
    RATES,
    SIZES,
    TIMES,
    UNIT,
    Units,
    in_one_unit,
    percent,
    significant,
    spread,
)
from hocket.units import format_size, printable

Cell: TypeAlias = str | SupportsFloat | None
"""Text; or, in a column with units, a number, or None where there is none."""

NEVER = 0
"""For a column that stays however narrow the terminal."""
_LAST = 1000
"""When a column leaves that does not say when: after those that do, the last one first."""
_MIN_PROSE = 24
NOTHING = "–"
_PIPE = 100
"""How wide a table with prose is where no terminal is."""


_UNITS: tuple[tuple[str, Units, float], ...] = (
    ("_ps", TIMES, 1),
    ("_us", TIMES, 1e6),
    ("_per_s", RATES, 1),
    ("_s", TIMES, 1e12),
    ("_bytes", SIZES, 1),
    ("_flops", FLOPS, 1),
)
"""Units of fields by how their names end, and what one of the field is in the least of them."""


@dataclass
class _Column:
    name: str
    right: bool
    leaves: int
    prose: bool
    unit: str
    units: Units
    given: list[Cell] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)

    def write(self, parts: Sequence[range], far: int) -> None:
        """Write the cells as text: in one unit or, where numbers are farther apart, in one per part."""
        self.cells = [_clean(cell) if isinstance(cell, str) else NOTHING for cell in self.given]
        if not self.units:
            return
        numbers = [float(cell) for cell in self.given if not isinstance(cell, str | None)]
        self.unit = ""
        is_one = len(parts) < 2 or spread(numbers) <= far
        for part in [range(len(self.given))] if is_one else parts:
            rows = [i for i in part if not isinstance(self.given[i], str | None)]
            if not rows:
                continue
            values = [float(self.given[i]) for i in rows]  # type: ignore[arg-type]
            unit, texts = in_one_unit(values, self.units)
            self.unit = unit if is_one else ""
            for i, text in zip(rows, texts, strict=True):
                self.cells[i] = text if is_one else f"{text} {unit.ljust(_unit_width(self.units))}"

    def natural(self) -> int:
        """Its width if nothing is wrapped."""
        return max(map(cell_width, (self.name, self.unit, *self.cells)))

    def least(self) -> int:
        """Return the width of its longest word."""
        if self.prose:
            words = [word for cell in (self.name, *self.cells) for word in cell.split()]
            longest = max(map(cell_width, words), default=0)
            return min(self.natural(), max(longest, _MIN_PROSE))
        return max(map(cell_width, (*self.name.split(), self.unit, *self.cells)), default=0)


class Table:
    """Rows and columns of text.

    Parameters
    ----------
    title
        What stands above it.
    show_header
        Whether columns have names; without, the second column is prose.
    by_section
        Whether numbers that are far apart have one unit per section, and not one per column.
    by_row
        Whether they have one unit per row, as in a table with a row per size.
    """

    def __init__(
        self,
        title: str | None = None,
        *,
        show_header: bool = True,
        by_section: bool = False,
        by_row: bool = False,
    ) -> None:
        self._by_section = by_section
        self._by_row = by_row
        self.title = title
        self.caption: str | None = None
        self._show_header = show_header
        self._columns: list[_Column] = []
        self._sections: set[int] = set()

    def add_column(
        self,
        name: str = "",
        *,
        justify: str = "left",
        leaves: int | None = None,
        prose: bool = False,
        unit: str = "",
        units: Units = (),
    ) -> None:
        """Add a column.

        Parameters
        ----------
        name, unit
            Its title and the unit of its numbers, below it.
        units
            Units of which the one is taken that suits its numbers; what is given as text stays as it is.
        justify
            "left", or "right" for numbers.
        leaves
            When it leaves where not all have room: the highest first; :data:`NEVER`, or by default the last
            column first, after those that say when.
        prose
            Whether its cells wrap at words.
        """
        if leaves is None:
            leaves = NEVER if not self._columns or prose else len(self._columns) - _LAST
        right = justify == "right" or bool(units)
        self._columns.append(_Column(_clean(name), right, leaves, prose, unit, units))

    def add(self, name: str, cells: Iterable[Cell], **how: Any) -> None:
        """Add a column with its cells, see :meth:`add_column`."""
        self.add_column(name, **how)
        self._columns[-1].given += cells

    def add_columns(
        self, shown: Iterable[Field], rates: Units = RATES, results: Iterable[Result] = ()
    ) -> None:
        """Add the columns of fields, as their results declare them, with the cells of some results.

        Parameters
        ----------
        rates
            Units of all rates.
        """
        kinds, before = list(shown), len(self._columns)
        rows = [row_of(kinds, each) for each in results]
        for i, each in enumerate(kinds):
            how = each.said.column
            assert isinstance(how, Column)
            units, _ = _units(each)
            cells = [row[i] for row in rows]
            leaves = how.leaves if len(set(cells)) > 1 else how.leaves_alike or how.leaves
            is_share = each.kind == "number" and not (units or how.write or how.is_rounded)
            self.add_column(
                how.title,
                justify="left" if each.kind in (None, "text") and not how.write else "right",
                leaves=leaves,
                prose=how.is_prose,
                unit="%" if is_share else "",
                units=rates if units == RATES else units,
            )
            self._columns[before + i].given += cells

    def add_rows(
        self, results: TableResult | Iterable[Result], *but: str, rates: Units = RATES
    ) -> None:
        """Add columns for what results, or those that a result lists, say; without some fields."""
        rows = listed(results) if isinstance(results, TableResult) else list(results)
        self.add_columns(shown_of(type(rows[0]), *but) if rows else [], rates, rows)

    def add_section(self) -> None:
        """Draw a line below what has been added, unless nothing follows."""
        if self._columns:
            self._sections.add(len(self._columns[0].given))

    def add_row(self, *cells: Cell, end_section: bool = False) -> None:
        """Add a row: a cell for each column; a section may end below it."""
        if not self._columns:
            for i in range(len(cells)):
                self.add_column(prose=i == 1, leaves=NEVER)
        for column, cell in zip(self._columns, cells, strict=True):
            column.given.append(cell)
        if end_section:
            self.add_section()

    def lines(self, width: int | None = None) -> list[str]:
        """Return its lines, the title and what is said below it included.

        Parameters
        ----------
        width
            Of the terminal; none for all columns.
        """
        parts = self._parts()
        for column in self._columns:
            column.write(parts, UNIT if self._by_row else FAR)
        columns, widths = self._fitted(width)
        made = wrapped(_clean(self.title), width) if self.title else []
        header = [
            _lines(c.name, w, wraps=True) + [c.unit] * any(k.unit for k in columns)
            for c, w in zip(columns, widths, strict=True)
        ]
        rows = [
            [_lines(c.cells[i], w, wraps=c.prose) for c, w in zip(columns, widths, strict=True)]
            for i in range(len(columns[0].cells) if columns else 0)
        ]
        rights = [column.right for column in columns]
        if self._show_header:
            made.append(_rule(widths, "┏━┳┓"))
            made += _row(header, widths, rights, "┃", bottom=True)
            made.append(_rule(widths, "┡━╇┩"))
        else:
            made.append(_rule(widths, "┌─┬┐"))
        for i, row in enumerate(rows):
            if i in self._sections:
                made.append(_rule(widths, "├─┼┤"))
            made += _row(row, widths, rights, "│")
        made.append(_rule(widths, "└─┴┘"))
        if self.caption:
            made += wrapped(self.caption, width)
        gone = [column.name for column in self._columns if column not in columns]
        if gone:
            made += wrapped(f"left out for want of room: {', '.join(gone)}", width)
        return made

    def _parts(self) -> list[range]:
        """Return the rows that have a unit of their own where numbers are far apart."""
        count = len(self._columns[0].given) if self._columns else 0
        ends = sorted({*self._sections, count} if self._by_section else {count})
        if self._by_row:
            return [range(i, i + 1) for i in range(count)]
        return [range(first, end) for first, end in zip([0, *ends], ends, strict=False)]

    def _fitted(self, width: int | None) -> tuple[list[_Column], list[int]]:
        """Return the columns that stay, and how wide each is."""
        columns = list(self._columns)
        widths = [column.natural() for column in columns]
        if width is None:
            if any(column.prose for column in columns):
                _shrink(columns, widths, _PIPE)
            return columns, widths
        while True:
            widths = [column.natural() for column in columns]
            if _total(widths) > width:
                widths = [w if c.prose else c.least() for c, w in zip(columns, widths, strict=True)]
                _shrink(columns, widths, width)
            leaving = [column for column in columns if column.leaves != NEVER]
            if _total(widths) <= width or not leaving:
                return columns, widths
            columns.remove(max(leaving, key=lambda column: column.leaves))


def table_of(results: TableResult | Iterable[Result], *but: str, **how: Any) -> Table:
    """Return the table of results, see :meth:`Table.add_rows`; for the rest see :class:`Table`."""
    table = Table(**how)
    table.add_rows(results, *but)
    return table


def shown_of(kind: type[Result], *but: str) -> list[Field]:
    """Return the fields that a table of results has as columns, in their order, without some."""
    found = {e.key: e for e in columns_of(kind) if isinstance(e.said.column, Column)}
    after = {name: each.said.column.after for name, each in found.items()}  # type: ignore[union-attr]
    names = [name for name in found if not after[name]]
    late = [name for name in found if after[name]]
    while late:
        name = next(name for name in late if after[name] in names)
        names.insert(names.index(after[name]) + 1, name)
        late.remove(name)
    return [found[name] for name in names if name not in but]


def cell_of(each: Field, value: Any) -> Cell:
    """Return what a table has of the value of a field: shares in per cent."""
    how = each.said.column
    units, factor = _units(each)
    assert isinstance(how, Column)
    if value is None or (how.hides_zero and not value):
        return how.nothing
    if units:
        return value if factor == 1 else value * factor  # type: ignore[no-any-return]
    if how.is_given:
        return format_size(value)
    if how.write:
        return how.write.format(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if how.is_rounded:
        return significant(value)
    if each.kind == "number":
        return percent(value, how.decimals)
    return f"{value:,}" if each.kind == "whole" else str(value)


def row_of(shown: Iterable[Field], result: Result) -> list[Cell]:
    """Return the row of a result."""
    seen: dict[tuple[str, ...], Any] = {(): result}
    return [cell_of(each, each.value(seen)) for each in shown]


def _units(each: Field) -> tuple[Units, float]:
    """Return the units of a field's numbers, none of what is text, and their factor."""
    how = each.said.column
    assert isinstance(how, Column)
    if how.is_given:
        return (), 1
    name = f"_{how.unit}" if how.unit else each.key
    found = ((units, factor) for end, units, factor in _UNITS if name.endswith(end))
    return next(found, ((), 1))


def _shrink(columns: list[_Column], widths: list[int], width: int) -> None:
    """Make prose narrower, the widest first, until all fits or is as narrow as its words."""
    while _total(widths) > width:
        able = [i for i, c in enumerate(columns) if c.prose and widths[i] > c.least()]
        if not able:
            return
        i = max(able, key=lambda i: widths[i])
        second = max((widths[k] for k in able if k != i), default=0)
        over = _total(widths) - width
        widths[i] = max(columns[i].least(), min(widths[i] - 1, max(widths[i] - over, second)))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 3 * len(widths) + 1


def _unit_width(units: Units) -> int:
    return max(len(name) for name, _ in units)


def cell_width(text: str) -> int:
    """Return the columns of a terminal that the longest line of a text takes."""
    if "\n" in text:
        return max(map(cell_width, text.split("\n")))
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _clean(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def wrapped(text: str, width: int | None) -> list[str]:
    """Break lines at words, never within one; without a width, only where they are broken already."""
    if width is None:
        return text.split("\n")
    return [
        part
        for line in text.split("\n")
        for part in wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]
    ]


def _lines(cell: str, width: int, *, wraps: bool) -> list[str]:
    return wrapped(cell, width if wraps and cell_width(cell) > width else None)


def _rule(widths: Iterable[int], marks: str) -> str:
    left, line, between, right = tuple(marks)
    return left + between.join(line * (width + 2) for width in widths) + right


def _row(
    cells: list[list[str]],
    widths: list[int],
    rights: list[bool],
    edge: str,
    *,
    bottom: bool = False,
) -> list[str]:
    """Return the lines of a row."""
    high = max((len(lines) for lines in cells), default=1)
    padded = [
        [""] * (high - len(lines)) + lines if bottom else lines + [""] * (high - len(lines))
        for lines in cells
    ]
    made = []
    for parts in zip(*padded, strict=True):
        filled = [
            " " * (width - cell_width(part)) + part
            if right
            else part + " " * (width - cell_width(part))
            for part, width, right in zip(parts, widths, rights, strict=True)
        ]
        made.append(f"{edge} " + f" {edge} ".join(filled) + f" {edge}")
    return made

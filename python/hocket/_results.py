"""Results as data: what a field is stands in one place, and JSON, frames, tables and schemas follow.

A result says the fields of its dataclass and the properties that :func:`figure` marks, those of its base
classes first. A name in JSON ends in its unit (``time_ps``, ``algbw_bytes_per_s``). Type and documentation
are those of the attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from html import escape
from inspect import get_annotations, ismethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

F = TypeVar("F", bound=Callable[..., Any])
Row = TypeVar("Row")

KINDS = {"int": "whole", "float": "number", "str": "text", "bool": "truth"}
"""What a single value may be, by its type."""


@dataclass(frozen=True)
class Column:
    """The way in which a command's table shows a field.

    Attributes
    ----------
    title
        What stands above the column; its unit is that of the field.
    leaves
        When it leaves where a terminal is too narrow: the highest first, 0 never; by default the last.
    leaves_alike
        The same where all its cells are alike, if it is another then.
    after
        The field behind which it stands, where that is not the one declared before it.
    decimals
        Of a share, in per cent.
    is_given
        Whether it is a size as users give sizes, each with a unit of its own.
    is_prose
        Whether its cells wrap at words.
    write
        Writes a value without a unit, as ``"x{:.2f}"``.
    is_rounded
        Whether a number has four significant digits.
    nothing
        What stands where there is no value.
    hides_zero
        Whether there is none where it is 0.
    unit
        Its unit, where its name does not end in it: as ``bytes``, ``ps`` or ``flops``.
    """

    title: str
    leaves: int | None = None
    leaves_alike: int = 0
    after: str = ""
    decimals: int = 1
    is_given: bool = False
    is_prose: bool = False
    write: str = ""
    is_rounded: bool = False
    nothing: str = "–"
    hides_zero: bool = False
    unit: str = ""


@dataclass(frozen=True)
class Said:
    """The name, unit and column of a field.

    Attributes
    ----------
    key
        Its name in JSON; by default the attribute's.
    of
        Makes the value of JSON from an attribute that is not None; its return type is the field's.
    column
        False keeps a single value out of frames, True takes in another; a :class:`Column` is shown as well.
    inline, but
        The class of a result whose fields stand here themselves, but for these attributes.
    parts
        The class of a result that is an object of JSON, and a column for each of its fields elsewhere.
    is_optional
        Whether JSON has no such key where the value is None.
    only
        Where it stands, if not everywhere: ``table`` means tables and sweeps, ``rows`` also frames.
    """

    key: str = ""
    of: Callable[[Any], Any] | None = None
    column: Column | bool | None = None
    inline: type[Result] | None = None
    but: tuple[str, ...] = ()
    parts: type[Result] | None = None
    is_optional: bool = False
    only: Literal["", "rows", "table"] = ""


def said(key: str = "", **how: Any) -> dict[str, Said]:
    """Return the metadata of a dataclass field, see :class:`Said`."""
    return {"said": Said(key, **how)}


HIDDEN: dict[str, Said | None] = {"said": None}
"""The metadata of a dataclass field that is not said."""


def figure(key: str = "", **how: Any) -> Callable[[F], F]:
    """Mark a property, or a method without arguments, that is said; see :class:`Said`."""

    def mark(function: F) -> F:
        function.__dict__["said"] = Said(key, **how)
        return function

    return mark


@dataclass(frozen=True)
class Field:
    """A field of a result: its origin and its type."""

    key: str
    said: Said
    path: tuple[str, ...]
    owner: type
    function: Callable[..., Any] | None = field(default=None, repr=False)
    only: str = ""

    @property
    def kind(self) -> str | None:
        """What of :data:`KINDS` it is; ``None`` for lists and objects."""
        source = self.said.of or self.function or self.owner
        name = "return" if source is not self.owner else self.path[-1]
        return KINDS.get(str(get_annotations(source)[name]).removesuffix(" | None"))

    @property
    def is_column(self) -> bool:
        """Whether frames have it."""
        column = self.said.column
        if self.only == "table":
            return False
        return column is True or (column is not False and self.kind is not None)

    def value(self, seen: dict[tuple[str, ...], Any]) -> Any:
        """Return it; `seen` keeps what was looked up, the result at ``()``."""
        for i in range(len(self.path)):
            path = self.path[: i + 1]
            if path not in seen:
                before = seen[path[:-1]]
                found = None if before is None else getattr(before, path[-1])
                seen[path] = found() if ismethod(found) else found
        found = seen[self.path]
        return found if found is None or self.said.of is None else self.said.of(found)


_FOUND: dict[type, tuple[tuple[Field, ...], tuple[Field, ...], tuple[Field, ...]]] = {}


def fields_of(kind: type[Result]) -> tuple[Field, ...]:
    """Return what a class of results says in JSON."""
    return _found(kind)[0]


def columns_of(kind: type[Result]) -> tuple[Field, ...]:
    """Return what may be columns of a table of such results: fields, and the parts of objects."""
    return _found(kind)[1]


def _found(kind: type[Result]) -> tuple[tuple[Field, ...], tuple[Field, ...], tuple[Field, ...]]:
    """Return the fields of JSON, those of tables, and all without the parts of objects."""
    if kind not in _FOUND:
        every = tuple(inner for each in _own(kind) for inner in _inlined(each))
        columns = tuple(inner for each in every for inner in (each, *_parts(each)))
        _FOUND[kind] = (tuple(each for each in every if not each.only), columns, every)
    return _FOUND[kind]


def _parts(each: Field) -> Iterator[Field]:
    for part in fields_of(each.said.parts) if each.said.parts is not None else ():
        yield replace(part, key=f"{each.key}_{part.key}", path=(*each.path, *part.path))


def _own(kind: type[Result]) -> Iterable[Field]:
    own: dict[str, Field] = {}
    declared = getattr(kind, "__dataclass_fields__", {})
    for owner in reversed(kind.__mro__):
        for name in get_annotations(owner):
            how = declared[name].metadata.get("said", Said()) if name in declared else None
            if how is not None and not name.startswith("_"):
                own[name] = Field(how.key or name, how, (name,), owner, only=how.only)
        for name, member in vars(owner).items():
            function = getattr(member, "fget", None) or getattr(member, "func", None) or member
            how = getattr(function, "said", None)
            if how is not None:
                own[name] = Field(how.key or name, how, (name,), owner, function, how.only)
    return own.values()


def _inlined(each: Field) -> Iterator[Field]:
    if each.said.inline is None:
        yield each
        return
    for inner in _found(each.said.inline)[2]:
        if inner.path[0] not in each.said.but:
            path, only = (*each.path, *inner.path), each.only or inner.only
            yield replace(inner, path=path, only=only)


class Result:
    """Something that a call gives, as data: times in picoseconds, sizes in bytes, rates in bytes/s."""

    @classmethod
    def taken_from(cls, source: object, /, **rest: Any) -> Self:
        """Make a dataclass of the attributes of the same names of something else."""
        names = [each.name for each in fields(cls) if each.name not in rest]  # type: ignore[arg-type]
        return cls(**{name: getattr(source, name) for name in names}, **rest)

    def to_dict(self) -> Mapping[str, Any]:
        """Return it as values of JSON, whose schema says what is in it."""
        seen: dict[tuple[str, ...], Any] = {(): self}
        values = ((each, each.value(seen)) for each in fields_of(type(self)))
        return {
            each.key: _plain(value)
            for each, value in values
            if value is not None or not each.said.is_optional
        }

    def _as_row(self) -> dict[str, Any]:
        """Return what a table has of it."""
        seen: dict[tuple[str, ...], Any] = {(): self}
        rows = columns_of(type(self))
        return {each.key: _single(_plain(each.value(seen))) for each in rows if each.is_column}

    def _repr_html_(self) -> str:
        """Show it in a notebook: what has one value."""
        rows = [
            (name, value)
            for name, value in self.to_dict().items()
            if not isinstance(value, list | dict)
        ]
        return html_table(("", ""), rows)


class TableResult(Result):
    """A result that is a table: of the results that an attribute of it lists."""

    _table: ClassVar[str]

    def _rows(self) -> list[dict[str, Any]]:
        """Return the rows, each column a single value."""
        return [each._as_row() for each in listed(self)]

    def to_frame(self) -> pa.Table:
        """Return the rows as an Arrow table, which polars, pandas and DuckDB can read.

        ``polars.DataFrame(result)`` does so by itself; ``result.to_frame().to_pandas()`` is pandas'.
        """
        import pyarrow as pa

        rows = self._rows()
        names = list(rows[0]) if rows else []
        return pa.table({name: _column([row.get(name) for row in rows]) for name in names})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_frame().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        rows = self._rows()
        names = list(rows[0]) if rows else []
        return html_table(names, [tuple(row.values()) for row in rows])


def listed(table: TableResult) -> list[Any]:
    """Return the results that are the rows of one."""
    return list(getattr(table, table._table))


class ListResult(TableResult, Generic[Row]):
    """A table that is also a collection of its rows' results, in their order."""

    def __iter__(self) -> Iterator[Row]:
        return iter(getattr(self, self._table))

    def __len__(self) -> int:
        return len(getattr(self, self._table))


def _plain(value: Any) -> Any:
    """Return a value of JSON."""
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _column(values: list[Any]) -> pa.Array[Any]:
    """Return values as Arrow has them: whole numbers with a sign, unless one is 2^63 or more."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except OverflowError:
        return pa.array(values, pa.uint64())


def _single(value: Any) -> Any:
    """Return what a table has of a value: of a list a text."""
    return " ".join(map(str, value)) if isinstance(value, list) else value


def name_of(thing: Any) -> str:
    """Return the name of a network, a machine or a workload."""
    return str(thing.name)


def str_of(thing: object) -> str:
    """Return the text of a path or the like."""
    return str(thing)


def picoseconds(seconds: float) -> int:
    """Return a time as results say it."""
    return round(seconds * 1e12)


def html_table(names: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table in HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)

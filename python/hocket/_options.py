"""Options as values: frozen dataclasses, and the keywords of a call put over them.

A class of options is the only place that says what its options are. Keywords of calls, options of the
command line and keys of sweeps follow from its fields and its docstring, see :func:`declared`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from inspect import cleandoc
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from hocket.errors import SpecError
from hocket.units import parse_time, shown

T = TypeVar("T")

Size: TypeAlias = Annotated[int | str, "SIZE"]
"""Bytes, or text with a unit."""
Time: TypeAlias = Annotated[float | str, "TIME"]
"""Seconds, or text with a unit."""
Rate: TypeAlias = Annotated[float | str, "RATE"]
"""Bytes per second, or text with a unit."""
Frequency: TypeAlias = Annotated[float | str, "FREQUENCY"]
"""Hertz, or text with a unit."""

_RENAMED = {
    "latency": "latency_model",
    "rate": "flow_rate",
    "packet": "packet_size",
    "flit": "flit_size",
    "fits": "memory_check",
}
"""What has another name now, that of the command line and of sweeps."""


@dataclass(frozen=True)
class Declared:
    """An option as its class declares it.

    Attributes
    ----------
    kind
        Type of a value as users type it: ``str``, ``float``, ``int`` or ``bool``.
    is_many
        Whether it takes several values.
    unit
        What a text has, as help writes it: ``SIZE``, ``TIME``, ``RATE``, ``FREQUENCY``, or ``SHARE,...``
        for several in one text; empty for no unit.
    default
        Its default, or ``dataclasses.MISSING``.
    doc
        What its class says of it, without the units of Python's values.
    """

    name: str
    kind: type
    is_many: bool
    unit: str
    default: Any
    doc: str


@cache
def declared(kind: type) -> dict[str, Declared]:
    """Return the options that a dataclass declares, by name.

    The docstring says what each is, in a section ``Attributes``; a class adds to those of its base classes.
    """
    hints = get_type_hints(kind, include_extras=True)
    docs: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        docs |= attributes(owner.__doc__ or "")
    found = {}
    for each in fields(kind):
        parts = list(_parts(hints[each.name]))
        of = next((of for of in (str, float, int, bool) if of in parts), object)
        unit = next((part for part in parts if isinstance(part, str)), "")
        is_many = list in parts and not unit.endswith(",...")
        found[each.name] = Declared(
            each.name, of, is_many, unit, each.default, _plain(docs[each.name])
        )
    return found


def _parts(hint: Any) -> Iterator[type | str]:
    """Yield the types that a hint has, ``list`` for several values, and the unit."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        yield str
    elif origin in (Sequence, Iterable, list):
        yield list
        yield from _parts(arguments[0])
    elif origin in (Annotated, Union, UnionType):
        for each in arguments:
            yield from [each] if isinstance(each, str) else _parts(each)
    else:
        yield hint


def attributes(docstring: str) -> dict[str, str]:
    """Return what a docstring says of each attribute, in its section ``Attributes``."""
    told = cleandoc(docstring).partition("\nAttributes\n----------\n")[2]
    found: dict[str, str] = {}
    for names, text in re.findall(
        r"^(\w[\w, ]*)\n((?:    .*\n|\n(?=    ))+)", told + "\n", re.MULTILINE
    ):
        found |= dict.fromkeys(names.split(", "), text)
    return found


def _plain(text: str) -> str:
    """Return a part of a docstring as plain text, without the units of Python's values."""
    words = re.sub(r":\w+:`~?(.*?)`", r"\1", " ".join(text.split()))
    words = re.sub(r"``(hocket .*?)``", r"`\1`", words)
    words = re.sub(r"``(\"?)(.*?)\1``", r"\1\2\1", words)
    return re.sub(r" \[[^]]*\]", "", words)


def names_of(kind: type) -> tuple[str, ...]:
    """Return the names of the options that a dataclass has."""
    return tuple(each.name for each in fields(kind))


def options_of(kind: type[T], given: T | None, keywords: Mapping[str, Any]) -> T:
    """Return options of a kind: those given, or the defaults, with keywords over them.

    Raises
    ------
    SpecError
        Naming ``options`` for what is not of that kind, or a keyword that is not an option of it.
    """
    check_keywords(keywords, names_of(kind))
    if given is None:
        return kind(**keywords)
    if not isinstance(given, kind):
        name = kind.__name__
        raise SpecError("options", f"{shown(given)} is not a {name}", f"make one by hk.{name}(...)")
    return replace(given, **keywords) if keywords else given  # type: ignore[type-var]


def check_keywords(
    keywords: Mapping[str, Any], known: tuple[str, ...], also: tuple[str, ...] = ()
) -> None:
    """Refuse a keyword that is not among the known ones.

    Parameters
    ----------
    also
        Other parameters of the call, which may be meant.

    Raises
    ------
    SpecError
        Naming the keyword, with the nearest that is known.
    """
    for name in keywords:
        if name not in known:
            near = [each for each in (_RENAMED.get(name),) if each in known]
            near = near or get_close_matches(name, (*known, *also), 1)
            right = f"did you mean {near[0]}?" if near else f"options are {', '.join(known)}"
            raise SpecError(name, "there is no such option", right)


def seconds(value: object, field: str) -> float:
    """Read a time: seconds as a number, or text with a unit [s].

    Raises
    ------
    SpecError
        Naming the field, if it is not a time.
    """
    return parse_time(value, field=field) * 1e-12

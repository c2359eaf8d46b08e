"""Options as values: frozen dataclasses, and the keywords of a call put over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any, TypeVar

from hocket.errors import SpecError
from hocket.units import parse_time, shown

T = TypeVar("T")

_RENAMED = {
    "rate": "flow_rate",
    "packet": "packet_size",
    "flit": "flit_size",
    "fits": "memory_check",
}
"""What has another name now, that of the command line and of sweeps."""


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

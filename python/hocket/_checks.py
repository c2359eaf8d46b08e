"""Checks that many rooms share: names, whole numbers within bounds, shares of a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from hocket.errors import SpecError
from hocket.units import shown

__all__ = [
    "check_function",
    "check_name",
    "instance_of",
    "listed",
    "one_of",
    "path_of",
    "share_hint",
    "share_of_peak",
    "truth",
    "whole",
]

_LONGEST_NAME = 2000
T = TypeVar("T")


def check_name(name: object) -> None:
    """Check that a value is a name: of one line, and not too long."""
    if not isinstance(name, str) or not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        raise SpecError("name", f"{shown(name)} is no name", f"give up to {_LONGEST_NAME} letters")


def share_hint(value: object) -> str:
    """Ask whether a share that is too large was meant as per cent; empty where that makes no share."""
    is_number = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    if not is_number or not 2 <= value <= 100:  # type: ignore[operator]
        return ""
    return f"; did you mean {float(value) / 100:g}?"  # type: ignore[arg-type]


def share_of_peak(field: str, value: object) -> None:
    """Check that a value is a share of what is there at most: above 0 and up to 1.

    Raises
    ------
    SpecError
        Naming `field`, and the share that per cent would be.
    """
    right = "give a number above 0 and up to 1, such as 0.5"
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise SpecError(field, f"{shown(value)} is no number", right)
    if not 0 < value <= 1:
        hint = share_hint(value) or ", such as 0.5"
        raise SpecError(
            field, f"{shown(value)} will not do", f"give a number above 0 and up to 1{hint}"
        )


def whole(field: str, value: object, least: int, most: int) -> int:
    """Check that a value is a whole number within bounds, and give it."""
    right = f"give a whole number from {least} to {most}"
    if isinstance(value, bool):
        raise SpecError(field, f"{shown(value)} is no number", right)
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        raise SpecError(field, f"{shown(value)} is no whole number", right) from None
    if not least <= number <= most:
        size = "small" if number < least else "large"
        raise SpecError(field, f"{shown(number)} is too {size}", right)
    return number


def one_of(field: str, value: object, known: Sequence[str]) -> None:
    """Check that a value is one of a closed list.

    Raises
    ------
    SpecError
        Naming `field`, with the list.
    """
    if not isinstance(value, str) or value not in known:
        raise SpecError(field, f"there is no {shown(value)}", f"use {' or '.join(known)}")


def truth(field: str, value: object) -> bool:
    """Check that a value is True or False, and give it."""
    if not isinstance(value, bool):
        raise SpecError(field, f"{shown(value)} is neither True nor False", "give one of them")
    return value


def listed(field: str, value: object) -> list[Any]:
    """Give what is listed as a list; text is none."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        try:
            return list(value)
        except TypeError:  # an array of no dimension
            pass
    raise SpecError(field, f"{shown(value)} is no list", "give a list")


def instance_of(kind: type[T], field: str, value: object, right: str) -> T:
    """Check that a value is of a class, and give it; `right` says how one is made."""
    if not isinstance(value, kind):
        raise SpecError(field, f"{shown(value)} is no {kind.__name__}", right)
    return value


def check_function(field: str, value: object) -> None:
    """Check that a value can be called, or is None."""
    if value is not None and not callable(value):
        raise SpecError(field, f"{shown(value)} cannot be called", "give a function, or None")


def path_of(field: str, value: object) -> Path:
    """Give the path that text or a path names."""
    is_path = isinstance(value, str | PathLike) and not isinstance(value, bytes)
    if not is_path or not str(value) or "\0" in str(value):
        raise SpecError(field, f"{shown(value)} is no path", "give one as text or a pathlib.Path")
    return Path(value)  # type: ignore[arg-type]

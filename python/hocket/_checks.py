"""Checks that many rooms share: names, whole numbers within bounds, shares of a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from hocket.errors import SpecError, listed
from hocket.units import shown

_LONGEST_NAME = 2000
T = TypeVar("T")
_SEPARATORS = {ord(each): None for each in "-_ "}


def check_name(name: object) -> None:
    """Check that a value is a name: of one line, and not too long."""
    if not isinstance(name, str) or not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        raise SpecError(
            "name", f"{shown(name)} is not a name", f"give up to {_LONGEST_NAME} letters"
        )


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
        raise SpecError(field, f"{shown(value)} is not a number", right)
    if not 0 < value <= 1:
        hint = share_hint(value) or ", such as 0.5"
        raise SpecError(
            field, f"{shown(value)} is not valid", f"give a number above 0 and up to 1{hint}"
        )


def is_decimal(text: str, longest: int = 9) -> bool:
    """Return whether a text is a whole number in digits from 0 to 9, and not too long."""
    return text.isascii() and text.isdecimal() and len(text) <= longest


def index_of(value: object) -> int:
    """Return a whole number, also of NumPy. Truth values are none.

    Raises
    ------
    TypeError
        If it is none.
    """
    if isinstance(value, bool):
        raise TypeError("a truth value is no number")
    return index(value)  # type: ignore[arg-type]


def whole(field: str, value: object, least: int, most: int) -> int:
    """Check that a value is a whole number within bounds, and give it."""
    right = f"give a whole number from {least} to {most}"
    try:
        number = index_of(value)
    except TypeError:
        raise SpecError(field, f"{shown(value)} is not a whole number", right) from None
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
        raise SpecError(field, f"there is no {shown(value)}", hint_of(value, known))


def hint_of(value: object, known: Iterable[str]) -> str:
    """Suggest the entry of a closed list that was meant, or list them all."""
    words = list(known)
    return did_you_mean(str(value), words, f"use {listed(words)}")


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return the nearest of the known words as a question, or else the other hint."""
    near = nearest(word, known)
    return f"did you mean {near!r}?" if near else otherwise


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the nearest of the known words, if any is near.

    Capitals, hyphens and underscores do not count; a word that the known one begins with is near. Numbers
    are near none.
    """
    if word.isdecimal():
        return None
    from difflib import get_close_matches

    words = {_plain(each): each for each in known}
    plain = _plain(word[:200])
    near = get_close_matches(plain, list(words), 1)
    if not near and len(plain) > 1:
        near = [each for each in words if each.startswith(plain)]
    return words[near[0]] if near else None


def _plain(word: str) -> str:
    return word.lower().translate(_SEPARATORS)


def truth(field: str, value: object) -> bool:
    """Check that a value is True or False, and give it."""
    if not isinstance(value, bool):
        raise SpecError(field, f"{shown(value)} is neither True nor False", "give one of them")
    return value


def list_of(field: str, value: object) -> list[Any]:
    """Return what is listed as a list; text is none."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        try:
            return list(value)
        except TypeError:  # an array of no dimension
            pass
    right = f"give it as [{value!r}]" if isinstance(value, str) and value else "give a list"
    raise SpecError(field, f"{shown(value)} is not a list", right)


def instance_of(kind: type[T], field: str, value: object, right: str) -> T:
    """Check that a value is of a class, and give it; `right` says how one is made."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIO" else "a"
        raise SpecError(field, f"{shown(value)} is not {article} {kind.__name__}", right)
    return value


def check_function(field: str, value: object) -> None:
    """Check that a value can be called, or is None."""
    if value is not None and not callable(value):
        raise SpecError(field, f"{shown(value)} cannot be called", "give a function, or None")


def path_of(field: str, value: object) -> Path:
    """Return the path that text or a path names."""
    is_path = isinstance(value, str | PathLike) and not isinstance(value, bytes)
    if not is_path or not str(value) or "\0" in str(value):
        raise SpecError(
            field, f"{shown(value)} is not a path", "give one as text or a pathlib.Path"
        )
    return Path(value)  # type: ignore[arg-type]

"""Values of a file that is a tree, with their places, for refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hocket.errors import SpecError
from hocket.files.complaint import Located
from hocket.units import shown

_MOST = 1 << 62


class Node:
    """A value with its place.

    Parameters
    ----------
    value
        As it was read.
    origin
        The file, with its line where that is known.
    place
        Keys and positions that lead to it.
    """

    def __init__(self, value: Any, origin: str, place: tuple[str | int, ...] = ()) -> None:
        self.value = value
        self._origin = origin
        self._place = place

    def wrong(self, why: str, right: str | None = None) -> SpecError:
        """Make an error about it."""
        return Located({}, self._origin).wrong(self._place, why, right)

    def at(self, key: str) -> Node:
        """Return what a mapping has by a key.

        Raises
        ------
        SpecError
            If it is no mapping, or has no such key.
        """
        found = self.get(key)
        if found is None:
            raise self.wrong(f"there is no {key!r}", "give the whole file, as it was written")
        return found

    def get(self, key: str) -> Node | None:
        """Return what a mapping has by a key, or ``None`` if it has nothing there.

        Raises
        ------
        SpecError
            If it is no mapping.
        """
        if not isinstance(self.value, dict):
            raise self.wrong(f"{shown(self.value)} is not a mapping")
        value = self.value.get(key)
        return None if value is None else Node(value, self._origin, (*self._place, key))

    def items(self) -> Iterator[Node]:
        """Return the entries of a list.

        Raises
        ------
        SpecError
            If it is none.
        """
        if not isinstance(self.value, list | tuple):
            raise self.wrong(f"{shown(self.value)} is not a list")
        for number, value in enumerate(self.value):
            yield Node(value, self._origin, (*self._place, number))

    def text(self) -> str:
        """Return a text.

        Raises
        ------
        SpecError
            If it is none.
        """
        if not isinstance(self.value, str):
            raise self.wrong(f"{shown(self.value)} is not text")
        return self.value

    def whole(self, least: int = 0) -> int:
        """Return a whole number.

        Raises
        ------
        SpecError
            If it is none, or below the least.
        """
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < _MOST:
            raise self.wrong(f"{shown(value)} is not a whole number of {least} or more")
        return value

    def number(self) -> float:
        """Return a number that is not below 0.

        Raises
        ------
        SpecError
            If it is none.
        """
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
            raise self.wrong(f"{shown(value)} is not a number of 0 or more")
        return float(value)

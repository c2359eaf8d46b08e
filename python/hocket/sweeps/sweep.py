"""A sweep as a value: its command, its points, and what it needs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from hocket._core import __version__
from hocket.errors import SpecError
from hocket.sweeps.commands import SweptCommand, command_named
from hocket.sweeps.inputs import Loaded
from hocket.sweeps.keys import Value

MOST_POINTS = 1_000_000
"""How many points a sweep may have."""
_PARTS = 256
_LARGEST_PART = 1_000


@dataclass(frozen=True)
class Axis:
    """A key of the grid and its values, in the order of the file."""

    key: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Sweep:
    """Points at which a command is run; made by :func:`hocket.load_sweep`.

    Attributes
    ----------
    command
        Its name.
    fixed
        What all points say.
    entries
        What each entry of the list says; one that says nothing where there is no list.
    axes
        The grid; the last axis varies fastest.
    loaded
        Files that points name, read.
    files
        Hashes of those files by their names.
    origin
        The file of the sweep, for messages.
    per_part
        Points of a part; by default what suits their number.
    """

    command: str
    fixed: Mapping[str, Value]
    entries: tuple[Mapping[str, Value], ...]
    axes: tuple[Axis, ...]
    loaded: Loaded = field(default_factory=Loaded, repr=False, compare=False)
    files: Mapping[str, str] = field(default_factory=dict)
    origin: str = field(default="", compare=False)
    per_part: int | None = None

    @property
    def swept(self) -> SweptCommand:
        """The command itself."""
        return command_named(self.command)

    @property
    def count(self) -> int:
        """The number of points."""
        return len(self.entries) * prod(len(axis.values) for axis in self.axes)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of points, in the order of the file."""
        listed = dict.fromkeys(key for entry in self.entries for key in entry)
        return tuple(dict.fromkeys((*self.fixed, *listed, *(axis.key for axis in self.axes))))

    def shape(self) -> str:
        """Describe the number of points: ``1,200 points: topology 3 x size 400``."""
        parts = [f"{len(self.entries):,} in the list"] if len(self.entries) > 1 else []
        parts += [f"{axis.key} {len(axis.values):,}" for axis in self.axes]
        count = f"{self.count:,} point{'s'[: self.count != 1]}"
        return f"{count}: {' x '.join(parts)}" if parts else count

    def point(self, number: int) -> dict[str, Value]:
        """Return what a point says (numbered from 0): entry by entry, the last axis fastest."""
        rest = number
        own: dict[str, Value] = {}
        for axis in reversed(self.axes):
            rest, place = divmod(rest, len(axis.values))
            own[axis.key] = axis.values[place]
        return {**self.fixed, **self.entries[rest], **dict(reversed(own.items()))}

    @property
    def part_size(self) -> int:
        """Points of a part, which one process runs and one file keeps; it depends on the count alone."""
        if self.per_part is not None:
            return self.per_part
        return min(max(-(-self.count // _PARTS), 1), _LARGEST_PART)

    @property
    def parts(self) -> int:
        """The number of batches."""
        return -(-self.count // self.part_size)

    def numbers(self, part: int) -> range:
        """Return the numbers of the points of a part."""
        first = part * self.part_size
        return range(first, min(first + self.part_size, self.count))

    def check_count(self) -> None:
        """Refuse more points than a sweep may have.

        Raises
        ------
        SpecError
            With the count, and what makes it.
        """
        if self.count > MOST_POINTS:
            right = f"a sweep has at most {MOST_POINTS:,}; give a key fewer values, or make several sweeps"
            raise SpecError(None, f"these are {self.shape()}", right, self.origin or None)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values: what tells it from any other sweep."""
        return {
            "command": self.command,
            "set": dict(self.fixed),
            "list": [dict(entry) for entry in self.entries],
            "grid": {axis.key: list(axis.values) for axis in self.axes},
            "costs": repr(self.loaded.costs),
            "files": dict(self.files),
        }

    @property
    def hash(self) -> str:
        """A hash of all that decides its results, the version of hocket included."""
        text = json.dumps({**self.to_dict(), "hocket": __version__}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

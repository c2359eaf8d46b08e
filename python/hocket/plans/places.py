"""The earlier transfers that a new one must wait for, from what each did at each place.

A place is a chunk at an NPU. Two transfers conflict at a place unless both read it, or both add to it
(docs/proof.md). The accesses of a place, in the order of the plan, fall into phases: longest stretches
without a conflict. A transfer that waits for the phase before its own, at the sender and at the receiver,
is ordered with everything that it conflicts with, since each phase waits for the one before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

READ, SUM, COPY = range(3)
"""What a transfer does at a place."""


class _Place:
    """A run of chunks at one NPU that every transfer so far has touched as a whole.

    `before` waits for the phase before the one under way, `members` are the transfers of the latter and
    `joined` the wait for all of them, once somebody has needed it.
    """

    __slots__ = ("before", "end", "joined", "kind", "members")

    def __init__(self, end: int, nothing: int) -> None:
        self.end = end
        self.kind = READ
        self.members: list[int] = []
        self.before = nothing
        self.joined: int | None = None

    def split(self, at: int) -> _Place:
        """Cut the run in two, and give the second."""
        second = _Place(self.end, self.before)
        second.kind, second.members, second.joined = self.kind, self.members.copy(), self.joined
        self.end = at
        return second


class Places:
    """The places of one NPU.

    Parameters
    ----------
    chunks
        How many there are.
    nothing
        The wait for nothing.
    join
        Gives the wait for several transfers.
    """

    __slots__ = ("_at", "_join", "_starts")

    def __init__(self, chunks: int, nothing: int, join: Callable[[list[int]], int]) -> None:
        self._starts = [0]
        self._at = {0: _Place(chunks, nothing)}
        self._join = join

    def enter(self, first: int, end: int, kind: int, transfer: int, waits: list[int]) -> None:
        """Note that a transfer touches the chunks from `first` up to `end`, and add what it waits for."""
        place = self._at.get(first)
        if place is None:
            place = self._cut(first)
        while True:
            if place.end > end:
                self._cut(end)
            if kind == place.kind and kind != COPY:
                waits.append(place.before)
                place.members.append(transfer)
            else:
                if place.joined is None:
                    place.joined = self._join(place.members)
                waits.append(place.joined)
                place.before = place.joined
                place.kind = kind
                place.members = [transfer]
            place.joined = None
            if place.end == end:
                return
            place = self._at[place.end]

    def _cut(self, at: int) -> _Place:
        """Make a run begin at a chunk, and give it."""
        position = bisect_right(self._starts, at)
        second = self._at[self._starts[position - 1]].split(at)
        self._starts.insert(position, at)
        self._at[at] = second
        return second

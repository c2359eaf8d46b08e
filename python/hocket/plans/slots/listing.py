"""Plans slot by slot: whenever an edge is free, the most urgent chunk that helps.

These are where the search starts, and how a plan that was cut short is completed: whoever still misses
a chunk gets it along the shortest paths, at times when their edges are free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hocket.plans.slots.distance import FAR, Distances
from hocket.plans.slots.plan import Send, plan_of, slots_of, turned, useful
from hocket.plans.slots.problem import BACKWARD, FORWARD, SlotProblem

_NEVER = FAR
_DETOURS = (1, 0, 3, FAR)
_CROWDS = (0.25, 0.0, 1.0)
_ROUNDS = 24
_WORK = 8_000_000
"""Pairs of edges and chunks that all rounds may look at, so that large problems get few."""


@dataclass(frozen=True)
class Taste:
    """The tie-breaks of equal urgency.

    Attributes
    ----------
    rng : numpy.random.Generator
        Breaks ties.
    detour : int
        Slots by which an arrival over a free edge may be later than one along a shortest path.
    crowd : float
        How much chunks that many have are put off.
    """

    rng: np.random.Generator
    detour: int
    crowd: float


def taste_of(seed: int, number: int) -> Taste:
    """Vary the taste from round to round, the one that does best first."""
    crowds = _CROWDS[number // len(_DETOURS) % len(_CROWDS)]
    return Taste(np.random.default_rng([seed, number]), _DETOURS[number % len(_DETOURS)], crowds)


class OutOfTimeError(Exception):
    """Raised where a listing is given up, half done."""


def best_listing(
    problem: SlotProblem,
    known: Distances,
    least: int,
    seed: int,
    is_over: Callable[[], bool] | None = None,
) -> list[Send] | None:
    """Make some plans with different tie-breaks and keep the shortest; end early at `least`.

    Ends as well, with what there is by then, once `is_over` says so.
    """
    work = problem.edges * problem.chunks * max(1, least)
    rounds = int(np.clip(_WORK // max(1, work), 2, _ROUNDS))
    best: list[Send] | None = None
    best_slots = _NEVER
    for number in range(rounds):
        try:
            sends = complete(problem, known, [], least, taste_of(seed, number), is_over)
        except OutOfTimeError:
            break
        slots = plan_of(problem, sends, 0, "").slots
        if slots < best_slots:
            best, best_slots = sends, slots
        if best_slots <= least:
            break
    return best


def complete(
    problem: SlotProblem,
    known: Distances,
    kept: Iterable[Send],
    least: int,
    taste: Taste,
    is_over: Callable[[], bool] | None = None,
) -> list[Send]:
    """List sends in real time that do all that is asked, starting from some that are kept.

    Sends that are kept are in mirrored time where a chunk goes backwards. Where chunks of both ways
    meet, only those that go forward are kept: the others depend on where time ends.

    Raises
    ------
    OutOfTimeError
        Once `is_over` says so.
    """
    ways = [way for way in (FORWARD, BACKWARD) if _has(problem, way)]
    if len(ways) < 2:
        way = ways[0] if ways else FORWARD
        busy = np.zeros((problem.edges, 64), dtype=np.bool_)
        sends, slots = _Listing(problem, known, way, busy, taste).run(kept, is_over)
        return turned(problem, sends, slots)
    sends = [send for send in kept if problem.way(send[0]) == FORWARD]
    fewer = _loads(problem)
    if sends or fewer[FORWARD] <= fewer[BACKWARD]:
        return _both(problem, known, FORWARD, sends, least, taste, is_over)
    return _both(problem, known, BACKWARD, [], least, taste, is_over)


def _both(
    problem: SlotProblem,
    known: Distances,
    first: int,
    kept: list[Send],
    least: int,
    taste: Taste,
    is_over: Callable[[], bool] | None,
) -> list[Send]:
    """One way first, the other in what it leaves; the end is put off until both fit."""
    busy = np.zeros((problem.edges, 64), dtype=np.bool_)
    listing = _Listing(problem, known, first, busy, taste)
    sends, ends = listing.run(kept, is_over)
    slots = max(least, ends)
    while True:
        taken = np.zeros((problem.edges, slots), dtype=np.bool_)
        for chunk, edge, start in sends:
            until = slots - start
            taken[edge, until - slots_of(problem, chunk, edge) : until] = True
        other, other_ends = _Listing(problem, known, 1 - first, taken, taste).run([], is_over)
        if other_ends <= slots:
            both = (sends, other) if first == FORWARD else (other, sends)
            return both[0] + turned(problem, both[1], slots)
        slots += 1


def _has(problem: SlotProblem, way: int) -> bool:
    return bool((problem.backwards == (way == BACKWARD)).any())


def _loads(problem: SlotProblem) -> list[int]:
    loads = [0, 0]
    for chunk in range(problem.chunks):
        loads[problem.way(chunk)] += len(problem.missing(chunk))
    return loads


class _Listing:
    """The chunks that each NPU has in each slot, while a plan of one way grows."""

    def __init__(
        self,
        problem: SlotProblem,
        known: Distances,
        way: int,
        busy: NDArray[np.bool_],
        taste: Taste,
    ) -> None:
        self.problem, self.way, self.busy, self.taste = problem, way, busy, taste
        self.chunks = np.flatnonzero(problem.backwards == (way == BACKWARD))
        self.index = {int(chunk): at for at, chunk in enumerate(self.chunks)}
        self.src, self.dst = (ends.tolist() for ends in problem.ends(way))
        kinds = problem.chunk_class[self.chunks]
        self.slots = problem.edge_slots.astype(np.int64)[:, kinds]
        self.between = known.between[way][kinds] if len(kinds) else known.between[way][:0]
        self.there = np.full((len(self.chunks), problem.npus), _NEVER, dtype=np.int64)
        self.lacks = np.zeros((len(self.chunks), problem.npus), dtype=np.bool_)
        for at, chunk in enumerate(self.chunks.tolist()):
            self.there[at, list(problem.holders[chunk])] = 0
            self.lacks[at, list(problem.missing(chunk))] = True
        self.near = np.full_like(self.there, FAR)
        for at, chunk in enumerate(self.chunks.tolist()):
            self.near[at] = known.early[chunk]
        self.soon = np.full_like(self.there, FAR)
        self.landings: dict[int, list[tuple[int, int]]] = {}
        self.sends: list[Send] = []

    def run(
        self, kept: Iterable[Send], is_over: Callable[[], bool] | None
    ) -> tuple[list[Send], int]:
        """Return the sends in the time of this way, and when the last ends."""
        for chunk, edge, start in sorted(kept, key=lambda send: send[2]):
            self._send(self.index[chunk], edge, start)
        now = 0
        while self.lacks.any():
            self._fill(now)
            now += 1
            if is_over is not None and is_over():
                raise OutOfTimeError
        sends = useful(self.problem, self.sends)
        ends = (start + slots_of(self.problem, chunk, edge) for chunk, edge, start in sends)
        return sends, max(ends, default=0)

    def _fill(self, now: int) -> None:
        """Assign a chunk to every free edge at one slot, fast edges first."""
        for at, npu in self.landings.pop(now, []):
            self._land(at, npu, now)
        order = self.taste.rng.permutation(self.problem.edges)
        order = order[np.argsort(self.slots[order].min(axis=1, initial=0), kind="stable")]
        for edge in order[~self._column(now)[order]].tolist():
            choice = self._choice(edge, now)
            if choice is not None:
                self._send(choice, edge, now)

    def _column(self, slot: int) -> NDArray[np.bool_]:
        while slot >= self.busy.shape[1]:
            self.busy = np.concatenate([self.busy, np.zeros_like(self.busy)], axis=1)
        column: NDArray[np.bool_] = self.busy[:, slot]
        return column

    def _choice(self, edge: int, now: int) -> int | None:
        """Choose the chunk with the longest way to go behind an edge; of those, one that few have."""
        src, dst = self.src[edge], self.dst[edge]
        can = np.flatnonzero((self.there[:, src] <= now) & (self.there[:, dst] >= _NEVER))
        if not len(can):
            return None
        arrives = now + self.slots[edge, can]
        onward = self.between[can, dst]
        hoped = np.minimum(now + self.near[can], self.soon[can])
        helped = self.lacks[can] & (arrives[:, None] + onward <= hoped)
        rest = np.where(helped, onward + 1, 0).max(axis=1)
        detour = self.lacks[can, dst] & (arrives <= hoped[:, dst] + self.taste.detour)
        score = np.where(rest > 0, rest + 1.0, np.where(detour, 0.5, -1.0))
        if score.max() < 0:
            return None
        spread = (self.there[can] < _NEVER).sum(axis=1) / max(1, self.problem.npus)
        score = np.where(score < 0, -_NEVER, score - 4 * self.taste.crowd * spread)
        score += self.taste.rng.random(len(can)) * 0.01
        best = int(can[score.argmax()])
        if not self._free(edge, now, int(self.slots[edge, best])):
            return None
        return best

    def _land(self, at: int, npu: int, now: int) -> None:
        """Note that a chunk has come in: it is near, no longer on its way."""
        self.near[at] = np.minimum(self.near[at], self.between[at, npu])
        self.soon[at] = FAR
        for other in np.flatnonzero((self.there[at] > now) & (self.there[at] < _NEVER)):
            soon = self.there[at, other] + self.between[at, other]
            self.soon[at] = np.minimum(self.soon[at], soon)

    def _free(self, edge: int, start: int, slots: int) -> bool:
        self._column(start + slots)
        return not self.busy[edge, start : start + slots].any()

    def _send(self, at: int, edge: int, start: int) -> None:
        slots, dst = int(self.slots[edge, at]), self.dst[edge]
        self._column(start + slots)
        self.busy[edge, start : start + slots] = True
        self.there[at, dst] = start + slots
        self.lacks[at, dst] = False
        self.soon[at] = np.minimum(self.soon[at], start + slots + self.between[at, dst])
        self.landings.setdefault(start + slots, []).append((at, dst))
        self.sends.append((int(self.chunks[at]), edge, start))

"""Groups of NPUs whose borders may be narrow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hocket.plans.slots.distance import FAR, Distances
from hocket.plans.slots.problem import SlotProblem

Group = NDArray[np.bool_]


def groups(problem: SlotProblem, known: Distances, at_most: int) -> Iterator[Group]:
    """Return groups, each once: NPUs, pods, sides of edges, balls, and the complements of all.

    Parameters
    ----------
    problem : SlotProblem
        Whose network is meant.
    known : Distances
        Its distances.
    at_most : int
        How many groups to give.
    """
    seen: set[bytes] = set()
    for mask in _candidates(problem, known):
        for group in (mask, ~mask):
            key = group.tobytes()
            if key in seen or not group.any() or group.all():
                continue
            seen.add(key)
            yield group
            if len(seen) >= at_most:
                return


def _candidates(problem: SlotProblem, known: Distances) -> Iterator[Group]:
    yield from np.eye(problem.npus, dtype=np.bool_)
    yield from pods(problem)
    table = known.between[0, 0]
    pairs = {(min(a, b), max(a, b)) for a, b in _ends(problem)}
    for a, b in sorted(pairs):
        yield table[a] < table[b]
        yield table[:, a] < table[:, b]
    for npu in range(problem.npus):
        radii = np.unique(table[npu][table[npu] < FAR])[1:]
        for radius in radii[: 8 if problem.npus <= 64 else 2]:
            yield table[npu] <= radius


def pods(problem: SlotProblem) -> list[Group]:
    """Components that stay connected without the edges of the most slots, then of the next most."""
    slots = problem.edge_slots.min(axis=1, initial=1 << 31)
    found: list[Group] = []
    for limit in np.unique(slots)[::-1][:3]:
        label = np.arange(problem.npus)
        fast = slots < limit
        src, dst = problem.edge_src[fast], problem.edge_dst[fast]
        for _ in range(problem.npus):
            before = label.copy()
            np.minimum.at(label, dst, label[src])
            np.minimum.at(label, src, label[dst])
            if (before == label).all():
                break
        for name in np.unique(label):
            mask = label == name
            if 1 < mask.sum() < problem.npus:
                found.append(mask)
    return found


def _ends(problem: SlotProblem) -> Iterator[tuple[int, int]]:
    return zip(problem.edge_src.tolist(), problem.edge_dst.tolist(), strict=True)

"""Networks and collectives in slots, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hocket.plans.slots import SlotProblem

Links = list[tuple[int, int, int]]


def problem(
    npus: int,
    links: Links,
    chunks: Sequence[tuple[Iterable[int], Iterable[int], bool]],
) -> SlotProblem:
    """One size class; a chunk is who holds it, who wants it, whether it goes backwards."""
    return SlotProblem(
        npus,
        np.array([link[0] for link in links], dtype=np.uint32),
        np.array([link[1] for link in links], dtype=np.uint32),
        np.array([[link[2]] for link in links], dtype=np.uint32),
        np.zeros(len(chunks), dtype=np.uint32),
        np.array([chunk[2] for chunk in chunks], dtype=np.bool_),
        [frozenset(chunk[0]) for chunk in chunks],
        [frozenset(chunk[1]) for chunk in chunks],
    )


def mesh(rows: int, columns: int, gone: Sequence[int] = ()) -> tuple[int, Links]:
    """A grid, row by row, without some of its NPUs; those left are numbered anew."""
    name = {at: n for n, at in enumerate(a for a in range(rows * columns) if a not in gone)}
    links: Links = []
    for at in name:
        for to, fits in ((at + 1, (at + 1) % columns != 0), (at + columns, True)):
            if fits and to in name:
                links += [(name[at], name[to], 1), (name[to], name[at], 1)]
    return len(name), links


def ring(npus: int) -> tuple[int, Links]:
    return npus, [(n, (n + 1) % npus, 1) for n in range(npus)]


def pods(count: int) -> tuple[int, Links]:
    """Ring(2) x FullyConnected(4) x Switch(count) as a one-way ring; 1, 2 and 4 slots."""
    links: Links = []
    for pod in range(count):
        for x in range(4):
            for r in range(2):
                at = pod * 8 + x * 2 + r
                links.append((at, pod * 8 + x * 2 + (1 - r), 1))
                links += [(at, pod * 8 + y * 2 + r, 2) for y in range(4) if y != x]
                if count > 1:
                    links.append((at, (pod + 1) % count * 8 + x * 2 + r, 4))
    return count * 8, links


def all_gather(npus: int, links: Links) -> SlotProblem:
    everyone = range(npus)
    return problem(npus, links, [({n}, everyone, False) for n in everyone])


def reduce_scatter(npus: int, links: Links) -> SlotProblem:
    everyone = range(npus)
    return problem(npus, links, [({n}, everyone, True) for n in everyone])


def gather(npus: int, links: Links, root: int) -> SlotProblem:
    return problem(npus, links, [({n}, {root}, False) for n in range(npus)])


def broadcast(npus: int, links: Links, root: int) -> SlotProblem:
    return problem(npus, links, [({root}, range(npus), False)])


def tenants() -> SlotProblem:
    """A broadcast, a reduction and an all-gather on a 6x6 mesh."""
    npus, links = mesh(6, 6)
    chunks: list[tuple[Iterable[int], Iterable[int], bool]]
    chunks = [({n}, range(npus), False) for n in range(npus)]
    chunks += [({1}, range(npus), False), ({16}, range(npus), True)]
    return problem(npus, links, chunks)

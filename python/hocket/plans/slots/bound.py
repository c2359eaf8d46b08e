"""A number of slots below which no plan can be: no solver, only counting.

Each group of NPUs has a border, and chunks that must cross it. A chunk that cannot be across before
slot r and has q slots to go from there must end its crossing in [r, T - q], and an edge of k slots
ends a crossing every k slots at most. All chunks with at least r and at least q must fit together, for
each r and q; that is Jackson's bound of one machine, with edges for machines. A reduced chunk crosses
the same border in mirrored time, so that its r and its q change places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hocket.plans.slots.cuts import Group, groups, pods
from hocket.plans.slots.distance import FAR, Distances, distances
from hocket.plans.slots.problem import BACKWARD, FORWARD, SlotProblem

_WORK = 60_000_000
"""Entries of tables that looking at groups may make; more groups are left out on large networks."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class _Tables:
    """The common input of all counts, in arrays."""

    problem: SlotProblem
    known: Distances
    missing: NDArray[np.bool_]
    held: NDArray[np.bool_]
    slots: Ints
    classes: Ints


def least_slots(problem: SlotProblem) -> int:
    """Slots that every plan of a problem needs.

    Parameters
    ----------
    problem : SlotProblem
        What is to be planned.

    Returns
    -------
    int
        The greatest of: distances, borders of groups, borders of groups and then one NPU in them, all
        work on all edges.

    Raises
    ------
    SpecError
        When a chunk cannot get to an NPU that wants it.
    """
    return least_of(problem, distances(problem))


def least_of(problem: SlotProblem, known: Distances) -> int:
    """:func:`least_slots` where distances are known already."""
    tables = _tables(problem, known)
    if not tables.missing.any():
        return 0
    least = int(known.early[tables.missing].max())
    least = _all_work(tables, least)
    size = max(1, problem.chunks * (problem.npus + problem.edges))
    for group in groups(problem, known, int(np.clip(_WORK // size, 2 * problem.npus, 256))):
        least = _border(tables, group, least)
    for pod in pods(problem):
        for way in (FORWARD, BACKWARD):
            least = _border_then_npu(tables, pod, way, least)
    return least


def _tables(problem: SlotProblem, known: Distances) -> _Tables:
    missing = np.zeros((problem.chunks, problem.npus), dtype=np.bool_)
    held = missing.copy()
    for chunk in range(problem.chunks):
        held[chunk, list(problem.holders[chunk])] = True
        missing[chunk, list(problem.missing(chunk))] = True
    slots = problem.edge_slots.astype(np.int64)
    return _Tables(problem, known, missing, held, slots, problem.chunk_class.astype(np.int64))


def _all_work(tables: _Tables, least: int) -> int:
    """Every chunk takes edges for some slots; all edges together have so many."""
    problem = tables.problem
    total = 0
    cheapest = np.full((2, problem.edge_slots.shape[1], problem.npus), FAR, dtype=np.int64)
    for way in (FORWARD, BACKWARD):
        for size_class in range(problem.edge_slots.shape[1]):
            into = problem.ends(way)[1]
            np.minimum.at(cheapest[way, size_class], into, tables.slots[:, size_class])
    for chunk in range(problem.chunks):
        lacks = tables.missing[chunk]
        if lacks.any():
            tree = cheapest[problem.way(chunk), tables.classes[chunk]][lacks].sum()
            total += int(max(tree, tables.known.early[chunk][lacks].max()))
    idle = np.zeros(problem.edges, dtype=np.int64)
    if not problem.backwards.any():
        idle = tables.known.early.min(axis=0)[problem.edge_src]
    return _first(lambda slots: int(np.maximum(slots - idle, 0).sum()) >= total, least)


def _first(fits: Callable[[int], bool], least: int) -> int:
    """Return the first number of slots, from `least` on, that fits: every larger number fits, too."""
    if fits(least):
        return least
    below, step = least, 1
    while not fits(below + step):
        below += step
        step *= 2
    above = below + step
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if fits(middle) else (middle, above)
    return above


def _border(tables: _Tables, group: Group, least: int) -> int:
    """Chunks that must cross into a group."""
    problem = tables.problem
    inside_src, inside_dst = group[problem.edge_src], group[problem.edge_dst]
    cut = np.flatnonzero(~inside_src & inside_dst)
    first: list[Ints] = []
    last: list[Ints] = []
    classes: list[Ints] = []
    for way in (FORWARD, BACKWARD):
        side = group if way == FORWARD else ~group
        chunks = _crossing(tables, side, way)
        if not len(chunks):
            continue
        start, rest = _window(tables, side, way, cut, chunks)
        kinds = tables.classes[chunks]
        quickest = tables.slots[cut].min(axis=0)[kinds]
        first.append(start + quickest if way == FORWARD else rest + quickest)
        last.append(rest if way == FORWARD else start)
        classes.append(kinds)
    if not first:
        return least
    present = np.unique(np.concatenate(classes))
    servers = Counter(tables.slots[np.ix_(cut, present)].min(axis=1).tolist())
    return _fit(np.concatenate(first), np.concatenate(last), servers, least)


def _crossing(tables: _Tables, side: Group, way: int) -> Ints:
    """Chunks of a way that somebody on a side misses and nobody there has."""
    mine = tables.problem.backwards == (way == BACKWARD)
    return np.flatnonzero(
        mine & tables.missing[:, side].any(axis=1) & ~tables.held[:, side].any(axis=1)
    )


def _window(tables: _Tables, side: Group, way: int, cut: Ints, chunks: Ints) -> tuple[Ints, Ints]:
    """Per chunk: the slot before which no crossing starts, the slots to go after one ended."""
    src, dst = tables.problem.ends(way)
    start = tables.known.early[np.ix_(chunks, np.unique(src[cut]))].min(axis=1)
    nodes = np.flatnonzero(side)
    landings = np.unique(dst[cut])
    rest = np.zeros(len(chunks), dtype=np.int64)
    for size_class in np.unique(tables.classes[chunks]):
        of_class = tables.classes[chunks] == size_class
        onward = tables.known.between[way, size_class][np.ix_(landings, nodes)].min(axis=0)
        wanted = tables.missing[np.ix_(chunks[of_class], nodes)]
        rest[of_class] = np.where(wanted, onward, 0).max(axis=1)
    return start, rest


def _fit(first: Ints, last: Ints, servers: Counter[int], least: int) -> int:
    """Raise a number of slots until every crossing can end in [first, slots - last]."""
    rows, row = np.unique(first, return_inverse=True)
    columns, column = np.unique(last, return_inverse=True)
    count = np.zeros((len(rows), len(columns)), dtype=np.int64)
    np.add.at(count, (row, column), 1)
    count = count[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]

    def fits(total: int) -> bool:
        room = np.zeros_like(count)
        for slots, edges in servers.items():
            lengths = total - columns[None, :] - np.maximum(rows, slots)[:, None]
            room += edges * np.maximum(lengths // slots + 1, 0)
        return bool((count <= room).all())

    return _first(fits, least)


def _border_then_npu(tables: _Tables, group: Group, way: int, least: int) -> int:
    """Chunks that cross into a group one after the other, and then have to get to one NPU there.

    What has not crossed by slot r reaches the NPU over its own edges of the border, or crosses after r
    and takes another edge from inside.
    """
    problem = tables.problem
    src, dst = problem.ends(way)
    cut = ~group[src] & group[dst]
    chunks = _crossing(tables, group, way)
    if not len(chunks) or len(np.unique(tables.classes[chunks])) > 1:
        return least
    slots = tables.slots[:, tables.classes[chunks[0]]]
    start = tables.known.early[np.ix_(chunks, src[cut])].min(axis=0)
    done: set[tuple[tuple[int, ...], tuple[int, ...], int]] = set()
    for npu in np.flatnonzero(group):
        own = slots[cut & (dst == npu)]
        inner = slots[group[src] & (dst == npu)]
        needed = int(tables.missing[chunks, npu].sum())
        key = (tuple(sorted(own.tolist())), tuple(sorted(inner.tolist())), needed)
        if key in done:
            continue
        done.add(key)
        least = _late_crossings(needed, (slots[cut], start), own, inner, least)
    return least


def _late_crossings(
    needed: int, border: tuple[Ints, Ints], own: Ints, inner: Ints, least: int
) -> int:
    slots, start = border
    most = _WORK // (32 * max(len(slots), len(own), len(inner), 1))

    def fits(total: int) -> bool:
        if total >= most:  # what is not counted proves nothing
            return True
        after = np.arange(total + 1)[:, None]
        crossed = np.maximum((after - start) // slots, 0).sum(axis=1)
        left = np.maximum(needed - crossed, 0)
        ends = np.maximum((total - np.maximum(after + 1, own)) // own + 1, 0).sum(axis=1)
        inside = np.maximum((total - after - 1) // inner, 0).sum(axis=1)
        return bool((left <= ends + inside).all())

    return _first(fits, least)

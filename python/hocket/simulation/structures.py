"""The structures of a plan on its network: the rings and trees that its chunks take.

Nothing is known of the algorithm: a plan from a file or by hand has structures as any other.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from hocket import _core
from hocket._checks import one_of
from hocket.errors import SpecError
from hocket.plans.plan import Plan
from hocket.units import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocket.simulation.run import Run

Phase = Literal["reduce", "copy"]
PHASES = ("reduce", "copy")

_REDUCE = 1
_GROUP = _core.Plan.GROUP
_MAX_PLACES = 1 << 26
_MAX_MERGED = 2048


@dataclass(frozen=True)
class Structure:
    """Transfers that belong together."""

    kind: str
    """ring, tree, branch (what leads into rings and out of them) or graph (any other)."""
    chunks: tuple[int, ...]
    """The chunks that take it."""
    transfers: tuple[tuple[int, int], ...]
    """Sending and receiving NPU (or switch that sums or multicasts), sorted."""
    links: tuple[int, ...]
    """The links that these take, sorted; through switches and other NPUs, too."""
    roots: tuple[int, ...]
    """Where sums end, or copies begin; a ring has none."""


def default_phase(plan: Plan) -> Phase:
    """Return reduce if a plan sums, or copy."""
    return "reduce" if bool((plan.transfers.op == _REDUCE).any()) else "copy"


def structures(
    run: Run, phase: Phase | None = None, *, chunk: int | None = None
) -> list[Structure]:
    """Find the rings and trees of a plan, in order of their first chunks.

    Chunks that are sent between the same NPUs over the same paths share a structure. Those that go
    round one ring, each leaving out the link at its own end, do so too: their transfers together
    have one way out of every NPU (into it, for copies) and a cycle through three NPUs at least and more
    than half of them. What they have beside the cycle are branches, one structure for all rings.

    Parameters
    ----------
    run
        With ``keep_services``: a run knows the links of every transfer.
    phase
        ``"reduce"``: what is summed, and copies that a sum waits for because their receiver has
        nothing of its own; ``"copy"``: all else. By default reduce where there are sums.
    chunk
        Only what this chunk takes.

    Raises
    ------
    SpecError
        If the run kept no services, there is no such phase or chunk, or there are no transfers
        or too many.
    """
    plan = run.plan
    if not len(plan):
        raise SpecError(None, "the plan has no transfers, so that there is nothing to see")
    if not len(run.core.service_link):
        raise SpecError(None, "the run kept no services", "simulate with keep_services=True")
    phase = default_phase(plan) if phase is None else phase
    one_of("phase", phase, PHASES)
    if chunk is not None and (type(chunk) is not int or not 0 <= chunk < plan.chunks):
        raise SpecError(
            "chunk", f"there is no {shown(chunk)}", f"chunks are 0 to {plan.chunks - 1}"
        )
    columns = plan.transfers
    sums = _gathering(plan)
    rows = np.flatnonzero(sums if phase == "reduce" else ~sums)
    if chunk is not None:
        first, count = columns.chunk[rows].astype(np.int64), columns.chunk_count[rows]
        rows = rows[(first <= chunk) & (chunk < first + count)]
    if not len(rows):
        of = "the plan" if chunk is None else f"chunk {chunk}"
        other = PHASES[phase == "reduce"]
        raise SpecError("phase", f"{of} has no transfers that {phase}", f"use {other}")
    hops = _Hops(run, rows, turned=phase == "copy")
    sets = _sets(plan, rows, hops, chunk)
    return _merged(sets, hops)


def _gathering(plan: Plan) -> NDArray[np.bool_]:
    """Mark reduces, and copies to a sender of a sum that waits for them, directly or through copies."""
    columns, core = plan.transfers, plan.core
    marked = np.equal(columns.op, _REDUCE)
    has_copies = _groups_with_copies(plan)
    items, offsets = core.group_items, core.group_offsets
    wait, none = columns.wait, Plan.NO_WAIT
    new = np.flatnonzero(marked)
    while len(new):
        waits = wait[new].astype(np.int64)
        single = (waits != none) & (waits < _GROUP)
        owner, member = [new[single]], [waits[single]]
        grouped = (waits != none) & (waits >= _GROUP)
        for i in new[grouped].tolist():
            stack = [int(wait[i]) - _GROUP]
            while stack:
                group = stack.pop()
                if not has_copies[group]:
                    continue
                inner = items[offsets[group] : offsets[group + 1]].astype(np.int64)
                stack.extend((inner[inner >= _GROUP] - _GROUP).tolist())
                inner = inner[inner < _GROUP]
                owner.append(np.full(len(inner), i))
                member.append(inner)
        owners, members = np.concatenate(owner), np.concatenate(member)
        feeds = ~marked[members] & (columns.dst[members] == columns.src[owners])
        first = columns.chunk.astype(np.int64)
        end = first + columns.chunk_count
        feeds &= (first[members] < end[owners]) & (first[owners] < end[members])
        new = np.unique(members[feeds])
        marked[new] = True
    return marked


def _groups_with_copies(plan: Plan) -> list[bool]:
    """Return for each group of waits whether a copy is in it or in those it holds."""
    core = plan.core
    copies = np.equal(plan.transfers.op, 0)
    found: list[bool] = []
    for start, end in zip(core.group_offsets[:-1], core.group_offsets[1:], strict=True):
        items = core.group_items[start:end].astype(np.int64)
        inside = bool(copies[items[items < _GROUP]].any())
        groups = items[items >= _GROUP] - _GROUP
        found.append(inside or any(found[group] for group in groups.tolist()))
    return found


class _Hops:
    """The different ways from NPU to NPU, or to a switch that sums.

    They are the ways back where ``turned``, so that trees lead to roots.
    """

    def __init__(self, run: Run, rows: NDArray[np.int64], *, turned: bool) -> None:
        columns = run.plan.transfers
        ends = [columns.src[rows], columns.dst[rows]]
        keys = np.stack([*ends, columns.path[rows]], axis=1)
        different, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        self.devices = run.topology.device_count
        self.of_row = inverse.reshape(-1)
        self.src = different[:, 0].astype(np.int64)
        self.dst = different[:, 1].astype(np.int64)
        self.turned = turned
        self.tail, self.head = (self.dst, self.src) if turned else (self.src, self.dst)
        position = np.full(len(run.plan), -1)
        position[rows[first]] = np.arange(len(first))
        hop = position[run.core.service_transfer]
        self.links: list[list[int]] = [[] for _ in first]
        for i in np.flatnonzero(hop >= 0).tolist():
            self.links[hop[i]].append(int(run.core.service_link[i]))

    def __len__(self) -> int:
        return len(self.src)

    def structure(self, kind: str, chunks: list[int], hops: NDArray[np.int64]) -> Structure:
        """Make a structure of some hops."""
        pairs = {(int(self.src[i]), int(self.dst[i])) for i in hops}
        links = {link for i in hops.tolist() for link in self.links[i]}
        tails, heads = set(self.tail[hops].tolist()), set(self.head[hops].tolist())
        roots = [] if kind in ("ring", "branch") else sorted(heads - tails)
        if kind == "graph" and len(roots) == 1 and len(hops) == len(tails | heads) - 1:
            kind = "tree"
        return Structure(
            kind, tuple(sorted(chunks)), tuple(sorted(pairs)), tuple(sorted(links)), tuple(roots)
        )

    def next_of(self, hops: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the device that follows each (-1 for none), or ``None`` if two follow one."""
        if len(np.unique(self.tail[hops])) < len(hops):
            return None
        follows = np.full(self.devices, -1)
        follows[self.tail[hops]] = self.head[hops]
        return follows


_Sets = list[tuple["NDArray[np.int64]", list[int]]]


def _sets(plan: Plan, rows: NDArray[np.int64], hops: _Hops, chunk: int | None) -> _Sets:
    """Return the different sets of hops that chunks take, with the chunks of each."""
    columns = plan.transfers
    first = columns.chunk[rows].astype(np.int64)
    end = first + columns.chunk_count[rows]
    if chunk is not None:
        first, end = np.full(len(rows), chunk), np.full(len(rows), chunk + 1)
    # Between two bounds all chunks are sent alike.
    bounds = np.unique(np.concatenate([first, end]))
    low, high = np.searchsorted(bounds, first), np.searchsorted(bounds, end)
    counts = high - low
    total = int(counts.sum())
    if total > _MAX_PLACES:
        raise SpecError(
            None,
            f"{total:,} transfers of single chunks are too many to sort into structures",
            "plan with fewer chunks, or look at one by --chunk",
        )
    before = np.repeat(np.cumsum(counts) - counts, counts)
    stretch = np.repeat(low, counts) + np.arange(total) - before
    codes = np.unique(stretch * len(hops) + np.repeat(hops.of_row, counts))
    starts = np.searchsorted(codes, np.arange(len(bounds) + 1) * len(hops))
    found: dict[bytes, tuple[NDArray[np.int64], list[int]]] = {}
    for i in range(len(bounds) - 1):
        taken = codes[starts[i] : starts[i + 1]] - i * len(hops)
        if len(taken):
            chunks = range(int(bounds[i]), int(bounds[i + 1]))
            found.setdefault(taken.tobytes(), (taken, []))[1].extend(chunks)
    return list(found.values())


@dataclass
class _Ring:
    """Sets of hops that go round one cycle."""

    follows: NDArray[np.int64]
    cycle: NDArray[np.bool_]
    hops: set[int]
    chunks: list[int]

    def takes(self, follows: NDArray[np.int64]) -> bool:
        """Return whether a set keeps to the cycle, all but one link of it."""
        here = follows[self.cycle]
        given = here >= 0
        return bool(given.sum() >= len(here) - 1) and bool(
            (here == self.follows[self.cycle])[given].all()
        )


def _merged(sets: _Sets, hops: _Hops) -> list[Structure]:
    """Put sets that go round one ring together."""
    rings: list[_Ring] = []
    alone: list[bool] = [True] * len(sets)
    if 1 < len(sets) <= _MAX_MERGED:
        follows = [hops.next_of(taken) for taken, _ in sets]
        alike: dict[bytes, list[int]] = defaultdict(list)
        for i, (taken, _) in enumerate(sets):
            if follows[i] is not None:
                touched = np.union1d(hops.src[taken], hops.dst[taken])
                alike[touched.tobytes()].append(i)
        for bucket in alike.values():
            rings += _rings([(i, follows[i]) for i in bucket], sets, alone)
    made = [hops.structure("graph", sets[i][1], sets[i][0]) for i in range(len(sets)) if alone[i]]
    branches: set[int] = set()
    through: list[int] = []
    for ring in rings:
        taken = np.array(sorted(ring.hops))
        on = ring.cycle[hops.tail[taken]] & ring.cycle[hops.head[taken]]
        on &= hops.head[taken] == ring.follows[hops.tail[taken]]
        made.append(hops.structure("ring", ring.chunks, taken[on]))
        if not on.all():
            branches.update(taken[~on].tolist())
            through += ring.chunks
    made.sort(key=lambda each: each.chunks)
    if branches:
        made.append(hops.structure("branch", through, np.array(sorted(branches))))
    return made


def _rings(
    bucket: list[tuple[int, NDArray[np.int64] | None]], sets: _Sets, alone: list[bool]
) -> list[_Ring]:
    """Find the rings among sets of the same NPUs; mark off what goes round them."""
    rings: list[_Ring] = []
    waiting: list[int] = []
    table = np.array([follows for _, follows in bucket])
    for row, mine in enumerate(table):
        ring = next((ring for ring in rings if ring.takes(mine)), None)
        if ring is None and waiting:
            others = table[waiting]
            fit = ((others == mine) | (others < 0) | (mine < 0)).all(axis=1)
            for other in np.array(waiting)[fit].tolist():
                both = np.maximum(mine, table[other])
                cycle = _cycle(both)
                if int(cycle.sum()) > max(2, int((both >= 0).sum()) // 2):
                    ring = _Ring(both, cycle, set(), [])
                    rings.append(ring)
                    break
        if ring is None:
            waiting.append(row)
            continue
        for each in [row, *(other for other in waiting if ring.takes(table[other]))]:
            taken, chunks = sets[bucket[each][0]]
            ring.hops.update(taken.tolist())
            ring.chunks.extend(chunks)
            alone[bucket[each][0]] = False
        waiting = [other for other in waiting if alone[bucket[other][0]]]
    return rings


def _cycle(follows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the NPUs of the longest cycle."""
    best = np.zeros(len(follows), dtype=bool)
    seen = np.full(len(follows), -1)
    for start in range(len(follows)):
        at, way = start, []
        while at >= 0 and seen[at] < 0:
            seen[at] = start
            way.append(at)
            at = int(follows[at])
        if at >= 0 and seen[at] == start and len(way) - way.index(at) > best.sum():
            best[:] = False
            best[way[way.index(at) :]] = True
    return best

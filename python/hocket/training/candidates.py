"""The algorithms that ``auto`` tries for a collective of training: they cost about as much as greedy alone.

Training plans many collectives, and the same question must have the same answer on every machine. So
what limits the search is how much there is to plan, not how long that takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from hocket import _core
from hocket.files.cache import keep, recall
from hocket.plans.algorithms import BUILTIN, by_promise, compared, promise
from hocket.plans.choice import STEINER
from hocket.plans.registry import own_algorithms
from hocket.plans.remembered import hashed
from hocket.plans.symmetric import NAME as SYMMETRIC
from hocket.training.parallel import Group

AUTO, GREEDY = "auto", "greedy"
_SHELF = "training"
MOST_PIECES = 1 << 15
"""Chunks x NPUs x NPUs up to which an algorithm's numbers of chunks are tried."""
_AT_SIZE = 1 << 25
"""NPUs x NPUs x links above which others are tried in turn, and greedy takes minutes."""
_MOST_WORK = {"trees": 512, STEINER: 1 << 12, "flows": 512, SYMMETRIC: 1 << 18}
"""NPUs x links up to which those are tried that take longest, for all NPUs; steiner for groups."""


def pieces_of(group: Group) -> int:
    """Return NPUs x NPUs, summed over the groups of an axis."""
    return sum(len(members) ** 2 for members in group.members)


def is_at_size(topology: _core.Topology, group: Group) -> bool:
    """Return whether to plan all that is worth trying would take minutes."""
    return pieces_of(group) * len(topology.link_src) > _AT_SIZE


def transfers_of(
    kind: str, topology: _core.Topology, group: Group, algorithm: str, chunks: int | None
) -> int:
    """Return how many transfers the plans of all groups have, about; 0 of an algorithm of one's own."""
    if algorithm not in BUILTIN:
        return 0
    dimensions = topology.dimensions if group.size == topology.npu_count else []
    each = _core.registry.transfers(kind, group.size, dimensions, algorithm, chunks or 1)
    return len(group.members) * each


def candidates(kind: str, topology: _core.Topology, group: Group) -> list[str]:
    """Return names of the algorithms to try: greedy first, then the others, likely winners first.

    All of those that comparisons have and that do the kind, without one that searches for long, and
    without trees, flows and shifts where these take much longer than greedy: on large networks, and for
    several groups or some of the NPUs. Only these have steiner, on small networks. At size, shifts are
    tried too, of equally likely winners those first that have the fewest transfers, and greedy last.
    """
    at_size = is_at_size(topology, group)
    own = {each.name: each.kinds for each in own_algorithms()}
    is_all = len(group.members[0]) == topology.npu_count
    work = topology.npu_count * len(topology.link_src)
    names = [
        name
        for name in compared()
        if kind in (own[name] if name in own else BUILTIN[name].kinds)
        and (work <= _MOST_WORK.get(name, work) or (at_size and name == SYMMETRIC))
        and (name not in _MOST_WORK or is_all == (name != STEINER))
    ]
    if at_size:
        names.sort(key=lambda name: transfers_of(kind, topology, group, name, 1))
    others = [name for name in by_promise(names) if name != GREEDY and promise(name) > 0]
    return [*others, GREEDY] if at_size else [GREEDY, *others]


@dataclass(frozen=True)
class Remembered:
    """A choice for a collective that is kept from one run to the next: the algorithm and its chunks."""

    key: str | None

    @staticmethod
    def of(
        kind: str, topology: _core.Topology, group: Group, size: int, chunks: int | None
    ) -> Remembered:
        """Return the place of a choice; nothing is kept where somebody's own algorithm may be chosen."""
        if any(kind in own.kinds for own in own_algorithms()):
            return Remembered(None)
        members = [list(each) for each in group.members]
        return Remembered(hashed(topology, kind, members, size, chunks))

    def recall(self, names: list[str]) -> tuple[str, int | None] | None:
        """Return what was chosen, one of the names, or ``None`` if nothing is kept."""
        found = None if self.key is None else recall(_SHELF, self.key)
        if found is None:
            return None
        name, chunks = found.get("algorithm"), found.get("chunks")
        is_count = chunks is None or (type(chunks) is int and 0 < chunks < 1 << 32)
        return (name, chunks) if name in names and is_count else None

    def keep(self, algorithm: str, chunks: int | None) -> None:
        """Keep what was chosen."""
        if self.key is not None:
            keep(_SHELF, self.key, {"algorithm": algorithm, "chunks": chunks})

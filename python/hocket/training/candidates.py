"""Which algorithms ``auto`` tries for a collective of training: what costs about as much as greedy alone.

Training plans many collectives, and the same question must have the same answer on every machine. So
what limits the search is how much there is to plan, not how long that takes.
"""

from __future__ import annotations

from hocket import _core
from hocket.plans.algorithms import BUILTIN, compared
from hocket.plans.auto import LAST, by_promise
from hocket.plans.registry import own_algorithms
from hocket.training.parallel import Group

__all__ = ["AUTO", "GREEDY", "MOST_PIECES", "candidates", "pieces_of"]

AUTO, GREEDY = "auto", "greedy"
MOST_PIECES = 1 << 15
"""Chunks x NPUs x NPUs up to which an algorithm's numbers of chunks are tried."""
_LARGEST = 1 << 17
"""NPUs x NPUs above which greedy alone is tried."""
_MOST_WORK = {"trees": 512, "flows": 512, "symmetric": 1 << 18}
"""NPUs x links up to which those are tried that take longest, for all NPUs together."""


def pieces_of(group: Group) -> int:
    """Give NPUs x NPUs, summed over the groups of an axis."""
    return sum(len(members) ** 2 for members in group.members)


def candidates(kind: str, topology: _core.Topology, group: Group) -> list[str]:
    """Give names of the algorithms to try: greedy first, then the others, likely winners first.

    All of those that comparisons have and that do the kind, without one that searches for long, and
    without trees, flows and shifts where these take much longer than greedy: on large networks, and for
    several groups or some of the NPUs. Greedy alone for groups of more than 362 NPUs.
    """
    if pieces_of(group) > _LARGEST:
        return [GREEDY]
    own = {each.name: each.kinds for each in own_algorithms()}
    is_all = len(group.members[0]) == topology.npu_count
    work = topology.npu_count * len(topology.link_src)
    names = [
        name
        for name in compared()
        if kind in (own[name] if name in own else BUILTIN[name].kinds)
        and (name not in _MOST_WORK or (is_all and work <= _MOST_WORK[name]))
    ]
    return [GREEDY, *(name for name in by_promise(names) if name not in (GREEDY, *LAST))]

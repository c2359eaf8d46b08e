"""The times of groups that communicate at once: their plans on the links that they share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hocket.collectives.collective import Progress
from hocket.plans.plan import Plan, merge_plans
from hocket.simulation.run import Run, simulate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Use(NamedTuple):
    """The times of plans that begin together.

    Attributes
    ----------
    time_ps
        Until the last of them is done [ps].
    servers
        Whether each link is used, then whether each switch with a limit is, shape ``(links + limits,)``.
    """

    time_ps: int
    servers: NDArray[np.bool_]


def at_once(plans: Sequence[Plan], progress: Progress | None = None) -> Use:
    """Simulate plans that begin together at link fidelity, as one whose links serve messages as they come.

    Plans whose links are meant to serve in plan order keep it where they share no link, and no switch
    with a limit, with another.

    Complexity: that of simulating every plan; twice for those in plan order that share links.
    """
    if len(plans) > 1 and all(plan.link_order == "ready" for plan in plans):
        return use_of(simulate(merge_plans(plans), progress=progress))
    alone = [use_of(simulate(plan, progress=progress)) for plan in plans]
    time, used = 0, alone[0].servers.copy()
    for sharing in _sharing([use.servers for use in alone]):
        if len(sharing) == 1:
            time = max(time, alone[sharing[0]].time_ps)
        else:
            merged = merge_plans([plans[i] for i in sharing])
            time = max(time, simulate(merged, order="ready", progress=progress).time_ps)
        for i in sharing:
            used |= alone[i].servers
    return Use(time, used)


def use_of(run: Run) -> Use:
    """Return the time of a run at link fidelity, and what it used."""
    import numpy as np

    topology = run.topology
    links = run.link_bytes > 0
    limited = [
        topology.npu_count + i for i, rate in enumerate(topology.switch_limits) if rate is not None
    ]
    return Use(run.time_ps, np.concatenate([links, np.isin(limited, topology.link_dst[links])]))


def servers(uses: Iterable[NDArray[np.bool_]]) -> list[int]:
    """Return one number, from 0, for all that share a link or a limit, directly or through others."""
    numbers: dict[int, int] = {}
    for number, sharing in enumerate(_sharing(list(uses))):
        numbers.update(dict.fromkeys(sharing, number))
    return [number for _, number in sorted(numbers.items())]


def _sharing(uses: Sequence[NDArray[np.bool_]]) -> list[list[int]]:
    """Gather the places of those that use a server in common, directly or through others."""
    import numpy as np

    least = list(range(len(uses)))

    def first(i: int) -> int:
        while least[i] != i:
            i = least[i]
        return i

    user = np.full(len(uses[0]) if uses else 0, -1)
    for i, used in enumerate(uses):
        for other in np.unique(user[used]):
            if other >= 0:
                a, b = sorted((first(i), first(int(other))))
                least[b] = a
        user[used] = first(i)
    found: dict[int, list[int]] = {}
    for i in range(len(uses)):
        found.setdefault(first(i), []).append(i)
    return list(found.values())

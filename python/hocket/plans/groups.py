"""Groups that one plan serves at once: by name, the time of each and its bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hocket import _core
from hocket._results import Column, Result, said
from hocket.collectives.collective import joined
from hocket.plans.plan import Plan


@dataclass(frozen=True)
class NamedGroups(Result):
    """The process groups of one name, in a plan for several at once.

    Attributes
    ----------
    name
        Such as ``tp``.
    groups, npus
        How many there are, and the NPUs of the largest.
    size_bytes
        Bytes of the collective of each group.
    bound_ps
        Lower bound on the time of any plan for the groups of this name alone.
    time_ps
        Until the last of them is done, in the plan for all; ``None`` if the plan was not simulated.
    """

    name: str = field(metadata=said(column=Column("groups", leaves=0)))
    groups: int = field(metadata=said(column=Column("number")))
    npus: int = field(metadata=said(column=Column("NPUs")))
    size_bytes: int = field(metadata=said(column=Column("size", is_given=True)))
    bound_ps: int = field(metadata=said(column=Column("bound alone")))
    time_ps: int | None = field(metadata=said(column=Column("time", leaves=0)))


def groups_of(
    plan: Plan, named: Sequence[tuple[str, Sequence[_core.Collective]]]
) -> list[NamedGroups]:
    """Return the groups of each name.

    Parameters
    ----------
    plan
        A plan for all collectives in their order, see :func:`hocket.plan_together`.
    named
        Names, and the collective of each group.
    """
    import numpy as np

    core, run = plan.core, plan.known
    first = core.chunk_demand[core.chunk]
    last = core.chunk_demand[core.chunk + core.chunk_count - 1]
    found, begin = [], 0
    for name, several in named:
        end = begin + sum(len(each.demands()) for each in several)
        time_ps = None
        if run is not None:
            own = (first < end) & (last >= begin)
            time_ps = int(np.max(run.end_ps[own], initial=0))
        bound = _core.bound(plan.topology, joined(several))
        npus = max(len(each.npus) for each in several)
        found.append(NamedGroups(name, len(several), npus, several[0].size, bound.time_ps, time_ps))
        begin = end
    return found

"""The choice of a program for a call that names no plan."""

from __future__ import annotations

from functools import lru_cache

from hocket._core.runtime import Program
from hocket.errors import SpecError
from hocket.plans.plan import Plan
from hocket.plans.planner import plan
from hocket.topology.sources import as_topology

TOPOLOGY = "fully_connected:{}@10GB/s,10us"
"""What ranks are planned for that all reach each other equally well, by their number."""

_SMALL = 64 << 10
"""Up to here each rank sends to all at once; above, as few bytes as possible cross each link [bytes]."""


def program_for(kind: str, ranks: int, root: int, size: int, *, outward: bool = False) -> Program:
    """Return the program of a collective among ranks that all reach each other equally well.

    Parameters
    ----------
    kind, ranks, root
        What is to be done.
    size
        Bytes of the whole vector.
    outward
        As of :func:`lower`.
    """
    return _planned(kind, ranks, root, usual_algorithm(kind, size), outward)


def usual_algorithm(kind: str, size: int) -> str:
    """Name what plans a call over TCP where no table says anything."""
    return "ring" if kind == "all-reduce" and size > _SMALL else "direct"


@lru_cache(maxsize=256)
def _planned(kind: str, ranks: int, root: int, algorithm: str, outward: bool) -> Program:
    topology = as_topology(TOPOLOGY.format(ranks))
    rooted = kind in ("broadcast", "reduce", "gather", "scatter")
    made = plan(
        kind,
        topology,
        size=ranks << 10,
        algorithm=algorithm,
        chunks=1,
        root=root if rooted else None,
    )
    return lower(made, outward=outward)


def lower(given: Plan, *, outward: bool = False) -> Program:
    """Return the program of a plan, which is proved first.

    Parameters
    ----------
    given
        The plan.
    outward
        Whether messages to a lower rank go on channel 0 and those to a higher one on channel 1, so that
        each connection carries numbers one way.

    Raises
    ------
    VerificationError, InfeasibleError
        If the plan is wrong, or has no program.
    """
    if not outward:
        return Program(given.core)
    rank_of = {npu: rank for rank, npu in enumerate(given.collective.npus)}
    transfers = given.transfers
    ends = zip(transfers.src.tolist(), transfers.dst.tolist(), strict=True)
    return Program(given.core, [int(rank_of[src] < rank_of[dst]) for src, dst in ends])


class Programs:
    """Programs of a user's plans, each made once."""

    def __init__(self, *, outward: bool = False) -> None:
        self._outward = outward
        self._made: dict[int, tuple[Plan, Program]] = {}

    def of(self, given: Plan, kind: str, ranks: int, root: int) -> Program:
        """Return the program of a plan that is to do a kind of collective.

        Raises
        ------
        SpecError
            If it does something else.
        VerificationError, InfeasibleError
            If the plan is wrong, or has no program.
        """
        if id(given) not in self._made:
            self._made[id(given)] = (given, lower(given, outward=self._outward))
        program = self._made[id(given)][1]
        for what, has, wanted in (
            ("kind", program.kind, kind),
            ("number of ranks", program.ranks, ranks),
            ("root", program.root, root),
        ):
            if has != wanted:
                raise SpecError("plan", f"its {what} is {has}, the call's {wanted}")
        return program

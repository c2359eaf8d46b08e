"""Plans of one NPU's block, that a group shifts to the blocks of all others."""

from collections.abc import Callable
from typing import final

from hocket._core import Bound, Collective, Plan, Topology
from hocket._core.packing import Packing

__all__ = ["SymmetricPlan", "plan_symmetric"]

@final
class SymmetricPlan:
    """A plan of one block, proved and simulated, and the group that shifts it."""

    @property
    def orders(self) -> list[int]:
        """How often each generator of the group is applied until all is where it was."""

    @property
    def orbits(self) -> int:
        """Kinds of links: the group takes each link to all of its kind, and to no others."""

    @property
    def first(self) -> str:
        """Name of the NPU of the block."""

    @property
    def block(self) -> Plan:
        """The plan of the block, proved."""

    @property
    def transfers(self) -> int:
        """How many transfers the whole plan has."""

    @property
    def time_ps(self) -> int:
        """When the whole plan ends at link fidelity, at the latest [ps]."""

    @property
    def pieces(self) -> int:
        """Pieces that every tree carries."""

    @property
    def packings(self) -> list[Packing]:
        """The trees, of sums and then of copies."""

    def bound(self) -> Bound:
        """Bound any plan's time from what one NPU, and one of each subgroup, must receive or send."""

    def expand(self, memory_limit: int) -> Plan:
        """Make the whole plan, which is not proved; SpecError if it is too large."""

def plan_symmetric(
    topology: Topology,
    collective: Collective,
    *,
    pieces: int | None,
    latency: str,
    memory_limit: int,
    most_transfers: int | None,
    time_limit: float | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> SymmetricPlan:
    """Find the group and plan one block; InfeasibleError and SpecError as ``plan``.

    `most_transfers` are those of a block; ``None`` for few enough that all shifts make a plan.
    """

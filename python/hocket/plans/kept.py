"""Plans of which a part is kept, proved, that stands for the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hocket import _core
from hocket._results import figure
from hocket.collectives.outcome import OnCollective

if TYPE_CHECKING:
    from hocket.plans.plan import Plan


def kept_transfers(block: Plan) -> int:
    """Return how many transfers are kept."""
    return len(block)


class KeptInPart(OnCollective):
    """A plan of which `block` is kept, proved, and stands for `transfers` transfers."""

    if TYPE_CHECKING:
        time_ps: int
        bound_ps: int
        block: Plan

    @property
    def time(self) -> float:
        """When the whole plan ends at link fidelity [s]."""
        return self.time_ps * 1e-12

    @property
    def bound(self) -> float:
        """The lower bound on the time of every plan [s]."""
        return self.bound_ps * 1e-12

    @property
    def gap(self) -> float:
        """The gap to the bound, as a share of the bound."""
        return _core.gap(self.time_ps, self.bound_ps)

    @property
    @figure()
    def algorithm(self) -> str:
        """The algorithm that made it."""
        return self.block.algorithm

    @property
    @figure()
    def verified(self) -> bool:
        """Whether it is proved right."""
        return True

    @property
    def topology(self) -> _core.Topology:
        """The network it was made for."""
        return self.block.topology

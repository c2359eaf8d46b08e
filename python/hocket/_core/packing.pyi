"""Plans of packed trees, and what proves how good the trees are."""

from collections.abc import Callable
from typing import Literal, final

from hocket._core import Collective, Plan, Topology

__all__ = ["Packing", "TreePlan", "plan_trees"]

@final
class Packing:
    """Trees, checked against the network, and the cut or partition that they cannot beat."""

    @property
    def carries(self) -> Literal["sums", "copies", "both"]:
        """What goes along them: sums towards the roots, copies away from them, or both at once."""

    @property
    def trees(self) -> int:
        """How many trees there are."""

    @property
    def trees_a_root(self) -> int:
        """How many start at one root."""

    @property
    def height(self) -> int:
        """Arcs from a root to the furthest end."""

    @property
    def reached(self) -> float:
        """What all trees reach together of the rate that it allows, rounded down."""

    @property
    def bandwidth(self) -> int:
        """What crosses the cut, or all of the partition [bytes/s]."""

    @property
    def weight(self) -> int:
        """Roots on the cut's far side, or parts of the partition less one."""

    @property
    def parts(self) -> list[list[str]]:
        """Names of the devices on the side of the cut that has fewer, or of each part."""

    @property
    def text(self) -> str:
        """All of it in a line."""

@final
class TreePlan:
    """A plan of packed trees, proved and simulated."""

    @property
    def plan(self) -> Plan: ...
    @property
    def time_ps(self) -> int:
        """When it ends at link fidelity [ps]."""

    @property
    def pieces(self) -> int:
        """Pieces that every tree carries."""

    @property
    def packings(self) -> list[Packing]:
        """Of sums, then of copies; or one of both."""

def plan_trees(
    topology: Topology,
    collective: Collective,
    *,
    pieces: int | None,
    latency: str,
    memory_limit: int,
    time_limit: float | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> TreePlan:
    """Pack trees and make the quickest plan of them; InfeasibleError and SpecError as ``plan``."""

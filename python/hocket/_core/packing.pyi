"""Plans of packed trees, and what proves how good the trees are."""

from typing import Literal, final

__all__ = ["Packing"]

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

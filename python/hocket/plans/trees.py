"""Plans of packed trees, with what proves how good the trees are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hocket._core.packing import Packing as CorePacking
from hocket._results import Result, said


@dataclass(frozen=True)
class Packing(Result):
    """Spanning trees, checked against the network, and the cut or partition that no trees beat.

    Attributes
    ----------
    carries
        What goes along them: ``sums``, towards the roots; ``copies``, away from them; or ``both`` at once.
    trees, trees_a_root, height
        How many there are, how many of one root (all of them, where they carry both), and how many hops
        lead to the furthest NPU.
    bandwidth, weight
        What crosses the worst cut [bytes/s], and for how many roots: all together send at most `bandwidth`
        / `weight` bytes each second from each root. Of ``both``, what leads from part to part, and the
        parts less one: an all-reduce does at most `bandwidth` / (2 `weight`) bytes each second.
    reached
        What share of that the trees reach when every link is used fully, rounded down to a millionth.
    parts
        Names of the devices on the side of the cut that has fewer, or of each part.
    certificate
        All of it in a line.
    """

    carries: str
    trees: int
    trees_a_root: int
    height: int
    bandwidth: int = field(metadata=said("bandwidth_bytes_per_s"))
    weight: int
    reached: float
    parts: tuple[tuple[str, ...], ...]
    certificate: str

    def __str__(self) -> str:
        return self.certificate


@dataclass(frozen=True)
class Trees(Result):
    """The trees of a plan, and their witness.

    Attributes
    ----------
    time_ps
        When the plan ends at link fidelity [ps]; of ``symmetric``, where blocks differ by a byte, at the
        latest.
    pieces
        Pieces that every tree carries, one after another.
    packings
        Of what is summed, and of what is copied; or one of both.
    """

    time_ps: int
    pieces: int
    packings: tuple[Packing, ...]

    @property
    def time(self) -> float:
        """When the plan ends at link fidelity [s]."""
        return self.time_ps * 1e-12


def trees_of(pieces: int, time_ps: int, packings: Sequence[CorePacking]) -> Trees:
    """Return what the core says of the trees of a plan."""
    return Trees(time_ps, pieces, tuple(packing_of(each) for each in packings))


def packing_of(core: CorePacking) -> Packing:
    """Return trees as the core has them as a value."""
    return Packing(
        carries=core.carries,
        trees=core.trees,
        trees_a_root=core.trees_a_root,
        height=core.height,
        bandwidth=core.bandwidth,
        weight=core.weight,
        reached=core.reached,
        parts=tuple(tuple(part) for part in core.parts),
        certificate=core.text,
    )

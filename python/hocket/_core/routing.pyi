"""Paths on a Clos, as the Rust core finds them."""

from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from hocket._core import Topology

__all__ = ["Assignment", "Fabric", "assign", "assignment_of"]

_U32: TypeAlias = npt.NDArray[np.uint32]
_U64: TypeAlias = npt.NDArray[np.uint64]
_Flow: TypeAlias = tuple[int, int, int]

@final
class Fabric:
    """A two-level Clos as routing sees it; ToRs and spines keep the numbers in their names."""

    def __new__(cls, topology: Topology) -> Fabric: ...
    def spines_between(self, src: int, dst: int) -> list[int]:
        """Spines by which a ToR reaches another."""

@final
class Assignment:
    """A spine for each flow; loads and paths are rows of (ToR, spine) and (up, down)."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def spines(self) -> _U32: ...
    @property
    def paths(self) -> _U32: ...
    @property
    def up_loads(self) -> _U64: ...
    @property
    def down_loads(self) -> _U64: ...
    @property
    def max_link_load(self) -> int: ...
    @property
    def bound(self) -> tuple[int, int | None, str]:
        """What no assignment beats, the ToR that forces it, and how."""

def assign(
    fabric: Fabric, flows: list[_Flow], scheme: str, seed: int, hash: str, upstream: int
) -> Assignment:
    """Give flows (source, destination, weight) spines."""

def assignment_of(fabric: Fabric, flows: list[_Flow], spines: list[int]) -> Assignment:
    """Give the assignment that these spines make."""

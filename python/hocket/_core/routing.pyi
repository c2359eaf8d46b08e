"""Paths on a Clos or fat tree, as the Rust core finds them."""

from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from hocket._core import Topology, _Immutable

__all__ = ["Assignment", "Fabric", "Sprayed", "assign", "assignment_of", "spray"]

_U32: TypeAlias = npt.NDArray[np.uint32]
_U64: TypeAlias = npt.NDArray[np.uint64]
_F64: TypeAlias = npt.NDArray[np.float64]
_Flow: TypeAlias = tuple[int, int, int]

@final
class Fabric(_Immutable):
    """A Clos or fat tree as routing sees it; switches keep the numbers in their names."""

    def __new__(cls, topology: Topology) -> Fabric: ...
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def levels(self) -> int:
        """Levels of switches, 2 or 3."""
    @property
    def reference(self) -> int:
        """Bytes per second of a link that a weight loads with just itself."""

    def choices_between(self, src: int, dst: int) -> list[int]:
        """Numbers of the highest switches of the paths from a ToR to another."""

    def route(self, src: int, dst: int, choice: int) -> list[int]:
        """Links of a choice; none if it is not one."""

    def tor_of(self, npu: int) -> int | None:
        """Number of the ToR above an NPU."""

    def npu_links(self, npu: int) -> tuple[int | None, int | None]:
        """Links from an NPU up to its ToR and down again."""

@final
class Assignment(_Immutable):
    """A choice for each flow; up and down loads are rows of ToRs."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def choices(self) -> _U32: ...
    @property
    def path_links(self) -> _U32: ...
    @property
    def path_ends(self) -> list[int]: ...
    @property
    def link_loads(self) -> _U64: ...
    @property
    def up_loads(self) -> _U64: ...
    @property
    def down_loads(self) -> _U64: ...
    @property
    def max_link_load(self) -> int: ...
    @property
    def bound(self) -> tuple[int, int | None, str]:
        """A load that no assignment beats, the ToR that forces it, and how."""

@final
class Sprayed(_Immutable):
    """Loads of links if flows are split evenly over all their choices."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def link_loads(self) -> _F64: ...
    @property
    def up_loads(self) -> _F64: ...
    @property
    def down_loads(self) -> _F64: ...
    @property
    def max_link_load(self) -> float: ...
    @property
    def bound(self) -> tuple[int, int | None, str]:
        """A load that no assignment of whole flows beats, the ToR that forces it, and how."""

def assign(
    fabric: Fabric,
    flows: list[_Flow],
    scheme: str,
    seed: int,
    options: tuple[str, int, bool, int | None],
) -> Assignment:
    """Choose paths for flows (source, destination, weight); options: hash, upstream, salted, steps."""

def spray(fabric: Fabric, flows: list[_Flow]) -> Sprayed:
    """Spread flows (source, destination, weight) over all their choices."""

def assignment_of(fabric: Fabric, flows: list[_Flow], choices: list[int]) -> Assignment:
    """Return the assignment that these choices make."""

"""Families of networks, as the Rust core declares them."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, final

from hocket._core import Topology, _GivenDimension

__all__ = ["Family", "Parameter", "build", "counts", "families", "product_counts"]

_Counts: TypeAlias = tuple[int, int, int, list[tuple[str, int, int, int, bool]]]
"""NPUs, switches, links, and the dimensions of a product."""

@final
class Parameter:
    """A parameter of a family: its name, what it is, and what holds where it is left out."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def unit(self) -> Literal["count", "counts", "bandwidth", "latency", "flag"]: ...
    @property
    def required(self) -> bool: ...
    @property
    def default(self) -> int | str | None:
        """A number, True or False, or the name of a parameter that is the same."""

@final
class Family:
    """A family: its names, sizes of one as text, and what it is made of."""

    @property
    def name(self) -> str: ...
    @property
    def aliases(self) -> list[str]: ...
    @property
    def example(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def dimension(self) -> tuple[str, list[str]] | None:
        """Its name as a dimension of a product, and others in small letters."""
    @property
    def parameters(self) -> list[Parameter]: ...

def families() -> list[Family]:
    """Every family, as they are listed to a user."""

def build(family: str, given: Mapping[str, object]) -> Topology:
    """A network of a family, of whole numbers, bytes/s and ps; None is left out."""

def counts(family: str, given: Mapping[str, object]) -> _Counts:
    """What such a network has, however large."""

def product_counts(dimensions: Sequence[_GivenDimension]) -> _Counts:
    """What a product has, however large."""

"""The section ``costs:`` of topology files, as pydantic models: what links and switches cost."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from hocket.errors import SpecError
from hocket.files.model import Strict, Words
from hocket.units import parse_bandwidth, parse_written, shown

_PER = re.compile(r"\s*([0-9.eE+-]+)\s+per\s+(.+?)\s*")
_RIGHT = 'write units per bandwidth, such as "2 per GB/s"'
_MOST = 1e15
_LONGEST = 30

Units: TypeAlias = Annotated[float, Field(ge=0, le=_MOST, allow_inf_nan=False)]


def per_bandwidth(value: object) -> Fraction:
    """Read a price such as ``"2 per GB/s"`` [units for each byte/s].

    Raises
    ------
    SpecError
        If it is none.
    """
    found = _PER.fullmatch(value) if isinstance(value, str) else None
    try:
        units = Fraction(found[1]) if found and len(found[1]) <= _LONGEST else Fraction(-1)
    except ValueError:
        units = Fraction(-1)
    if found is None or not 0 <= units <= _MOST:
        raise SpecError(None, f"{shown(value)} is not a price of bandwidth", _RIGHT)
    rate = found[2] if found[2][0].isdigit() else f"1 {found[2]}"
    return units / parse_written(parse_bandwidth, rate, field=None)


PerBandwidth: TypeAlias = Annotated[
    Fraction,
    BeforeValidator(per_bandwidth),
    WithJsonSchema({"type": "string", "examples": ["2 per GB/s", "150 per 400 Gb/s"]}),
]


class Price(Strict):
    """The cost of one link or switch: an amount, and an amount per bandwidth."""

    each: Units = Field(default=0.0, description="Units for each, whatever its bandwidth.")
    bandwidth: PerBandwidth = Field(
        default=Fraction(0),
        validate_default=False,
        description="Units for the bandwidth of a link in one direction, or of all that leave a switch.",
    )


class DimensionCosts(Strict):
    """The costs of links and switches of one dimension."""

    link: Price = Price()
    switch: Price = Price()


class Costs(Strict):
    """The cost of a network, in any unit: of money, of power or of area."""

    npu: Units = Field(default=0.0, description="Units for each NPU.")
    link: Price = Field(default=Price(), description="Of each cable; a link both ways is one.")
    switch: Price = Field(default=Price(), description="Of each switch.")
    kinds: dict[Words, Price] = Field(
        default={}, description="Of cables by their kind, one of link_kinds, instead of link."
    )
    dimensions: list[DimensionCosts] = Field(
        default=[],
        max_length=32,
        description="Of each dimension of dims, the first one first, instead of link and switch.",
    )


class CostsFile(Strict):
    """Costs that stand alone."""

    costs: Costs

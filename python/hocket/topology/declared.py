"""Families of networks as the core declares them: names, parameters, what is built of them."""

from __future__ import annotations

from collections.abc import Sequence

from hocket._checks import index_of, truth
from hocket._core import Topology, families
from hocket.errors import SpecError
from hocket.units import parse_bandwidth, parse_time, shown

FAMILIES = {family.name: family for family in families.families()}
NAMES = {name: family for family in FAMILIES.values() for name in (family.name, *family.aliases)}
"""Families by every name that text may call them."""
KINDS = {
    alias: family.dimension[0]
    for family in FAMILIES.values()
    if family.dimension is not None
    for alias in (family.dimension[0].lower(), *family.dimension[1])
}
"""Dimensions of a product by their names in small letters."""


def build(family: str, /, **given: object) -> Topology:
    """Make a network of a family; a refusal names the parameter."""
    values = {
        each.name: _read(each, given[each.name])
        for each in FAMILIES[family].parameters
        if given[each.name] is not None or not is_left_out(each)
    }
    return families.build(family, values)


def is_left_out(parameter: families.Parameter) -> bool:
    """Return whether a parameter may be None: it is then like another, or not there."""
    is_given = isinstance(parameter.default, int)
    return not parameter.required and not is_given


def described(parameter: families.Parameter) -> str:
    """Return what a parameter is, and what holds where it is left out."""
    default = parameter.default
    more = f"\nAs `{default}` where it is left out." if isinstance(default, str) else ""
    return parameter.about + more


def _read(parameter: families.Parameter, value: object) -> object:
    """Check a value and return it as the core takes it: whole numbers, bytes/s, ps."""
    name, unit = parameter.name, parameter.unit
    if unit == "bandwidth":
        return parse_bandwidth(value, field=name)
    if unit == "latency":
        return parse_time(value, field=name)
    if unit == "flag":
        return truth(name, value)
    if unit == "count":
        return count_of(name, value, least=0 if parameter.default == 0 else 1)
    # Of sizes that stand by themselves, or in one sequence.
    sizes: Sequence[object] = value  # type: ignore[assignment]
    if len(sizes) == 1 and isinstance(sizes[0], Sequence) and not isinstance(sizes[0], str):
        sizes = sizes[0]
    return [count_of(f"{name} {i}", size) for i, size in enumerate(sizes)]


def count_of(field: str, value: object, *, least: int = 1) -> int:
    """Return a count that the core takes, or SpecError."""
    try:
        count = index_of(value)
    except TypeError:
        count = -1
    if not least <= count < 1 << 32:
        raise SpecError(field, f"{shown(value)} is not a whole number from {least} to 2^32 - 1")
    return count

"""What ``--topology`` may be: a file, a shipped machine, or a builder such as ``mesh:9x9``."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from hocket import machines
from hocket.errors import SpecError
from hocket.files.astra import is_astra, spec_from_astra
from hocket.files.hocket_yaml import spec_from_values
from hocket.files.spec import BuilderSpec, DimensionSpec, TopologySpec
from hocket.files.yaml_tree import read_yaml
from hocket.units import parse_bandwidth, parse_time

KINDS = {
    "ring": "Ring",
    "r": "Ring",
    "fullyconnected": "FullyConnected",
    "fc": "FullyConnected",
    "switch": "Switch",
    "sw": "Switch",
    "line": "Line",
    "mesh": "Line",
    "l": "Line",
}
"""Names of dimensions, in small letters."""

# Family: how many sizes it takes at least and at most.
_FAMILIES = {
    "line": (1, 1),
    "ring": (1, 1),
    "fully_connected": (1, 1),
    "fc": (1, 1),
    "switch": (1, 1),
    "mesh": (1, 32),
    "torus": (1, 32),
    "hypercube": (1, 1),
    "dragonfly": (2, 2),
    "clos": (3, 3),
    "fat_tree": (1, 1),
}
_FORMS = (
    "a shipped machine (`hocket topology list`), a .yml file, ring:16, line:4, switch:8, fc:8, "
    "mesh:9x9, torus:4x4x4, hypercube:4 (2^4 NPUs), dragonfly:4x5, clos:SPINESxTORSxHOSTS_PER_TOR, "
    "fat_tree:4 or a product such as Ring_FC_SW:2x8x4"
)


def from_file(path: Path) -> TopologySpec:
    """Read a topology file: hocket's own YAML or ASTRA-sim's network file.

    Raises
    ------
    SpecError
        Naming file, line, key and remedy.
    """
    values, lines = read_yaml(path)
    read = spec_from_astra if is_astra(values) else spec_from_values
    return read(values, lines, str(path), path.stem)


def from_text(
    text: str, *, bandwidth: Sequence[str] | None, latency: Sequence[str] | None
) -> TopologySpec:
    """Read a topology given as text.

    Parameters
    ----------
    text
        A path, the name of a shipped machine, or a builder with its sizes.
    bandwidth, latency
        For a builder: one value, or for a product one per dimension.

    Raises
    ------
    SpecError
        If it is none of these, or bandwidth or latency is missing or superfluous.
    """
    path = Path(text)
    looks_like_file = path.suffix in (".yml", ".yaml") or "/" in text
    family, colon, sizes = text.partition(":")
    if looks_like_file or not colon:
        name = path.stem if looks_like_file else text
        if looks_like_file and not path.is_file():
            raise SpecError(f"{text}: there is no such file{_near(name)}")
        if not looks_like_file and text not in machines.names():
            if path.is_file():
                return from_file(path)
            raise SpecError(f"--topology: there is no {text!r}{_near(text)}; give {_FORMS}")
        for option, given in (("--bandwidth", bandwidth), ("--latency", latency)):
            if given:
                raise SpecError(f"{option}: {text} has its own; leave the option out")
        return from_file(path) if looks_like_file else from_file(machines.path(text))
    return _built(text, family, _sizes(text, sizes), bandwidth, latency)


def _near(name: str) -> str:
    close = get_close_matches(name, machines.names(), 3, 0.5)
    return f"; shipped machines with a name like it: {', '.join(close)}" if close else ""


def _sizes(text: str, sizes: str) -> list[int]:
    parts = sizes.split("x")
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise SpecError(f"--topology: {text!r}: {sizes!r} is not sizes such as 9x9")
    numbers = [int(part) for part in parts if len(part) <= 20]
    if len(numbers) != len(parts) or max(numbers) >= 1 << 32:
        raise SpecError(f"--topology: {text!r}: a size is 2^32 or more; make it smaller")
    return numbers


def _built(
    text: str,
    family: str,
    sizes: list[int],
    bandwidth: Sequence[str] | None,
    latency: Sequence[str] | None,
) -> TopologySpec:
    names = family.split("_")
    kinds = [KINDS.get(name.lower()) for name in names]
    if family not in _FAMILIES and (None in kinds or len(names) < 2):
        raise SpecError(f"--topology: there is no {text!r}; give {_FORMS}")
    is_product = family not in _FAMILIES
    if is_product and len(sizes) != len(names):
        raise SpecError(f"--topology: {text!r} has {len(names)} dimensions and {len(sizes)} sizes")
    least, most = (len(names),) * 2 if is_product else _FAMILIES[family]
    if not least <= len(sizes) <= most:
        form = next(part for part in _FORMS.split(", ") if part.split(":")[0].endswith(family))
        raise SpecError(f"--topology: {text!r} has {len(sizes)} sizes; write it as {form}")
    wanted = len(names) if is_product else 1
    rates = [
        parse_bandwidth(each, field="--bandwidth")
        for each in _each("--bandwidth", "25 GB/s", text, bandwidth, wanted)
    ]
    delays = [
        parse_time(each, field="--latency")
        for each in _each("--latency", "700 ns", text, latency, wanted)
    ]
    if is_product:
        dimensions = zip(kinds, sizes, rates, delays, strict=True)
        return TopologySpec(
            text, dimensions=tuple(DimensionSpec(str(k), *rest) for k, *rest in dimensions)
        )
    return TopologySpec(text, builder=_builder(family, sizes, rates[0], delays[0]))


def _builder(family: str, sizes: list[int], rate: int, delay: int) -> BuilderSpec:
    link = (rate, delay)
    first = sizes[0]
    if family in ("fc", "fully_connected"):
        return BuilderSpec("fully_connected", (first, *link))
    if family in ("mesh", "torus"):
        return BuilderSpec(family, (sizes, *link))
    if family == "ring":
        return BuilderSpec(family, (first, *link, True))
    if family == "switch":
        return BuilderSpec(family, (first, *link, None))
    if family == "dragonfly":
        return BuilderSpec(family, (*sizes, *link, *link))
    if family == "clos":
        return BuilderSpec(family, (*sizes, rate, *link))
    return BuilderSpec(family, (first, *link))


def _each(
    option: str, example: str, text: str, values: Sequence[str] | None, wanted: int
) -> list[str]:
    """Give one value a dimension."""
    if not values:
        raise SpecError(f'{option}: {text} needs one; give {option} "{example}"')
    split = [part for value in values for part in value.split(",")]
    if len(split) == 1:
        return split * wanted
    if len(split) != wanted:
        raise SpecError(f"{option}: {len(split)} given for {text}; give 1 or {wanted}")
    return split

"""Process groups of a job, from the words of a mesh, a file, or all groups of a size."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hocket import _core
from hocket._checks import instance_of, is_decimal
from hocket.collectives.collective import collective_on, joined
from hocket.errors import SpecError
from hocket.files.raw import parse_json, read_bytes
from hocket.units import Quantity, shown

_MOST = 4096
"""Groups of a job."""
_MAX_FILE = 1 << 24
_FIELD = "process_groups"
_RIGHT = "give world, the axes of a mesh as dp=2,tp=4, any=4, or a file.json"
_AXIS = re.compile(r"([A-Za-z_]\w{0,63})=([0-9]{1,6})", re.ASCII)
WORLD, _WHOLE = "world", "'world' stands for all {} NPUs"
ANY = "any="
"""How names begin of groups that need not be disjoint."""


@dataclass(frozen=True)
class ProcessGroups:
    """Groups of one name.

    Attributes
    ----------
    name
        As ``"tp"``.
    npus
        The NPUs of each group, by rank in it.
    """

    name: str
    npus: tuple[tuple[int, ...], ...]


def process_groups(text: str, npu_count: int) -> tuple[ProcessGroups, ...]:
    """Return the groups that some words describe.

    Parameters
    ----------
    text
        Words separated by commas. ``world`` is the group of all NPUs. ``dp=2,tp=4`` are the axes of a mesh
        of all NPUs; the last varies fastest, as in PyTorch's ``init_device_mesh``. An axis such as ``_=2``
        makes no groups. ``any=4`` is every group of 4 NPUs in ascending order. A name that ends in
        ``.json`` is a file, ``{"tp": [[0, 1], [2, 3]]}``.
    npu_count
        How many NPUs there are; the rank of each in the job is its number.

    Raises
    ------
    SpecError
        If it is none of these, the axes make another number of NPUs, or groups of one name overlap.

    Examples
    --------
    >>> process_groups("dp=2,tp=2", 4)[1]
    ProcessGroups(name='tp', npus=((0, 1), (2, 3)))
    """
    words = [each.strip() for each in instance_of(str, _FIELD, text, _RIGHT).split(",")]
    found: list[ProcessGroups] = []
    axes: list[tuple[str, int]] = []
    for word in words:
        axis = _AXIS.fullmatch(word)
        if word == WORLD:
            found.append(ProcessGroups(word, (tuple(range(npu_count)),)))
        elif word.startswith(ANY):
            found.append(_any(word, npu_count))
        elif axis is not None:
            axes.append((axis[1], int(axis[2])))
        elif word.endswith(".json"):
            found += _of_file(Path(word), npu_count)
        else:
            raise SpecError(_FIELD, f"{shown(word)} is no group", _RIGHT)
    found += _mesh(axes, npu_count)
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(_FIELD, f"{shown(name)} is there twice", "name each group once")
    if not found:
        raise SpecError(_FIELD, f"each axis of {shown(text)} begins with _", "name one without")
    count = sum(len(each.npus) for each in found)
    if count > _MOST:
        raise SpecError(_FIELD, f"these are {count:,} groups", f"take at most {_MOST:,}")
    return tuple(found)


def collectives_of(
    text: str,
    kind: str,
    network: _core.Topology,
    size: Quantity,
    given: Mapping[str, Any] | None = None,
) -> list[tuple[str, list[_core.Collective]]]:
    """Make the collective of each process group that has two NPUs or more, by the groups' names.

    Parameters
    ----------
    text
        See :func:`process_groups`.
    kind, network, size
        As of :func:`hocket.collective_on`; each group has this size.
    given
        What else is said of the collective: only `in_place` may be.

    Raises
    ------
    SpecError
        As :func:`process_groups`; if no group has two NPUs, or something says who takes part besides.
    """
    said = {name: value for name, value in (given or {}).items() if value is not None}
    for name in said:
        if name != "in_place":
            raise SpecError(name, "the process groups say who takes part", "leave it out")
    found = []
    for each in process_groups(text, network.npu_count):
        several = [npus for npus in each.npus if len(npus) > 1]
        made = [collective_on(kind, network, size, npus=npus, **said) for npus in several]
        found += [(each.name, made)] if made else []
    if not found:
        why = f"each group of {shown(text)} has one NPU"
        raise SpecError(_FIELD, why, "make them of two NPUs or more")
    return found


def at_once(named: Sequence[tuple[str, Sequence[_core.Collective]]]) -> _core.Collective:
    """Return one collective that has the demands of all of :func:`collectives_of`."""
    several = [each for _, some in named for each in some]
    return several[0] if len(several) == 1 else joined(several)


def _mesh(axes: Sequence[tuple[str, int]], npu_count: int) -> list[ProcessGroups]:
    """Return the groups along each axis of a mesh whose last axis varies fastest."""
    sizes = [size for _, size in axes]
    if axes and (0 in sizes or math.prod(sizes) != npu_count):
        product = " x ".join(f"{name} {size}" for name, size in axes)
        right = f"give axes whose product is {npu_count}"
        raise SpecError(_FIELD, f"{product} make {math.prod(sizes)} of {npu_count} NPUs", right)
    found = []
    for place, (name, size) in enumerate(axes):
        if name.startswith("_"):  # of which no groups are wanted
            continue
        if name == WORLD and size < npu_count:
            raise SpecError(_FIELD, _WHOLE.format(npu_count), "use another name")
        step = math.prod(sizes[place + 1 :])
        firsts = (npu for npu in range(npu_count) if npu // step % size == 0)
        npus = tuple(tuple(range(first, first + size * step, step)) for first in firsts)
        found.append(ProcessGroups(name, npus))
    return found


def _any(word: str, npu_count: int) -> ProcessGroups:
    text = word.removeprefix(ANY)
    size = int(text) if is_decimal(text) else 0
    if not 2 <= size <= npu_count:
        raise SpecError(_FIELD, f"{shown(word)} is no size of a group", f"give 2 to {npu_count}")
    if math.comb(npu_count, size) > _MOST:
        count = math.comb(npu_count, size)
        raise SpecError(_FIELD, f"{word} are {count:,} groups", f"take at most {_MOST:,}")
    return ProcessGroups(f"{ANY}{size}", tuple(itertools.combinations(range(npu_count), size)))


def _of_file(path: Path, npu_count: int) -> list[ProcessGroups]:
    """Read groups from a file."""
    origin, right = str(path), 'write {"tp": [[0, 1], [2, 3]]}'
    raw = read_bytes(path, "process groups", most=_MAX_FILE)
    values = parse_json(raw, origin, right)
    if not isinstance(values, dict) or not values:
        raise SpecError(None, f"{shown(values)} are no groups by name", right, origin)
    found = []
    for name, groups in values.items():
        if _AXIS.fullmatch(f"{name}=1") is None:
            raise SpecError(None, f"{shown(name)} is no name", "use letters and digits", origin)
        if not isinstance(groups, list) or not groups or not all(map(_is_group, groups)):
            raise SpecError(name, "is no list of lists of two NPUs or more", right, origin)
        check_groups(name, groups, npu_count, origin)
        if name == WORLD and len(groups[0]) < npu_count:
            raise SpecError(None, _WHOLE.format(npu_count), "use another name", origin)
        found.append(ProcessGroups(name, tuple(map(tuple, groups))))
    return found


def _is_group(value: object) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(type(npu) is int for npu in value)


def check_groups(
    name: str, groups: Sequence[Sequence[int]], npu_count: int, origin: str | None = None
) -> None:
    """Refuse groups of one name with an NPU that does not exist or that is in two of them.

    Raises
    ------
    SpecError
        Naming the NPU.
    """
    seen: set[int] = set()
    for group in groups:
        if len(set(group)) < len(group):
            why = f"a group has an NPU twice: {shown(list(group))}"
            raise SpecError(name, why, "list each once", origin)
        for npu in group:
            if not 0 <= npu < npu_count:
                right = f"NPUs are 0 to {npu_count - 1}"
                raise SpecError(name, f"there is no NPU {npu}", right, origin)
            if npu in seen and not name.startswith(ANY):
                raise SpecError(name, f"its groups overlap in NPU {npu}", "list each once", origin)
            seen.add(npu)


def labels(groups: Sequence[tuple[str, Sequence[Sequence[int]]]]) -> list[str]:
    """Return what tells groups apart: their name, and NPUs if groups of one name have unlike plans."""
    names = Counter(name for name, _ in groups)
    return [
        name if names[name] == 1 else f"{name} of NPUs {', '.join(map(str, npus[0]))}"
        for name, npus in groups
    ]

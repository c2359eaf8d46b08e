"""Node groups: which NPUs form a node."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from hocket._checks import instance_of, is_decimal
from hocket._core import Topology
from hocket.errors import SpecError
from hocket.units import shown

GroupsLike: TypeAlias = int | str | Sequence[Sequence[int | str]]

_RIGHT = (
    "give a number of NPUs, text as '0-3 4-7' or 'a=a0,a1;b=b0,b1', or lists as [[0, 1], [2, 3]]"
)
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def grouped(topology: Topology, groups: GroupsLike) -> Topology:
    """Return the same network with its NPUs in groups: nodes, as ``hierarchical`` needs them.

    Parameters
    ----------
    topology
        The network.
    groups
        The NPUs of each node, by number or name, every NPU in one; or how many NPUs that follow one another
        form a node; or text, in which nodes are separated by blanks or semicolons and NPUs by commas,
        ``"0-3 4-7"``, ``"a0,a1 b0,b1"`` or, with names for the nodes, ``"a=a0,a1;b=b0,b1"``. Where nodes
        are alike, so should be the NPUs at the same place of their groups.

    Raises
    ------
    SpecError
        If it is none of these, there is no such NPU, or one is in no group or in two.

    Examples
    --------
    >>> import hocket as hk
    >>> ring = hk.topology.ring(8, bandwidth=25e9, latency=700e-9)
    >>> hk.topology.grouped(ring, 4).groups
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    instance_of(Topology, "topology", topology, "make one, as by hk.topology.load(...)")
    if isinstance(groups, str):
        text = groups.strip()
        groups = int(text) if is_decimal(text) else _listed(text, topology.npu_count)
    if isinstance(groups, int):
        return topology.with_groups(_runs(topology, groups))
    given: object = groups
    if not isinstance(given, Sequence) or not all(map(_is_list, given)):
        raise SpecError("groups", f"{shown(groups)} is not a list of groups", _RIGHT)
    names = {name: i for i, name in enumerate(topology.device_names)}
    numbers = [
        [_number(topology, names, npu, f"groups[{i}]") for npu in group]
        for i, group in enumerate(groups)
    ]
    return topology.with_groups(numbers)


def _is_list(group: object) -> bool:
    return isinstance(group, Sequence) and not isinstance(group, str)


def _runs(topology: Topology, size: int) -> list[list[int]]:
    """Return groups of so many NPUs that follow one another."""
    count = topology.npu_count
    if isinstance(size, bool) or size < 1 or count % size:
        raise SpecError(
            "groups",
            f"{shown(size)} does not divide the {count} NPUs of {topology.name!r}",
            "give a number that does, or the NPUs of each group",
        )
    return [list(range(first, first + size)) for first in range(0, count, size)]


def _listed(text: str, npu_count: int) -> list[list[str | int]]:
    """Read groups that are separated by blanks or semicolons, of NPUs separated by commas."""
    groups: list[list[str | int]] = []
    for part in text.replace(";", " ").split():
        group: list[str | int] = []
        for item in filter(None, part.rpartition("=")[2].split(",")):
            run = _RANGE.fullmatch(item)
            if run is None:
                group.append(int(item) if is_decimal(item) else item)
                continue
            first, last = int(run.group(1)), int(run.group(2))
            if last < first:
                raise SpecError(
                    "groups", f"{shown(item)} is not a range of NPUs", "write it as 0-3"
                )
            if last >= npu_count:  # found here, as such ranges fill memory
                right = f"NPUs are 0 to {npu_count - 1}"
                raise SpecError(f"groups[{len(groups)}]", f"there is no NPU {last}", right)
            group.extend(range(first, last + 1))
        groups.append(group)
    if not groups:
        raise SpecError("groups", "there is none", _RIGHT)
    return groups


def _number(topology: Topology, names: dict[str, int], npu: object, field: str) -> int:
    """Return the number of an NPU that is given by number or name."""
    if isinstance(npu, str):
        number = names.get(npu, -1)
        if number >= topology.npu_count:
            raise SpecError(field, f"{shown(npu)} is a switch", "name NPUs only")
        if number < 0:
            raise SpecError(field, f"there is no NPU {shown(npu)}", _near(npu, names))
        return number
    if isinstance(npu, bool) or not isinstance(npu, int) or not 0 <= npu < topology.npu_count:
        right = f"NPUs are 0 to {topology.npu_count - 1}"
        raise SpecError(field, f"there is no NPU {shown(npu)}", right)
    return npu


def _near(name: str, names: dict[str, int]) -> str:
    from hocket._checks import did_you_mean

    return did_you_mean(name, names, "`hocket topology show --links` lists the devices")

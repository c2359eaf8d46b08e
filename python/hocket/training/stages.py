"""Pipeline stages: consecutive layers, as equal in time as they can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hocket._moved import renamed
from hocket.errors import SpecError
from hocket.workload.costs import Block

_SPOKEN = 3
"""Groups of layers of a stage that are named; of more, the first and how many more."""


def units(blocks: list[Block]) -> list[list[Block]]:
    """Gather consecutive layers of one group, such as a layer of a transformer: what is trained as a whole.

    Such layers share what stands before the last ``/`` of their names; a layer without one is a unit by
    itself.
    """
    found: list[list[Block]] = []
    before = ""
    for block in blocks:
        group = block.name.rpartition("/")[0]
        if found and group and group == before:
            found[-1].append(block)
        else:
            found.append([block])
        before = group
    return found


def partition(blocks: list[Block], stages: int, times: list[int]) -> list[list[Block]]:
    """Divide layers into stages whose longest is as short as possible.

    Groups of layers stay together, as long as there is one for each stage: what a stage sends is then
    what the whole group gives.

    Parameters
    ----------
    blocks
        In the order of the forward pass.
    stages
        How many.
    times
        Of each layer, in any unit.

    Raises
    ------
    SpecError
        If there are fewer layers than stages, or a table's outputs would cross stages.

    Complexity: O(layers x log of all time).
    """
    if stages == 1:
        return [blocks]
    if len(blocks) < stages:
        raise SpecError(
            "parallel",
            f"pp={stages} stages need a layer each, and there are {len(blocks)}",
            f"give pp of at most {len(blocks)}",
        )
    if any(block.is_table or block.joins for block in blocks):
        raise SpecError(
            "parallel",
            "pp: tables, and layers that join a later one, are trained in one stage",
            "use pp=1",
        )
    whole = units(blocks)
    if len(whole) < stages:
        whole = [[block] for block in blocks]
    ends = _ends(_sums(times, whole), stages)
    pieces = [whole[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    return [[block for unit in piece for block in unit] for piece in pieces]


def dealt(pieces: list[list[Block]], stages: int) -> list[list[list[Block]]]:
    """Deal pieces of consecutive layers out to stages in turn: what each stage of a pipeline has."""
    return [pieces[stage::stages] for stage in range(stages)]


def spoken(pieces: list[list[Block]]) -> str:
    """Name the layers of a stage: the first and the last of each group of consecutive ones."""
    named = [
        piece[0].name if len(piece) == 1 else f"{piece[0].name} to {piece[-1].name}"
        for piece in pieces
    ]
    if len(named) > _SPOKEN:
        named = [named[0], f"{len(named) - 1} groups more"]
    return ", ".join(named)


def _sums(times: list[int], whole: list[list[Block]]) -> list[int]:
    """Add up the times of each unit's layers."""
    rest = iter(times)
    return [sum(next(rest) for _ in unit) for unit in whole]


def _ends(times: list[int], stages: int) -> list[int]:
    """Return the ends of stages, of at least as many units."""
    low, high = max(times), sum(times)
    while low < high:
        middle = (low + high) // 2
        if len(_filled(times, middle, stages)) <= stages:
            high = middle
        else:
            low = middle + 1
    ends = _filled(times, low, stages)
    # Stages that are left over take a layer each from the longest ones.
    while len(ends) < stages:
        starts = [0, *ends[:-1]]
        longest = max(
            (i for i in range(len(ends)) if ends[i] - starts[i] > 1),
            key=lambda i: sum(times[starts[i] : ends[i]]),
        )
        ends.insert(longest, (starts[longest] + ends[longest]) // 2)
    return ends


def _filled(times: list[int], most: int, stages: int) -> list[int]:
    """Return the ends of stages that are filled one after the other, up to `most` each."""
    ends, total = [], 0
    for i, time in enumerate(times):
        if total + time > most and total:
            ends.append(i)
            total = 0
            if len(ends) > stages:
                break
        total += time
    return [*ends, len(times)]


if not TYPE_CHECKING:  # which would take every name for one of the module
    __getattr__ = renamed(__name__, {"cut": "partition"})

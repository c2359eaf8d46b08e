"""Pipeline stages: consecutive layers, as equal in time as they can be."""

from __future__ import annotations

from hocket.blocks import Block
from hocket.errors import SpecError

__all__ = ["cut"]


def cut(blocks: list[Block], stages: int, times: list[int]) -> list[list[Block]]:
    """Cut layers into stages whose longest is as short as possible.

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
            f"parallel: pp={stages} stages need a layer each, and there are {len(blocks)}; "
            f"give pp of at most {len(blocks)}"
        )
    if any(block.is_table or block.joins for block in blocks):
        raise SpecError(
            "parallel: pp: tables, and layers that join a later one, are trained in one stage; use pp=1"
        )
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
    return [blocks[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _filled(times: list[int], most: int, stages: int) -> list[int]:
    """Give the ends of stages that are filled one after the other, up to `most` each."""
    ends, total = [], 0
    for i, time in enumerate(times):
        if total + time > most and total:
            ends.append(i)
            total = 0
            if len(ends) > stages:
                break
        total += time
    return [*ends, len(times)]

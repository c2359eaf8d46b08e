"""Which call takes which plan: pure functions of what all ranks of a group know alike.

Nothing here sees an address, a stride or an offset: these may differ between ranks, and all ranks must
decide alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hocket.deployment.manifest import PARTED, Entry
from hocket.units import format_size

SUMS = ("all-reduce", "reduce-scatter")
MOVES = ("all-gather", "broadcast", "all-to-all")
SUMMED = ("float32", "float16", "bfloat16", "int32", "uint32")
"""Types that MSCCL++'s executor adds; it moves all types."""
AVERAGED = SUMMED[:3]
STAGE = 64 << 20
"""Bytes of each buffer of a stage."""


@dataclass(frozen=True)
class Nccl:
    """A call that is left to NCCL, or on CPUs to the runtime's own plans.

    Attributes
    ----------
    reason
        Why.
    """

    reason: str


@dataclass
class PlannedGroup:
    """What all ranks of a group know about its plans.

    Attributes
    ----------
    name
        Its name in the manifest.
    ranks
        How many it has.
    entries
        Its plans.
    reason
        Why it has none; empty if it has.
    packets
        Whether plans with packets may run: only while one group of the process has ever used the engine.
    stage
        Bytes of each of the two buffers of its stage.
    switches
        Whether plans may run in which switches sum or multicast: only where every GPU has such memory.
    prepared
        Launches that were made before, by entry and bytes: those that a CUDA graph may capture.
    taken
        How many calls of this rank took which entry, by its id, and how many took none, by the reason;
        empty for a group without plans.
    """

    name: str
    ranks: int
    entries: tuple[Entry, ...] = ()
    reason: str = ""
    packets: bool = True
    stage: int = STAGE
    switches: bool = True
    prepared: set[tuple[str, int]] = field(default_factory=set)
    taken: Counter[str] = field(default_factory=Counter)


class Piece(NamedTuple):
    """A part of each rank's part of a call.

    Attributes
    ----------
    begin, end
        Bytes of each part that it has.
    padded
        Bytes of each part that a launch is told, so that there are few different launches.
    """

    begin: int
    end: int
    padded: int


def route(
    collective: str,
    op: str,
    dtype: str,
    size: int | None,
    root: int,
    group: PlannedGroup,
    captured: bool,
) -> Entry | Nccl:
    """Return the plan that a call takes, or why NCCL does it.

    Parameters
    ----------
    collective
        As ``"all-reduce"``; what is not a collective of plans, as ``"send"``, is left to NCCL.
    op
        As ``"sum"``; of collectives that only move data, anything.
    dtype
        As ``"float32"``.
    size
        Bytes of the whole vector; None if the parts of ranks are unequal.
    root
        Of a broadcast; 0 if there is none.
    group
        What is planned for the group.
    captured
        Whether a CUDA graph captures the call.
    """
    if group.reason:
        return Nccl(group.reason)
    rows = [each for each in group.entries if each.collective == collective]
    if not rows:
        return Nccl(f"no plan for {collective}")
    if size is None:
        return Nccl("the parts are unequal")
    if size == 0:
        return Nccl("there are no bytes")
    if root != 0:
        return Nccl(f"the root is rank {root}, and plans have root 0")
    if collective in SUMS:
        types = {"sum": SUMMED, "average": AVERAGED}.get(op)
        if types is None:
            return Nccl(f"plans have no {op}")
        if dtype not in types:
            return Nccl(f"plans have no {op} of {dtype}")
    entry = next((row for row in rows if row.from_bytes <= size < row.to_bytes), None)
    if entry is None:
        return Nccl(f"no plan for {format_size(size)}")
    if entry.unit_bytes > group.stage:
        return Nccl(f"a stage of {format_size(group.stage)} holds no unit of the plan")
    if entry.switches and not group.switches:
        return Nccl("a plan for switches, and a GPU of the group has no multicast memory")
    if entry.protocol == "LL":
        if captured:
            return Nccl("a captured plan with packets would read those of the replay before")
        if not group.packets:
            return Nccl("packets are of one group alone, and there are several")
    if captured:
        parts = parts_of(collective, group.ranks)
        launches = {piece.padded * parts for piece in pieces(entry, size, group)}
        missing = sum((entry.id, each) not in group.prepared for each in launches)
        if missing:
            return Nccl(f"{missing} of its launches were never made before capture")
    return entry


def parts_of(collective: str, ranks: int) -> int:
    """Return into how many equal parts the whole vector is cut by ranks."""
    return ranks if collective in PARTED else 1


def size_class(size: int, unit: int) -> int:
    """Return the least launch that holds a size: `unit` x {4 to 7} x a power of 2, or up to 3 units.

    Four sizes an octave: less than a quarter is padding beyond the first unit.
    """
    units = max(-(-size // unit), 1)
    step = 1 << max(units.bit_length() - 3, 0)
    return -(-units // step) * step * unit


def _largest_class(most: int, unit: int) -> int:
    """Return the largest launch that is no larger than a stage."""
    units = most // unit
    step = 1 << max(units.bit_length() - 3, 0)
    return units // step * step * unit


def pieces(entry: Entry, size: int, group: PlannedGroup) -> Iterator[Piece]:
    """Yield the launches of a call: as many as a stage makes necessary, each cut alike from all parts."""
    parts = parts_of(entry.collective, group.ranks)
    own = size // parts
    most = _largest_class(min(group.stage, entry.max_bytes), entry.unit_bytes) // parts
    for begin in range(0, own, most):
        end = min(begin + most, own)
        yield Piece(begin, end, size_class((end - begin) * parts, entry.unit_bytes) // parts)

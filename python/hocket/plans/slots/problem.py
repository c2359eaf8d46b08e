"""The problem in slots: a network, chunks, their holders and those who want them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hocket.errors import SpecError

FORWARD, BACKWARD = 0, 1


@dataclass(frozen=True)
class SlotProblem:
    """A collective on a network whose times are whole slots.

    A chunk that goes backwards is a reduction seen in a mirror: `holders` is where its sum must end,
    `wanted` is everyone who adds to it, and it spreads in mirrored time over edges turned round.

    Attributes
    ----------
    npus : int
        How many NPUs there are.
    edge_src, edge_dst : array of uint32, shape (edges,)
        Ends of each edge.
    edge_slots : array of uint32, shape (edges, classes)
        Slots that a chunk of a size class takes over an edge, at least 1. The edge is busy for them,
        and the chunk is there when they end.
    chunk_class : array of uint32, shape (chunks,)
        Size class of each chunk.
    backwards : array of bool, shape (chunks,)
        Which chunks are reduced.
    holders : sequence of frozenset of int
        Per chunk: NPUs that hold it at the start.
    wanted : sequence of frozenset of int
        Per chunk: NPUs that must hold it at the end.
    """

    npus: int
    edge_src: NDArray[np.uint32]
    edge_dst: NDArray[np.uint32]
    edge_slots: NDArray[np.uint32]
    chunk_class: NDArray[np.uint32]
    backwards: NDArray[np.bool_]
    holders: Sequence[frozenset[int]]
    wanted: Sequence[frozenset[int]]

    def __post_init__(self) -> None:
        for name in ("edge_src", "edge_dst", "edge_slots", "chunk_class"):
            object.__setattr__(self, name, _whole(name, getattr(self, name)))
        object.__setattr__(self, "backwards", np.asarray(self.backwards, dtype=np.bool_))
        _check_shapes(self)
        _check_values(self)

    @property
    def edges(self) -> int:
        """The number of edges."""
        return len(self.edge_src)

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return len(self.chunk_class)

    def missing(self, chunk: int) -> frozenset[int]:
        """NPUs that want a chunk and do not hold it."""
        return frozenset(self.wanted[chunk]) - frozenset(self.holders[chunk])

    def way(self, chunk: int) -> int:
        """``BACKWARD`` for a reduced chunk, else ``FORWARD``."""
        return BACKWARD if self.backwards[chunk] else FORWARD

    def ends(self, way: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return sources and destinations of the edges, as chunks of this way see them."""
        if way == FORWARD:
            return self.edge_src, self.edge_dst
        return self.edge_dst, self.edge_src

    def slots_of(self, chunk: int) -> NDArray[np.uint32]:
        """Return the slots that a chunk takes over each edge."""
        slots: NDArray[np.uint32] = self.edge_slots[:, self.chunk_class[chunk]]
        return slots


def _whole(name: str, given: Any) -> NDArray[np.uint32]:
    """Convert to uint32; refuse what would be cut off."""
    array = np.asarray(given)
    if array.size and (array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= 1 << 31):
        raise SpecError(None, f"{name} must be whole numbers from 0 to 2^31 - 1")
    return array.astype(np.uint32)


def _check_shapes(problem: SlotProblem) -> None:
    edges, chunks = len(problem.edge_src), len(problem.chunk_class)
    if problem.edge_slots.ndim != 2:
        raise SpecError(None, f"edge_slots must have 2 dimensions, not {problem.edge_slots.ndim}")
    per_edge = {"edge_dst": problem.edge_dst, "edge_slots": problem.edge_slots}
    per_chunk = {
        "backwards": problem.backwards,
        "holders": problem.holders,
        "wanted": problem.wanted,
    }
    for count, things in ((edges, per_edge), (chunks, per_chunk)):
        for name, thing in things.items():
            if len(thing) != count:
                raise SpecError(None, f"{name} has {len(thing)} entries, not {count}")


def _check_values(problem: SlotProblem) -> None:
    for name in ("edge_src", "edge_dst"):
        if (getattr(problem, name) >= problem.npus).any():
            raise SpecError(
                None, f"{name} names an NPU that is not there", f"there are {problem.npus}"
            )
    if (problem.edge_src == problem.edge_dst).any():
        raise SpecError(None, "an edge leads from an NPU to itself")
    if problem.edge_slots.size and problem.edge_slots.min() < 1:
        raise SpecError(None, "edge_slots must be at least 1")
    if problem.chunks and problem.chunk_class.max() >= problem.edge_slots.shape[1]:
        raise SpecError(None, f"chunk_class must be less than {problem.edge_slots.shape[1]}")
    for chunk in range(problem.chunks):
        named = frozenset(problem.holders[chunk]) | frozenset(problem.wanted[chunk])
        if any(not 0 <= npu < problem.npus for npu in named):
            raise SpecError(None, f"chunk {chunk} names an NPU that is not there")
        if problem.backwards[chunk] and len(problem.holders[chunk]) != 1:
            raise SpecError(
                None, f"chunk {chunk} is reduced, so it needs one place where its sum ends"
            )

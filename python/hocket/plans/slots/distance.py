"""Distances in slots: the fewest that a chunk needs to an NPU, and from there to those that want it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hocket.errors import SpecError
from hocket.plans.slots.problem import BACKWARD, FORWARD, SlotProblem

FAR = 1 << 40
"""More slots than any plan has."""


@dataclass(frozen=True)
class Distances:
    """Shortest paths in slots, seen by each chunk along its own way.

    Attributes
    ----------
    between : array of int64, shape (2, classes, npus, npus)
        Slots from NPU to NPU: of chunks that go forward, of chunks that go backwards.
    early : array of int64, shape (chunks, npus)
        Slots before which a chunk cannot be at an NPU.
    late : array of int64, shape (chunks, npus)
        Slots from an NPU to the nearest one that wants the chunk and has not got it.
    """

    between: NDArray[np.int64]
    early: NDArray[np.int64]
    late: NDArray[np.int64]

    def of(self, problem: SlotProblem, chunk: int) -> NDArray[np.int64]:
        """Slots from NPU to NPU as one chunk sees them."""
        table: NDArray[np.int64] = self.between[problem.way(chunk), problem.chunk_class[chunk]]
        return table


def distances(problem: SlotProblem) -> Distances:
    """Distances of a problem.

    Raises
    ------
    SpecError
        When a chunk cannot get to an NPU that wants it.
    """
    classes = problem.edge_slots.shape[1]
    between = np.empty((2, classes, problem.npus, problem.npus), dtype=np.int64)
    for size_class in range(classes):
        table = shortest(problem, size_class)
        between[FORWARD, size_class], between[BACKWARD, size_class] = table, table.T
    early = np.full((problem.chunks, problem.npus), FAR, dtype=np.int64)
    late = early.copy()
    for chunk in range(problem.chunks):
        table = between[problem.way(chunk), problem.chunk_class[chunk]]
        if problem.holders[chunk]:
            early[chunk] = table[sorted(problem.holders[chunk])].min(axis=0)
        missing = sorted(problem.missing(chunk))
        if missing:
            late[chunk] = table[:, missing].min(axis=1)
        for npu in missing:
            if early[chunk, npu] >= FAR:
                raise SpecError(None, _cut_off(problem, chunk, npu))
    return Distances(between, early, late)


def shortest(problem: SlotProblem, size_class: int) -> NDArray[np.int64]:
    """Slots between all NPUs (Floyd and Warshall)."""
    table = np.full((problem.npus, problem.npus), FAR, dtype=np.int64)
    np.fill_diagonal(table, 0)
    slots = problem.edge_slots[:, size_class].astype(np.int64)
    np.minimum.at(table, (problem.edge_src, problem.edge_dst), slots)
    for middle in range(problem.npus):
        np.minimum(table, table[:, middle, None] + table[middle], out=table)
    return np.minimum(table, FAR)


def _cut_off(problem: SlotProblem, chunk: int, npu: int) -> str:
    if problem.way(chunk) == FORWARD:
        return f"chunk {chunk} cannot reach NPU {npu}: no links lead there from who has it"
    root = min(problem.holders[chunk])
    return f"chunk {chunk} cannot be reduced: no links lead from NPU {npu} to NPU {root}"

"""A plan in slots, and an independent check that it does what its problem asks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hocket.plans.slots.problem import BACKWARD, FORWARD, SlotProblem

Send = tuple[int, int, int]
"""Chunk, edge, first slot."""


@dataclass(frozen=True)
class SlotPlan:
    """The sends of a plan: who sends which chunk in which slot.

    Attributes
    ----------
    chunk, edge, start : array of uint32
        One entry per send, sorted by start; the start is the first slot, in real time.
    slots : int
        When the last send ends.
    least : int
        Slots below which there is no plan: proved.
    status : str
        ``"optimal"`` where slots and least are the same, else ``"feasible"``.
    how : str
        What ended the search: ``"bound"``, ``"solver"``, ``"time limit"``, ``"work"``, ``"windows"``.
    work : float
        What the solver did, in its own measure.
    """

    chunk: NDArray[np.uint32]
    edge: NDArray[np.uint32]
    start: NDArray[np.uint32]
    slots: int
    least: int
    status: str
    how: str
    work: float = 0.0

    def sends(self) -> list[Send]:
        """List the sends as tuples of chunk, edge, start."""
        return list(zip(self.chunk.tolist(), self.edge.tolist(), self.start.tolist(), strict=True))


def plan_of(problem: SlotProblem, sends: Iterable[Send], least: int, how: str) -> SlotPlan:
    """Make a plan of some sends in real time."""
    listed = sorted(sends, key=lambda send: (send[2], send[1], send[0]))
    slots = max(
        (start + slots_of(problem, chunk, edge) for chunk, edge, start in listed), default=0
    )
    chunk, edge, start = (np.array([s[i] for s in listed], dtype=np.uint32) for i in range(3))
    status = "optimal" if slots <= least else "feasible"
    return SlotPlan(chunk, edge, start, slots, min(least, slots), status, how)


def slots_of(problem: SlotProblem, chunk: int, edge: int) -> int:
    """Slots that a chunk takes over an edge."""
    return int(problem.edge_slots[edge, problem.chunk_class[chunk]])


def check(problem: SlotProblem, plan: SlotPlan) -> None:
    """Play a plan slot by slot, with the contributions of every sum kept apart.

    Reduced chunks are checked in real time as sums: each contribution must reach the end once, and
    nobody sends a partial sum before the last contribution to it has come in.

    Raises
    ------
    ValueError
        With the chunk, the edge and the slot of the first thing that is wrong.
    """
    _check_edges(problem, plan)
    by_chunk: dict[int, list[Send]] = {}
    for send in plan.sends():
        by_chunk.setdefault(send[0], []).append(send)
    for chunk in range(problem.chunks):
        sends = by_chunk.get(chunk, [])
        if problem.way(chunk) == FORWARD:
            _check_spread(problem, chunk, sends)
        else:
            _check_sum(problem, chunk, sends)
    ends = [start + slots_of(problem, chunk, edge) for chunk, edge, start in plan.sends()]
    if max(ends, default=0) != plan.slots:
        raise ValueError(f"the last send ends at slot {max(ends, default=0)}, not {plan.slots}")
    if plan.least > plan.slots:
        raise ValueError(f"the plan takes {plan.slots} slots, fewer than its bound {plan.least}")


def _check_edges(problem: SlotProblem, plan: SlotPlan) -> None:
    """One chunk at a time on an edge; sends in order, of chunks and edges that are there."""
    free: dict[int, int] = {}
    before = 0
    for chunk, edge, start in plan.sends():
        if chunk >= problem.chunks or edge >= problem.edges:
            raise ValueError(f"chunk {chunk} over edge {edge} at slot {start}: not there")
        if start < before:
            raise ValueError(f"chunk {chunk} over edge {edge} at slot {start}: out of order")
        if start < free.get(edge, 0):
            raise ValueError(f"chunk {chunk} over edge {edge} at slot {start}: the edge is busy")
        before = start
        free[edge] = start + slots_of(problem, chunk, edge)


def _check_spread(problem: SlotProblem, chunk: int, sends: list[Send]) -> None:
    held = dict.fromkeys(problem.holders[chunk], 0)
    for _, edge, start in sends:
        src, dst = int(problem.edge_src[edge]), int(problem.edge_dst[edge])
        if held.get(src, start + 1) > start:
            raise ValueError(
                f"chunk {chunk} over edge {edge} at slot {start}: NPU {src} does not hold it"
            )
        if dst in held:
            raise ValueError(
                f"chunk {chunk} over edge {edge} at slot {start}: NPU {dst} gets it twice"
            )
        held[dst] = start + slots_of(problem, chunk, edge)
    for npu in sorted(problem.wanted[chunk]):
        if npu not in held:
            raise ValueError(f"chunk {chunk} does not reach NPU {npu}")


def _check_sum(problem: SlotProblem, chunk: int, sends: list[Send]) -> None:
    """Contributions are moved when a send starts: what comes in later is left behind and found."""
    (root,) = problem.holders[chunk]
    parts: dict[int, set[int]] = {npu: {npu} for npu in problem.wanted[chunk] | {root}}
    coming: list[tuple[int, int, set[int]]] = []
    gone: set[int] = set()
    for _, edge, start in sends:
        for landing in [c for c in coming if c[0] <= start]:
            parts.setdefault(landing[1], set()).update(landing[2])
            coming.remove(landing)
        src, dst = int(problem.edge_src[edge]), int(problem.edge_dst[edge])
        if src in gone or src == root or not parts.get(src):
            raise ValueError(f"chunk {chunk} over edge {edge} at slot {start}: no sum to send")
        gone.add(src)
        coming.append((start + slots_of(problem, chunk, edge), dst, parts.pop(src)))
    for _, dst, part in coming:
        parts.setdefault(dst, set()).update(part)
    left = (problem.wanted[chunk] | {root}) - parts[root]
    if left:
        raise ValueError(f"chunk {chunk}: the part of NPU {min(left)} does not reach NPU {root}")


def turned(problem: SlotProblem, sends: Iterable[Send], slots: int) -> list[Send]:
    """Mirror the sends of reduced chunks, from real time or back to it; keep the others."""
    return [
        (
            chunk,
            edge,
            slots - start - slots_of(problem, chunk, edge)
            if problem.way(chunk) == BACKWARD
            else start,
        )
        for chunk, edge, start in sends
    ]


def useful(problem: SlotProblem, sends: Iterable[Send]) -> list[Send]:
    """Leave out sends to an NPU that does not want the chunk and does not pass it on."""
    left = list(sends)
    while True:
        leaving = {(c, int(problem.ends(problem.way(c))[0][e])) for c, e, _ in left}
        kept = []
        for send in left:
            to = int(problem.ends(problem.way(send[0]))[1][send[1]])
            if (send[0], to) in leaving or to in problem.wanted[send[0]]:
                kept.append(send)
        if len(kept) == len(left):
            return kept
        left = kept

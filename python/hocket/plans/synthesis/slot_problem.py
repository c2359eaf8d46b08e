"""Problems of the core as problems in slots, and plans in slots as timetables of the core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hocket._core import synthesis as core
from hocket.errors import InfeasibleError
from hocket.plans.slots import SlotPlan, SlotProblem

_MAX_SLOTS = 1 << 20
_FINEST = 8
_GOOD = 0.01

Sends = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint64]]
Chunk = tuple[int, int, list[int], list[int] | None]


def slot_length(problem: core.Problem) -> int:
    """Choose how long a slot is [ps]: the fastest edge takes up to eight.

    Costs are rounded up to whole slots; the longest slot is taken that adds at most 1 % to any, else
    the one that adds least.
    """
    delays = sorted({*problem.sum_delays, *problem.copy_delays})
    if not delays:
        return 1
    best = (float("inf"), 1)
    for parts in range(1, _FINEST + 1):
        length = -(-delays[0] // parts)
        added = max(-(-delay // length) * length / delay for delay in delays) - 1
        if added <= _GOOD:
            return length
        best = min(best, (added, length))
    return best[1]


@dataclass(frozen=True)
class Slots:
    """A problem of the core, discretised: its sums, its copies, or both at once.

    Attributes
    ----------
    problem
        In slots.
    ids
        The plan's chunk of each chunk.
    length
        How long a slot is [ps].
    """

    problem: SlotProblem
    ids: NDArray[np.uint32]
    length: int

    def warm(self, sums: Sends | None, copies: Sends | None) -> SlotPlan:
        """Return sends of a timetable of the discretised problem as a plan in slots."""
        place = {
            (int(chunk), bool(backwards)): at
            for at, (chunk, backwards) in enumerate(
                zip(self.ids, self.problem.backwards, strict=True)
            )
        }
        rows = []
        for backwards, sends in ((True, sums), (False, copies)):
            if sends is not None:
                for chunk, edge, start in zip(*(column.tolist() for column in sends), strict=True):
                    rows.append((start // self.length, edge, place[chunk, backwards]))
        rows.sort()
        start, edge, chunk = (np.array([row[i] for row in rows], np.uint32) for i in range(3))
        taken = self.problem.edge_slots[edge, self.problem.chunk_class[chunk]]
        slots = int((start + taken).max()) if rows else 0
        return SlotPlan(chunk, edge, start, slots, 0, "feasible", "greedy")

    def sends(self, plan: SlotPlan, backwards: bool, after: int = 0) -> Sends:
        """Return the plan's sums (`backwards`) or copies as sends of the core, `after` slots later."""
        kept = self.problem.backwards[plan.chunk] == backwards
        start = (plan.start[kept].astype(np.uint64) + np.uint64(after)) * np.uint64(self.length)
        return self.ids[plan.chunk[kept]], plan.edge[kept].astype(np.uint32), start


def slots_of(problem: core.Problem, length: int, *, sums: bool, copies: bool) -> Slots:
    """Discretise a problem's sums, its copies, or both on the same edges.

    Raises
    ------
    InfeasibleError
        Where an edge takes more slots than can be looked at one by one.
    """
    ends = np.array(problem.edges, np.uint32).reshape(-1, 2)
    npus = frozenset(range(problem.npus))
    columns: list[NDArray[np.int64]] = []
    parts: list[tuple[Sequence[Chunk], bool, int]] = []
    for wanted, chunks, delays, backwards in (
        (sums, problem.sum_chunks, problem.sum_delays, True),
        (copies, problem.copy_chunks, problem.copy_delays, False),
    ):
        if wanted and chunks:
            taken = -(-np.array(delays, np.int64).reshape(len(ends), -1) // length)
            parts.append((chunks, backwards, sum(column.shape[1] for column in columns)))
            columns.append(taken)
    edge_slots = np.concatenate(columns, axis=1) if columns else np.ones((len(ends), 1), np.int64)
    if edge_slots.size and edge_slots.max() > _MAX_SLOTS:
        raise InfeasibleError(
            None,
            f"a chunk takes {edge_slots.max()} slots of {length} ps over one link",
            "give a longer slot, or use greedy",
            "exact",
        )
    listed = [(chunk, backwards, first) for part, backwards, first in parts for chunk in part]
    slot_problem = SlotProblem(
        npus=problem.npus,
        edge_src=ends[:, 0],
        edge_dst=ends[:, 1],
        edge_slots=edge_slots.astype(np.uint32),
        chunk_class=np.array([first + chunk[1] for chunk, _, first in listed], np.uint32),
        backwards=np.array([backwards for _, backwards, _ in listed], np.bool_),
        holders=[frozenset(chunk[2]) for chunk, *_ in listed],
        wanted=[npus if chunk[3] is None else frozenset(chunk[3]) for chunk, *_ in listed],
    )
    ids = np.array([chunk[0] for chunk, *_ in listed], np.uint32)
    return Slots(slot_problem, ids, length)

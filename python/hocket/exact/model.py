"""The time-expanded network as a model for CP-SAT: who holds what when, what is sent when.

As in the integer program of TACOS (Won et al., section V-A): ``hold[c, n, t]`` and ``sent[c, e, t]``,
what is sent is held where it starts, one chunk on an edge at a time. What differs: variables that no
plan of this horizon can use are left out (a chunk cannot be there sooner than along a shortest path,
and must be able to go on to somebody who wants it), and each NPU gets a chunk once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.errors import SpecError
from hocket.exact.distance import Distances
from hocket.exact.plan import Send
from hocket.exact.problem import BACKWARD, SlotProblem

if TYPE_CHECKING:
    from types import ModuleType

BYTES_PER_SEND = 1500
"""Memory of a variable with its share of constraints and of what the solver makes of them."""

MISSING = "the exact synthesizer needs OR-Tools: pip install 'hocket[exact]'"


def cp_model() -> ModuleType:
    """OR-Tools, when it is needed.

    Raises
    ------
    SpecError
        When it is not installed.
    """
    try:
        from ortools.sat.python import cp_model as module
    except ImportError:
        raise SpecError(MISSING) from None
    return module  # type: ignore[no-any-return,unused-ignore]


@dataclass(frozen=True)
class Slot:
    """Sends that a horizon leaves room for: of one chunk over one edge, first and last start."""

    chunk: int
    edge: int
    first: int
    last: int


def windows(problem: SlotProblem, known: Distances, horizon: int) -> list[Slot]:
    """When each chunk can start over each edge, in the time of the chunk's own way."""
    found = []
    for chunk in range(problem.chunks):
        if not problem.missing(chunk):
            continue
        src, dst = problem.ends(problem.way(chunk))
        slots = problem.slots_of(chunk).astype(np.int64)
        first = known.early[chunk][src]
        last = horizon - slots - known.late[chunk][dst]
        useful = (first <= last) & (known.early[chunk][dst] > 0)
        for edge in np.flatnonzero(useful).tolist():
            found.append(Slot(chunk, edge, int(first[edge]), int(last[edge])))
    return found


def size_of(found: Iterable[Slot]) -> int:
    """How many sends windows leave to choose from."""
    return sum(slot.last - slot.first + 1 for slot in found)


class Model:
    """A model of one horizon.

    Parameters
    ----------
    problem : SlotProblem
        What is to be planned.
    known : Distances
        Its distances.
    horizon : int
        Slots that there are.
    partial : bool
        Leave out the demand that everything arrives; count what arrives instead.
    memory_limit : int or None
        Bytes that the model may take.
    """

    def __init__(
        self,
        problem: SlotProblem,
        known: Distances,
        horizon: int,
        *,
        partial: bool = False,
        memory_limit: int | None = None,
    ) -> None:
        self.problem, self.known, self.horizon, self.partial = problem, known, horizon, partial
        found = windows(problem, known, horizon)
        check_memory(size_of(found), memory_limit)
        self.model = cp_model().CpModel()
        self.sent: dict[Send, Any] = {}
        self._arrivals: dict[tuple[int, int], dict[int, list[Any]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self._leaving: dict[tuple[int, int], list[tuple[int, Any]]] = defaultdict(list)
        self._add_sends(found)
        self._add_congestion()
        self._add_holding()
        self._order_equal_chunks()

    def _add_sends(self, found: list[Slot]) -> None:
        for slot in found:
            src, dst = self.problem.ends(self.problem.way(slot.chunk))
            start_at, end_at = int(src[slot.edge]), int(dst[slot.edge])
            slots = int(self.problem.slots_of(slot.chunk)[slot.edge])
            for start in range(slot.first, slot.last + 1):
                variable = self.model.new_bool_var("")
                self.sent[slot.chunk, slot.edge, start] = variable
                self._arrivals[slot.chunk, end_at][start + slots].append(variable)
                self._leaving[slot.chunk, start_at].append((start, variable))

    def _add_congestion(self) -> None:
        """One chunk on an edge in each slot of real time."""
        users: dict[tuple[int, int], list[Any]] = defaultdict(list)
        for (chunk, edge, start), variable in self.sent.items():
            slots = int(self.problem.slots_of(chunk)[edge])
            begin = start
            if self.problem.way(chunk) == BACKWARD:
                begin = self.horizon - start - slots
            for slot in range(begin, begin + slots):
                users[edge, slot].append(variable)
        for variables in users.values():
            if len(variables) > 1:
                self.model.add_at_most_one(variables)

    def _add_holding(self) -> None:
        """Hold what arrives from then on; send only what is held."""
        self.goals: list[Any] = []
        for chunk in range(self.problem.chunks):
            for npu in sorted(self.problem.missing(chunk)):
                self._arrivals[chunk, npu]  # an NPU that nothing reaches in time has no arrivals
        for (chunk, npu), arrivals in self._arrivals.items():
            variables = [variable for slot in arrivals.values() for variable in slot]
            if npu not in self.problem.missing(chunk):
                self.model.add_at_most_one(variables)
            elif self.partial:
                self.model.add_at_most_one(variables)
                self.goals += variables
            elif variables:
                self.model.add_exactly_one(variables)
            else:
                self.model.add_bool_or([])
            self._hold(arrivals, self._leaving.get((chunk, npu), []))

    def _hold(self, arrivals: dict[int, list[Any]], leaving: list[tuple[int, Any]]) -> None:
        if not leaving:
            return
        held = None
        hold_at: dict[int, Any] = {}
        for slot in sorted(arrivals):
            now = self.model.new_bool_var("")
            came = arrivals[slot] + ([held] if held is not None else [])
            self.model.add(sum(came) == now)
            held = hold_at[slot] = now
        times = sorted(hold_at)
        for start, variable in leaving:
            before = [slot for slot in times if slot <= start]
            if before:
                self.model.add_implication(variable, hold_at[before[-1]])
            else:
                self.model.add(variable == 0)

    def _order_equal_chunks(self) -> None:
        """Chunks that could change names arrive at one NPU that wants them in the order of names."""
        kinds: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for chunk in range(self.problem.chunks):
            missing = self.problem.missing(chunk)
            if missing:
                held = frozenset(self.problem.holders[chunk])
                size_class = int(self.problem.chunk_class[chunk])
                kinds[held, missing, size_class, self.problem.way(chunk)].append(chunk)
        for (_, missing, _, _), chunks in kinds.items():
            npu = max(missing, key=lambda n: (int(self.known.early[chunks[0], n]), n))
            if self.partial:
                continue
            for one, other in pairwise(chunks):
                self.model.add(self._arrival(one, npu) <= self._arrival(other, npu))

    def _arrival(self, chunk: int, npu: int) -> Any:
        arrivals = self._arrivals[chunk, npu]
        return sum(slot * variable for slot, some in arrivals.items() for variable in some)

    def hint(self, sends: Iterable[Send]) -> None:
        """Suggest sends, in the time of their way."""
        suggested = set(sends)
        for key, variable in self.sent.items():
            self.model.add_hint(variable, key in suggested)


def check_memory(sends: int, memory_limit: int | None) -> None:
    """Refuse a model that is too large."""
    needed = sends * BYTES_PER_SEND
    if memory_limit is not None and needed > memory_limit:
        raise SpecError(
            f"the exact model has {sends} sends to choose from and needs about {needed} bytes; "
            f"{memory_limit} are allowed"
        )

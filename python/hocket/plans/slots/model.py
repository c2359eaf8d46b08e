"""The time-expanded network as a model for CP-SAT: who holds what from when, what is sent when.

As in the integer program of TACOS (Won et al., section V-A): a chunk is held where a send of it starts,
and there is one chunk on an edge at a time. What differs: ``hold[c, n, t]`` and ``sent[c, e, t]`` are not
one boolean for each slot. An NPU gets a chunk once, so that ``hold`` is the slot from which on it has it;
a send is an optional interval on its edge. The two say the same, and this one is several times as quick
to solve and to refute. Sends that no plan of the horizon can use are left out: a chunk cannot be there
sooner than along a shortest path, and must be able to go on to somebody who wants it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.errors import SpecError
from hocket.plans.slots.distance import Distances
from hocket.plans.slots.plan import Send
from hocket.plans.slots.problem import BACKWARD, SlotProblem

if TYPE_CHECKING:
    from types import ModuleType

BYTES_PER_SEND = 30_000
"""Memory of a chunk on an edge: its variables and constraints, and what the solver makes of them."""

MISSING = "needs OR-Tools: pip install 'hocket[exact]'"


def cp_model(who: str = "the exact synthesizer") -> ModuleType:
    """OR-Tools, when it is needed.

    Raises
    ------
    SpecError
        When it is not installed.
    """
    try:
        from ortools.sat.python import cp_model as module
    except ImportError:
        raise SpecError(None, f"{who} {MISSING}") from None
    return module  # type: ignore[no-any-return,unused-ignore]


@dataclass(frozen=True)
class Window:
    """Sends that a horizon leaves room for: of one chunk over one edge, first and last start."""

    chunk: int
    edge: int
    first: int
    last: int


def windows(problem: SlotProblem, known: Distances, horizon: int) -> list[Window]:
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
            found.append(Window(chunk, edge, int(first[edge]), int(last[edge])))
    return found


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
        self.problem, self.horizon, self.partial = problem, horizon, partial
        found = windows(problem, known, horizon)
        check_memory(len(found), memory_limit)
        self.model = cp_model().CpModel()
        self.sent: dict[tuple[int, int], Any] = {}
        self.start: dict[tuple[int, int], Any] = {}
        self.held: dict[tuple[int, int], Any] = {}
        self.goals: list[Any] = []
        self._last: dict[tuple[int, int], Window] = {}
        self._into: dict[tuple[int, int], list[Any]] = defaultdict(list)
        self._busy: dict[int, list[Any]] = defaultdict(list)
        for window in found:
            self._add_send(window, known)
        self._add_receptions()
        for intervals in self._busy.values():
            self.model.add_no_overlap(intervals)
        if not partial:
            self._order_equal_chunks(known)

    def _add_send(self, window: Window, known: Distances) -> None:
        """Send no sooner than the chunk is held; hold it where it goes when the send ends."""
        chunk, edge = window.chunk, window.edge
        src, dst = (int(end[edge]) for end in self.problem.ends(self.problem.way(chunk)))
        slots = int(self.problem.slots_of(chunk)[edge])
        sent = self.model.new_bool_var("")
        start = self.model.new_int_var(window.first, window.last, "")
        self.sent[chunk, edge], self.start[chunk, edge] = sent, start
        self._last[chunk, edge] = window
        self._into[chunk, dst].append(sent)
        for npu in (src, dst):
            if (chunk, npu) not in self.held and npu not in self.problem.holders[chunk]:
                first, rest = int(known.early[chunk, npu]), int(known.late[chunk, npu])
                self.held[chunk, npu] = self.model.new_int_var(first, self.horizon - rest, "")
        if src not in self.problem.holders[chunk]:
            self.model.add(start >= self.held[chunk, src]).only_enforce_if(sent)
        self.model.add(self.held[chunk, dst] == start + slots).only_enforce_if(sent)
        real = start
        if self.problem.way(chunk) == BACKWARD:
            latest = self.horizon - slots
            real = self.model.new_int_var(latest - window.last, latest - window.first, "")
            self.model.add(real == latest - start)
        interval = self.model.new_optional_fixed_size_interval_var(real, slots, sent, "")
        self._busy[edge].append(interval)

    def _add_receptions(self) -> None:
        """Receive once what is wanted, at most once what is not; send only what was received."""
        problem = self.problem
        for chunk in range(problem.chunks):
            for npu in sorted(problem.missing(chunk)):
                into = self._into[chunk, npu]
                if self.partial:
                    self.goals += into
                else:
                    self.model.add_exactly_one(into)
        for into in self._into.values():
            self.model.add_at_most_one(into)
        for (chunk, edge), sent in self.sent.items():
            src = int(problem.ends(problem.way(chunk))[0][edge])
            sure = src in problem.missing(chunk) and not self.partial
            if src not in problem.holders[chunk] and not sure:
                self.model.add_bool_or([sent.negated(), *self._into.get((chunk, src), [])])

    def _order_equal_chunks(self, known: Distances) -> None:
        """Make interchangeable chunks arrive at one NPU in the order of their names."""
        kinds: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for chunk in range(self.problem.chunks):
            missing = self.problem.missing(chunk)
            if missing:
                holders = frozenset(self.problem.holders[chunk])
                size_class = int(self.problem.chunk_class[chunk])
                kinds[holders, missing, size_class, self.problem.way(chunk)].append(chunk)
        for (_, missing, _, _), chunks in kinds.items():
            npu = max(missing, key=lambda n: (int(known.early[chunks[0], n]), n))
            for one, other in pairwise(chunks):
                if (one, npu) in self.held and (other, npu) in self.held:
                    self.model.add(self.held[one, npu] <= self.held[other, npu])

    def hint(self, sends: Iterable[Send]) -> None:
        """Suggest sends, in the time of their way."""
        suggested = {(chunk, edge): start for chunk, edge, start in sends}
        for key, sent in self.sent.items():
            self.model.add_hint(sent, key in suggested)
            if key in suggested:
                window = self._last[key]
                start = min(max(suggested[key], window.first), window.last)
                self.model.add_hint(self.start[key], start)


def check_memory(sends: int, memory_limit: int | None) -> None:
    """Refuse a model that is too large."""
    needed = sends * BYTES_PER_SEND
    if memory_limit is not None and needed > memory_limit:
        raise SpecError(
            None,
            f"the exact model has {sends} sends to choose from and needs about {needed} bytes",
            f"{memory_limit} are allowed",
        )

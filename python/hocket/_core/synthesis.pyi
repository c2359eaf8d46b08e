"""Plans for any network: problems, timetables, and the quickest plan of all unwindings."""

from collections.abc import Callable
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from hocket._core import Collective, Plan, Topology

__all__ = ["Candidate", "Problem", "Timetables", "unwindings"]

_U32: TypeAlias = npt.NDArray[np.uint32]
_U64: TypeAlias = npt.NDArray[np.uint64]

@final
class Timetables:
    """Who sends what when: sums, then copies."""

    @property
    def end_ps(self) -> int:
        """When all is done [ps]."""

    def __len__(self) -> int: ...

_Sends: TypeAlias = tuple[_U32, _U32, _U64]
"""Chunk of the plan, edge, start [ps] of each send."""

_Chunk: TypeAlias = tuple[int, int, list[int], list[int] | None]
"""Chunk of the plan, position of its size, holders, who wants it (None: every NPU)."""

@final
class Problem:
    """A collective on a network whose switches are unwound into edges between NPUs.

    What is summed is described mirrored in time: holders are where a sum must end, wanted is who adds
    to it. Costs are listed edge by edge, size by size.
    """

    def __new__(
        cls,
        topology: Topology,
        collective: Collective,
        pieces: int,
        unwinding: list[str],
        latency: str,
        memory_limit: int,
    ) -> Problem:
        """Raise SpecError for an unknown unwinding, or more than fits in memory."""

    def discretised(self, factor_ps: int) -> Problem:
        """Give the problem with every cost rounded up to whole slots."""

    @property
    def npus(self) -> int: ...
    @property
    def edges(self) -> list[tuple[int, int]]:
        """Ends of each edge."""

    @property
    def sum_chunks(self) -> list[_Chunk]: ...
    @property
    def copy_chunks(self) -> list[_Chunk]: ...
    @property
    def sum_delays(self) -> list[int]:
        """From the start of a send of each size over each edge until it is there [ps]."""

    @property
    def copy_delays(self) -> list[int]:
        """As ``sum_delays``, of what is copied."""

    @property
    def least_ps(self) -> int:
        """A lower bound on the end of any timetable [ps]."""

    def greedy(
        self,
        seed: int,
        trials: int,
        *,
        time_limit: float | None = None,
        progress: Callable[[str, int, int], object] | None = None,
    ) -> Timetables:
        """Match greedily; the best of the trials so far when the time limit [s] ends."""

    def compact(
        self, seed: int, *, progress: Callable[[str, int, int], object] | None = None
    ) -> tuple[int, int, int]:
        """Match slot by slot, check, and give slots, sends and end [ps]: no plan, little memory."""

    @property
    def transfers(self) -> int:
        """Transfers of a plan in which nobody passes on what he does not want."""

    def greedy_apart(self, seed: int, trials: int) -> Timetables:
        """Match greedily, no copy before the last sum has ended."""

    def timetables(
        self,
        *,
        sum_chunk: _U32,
        sum_edge: _U32,
        sum_start: _U64,
        copy_chunk: _U32,
        copy_edge: _U32,
        copy_start: _U64,
    ) -> Timetables:
        """Make timetables of sends; SpecError where they do not do what is asked."""

    def sends(self, timetables: Timetables) -> tuple[_Sends, _Sends]:
        """Give the sends of sums, then of copies, in the order of their starts."""

@final
class Candidate:
    """A synthesized plan, proved and simulated at link fidelity when somebody asks when it ends."""

    def __new__(
        cls,
        problem: Problem,
        timetables: Timetables,
        unwinding: list[str],
        latency: str,
        algorithm: str,
    ) -> Candidate:
        """Make one of timetables from elsewhere."""

    @property
    def problem(self) -> Problem: ...
    @property
    def unwinding(self) -> list[str]:
        """One entry for all switches, or one for each dimension."""

    @property
    def plan(self) -> Plan:
        """The plan, verified if it was simulated."""

    @property
    def end_ps(self) -> int | None:
        """When its timetable ends; None of a plan made without one."""

    @property
    def is_simulated(self) -> bool:
        """Whether its time is simulated; that of a large plan is when its timetable ends."""

    @property
    def time_ps(self) -> int:
        """When the plan ends [ps]."""

    def routed(self, routing: str) -> Candidate:
        """Spread the plan over equal paths; balanced only where that is no slower."""

def unwindings(topology: Topology) -> list[list[str]]:
    """Unwindings worth trying: each one entry for all switches, or one for each dimension."""

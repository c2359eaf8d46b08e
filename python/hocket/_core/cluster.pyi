"""Training jobs on a fabric, as the Rust core runs them."""

from collections.abc import Callable, Sequence
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from hocket._core import Plan, Topology, _Immutable
from hocket._core.routing import Fabric

__all__ = ["Outcome", "Pattern", "simulate"]

_Flow: TypeAlias = tuple[int, int, int]
_Job: TypeAlias = tuple[str, int, list[int], Pattern | None, list[list[tuple[int, int]]]]
_Witness: TypeAlias = tuple[int, bool, str, int | None, int, int, int, int]

@final
class Pattern:
    """The plan of every group of a job in a communication phase, for ranks 0, 1, ..."""

    def __new__(cls, plan: Plan, lock_step: bool) -> Pattern: ...
    @property
    def channels(self) -> list[tuple[int, int, int]]:
        """Pairs of ranks, source and destination, that share a connection, and the bytes over it."""

@final
class Outcome(_Immutable):
    """The course of jobs."""

    @staticmethod
    def of_rows(
        topology: Topology,
        jobs: int,
        time_ps: int,
        iterations: Sequence[tuple[int, int, int, int, int, int, int, float, int]],
        decisions: Sequence[tuple[int, int, int, int, int, _Witness | None, bool, bool]],
        link_bytes: npt.NDArray[np.uint64],
        rates: Sequence[tuple[int, int, float]],
        computed_ahead: int,
        paths: tuple[Sequence[tuple[int, int, int]], Sequence[Sequence[int]]] | None,
        seconds: Sequence[list[float]],
    ) -> Outcome:
        """Make an outcome again; that its times are those of the jobs is not checked."""
    @property
    def time_ps(self) -> int: ...
    @property
    def iterations(self) -> list[tuple[int, int, int, int, int, int, float, float, int]]:
        """In order of their ends.

        Job, index, when it began to compute, when its flows could start, when the last arrived [ps],
        flows, their completion times added up [s], their throughputs added up [bytes/s], the longest
        completion time [ps].
        """
    @property
    def decisions(self) -> list[tuple[int, int, int, int, int, bool, bool, str]]:
        """The actions of the controller.

        When [ps], flows, moved, largest load, its bound, whether foreseen, whether after a failure, and
        the argument for the bound.
        """
    @property
    def routing_seconds(self) -> tuple[list[float], list[float]]:
        """The time of each call of the router: those waited for, and those ahead of time."""
    @property
    def computed_ahead(self) -> int: ...
    @property
    def link_bytes(self) -> npt.NDArray[np.uint64]: ...
    @property
    def rates(self) -> list[tuple[int, int, float]]:
        """Changes of what a job sends in all: when [ps], job, rate [bytes/s]."""

    @property
    def paths(self) -> tuple[list[tuple[int, int, int]], list[list[int]]] | None:
        """When [ps] which flow between ToRs was given which path, in order, and the links of each path.

        None where they are more than 400,000, or packets take all paths.
        """

def simulate(
    topology: Topology,
    fabric: Fabric,
    jobs: Sequence[_Job],
    *,
    scheme: str | Callable[[Fabric, list[_Flow], list[int], list[int]], list[int]],
    seed: int = 0,
    options: tuple[str, int, bool, int | None],
    order: str = "job",
    reroute: str = "always",
    host_rate: int,
    answer_ps: int = 0,
    look_ahead: int = 0,
    failover: bool = False,
    outages: Sequence[tuple[int, list[int]]] | None = None,
    rate_slack_ppm: int | None = None,
    by_bytes: bool = False,
    keep_rates: bool = False,
    max_moves: int = 0,
    progress: Callable[[str, int, int], object] | None = None,
) -> Outcome:
    """Run jobs.

    A job is its name, arrival [ps], computation by iteration [ps], pattern, and groups of (NIC, host) by
    rank; an outage a time [ps] and links; options are as of ``routing.assign``. A scheme that is a function
    is given flows, the job of each, and the fabric less what has failed, and gives choices.
    """

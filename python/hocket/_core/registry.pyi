"""What is known of each algorithm before there is a network."""

from collections.abc import Sequence
from typing import Literal, final

from hocket._core import Collective, Topology

__all__ = ["Entry", "check_size", "chunk_ladder", "default_chunks", "entries"]

@final
class Entry:
    """An algorithm: what it is called, does, uses and makes its plans of."""

    @property
    def name(self) -> str:
        """Its name, such as halving-doubling."""

    @property
    def summary(self) -> str:
        """What it does, in a line."""

    @property
    def kinds(self) -> list[str]:
        """The kinds of collective that it implements."""

    @property
    def uses(self) -> list[str]:
        """Options of planning that it uses, of those that not all algorithms do."""

    @property
    def making(self) -> Literal["rule", "schedule", "routes", "synthesis", "solver", "choice"]:
        """What its plan is made of: a rule, a schedule of dimensions, trees or flows, or a search.

        The core plans by these; ``solver`` and ``choice`` take more than that.
        """

    @property
    def promise(self) -> int:
        """What it promises where it can run: ``auto`` tries those first that promise more; 0 to 100."""

    @property
    def has_schedule(self) -> bool:
        """Whether it schedules dimensions; hierarchical does, and has plans of its own."""

    @property
    def is_compared(self) -> bool:
        """Whether it plans in no more than a few seconds, so that comparisons have it unasked."""

    @property
    def is_general(self) -> bool:
        """Whether any network will do for it, so that its refusal says what is wrong with one."""

    @property
    def in_core(self) -> bool:
        """Whether ``plan`` of the core makes its plans; Python makes those of the others."""

def entries() -> list[Entry]:
    """Every algorithm of hocket, in the order in which they are listed."""

def check_size(
    kind: str,
    npus: int,
    dimensions: Sequence[tuple[str, int, int, int] | tuple[str, int, int, int, bool]],
    algorithm: str | None,
    chunks: int | None,
    memory_limit: int,
) -> None:
    """Refuse a plan, or without an algorithm a greedy timetable, that is too large on any such network.

    What ``auto`` makes may be any algorithm's, and is let through.
    """

def default_chunks(topology: Topology, collective: Collective, algorithm: str) -> int:
    """Slices that an algorithm cuts the data into where none are given; 1 for ``auto``, which chooses."""

def chunk_ladder(topology: Topology, collective: Collective, algorithm: str) -> list[int]:
    """Numbers of chunks worth trying, ascending; InfeasibleError as ``plan``.

    One of an algorithm that searches for long, its default; none for ``trees``,
    ``flows`` and ``auto``, which choose.
    """

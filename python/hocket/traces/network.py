"""The times of a trace's calls: shapes for collectives of any ranks, and for messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from hocket import _core
from hocket._core.iteration import Shape
from hocket.collectives.collective import Progress
from hocket.errors import InfeasibleError
from hocket.traces.placement import portions_of, whole
from hocket.training.network import (
    CHUNKS,
    IDEAL,
    NOTHING,
    DimensionNetwork,
    PlanNetwork,
    does,
    has_dimensions,
    is_on_dimensions,
)
from hocket.training.parallel import Group

OTHERWISE = {
    "all-reduce": "ring",
    "reduce-scatter": "ring",
    "all-gather": "ring",
    "all-to-all": "direct",
    "broadcast": "binomial",
    "reduce": "binomial",
    "gather": "binomial",
    "scatter": "binomial",
}
"""What plans collectives that the algorithm does not do: what is quick to plan, of any ranks anywhere."""
_SCHEDULED = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all")


@dataclass
class TraceNetwork:
    """The shape of each call of a trace, whose rank r is NPU r.

    Attributes
    ----------
    shapes
        Shapes, to which the numbers given refer.
    """

    topology: _core.Topology
    algorithm: str
    chunks: int | None = None
    progress: Progress | None = None
    cache: bool = True
    shapes: list[Shape] = field(default_factory=list)
    _odd: dict[str, dict[tuple[int, ...], None]] = field(default_factory=dict)
    _by_plan: dict[tuple[str, int | None], PlanNetwork] = field(default_factory=dict)
    _why: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._on_dimensions = is_on_dimensions(self.topology, self.algorithm)
        self._nothing: int | None = None
        self._all: Group | None = None
        if has_dimensions(self.topology):
            self._all = Group(self.topology.npu_count, whole(self.topology))

    def collective(self, kind: str, ranks: tuple[int, ...], size: int) -> int:
        """Return the place among `shapes` of a collective; `size` as of :func:`collective_on`."""
        if len(ranks) == 1 or size == 0 or self.algorithm == NOTHING:
            return self._no_time()
        if self._on_dimensions and (kind in _SCHEDULED or self.algorithm == IDEAL):
            portions = portions_of(self.topology, ranks)
            if portions is not None:
                return self._by_dimensions.collective(kind, Group(len(ranks), portions), size)
            self._odd.setdefault(kind, {}).setdefault(ranks)
        elif self._on_dimensions:
            self._note(kind, f"{self.algorithm} does no {kind}")
        return self._planned(kind, Group(len(ranks), None, (ranks,)), size)

    def message(self, source: int, target: int, size: int) -> int:
        """Return the place among `shapes` of a message from a rank to another."""
        if source == target or self.algorithm == NOTHING:
            return self._no_time()
        if self._all is not None:
            return self._by_dimensions.message(self._all, source, target, size)
        pair = Group(2, None, ((source, target),))
        return self._plans("direct").collective("broadcast", pair, max(size, 1))

    def _planned(self, kind: str, group: Group, size: int) -> int:
        if not self._on_dimensions:
            why = f"{self.algorithm} does no {kind}"
            if does(self.algorithm, kind):
                try:
                    return self._plans(self.algorithm, self.chunks).collective(kind, group, size)
                except InfeasibleError as error:
                    if self.algorithm == OTHERWISE[kind]:
                        raise
                    why = str(error.but(remedy=None))
            self._note(kind, why)
        return self._plans(OTHERWISE[kind]).collective(kind, group, size)

    def _no_time(self) -> int:
        if self._nothing is None:
            self._nothing = len(self.shapes)
            self.shapes.append(Shape.timed(0, 0))
        return self._nothing

    def _note(self, kind: str, why: str) -> None:
        self._why.setdefault(f"{kind}: {why}; planned by {OTHERWISE[kind]} and timed alone")

    @property
    def notes(self) -> tuple[str, ...]:
        """The calls that the algorithm did not do, and their replacement."""
        odd = [
            f"{kind} of ranks {_listed(next(iter(groups)))}{_more(len(groups) - 1)}: these are no product "
            f"of parts of dimensions; planned by {OTHERWISE[kind]} and timed alone"
            for kind, groups in self._odd.items()
        ]
        return (*self._why, *odd)

    def _plans(self, algorithm: str, chunks: int | None = None) -> PlanNetwork:
        key = (algorithm, chunks)
        if key not in self._by_plan:
            self._by_plan[key] = PlanNetwork(
                self.topology,
                algorithm,
                chunks,
                self.progress,
                shapes=self.shapes,
                cache=self.cache,
            )
        return self._by_plan[key]

    @cached_property
    def _by_dimensions(self) -> DimensionNetwork:
        chunks = CHUNKS if self.chunks is None else self.chunks
        return DimensionNetwork(
            self.topology, self.algorithm, chunks, self.progress, shapes=self.shapes
        )


def _listed(ranks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")


def _more(groups: int) -> str:
    return f" and {groups:,} more group{'s'[: groups != 1]}" if groups else ""

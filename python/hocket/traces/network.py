"""What calls of a trace take: shapes for collectives of any ranks, and for messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from hocket import _core
from hocket._core.iteration import Shape
from hocket.collectives import Progress
from hocket.errors import InfeasibleError, SpecError
from hocket.scheduling import check_rails
from hocket.traces.placing import portions_of, whole
from hocket.training.network import (
    CHUNKS,
    IDEAL,
    NOTHING,
    DimensionNetwork,
    Network,
    PlanNetwork,
    is_on_dimensions,
)
from hocket.training.parallel import Group

__all__ = ["ANYWHERE", "TraceNetwork"]

ANYWHERE = "greedy"
"""What plans collectives that the algorithm does not do."""
_SCHEDULED = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all")


@dataclass
class TraceNetwork:
    """Gives a shape for each call of a trace, whose rank r is NPU r.

    Attributes
    ----------
    notes
        What was not done by the algorithm, and how instead.
    shapes
        Shapes, to which the numbers given refer.
    """

    topology: _core.Topology
    algorithm: str
    chunks: int | None = None
    progress: Progress | None = None
    shapes: list[Shape] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._on_dimensions = is_on_dimensions(self.topology, self.algorithm)
        self._nothing: int | None = None

    def collective(self, kind: str, ranks: tuple[int, ...], size: int) -> int:
        """Give the place among `shapes` of a collective; `size` as of :func:`collective_on`."""
        if len(ranks) == 1 or size == 0 or self.algorithm == NOTHING:
            return self._no_time()
        if self._on_dimensions and (kind in _SCHEDULED or self.algorithm == IDEAL):
            portions = portions_of(self.topology, ranks)
            if portions is not None:
                group = Group(len(ranks), portions)
                network, size = self._cut(self._by_dimensions, self._whole_dimensions, group, size)
                return network.collective(kind, group, size)
            self._note(f"ranks {_listed(ranks)} are no product of parts of dimensions", kind)
        elif self._on_dimensions:
            self._note(f"{self.algorithm} does no {kind}", kind)
        return self._planned(kind, Group(len(ranks), None, (ranks,)), size)

    def message(self, source: int, target: int, size: int) -> int:
        """Give the place among `shapes` of a message from a rank to another."""
        if source == target or self.algorithm == NOTHING:
            return self._no_time()
        if self._has_rails:
            group = Group(self.topology.npu_count, whole(self.topology))
            return self._by_dimensions.message(group, source, target, size)
        pair = Group(2, None, ((source, target),))
        return self._by_plan.message(pair, 0, 1, max(size, 1))

    def _planned(self, kind: str, group: Group, size: int) -> int:
        if not self._on_dimensions:
            network, size_ = self._cut(self._by_plan, self._whole_plan, group, size)
            try:
                return network.collective(kind, group, size_)
            except InfeasibleError as error:
                if self.algorithm == ANYWHERE:
                    raise
                self._note(str(error).partition("; ")[0], kind)
        network, size = self._cut(self._anywhere, self._anywhere, group, size)
        return network.collective(kind, group, size)

    def _cut(self, many: Network, one: Network, group: Group, size: int) -> tuple[Network, int]:
        """Choose chunks: one where there are too few bytes, of which each chunk has two a rank."""
        least = 2 * group.size
        is_small = size < least * (many.chunks or CHUNKS)
        return (one, max(size, least)) if is_small else (many, size)

    def _no_time(self) -> int:
        if self._nothing is None:
            self._nothing = len(self.shapes)
            self.shapes.append(Shape.timed(0, self._free_server()))
        return self._nothing

    def _free_server(self) -> int:
        """Give the first of an NPU's servers that nothing else uses, so that nothing waits there."""
        kinds = [kind for kind, *_ in self.topology.dimensions]
        return max((34 if "FullyConnected" in kinds else 2) * len(kinds), 1)

    def _note(self, why: str, kind: str) -> None:
        note = f"{kind}: {why}; planned by {ANYWHERE} and timed alone"
        if note not in self.notes:
            self.notes.append(note)

    @cached_property
    def _has_rails(self) -> bool:
        if not self.topology.dimensions:
            return False
        try:
            check_rails(self.topology)
        except SpecError:
            return False
        return True

    def _dimensions(self, chunks: int | None) -> DimensionNetwork:
        return DimensionNetwork(
            self.topology, self.algorithm, chunks, self.progress, shapes=self.shapes
        )

    def _plans(self, algorithm: str, chunks: int | None) -> PlanNetwork:
        return PlanNetwork(self.topology, algorithm, chunks, self.progress, shapes=self.shapes)

    @cached_property
    def _by_dimensions(self) -> DimensionNetwork:
        return self._dimensions(CHUNKS if self.chunks is None else self.chunks)

    @cached_property
    def _whole_dimensions(self) -> DimensionNetwork:
        return self._dimensions(1)

    @cached_property
    def _by_plan(self) -> PlanNetwork:
        return self._plans(self.algorithm, self.chunks)

    @cached_property
    def _whole_plan(self) -> PlanNetwork:
        return self._plans(self.algorithm, 1)

    @cached_property
    def _anywhere(self) -> PlanNetwork:
        return self._plans(ANYWHERE, None)


def _listed(ranks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")

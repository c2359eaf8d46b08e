"""The outcome of a collective at any fidelity: time, rates, use of dimensions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hocket import _core
from hocket._results import Column, Result, figure, picoseconds, said

if TYPE_CHECKING:
    from hocket.collectives.timing import Switching


@dataclass(frozen=True)
class DimensionUse(Result):
    """The use of one dimension of a product topology in a run."""

    kind: str
    """Ring, Line, FullyConnected or Switch."""
    size: int
    """NPUs along it."""
    bandwidth: float = field(metadata=said("bandwidth_bytes_per_s"))
    """What one NPU can send over it, all its links together; the mean over the NPUs [bytes/s]."""
    bytes: int
    """What all NPUs sent over it, also on behalf of others."""
    utilization: float
    """Bytes / (bandwidth x NPUs x time), 0 to 1."""


@dataclass(frozen=True)
class Task(Result):
    """A collective on a topology."""

    collective: str
    topology: str
    npus: list[int]
    """Participants in rank order."""
    root: int | None
    """The root's number as an NPU."""
    size_bytes: int
    in_place: bool


def task_of(made: _core.Collective, topology: _core.Topology) -> Task:
    """Return what results say of a collective on a topology."""
    npus, root = made.npus, made.root
    where = None if root is None else npus[root]
    return Task(made.name, topology.name, npus, where, made.size, made.in_place)


class OnCollective(Result):
    """A result about `collective` on `topology`, attributes of it."""

    @property
    @figure(inline=Task)
    def _task(self: Any) -> Task:
        return task_of(self.collective, self.topology)


@dataclass(frozen=True)
class BoundParts(Result):
    """A lower bound with its witness."""

    time_ps: int
    witness: str
    components_ps: dict[str, int]
    exact_cut: bool
    exact_partition: bool
    relays: str | None
    """What NPUs may do with data that they neither hold nor want; None if nobody could sum or copy."""


def bound_parts(bound: _core.Bound) -> BoundParts:
    """Return what results say of a bound."""
    parts = dict(bound.components)
    exact = (bound.exact_cut, bound.exact_partition)
    return BoundParts(bound.time_ps, bound.witness, parts, *exact, bound.relays)


def bound_ps(bound: _core.Bound) -> int:
    """Return the time of a bound."""
    return bound.time_ps


@dataclass(frozen=True)
class _Dimensions(Result):
    """Figures of the dimensions; None where the topology is not a product."""

    dimensions: list[DimensionUse] | None = None
    weighted_utilization: float | None = field(default=None, metadata=said(column=False))
    ideal_ps: int | None = field(default=None, metadata=said(column=False))


class Outcome(Result, ABC):
    """Time, rates, distance to the bound, and use of the dimensions.

    Times are seconds (``float``) unless the name ends in ``_ps`` (whole picoseconds); rates are
    bytes per second.
    """

    def __getstate__(self) -> dict[str, object]:
        """Leave out what can be computed again."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    @property
    @abstractmethod
    @figure(column=False)
    def fidelity(self) -> str:
        """The fidelity of the simulation."""

    @property
    @abstractmethod
    @figure(column=Column("time", leaves=0))
    def time_ps(self) -> int:
        """Collective time [ps]."""

    @property
    @abstractmethod
    def collective(self) -> _core.Collective:
        """The collective that was carried out."""

    @property
    @abstractmethod
    def topology(self) -> _core.Topology:
        """On what."""

    @property
    @abstractmethod
    def _dimension_report(self) -> _core.DimensionReport: ...

    @property
    def time(self) -> float:
        """Collective time [s]."""
        return self.time_ps * 1e-12

    @property
    @figure("algbw_bytes_per_s", column=Column("algbw", leaves=2))
    def algbw(self) -> float:
        """Size / time [bytes/s]; 0 ps count as 1 ps.

        References
        ----------
        nccl-tests, doc/PERFORMANCE.md.
        """
        return _core.rates(self.collective, self.time_ps)[0]

    @property
    @figure("busbw_bytes_per_s", column=Column("busbw", leaves=3))
    def busbw(self) -> float:
        """Algbw times the collective's factor, e.g. 2 (n-1) / n for all-reduce [bytes/s].

        References
        ----------
        nccl-tests, doc/PERFORMANCE.md.
        """
        return _core.rates(self.collective, self.time_ps)[1]

    @property
    @abstractmethod
    @figure("bound_ps", of=bound_ps, column=Column("bound", leaves=6))
    def lower_bound(self) -> _core.Bound:
        """The lower bound on any plan's time at this fidelity, with its witness."""

    @property
    def bound(self) -> float:
        """Lower bound on the time of any plan for this collective here [s]."""
        return self.lower_bound.time_ps * 1e-12

    @property
    @figure(column=Column("gap", leaves=0))
    def gap(self) -> float:
        """The gap to the bound: time / bound - 1, where 0 ps count as 1 ps."""
        return _core.gap(self.time_ps, self.lower_bound.time_ps)

    @property
    @abstractmethod
    @figure()
    def utilization(self) -> float:
        """The share of all bandwidth that was used, 0 to 1."""

    @property
    @abstractmethod
    @figure(column=False)
    def switching(self) -> Switching:
        """The switching of the devices: how they passed messages on."""

    @property
    def dimensions(self) -> list[DimensionUse]:
        """Use of each dimension of more than one NPU, in the topology's order.

        Raises
        ------
        SpecError
            If the topology is not a product; so do the other figures of dimensions.
        """
        return [DimensionUse(*row) for row in self._dimension_report.dimensions]

    @property
    def weighted_utilization(self) -> float:
        """Mean of the dimensions' utilization, their bandwidth the weight, 0 to 1.

        References
        ----------
        "Average BW Utilization" of Rashidi et al.: Themis, ISCA 2022, section 3.
        """
        return self._dimension_report.weighted_utilization

    @property
    def ideal(self) -> float | None:
        """Time at full use of all dimensions' bandwidth [s].

        Bytes that an NPU must send / its bandwidth: 2 S (1 - 1/n) for all-reduce, S (1 - 1/n) for
        reduce-scatter and all-gather; ``None`` for other collectives, and where switches sum.

        References
        ----------
        "Ideal" of Themis, table 3, which writes collective size / total BW.
        """
        return self._dimension_report.ideal

    @property
    @figure(inline=_Dimensions)
    def _known_dimensions(self) -> _Dimensions:
        if not self.topology.dimensions:
            return _Dimensions()
        ideal_ps = None if self.ideal is None else picoseconds(self.ideal)
        return _Dimensions(self.dimensions, self.weighted_utilization, ideal_ps)

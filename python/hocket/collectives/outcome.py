"""What doing a collective came to, at whatever fidelity: time, rates, use of dimensions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hocket import _core
from hocket._results import Result

if TYPE_CHECKING:
    from hocket.collectives.data import BoundData, CollectiveData, DimensionData, OutcomeData
    from hocket.collectives.timing import Switching


@dataclass(frozen=True)
class DimensionUse:
    """How a run uses one dimension of a product topology."""

    kind: str
    """Ring, Line, FullyConnected or Switch."""
    size: int
    """NPUs along it."""
    bandwidth: float
    """What one NPU can send over it, all its links together; the mean over the NPUs [bytes/s]."""
    bytes: int
    """What all NPUs sent over it, also on behalf of others."""
    utilization: float
    """Bytes / (bandwidth x NPUs x time), 0 to 1."""


class Outcome(Result):
    """Time, rates, distance to the bound, and use of the dimensions.

    Times are seconds (``float``) unless the name ends in ``_ps`` (whole picoseconds); rates are
    bytes per second.
    """

    def __getstate__(self) -> dict[str, object]:
        """Leave out what can be computed again."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    @property
    @abstractmethod
    def time_ps(self) -> int:
        """Collective time [ps]."""

    @property
    @abstractmethod
    def collective(self) -> _core.Collective:
        """What was done."""

    @property
    @abstractmethod
    def topology(self) -> _core.Topology:
        """On what."""

    @property
    @abstractmethod
    def utilization(self) -> float:
        """How much of the bandwidth there is was used, 0 to 1."""

    @property
    @abstractmethod
    def switching(self) -> Switching:
        """How devices passed messages on."""

    @property
    @abstractmethod
    def _dimension_report(self) -> _core.DimensionReport: ...

    @property
    def time(self) -> float:
        """Collective time [s]."""
        return self.time_ps * 1e-12

    @property
    def algbw(self) -> float:
        """Size / time [bytes/s]; 0 ps count as 1 ps.

        References
        ----------
        nccl-tests, doc/PERFORMANCE.md.
        """
        return _core.rates(self.collective, self.time_ps)[0]

    @property
    def busbw(self) -> float:
        """Algbw times the collective's factor, e.g. 2 (n-1) / n for all-reduce [bytes/s].

        References
        ----------
        nccl-tests, doc/PERFORMANCE.md.
        """
        return _core.rates(self.collective, self.time_ps)[1]

    @property
    @abstractmethod
    def lower_bound(self) -> _core.Bound:
        """The lower bound on any plan's time at this fidelity, with its witness."""

    @property
    def bound(self) -> float:
        """Lower bound on the time of any plan for this collective here [s]."""
        return self.lower_bound.time_ps * 1e-12

    @property
    def gap(self) -> float:
        """How far above the bound: time / bound - 1, where 0 ps count as 1 ps."""
        return _core.gap(self.time_ps, self.lower_bound.time_ps)

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

    def _outcome_dict(self, fidelity: str) -> OutcomeData:
        is_product = bool(self.topology.dimensions)
        dimensions: list[DimensionData] | None = None
        if is_product:
            dimensions = [
                {
                    "kind": use.kind,
                    "size": use.size,
                    "bandwidth_bytes_per_s": use.bandwidth,
                    "bytes": use.bytes,
                    "utilization": use.utilization,
                }
                for use in self.dimensions
            ]
        ideal = self.ideal if is_product else None
        return {
            "fidelity": fidelity,
            "time_ps": self.time_ps,
            "algbw_bytes_per_s": self.algbw,
            "busbw_bytes_per_s": self.busbw,
            "bound_ps": self.lower_bound.time_ps,
            "gap": self.gap,
            "utilization": self.utilization,
            "switching": self.switching,
            "dimensions": dimensions,
            "weighted_utilization": self.weighted_utilization if is_product else None,
            "ideal_ps": None if ideal is None else round(ideal * 1e12),
        }


def collective_dict(collective: _core.Collective, topology: _core.Topology) -> CollectiveData:
    """Give a collective on a topology as values of JSON."""
    root = collective.root
    return {
        "collective": collective.name,
        "topology": topology.name,
        "npus": collective.npus,
        "root": None if root is None else collective.npus[root],
        "size_bytes": collective.size,
        "in_place": collective.in_place,
    }


def bound_dict(bound: _core.Bound) -> BoundData:
    """Give a bound as values of JSON."""
    return {
        "time_ps": bound.time_ps,
        "witness": bound.witness,
        "components_ps": dict(bound.components),
        "exact_cut": bound.exact_cut,
        "exact_partition": bound.exact_partition,
    }

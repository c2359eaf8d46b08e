"""The time of a schedule at dimension fidelity."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

from hocket import _core
from hocket._results import figure
from hocket.collectives.bins import to_bins
from hocket.collectives.outcome import Outcome
from hocket.collectives.timing import Latency, Switching
from hocket.plans.schedule import Schedule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class DimensionRun(Outcome):
    """The outcome of a schedule at dimension fidelity: all NPUs do the same, one stands for all.

    Operations are tasks: one pass of one part (of two) of one lane along one dimension.
    """

    def __init__(self, core: _core.DimensionRun, schedule: Schedule) -> None:
        self.core = core
        self.schedule = schedule

    @property
    def time_ps(self) -> int:
        """Collective time: start to the last operation's end [ps]."""
        return self.core.time_ps

    @property
    def collective(self) -> _core.Collective:
        """The collective."""
        return self.schedule.collective

    @property
    def topology(self) -> _core.Topology:
        """On what."""
        return self.schedule.topology

    @property
    def switching(self) -> Switching:
        """The switching: how switches passed messages on."""
        return cast(Switching, self.core.switching)

    @property
    def fidelity(self) -> str:
        """The fidelity of the simulation."""
        return "dimension"

    @property
    @figure(inline=Schedule)
    def _schedule(self) -> Schedule:
        return self.schedule

    @property
    @figure(column=False)
    def latency_model(self) -> Latency:
        """The effect of a step's latency on the next message."""
        return cast(Latency, self.core.latency)

    @cached_property
    def lower_bound(self) -> _core.Bound:
        """The lower bound on any schedule's time, with its witness.

        All NPUs have equal shares of the data, to fractions of a byte. Where switches sum, it is what each
        NPU has to send or to receive, and the latency.
        """
        return _core.bound(self.topology, self.collective, "dimension")

    @cached_property
    def _dimension_report(self) -> _core.DimensionReport:
        return self.core.report()

    @property
    def utilization(self) -> float:
        """The weighted utilization of the dimensions, 0 to 1."""
        return self.weighted_utilization

    @property
    def tasks(self) -> dict[str, NDArray[np.uint32] | NDArray[np.uint64]]:
        """Columns ``lane``, ``part``, ``stage``, ``dimension``, ``start_ps``, ``end_ps``, a task a row."""
        core = self.core
        return {
            "lane": core.lane,
            "part": core.part,
            "stage": core.stage,
            "dimension": core.dimension,
            "start_ps": core.start_ps,
            "end_ps": core.end_ps,
        }

    def activity(self, bins: int = 100, *, period: str | None = None) -> NDArray[np.float32]:
        """Share of each time bin in which each dimension has an operation under way, 0 to 1.

        Parameters
        ----------
        bins
            How many bins, equally long.
        period
            Instead of a number, the length of each, such as ``"100 us"``.

        Returns
        -------
        Shape ``(len(run.dimensions), bins)``.

        Raises
        ------
        SpecError
            For bins too few or too many.
        """
        number, length = to_bins(self.time_ps, len(self.dimensions), bins, period)
        return self.core.activity(number, length)

    def __repr__(self) -> str:
        return f"<DimensionRun of {self.schedule!r}: {self.time * 1e6:.3f} us>"

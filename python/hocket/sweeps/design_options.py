"""How networks for a budget are searched for, where users may choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hocket._checks import list_of, one_of, truth, whole
from hocket.errors import SpecError
from hocket.sweeps.candidates import CLOS, KINDS
from hocket.units import parse_bandwidth, parse_time, shown

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class DesignKeywords(TypedDict, total=False):
        """The fields of :class:`DesignOptions` as keywords of a call."""

        kinds: Sequence[str]
        most_dimensions: int
        steps: int
        oversubscription: Sequence[float]
        latency: str
        max_bandwidth: int | str | None
        algorithms: Sequence[str] | None
        levels: Sequence[float]
        most_evaluated: int
        parallel: str | None
        samples: int | None
        npu: str | None
        recompute: bool
        workers: int | None


__all__ = ["TRAINED", "DesignOptions"]

TRAINED = ("parallel", "samples", "npu", "recompute")
"""Options of training."""


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """How networks for a budget are searched for.

    Attributes
    ----------
    kinds
        Of dimensions: ``Ring``, ``FullyConnected``, ``Switch``; and ``clos``, two levels of switches, or
        the three of a fat tree.
    most_dimensions
        Of a product.
    steps
        Into how many equal parts the budget for bandwidth is cut, which are shared out among dimensions.
    oversubscription
        Of a Clos: bandwidth below a ToR for that above it.
    latency
        Of each link.
    max_bandwidth
        The largest bandwidth of a link; None for no limit.
    algorithms
        That may plan; by default those that plan quickly.
    levels
        Parts of the budget that are searched too, for the front of time and cost.
    most_evaluated
        Candidates of each level that are planned for, those with the least bounds first.
    parallel, samples, npu, recompute
        Of training, as of :func:`hocket.train`.
    workers
        Processes; by default one for each core.

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.
    """

    kinds: Sequence[str] = (*KINDS, CLOS)
    most_dimensions: int = 3
    steps: int = 4
    oversubscription: Sequence[float] = (1.0, 2.0, 4.0)
    latency: str = "700 ns"
    max_bandwidth: int | str | None = None
    algorithms: Sequence[str] | None = None
    levels: Sequence[float] = (0.25, 0.5)
    most_evaluated: int = 400
    parallel: str | None = None
    samples: int | None = None
    npu: str | None = None
    recompute: bool = False
    workers: int | None = None

    def __post_init__(self) -> None:
        kinds = list_of("kinds", self.kinds)
        for kind in kinds:
            one_of("kinds", kind, (*KINDS, CLOS))
        if not kinds:
            raise SpecError("kinds", "there is none", "give one or more")
        self._keep("kinds", tuple(dict.fromkeys(kinds)))
        whole("most_dimensions", self.most_dimensions, 1, 5)
        whole("steps", self.steps, 1, 64)
        whole("most_evaluated", self.most_evaluated, 1, 1_000_000)
        self._keep("oversubscription", self._numbers("oversubscription", 1 / 64, 64))
        self._keep("levels", self._numbers("levels", 1e-6, 1))
        parse_time(self.latency, field="latency")
        self._keep("latency", str(self.latency).replace(" ", ""))
        if self.max_bandwidth is not None:
            rate = parse_bandwidth(self.max_bandwidth, field="max_bandwidth")
            self._keep("max_bandwidth", rate)
        if self.algorithms is not None:
            self._keep("algorithms", tuple(list_of("algorithms", self.algorithms)))
        if self.workers is not None:
            whole("workers", self.workers, 1, 1024)
        truth("recompute", self.recompute)

    def _keep(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _numbers(self, name: str, least: float, most: float) -> tuple[float, ...]:
        found = []
        for each in list_of(name, getattr(self, name)):
            is_number = isinstance(each, int | float) and not isinstance(each, bool)
            if not is_number or not least <= each <= most:
                right = f"give numbers from {least:g} to {most:g}"
                raise SpecError(name, f"{shown(each)} is not valid", right)
            found.append(float(each))
        return tuple(found)

    @property
    def most(self) -> int | None:
        """The largest bandwidth of a link [bytes/s]."""
        return None if self.max_bandwidth is None else int(self.max_bandwidth)

    @property
    def trained(self) -> dict[str, str | int | bool]:
        """What is said of training."""
        given = {name: getattr(self, name) for name in TRAINED}
        return {name: value for name, value in given.items() if value not in (None, False)}

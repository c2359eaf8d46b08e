"""Options of the search of networks for a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from hocket._checks import list_of, one_of, truth, whole
from hocket._options import Rate
from hocket.errors import SpecError
from hocket.sweeps.candidates import CLOS, KINDS
from hocket.units import parse_bandwidth, parse_time, shown

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class DesignKeywords(TypedDict, total=False):
        """The fields of :class:`DesignOptions` as keywords of a call."""

        kinds: Sequence[str] | str
        most_dimensions: int
        steps: int
        oversubscription: Sequence[float] | str
        latency: str
        max_bandwidth: int | str | None
        algorithms: Sequence[str] | None
        levels: Sequence[float] | str
        most_evaluated: int
        parallel: str | None
        samples: int | None
        npu: str | None
        recompute: bool
        workers: int | None


TRAINED = ("parallel", "samples", "npu", "recompute")
"""Options of training."""


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """The options of the search of networks for a budget.

    Attributes
    ----------
    kinds
        Kinds of dimensions: Ring, FullyConnected, Switch; and clos, two or three levels of switches.
        Default: all.
    most_dimensions
        Largest number of dimensions of a product.
    steps
        How finely to split the bandwidth budget between dimensions: N equal steps.
    oversubscription
        Oversubscription of a Clos: bandwidth below a ToR divided by the bandwidth above it.
    latency
        Latency of each link.
    max_bandwidth
        Largest bandwidth of a link, such as ``"50 GB/s"``.
    algorithms
        Algorithms that may plan. Default: those that plan quickly.
    levels
        Shares of the budget that are also searched, for the Pareto front of time and cost.
    most_evaluated
        Largest number of candidates that get plans, at each level; those with the least bounds come first.
    parallel
        Parallelism of the model, such as dp=8,tp=2. Default: one replica per NPU.
    samples
        Samples per replica. Default: 32.
    npu
        Accelerator that computes, such as h100. Default: a100.
    recompute
        Compute forward passes again in the backward pass, to save memory.
    workers
        Number of processes. Default: one per core.

    Several values may be one text with commas, as ``"1,2,4"``.

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.
    """

    kinds: Annotated[Sequence[str] | str, "KIND,..."] = (*KINDS, CLOS)
    most_dimensions: int = 3
    steps: int = 4
    oversubscription: Annotated[Sequence[float] | str, "RATIO,..."] = (1.0, 2.0, 4.0)
    latency: Annotated[str, "TIME"] = "700 ns"
    max_bandwidth: Rate | None = None
    algorithms: Sequence[str] | None = None
    levels: Annotated[Sequence[float] | str, "SHARE,..."] = (0.25, 0.5)
    most_evaluated: int = 400
    parallel: str | None = None
    samples: int | None = None
    npu: str | None = None
    recompute: bool = False
    workers: int | None = None

    def __post_init__(self) -> None:
        kinds = _listed("kinds", self.kinds)
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
        given = getattr(self, name)
        if isinstance(given, str):
            given = [_number(name, given, each) for each in _listed(name, given)]
        for each in list_of(name, given):
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
        """The keys of training."""
        given = {name: getattr(self, name) for name in TRAINED}
        return {name: value for name, value in given.items() if value not in (None, False)}


def _listed(name: str, given: Sequence[str] | str) -> list[str]:
    """Return what a text with commas or a sequence lists."""
    if isinstance(given, str):
        return [each.strip() for each in given.split(",") if each.strip()]
    return list_of(name, given)


def _number(name: str, given: str, part: str) -> float:
    try:
        return float(part)
    except ValueError:
        right = "write numbers with commas between them, as 1,2,4"
        raise SpecError(name, f"{shown(given)} is not a list of numbers", right) from None

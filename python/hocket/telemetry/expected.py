"""The expectation for each size: bound, prediction, NCCL's pick and the best plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hocket import _core
from hocket.collectives.bounds import bound
from hocket.collectives.collective import KINDS, Progress, collective_on
from hocket.errors import InfeasibleError
from hocket.nccl.model import KINDS as LIBRARY_KINDS
from hocket.nccl.model import NcclChoice
from hocket.nccl.prediction import Library
from hocket.plans.algorithms import heeded
from hocket.plans.plan import Plan
from hocket.plans.planner import choose
from hocket.plans.synthesis import PlanOptions
from hocket.profiles.cost_model import behind, cells_of, ways_of
from hocket.profiles.hardware import Hardware
from hocket.profiles.measurement import Measurement
from hocket.profiles.plans import ends_at_switches, predict_plan
from hocket.profiles.prediction import PredictedTime, predict_on
from hocket.profiles.profile import Profile, why_below
from hocket.simulation.run import simulate
from hocket.telemetry.calls import KERNEL, Times

if TYPE_CHECKING:
    from numpy.typing import NDArray

TELLING = 32 << 10
"""Size up to which the least time measured tells what launching takes [bytes]."""
_APART = 16
"""How many times the size before a size is for which a plan is searched."""
_SMALLEST = 8 << 10
"""Sizes below it have the plan of this one or the next: they take as long."""
_WITHOUT_SWITCHES = "direct"
"""What is tried besides where the best plan is one through switches, which are slow to start."""
_FAITHFUL = 64 << 20
"""Size from which NCCL's own model predicts what is measured [bytes]; below it says 0.2 to 0.9 of it."""


@dataclass(frozen=True)
class Best:
    """The time of the best plan [s], and its algorithm."""

    seconds: float
    algorithm: str


@dataclass(frozen=True)
class Expectation:
    """The expectations on a topology.

    Attributes
    ----------
    network, nodes
        The topology, and on how many nodes its NPUs are.
    hardware
        Its bandwidths as the law needs them; ``None`` where it has none.
    profile
        Constants of the machine, if they are known.
    library
        NCCL or RCCL, if a model of it fits.
    """

    network: _core.Topology
    nodes: int
    hardware: Hardware | None
    profile: Profile | None
    library: Library | None

    def bound(self, kind: str, size: int) -> _core.Bound | None:
        """Return the lower bound of any plan, or ``None`` for a collective that hocket does not have."""
        if kind not in KINDS:
            return None
        return bound(self.network, collective_on(kind, self.network, size))

    def why_below(
        self, kind: str, size: int, seconds: float | None, profile: Profile | None
    ) -> str | None:
        """Explain why a prediction is below the bound, or return ``None`` if it is not."""
        limit = self.bound(kind, size)
        if limit is None or seconds is None:
            return None
        if profile is not None:
            return why_below(limit, seconds, profile)
        pick = self.pick(kind, size)
        return None if pick is None or self.library is None else self.library.why_below(pick, limit)

    def pick(self, kind: str, size: int) -> NcclChoice | None:
        """Return what NCCL picks by its own model, or ``None`` if that has no such collective."""
        if self.library is None or kind not in LIBRARY_KINDS:
            return None
        return self.library.choices(kind, size)[0]

    def predicted(
        self, kind: str, sizes: Sequence[int], profile: Profile | None
    ) -> list[PredictedTime | NcclChoice | None]:
        """Return what the library takes on a healthy machine, and with which algorithm and protocol.

        By the profile, whose launch is that of what was measured; without one by NCCL's own model, at the
        sizes at which that says what is measured.
        """
        if profile is not None and self.hardware is not None:
            npus = self.network.npu_count
            return [*predict_on(kind, self.hardware, npus, self.nodes, sizes, profile).times]
        return [self.pick(kind, size) if size >= _FAITHFUL else None for size in sizes]

    def otherwise(
        self, kind: str, sizes: Sequence[int], profile: Profile | None
    ) -> list[Best | None]:
        """Return what the library takes if it does not use its fastest algorithm, and what it uses then."""
        if profile is None or self.hardware is None:
            return [None] * len(sizes)
        ways = self._ways(kind, sizes, profile, self.hardware)
        names, took = [name for name, _ in ways], np.array(list(ways.values()))
        launch = np.array([profile.launching()])
        found: list[Best | None] = []
        for column in took.T:
            quickest = names[int(column.argmin())]
            rest = [
                (time, name) for time, name in zip(column, names, strict=True) if name != quickest
            ]
            time, name = min(rest, default=(np.inf, ""))
            seconds = float(behind(launch, np.array([time]))[0]) * 1e-6
            found.append(Best(seconds, name) if np.isfinite(time) else None)
        return found

    def _ways(
        self, kind: str, sizes: Sequence[int], profile: Profile, hardware: Hardware
    ) -> dict[tuple[str, str], NDArray[np.float64]]:
        npus = self.network.npu_count
        rows = [Measurement(kind, npus, self.nodes, size, 1.0) for size in sizes]
        return ways_of(cells_of(rows, profile.hardware(hardware, self.nodes)), profile.values)

    def ways(self, kind: str, size: int) -> dict[tuple[str, str], float]:
        """Return what each algorithm and protocol, in small letters, takes without launch [s]."""
        if self.profile is not None and self.hardware is not None:
            found = self._ways(kind, [size], self.profile, self.hardware)
            return {way: float(took[0]) * 1e-6 for way, took in found.items() if took[0] < np.inf}
        if self.library is None or kind not in LIBRARY_KINDS or size < _FAITHFUL:
            return {}
        choices = self.library.choices(kind, size)
        return {(each.algorithm, each.protocol.lower()): each.seconds for each in choices}

    def best(
        self,
        kind: str,
        sizes: Sequence[int],
        profile: Profile | None,
        options: PlanOptions,
        progress: Progress | None,
    ) -> dict[int, Best]:
        """Return what the best plan takes at each size, by size.

        At some sizes, at most 16 times apart, ``auto`` makes a plan, and the profile says what it takes on
        the machine; without one the simulation does. Between them times are interpolated, by their and the
        sizes' logarithms, which never gives less than a fixed cost with a rate does. None where no plan can
        be made.
        """
        if kind not in KINDS:
            return {}
        shares: list[tuple[int, float, str]] = []
        for size in _spread(sizes):
            collective = collective_on(kind, self.network, size)
            found: list[Best] = []
            for name in ("auto", _WITHOUT_SWITCHES):
                try:
                    given = heeded(name, options)
                    plan = choose(collective, self.network, name, given, progress=progress).plan
                    seconds = _time_of(plan, profile, options, progress)
                    found.append(Best(seconds, plan.algorithm))
                except InfeasibleError:
                    break
                if profile is None or not ends_at_switches(plan):
                    break
            if not found:
                return {}
            best = min(found, key=lambda each: each.seconds)
            shares.append((size, best.seconds, best.algorithm))
        return {size: _between(shares, size) for size in sizes}


def launched(
    profile: Profile, expectation: Expectation, times: Sequence[Times], kind: str | None
) -> Profile:
    """Return a profile whose launch is that of what was measured.

    Of kernels alone it is none. Of calls one after another it is that of the kind of program that is
    named; by default the one with which the least time up to 32 KiB would be right, though no shorter and
    no longer than those of the kinds that the profile has; without such a size the profile's first.
    """
    facts = replace(profile.facts, launch=None)
    none = replace(profile, launch={"kernel": 0.0}, launch_per_npu=0.0, facts=facts)
    if times[0].timing == KERNEL:
        return none
    own = profile.launching_all(expectation.network.npu_count, expectation.nodes, kind)
    own -= profile.launching(kind)
    told = min(times, key=lambda each: each.seconds)
    took = profile.launching(kind) + own
    if kind is None and times[0].size <= TELLING and expectation.hardware is not None:
        (work,) = expectation.predicted(told.kind, [told.size], none)
        bare = 0.0 if work is None else work.seconds * 1e6
        took = profile.launch_behind(told.seconds * 1e6, bare, own)
    return replace(none, launch={"measured": took})


def _time_of(
    plan: Plan, profile: Profile | None, options: PlanOptions, progress: Progress | None
) -> float:
    """Return what a plan takes by a profile, or without one in simulated time [s]."""
    if profile is None:
        return (
            simulate(plan, latency_model=options.latency_model, progress=progress).time_ps * 1e-12
        )
    return predict_plan(plan, profile).seconds


def _spread(sizes: Sequence[int]) -> Iterator[int]:
    """Return the sizes for which a plan is searched: the largest, and those 16 times apart below it."""
    last = math.inf
    for size in sorted(sizes, reverse=True):
        if size * _APART <= last or last == math.inf:
            yield size
            last = size
        if size <= _SMALLEST:
            return


def _between(shares: Sequence[tuple[int, float, str]], size: int) -> Best:
    """Interpolate times over sizes, both by their logarithms, between those of plans that were made."""
    known = sorted(shares)
    above = next((each for each in known if each[0] >= size), known[-1])
    below = next((each for each in reversed(known) if each[0] <= size), known[0])
    if above[0] <= below[0]:
        return Best(*below[1:])
    part = math.log(size / below[0]) / math.log(above[0] / below[0])
    nearer = above if part > 0.5 else below
    return Best(math.exp((1 - part) * math.log(below[1]) + part * math.log(above[1])), nearer[2])

"""Plans on a network of namespaces, measured beside their simulation."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from hocket import _core
from hocket._checks import list_of, whole
from hocket._options import check_keywords
from hocket._results import TableResult, picoseconds
from hocket.collectives.collective import collective_on
from hocket.errors import InfeasibleError, SpecError
from hocket.plans.choice import link_time
from hocket.plans.plan import Plan
from hocket.plans.planner import choose
from hocket.plans.synthesis import PlanOptions
from hocket.simulation.run import simulate
from hocket_testbed.calibrated import Calibration, calibrate_network, model_of, predicted
from hocket_testbed.data import PlanRunData, PlanStudyData
from hocket_testbed.network import NetworkSpec
from hocket_testbed.plan_connections import (
    check_same_network,
    load_of,
    on_network,
    passed_on,
    ways_of,
)
from hocket_testbed.rank_threads import gathered

__all__ = ["PlanRun", "PlanStudy", "load_or_name", "plans_for", "run_plans"]

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class PlannedKeywords(TypedDict, total=False):
        """The collective and size that algorithms plan."""

        collective: str
        size: int | str
        npus: Sequence[int | str] | str | None
        chunks: int | None


_PLANNED = ("collective", "size", "npus", "chunks")
LEAST_MESSAGE = 64_000
"""Messages are not cut shorter where their number is free: what a step takes would count [bytes]."""
_MOST_TRANSFERS = 200_000
MAX_REPEATS = 1000


@dataclass(frozen=True)
class PlanRun:
    """A plan, run several times.

    Attributes
    ----------
    plan
        As it ran.
    times
        Of each run [s].
    predicted
        By the simulation [s].
    overhead
        Bytes of frames by bytes of data, of all links together, in one run.
    worst_link
        The same, of the link that is furthest from all together.
    load
        Load average of the machine when it began.
    """

    plan: Plan
    times: tuple[float, ...]
    predicted: float
    overhead: float
    worst_link: float
    load: float

    @property
    def time(self) -> float:
        """The median [s]."""
        return median(self.times)

    @property
    def deviation(self) -> float:
        """By which share the median is longer than the prediction."""
        return self.time / self.predicted - 1


@dataclass(frozen=True)
class PlanStudy(TableResult):
    """Plans on one network, in the order in which they were given.

    Attributes
    ----------
    spec
        The network.
    calibration
        What was measured before.
    runs
        A row a plan.
    """

    spec: NetworkSpec
    calibration: Calibration
    runs: tuple[PlanRun, ...]

    def ranks(self, key: Callable[[PlanRun], float]) -> list[int]:
        """Return the place of each plan by a time, 1 for the shortest."""
        order = sorted(map(key, self.runs))
        return [1 + order.index(key(run)) for run in self.runs]

    @property
    def measured_ranks(self) -> list[int]:
        """Places by the measured time."""
        return self.ranks(lambda run: run.time)

    @property
    def predicted_ranks(self) -> list[int]:
        """Places by the simulated time."""
        return self.ranks(lambda run: run.predicted)

    def to_dict(self) -> PlanStudyData:
        """Return the result as JSON values."""
        short = self.calibration.short
        return {
            "topology": self.spec.topology.name,
            "npus": self.spec.topology.npu_count,
            "links": self.spec.topology.link_count,
            "rate_bytes_per_s": self.spec.rate_bytes,
            "latency_ps": self.spec.latency_ps,
            "medium": "loopback" if self.spec.loopback else "namespaces",
            "calibration_alone": self.calibration.alone,
            "calibration_worst": self.calibration.worst,
            "delay_ps": picoseconds(self.calibration.delay),
            "short_delay_ps": None if short is None else picoseconds(short),
            "runs": [
                _row(run, measured, predicted)
                for run, measured, predicted in zip(
                    self.runs, self.measured_ranks, self.predicted_ranks, strict=True
                )
            ],
        }

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {**row, "times_ps": " ".join(map(str, row["times_ps"]))}
            for row in self.to_dict()["runs"]
        ]

    def __repr__(self) -> str:
        """Return the number of plans, and the network."""
        return f"<PlanStudy: {len(self.runs)} plans on {self.spec.topology.name}>"


def _row(run: PlanRun, measured: int, predicted: int) -> PlanRunData:
    return {
        "algorithm": run.plan.algorithm,
        "collective": run.plan.collective.name,
        "size_bytes": run.plan.collective.size,
        "transfers": len(run.plan),
        "chunk_count": run.plan.chunks,
        "times_ps": [picoseconds(each) for each in run.times],
        "measured_ps": picoseconds(run.time),
        "predicted_ps": picoseconds(run.predicted),
        "deviation": run.deviation,
        "measured_rank": measured,
        "predicted_rank": predicted,
        "frame_bytes_per_byte": run.overhead,
        "worst_link_frame_bytes_per_byte": run.worst_link,
        "load_average": run.load,
    }


def run_plans(
    spec: NetworkSpec,
    plans: Sequence[Plan | str],
    *,
    repeats: int = 5,
    real_time: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
    **planned: Unpack[PlannedKeywords],
) -> PlanStudy:
    """Run plans on a network that is there, and simulate them with what its links carry.

    Parameters
    ----------
    spec
        The network.
    plans
        Plans for it, or names of algorithms that plan on it.
    repeats
        How often each plan runs after it ran once to warm up.
    real_time
        Whether ranks run before everything else on this machine, as far as that is permitted.
    progress
        Called as ``progress(stage, done, total)``.
    planned
        What algorithms plan: `collective`, by default an all-reduce, `size`, by default 16 MB, `npus` and
        `chunks`, by default the fastest number of which messages have 64 kB at least.

    Raises
    ------
    SpecError
        For a plan of another network, or what else makes no sense.
    InfeasibleError
        Where a plan cannot be made or run.
    SimulationError
        Where a result is wrong.
    TransportError
        Where ranks stand still.
    """
    repeats = whole("repeats", repeats, 1, MAX_REPEATS)
    check_keywords(planned, _PLANNED, ("repeats", "real_time", "progress"))
    made = plans_for(spec, plans, **planned)
    if progress is not None:
        progress("calibrate", 0, len(made))
    calibration = calibrate_network(spec, real_time=real_time)
    model = model_of(spec, calibration)
    runs = []
    for i, plan in enumerate(made):
        if progress is not None:
            progress(plan.algorithm, i, len(made))
        moved = on_network(plan, model).verify()
        runs.append(_run(spec, moved, calibration, repeats, real_time=real_time))
    return PlanStudy(spec, calibration, tuple(runs))


def plans_for(
    spec: NetworkSpec,
    plans: Sequence[Plan | str],
    *,
    collective: str = "all-reduce",
    size: int | str = "16 MB",
    npus: Sequence[int | str] | str | None = None,
    chunks: int | None = None,
) -> list[Plan]:
    """Plan what is named by its algorithm, and check that all can run; nothing need be built for that.

    See :func:`run_plans`.
    """
    draft = model_of(spec, Calibration(1.0, (), _DELAY))
    made = []
    for each in list_of("plans", plans):
        if isinstance(each, Plan):
            check_same_network(each, spec.topology)
            plan = each
        elif isinstance(each, str):
            plan = _planned(each, draft, collective, size, npus, chunks)
        else:
            raise SpecError("plans", f"{each!r} is no plan", "give plans, or names of algorithms")
        made.append(_checked(plan))
    if not made:
        raise SpecError("plans", "there are none", "give plans, or names of algorithms")
    return made


_DELAY = 80e-6
"""What a message takes besides its bytes, for planning before it is measured [s]."""


def _checked(plan: Plan) -> Plan:
    """Return a plan as ranks can run it.

    Raises
    ------
    SpecError, InfeasibleError
        Saying why not.
    """
    if len(plan) > _MOST_TRANSFERS:
        why = f"the plan of {plan.algorithm} has {len(plan):,} transfers"
        raise SpecError("plan", why, f"give fewer chunks: {_MOST_TRANSFERS:,} at most run here")
    plan = passed_on(plan)
    ways_of(plan)
    return plan.verify()


def _planned(
    algorithm: str,
    topology: _core.Topology,
    kind: str,
    size: int | str,
    npus: Sequence[int | str] | str | None,
    chunks: int | None,
) -> Plan:
    """Plan with the fastest number of chunks that does not cut messages too short."""
    collective = collective_on(kind, topology, size, npus=npus)
    options = PlanOptions(chunks=chunks)
    found: list[int] = []

    def time_of(plan: Plan, slices: int | None) -> int | None:
        if found and int(plan.transfers.size_bytes.min()) < LEAST_MESSAGE:
            raise InfeasibleError(None, "its messages are short")
        found.append(slices or 0)
        return link_time(plan, options)

    if chunks is not None or algorithm == "auto":
        return choose(collective, topology, algorithm, options).plan
    if algorithm != "trees":
        return choose(collective, topology, algorithm, options, timer=time_of).plan
    best: Plan | None = None
    for each in _LADDER:
        plan = choose(collective, topology, algorithm, replace(options, chunks=each)).plan
        if best is not None and int(plan.transfers.size_bytes.min()) < LEAST_MESSAGE:
            break
        if best is None or simulate(plan).time_ps < simulate(best).time_ps:
            best = plan
    assert best is not None
    return best


_LADDER = (1, 2, 4, 8, 16, 32, 64, 128)


def _run(
    spec: NetworkSpec, plan: Plan, calibration: Calibration, repeats: int, *, real_time: bool
) -> PlanRun:
    load = os.getloadavg()[0]
    expected = predicted(plan, calibration)
    with gathered(spec, plan, real_time=real_time) as gang:
        gang.run()
        before = gang.carried()
        times = [gang.run()]
        after = gang.carried()
        times += [gang.run() for _ in range(repeats - 1)]
    data = load_of(plan)
    frames = [one - other for one, other in zip(after, before, strict=True)]
    shares = [frame / each for frame, each in zip(frames, data, strict=True) if each]
    overhead = sum(frames) / max(sum(data), 1)
    worst = max(shares, key=lambda share: abs(share - overhead), default=overhead)
    return PlanRun(plan, tuple(times), expected, overhead, worst, load)


def load_or_name(text: str) -> Plan | str:
    """Return the plan of a file, or the name of an algorithm as it is."""
    if Path(text).suffix or Path(text).exists():
        return Plan.load(text)
    return text
